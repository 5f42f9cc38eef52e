"""Journals in tables: a SQLite file, or a PostgreSQL database, by SQLAlchemy Core."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, bindparam, delete, func, insert, select
from sqlalchemy.exc import DBAPIError

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.event import Event
from dowise.experiment.storage.contract import Snapshot
from dowise.experiment.storage.database import Database
from dowise.experiment.storage.failures import is_refused, plainly, too_long
from dowise.experiment.storage.lines import Lines, Loan
from dowise.experiment.storage.rules import (
    PATIENCE,
    TOKENS,
    check_alone,
    is_worth_keeping,
    named,
)
from dowise.experiment.storage.schema import events, snapshots
from dowise.experiment.storage.sql_tokens import SqlTokens
from dowise.experiment.storage.sql_writing import SqlWriting
from dowise.experiment.storage.statements import READ, SPAN, as_events

__all__ = ["SqlStorage"]

Result = TypeVar("Result")

_MOMENT = 1.0  # seconds
PATIENCE_FOR_SNAPSHOTS = 5.0  # seconds: a snapshot that is not kept costs some time later on

_OF_EXPERIMENT = events.c.experiment == bindparam("name")
_LAST = select(events).where(_OF_EXPERIMENT).order_by(events.c.number.desc()).limit(1)
_SNAPSHOT = select(snapshots).where(snapshots.c.experiment == bindparam("name"))
_NEXT_NAME = select(func.min(events.c.experiment)).where(events.c.experiment > bindparam("name"))


class SqlStorage:
    """A store in tables; `open_storage` makes one of a file name or a URL."""

    def __init__(self, database: Database, patience: float = PATIENCE) -> None:
        self._database = database
        self._location = database.location
        self._patience = patience
        self._lines = Lines(database.connect, database.most_idle)
        weakref.finalize(self, _close, self._lines, database)

    def experiments(self) -> tuple[str, ...]:
        """The names of all experiments, sorted."""

        def names(connection: Connection) -> list[str]:
            found: list[str] = []
            name = connection.execute(select(func.min(events.c.experiment))).scalar()
            while name is not None:
                found.append(name)
                name = connection.execute(_NEXT_NAME, {"name": name}).scalar()
            return found

        return tuple(sorted(self._ask(names)))

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """The events with a number above `after` and up to `upto`, of these kinds, in order."""
        given = {"name": experiment, "after": after}
        if upto is not None:
            given["upto"] = upto
        if kinds is None:
            hot = READ if upto is None else SPAN
            return self._ask(lambda c: as_events(hot.run(self._database, c, given)))
        wanted = select(events).where(
            _OF_EXPERIMENT, events.c.number > after, events.c.kind.in_(sorted(kinds))
        )
        if upto is not None:
            wanted = wanted.where(events.c.number <= upto)
        wanted = wanted.order_by(events.c.number)
        return self._ask(lambda c: _events(c.execute(wanted, given)))

    def last(self, experiment: str) -> Event | None:
        """The last event, or None where there is no such experiment."""
        found = self._ask(lambda c: _events(c.execute(_LAST, {"name": experiment})))
        return found[0] if found else None

    def snapshot(self, experiment: str) -> Snapshot | None:
        """The newest snapshot, if there is one."""
        return self._ask(lambda connection: _snapshot(connection, experiment))

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it in place of older ones, unless it is out of date or none of this journal."""
        name = snapshot.experiment
        patience = min(PATIENCE_FOR_SNAPSHOTS, self._patience)
        with (
            suppress(DowiseError),
            self._hold(name, patience) as block,
            plainly(self._location, "keep a snapshot"),
        ):
            there = _snapshot(block.connection, name)
            if is_worth_keeping(snapshot, block.read(snapshot.number - 1), there):
                gone = delete(snapshots).where(snapshots.c.experiment == bindparam("name"))
                block.connection.execute(gone, {"name": name})
                block.connection.execute(insert(snapshots), snapshot._asdict())

    @contextmanager
    def writing(
        self, experiment: str, meanwhile: Callable[[], None] | None = None
    ) -> Iterator[SqlWriting]:
        """Hold the experiment; commit at the end of the block."""
        with self._hold(experiment, self._patience, meanwhile) as block:
            yield block
        if block.erases:
            self._clean(experiment)

    @property
    def tokens(self) -> SqlTokens:
        """The tokens of those who use the store over HTTP."""
        return SqlTokens(self._database, self._ask, lambda: self._hold(TOKENS, self._patience))

    def close(self) -> None:
        """Let go of files and connections; whatever is asked afterwards opens them anew."""
        self._lines.close()
        self._database.close()

    def __str__(self) -> str:
        return self._location.shown

    def __repr__(self) -> str:
        return f"<SqlStorage {self}>"

    def _ask(self, work: Callable[[Connection], Result]) -> Result:
        """Read; once more where a connection turns out to be dead that was idle before."""
        try:
            with plainly(self._location, "read the store"):
                try:
                    return self._ask_once(work)
                except DBAPIError as error:
                    if not error.connection_invalidated:
                        raise
                    self._lines.close()
                return self._ask_once(work)
        except TimeoutError:
            raise UnavailableError(
                f"{self}: can't read the store: another program repairs or closes it all the time"
            ) from None

    def _ask_once(self, work: Callable[[Connection], Result]) -> Result:
        """Read; again where the place turns out to be another one by now (`SqliteFiles`).

        A writer may also have left and come back meanwhile, so that it is the same: what a user may
        not do is so for longer than a moment.
        """
        began = time.monotonic()
        while True:
            identity = self._database.identity()
            try:
                found = self._ask_at(identity, work)
            except Exception as error:
                is_another = self._database.identity() != identity
                if not is_another and not (
                    is_refused(error) and time.monotonic() < began + _MOMENT
                ):
                    raise
                time.sleep(0.001)
            else:
                if self._database.identity() == identity:
                    return found
            if time.monotonic() > began + self._patience:
                raise TimeoutError

    def _ask_at(self, identity: Hashable, work: Callable[[Connection], Result]) -> Result:
        loan = self._lines.take(identity)
        well = False
        try:
            found = self._database.patiently(lambda: work(loan.connection))
            well = True
        finally:
            self._lines.give_back(loan, well)
        return found

    @contextmanager
    def _hold(
        self, experiment: str, patience: float, meanwhile: Callable[[], None] | None = None
    ) -> Iterator[SqlWriting]:
        deadline = time.monotonic() + patience
        with self._turn(experiment, patience), self._line() as line:
            try:
                with plainly(self._location, f"write to {named(experiment)}"):
                    self._begin(line, experiment, deadline, meanwhile)
            except TimeoutError:
                raise too_long(self._location, experiment, patience) from None
            assert line.loan is not None
            loan, lines = line.loan, self._lines
            block = SqlWriting(
                self._database, loan.connection, experiment, lambda: loan.process is lines.process
            )
            try:
                yield block
                block.commit()
            except BaseException:
                line.well = block.roll_back()
                raise
            finally:
                block.ended = True
            line.well = True

    @contextmanager
    def _line(self) -> Iterator[_Line]:
        """A connection, given back in any case: also if one is stopped while it begins to write."""
        line = _Line()
        try:
            yield line
        finally:
            if line.loan is not None:
                self._lines.give_back(line.loan, line.well)

    @contextmanager
    def _turn(self, experiment: str, patience: float) -> Iterator[None]:
        """One thread of this process at a time, where the database lets in only one writer."""
        lines, one_writer = self._lines, self._database.one_writer
        me = (threading.get_ident(), "" if one_writer else experiment)
        check_alone(experiment, me in lines.holders)
        turn, holders = lines.turn, lines.holders
        try:
            if one_writer and not turn.acquire(timeout=patience):
                raise too_long(self._location, experiment, patience)
            holders.add(me)
            yield
        finally:
            holders.discard(me)
            with suppress(RuntimeError):  # it was not ours
                turn.release()

    def _begin(
        self,
        line: _Line,
        experiment: str,
        deadline: float,
        meanwhile: Callable[[], None] | None,
    ) -> None:
        """See that nobody else can write; on a new connection where an idle one was dead."""
        begin = self._database.begin
        line.loan = self._lines.take(self._database.identity())
        try:
            begin(line.loan.connection, experiment, deadline, meanwhile)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            self._lines.give_back(line.loan, well=False)
            line.loan = None
            self._lines.close()
            line.loan = self._lines.take(self._database.identity())
            begin(line.loan.connection, experiment, deadline, meanwhile)

    def _clean(self, experiment: str) -> None:
        """What was erased is committed; now its old copies, while others may write again."""
        deadline = time.monotonic() + self._patience
        try:
            with plainly(self._location, "clean the store"), self._line() as line:
                line.loan = self._lines.take(self._database.identity())
                self._database.clean(line.loan.connection, deadline)
                line.well = True
            return
        except TimeoutError:
            reason = "somebody reads or writes it all the time"
        except DowiseError as error:
            reason = str(error)
        raise UnavailableError(
            f"{self}: the erasure in {experiment!r} is recorded, but old copies of what was erased "
            f"remain in the store's files ({reason}): once that is over, erase the same again"
        )


class _Line:
    """A connection in use; `well` says whether it can be used again."""

    def __init__(self) -> None:
        self.loan: Loan | None = None
        self.well = False


def _snapshot(connection: Connection, experiment: str) -> Snapshot | None:
    row = connection.execute(_SNAPSHOT, {"name": experiment}).first()
    return None if row is None else Snapshot(row.experiment, row.number, row.hash, bytes(row.body))


def _events(result: CursorResult[Any]) -> list[Event]:
    return as_events([tuple(row) for row in result])


def _close(lines: Lines, database: Database) -> None:
    lines.close()
    database.close()
