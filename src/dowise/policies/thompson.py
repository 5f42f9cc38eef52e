"""Thompson Sampling for causal bandits: Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Iterable

from dowise.belief.prior import Prior
from dowise.belief.randomness import Random, generator
from dowise.belief.rewards import Context
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import (
    BayesianPolicy,
    allowed_arms,
    checked_propensity_samples,
    estimated_probabilities,
)
from dowise.problem import Problem
from dowise.problem.problem import ArmLike

__all__ = ["ThompsonSampling"]


class ThompsonSampling(BayesianPolicy):
    """Draw CPTs θ from the posterior, play argmax_a E[Y_a | θ, c].

    So each arm is played with the probability that it is the best. That probability has no closed
    form: `propensity_samples` draws, and the one that decided, estimate it for
    `decision.probabilities`, to be logged with its size; with 0, the default, they are None.
    Bayesian regret is at
    most Γ√(H(Π*)T) (Theorem 1), and Γ ≤ √(K/2) (Corollary 1).

    Applies when the graph has no bidirected edge and every variable but those that the arm set is
    seen afterwards.
    """

    def __init__(self, problem: Problem, prior: Prior = 1.0, propensity_samples: int = 0) -> None:
        super().__init__(problem, prior)
        self.propensity_samples = checked_propensity_samples(propensity_samples)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what one fresh draw from the posterior says is best."""
        source, arms = generator(rng), allowed_arms(self.problem, allowed)
        rewards = self.belief.draw_rewards(context, 1, source)[:, 0]
        chosen = int(rewards.argmax() if allowed is None else arms[rewards[arms].argmax()])
        reason = "the best arm under one draw from the posterior"
        if not self.propensity_samples:
            return Decision(self.problem.arms[chosen], None, reason)
        drawn = self.belief.draw_rewards(context, self.propensity_samples, source)[arms]
        probabilities = estimated_probabilities(self.problem, arms, drawn.argmax(axis=0), chosen)
        reason += (
            f", which picks it with probability {probabilities[chosen]:.2f} "
            f"(estimated from {self.propensity_samples:,} draws)"
        )
        figures = Figures({"best": probabilities, "samples": self.propensity_samples}, {})
        return Decision(self.problem.arms[chosen], probabilities, reason, figures)
