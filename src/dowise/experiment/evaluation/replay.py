"""The steps of an experiment once more, with another policy looking on.

At every decision three things are noted before its outcome counts: with which probabilities the log
played, with which the target would have played, and what a model, a belief that has learned what
was known by then, expects of every arm. None of them depends on the arm that was then drawn or on
what came of it. All that the estimates claim rests on this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment.evaluation.log import (
    NEVER,
    Decide,
    Learn,
    LearnMany,
    Logged,
    Retract,
    Step,
    check_logged,
)
from dowise.experiment.evaluation.targets import Target
from dowise.problem import Problem

__all__ = ["NothingToEvaluateError", "Replay", "replay"]

Floats = NDArray[np.float64]


class NothingToEvaluateError(DowiseError):
    """No decision has what an evaluation needs."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Arrays with a row for every decision: over arms, or of what was played.

    Rewards and predictions are scaled: the worst value is 0 and the best 1. They are gross: what
    arms cost is known, and comes off in the end, where it widens no interval.
    """

    numbers: NDArray[np.int64]
    target: Floats
    """π_t(a): with which probability the target would have played each arm."""
    logged: Floats
    """e_t(a): with which it was played; exactly 0 where it could not be."""
    predictions: Floats
    """m_t(a): what the model expected of each arm."""
    arms: NDArray[np.int64]
    rewards: Floats
    costs: Floats | float = 0.0
    """c(a): what each arm costs, on the same scale; the same in every row."""

    @classmethod
    def none(cls, arms: int) -> Replay:
        """One without decisions."""
        rows, counts = np.zeros((0, arms)), np.zeros(0, dtype=np.int64)
        return cls(counts, rows, rows, rows, counts, np.zeros(0))

    def __len__(self) -> int:
        return len(self.numbers)

    def cost_of(self, wanted: Floats) -> float:
        """(1/T) Σ_t Σ_a q_t(a) c(a): what playing so costs, a decision."""
        return float((wanted * self.costs).sum()) / len(self)

    @property
    def unsupported(self) -> float:
        """(1/T) Σ_t Σ_a π_t(a) 1[e_t(a) = 0]: the share of its choices that had probability 0."""
        return float(self.target[self.logged == 0].sum()) / len(self)


def replay(problem: Problem, steps: Iterable[Step], target: Target, belief: Belief) -> Replay:
    """Go through the steps; `belief` is the model and learns from them, as the target does."""
    model, rows, found, predicted = _Model(belief), list[Logged](), [], []
    told: set[int | None] = set()  # whose decisions or outcomes were among the steps
    for step in steps:
        if isinstance(step, Learn):
            told.add(step.record.number)
            target.learn(step.record)
            belief.learn(step.record)
            model.forget()
        elif isinstance(step, LearnMany):
            target.learn_many(step.records)
            belief.posterior.learn_many(step.records)
            model.forget()
        elif isinstance(step, Retract):
            target.retract(step.record)
            belief.retract(step.record)
            model.forget()
        elif isinstance(step, Decide):
            check_logged(step.row, problem)
            _refuse_what_was_told(step.row.number, told)
            rows.append(step.row)
            found.append(target.probabilities(step.row))
            predicted.append(model.expects(step.row))
        else:
            raise DowiseError(f"{step!r} is no step: give Decide, Learn, LearnMany or Retract")
    if not rows:
        raise NothingToEvaluateError("there is no decision to evaluate")
    return Replay(
        np.array([row.number for row in rows]),
        _without_dust(found),
        _without_dust([row.probabilities for row in rows]),
        np.array(predicted),
        np.array([problem.arm_index(row.arm) for row in rows]),
        problem.payoff.scaled[[row.record.reward for row in rows]],
        np.broadcast_to(problem.payoff.scaled_costs, (len(rows), len(problem.arms))),
    )


def _refuse_what_was_told(number: int, told: set[int | None]) -> None:
    """A decision that somebody learned from before it was made would bias everything."""
    if number in told:
        raise DowiseError(
            f"decision {number} comes twice, or its outcome before it: give each decision once, "
            "and the steps in the order in which they happened"
        )
    told.add(number)


def _without_dust(probabilities: list[Floats]) -> Floats:
    """What rounding left above 0 is 0."""
    found = np.array(probabilities, dtype=np.float64)
    found[found <= NEVER] = 0.0
    return found


class _Model:
    """What a belief expects of every arm; worked out once a context until it learns."""

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self._known: dict[tuple[int, ...], Floats] = {}

    def expects(self, row: Logged) -> Floats:
        problem = self._belief.problem
        codes = problem.context_codes(row.context)
        if codes not in self._known:
            means = self._belief.mean_distributions(row.context) @ problem.payoff.scaled
            self._known[codes] = np.clip(means, 0, 1)
        return self._known[codes]

    def forget(self) -> None:
        self._known.clear()
