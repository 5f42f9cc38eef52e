"""How often somebody may come: a bucket for each, which fills at a steady rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock

__all__ = ["Rate"]

_MOST = 10_000  # visitors that are remembered; the one that was quiet longest is forgotten first


class Rate:
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
