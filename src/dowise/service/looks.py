"""What was found by looks at experiments, shared by all who ask for the same.

Of several who ask for the same at once one computes. The others wait without a thread, of which
there are few and which those need who ask and tell: `look` raises `UnderwayError`, and the
`PatientRoute` calls again when that look is done.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from dowise.experiment.event import Head
from dowise.experiment.experiment import Experiment

__all__ = ["Looks", "PatientRoute", "UnderwayError"]

Found = TypeVar("Found")

_KEPT = 256  # looks that are remembered
_AT_ONCE = 12  # that are computed without a turn, so that threads are left for others
_arrived: ContextVar[float] = ContextVar("arrived", default=float("inf"))


class UnderwayError(Exception):
    """Somebody else is at work on it, until `done`."""

    def __init__(self, done: Future[None]) -> None:
        super().__init__("somebody else is at work on it")
        self.done = done


@dataclass(frozen=True)
class _Look:
    """What a look found, when it began, and the head of the journal at that time."""

    head: Head
    began: float
    found: Any


class _Work(NamedTuple):
    done: Future[None]
    has_turn: bool


class Looks:
    """The last ones, by what was asked for, and those that are under way."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Look] = OrderedDict()
        self._work: dict[Hashable, _Work] = {}
        self._lock = Lock()

    def look(
        self,
        experiment: Experiment,
        key: Hashable,
        compute: Callable[[], Found],
        turn: AbstractContextManager[None] | None = None,
    ) -> tuple[Head, Found]:
        """What `compute` finds, or has found since whoever asks came or the journal last grew.

        The head is what it was before computing, so that what is remembered is never older than it
        says. The `turn` is taken for computing alone. What fails is not remembered.
        """
        whole = (experiment.name, key)
        kept = self._known(whole, experiment.head, turn is not None)
        if kept is None:
            try:
                with turn or nullcontext():
                    began, head = time.monotonic(), experiment.head
                    kept = _Look(head, began, compute())
            finally:
                self._end(whole, kept)
        return kept.head, kept.found

    def _known(self, whole: Hashable, head: Head, has_turn: bool) -> _Look | None:
        """What is remembered, or None to whoever is to compute it."""
        with self._lock:
            kept = self._kept.get(whole)
            if kept is not None and (kept.head == head or kept.began >= _arrived.get()):
                self._kept.move_to_end(whole)
                return kept
            if whole in self._work:
                raise UnderwayError(self._work[whole].done)
            others = [work.done for work in self._work.values() if not work.has_turn]
            if not has_turn and len(others) >= _AT_ONCE:
                raise UnderwayError(others[0])
            self._work[whole] = _Work(Future(), has_turn)
            self._work[whole].done.set_running_or_notify_cancel()  # who waits can't cancel it
            return None

    def _end(self, whole: Hashable, found: _Look | None) -> None:
        with self._lock:
            work = self._work.pop(whole)
            if found is not None:
                self._kept[whole] = found
                self._kept.move_to_end(whole)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        work.done.set_result(None)


class PatientRoute(APIRoute):
    """A route whose function may find that somebody else is at work: it is called again then."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def patient(request: Request) -> Response:
            _arrived.set(time.monotonic())
            while True:
                try:
                    return await handle(request)
                except UnderwayError as other:
                    done = other.done
                await asyncio.wrap_future(done)

        return patient
