"""How often somebody may come: a bucket for each, which fills at a steady rate."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Lock

from dowise.errors import UnavailableError
from dowise_web.errors import RefusedError

_MOST = 10_000  # visitors that are remembered; the one that was quiet longest is forgotten first


class TokenBucket:
    """At most `burst` at once, and `rate` a second over a while, for each key."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, key: str) -> float:
        """Take one; 0 if there was one, else for how many seconds there is none."""
        with self._lock:
            left = self._left(key)
            if left < 1:
                return (1 - left) / self._rate
            self._buckets[key] = (left - 1, time.monotonic())
            self._buckets.move_to_end(key)
            while len(self._buckets) > _MOST:
                self._buckets.popitem(last=False)
            return 0.0

    def _left(self, key: str) -> float:
        left, since = self._buckets.get(key, (self._burst, time.monotonic()))
        return min(self._burst, left + (time.monotonic() - since) * self._rate)


AT_ONCE, _AT_ONCE_OF_ONE = 2, 1  # each keeps a core busy
_IN_LINE, _IN_LINE_OF_ONE = 10, 4  # of those that work and those that wait, each with a thread
_WAITERS_OF_ONE = 20  # without a thread, of the requests that the guard lets in at once
_PATIENCE = 30.0  # seconds that one waits for a turn
_LATER = {"Retry-After": "5"}


@dataclass(eq=False)  # two of one visitor are two
class _Place:
    visitor: int


class FairLimiter:
    """Who is at work and who waits for it, the first that may go first."""

    def __init__(self) -> None:
        self._at_work: list[_Place] = []
        self._waiting: list[_Place] = []
        self._changed = Condition()

    @contextmanager
    def take(self, visitor: int) -> Iterator[None]:
        """A turn of this visitor's, who is refused where there is no place in line."""
        place = _Place(visitor)
        with self._changed:
            self._check(visitor)
            self._waiting.append(place)
            try:
                if not self._changed.wait_for(lambda: self._next() is place, _PATIENCE):
                    raise _busy()
                self._at_work.append(place)
            finally:
                self._waiting.remove(place)
                self._changed.notify_all()  # of those behind it one may be next now
        try:
            yield
        finally:
            with self._changed:
                self._at_work.remove(place)
                self._changed.notify_all()

    def _check(self, visitor: int) -> None:
        line = self._at_work + self._waiting
        if _of(visitor, line) >= _IN_LINE_OF_ONE:
            said = f"{_IN_LINE_OF_ONE} long looks of yours are under way: wait until one is done"
            raise RefusedError(429, said, _LATER)
        if len(line) >= _IN_LINE:
            raise _busy()

    def _next(self) -> _Place | None:
        """The first who waits and may go: one turn is always left for who has none."""
        if len(self._at_work) >= AT_ONCE:
            return None
        free = (
            one for one in self._waiting if _of(one.visitor, self._at_work) < _AT_ONCE_OF_ONE
        )  # fmt: skip
        return next(free, None)


class Waiters:
    """Who waits for looks of others; for the one thread of the event loop."""

    def __init__(self) -> None:
        self._waiting: Counter[int] = Counter()

    @contextmanager
    def wait(self, visitor: int) -> Iterator[None]:
        """Count this visitor as one who waits, who is refused where too many of theirs do."""
        if self._waiting[visitor] >= _WAITERS_OF_ONE:
            said = f"{_WAITERS_OF_ONE} requests of yours wait for looks: wait until one is done"
            raise RefusedError(429, said, _LATER)
        self._waiting[visitor] += 1
        try:
            yield
        finally:
            self._waiting[visitor] -= 1
            if not self._waiting[visitor]:
                del self._waiting[visitor]


def _of(visitor: int, places: list[_Place]) -> int:
    return sum(place.visitor == visitor for place in places)


def _busy() -> UnavailableError:
    return UnavailableError("the server is busy with other long looks: try again in a while")
