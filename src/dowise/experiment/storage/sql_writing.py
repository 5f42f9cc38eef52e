"""An experiment in tables while nobody else can write to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, CursorResult, bindparam, delete, func, insert, select, update

from dowise.errors import DowiseError
from dowise.experiment.event import DamagedEventError, Event
from dowise.experiment.storage.failures import plainly
from dowise.experiment.storage.location import Location
from dowise.experiment.storage.rules import check_next, check_there
from dowise.experiment.storage.schema import events, snapshots

__all__ = ["SqlWriting", "as_events"]

_COLUMNS = tuple(column.name for column in events.columns)
_OF_EXPERIMENT = events.c.experiment == bindparam("name")
_READ = (
    select(events)
    .where(_OF_EXPERIMENT, events.c.number > bindparam("after"))
    .order_by(events.c.number)
)
_ONE = select(events).where(_OF_EXPERIMENT, events.c.number == bindparam("which"))
_COUNT = select(func.coalesce(func.max(events.c.number), 0)).where(_OF_EXPERIMENT)
_APPEND = insert(events)
_BLANK = (
    update(events)
    .where(_OF_EXPERIMENT, events.c.number == bindparam("which"))
    .values(salt=bindparam("new_salt"), body=bindparam("new_body"))
)
_DROP_SNAPSHOTS = delete(snapshots).where(snapshots.c.experiment == bindparam("name"))


def as_events(result: CursorResult[Any]) -> list[Event]:
    """The rows of a query for whole events."""
    cursor = result.cursor
    rows = [] if cursor is None else cursor.fetchall()  # plain tuples: 100,000 of them come often
    result.close()
    for row in rows:  # SQLite would hold anything in any column
        if type(row[1]) is not int or {*map(type, row)} != {int, str}:
            raise DamagedEventError(f"an event of {row[0]} can't be read: run an audit")
    return [Event(*row) for row in rows]


class SqlWriting:
    """What happens here is committed at the end of the block, or not at all."""

    def __init__(
        self,
        connection: Connection,
        location: Location,
        experiment: str,
        is_ours: Callable[[], bool],
    ) -> None:
        self.connection = connection
        self.erases = False
        self.ended = False
        self._location = location
        self._experiment = experiment
        self._is_ours = is_ours
        self._last: int | None = None
        self._failed = False

    def read(self, after: int = 0) -> list[Event]:
        """All events with a larger number, in order."""
        with self._at_work("read the store"):
            given = {"name": self._experiment, "after": after}
            found = as_events(self.connection.execute(_READ, given))
            if found:
                self._last = found[-1].number
            return found

    def append(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        given = list(events)
        with self._at_work(f"write to {self._experiment!r}"):
            if self._last is None:
                self._last = self.connection.execute(_COUNT, {"name": self._experiment}).scalar()
            last = self._last or 0
        check_next(self._experiment, last, given)
        if given:
            with self._at_work(f"write to {self._experiment!r}"):
                rows = [{name: getattr(event, name) for name in _COLUMNS} for event in given]
                self.connection.execute(_APPEND, rows if len(rows) > 1 else rows[0])
                self._last = last + len(given)

    def erase(self, numbers: Collection[int]) -> None:
        """Blank what these events say, and drop the experiment's snapshots."""
        with self._at_work(f"erase in {self._experiment!r}"):
            found = [event for number in sorted(set(numbers)) for event in self._one(number)]
        check_there(self._experiment, numbers, [event.number for event in found])
        with self._at_work(f"erase in {self._experiment!r}"):
            for event in map(Event.erased, found):
                given = {"new_salt": event.salt, "new_body": event.body, "which": event.number}
                self.connection.execute(_BLANK, given | {"name": self._experiment})
            self.connection.execute(_DROP_SNAPSHOTS, {"name": self._experiment})
            self.erases = True

    def commit(self) -> None:
        """Make it last; refuse where something in the block went wrong and was passed over."""
        if self._failed:
            raise DowiseError(
                f"{self._location.shown}: nothing was written to {self._experiment!r}, since the "
                "store failed inside of this block: do it again"
            )
        with self._at_work(f"write to {self._experiment!r}"):
            self.connection.exec_driver_sql("COMMIT")

    def roll_back(self) -> bool:
        """Leave everything as it was before; False where the connection is of no more use."""
        if not self._is_ours():
            return False
        with suppress(DowiseError), plainly(self._location, "leave it as it was"):
            self.connection.exec_driver_sql("ROLLBACK")
            return not self._failed
        return False

    def _one(self, number: int) -> list[Event]:
        given = {"name": self._experiment, "which": number}
        return as_events(self.connection.execute(_ONE, given))

    @contextmanager
    def _at_work(self, doing: str) -> Iterator[None]:
        if self.ended or not self._is_ours():
            raise DowiseError(
                "this writing block has ended, or belongs to the process that forked this one: "
                "open another one"
            )
        try:
            with plainly(self._location, doing):
                yield
        except BaseException:
            self._failed = True
            raise
