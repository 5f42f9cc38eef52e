"""A store in memory: the contract in its simplest form, for rehearsals and for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.storage.contract import Snapshot
from dowise.experiment.storage.memory_tokens import MemoryTokens
from dowise.experiment.storage.rules import (
    PATIENCE,
    check_alone,
    check_next,
    check_there,
    is_worth_keeping,
)

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """Journals that live as long as this object does; what is durable ends with the process."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.tokens = MemoryTokens()
        self._patience = patience
        self._journals: dict[str, list[Event]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._guard = threading.Lock()  # of the dictionaries, held for moments
        self._turns: dict[str, threading.Lock] = {}
        self._holders: set[int] = set()

    def experiments(self) -> tuple[str, ...]:
        """The names of all experiments, sorted."""
        with self._guard:
            return tuple(sorted(self._journals))

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """The events with a number above `after` and up to `upto`, of these kinds, in order."""
        with self._guard:
            journal = self._journals.get(experiment, [])[max(after, 0) : upto and max(upto, 0)]
        return journal if kinds is None else [event for event in journal if event.kind in kinds]

    def last(self, experiment: str) -> Event | None:
        """The last event, or None where there is no such experiment."""
        with self._guard:
            journal = self._journals.get(experiment)
            return journal[-1] if journal else None

    @contextmanager
    def writing(
        self,
        experiment: str,
        meanwhile: Callable[[], None] | None = None,  # noqa: ARG002
    ) -> Iterator[MemoryWriting]:
        """Hold the experiment; commit at the end of the block."""
        me = threading.get_ident()
        check_alone(experiment, me in self._holders)
        with self._guard:
            turn = self._turns.setdefault(experiment, threading.Lock())
        if not turn.acquire(timeout=self._patience):
            raise DowiseError(
                f"{self}: {experiment!r} can't be written: another thread has held it for "
                f"{self._patience:g} seconds; try again later"
            )
        self._holders.add(me)
        try:
            with self._guard:
                block = MemoryWriting(experiment, self._journals.get(experiment, []))
            try:
                yield block
                self._commit(block)
            finally:
                block.ended = True
        finally:
            self._holders.discard(me)
            turn.release()

    def _commit(self, block: MemoryWriting) -> None:
        with self._guard:
            if block.added:
                self._journals.setdefault(block.experiment, []).extend(block.added)
            for number, event in block.blanked.items():
                self._journals[block.experiment][number - 1] = event
            if block.erases:
                self._snapshots.pop(block.experiment, None)

    def snapshot(self, experiment: str) -> Snapshot | None:
        """The newest snapshot, if there is one."""
        with self._guard:
            return self._snapshots.get(experiment)

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it in place of older ones, unless it is out of date or none of this journal."""
        with self._guard:
            journal = self._journals.get(snapshot.experiment, [])
            there = self._snapshots.get(snapshot.experiment)
            if is_worth_keeping(snapshot, journal[max(snapshot.number - 1, 0) :], there):
                self._snapshots[snapshot.experiment] = snapshot

    def close(self) -> None:
        """Nothing to let go of: what was stored stays."""

    def __str__(self) -> str:
        return "a store in memory"


class MemoryWriting:
    """An experiment of a store in memory while nobody else can write to it."""

    def __init__(self, experiment: str, committed: list[Event]) -> None:
        self.experiment = experiment
        self.committed = committed
        self.added: list[Event] = []
        self.blanked: dict[int, Event] = {}
        self.erases = False
        self.ended = False

    def read(self, after: int = 0) -> list[Event]:
        """All events with a larger number, in order."""
        self._check_open()
        after = max(after, 0)
        found = self.committed[after:] + self.added[max(after - len(self.committed), 0) :]
        return [self.blanked.get(event.number, event) for event in found]

    def append(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        self._check_open()
        given = list(events)
        check_next(self.experiment, len(self.committed) + len(self.added), given)
        self.added += given

    def erase(self, numbers: Collection[int]) -> None:
        """Blank what these events say, and drop the experiment's snapshots."""
        self._check_open()
        there = self.read()
        check_there(self.experiment, numbers, range(1, len(there) + 1))
        self.blanked |= {number: there[number - 1].erased() for number in numbers}
        self.erases = True

    def _check_open(self) -> None:
        if self.ended:
            raise DowiseError("this writing block has ended: open another one")
