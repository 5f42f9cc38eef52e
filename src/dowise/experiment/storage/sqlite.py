"""Journals in a SQLite file: WAL, full sync, and a lock that 16 programs share without losing time.

SQLite lets one writer in at a time. Its own way of waiting sleeps longer and longer, so that one
writer may be shut out while another one takes turn after turn, and many who come back to look take
the time of who writes. Here those who wait stand in a queue (`queue_lock`), and only the first of
them looks. Who writes goes on for a `BURST` of events, then stands in the queue again: to wake
another process for each event would cost more than the event. The file is never opened by other
means than SQLite's: closing it would drop SQLite's locks.
"""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from math import inf
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.storage import schema
from dowise.experiment.storage.database import Row, Values
from dowise.experiment.storage.failures import is_busy
from dowise.experiment.storage.location import Location
from dowise.experiment.storage.rules import HOW_TO_MAKE, WITHOUT_WAL
from dowise.experiment.storage.sqlite_files import READING_ALONE, WRITING, Place, SqliteFiles
from dowise.queue_lock import QueueLock

__all__ = ["SqliteDatabase"]

Result = TypeVar("Result")

# In seconds; found by trial with 16 processes on two cores.
PAUSES = (0.0005, 0.002)  # between two looks of the first in the queue: at first, and later on
PAUSES_WITHOUT_QUEUE = (0.001, 0.01)
BURST = 0.03
MEANWHILE = 0.005  # between two times of reading what others write
PATIENCE_IN_QUEUE = 5.0  # then the first may have been stopped, and we look for ourselves
PATIENCE_TO_OPEN = 60.0


