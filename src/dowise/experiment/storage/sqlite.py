"""Journals in a SQLite file: write-ahead log, full sync, one writer at a time.

SQLite's own busy handler is unfair: its pauses grow, so that one process may starve while another
one writes again and again. So writers wait for a `FileLock`, and only its holder tries SQLite's
lock. A writer may continue for a `BURST` without waiting again, because waking another process for
every event would take longer than the event. The file is opened only through SQLite: closing it
elsewhere would drop SQLite's locks.

SQLite keeps a -wal and a -shm file beside an open store, and even a reader creates them. If a user
who may only read created them, they would stay, and the owner could not write to them: so such a
user opens the store in a mode that creates none. If another process has the store open, SQLite uses
the files of that process. Otherwise all events are in the main file, and SQLite is told that the
file does not change (`immutable`). A `Place` contains the time and size of such a file: if they
have changed after a read, the read is repeated.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.storage import sql
from dowise.experiment.storage.base import HOW_TO_CREATE, TIMEOUT, WITHOUT_WAL
from dowise.experiment.storage.file_lock import FileLock
from dowise.experiment.storage.sql import Row, SqlStorage, Values, driver_error
from dowise.experiment.storage.url import Location

Result = TypeVar("Result")

# Seconds, tuned with 16 processes on two cores. Pauses: the first and the longest one.
PAUSES_WITH_LOCK = (0.0005, 0.002)
PAUSES = (0.001, 0.01)
BURST = 0.03
LOCK_TIMEOUT = 5.0  # its holder may have been stopped: then this process tries without the lock
ON_WAIT_INTERVAL = 0.005  # between two calls of `on_wait`
FOLDER_LOCK_TIMEOUT = 1.0  # removing a file takes much less
POOL_SIZE = 40  # threads of a web server: opening a connection takes longer than reading

WRITABLE = "rw"
SHARED = "ro&readonly_shm=1"  # read in the files that a writer has created
ROLLBACK = "ro"  # a file that is not in WAL mode, while another process writes to it
IMMUTABLE = "ro&immutable=1"

_RESTORE = "restore it from a copy, or use another file"
_REASONS = {
    "SQLITE_NOTADB": f"not a SQLite file, so not a store of dowise: {_RESTORE}; in a command the "
    "store comes first",
    "SQLITE_CORRUPT": f"it is damaged or truncated: {_RESTORE}",
    "SQLITE_FULL": "the disk is full: free some space, then try again",
    "SQLITE_READONLY": "the file or its folder is read-only: let this user write to them, or copy "
    "the store to another folder",
    "SQLITE_CANTOPEN": "it can't be opened: this user must be allowed to read and write both the "
    "file and its folder",
    "SQLITE_PERM": "this user may not open it",
    "SQLITE_IOERR": "the system could not read or write it: check the disk and its free space",
    "SQLITE_TOOBIG": "the value is too large for SQLite",
}
_REFUSALS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")


class SqliteStorage(SqlStorage):
    """Store in a SQLite file."""

    single_writer = True

    def __init__(self, location: Location, timeout: float = TIMEOUT) -> None:
        assert location.path is not None
        self._path = Path(os.path.realpath(location.path))
        self._files = SqliteFiles(self._path)
        self._lock = FileLock(self._path)
        self._burst_start = -inf
        super().__init__(location, _pooled_engine(self._files, location.shown), timeout)

    def tables_version(self, create: bool) -> int:
        """Return the version of the tables; create the file and the tables if requested.

        A foreign file is opened by a connection that can't write.
        """
        version = self._find_version(create)
        if version is not None:
            return version
        if not create:
            raise DowiseError(
                f"{self} is empty: create a store in it ({HOW_TO_CREATE}); or {WITHOUT_WAL}",
                code="not-found",
            )
        self._change(sql.create_tables, "rwc", time.monotonic() + TIMEOUT)
        return sql.VERSION

    def _find_version(self, create: bool) -> int | None:
        if self._path.is_dir():
            raise DowiseError(
                f"{self} is a folder: use the name of a file in it", code="invalid-store"
            )
        if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
            raise DowiseError(
                f"{self} is not a file, but a pipe, a device or a link to itself",
                code="invalid-store",
            )
        if not self._path.exists():
            if not create:
                raise DowiseError(
                    f"there is no store {self}: create one ({HOW_TO_CREATE})", code="not-found"
                )
            if not self._path.parent.is_dir():
                raise DowiseError(
                    f"{self} can't be created: there is no folder {self._path.parent}",
                    code="file-not-found",
                )
            return None
        place, has_wal = self._files.place(), self._files.has_wal()
        mode = WRITABLE if place is None else place.mode
        if mode == WRITABLE:
            mode = "ro" if has_wal else IMMUTABLE  # creates no files beside a foreign file
        try:
            with _single_engine(self._path, mode).connect() as connection:
                return self._version(connection)
        except (SQLAlchemyError, DowiseError):
            if (place, has_wal) == (self._files.place(), self._files.has_wal()):
                raise
        return self._find_version(create)  # another process has written to it in the meantime

    def _version(self, connection: Connection) -> int | None:
        """Return the version of the tables; this is where SQLite opens the files."""
        try:
            return _retry(lambda: sql.find_version(connection, self.location.shown))
        except SQLAlchemyError:
            self._files.drop_own_wal()
            raise

    def upgrade(self, deadline: float) -> None:
        """Migrate older tables."""
        self._change(sql.upgrade_tables, "rw", deadline)

    def _change(
        self, change: Callable[[Connection, str], None], mode: str, deadline: float
    ) -> None:
        self._check_may_write()
        with _single_engine(self._path, mode).connect() as connection:
            with self._files.opened_to_write():
                _retry(lambda: _configure(connection), deadline)
            self.begin(connection, "", deadline)
            change(connection, self.location.shown)
            connection.exec_driver_sql("COMMIT")

    def set_up(self, connection: Connection) -> None:
        """Check that the file is a store, and configure a connection that may write."""
        is_writable = _driver(connection).place.mode == WRITABLE
        with self._files.opened_to_write() if is_writable else nullcontext():
            if self._version(connection) is None:
                raise UnavailableError(f"{self} was emptied: restore it from a copy")
            if is_writable:
                _retry(lambda: _configure(connection))

    def identity(self) -> Place | None:
        """Return the file that has this name now, and how this user may open it."""
        return self._files.place()

    def retry_busy(self, call: Callable[[], Result]) -> Result:
        """Call, and repeat the call while another process recovers the file after a crash."""
        return _retry(call)

    def run(self, connection: Connection, text: str, values: Values = ()) -> list[Row]:
        """Run a statement with the driver, and return its rows."""
        driver: Any = connection.connection.driver_connection
        rows: list[Row] = driver.execute(text, values).fetchall()
        return rows

    def commit(self, connection: Connection, text: str = "", values: Values = ()) -> None:
        """Run a last statement, if any, and commit."""
        driver: Any = connection.connection.driver_connection
        if text:
            driver.execute(text, values)
        driver.execute("COMMIT")

    def begin(
        self,
        connection: Connection,
        experiment: str,  # noqa: ARG002
        deadline: float,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        """Begin a transaction as the only writer of the file."""
        driver: Any = connection.connection.driver_connection
        execute = driver.execute
        if time.monotonic() - self._burst_start < BURST:
            try:
                execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    raise
        self._check_may_write()
        lock = None
        try:
            lock = self._lock.acquire(min(LOCK_TIMEOUT, max(deadline - time.monotonic(), 0.0)))
            pauses = PAUSES if lock is None else PAUSES_WITH_LOCK
            _retry(lambda: execute("BEGIN IMMEDIATE"), deadline, on_wait, pauses)
            self._burst_start = time.monotonic()
        finally:
            self._lock.release(lock)

    def close(self) -> None:
        """Close the connections, and delete the lock file unless it is in use."""
        super().close()
        self._lock.remove()

    def _check_may_write(self) -> None:
        """Raise before a file is created beside a store that this user may only read."""
        if self._path.exists() and (reason := self._files.write_obstacle()):
            raise PermissionError(reason)

    def clean(self, connection: Connection, deadline: float) -> None:
        """Write the pages without the erased contents to the file, and empty the WAL.

        In the file SQLite overwrites deleted contents (secure_delete), also if it moves rows; the
        WAL contains pages from before the erasure.
        """
        execute = _driver(connection).execute

        def empty_wal() -> None:
            busy, _, _ = execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise _BusyError

        _retry(empty_wal, deadline)

    def explain(self, error: BaseException) -> str | None:
        """Return a readable message for an error of SQLite."""
        name = str(getattr(error, "sqlite_errorname", ""))
        if name.startswith(_REFUSALS) and (
            reason := self._files.read_obstacle() or self._files.write_obstacle()
        ):
            return reason
        if name == "SQLITE_ERROR" and str(error).startswith("no such "):
            return "a part of its tables is missing: restore it from a copy"
        return next((text for key, text in _REASONS.items() if name.startswith(key)), None)

    def is_refused(self, error: BaseException) -> bool:
        """Return True if SQLite may not open its files, or not in this mode."""
        return str(getattr(driver_error(error), "sqlite_errorname", "")).startswith(_REFUSALS)


# -- connections ------------------------------------------------------------------------------


class _FileConnection(sqlite3.Connection):
    """Connection with the file that it was opened for."""

    place: Place


class _BusyError(Exception):
    """A checkpoint could not be completed because of readers."""


def _pooled_engine(files: SqliteFiles, shown: str) -> Engine:
    """Return an engine with a pool, which opens the file in the mode that this user may use."""

    def connect() -> _FileConnection:
        place = files.place()
        if place is None:
            raise UnavailableError(
                f"there is no store {shown}: create one ({HOW_TO_CREATE})", code="not-found"
            )
        connection = _connect(files.path, place.mode)
        connection.place = place
        return connection

    engine = create_engine(
        "sqlite://",
        creator=connect,
        isolation_level="AUTOCOMMIT",
        poolclass=QueuePool,
        pool_size=POOL_SIZE,
        max_overflow=-1,
        pool_use_lifo=True,
    )

    @event.listens_for(engine, "checkout")
    def check_place(connection: Any, *_: object) -> None:
        """Replace a connection to a file that was replaced, or is opened in another mode now."""
        if connection.place != files.place():
            raise DisconnectionError

    return engine


def _single_engine(path: Path, mode: str) -> Engine:
    return create_engine(
        "sqlite://",
        creator=lambda: _connect(path, mode),
        isolation_level="AUTOCOMMIT",
        poolclass=NullPool,
    )


def _connect(path: Path, mode: str) -> _FileConnection:
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=0,
        check_same_thread=False,
        isolation_level=None,
        factory=_FileConnection,
    )


def _configure(connection: Connection) -> None:
    for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        connection.exec_driver_sql(f"PRAGMA {setting}")


def _driver(connection: Connection) -> _FileConnection:
    """Return the driver's connection, since a busy file is too frequent for wrapped errors."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, _FileConnection)
    return driver


