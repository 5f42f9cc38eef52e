"""What an evaluation reads: the steps of an experiment, in the order in which they happened.

A step is a decision to evaluate, an outcome that became known, many at once that were brought in
from elsewhere, or one that turned out to be wrong.
Outcomes come late and in any order, so what was known at a decision is what the steps before it
taught. Decisions that do not count (pending, withdrawn, another arm played, no propensity, erased)
are no step; what was learned from them is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, check_record

__all__ = ["NEVER", "Decide", "Learn", "LearnMany", "Logged", "Retract", "Step", "check_logged"]

NEVER = 1e-12
"""A probability up to this is 0: it is what rounding leaves of it."""


@dataclass(frozen=True, eq=False)
class Logged:
    """A decision that counts: who could have been played, with which probability, and what came.

    `context` is what the policy saw when it decided, and `record` what is known of the outcome
    today, its reward included.
    """

    number: int
    context: Mapping[str, str]
    probabilities: NDArray[np.float64]
    """Of every arm of the problem, as it was played: exact, not an estimate."""
    allowed: NDArray[np.bool_]
    """Which arms of the problem could be chosen."""
    record: Record

    @property
    def arm(self) -> Intervention:
        """What was played."""
        return self.record.arm


@dataclass(frozen=True, eq=False)
class Decide:
    """A decision to evaluate was made here."""

    row: Logged


@dataclass(frozen=True, eq=False)
class Learn:
    """A record became known here; a more complete one comes after the `Retract` of its old self."""

    record: Record


@dataclass(frozen=True, eq=False)
class LearnMany:
    """Many records became known here, past ones that follow no decision."""

    records: RecordBatch


@dataclass(frozen=True, eq=False)
class Retract:
    """A record that was learned before no longer counts from here on."""

    record: Record


Step = Decide | Learn | LearnMany | Retract


def check_logged(row: Logged, problem: Problem) -> None:
    """Raise unless the row can be evaluated, with its number and what is wrong with it."""
    check_record(row.record, problem)
    arms, which = (len(problem.arms),), f"decision {row.number}"
    if np.shape(row.probabilities) != arms or np.shape(row.allowed) != arms:
        raise DowiseError(
            f"{which}: probabilities and allowed must have one entry for each of the {arms[0]} arms"
        )
    total = float(row.probabilities.sum())
    if not (row.probabilities >= 0).all() or not abs(total - 1) < 1e-6:
        raise DowiseError(f"{which}: its probabilities must sum to 1, not {total:g}")
    if (row.probabilities[~row.allowed] > NEVER).any():
        raise DowiseError(f"{which}: an arm that was not allowed has a probability above 0")
    if not row.probabilities[problem.arm_index(row.arm)] > NEVER:
        raise DowiseError(
            f"{which} played {row.arm}, which had probability 0: its probabilities are not those "
            "that it was made with; leave it out"
        )
    if row.record.reward == MISSING:
        raise DowiseError(f"{which} has no {problem.reward} yet: leave it out until it is known")
