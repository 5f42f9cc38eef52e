"""What every policy can do, and the blocks that the Bayesian ones are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from numbers import Integral
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.belief.prior import Prior
from dowise.belief.randomness import Random
from dowise.belief.rewards import Context
from dowise.errors import DowiseError
from dowise.policies.decision import Decision
from dowise.problem import Problem
from dowise.problem.problem import ArmLike
from dowise.problem.values import MISSING, as_mapping

__all__ = [
    "BayesianPolicy",
    "Policy",
    "allowed_arms",
    "checked_number",
    "checked_propensity_samples",
    "estimated_probabilities",
]

# What is left where hidden common causes rule the Bayesian policies out.
WITHOUT_POSTERIOR = ("ucb", "kl-ucb", "bernoulli-ts", "z2-ts", "z2-kl-ucb", "random")


class Policy(Protocol):
    """Decides, then learns. `decide` changes nothing: with the same seed it repeats itself."""

    problem: Problem

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Choose an arm for this context, among the allowed ones if any are named."""
        ...

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn what was seen after the arm was played, the context included."""
        ...


class BayesianPolicy:
    """A policy whose knowledge is a `Belief`, so that the graph must have no bidirected edge."""

    def __init__(self, problem: Problem, prior: Prior = 1.0) -> None:
        self.problem = problem
        try:
            self.belief = Belief(problem, prior)
        except DowiseError as error:
            if not isinstance(problem, Problem) or not problem.graph.bidirected_edges:
                raise
            raise DowiseError(
                f"{error}. Policies that need no posterior over CPTs do apply: "
                f"{', '.join(WITHOUT_POSTERIOR)}"
            ) from None

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn from all variables that were seen; the context must be among them."""
        for name in self.problem.context:
            if self.problem.code(name, as_mapping(outcome, "an outcome").get(name)) == MISSING:
                raise DowiseError(
                    f"the outcome has no value for {name}: put the context in it as well"
                )
        self.belief.update(arm, outcome)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.problem!r}>"


def allowed_arms(problem: Problem, allowed: Iterable[ArmLike] | None) -> NDArray[np.int64]:
    """The positions of the allowed arms, rising; all of them where `allowed` is None."""
    if allowed is None:
        return np.arange(len(problem.arms))
    if isinstance(allowed, str | Mapping) or not isinstance(allowed, Iterable):
        raise DowiseError(f"allowed={allowed!r}: give a list of arms")
    positions = sorted({problem.arm_index(arm) for arm in allowed})
    if not positions:
        raise DowiseError("allowed is empty: allow at least one arm")
    return np.array(positions)


def estimated_probabilities(
    problem: Problem, arms: NDArray[np.int64], winners: NDArray[np.int64], chosen: int
) -> NDArray[np.float64]:
    """How often each arm wins among draws: `winners` are places in `arms`, those allowed.

    The draw that chose an arm is counted too, so what was played never has probability 0.
    """
    counts = np.zeros(len(problem.arms))
    counts[arms] = np.bincount(winners, minlength=len(arms))
    counts[chosen] += 1
    return counts / (len(winners) + 1)


def checked_propensity_samples(number: int) -> int:
    """How many draws estimate the probabilities of a policy that has no formula for them."""
    return checked_number("propensity_samples", number, 0)


def checked_number(name: str, number: int, least: int, most: float = inf) -> int:
    """A whole number within limits, as an int; NumPy's are welcome."""
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise DowiseError(f"{name}={number!r} must be a whole number, {least} or more")
    if number > most:
        raise DowiseError(f"{name}={number!r} must be at most {most:,}")
    return int(number)
