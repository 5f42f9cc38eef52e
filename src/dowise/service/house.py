"""The store that is served, and its experiments: each is folded once and shared by all requests."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any, TypeVar

from dowise.errors import DowiseError, NotFoundError, UnavailableError, suggestion
from dowise.experiment.event import Head
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage.contract import Storage
from dowise.problem import Problem

__all__ = ["House"]

Found = TypeVar("Found")

_WORDS = (
    "amend", "ask", "ask-many", "audit", "belief", "counted", "decisions", "erase", "evaluate",
    "events", "explain", "export", "formula", "graph", "history", "import", "known", "now",
    "revise", "status", "stream", "tell", "variable", "withdraw",
)  # fmt: skip
"""What stands behind an experiment's name in an address."""
_KEPT = 256  # looks that are remembered
_FRESH = 0.4  # seconds for which the last event's number is taken for the last
_AT_ONCE = 2  # long looks, each of which keeps a core busy
_IN_LINE = 10  # of those that work and those that wait, so that threads are left for others
_PATIENCE = 30.0  # seconds that a long look waits for its turn


@dataclass
class _Look:
    """What a look found, and the head of the journal that it was at."""

    head: Head | None = None
    found: Any = None
    lock: Lock = field(default_factory=Lock)


class House:
    """A store whose experiments are held open."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._experiments: dict[str, Experiment] = {}
        self._looks: OrderedDict[Hashable, _Look] = OrderedDict()
        self._last: dict[str, tuple[float, int]] = {}
        self._lock = Lock()
        self._turns, self._line = BoundedSemaphore(_AT_ONCE), BoundedSemaphore(_IN_LINE)
        self._secrets = _places_of(str(storage))

    def names(self) -> tuple[str, ...]:
        """The experiments of the store."""
        return tuple(self.storage.experiments())

    def experiment(self, name: str) -> Experiment:
        """The one of this name, for all who ask."""
        with self._lock:
            found = self._experiments.get(name)
        if found is not None:
            return found
        names = self.names()
        if name not in names:
            raise NotFoundError(
                f"there is no experiment {name!r:.200} here{suggestion(name, names)}"
            )
        opened = Experiment.open(self.storage, name)
        with self._lock:  # two may have opened it at the same time: the first stays
            return self._experiments.setdefault(name, opened)

    def create(self, name: str, problem: Problem, **rest: Any) -> Experiment:
        """A new one, under a name that an address can hold."""
        first, *others = name.strip().split("/")
        if {first, *others} & {"", ".", ".."} or (others and others[-1] in _WORDS):
            raise DowiseError(
                f"{name!r:.200} can't stand in an address: leave out dots and slashes that mean "
                "folders there, and the word of a page or a verb at its end"
            )
        made = Experiment.create(self.storage, name, problem, **rest)
        with self._lock:
            return self._experiments.setdefault(made.name, made)

    def last_number(self, name: str) -> int:
        """The number of the journal's last event, at most a moment old."""
        at, number = self._last.get(name, (0.0, 0))
        if time.monotonic() - at > _FRESH:
            event = self.storage.last(name)
            number = 0 if event is None else event.number
            self._last[name] = time.monotonic(), number
        return number

    def known_number(self, name: str) -> int | None:
        """The same where it is known without asking the store."""
        at, number = self._last.get(name, (0.0, 0))
        return number if time.monotonic() - at <= _FRESH else None

    def look(
        self, experiment: Experiment, key: Hashable, compute: Callable[[], Found]
    ) -> tuple[Head, Found]:
        """What somebody found who looked at the same before, unless the journal went on since.

        For what follows from the journal as it was folded; an audit doubts just that.
        Of several who ask at once one computes. The head is what it was before computing, so that
        what is remembered is never older than it says.
        """
        whole = (experiment.name, key)
        with self._lock:
            look = self._looks.setdefault(whole, _Look())
            self._looks.move_to_end(whole)
            while len(self._looks) > _KEPT:
                self._looks.popitem(last=False)
        with look.lock:
            head = experiment.head
            if look.head != head:
                look.found, look.head = compute(), head
            return head, look.found

    @contextmanager
    def long_look(self) -> Iterator[None]:
        """A turn for what takes seconds: few at once, so that the others stay quick."""
        busy = UnavailableError("the server is busy with other long looks: try again in a while")
        if not self._line.acquire(blocking=False):
            raise busy
        try:
            if not self._turns.acquire(timeout=_PATIENCE):
                raise busy
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._line.release()

    def discreet(self, text: str) -> str:
        """A text without the place of the store on this machine."""
        for secret in self._secrets:
            text = text.replace(secret, "the store")
        return text

    def close(self) -> None:
        """Let go of the store."""
        self.storage.close()


def _places_of(shown: str) -> list[str]:
    """What would tell where a store is, the longest first."""
    if "://" in shown:
        return [shown]
    whole = Path(shown).resolve()
    places = {str(whole), str(Path(shown).absolute())}
    if any(sign in shown for sign in "./\\"):  # a mere word tells no place, and may be in any text
        places.add(shown)
    if whole.parent != whole.parent.parent:  # a folder with a name
        places.add(str(whole.parent))
    return sorted(places, key=len, reverse=True)
