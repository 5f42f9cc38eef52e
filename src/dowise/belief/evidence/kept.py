"""Distinct records with how often each was seen: all that a belief needs to be made anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.graph.adjacency import bits
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, equal_columns, past_record

__all__ = ["KeptRecords"]

Integers = NDArray[np.int64]
MAX_COUNT = 10**8
"""So many records a file may have; beyond them 64 bits are too few for what they say."""


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
        first, which = equal_columns([place, *batch.codes])
        counts = np.bincount(which)
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
        codes, cuts, times = self.distinct()
        return self._batch(problem or self.problem, codes, cuts, times)

    def distinct(self) -> tuple[Integers, list[int], Integers]:
        """(codes, cuts, times): codes[:, i] was seen times[i] where what cuts[i] says was set."""
        codes = np.empty((len(self.problem.graph), len(self.counts)), dtype=np.int64)
        for i, (_, raw) in enumerate(self.counts):
            codes[:, i] = np.frombuffer(raw, dtype=np.int64)
        times = np.array(list(self.counts.values()), dtype=np.int64)
        return codes, [cut for cut, _ in self.counts], times

    def by_bits(self) -> Iterator[tuple[int, RecordBatch]]:
        """(times, batch): all records are each batch so many times, however many there are."""
        codes, cuts, times = self.distinct()
        for b in range(int(times.max(initial=0)).bit_length()):
            yield 1 << b, self._batch(self.problem, codes, cuts, times >> b & 1)

    def _batch(
        self, problem: Problem, codes: Integers, cuts: list[int], times: Integers
    ) -> RecordBatch:
        was_set = np.zeros(codes.shape, dtype=bool)
        for i, cut in enumerate(cuts):
            was_set[list(bits(cut)), i] = True
        return RecordBatch(
            problem, np.repeat(codes, times, axis=1), np.repeat(was_set, times, axis=1)
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
            if type(count) is not int or not 1 <= count <= MAX_COUNT:
                raise DowiseError(f"the belief is damaged: a record was seen {count!r:.30} times")
            try:
                record = past_record(problem, arm, values)
            except DowiseError as error:
                raise DowiseError(
                    f"the belief is damaged: a record does not fit: {error}"
                ) from None
            kept.add(problem.graph.mask(names), record.codes, count)
        if len(kept) > MAX_COUNT:
            raise DowiseError(f"the belief is damaged: it has {len(kept):.1e} records")
        return kept

    def check_counted_by(self, posterior: Any) -> None:
        """Raise unless the counts of a posterior come from just these records."""
        counts, unused = np.zeros_like(posterior.counts), np.zeros_like(posterior.unused)
        for times, batch in self.by_bits():
            fresh = type(posterior)(self.problem)
            fresh.learn_many(batch)
            counts += times * fresh.counts
            unused += times * fresh.unused
        if (counts != posterior.counts).any() or (unused != posterior.unused).any():
            raise DowiseError("the belief is damaged: its counts are not those of its records")
