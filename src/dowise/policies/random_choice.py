"""Any arm at random: what every other policy should beat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dowise.belief.observe import encode_outcome
from dowise.belief.randomness import Random, generator
from dowise.belief.rewards import Context
from dowise.policies.decision import Decision
from dowise.policies.policy import allowed_arms
from dowise.problem import Problem
from dowise.problem.problem import ArmLike

__all__ = ["RandomChoice"]


class RandomChoice:
    """Each allowed arm with the same probability, whatever was seen: a randomised trial."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Draw one of the allowed arms."""
        self.problem.context_codes(context)  # a bad one is an error here too
        source, arms = generator(rng), allowed_arms(self.problem, allowed)
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[arms] = 1 / len(arms)
        chosen = self.problem.arms[int(arms[source.integers(len(arms))])]
        return Decision(chosen, probabilities, f"drawn at random from {len(arms)} arms")

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Check the outcome, and learn nothing from it."""
        encode_outcome(self.problem, self.problem.intervention(arm), outcome)