class SqliteDatabase:
    """A file of SQLite."""

    one_writer = True
    most_idle = 40  # as many as a web server has threads: to open one takes longer than to read

    def __init__(self, location: Location) -> None:
        assert location.path is not None
        self.location = location
        self._path = Path(os.path.realpath(location.path))
        self._files = SqliteFiles(self._path)
        self._queue = QueueLock(self._path)
        self._burst_began = -inf

    def prepare(self, create: bool) -> int:
        """See that the file is a store, and of which version; make it where that is asked for.

        A foreign file is looked at by a connection that can't write.
        """
        shown = self.location.shown
        version = self._look(create)
        if version is None and not create:
            raise DowiseError(
                f"{shown} is empty: make a store of it ({HOW_TO_MAKE}); or {WITHOUT_WAL}"
            )
        if version is None:
            self._make()
            return schema.VERSION
        return version

    def _look(self, create: bool) -> int | None:
        shown = self.location.shown
        if self._path.is_dir():
            raise DowiseError(f"{shown} is a folder: give the name of a file in it")
        if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
            raise DowiseError(f"{shown} is no file, but a pipe, a device or a link to itself")
        if not self._path.exists():
            if not create:
                raise DowiseError(f"there is no store {shown}: make it ({HOW_TO_MAKE})")
            if not self._path.parent.is_dir():
                raise DowiseError(f"{shown} can't be made: there is no folder {self._path.parent}")
            return None
        found = self._files.place(), self._files.has_wal()
        try:
            return self._find_version(*found)
        except (SQLAlchemyError, DowiseError):
            if found == (self._files.place(), self._files.has_wal()):
                raise
        return self._look(create)  # somebody wrote to it meanwhile

    def _find_version(self, place: Place | None, has_wal: bool) -> int | None:
        mode = WRITING if place is None else place.mode
        if mode == WRITING:
            mode = "ro" if has_wal else READING_ALONE  # which leaves nothing beside a foreign file
        with self._engine(mode).connect() as connection:
            version = self._version(connection)
        if version is not None:
            schema.check_version(version, self.location.shown)
        return version

    def _version(self, connection: Connection) -> int | None:
        """That of its tables; this is where SQLite opens the files."""
        try:
            return _patiently(lambda: schema.find_version(connection, self.location.shown))
        except SQLAlchemyError:
            self._files.drop_own_wal()
            raise

    def _make(self) -> None:
        def make(connection: Connection) -> None:
            if schema.find_version(connection, self.location.shown) is None:
                schema.make_tables(connection)

        self._change(make, "rwc", time.monotonic() + PATIENCE_TO_OPEN)

    def catch_up(self, deadline: float) -> None:
        """Bring older tables up to date."""

        def catch_up(connection: Connection) -> None:
            found = schema.find_version(connection, self.location.shown)
            if found is not None and found < schema.VERSION:
                schema.migrate(connection, found)

        self._change(catch_up, "rw", deadline)

    def _change(self, change: Callable[[Connection], None], mode: str, deadline: float) -> None:
        self._check_may_write()
        with self._engine(mode).connect() as connection:
            with self._files.opened_to_write():
                _patiently(lambda: _set_up(connection), deadline)
            self.begin(connection, "", deadline)
            change(connection)
            connection.exec_driver_sql("COMMIT")

    def connect(self, identity: Hashable) -> Connection:
        """A connection to a store that is there, in the way in which this user may open it."""
        shown = self.location.shown
        if not isinstance(identity, Place):
            raise UnavailableError(f"there is no store {shown}: make it ({HOW_TO_MAKE})")
        is_writer = identity.mode == WRITING
        connection = self._engine(identity.mode).connect()
        try:
            with self._files.opened_to_write() if is_writer else nullcontext():
                version = self._version(connection)
                if version is None:
                    raise UnavailableError(f"{shown} was emptied: restore it from a copy")
                schema.check_version(version, shown)
                if is_writer:
                    _patiently(lambda: _set_up(connection))
        except BaseException:
            connection.close()
            raise
        return connection

    def identity(self) -> Hashable:
        """Which file has the name now, and how this user may open it."""
        return self._files.place()

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Call, again where a reader met another one's recovery of the file after a crash."""
        return _patiently(call)

    def run(self, connection: Connection, text: str, values: Values = ()) -> list[Row]:
        """Let the driver run a statement; the rows that it gives."""
        return _driver(connection).execute(text, values).fetchall()

    def commit(self, connection: Connection, text: str = "", values: Values = ()) -> None:
        """Run a last statement, if there is one, and commit."""
        execute = _driver(connection).execute
        if text:
            execute(text, values)
        execute("COMMIT")

    def begin(
        self,
        connection: Connection,
        experiment: str,  # noqa: ARG002
        deadline: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Begin to write, alone in the file."""
        execute = _driver(connection).execute
        if time.monotonic() - self._burst_began < BURST:
            try:
                execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
        self._check_may_write()
        place = None
        try:
            place = self._queue.join(min(PATIENCE_IN_QUEUE, max(deadline - time.monotonic(), 0.0)))
            pauses = PAUSES_WITHOUT_QUEUE if place is None else PAUSES
            _patiently(lambda: execute("BEGIN IMMEDIATE"), deadline, pauses, _sparsely(meanwhile))
            self._burst_began = time.monotonic()
        finally:
            self._queue.leave(place)

    def _check_may_write(self) -> None:
        """Refuse before any file is made beside one that this user may only read."""
        if self._path.exists() and (why := self._files.hindrance()):
            raise PermissionError(why)

    def clean(self, connection: Connection, deadline: float) -> None:
        """Bring the pages without what was erased into the file, and empty the WAL.

        In the file SQLite overwrites what is deleted (secure_delete), also where it moves rows;
        the WAL holds pages as they were before.
        """
        execute = _driver(connection).execute

        def empty_the_wal() -> None:
            busy, _, _ = execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise _BusyError

        _patiently(empty_the_wal, deadline)

    def close(self) -> None:
        """Take the file of the queue away, where nobody is in it."""
        self._queue.remove()

    def _engine(self, mode: str) -> Engine:
        name = f"file:{quote(str(self._path))}?mode={mode}"
        return create_engine(
            "sqlite://",
            creator=lambda: sqlite3.connect(
                name, uri=True, timeout=0, check_same_thread=False, isolation_level=None
            ),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )


class _BusyError(Exception):
    """A checkpoint could not be completed for the readers there are."""


def _set_up(connection: Connection) -> None:
    for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        connection.exec_driver_sql(f"PRAGMA {setting}")


def _driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own: a busy file is met too often for SQLAlchemy to wrap each time."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _sparsely(call: Callable[[], None] | None) -> Callable[[], None] | None:
    """The same call, which does nothing where it was made a moment ago."""
    if call is None:
        return None
    ended = -inf

    def now_and_then() -> None:
        nonlocal ended
        if time.monotonic() - ended > MEANWHILE:
            call()
            ended = time.monotonic()

    return now_and_then


def _patiently(
    call: Callable[[], Result],
    deadline: float | None = None,
    pauses: tuple[float, float] = PAUSES_WITHOUT_QUEUE,
    meanwhile: Callable[[], None] | None = None,
) -> Result:
    """Call until the file is not busy; TimeoutError after the deadline."""
    if deadline is None:
        deadline = time.monotonic() + PATIENCE_TO_OPEN
    pause, longest = pauses
    while True:
        try:
            return call()
        except (sqlite3.OperationalError, DBAPIError, _BusyError) as error:
            if not (isinstance(error, _BusyError) or is_busy(error)):
                raise
        if time.monotonic() > deadline:
            raise TimeoutError
        if meanwhile is not None:
            meanwhile()
        time.sleep(pause * random.uniform(0.5, 1.5))
        pause = min(1.5 * pause, longest)
