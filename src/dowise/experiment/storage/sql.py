"""Journals in SQL tables through SQLAlchemy Core: the parts that SQLite and PostgreSQL share.

Connections come from SQLAlchemy's pool and are in autocommit mode, except between `begin` and
`commit`. A forked child gets a new pool and does not even close its parent's connections: closing
a SQLite file there could remove files that the parent needs.

`MIGRATIONS[v]` migrates the tables of version v to version v + 1. When a store is opened, all
missing steps run in one transaction that excludes other writers. If they can't run, for example
because the user may only read the store, tables from version `OLDEST_USABLE` on are used as they
are. Version 2 added the tokens of the web app.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    CursorResult,
    Engine,
    Executable,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.sql.expression import ClauseElement

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.event import DamagedEventError, Event
from dowise.experiment.storage.base import (
    TIMEOUT,
    Snapshot,
    check_exist,
    check_next,
    check_not_nested,
    should_keep,
)
from dowise.experiment.storage.url import Location

Result = TypeVar("Result")
Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
DATABASE_ERRORS = (SQLAlchemyError, sqlite3.Error, OSError, UnicodeError, OverflowError)

VERSION = 2
MAX_NUMBER = 2**63 - 1  # the largest BIGINT
OLDEST_USABLE = 1  # the tables of journals are the same from this version on
UPGRADE_TIMEOUT = 2.0  # seconds, if the older tables are usable: the next to open may upgrade them
SNAPSHOT_TIMEOUT = 5.0  # seconds: without a snapshot, opening the experiment takes longer
FORK_TIMEOUT = 10.0  # seconds
REFUSAL_TIMEOUT = 1.0  # seconds: a refusal that lasts longer is not caused by other writers

# -- tables -----------------------------------------------------------------------------------

_METADATA = MetaData()


def _text_column(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


events = Table(
    "events",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *map(_text_column, ("kind", "at", "actor", "salt", "body", "hash")),
)
snapshots = Table(
    "snapshots",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
    _text_column("hash"),
    Column("body", LargeBinary, nullable=False),
)
tokens = Table(
    "tokens",
    _METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", Text, nullable=False, unique=True),
    *map(_text_column, ("kind", "role", "name")),
    Column("parent", BigInteger),
    _text_column("made_at"),
    Column("ends_at", Text),
    Column("ended_at", Text),
)
schema = Table("dowise_schema", _METADATA, Column("version", Integer, nullable=False))


def _add_tokens(connection: Connection) -> None:
    # In plain SQL, since a step must not depend on the current definition of the tables.
    connection.exec_driver_sql(
        "CREATE TABLE tokens (id BIGINT NOT NULL, hash TEXT NOT NULL, kind TEXT NOT NULL, "
        "role TEXT NOT NULL, name TEXT NOT NULL, parent BIGINT, made_at TEXT NOT NULL, "
        "ends_at TEXT, ended_at TEXT, PRIMARY KEY (id), UNIQUE (hash))"
    )


MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {1: _add_tokens}


def find_version(connection: Connection, shown: str) -> int | None:
    """Return the version of the store's tables, or None if there are none.

    Raises `DowiseError` for the tables of another program or of a newer dowise.
    """
    names = set(inspect(connection).get_table_names())
    if schema.name in names:
        versions = connection.execute(select(schema.c.version)).scalars().all()
        if len(versions) != 1 or type(versions[0]) is not int or versions[0] < 1:
            raise DowiseError(
                f"{shown} is damaged: its version is missing or invalid; restore it from a copy",
                code="invalid-store",
            )
        if versions[0] > VERSION:
            raise DowiseError(
                f"{shown} was written by a newer dowise (schema {versions[0]}, but this version "
                f"supports {VERSION}): pip install --upgrade dowise",
                code="other-version",
            )
        return int(versions[0])
    foreign = names if connection.dialect.name == "sqlite" else names & set(_METADATA.tables)
    if foreign:
        raise DowiseError(
            f"{shown} is not a store of dowise: it contains other tables "
            f"({', '.join(sorted(foreign)[:3])}); use another file or database",
            code="invalid-store",
        )
    return None


def create_tables(connection: Connection, shown: str) -> None:
    """Create the tables, unless they exist, inside the caller's transaction."""
    if find_version(connection, shown) is None:
        _METADATA.create_all(connection, checkfirst=False)
        connection.execute(insert(schema).values(version=VERSION))


