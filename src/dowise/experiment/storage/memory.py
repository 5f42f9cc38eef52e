"""A store in memory: the simplest one that keeps the promises, for rehearsals and tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, RLock

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.storage.contract import PATIENCE, Snapshot, check_next

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """Journals of this process, gone with it."""

    def __init__(self) -> None:
        self._journals: dict[str, list[Event]] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._holding: dict[str, Lock] = {}
        self._lock = RLock()  # of the dictionaries themselves

    def experiments(self) -> tuple[str, ...]:
        """The names of all experiments, sorted."""
        with self._lock:
            return tuple(sorted(self._journals))

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """The events with a number above `after` and up to `upto`, of these kinds, in order."""
        with self._lock:
            events = self._journals.get(experiment, [])[max(after, 0) : upto]
        return [event for event in events if kinds is None or event.kind in kinds]

    def last(self, experiment: str) -> Event | None:
        """The last event, or None where there is no such experiment."""
        with self._lock:
            events = self._journals.get(experiment)
            return events[-1] if events else None

    @contextmanager
    def writing(self, experiment: str) -> Iterator[_Writing]:
        """Hold the experiment; commit at the end of the block."""
        with self._lock:
            lock = self._holding.setdefault(experiment, Lock())
        if not lock.acquire(timeout=PATIENCE):
            raise DowiseError(f"{self}: somebody else has been writing for {PATIENCE} seconds")
        try:
            writing = _Writing(self.read(experiment))
            yield writing
            with self._lock:
                if writing.events:
                    self._journals[experiment] = writing.events
                if writing.has_erased:
                    self._snapshots.pop(experiment, None)
        finally:
            lock.release()

    def snapshot(self, experiment: str) -> Snapshot | None:
        """The newest snapshot, if there is one."""
        with self._lock:
            return self._snapshots.get(experiment)

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it in place of older ones."""
        with self._lock:
            self._snapshots[snapshot.experiment] = snapshot

    def close(self) -> None:
        """There is nothing to let go of."""

    def __str__(self) -> str:
        return "a store in memory"


class _Writing:
    def __init__(self, events: list[Event]) -> None:
        self.events, self.has_erased = events, False

    def read(self, after: int = 0) -> list[Event]:
        return self.events[max(after, 0) :]

    def append(self, events: Iterable[Event]) -> None:
        for event in events:
            check_next(event, self.events[-1].number if self.events else 0)
            self.events.append(event)

    def erase(self, numbers: Collection[int]) -> None:
        self.has_erased = True
        self.events = [
            event.erased() if event.number in numbers else event for event in self.events
        ]
