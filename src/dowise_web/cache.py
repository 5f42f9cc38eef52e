"""What was found by looks at experiments, shared by all who ask for the same.

Of several who ask for the same at once one computes. The others wait without a thread, of which
there are few and which those need who ask and tell: `look` raises `UnderwayError`, and the
`PatientRoute` calls again when that look is done. Work that waits for a visitor's turn has not
begun: another visitor whose turn may come first can stand in line for it too.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from dowise.experiment.event import Head
from dowise.experiment.experiment import Experiment
from dowise_web.limits import AT_ONCE, FairLimiter

Found = TypeVar("Found")

_KEPT = 256  # looks that are remembered
_WITHOUT_TURN = 12  # that are computed at once without a turn, so that threads are left for others
_arrived: ContextVar[float] = ContextVar("arrived", default=float("inf"))


class UnderwayError(Exception):
    """Somebody else is at work on it, or in line for it, until `done`."""

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


class _Line:
    """Visitors who stand in line for the same look, and what is done when one of them leaves."""

    def __init__(self) -> None:
        self.visitors: set[int] = set()
        self.moved = _running()


class ResultCache:
    """The last ones, by what was asked for, those that are under way, and those in line for it."""

    def __init__(self, turns: FairLimiter) -> None:
        self._turns = turns
        self._kept: OrderedDict[Hashable, _Look] = OrderedDict()
        self._work: dict[Hashable, _Work] = {}
        self._lines: dict[Hashable, _Line] = {}
        self._lock = Lock()

    def look(
        self,
        experiment: Experiment,
        key: Hashable,
        compute: Callable[[], Found],
        visitor: int | None = None,
    ) -> tuple[Head, Found]:
        """What `compute` finds, or has found since whoever asks came or the journal last grew.

        The head is what it was before computing, so that what is remembered is never older than it
        says. A turn of the `visitor`'s is taken for computing alone. What fails is not remembered.
        """
        whole = (experiment.name, key)
        if visitor is None:
            kept = self._find(experiment, whole, compute, has_turn=False)
            return kept.head, kept.found
        known = self._stand(whole, experiment.head, visitor)
        if known is None:
            try:
                with self._turns.take(visitor):
                    known = self._find(experiment, whole, compute, has_turn=True)
            finally:
                self._leave(whole, visitor)
        return known.head, known.found

    def _stand(self, whole: Hashable, head: Head, visitor: int) -> _Look | None:
        """What is remembered, or None to whoever stands in line now.

        The first in line may have to wait for a turn that another visitor could have. Of as many
        as there are turns one may go whenever a turn is free; more need no thread to wait.
        """
        with self._lock:
            kept = self._known(whole, head)
            if kept is None:
                line = self._lines.setdefault(whole, _Line())
                if visitor in line.visitors or len(line.visitors) >= AT_ONCE:
                    raise UnderwayError(line.moved)
                line.visitors.add(visitor)
            return kept

    def _leave(self, whole: Hashable, visitor: int) -> None:
        with self._lock:
            line = self._lines[whole]
            line.visitors.remove(visitor)
            if not line.visitors:
                del self._lines[whole]
            moved, line.moved = line.moved, _running()
        moved.set_result(None)

    def _find(
        self, experiment: Experiment, whole: Hashable, compute: Callable[[], Any], has_turn: bool
    ) -> _Look:
        """What is remembered by now, or is computed."""
        kept = self._begin(whole, experiment.head, has_turn)
        if kept is None:
            try:
                began, head = time.monotonic(), experiment.head
                kept = _Look(head, began, compute())
            finally:
                self._end(whole, kept)
        return kept

    def _begin(self, whole: Hashable, head: Head, has_turn: bool) -> _Look | None:
        """What is remembered, or None to whoever is to compute it."""
        with self._lock:
            kept = self._known(whole, head)
            if kept is None:
                others = [work.done for work in self._work.values() if not work.has_turn]
                if not has_turn and len(others) >= _WITHOUT_TURN:
                    raise UnderwayError(others[0])
                self._work[whole] = _Work(_running(), has_turn)
            return kept

    def _known(self, whole: Hashable, head: Head) -> _Look | None:
        """What is remembered, unless somebody is at work on it; for whoever has the lock."""
        kept = self._kept.get(whole)
        if kept is not None and (kept.head == head or kept.began >= _arrived.get()):
            self._kept.move_to_end(whole)
            return kept
        if whole in self._work:
            raise UnderwayError(self._work[whole].done)
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


def _running() -> Future[None]:
    """What those who wait can't cancel."""
    made: Future[None] = Future()
    made.set_running_or_notify_cancel()
    return made


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
                with request.app.state.house.waiters.wait(request.state.visitor.source):
                    await asyncio.wrap_future(done)

        return patient
