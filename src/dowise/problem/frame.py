"""Many records at once, in arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dowise.graph.bits import mask_of
from dowise.problem.record import Record
from dowise.problem.values import MISSING

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["RecordBatch"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RecordBatch:
    """Many records at once: a row for each variable, in the order of names, a column for each."""

    problem: Problem
    codes: Integers
    """The position of each value in its domain, or MISSING."""
    was_set: NDArray[np.bool_]
    """Whether the arm set the variable."""

    @classmethod
    def of(cls, record: Record) -> RecordBatch:
        """One record as a batch."""
        return cls(record.problem, record.codes[:, None], record.fixed[:, None] != MISSING)

    def by_set(self) -> tuple[list[int], Integers]:
        """The distinct sets of variables that were set, as bits, and which one each record has."""
        packed = np.ascontiguousarray(np.packbits(self.was_set, axis=0).T)
        words = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, which = np.unique(words, return_index=True, return_inverse=True)
        sets = [mask_of(np.flatnonzero(self.was_set[:, i]).tolist()) for i in first]
        return sets, which.astype(np.int64)

    def take(self, rows: Integers) -> RecordBatch:
        """The records in these places."""
        return RecordBatch(self.problem, self.codes[:, rows], self.was_set[:, rows])

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"<RecordBatch of {len(self):,} records>"
