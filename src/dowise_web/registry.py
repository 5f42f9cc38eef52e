"""The store that is served, and its experiments: each is opened once and shared by all requests."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from threading import Lock
from typing import Any

from dowise.errors import DowiseError, NotFoundError, suggestion
from dowise.experiment import Experiment, validate_name
from dowise.experiment.storage import Storage
from dowise.problem import Problem
from dowise_web.cache import ResultCache
from dowise_web.rate_limits import FairLimiter

_LOG = logging.getLogger("dowise_web")

RESERVED_WORDS = frozenset(
    {
        "amend",
        "ask",
        "ask-many",
        "audit",
        "belief",
        "counted",
        "decisions",
        "erase",
        "evaluate",
        "events",
        "explain",
        "export",
        "formula",
        "graph",
        "history",
        "import",
        "known",
        "now",
        "revise",
        "status",
        "stream",
        "tell",
        "variable",
        "withdraw",
    }
)
"""Path segments that follow the name of an experiment in a URL."""
HEAD_MAX_AGE = 0.4  # seconds for which the number of the last event is reused


class ExperimentRegistry:
    """Open experiments of a store, with the cache and the limiter for their queries."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.limiter = FairLimiter()
        self.results = ResultCache(self.limiter)
        self._experiments: dict[str, Experiment] = {}
        self._last_numbers: dict[str, tuple[float, int]] = {}
        self._lock = Lock()
        self._locations = _locations(str(storage))

    def names(self) -> tuple[str, ...]:
        """Return the names of all experiments in the store."""
        return tuple(self.storage.experiments())

    def experiment(self, name: str) -> Experiment:
        """Return the experiment with this name; all requests share it."""
        with self._lock:
            experiment = self._experiments.get(name)
        if experiment is not None:
            return experiment
        names = self.names()
        if name not in names:
            raise NotFoundError(
                f"there is no experiment {name!r:.200} here{suggestion(name, names)}",
                code="unknown-experiment",
            )
        experiment = Experiment.open(self.storage, name)
        with self._lock:  # two threads may have opened it: the first one stays
            return self._experiments.setdefault(name, experiment)

    def create(self, name: str, problem: Problem, **options: Any) -> Experiment:
        """Create an experiment, under a name that a URL can hold."""
        self.check_name(name)
        experiment = Experiment.create(self.storage, name, problem, **options)
        with self._lock:
            return self._experiments.setdefault(experiment.name, experiment)

    def check_name(self, name: str) -> None:
        """Raise `DowiseError` if a URL can't hold this name of an experiment."""
        parts = validate_name(name).split("/")
        if {"", ".", ".."} & {*parts} or (len(parts) > 1 and parts[-1] in RESERVED_WORDS):
            raise DowiseError(
                f"the name {name!r:.200} does not work in a URL: remove empty or dotted parts "
                "between slashes, and words such as “now” or “ask” after the last slash",
                code="invalid-name",
            )

    def last_number(self, name: str) -> int:
        """Return the number of the journal's last event, at most `HEAD_MAX_AGE` old."""
        recent = self.recent_number(name)
        if recent is None:
            event = self.storage.last(name)
            recent = 0 if event is None else event.number
            self._last_numbers[name] = time.monotonic(), recent
        return recent

    def recent_number(self, name: str) -> int | None:
        """Return the number of the last event if it is known without reading the store."""
        at, number = self._last_numbers.get(name, (0.0, 0))
        return number if time.monotonic() - at <= HEAD_MAX_AGE else None

    def redact(self, text: str) -> str:
        """Remove the location of the store from an error message.

        Messages of a failed store also go to the log, for the operator. Those of a database server
        go only there, because they name hosts, ports and users.
        """
        if f"{self.storage}: can't " in text:
            _LOG.error("%s", text)
            if "://" in str(self.storage):
                return (
                    "the store is not available at the moment: try again in a while; the server's "
                    "log has the details"
                )
        for location in self._locations:
            text = text.replace(location, "the store")
        return text

    def close(self) -> None:
        """Close the store."""
        self.storage.close()


def _locations(store: str) -> list[str]:
    """Return the texts that reveal where a store is, the longest first."""
    if "://" in store:
        return [store]
    path = Path(store).resolve()
    locations = {str(path), str(Path(store).absolute())}
    if any(sign in store for sign in "./\\"):  # a plain word may be in any text
        locations.add(store)
    if path.parent != path.parent.parent:  # not the root
        locations.add(str(path.parent))
    return sorted(locations, key=len, reverse=True)
