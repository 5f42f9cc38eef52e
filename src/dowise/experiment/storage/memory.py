"""In-memory store: the simplest implementation of the contract, for rehearsals and tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.event import Event
from dowise.experiment.storage.base import (
    TIMEOUT,
    Snapshot,
    check_exist,
    check_next,
    check_not_nested,
    should_keep,
)


class MemoryStorage:
    """Store in memory: its journals exist as long as the object."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._journals: dict[str, list[Event]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._guard = threading.Lock()  # for the dictionaries, held briefly
        self._write_locks: dict[str, threading.Lock] = {}
        self._holders: set[int] = set()

    def experiments(self) -> tuple[str, ...]:
        """Return the names of all experiments, sorted."""
        with self._guard:
            return tuple(sorted(self._journals))

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """Return the events above `after` and up to `upto`, of these kinds, in order."""
        with self._guard:
            journal = self._journals.get(experiment, [])[max(after, 0) : upto and max(upto, 0)]
        return journal if kinds is None else [event for event in journal if event.kind in kinds]

    def last(self, experiment: str) -> Event | None:
        """Return the last event, or None if the experiment does not exist."""
        with self._guard:
            journal = self._journals.get(experiment)
            return journal[-1] if journal else None

    @contextmanager
    def transaction(
        self,
        experiment: str,
        on_wait: Callable[[], None] | None = None,  # noqa: ARG002
    ) -> Iterator[MemoryTransaction]:
        """Open a transaction on the experiment; commit at the end of the block."""
        thread = threading.get_ident()
        check_not_nested(repr(experiment), thread in self._holders)
        with self._guard:
            write_lock = self._write_locks.setdefault(experiment, threading.Lock())
        if not write_lock.acquire(timeout=self._timeout):
            raise UnavailableError(
                f"{self}: {experiment!r} can't be written: another thread has locked it for "
                f"{self._timeout:g} seconds; try again later",
                code="store-busy",
            )
        self._holders.add(thread)
        try:
            with self._guard:
                block = MemoryTransaction(experiment, self._journals.get(experiment, []))
            try:
                yield block
                self._commit(block)
            finally:
                block.ended = True
        finally:
            self._holders.discard(thread)
            write_lock.release()

    def _commit(self, block: MemoryTransaction) -> None:
        with self._guard:
            if block.added:
                self._journals.setdefault(block.experiment, []).extend(block.added)
            for number, event in block.blanked.items():
                self._journals[block.experiment][number - 1] = event
            if block.erases:
                self._snapshots.pop(block.experiment, None)

    def snapshot(self, experiment: str) -> Snapshot | None:
        """Return the newest snapshot, if any."""
        with self._guard:
            return self._snapshots.get(experiment)

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Replace older snapshots, unless the snapshot is outdated or of another journal."""
        with self._guard:
            journal = self._journals.get(snapshot.experiment, [])
            stored = self._snapshots.get(snapshot.experiment)
            if should_keep(snapshot, journal[max(snapshot.number - 1, 0) :], stored):
                self._snapshots[snapshot.experiment] = snapshot

    def close(self) -> None:
        """Do nothing; the journals remain."""

    def __str__(self) -> str:
        return "a store in memory"


@dataclass
class MemoryTransaction:
    """Open write transaction on an experiment in memory."""

    experiment: str
    committed: list[Event]
    added: list[Event] = field(default_factory=list)
    blanked: dict[int, Event] = field(default_factory=dict)
    erases: bool = False
    ended: bool = False

    def read(self, after: int = 0) -> list[Event]:
        """Return all events with a number above `after`, in order."""
        self._check_open()
        after = max(after, 0)
        events = self.committed[after:] + self.added[max(after - len(self.committed), 0) :]
        return [self.blanked.get(event.number, event) for event in events]

    def append(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        self._check_open()
        added = list(events)
        check_next(self.experiment, len(self.committed) + len(self.added), added)
        self.added += added

    def erase(self, numbers: Collection[int]) -> None:
        """Replace these events with erased ones, and drop the experiment's snapshots."""
        self._check_open()
        events = self.read()
        check_exist(self.experiment, numbers, range(1, len(events) + 1))
        self.blanked |= {number: events[number - 1].erased() for number in numbers}
        self.erases = True

    def _check_open(self) -> None:
        if self.ended:
            raise DowiseError(
                "this transaction has ended: open another one", code="transaction-ended"
            )
