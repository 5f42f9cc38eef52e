"""Which of many records a policy can learn from, and why it can't from the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem import Problem
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, check_same_problem, without_value

__all__ = ["NEEDS_CONTEXT", "PAST", "Numbers", "Usable", "check_batch"]

Integers = NDArray[np.int64]
Numbers = NDArray[np.int64] | None
"""Those of the decisions that records follow, or None where there were none."""
PAST = 2**32  # from here on numbers are those of past records, which followed no decision

NEEDS_CONTEXT = "put the context in it as well"


class Usable(NamedTuple):
    """The records that can be used, and how many can't, by the reason: (mask, reasons).

    A record that can't be used for several reasons counts with the first that is found.

    >>> found = Usable.all_of(3)
    >>> found.leave_out(np.array([False, True, True]), "it rained")
    >>> found.mask.tolist(), found.reasons
    ([True, False, False], {'it rained': 2})
    """

    mask: NDArray[np.bool_]
    """mask[i]: whether record i can be used."""
    reasons: dict[str, int]

    @classmethod
    def all_of(cls, size: int) -> Self:
        """So many records that can all be used, to begin with."""
        return cls(np.ones(size, dtype=bool), {})

    def leave_out(self, which: NDArray[np.bool_], why: str) -> None:
        """These can't be used; what was left out before keeps its reason."""
        self._count(why, int(np.count_nonzero(which & self.mask)))
        self.mask[which] = False

    def leave_out_one(self, number: int, why: str) -> None:
        """Record `number` can't be used, which was not left out before."""
        self._count(why, 1)
        self.mask[number] = False

    def _count(self, why: str, times: int) -> None:
        if times:
            self.reasons[why] = self.reasons.get(why, 0) + times

    def need(self, records: RecordBatch, positions: Iterable[int], why: str) -> None:
        """Leave out where one of these variables was not seen; `why` ends the sentence."""
        for v in positions:
            self.leave_out(records.codes[v] == MISSING, without_value(records.problem, v, why))

    def need_context(self, records: RecordBatch) -> None:
        """Leave out where the context is not known."""
        self.need(records, records.problem.context_positions.tolist(), NEEDS_CONTEXT)

    def need_arms(self, records: RecordBatch) -> Integers:
        """Leave out what is of no arm; returns where each record's arm stands, −1 for none."""
        problem = records.problem
        arms, which = records.arms()
        places = np.array([problem.arm_positions.get(arm, -1) for arm in arms], dtype=np.int64)
        found: Integers = places[which]
        times = np.bincount(which[self.mask & (found < 0)], minlength=len(arms))
        for kind in np.flatnonzero(times).tolist():
            self._count(problem.not_an_arm(arms[kind]), int(times[kind]))
        self.mask[found < 0] = False
        return found

    def check_all(self) -> None:
        """Raise unless all can be used."""
        if self.reasons:
            (why, _), *others = self.reasons.items()
            out, size = int(np.count_nonzero(~self.mask)), len(self.mask)
            more = f" (and {len(others):,} other reasons)" if others else ""
            raise DowiseError(
                f"{out:,} of {size:,} records can't be learned, so none was: {why}{more}. "
                "policy.usable(records, numbers) says which"
            )


def check_batch(problem: Problem, records: RecordBatch, numbers: Numbers) -> None:
    """Raise unless these are records of this problem, with a number each or none at all."""
    check_same_problem(records, problem)
    if numbers is not None and len(numbers) != len(records):
        raise DowiseError(
            f"{len(numbers):,} numbers for {len(records):,} records: give one for each, or none"
        )
