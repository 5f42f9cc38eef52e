"""Requirements of records: what a policy must be given to learn from a record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from dowise._core.types import BoolArray, IntArray
from dowise.errors import DowiseError
from dowise.problem import Record
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, without_value

Numbers = IntArray | None
"""Numbers of the decisions that records follow, or None if there were none."""


class RecordMask(NamedTuple):
    """Mask of the records a policy can learn from, with reasons for the rest.

    A record that is rejected for several reasons counts with the first one.

    >>> usable = RecordMask.all_usable(3)
    >>> usable.exclude(np.array([False, True, True]), "it rained")
    >>> usable.mask.tolist(), usable.reasons
    ([True, False, False], {'it rained': 2})
    """

    mask: BoolArray
    """mask[i]: True if record i can be used."""
    reasons: dict[str, int]
    """Number of rejected records by reason."""

    @classmethod
    def all_usable(cls, size: int) -> Self:
        """Return a mask of `size` records that can all be used."""
        return cls(np.ones(size, dtype=bool), {})

    def exclude(self, rows: BoolArray, reason: str) -> None:
        """Exclude these records; records that were excluded before keep their reason."""
        excluded = int(np.count_nonzero(rows & self.mask))
        if excluded:
            self.reasons[reason] = self.reasons.get(reason, 0) + excluded
            self.mask[rows] = False

    def exclude_row(self, row: int, reason: str) -> None:
        """Exclude one record that was not excluded before."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        self.mask[row] = False

    def check_all(self) -> None:
        """Raise `DowiseError` unless all records can be used."""
        if self.reasons:
            (reason, _), *others = self.reasons.items()
            excluded, size = int(np.count_nonzero(~self.mask)), len(self.mask)
            more = f" (and {len(others):,} other reasons)" if others else ""
            raise DowiseError(
                f"{excluded:,} of {size:,} records can't be learned, so none was: {reason}{more}; "
                "policy.usable_mask(records, numbers) tells which",
                code="unusable-record",
            )


@dataclass(frozen=True, eq=False)
class RecordRequirements:
    """Requirements that a record must meet so that a policy can learn from it.

    Parameters
    ----------
    variables : sequence of int
        Indices of the variables that must have been observed or set.
    purpose : str
        Reason for needing these variables, which ends the message about a missing value.
    arm : bool
        True if the record must follow one of the problem's arms.
    numbered : array of bool, optional
        For each value of the reward, True if a record with it needs the number of its decision.
    number_purpose : str
        Reason for needing the number.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> problem = load_problem("task1")
    >>> needs = RecordRequirements([problem.reward_position], "the policy learns from the reward")
    >>> needs.rejection_reason(problem.record("do(X=1)", {"Z": 0}))
    'the outcome has no value for Y: the policy learns from the reward'
    """

    variables: Iterable[int] = ()
    purpose: str = "the policy needs it"
    arm: bool = False
    numbered: BoolArray | None = None
    number_purpose: str = "the policy needs it"

    def rejection_reason(self, record: Record) -> str | None:
        """Return why a record can't be used; None if it has everything."""
        codes, problem = record.codes, record.problem
        for v in self.variables:
            if codes[v] == MISSING:
                return without_value(problem, v, self.purpose)
        if self.arm and record.arm not in problem.arm_positions:
            return problem.not_an_arm(record.arm)
        if self.numbered is not None and record.number is None and self.numbered[record.reward]:
            return self._without_number()
        return None

    def mask(self, records: RecordBatch, numbers: Numbers) -> RecordMask:
        """Return the records that have everything, with reasons for the rest."""
        usable, problem = RecordMask.all_usable(len(records)), records.problem
        for v in self.variables:
            usable.exclude(records.codes[v] == MISSING, without_value(problem, v, self.purpose))
        if self.arm:
            arms, kinds = records.arms()
            for kind, arm in enumerate(arms):
                if arm not in problem.arm_positions:
                    usable.exclude(kinds == kind, problem.not_an_arm(arm))
        if self.numbered is not None and numbers is None:
            rewards = records.codes[problem.reward_position]
            usable.exclude(self.numbered[rewards], self._without_number())
        return usable

    def _without_number(self) -> str:
        return (
            f"the record has no decision number: {self.number_purpose}; "
            "problem.record(arm, outcome, number) sets it"
        )
