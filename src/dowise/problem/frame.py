"""Many records at once, in arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise.graph.bits import mask_of
from dowise.problem.intervention import Intervention
from dowise.problem.record import Record
from dowise.problem.values import MISSING

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["RecordBatch", "equal_columns"]

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

    def take(self, rows: NDArray[Any]) -> RecordBatch:
        """The records in these places, or of which this says that they are meant."""
        return RecordBatch(self.problem, self.codes[:, rows], self.was_set[:, rows])

    def arms(self) -> tuple[list[Intervention], Integers]:
        """The distinct interventions, and which one each record is of.

        They need not be arms, nor on variables that can be set.
        """
        names = self.problem.graph.variables
        some = np.flatnonzero(self.was_set.any(axis=1)).tolist()
        values = [np.where(self.was_set[v], self.codes[v], MISSING) for v in some]
        first, which = equal_columns([np.zeros(len(self), dtype=np.int64), *values])
        found = []
        for i in first.tolist():
            codes = {names[v]: int(row[i]) for v, row in zip(some, values, strict=True)}
            labels = {u: self.problem.domains[u][c] for u, c in codes.items() if c != MISSING}
            found.append(Intervention(labels))
        return found, which

    def each(self, numbers: Integers | None = None) -> Iterator[Record]:
        """The records one by one, `numbers` being those of their decisions, if any."""
        arms, which = self.arms()
        for i, kind in enumerate(which.tolist()):
            codes = self.codes[:, i].copy()
            fixed = np.where(self.was_set[:, i], codes, MISSING)
            codes.setflags(write=False)
            fixed.setflags(write=False)
            number = None if numbers is None else int(numbers[i])
            yield Record(self.problem, arms[kind], codes, fixed, number)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"<RecordBatch of {len(self):,} records>"


def equal_columns(rows: Iterable[Integers]) -> tuple[Integers, Integers]:
    """(first, which): columns i and j of the rows are equal where which[i] is which[j].

    first[kind] is the first column of its kind. The rows have whole numbers from −1 on, the first
    of them from 0 on.
    """
    kinds: Integers | None = None
    room = 1
    for row in rows:  # one number for all values, as long as it fits
        if kinds is None:
            kinds, room = row, int(row.max(initial=0)) + 1
            continue
        size = int(row.max(initial=0)) + 2
        if room * size > 2**62:
            distinct, kinds = np.unique(kinds, return_inverse=True)
            room = len(distinct)
        kinds, room = kinds * size + row + 1, room * size
    assert kinds is not None
    _, first, which = np.unique(kinds, return_index=True, return_inverse=True)
    return first, which.astype(np.int64)
