"""Distinct records with how often each was seen: all that a belief needs to be made anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.graph.bits import bits
from dowise.problem import Problem, Record
from dowise.problem.frame import RecordBatch
from dowise.problem.values import MISSING

__all__ = ["KeptRecords"]

Integers = NDArray[np.int64]


@dataclass
class KeptRecords:
    """In the order in which each was first seen: what was set, as bits, and the codes of values."""

    problem: Problem
    counts: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def add(self, cut: int, codes: Integers, times: int = 1) -> None:
        """So many more of these."""
        key = cut, codes.tobytes()
        self.counts[key] = self.counts.get(key, 0) + times

    def add_many(self, batch: RecordBatch, sets: list[int], place: Integers) -> None:
        """All records of a batch, `batch.by_set()` being sets and place."""
        kinds, room = place, len(sets)
        for codes in batch.codes:  # one number for all values, as long as it fits
            size = int(codes.max()) + 2
            if room * size > 2**62:
                distinct, kinds = np.unique(kinds, return_inverse=True)
                room = len(distinct)
            kinds, room = kinds * size + codes + 1, room * size
        _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
        for i in np.argsort(first):
            self.add(sets[place[first[i]]], batch.codes[:, first[i]], int(counts[i]))

    def remove(self, record: Record, cut: int) -> None:
        """One less; refuses what is not there."""
        self.check_has(record, cut)
        key = cut, record.codes.tobytes()
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]

    def check_has(self, record: Record, cut: int) -> None:
        """Raise unless it is there."""
        if (cut, record.codes.tobytes()) not in self.counts:
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")

    def __len__(self) -> int:
        """The number of records, equal ones included."""
        return sum(self.counts.values())

    def copy(self) -> Self:
        """Records that grow on their own from here."""
        return type(self)(self.problem, dict(self.counts))

    def batch(self, problem: Problem | None = None) -> RecordBatch:
        """All of them, equal ones next to each other, perhaps as records of another problem.

        That must have the same variables with the same values.
        """
        size, count = len(self.problem.graph), len(self.counts)
        codes, was_set = (
            np.empty((count, size), dtype=np.int64),
            np.zeros((count, size), dtype=bool),
        )
        for i, (cut, raw) in enumerate(self.counts):
            codes[i] = np.frombuffer(raw, dtype=np.int64)
            was_set[i, list(bits(cut))] = True
        each = list(self.counts.values())
        codes, was_set = np.repeat(codes, each, axis=0), np.repeat(was_set, each, axis=0)
        return RecordBatch(
            problem or self.problem,
            np.ascontiguousarray(codes.T),
            np.ascontiguousarray(was_set.T),
        )

    # -- for JSON ---------------------------------------------------------------------------------

    def page(self) -> list[dict[str, Any]]:
        """The labels of what was seen, the names of what was set, and how often."""
        return list(self._pages())

    def _pages(self) -> Iterator[dict[str, Any]]:
        for (cut, raw), count in self.counts.items():
            codes = np.frombuffer(raw, dtype=np.int64).tolist()
            pairs = zip(self.problem.domains.items(), codes, strict=True)
            values = {name: domain[code] for (name, domain), code in pairs if code != MISSING}
            names = self.problem.graph.names(cut)
            yield {"set": sorted(names), "values": values, "count": count}

    @classmethod
    def read(cls, page: Any, problem: Problem) -> Self:
        """The way back from `page`."""
        kept = cls(problem)
        for entry in page if isinstance(page, list) else [page]:
            try:
                values, names = dict(entry["values"]), list(entry["set"])
                arm = {name: values[name] for name in names}
                count = entry["count"]
            except (TypeError, KeyError, ValueError):
                raise DowiseError(
                    f"the belief is damaged: {str(entry)[:80]} is no record"
                ) from None
            if type(count) is not int or count < 1:
                raise DowiseError(f"the belief is damaged: a record was seen {count!r} times")
            record = problem.record(arm, values)
            kept.add(problem.graph.mask(names), record.codes, count)
        return kept