def _retry(
    call: Callable[[], Result],
    deadline: float | None = None,
    on_wait: Callable[[], None] | None = None,
    pauses: tuple[float, float] = PAUSES,
) -> Result:
    """Call until the file is not busy. Raises TimeoutError after the deadline."""
    if deadline is None:
        deadline = time.monotonic() + TIMEOUT
    last_on_wait = -inf
    pause, longest = pauses
    while True:
        try:
            return call()
        except (sqlite3.OperationalError, DBAPIError, _BusyError) as error:
            if not _is_busy(error):
                raise
        if time.monotonic() > deadline:
            raise TimeoutError
        if on_wait is not None and time.monotonic() - last_on_wait > ON_WAIT_INTERVAL:
            on_wait()
            last_on_wait = time.monotonic()
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(1.5 * pause, longest)


def _is_busy(error: BaseException) -> bool:
    """Return True if another process holds a lock on the file."""
    name = str(getattr(driver_error(error), "sqlite_errorname", ""))
    return isinstance(error, _BusyError) or name.startswith(
        ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL")
    )


# -- files ------------------------------------------------------------------------------------


class Place(NamedTuple):
    """The file that has the name now, and the mode of SQLite's URI in which this user opens it."""

    device: int
    inode: int
    mode: str
    state: tuple[int, int] | None = None
    """Time of the last write and size, if the file is read as immutable."""


