"""The store that is served, and its experiments: each is folded once and shared by all requests."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock, local
from typing import Any, TypeVar

from dowise.errors import DowiseError, DowiseWarning, NotFoundError, suggestion
from dowise.experiment.event import Head
from dowise.experiment.experiment import Experiment, validate_name
from dowise.experiment.storage.base import Storage
from dowise.problem import Problem
from dowise_web.cache import ResultCache
from dowise_web.limits import FairLimiter, Waiters

Found = TypeVar("Found")

_LOG = logging.getLogger("dowise_web")

_WORDS = (
    "amend", "ask", "ask-many", "audit", "belief", "counted", "decisions", "erase", "evaluate",
    "events", "explain", "export", "formula", "graph", "history", "import", "known", "now",
    "revise", "status", "stream", "tell", "variable", "withdraw",
)  # fmt: skip
"""What stands behind an experiment's name in an address."""
_FRESH = 0.4  # seconds for which the last event's number is taken for the last


class ExperimentRegistry:
    """A store whose experiments are held open."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._experiments: dict[str, Experiment] = {}
        self.waiters, self._turns = Waiters(), FairLimiter()
        self._looks = ResultCache(self._turns)
        self._last: dict[str, tuple[float, int]] = {}
        self._lock = Lock()
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
        self.check_name(name)
        made = Experiment.create(self.storage, name, problem, **rest)
        with self._lock:
            return self._experiments.setdefault(made.name, made)

    def check_name(self, name: str) -> None:
        """Raise where no experiment can be called that here; a look at the problem takes longer."""
        first, *others = validate_name(name).split("/")
        if {first, *others} & {"", ".", ".."} or (others and others[-1] in _WORDS):
            raise DowiseError(
                f"{name!r:.200} can't stand in an address: leave out dots and slashes that mean "
                "folders there, and the word of a page or a verb at its end"
            )

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
        self,
        experiment: Experiment,
        key: Hashable,
        compute: Callable[[], Found],
        visitor: int | None = None,
    ) -> tuple[Head, Found]:
        """What somebody found who looked at the same before, unless the journal went on since.

        For what follows from the journal as it was folded; an audit doubts just that. One that may
        take seconds has the `visitor` for whom it takes a turn. Raises `UnderwayError`, for the
        `PatientRoute`, where somebody else is at work on it.
        """
        return self._looks.look(experiment, key, compute, visitor)

    def long_look(self, visitor: int) -> AbstractContextManager[None]:
        """A turn for what takes seconds: few at once, so that the others stay quick."""
        return self._turns.take(visitor)

    def discreet(self, text: str) -> str:
        """A text without the place of the store on this machine, or of its server.

        What a store could not do is in the log besides, for the operator. What a server of
        databases said of that stays there: it names hosts, ports and users.
        """
        if f"{self.storage}: can't " in text:
            _LOG.error("%s", text)
            if "://" in str(self.storage):
                return (
                    "the store can't be read or written just now: try again in a while; the "
                    "server's log says why"
                )
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


_heard = local()
_usual = warnings.showwarning


def hear_warnings() -> None:
    """From now on let `listening` hear warnings, each time and not only the first."""
    warnings.simplefilter("always", DowiseWarning)
    warnings.showwarning = _hear


@contextmanager
def listening() -> Iterator[list[str]]:
    """What is warned of in this thread meanwhile."""
    notes: list[str] = []
    _heard.notes = notes
    try:
        yield notes
    finally:
        _heard.notes = None


def _hear(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    notes = getattr(_heard, "notes", None)
    if issubclass(category, DowiseWarning) and notes is not None:
        notes.append(str(message))
    else:
        _usual(message, category, filename, lineno, file, line)
