"""What was seen of one arm in one context, and its bootstrap: for the policies that resample.

The state is a set of numbered records. Whatever is read off it (which records count, in what order
their kinds stand) depends on the numbers, not on the order in which the records came in.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from functools import lru_cache
from hashlib import sha256
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem import Record

__all__ = ["ArmData", "settled_size"]

Integers = NDArray[np.int64]


@lru_cache(maxsize=4096)
def settled_size(total: int, refresh: float) -> int:
    """Of so many records how many are estimated from.

    Estimates are due anew whenever the records have grown by the share `refresh`: the sizes are
    1, 2, 3, … and from 1/refresh on each is so much larger than the one before.
    """
    if refresh == 0:
        return total
    size = int(min(total, 1 / refresh))  # up to here one more record is always a share more
    while True:
        following = max(size + 1, ceil((1 + refresh) * size))
        if following > total:
            return size
        size = following


class ArmData:
    """The records of one arm, by their kinds; never a dense table."""

    def __init__(self, rewards: Integers, variables: Integers, refresh: float) -> None:
        self._variables = variables  # the ones that some estimator looks at
        self._refresh = refresh
        self._kinds: dict[bytes, list[int]] = {}  # of each kind of record the numbers, rising
        self._numbers: list[int] = []  # of all records, rising
        self._sum = 0
        self.rewards = rewards
        """How often each value of the reward was seen; this array is kept up to date."""
        self.is_new = False
        """Whether something has changed since `settle`."""
        self._size, self._last = 0, -1  # of what is settled: how many records, the last number
        self._is_older = False  # whether a change is among these
        self.rows = np.zeros((0, 0), dtype=np.int64)
        """The kinds of record, (kinds, variables), as of the last `settle`; and how often each."""
        self.counts = np.zeros(0, dtype=np.int64)

    @property
    def total(self) -> int:
        """The number of records."""
        return len(self._numbers)

    def has(self, number: int) -> bool:
        """Whether there is a record of this number."""
        place = bisect_left(self._numbers, number)
        return place < len(self._numbers) and self._numbers[place] == number

    def add(self, record: Record) -> None:
        """One record more; it must have a number, a new one."""
        assert record.number is not None
        number, kind = record.number, self._kind(record)
        insort(self._numbers, number)
        insort(self._kinds.setdefault(kind, []), number)
        self._change(record, kind, number, 1)

    def remove(self, record: Record) -> None:
        """One record less."""
        number, kind = record.number, self._kind(record)
        numbers = self._kinds.get(kind, [])
        if number is None or number not in numbers:
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")
        numbers.remove(number)
        if not numbers:
            del self._kinds[kind]
        self._numbers.remove(number)
        self._change(record, kind, number, -1)

    def settle(self) -> bool:
        """Take the records that estimates are due from; whether these have changed."""
        self.is_new = False
        size = settled_size(self.total, self._refresh)
        if size == self._size and not self._is_older:
            return False
        self._size, self._last = size, self._numbers[size - 1] if size else -1
        self._is_older = False
        self.rows, self.counts = self._first(size)
        return True

    def weights(self, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """How often each kind of record counts: (kinds, 1 + resamples), the data themselves first.

        A resample draws as many records as there are, with replacement: multinomial counts.
        """
        weights = np.empty((len(self.counts), 1 + resamples))
        weights[:, 0] = self.counts
        if len(self.counts):
            total = self.counts.sum()
            weights[:, 1:] = rng.multinomial(total, self.counts / total, size=resamples).T
        return weights

    def state(self) -> dict[str, object]:
        """The numbers of the records of every kind, and the rewards."""
        kinds = {kind.hex(): numbers for kind, numbers in sorted(self._kinds.items())}
        return {"records": kinds, "rewards": self.rewards.tolist()}

    def _first(self, size: int) -> tuple[Integers, Integers]:
        """The kinds of the first so many records, those first seen first, and their counts."""
        if not size:
            return np.zeros((0, len(self._variables)), dtype=np.int64), np.zeros(0, dtype=np.int64)
        last = self._numbers[size - 1]
        kinds = sorted(
            (numbers[0], kind, bisect_right(numbers, last))
            for kind, numbers in self._kinds.items()
            if numbers[0] <= last
        )
        rows = np.frombuffer(b"".join(kind for _, kind, _ in kinds), dtype="<i8")
        rows = rows.astype(np.int64, copy=False)
        counts = np.array([count for _, _, count in kinds], dtype=np.int64)
        return rows.reshape(len(kinds), -1), counts

    def digest(self) -> bytes:
        """Of all records: the sum of the hashes of each, so it is kept up to date one by one."""
        return self._sum.to_bytes(32, "little")

    def _change(self, record: Record, kind: bytes, number: int, step: int) -> None:
        """Something has changed; of what is settled, if it is no newer than that."""
        self.rewards[record.reward] += step
        one = sha256(kind + f"{record.reward} {number}".encode()).digest()
        self._sum = (self._sum + step * int.from_bytes(one, "little")) % 2**256
        self.is_new = True
        self._is_older |= number <= self._last

    def _kind(self, record: Record) -> bytes:
        return record.codes[self._variables].astype("<i8").tobytes()