def upgrade_tables(connection: Connection, shown: str) -> None:
    """Migrate older tables to the current version, inside the caller's transaction."""
    version = find_version(connection, shown)
    if version is not None and version < VERSION:
        for step in range(version, VERSION):
            MIGRATIONS[step](connection)
        connection.execute(update(schema).values(version=VERSION))


# -- statements -------------------------------------------------------------------------------


class Statement:
    """A frequent statement, compiled once per dialect and run by the driver.

    SQLAlchemy takes longer to prepare a statement than SQLite takes to run it.
    """

    def __init__(self, clause: Executable) -> None:
        assert isinstance(clause, ClauseElement)
        self._clause = clause
        self._compiled: dict[str, tuple[str, Sequence[str] | None]] = {}

    def bind(self, connection: Connection, values: Mapping[str, Any]) -> tuple[str, Values]:
        """Return the text for the connection's dialect, and the values for its driver."""
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            compiled: Any = self._clause.compile(dialect=dialect)
            order = compiled.positiontup if compiled.positional else None
            self._compiled[dialect.name] = str(compiled), order
        text, order = self._compiled[dialect.name]
        return text, values if order is None else [values[name] for name in order]


_OF_EXPERIMENT = events.c.experiment == bindparam("name")
_AFTER = events.c.number > bindparam("after")
_EVENTS = (
    select(events)
    .where(_OF_EXPERIMENT, _AFTER, events.c.number <= bindparam("upto"))
    .order_by(events.c.number)
)
_READ = Statement(_EVENTS)
_LAST_NUMBER = Statement(select(func.max(events.c.number)).where(_OF_EXPERIMENT))
_APPEND = Statement(insert(events))
_LAST = select(events).where(_OF_EXPERIMENT).order_by(events.c.number.desc()).limit(1)
_NEXT_NAME = select(func.min(events.c.experiment)).where(events.c.experiment > bindparam("name"))
_SNAPSHOT = select(snapshots).where(snapshots.c.experiment == bindparam("name"))
_DROP_SNAPSHOTS = Statement(delete(snapshots).where(snapshots.c.experiment == bindparam("name")))
_ERASE = Statement(
    update(events)
    .where(_OF_EXPERIMENT, events.c.number == bindparam("erased"))
    .values(salt=bindparam("new_salt"), body=bindparam("new_body"))
)


def _to_events(rows: Iterable[Row]) -> list[Event]:
    result = []
    for row in rows:  # SQLite accepts values of any type in any column
        if type(row[1]) is not int or {*map(type, row)} != {int, str}:
            raise DamagedEventError(f"event {row[1]} of {row[0]} can't be read: run an audit")
        result.append(Event(*row))
    return result


def _read_events(result: CursorResult[Any]) -> list[Event]:
    return _to_events(tuple(row) for row in result)


def _read_snapshot(connection: Connection, experiment: str) -> Snapshot | None:
    row = connection.execute(_SNAPSHOT, {"name": experiment}).first()
    return None if row is None else Snapshot(row.experiment, row.number, row.hash, bytes(row.body))


# -- storage ----------------------------------------------------------------------------------