class SqliteFiles:
    """The files of a SQLite store, and what this user may do with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._wal, self._shm, self._journal = (
            path.with_name(f"{path.name}{ending}") for ending in ("-wal", "-shm", "-journal")
        )

    def place(self) -> Place | None:
        """Return the current file, or None if there is none."""
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        file = status.st_dev, status.st_ino
        if self._may_write():
            return Place(*file, WRITABLE)
        if self._wal.exists() and (self._shm.exists() or self._has_events_in_wal()):
            return Place(*file, SHARED)
        if self._journal.exists():
            return Place(*file, ROLLBACK)
        return Place(*file, IMMUTABLE, (status.st_mtime_ns, status.st_size))

    def _may_write(self) -> bool:
        return os.access(self.path, os.W_OK) and (
            os.access(self.path.parent, os.W_OK)
            or all(os.access(file, os.W_OK) for file in (self._wal, self._shm))
        )

    def has_wal(self) -> bool:
        """Return True if there is a -wal file, which may be empty."""
        return self._wal.exists()

    def _has_events_in_wal(self) -> bool:
        try:
            return self._wal.stat().st_size > 0
        except OSError:
            return False

    def drop_own_wal(self) -> None:
        """Remove an empty -wal file of this user that no process can be using.

        SQLite creates one if the process whose files it was using has just closed them. No writer
        can be opening the file at that time (`opened_to_write`).
        """
        with self._folder_lock(exclusive=True) as is_held, suppress(OSError):
            status = self._wal.stat()
            is_own = hasattr(os, "geteuid") and status.st_uid == os.geteuid()
            if is_held and is_own and not status.st_size and not self._shm.exists():
                self._wal.unlink()

    def opened_to_write(self) -> AbstractContextManager[bool]:
        """Protect the files while SQLite opens them for a writer.

        Without a -shm file, a -wal file that is being opened looks unused.
        """
        return self._folder_lock(exclusive=False)

    @contextmanager
    def _folder_lock(self, exclusive: bool) -> Iterator[bool]:
        """Lock the folder, which needs no write permission; yield True if that succeeded.

        A writer continues without the lock after a while, so that no reader can block the owner.
        """
        try:
            import fcntl

            folder = os.open(self.path.parent, os.O_RDONLY)
        except (ImportError, OSError):  # Windows, where an open file can't be removed
            yield False
            return
        try:
            is_held = False
            deadline = time.monotonic() + (0.0 if exclusive else FOLDER_LOCK_TIMEOUT)
            operation = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
            while not is_held:
                try:
                    fcntl.flock(folder, operation)
                    is_held = True
                except OSError:
                    if time.monotonic() >= deadline:
                        break
                    time.sleep(0.005)
            yield is_held
        finally:
            os.close(folder)

    def write_obstacle(self) -> str | None:
        """Return the reason why this user can't write: the file, its owner, and the remedy."""
        with suppress(OSError, AttributeError):  # AttributeError: Windows
            if os.statvfs(self.path.parent).f_flag & os.ST_RDONLY:
                return "its file system is mounted read-only: copy the store to another one"
        if self.path.exists() and not os.access(self.path, os.W_OK):
            return (
                f"{_owner_clause(self.path, 'the file')} may not write to it: ask for permission, "
                "or copy the store to another folder"
            )
        for file in (self._wal, self._shm):
            if file.exists() and not os.access(file, os.W_OK):
                return (
                    f"{_owner_clause(file, f'{file.name} beside it')} may not write to it: end the "
                    "owner's programs that use the store; if the file remains, ask root for it "
                    f"(chown {_user_name()} {file.name})"
                )
        if not self._may_write():
            return (
                f"{_owner_clause(self.path.parent, 'its folder')} may not create files there, as "
                "SQLite has to: ask for permission, or copy the store to another folder"
            )
        return None

    def read_obstacle(self) -> str | None:
        """Return the reason why this user can't read."""
        for file in (self.path, self._wal, self._shm):
            with suppress(OSError):
                if file.exists() and not os.access(file, os.R_OK):
                    return f"{_owner_clause(file, file.name)} may not read it: ask for permission"
        if self._has_events_in_wal() and not self._shm.exists() and not self._may_write():
            return (
                f"its newest events are in {self._wal.name}, which only a user who may write to "
                "the store can read now: ask its owner to open it once, or copy both files to "
                "another folder"
            )
        return None


def _owner_clause(path: Path, label: str) -> str:
    try:
        owner = path.owner()
    except (KeyError, OSError, NotImplementedError):  # a user without a name; Windows
        owner = "another user"
    return f"{label} belongs to {owner}, and you ({_user_name()})"


def _user_name() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # Windows; a user without a name
        return str(os.geteuid()) if hasattr(os, "geteuid") else "this user"
