"""What the checks of a store are made of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.storage.contract import Storage

__all__ = ["Task", "Trial", "demand", "next_events", "refuses", "start", "write"]

SECONDS = 10.0  # a store that takes longer for a call that must not wait is taken to wait
_NOT_DONE = object()


class Trial(NamedTuple):
    """Two stores at the same place, and an experiment that nobody else writes to."""

    one: Storage
    other: Storage
    name: str


def demand(kept: bool, promise: str) -> None:
    """Raise unless a promise is kept."""
    if not kept:
        raise DowiseError(f"this storage breaks the contract: {promise}")


@contextmanager
def refuses(promise: str) -> Iterator[None]:
    """What stands in the block must be refused, by a `DowiseError`."""
    try:
        yield
    except DowiseError:
        return
    demand(False, promise)


def next_events(last: Event | None, name: str, *words: str) -> list[Event]:
    """Events that follow, with one of these words each; the first of all is `created`."""
    found: list[Event] = []
    for word in words:
        kind = "created" if last is None else "told"
        last = Event.after(last, name, kind, "2026-01-01T00:00:00Z", "Zoë", {"word": word})
        found.append(last)
    return found


def write(storage: Storage, name: str, *words: str) -> list[Event]:
    """Append events in a block of their own."""
    with storage.writing(name) as block:
        before = block.read()
        found = next_events(before[-1] if before else None, name, *words)
        block.append(found)
    return found


class Task:
    """A call in a thread of its own, so that a store that never returns does not stop the check."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._result: Any = _NOT_DONE
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as error:
            self._error = error

    def result(self, promise: str, seconds: float | None = None) -> Any:
        """What the call returned or raised; the promise is broken where it takes too long."""
        self._thread.join(SECONDS if seconds is None else seconds)
        demand(not self._thread.is_alive(), promise)
        if self._error is not None:
            raise self._error
        return self._result

    def is_done(self, within: float) -> bool:
        """Whether it has returned after so many seconds."""
        self._thread.join(within)
        return not self._thread.is_alive()


def start(call: Callable[[], Any]) -> Task:
    """Begin a call in another thread."""
    return Task(call)
