"""An experiment in tables while nobody else can write to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import Connection, bindparam, delete, insert, update

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.storage.database import Database
from dowise.experiment.storage.failures import plainly
from dowise.experiment.storage.rules import check_next, check_there, named
from dowise.experiment.storage.schema import events, snapshots
from dowise.experiment.storage.statements import APPEND, NEWEST, READ, SPAN, as_events

__all__ = ["SqlWriting"]

_OF_EXPERIMENT = events.c.experiment == bindparam("name")
_BLANK = (
    update(events)
    .where(_OF_EXPERIMENT, events.c.number == bindparam("which"))
    .values(salt=bindparam("new_salt"), body=bindparam("new_body"))
)
_APPEND_MANY = insert(events)
_DROP_SNAPSHOTS = delete(snapshots).where(snapshots.c.experiment == bindparam("name"))


class SqlWriting:
    """What happens here is committed at the end of the block, or not at all."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        experiment: str,
        is_ours: Callable[[], bool],
    ) -> None:
        self.connection = connection
        self.erases = False
        self.ended = False
        self._database = database
        self._location = database.location
        self._experiment = experiment
        self._named = named(experiment)
        self._is_ours = is_ours
        self._last: int | None = None
        self._failed = False
        self._unsent: Event | None = None

    def read(self, after: int = 0) -> list[Event]:
        """All events with a larger number, in order."""
        self._send()
        with self._at_work("read the store"):
            # From `after` itself on: if that is there, we know the newest without asking for it.
            given = {"name": self._experiment, "after": after - 1}
            found = as_events(READ.run(self._database, self.connection, given))
            if found:
                self._last = found[-1].number
            return [event for event in found if event.number > after]

    def append(self, events: Iterable[Event]) -> None:
        """Add the next events; the last one is sent when the block ends, which saves a journey."""
        fresh = list(events)
        with self._at_work(f"write to {self._named}"):
            if self._last is None:
                given = {"name": self._experiment}
                ((found,),) = NEWEST.run(self._database, self.connection, given)
                self._last = found or 0
            last = self._last
        check_next(self._experiment, last, fresh)
        if fresh:
            self._send()
            self._unsent = fresh.pop()
            self._last = self._unsent.number
            if fresh:
                with self._at_work(f"write to {self._named}"):
                    self.connection.execute(_APPEND_MANY, [event.row() for event in fresh])

    def _send(self) -> None:
        if self._unsent is not None:
            with self._at_work(f"write to {self._named}"):
                APPEND.run(self._database, self.connection, self._unsent.row())
                self._unsent = None

    def erase(self, numbers: Collection[int]) -> None:
        """Blank what these events say, and drop the experiment's snapshots."""
        self._send()
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
        with self._at_work(f"write to {self._named}"):
            if self._unsent is None:
                self._database.commit(self.connection)
            else:
                last = APPEND.spelled(self.connection, self._unsent.row())
                self._database.commit(self.connection, *last)

    def roll_back(self) -> bool:
        """Leave everything as it was before; False where the connection is of no more use."""
        if not self._is_ours():
            return False
        with suppress(DowiseError), plainly(self._location, "leave it as it was"):
            self._database.run(self.connection, "ROLLBACK")
            return not self._failed
        return False

    def _one(self, number: int) -> list[Event]:
        given = {"name": self._experiment, "after": number - 1, "upto": number}
        return as_events(SPAN.run(self._database, self.connection, given))

    @contextmanager
    def _at_work(self, doing: str) -> Iterator[None]:
        if self.ended or not self._is_ours():
            raise DowiseError(
                "this writing block has ended, or belongs to the process that forked this one: "
                "open another one"
            )
        if self._failed:
            raise DowiseError(
                f"{self._location.shown}: nothing was written to {self._named}, since the "
                "store failed inside of this block: do it again"
            )
        try:
            with plainly(self._location, doing):
                yield
        except BaseException:
            self._failed = True
            raise
