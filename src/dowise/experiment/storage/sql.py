"""Journals in SQLite or PostgreSQL, over SQLAlchemy Core; the promises are in `contract`."""

from __future__ import annotations

import os
import random
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from time import monotonic, sleep
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.storage.contract import PATIENCE, Snapshot, check_next
from dowise.experiment.storage.engines import check_file, engine_of
from dowise.experiment.storage.location import Location
from dowise.experiment.storage.schema import VERSION, events, make_tables, snapshots, version_of
from dowise.experiment.storage.troubles import is_busy, saying_what_went_wrong

__all__ = ["SqlStorage"]

_NAP = (0.0003, 0.003)  # seconds between two looks whether others are done
_AFTER = (
    select(events)
    .where(events.c.experiment == bindparam("name"), events.c.number > bindparam("after"))
    .order_by(events.c.number)
)
_LAST = (
    select(events)
    .where(events.c.experiment == bindparam("name"))
    .order_by(events.c.number.desc())
    .limit(1)
)
_LAST_NUMBER = select(func.max(events.c.number)).where(events.c.experiment == bindparam("name"))
_APPEND = insert(events)
_COLUMNS = tuple(column.name for column in events.columns)


class SqlStorage:
    """A store in a SQLite file or a PostgreSQL database."""

    def __init__(self, location: Location, create: bool = False) -> None:
        self.location = location
        self._engine: Engine | None = None
        self._process = 0
        self._writer = Lock()  # threads of this process need not find out through the file
        if location.path is not None:
            check_file(location.path, create)
        with self._troubles(), self._connected() as connection:
            version = version_of(connection)
        if version is None and not create:
            raise DowiseError(f"{self} holds no experiment: make one with `dowise new`")
        if version != VERSION:
            with self.writing("") as writing:
                make_tables(writing.connection)
            if location.path is not None:
                self._to_wal()

    # -- reading ------------------------------------------------------------------------------

    def experiments(self) -> tuple[str, ...]:
        """The names of all experiments, sorted."""
        query = select(events.c.experiment).where(events.c.number == 1)
        with self._troubles(), self._connected() as connection:
            return tuple(sorted(connection.execute(query).scalars()))

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """The events with a number above `after` and up to `upto`, of these kinds, in order."""
        query = _AFTER
        if upto is not None:
            query = query.where(events.c.number <= upto)
        if kinds is not None:
            query = query.where(events.c.kind.in_(list(kinds)))
        with self._troubles(), self._connected() as connection:
            return _events(connection.execute(query, {"name": experiment, "after": after}))

    def last(self, experiment: str) -> Event | None:
        """The last event, or None where there is no such experiment."""
        with self._troubles(), self._connected() as connection:
            found = _events(connection.execute(_LAST, {"name": experiment}))
            return found[0] if found else None

    # -- writing ------------------------------------------------------------------------------

    @contextmanager
    def writing(self, experiment: str) -> Iterator[_Writing]:
        """Hold the experiment; commit at the end of the block."""
        if not self._writer.acquire(timeout=PATIENCE):
            raise DowiseError(self._too_long())
        try:
            with self._troubles(), self._connected() as connection:
                self._hold(connection, experiment)
                writing = _Writing(connection, experiment)
                try:
                    yield writing
                    connection.commit()
                except BaseException:
                    connection.rollback()
                    raise
                if writing.has_erased:
                    self._scrub(connection)
        finally:
            self._writer.release()

    def _hold(self, connection: Connection, experiment: str) -> None:
        """Wait until nobody else writes."""
        if self.location.path is None:
            key = int.from_bytes(sha256(experiment.encode()).digest()[:8], signed=True)
            connection.execute(text(f"SET LOCAL lock_timeout = '{PATIENCE}s'"))
            connection.execute(select(func.pg_advisory_xact_lock(key)))
            return
        end = monotonic() + PATIENCE
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except DBAPIError as error:
                connection.rollback()
                if not is_busy(error):
                    raise
                if monotonic() > end:
                    raise DowiseError(self._too_long()) from error
            sleep(random.uniform(*_NAP))

    def _too_long(self) -> str:
        return (
            f"{self}: somebody else has been writing for {PATIENCE} seconds, and nothing was "
            "written: try again"
        )

    def _scrub(self, connection: Connection) -> None:
        """Let nothing of what was erased stay in the files."""
        if self.location.path is None:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.execute(text("VACUUM FULL events"))
            return
        end = monotonic() + PATIENCE
        while True:
            busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
            connection.rollback()
            if not busy:
                return
            if monotonic() > end:
                raise DowiseError(
                    f"{self}: the erasure is recorded, but somebody has been reading all the time, "
                    "and what was erased is still in the file's -wal: close what reads the store, "
                    "and erase once more"
                )
            sleep(random.uniform(*_NAP))

    def _to_wal(self) -> None:
        """A log beside the file, so that readers and writers don't wait for each other."""
        with self._troubles(), self._connected() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    # -- snapshots ----------------------------------------------------------------------------

    def snapshot(self, experiment: str) -> Snapshot | None:
        """The newest snapshot, if there is one."""
        query = select(snapshots).where(snapshots.c.experiment == experiment)
        with self._troubles(), self._connected() as connection:
            row = connection.execute(query).first()
            return None if row is None else Snapshot(*row)

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it in place of older ones; where that can't be done, nothing happens."""
        own = snapshots.c.experiment == snapshot.experiment
        try:
            with self.writing(snapshot.experiment) as writing:
                writing.connection.execute(delete(snapshots).where(own))
                writing.connection.execute(insert(snapshots), snapshot._asdict())
        except DowiseError:
            return

    # -- the database -------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of files and connections."""
        if self._engine is not None:
            self._engine.dispose(close=self._process == os.getpid())
            self._engine = None

    def __str__(self) -> str:
        return str(self.location)

    def __repr__(self) -> str:
        return f"<SqlStorage {self}>"

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection of this process: a forked one must not use its parent's."""
        if self._engine is None or self._process != os.getpid():
            self.close()
            self._engine, self._process = engine_of(self.location), os.getpid()
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _troubles(self) -> Iterator[None]:
        with saying_what_went_wrong(str(self), self.location.password):
            yield


class _Writing:
    """What can be done while the experiment is held."""

    def __init__(self, connection: Connection, experiment: str) -> None:
        self.connection, self.has_erased = connection, False
        self._name = experiment
        self._last: int | None = None

    def read(self, after: int = 0) -> list[Event]:
        """All events with a larger number, in order."""
        rows = self.connection.execute(_AFTER, {"name": self._name, "after": after})
        found = _events(rows)
        if found:
            self._last = found[-1].number
        return found

    def append(self, new: Iterable[Event]) -> None:
        """Add the next events."""
        for event in new:
            check_next(event, self._last_number())
            self.connection.execute(_APPEND, _row(event))
            self._last = event.number

    def erase(self, numbers: Collection[int]) -> None:
        """Blank what these events say."""
        self.has_erased = True
        own = events.c.experiment == self._name
        for event in self.read():
            if event.number in numbers:
                blank = event.erased()
                where = update(events).where(own, events.c.number == event.number)
                self.connection.execute(where.values(salt=blank.salt, body=blank.body))
        self.connection.execute(delete(snapshots).where(snapshots.c.experiment == self._name))

    def _last_number(self) -> int:
        if self._last is None:
            found = self.connection.execute(_LAST_NUMBER, {"name": self._name}).scalar()
            self._last = int(found or 0)
        return self._last


def _events(rows: Iterable[Any]) -> list[Event]:
    return [Event(*row) for row in rows]


def _row(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in _COLUMNS}