class SqlStorage(ABC):
    """Store in SQL tables. `open_storage` opens one from a file name or a URL.

    Subclasses for SQLite and PostgreSQL implement the abstract methods.
    """

    single_writer: bool
    """True if the database admits only one writer, whatever the experiment."""

    def __init__(self, location: Location, engine: Engine, timeout: float = TIMEOUT) -> None:
        self.location = location
        self._engine = engine
        self._timeout = timeout
        self._reset_locks()
        _ALL.add(self)
        weakref.finalize(self, engine.dispose)  # works only if the engine does not refer to self

    def _reset_locks(self) -> None:
        self._write_lock = threading.RLock()  # unlike a Lock, only its owner can release it
        self._holders: set[tuple[int, str]] = set()

    @abstractmethod
    def tables_version(self, create: bool) -> int:
        """Return the version of the tables; create them if requested, else raise if missing."""

    @abstractmethod
    def upgrade(self, deadline: float) -> None:
        """Migrate older tables. Raises TimeoutError after the deadline (by `time.monotonic`)."""

    @abstractmethod
    def set_up(self, connection: Connection) -> None:
        """Check and configure a new connection."""

    def identity(self) -> Hashable:
        """Return a value that changes if the location has another store or mode of access."""
        return None

    def retry_busy(self, call: Callable[[], Result]) -> Result:
        """Call, and repeat the call while the database is briefly busy."""
        return call()

    @abstractmethod
    def run(self, connection: Connection, text: str, values: Values = ()) -> list[Row]:
        """Run a statement with the driver, and return its rows."""

    @abstractmethod
    def commit(self, connection: Connection, text: str = "", values: Values = ()) -> None:
        """Run a last statement, if any, and commit."""

    @abstractmethod
    def begin(
        self,
        connection: Connection,
        experiment: str,
        deadline: float,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        """Begin a transaction that excludes other writers of the experiment.

        Raises TimeoutError after the deadline (by `time.monotonic`).
        """

    @abstractmethod
    def clean(self, connection: Connection, deadline: float) -> None:
        """Discard old copies of what was erased, after the erasure was committed."""

    @abstractmethod
    def explain(self, error: BaseException) -> str | None:
        """Return a readable message for an error of the driver, if it is a known one."""

    def is_refused(self, error: BaseException) -> bool:  # noqa: ARG002
        """Return True if the user may not open the store, or not in this mode."""
        return False

    # -- opening and closing --------------------------------------------------------------------

    def prepare(self, create: bool) -> None:
        """Check, create or upgrade the tables.

        If usable older tables can't be upgraded, because the user may only read the store or
        another program is writing, they are used as they are.
        """
        with self.translate_errors_of_change("open the store"):
            version = self.tables_version(create)
            if version >= VERSION:
                return
            is_usable = version >= OLDEST_USABLE
            try:
                self.upgrade(time.monotonic() + (UPGRADE_TIMEOUT if is_usable else TIMEOUT))
            except (SQLAlchemyError, sqlite3.Error, PermissionError, TimeoutError):
                if not is_usable:
                    raise

    def close(self) -> None:
        """Close files and connections; later calls open them again."""
        self._engine.dispose()

    def __str__(self) -> str:
        return self.location.shown

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def _reset_after_fork(self) -> None:
        _ABANDONED.append(self._engine.pool)
        self._engine.dispose(close=False)
        self._reset_locks()

    # -- reading --------------------------------------------------------------------------------

    def experiments(self) -> tuple[str, ...]:
        """Return the names of all experiments, sorted."""

        def read_names(connection: Connection) -> list[str]:
            # One lookup in the index per name: DISTINCT would read every event.
            names: list[str] = []
            name = connection.execute(select(func.min(events.c.experiment))).scalar()
            while name is not None:
                names.append(name)
                name = connection.execute(_NEXT_NAME, {"name": name}).scalar()
            return names

        return tuple(sorted(self.query(read_names)))

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """Return the events above `after` and up to `upto`, of these kinds, in order."""
        upto = MAX_NUMBER if upto is None else upto
        values = {"name": experiment, "after": after, "upto": upto}
        if kinds is None:
            return self.query(lambda c: _to_events(self.run_statement(c, _READ, values)))
        of_kinds = _EVENTS.where(events.c.kind.in_(sorted(kinds)))
        return self.query(lambda c: _read_events(c.execute(of_kinds, values)))

    def last(self, experiment: str) -> Event | None:
        """Return the last event, or None if the experiment does not exist."""
        rows = self.query(lambda c: _read_events(c.execute(_LAST, {"name": experiment})))
        return rows[0] if rows else None

    def snapshot(self, experiment: str) -> Snapshot | None:
        """Return the newest snapshot, if any."""
        return self.query(lambda connection: _read_snapshot(connection, experiment))

    def run_statement(
        self, connection: Connection, statement: Statement, values: Mapping[str, Any]
    ) -> list[Row]:
        """Run a frequent statement, and return its rows as plain tuples."""
        return self.run(connection, *statement.bind(connection, values))

    def query(self, work: Callable[[Connection], Result]) -> Result:
        """Call `work` with a connection, and once more if an idle connection was lost."""
        try:
            try:
                return self._query(work)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                self._engine.dispose()
            return self._query(work)
        except TimeoutError:
            raise UnavailableError(
                f"{self}: can't read the store: another program is repairing or closing it; try "
                "again later",
                code="store-busy",
            ) from None
        except DATABASE_ERRORS as error:
            raise self.translated(error, "read the store") from None

    def _query(self, work: Callable[[Connection], Result]) -> Result:
        """Call `work`, and repeat it if the store was replaced meanwhile (see `sqlite.Place`).

        A writer may have closed the store and opened it again, so that its identity is the same:
        so a refusal is repeated for a while too.
        """
        start = time.monotonic()
        while True:
            identity = self.identity()
            lease = _Lease(self)
            try:
                try:
                    result = self.retry_busy(partial(work, lease.take()))
                    lease.reusable = True
                finally:
                    lease.release()
            except Exception as error:
                may_pass = self.is_refused(error) and time.monotonic() < start + REFUSAL_TIMEOUT
                if self.identity() == identity and not may_pass:
                    raise
                time.sleep(0.001)
            else:
                if self.identity() == identity:
                    return result
            if time.monotonic() > start + self._timeout:
                raise TimeoutError

    # -- writing --------------------------------------------------------------------------------

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Replace older snapshots, unless the snapshot is outdated or of another journal."""
        name, timeout = snapshot.experiment, min(SNAPSHOT_TIMEOUT, self._timeout)
        with (
            suppress(DowiseError),
            self.transaction(name, timeout=timeout) as block,
            self.translate_errors("save a snapshot"),
        ):
            stored = _read_snapshot(block.connection, name)
            if should_keep(snapshot, block.read(snapshot.number - 1), stored):
                self.run_statement(block.connection, _DROP_SNAPSHOTS, {"name": name})
                block.connection.execute(insert(snapshots), snapshot._asdict())

    @contextmanager
    def transaction(
        self,
        experiment: str,
        on_wait: Callable[[], None] | None = None,
        *,
        label: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[SqlTransaction]:
        """Open a transaction on the experiment; commit at the end of the block.

        An empty name is used for changes outside of journals: to the tables themselves and to
        tokens; `label` describes it in messages. If the database admits only one writer, only one
        thread of this process at a time tries to be it.
        """
        label = repr(experiment) if label is None else label
        timeout = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout
        write_lock, holders = self._write_lock, self._holders
        holder = (threading.get_ident(), "" if self.single_writer else experiment)
        check_not_nested(label, holder in holders)
        lease = _Lease(self)
        try:
            if self.single_writer and not write_lock.acquire(timeout=timeout):
                raise self._busy(label, timeout)
            holders.add(holder)
            try:
                connection = self._begin(lease, experiment, label, deadline, on_wait)
            except TimeoutError:
                raise self._busy(label, timeout) from None
            block = SqlTransaction(self, connection, experiment, label)
            try:
                yield block
                block.commit()
            except BaseException:
                lease.reusable = block.roll_back()
                raise
            finally:
                block.ended = True
            lease.reusable = True
        finally:
            try:
                lease.release()
            finally:
                holders.discard(holder)
                with suppress(RuntimeError):  # not acquired
                    write_lock.release()
        if block.erases:
            self._clean(experiment)

    def _begin(
        self,
        lease: _Lease,
        experiment: str,
        label: str,
        deadline: float,
        on_wait: Callable[[], None] | None,
    ) -> Connection:
        """Begin a transaction, with another connection if an idle one was lost."""
        try:
            try:
                self.begin(lease.take(), experiment, deadline, on_wait)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                lease.release()
                self._engine.dispose()
                self.begin(lease.take(), experiment, deadline, on_wait)
        except TimeoutError:
            raise
        except DATABASE_ERRORS as error:
            raise self.translated(error, f"write to {label}") from None
        assert lease.connection is not None
        return lease.connection

    def _clean(self, experiment: str) -> None:
        """Discard old copies of what was erased; other writers need not wait for that."""
        lease = _Lease(self)
        try:
            with self.translate_errors("clean the store"):
                self.clean(lease.take(), time.monotonic() + self._timeout)
                lease.reusable = True
            return
        except TimeoutError:
            reason = "other programs keep reading or writing it"
        except DowiseError as error:
            reason = str(error)
        finally:
            lease.release()
        raise UnavailableError(
            f"{self}: the erasure in {experiment!r} is recorded, but old copies of what was erased "
            f"remain in the store's files ({reason}): erase the same decision again later",
            code="erasure-incomplete",
        )

    # -- errors ---------------------------------------------------------------------------------

    @contextmanager
    def translate_errors(self, action: str) -> Iterator[None]:
        """Translate database errors, except TimeoutError, into readable `DowiseError`s."""
        try:
            yield
        except TimeoutError:
            raise
        except DATABASE_ERRORS as error:
            raise self.translated(error, action) from None

    def translated(self, error: Exception, action: str) -> UnavailableError:
        """Return a readable error without credentials.

        The error of the driver must not be chained to it, since it may contain the URL.
        """
        return UnavailableError(f"{self}: can't {action}: {self._reason(error)}")

    @contextmanager
    def translate_errors_of_change(self, action: str) -> Iterator[None]:
        """Translate errors, and timeouts, of changes to the tables themselves."""
        try:
            with self.translate_errors(action):
                yield
        except TimeoutError:
            raise UnavailableError(
                f"{self}: can't {action}: another program has locked it for a minute; end that "
                "program, or try again later",
                code="store-busy",
            ) from None

    def _reason(self, error: Exception) -> str:
        root = driver_error(error)
        if (reason := self.explain(root)) is not None:
            return reason
        if getattr(error, "connection_invalidated", False):
            return (
                "the connection was lost: check that the server is running, and whether the last "
                "change was stored, then try again"
            )
        message = " ".join(str(getattr(root, "strerror", None) or root).split())
        is_safe = message and self.location.is_discreet(message)
        reason = message if is_safe else type(root).__name__
        if "connect" in message and self.location.url is not None:
            reason += " (check that the server is running, and host, user and password)"
        return reason

    def _busy(self, label: str, timeout: float) -> DowiseError:
        return UnavailableError(
            f"{self}: {label} can't be written: another program or thread has locked it for "
            f"{timeout:g} seconds; end that one, or try again later",
            code="store-busy",
        )


def driver_error(error: BaseException) -> BaseException:
    """Return the driver's error inside an error of SQLAlchemy."""
    root = getattr(error, "orig", None)
    return root if isinstance(root, BaseException) else error


@dataclass
class SqlTransaction:
    """Open write transaction in SQL tables; committed at the end of the block, or not at all."""

    _storage: SqlStorage
    connection: Connection
    _experiment: str
    _label: str
    erases: bool = False
    ended: bool = False
    _process: int = field(default_factory=os.getpid)
    _last: int | None = None  # number of the last event, if it is known
    _failed: bool = False
    _unsent: Event | None = None

    def read(self, after: int = 0) -> list[Event]:
        """Return all events with a number above `after`, in order."""
        if self._unsent is not None:
            self._send()
        # Read `after` itself too: if it exists, the last number is known without another query.
        bounds = {"after": after - 1, "upto": MAX_NUMBER}
        rows = self._run("read the store", _READ, name=self._experiment, **bounds)
        result = _to_events(rows)
        if result:
            self._last = result[-1].number
        return [event for event in result if event.number > after]

    def append(self, events: Iterable[Event]) -> None:
        """Add the next events; the last one is sent with the commit, to save a round trip."""
        added = list(events)
        if self._last is None:
            ((number,),) = self._run(f"write to {self._label}", _LAST_NUMBER, name=self._experiment)
            self._last = number or 0
        else:
            self._check_usable()
        check_next(self._experiment, self._last, added)
        for event in added:
            if self._unsent is not None:
                self._send()
            self._unsent, self._last = event, event.number

    def _send(self) -> None:
        assert self._unsent is not None
        self._run(f"write to {self._label}", _APPEND, **self._unsent.row())
        self._unsent = None

    def erase(self, numbers: Collection[int]) -> None:
        """Replace these events with erased ones, and drop the experiment's snapshots."""
        if self._unsent is not None:
            self._send()
        action, name = f"erase in {self._label}", self._experiment
        erased = [
            event.erased()
            for number in sorted(set(numbers))
            for event in _to_events(
                self._run(action, _READ, name=name, after=number - 1, upto=number)
            )
        ]
        check_exist(name, numbers, [event.number for event in erased])
        for event in erased:
            new = {"new_salt": event.salt, "new_body": event.body, "erased": event.number}
            self._run(action, _ERASE, name=name, **new)
        self._run(action, _DROP_SNAPSHOTS, name=name)
        self.erases = True

    def commit(self) -> None:
        """Commit, unless a statement failed and the caller ignored the error."""
        self._check_usable()
        try:
            last: tuple[Any, ...] = ()
            if self._unsent is not None:
                last = _APPEND.bind(self.connection, self._unsent.row())
            self._storage.commit(self.connection, *last)
        except BaseException as error:
            raise self._failure(error, f"write to {self._label}") from None

    def roll_back(self) -> bool:
        """Undo everything; return True if the connection can be used again."""
        if self._process != os.getpid():
            return False
        with suppress(DowiseError), self._storage.translate_errors("roll back"):
            self._storage.run(self.connection, "ROLLBACK")
            return not self._failed
        return False

    def _run(self, action: str, statement: Statement, **values: Any) -> list[Row]:
        self._check_usable()
        try:
            return self._storage.run(self.connection, *statement.bind(self.connection, values))
        except BaseException as error:
            raise self._failure(error, action) from None

    def _check_usable(self) -> None:
        """Raise if the transaction can't be used any more."""
        if self.ended or self._process != os.getpid():
            raise DowiseError(
                "this transaction has ended, or belongs to the parent process: open another one",
                code="transaction-ended",
            )
        if self._failed:
            raise DowiseError(
                f"{self._storage}: nothing was written to {self._label}, since the store failed in "
                "this transaction: try again",
                code="transaction-failed",
            )

    def _failure(self, error: BaseException, action: str) -> BaseException:
        """Mark the transaction as failed, and return the error to raise."""
        self._failed = True
        if isinstance(error, DATABASE_ERRORS) and not isinstance(error, TimeoutError):
            return self._storage.translated(error, action)
        return error


# -- connections and forks --------------------------------------------------------------------

_ALL: weakref.WeakSet[SqlStorage] = weakref.WeakSet()
_ABANDONED: list[object] = []  # the parent's connections, which a forked child must not close
_LOCKED_FOR_FORK: list[threading.RLock] = []


@dataclass
class _Lease:
    """Connection of the pool, which is returned in any case, even after Ctrl-C during `take`.

    It is closed unless it is marked as `reusable`.
    """

    _storage: SqlStorage
    connection: Connection | None = None
    reusable: bool = False
    _process: int = field(default_factory=os.getpid)
    _pool: object = None

    def take(self) -> Connection:
        """Check a connection out, and set it up if it is new."""
        engine = self._storage._engine
        self._pool = engine.pool
        connection = self.connection = engine.connect()
        if "is_set_up" not in connection.info:
            self._storage.set_up(connection)
            connection.info["is_set_up"] = True
        return connection

    def release(self) -> None:
        """Return the connection to the pool, or close it if it can't be used again."""
        connection, self.connection = self.connection, None
        if connection is None:
            return
        if self._process != os.getpid():
            _ABANDONED.append(connection)
            return
        with suppress(SQLAlchemyError):
            if not self.reusable or self._pool is not self._storage._engine.pool:
                connection.invalidate()  # if it is broken, or the store was closed meanwhile
            connection.close()


def _before_fork() -> None:
    """Wait for writers, since a child would inherit the locks of other threads in SQLite."""
    locks = [storage._write_lock for storage in list(_ALL)]
    _LOCKED_FOR_FORK.extend(lock for lock in locks if lock.acquire(timeout=FORK_TIMEOUT))


def _after_fork_in_parent() -> None:
    while _LOCKED_FOR_FORK:
        _LOCKED_FOR_FORK.pop().release()


def _after_fork_in_child() -> None:
    _LOCKED_FOR_FORK.clear()
    for storage in list(_ALL):
        storage._reset_after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
