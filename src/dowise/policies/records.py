"""What was seen of each arm in one context: counts of the distinct records, and their bootstrap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Records"]

Integers = NDArray[np.int64]


class Records:
    """The distinct records of one arm with how often each was seen; never a dense table.

    What is resampled is the state at the last `settle`, which is due whenever the number of records
    has grown by the share `refresh`.
    """

    def __init__(self, width: int, variables: Integers, refresh: float) -> None:
        self._width = width  # of a record: the number of all variables
        self._variables = variables  # the ones that some estimator looks at
        self._refresh = refresh
        self._place: dict[bytes, int] = {}
        self._rows: list[Integers] = []
        self._counts: list[int] = []
        self.total = 0
        self.reward = 0.0
        """The sum of the rewards, scaled to [0, 1]."""
        self.settled = np.zeros(0, dtype=np.int64)
        """How often each of the distinct records was seen when the estimates were last due."""

    def add(self, codes: Integers, reward: float) -> bool:
        """One record more: the positions of all variables' values. Whether estimates are due."""
        row = np.zeros_like(codes)
        row[self._variables] = codes[self._variables]
        place = self._place.setdefault(row.tobytes(), len(self._rows))
        if place == len(self._rows):
            self._rows.append(row)
            self._counts.append(0)
        self._counts[place] += 1
        self.total += 1
        self.reward += reward
        due = self.total >= (1 + self._refresh) * int(self.settled.sum())
        if due:
            self.settled = np.array(self._counts)
        return due

    def rows(self) -> Integers:
        """The distinct records that are settled, an array (records, variables)."""
        shape = len(self.settled), self._width
        return np.array(self._rows[: len(self.settled)], dtype=np.int64).reshape(shape)

    def weights(self, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """How often each record counts: (records, 1 + resamples), the data themselves first.

        A resample draws as many records as there are, with replacement: multinomial counts.
        """
        counts, total = self.settled, self.settled.sum()
        weights = np.empty((len(counts), 1 + resamples))
        weights[:, 0] = counts
        weights[:, 1:] = rng.multinomial(total, counts / total, size=resamples).T
        return weights
