"""Add a floor to a policy: a probability of sampling by p*, how likely each arm is the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dowise._core.rng import Random, generator
from dowise.policies.base import (
    FLOOR_SAMPLES,
    Choice,
    MinimalPolicy,
    Policy,
    allowed_arms,
    mix_floor,
    pick_winner,
)
from dowise.policies.baselines import BernoulliRewards
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import Decision, DecisionTrace
from dowise.problem.problem import ArmLike, Context


class FloorAdapter:
    """Adapter that adds a floor to a custom policy that implements `decide`.

    p* comes from the policy's belief if it has one, else from the rewards that it observes.
    """

    def __init__(self, inner: MinimalPolicy, floor: float) -> None:
        self.inner, self.problem, self.floor = inner, inner.problem, floor
        self._observed = 0
        self._rewards: BernoulliRewards | None = None
        if isinstance(inner, BayesianPolicy):
            self._knowledge: Any = inner.knowledge
        else:
            self._knowledge = self._rewards = BernoulliRewards(self.problem)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Decide as the policy does, or with the floor's probability by p*."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        names = None if allowed is None else [problem.arms[a] for a in arms.tolist()]
        decision = self.inner.decide(context, source, names)
        trace = DecisionTrace(decision.reason, dict(decision.figures))
        choice = Choice(problem.arm_index(decision.arm), decision.probabilities, trace)
        winners = self._knowledge.winners(codes, arms, FLOOR_SAMPLES, source)
        best = pick_winner(problem, arms, winners, source)
        arm, probabilities, trace = mix_floor(choice, best, self.floor, source)
        return Decision(problem.arms[arm], probabilities, trace, trace, decision.context)

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Let the policy and p* learn from an outcome."""
        self.inner.observe(arm, outcome)
        record = self.problem.record(arm, outcome, self._observed)
        self._observed += 1
        if self._rewards is not None and self._rewards.can_learn(record):
            self._rewards.learn(record)

    def __repr__(self) -> str:
        return f"<{self.inner!r} with floor={self.floor:g}>"


def add_floor(policy: MinimalPolicy, floor: float) -> MinimalPolicy:
    """Return a fresh policy with a floor above 0."""
    if not isinstance(policy, Policy) or type(policy).decide is not Policy.decide:
        return FloorAdapter(policy, floor)
    policy.floor = floor
    if not hasattr(policy.knowledge, "winners"):
        policy._floor_rewards = BernoulliRewards(policy.problem)
    return policy
