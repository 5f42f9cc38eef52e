"""A floor under the probabilities of any policy: (1 − f)π + f·p*.

With probability f the arm is drawn by how likely each is the best, p*, instead of by the policy's
own π. So every arm that may be the best has a chance, and other policies can be evaluated on the
records. p* are the shares of the winners of `SAMPLES` draws, from the policy's own belief; a policy
that has none gets the Beta distributions of `bernoulli-ts` beside it, which learn from the rewards
that it is shown.

Given the draws the probabilities are exact. A policy that has `propensity_samples` gets them unless
told otherwise; where a policy's own probabilities are not known (None), they stay so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.rng import Random, generator
from dowise.belief import Belief
from dowise.policies.base import (
    BayesianPolicy,
    Numbers,
    Policy,
    RecordMask,
    RecordPolicy,
    allowed_arms,
    pick_winner,
)
from dowise.policies.baselines import BernoulliThompsonSampling
from dowise.policies.decision import Decision, Figures, drawn_by_lot
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch

__all__ = ["Floored", "floored"]

SAMPLES = 1000


def floored(
    factory: Callable[..., Policy], problem: Problem, floor: float, options: Mapping[str, Any]
) -> Policy:
    """A fresh policy of this factory with a floor above 0."""
    own = dict(options)
    if "propensity_samples" in inspect.signature(factory).parameters:
        own.setdefault("propensity_samples", SAMPLES)
    policy = factory(problem, **own)
    if isinstance(policy, BayesianPolicy):
        return _FlooredBelief(policy, floor)
    return (_FlooredRecords if isinstance(policy, RecordPolicy) else Floored)(policy, floor)


class Floored:
    """A policy with a floor; what it does not have itself is asked of the policy `within`."""

    def __init__(self, within: Policy, floor: float) -> None:
        self.within, self.floor = within, floor
        self.problem = within.problem
        self._shown = 0
        has_belief = isinstance(getattr(within, "belief", None), Belief)
        has_own = has_belief or isinstance(within, BernoulliThompsonSampling)
        self._rewards = None if has_own else BernoulliThompsonSampling(self.problem)
        """What tells p* where the policy has nothing that does."""

    def __getattr__(self, name: str) -> Any:
        # What is not there yet, as when it is unpickled; and what would go round the floor.
        if name.startswith("_") or name in ("within", "decide_many", "compiled_loop"):
            raise AttributeError(name)
        return getattr(self.within, name)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """As the policy decides, or with the floor's probability what may be the best."""
        problem, source = self.problem, generator(rng)
        arms = allowed_arms(problem, allowed)
        some = None if allowed is None else [problem.arms[a] for a in arms.tolist()]
        own = self.within.decide(context, source, some)
        arm, best = self._thompson(problem.context_codes(context), arms, source)
        by_floor = source.random() < self.floor
        probabilities = None
        if own.probabilities is not None:
            probabilities = (1 - self.floor) * own.probabilities + self.floor * best
        workings = _Workings(self.floor, best[arm], own, by_floor)
        chosen = problem.arms[arm] if by_floor else own.arm
        figures = Figures({"floor": best}, workings)
        return Decision(chosen, probabilities, workings, figures, own.context)

    def _thompson(
        self, codes: tuple[int, ...], arms: NDArray[np.int64], source: np.random.Generator
    ) -> tuple[int, NDArray[np.float64]]:
        """The winner of one of the draws, and the shares of all: p*."""
        problem, teller = self.problem, self._rewards or self.within
        if isinstance(teller, BernoulliThompsonSampling):
            winners = teller.winners(codes, arms, SAMPLES, source)
        else:
            belief: Belief = teller.belief  # type: ignore[attr-defined]
            draws = belief.posterior.draw(codes, SAMPLES, source)
            if len(arms) < len(problem.arms):
                draws = draws.among(arms)
            winners = draws.winners(problem.payoff)[0]
        picked = pick_winner(problem, arms, winners, source)
        return picked.arm, picked.probabilities

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Show the policy what was seen."""
        number = getattr(self.within, "next_number", self._shown)
        self.within.observe(arm, outcome)
        self._shown += 1
        if self._rewards is not None:
            self._learn_reward(self.problem.record(arm, outcome, number))

    def _learn_reward(self, record: Record) -> None:
        """What the policy takes may lack a reward."""
        if self._rewards is not None and self._rewards.lacks(record) is None:
            self._rewards.learn(record)

    def __repr__(self) -> str:
        return f"<{self.within!r} with floor={self.floor:g}>"


class _FlooredRecords(Floored, RecordPolicy):
    """The same for a policy that learns from records."""

    within: RecordPolicy

    @property
    def next_number(self) -> int:
        return self.within.next_number

    @next_number.setter
    def next_number(self, number: int) -> None:
        self.within.next_number = number

    def learn(self, record: Record) -> None:
        self.within.learn(record)
        self._learn_reward(record)

    def retract(self, record: Record) -> None:
        self.within.retract(record)
        if self._rewards is not None and self._rewards.lacks(record) is None:
            self._rewards.retract(record)

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        self.within.learn_many(records, numbers)
        if self._rewards is not None:
            rows = np.flatnonzero(self._rewards.usable(records, numbers).mask)
            own = None if numbers is None else np.asarray(numbers)[rows]
            self._rewards.learn_many(records.take(rows), own)

    def lacks(self, record: Record) -> str | None:
        return self.within.lacks(record)

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        return self.within.usable(records, numbers)

    def expect(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        self.within.expect(arm, context, times)

    def state(self) -> Mapping[str, object]:
        """That of the policy; with that of the Beta distributions where it has some beside it."""
        own = self.within.state()
        return own if self._rewards is None else {"policy": own, "rewards": self._rewards.state()}

    def fingerprint(self) -> bytes:
        own = self.within.fingerprint()
        if self._rewards is None:
            return own
        return sha256(own + self._rewards.fingerprint()).digest()


class _FlooredBelief(_FlooredRecords, BayesianPolicy):
    """The same for one that has a belief, which stays its own."""

    within: BayesianPolicy

    def __init__(self, within: BayesianPolicy, floor: float) -> None:
        super().__init__(within, floor)
        self.imagines = within.imagines

    def note(self, record: Record, times: int) -> None:
        self.within.note(record, times)

    def began_to_stand_in(self) -> None:
        """The policy within stands in as well, with the belief that was given to this one."""
        self.within = copy(self.within)
        self.within.belief = self.belief
        self.within.began_to_stand_in()

    @property
    def is_quiet(self) -> bool:
        return self.within.is_quiet

    @is_quiet.setter
    def is_quiet(self, quiet: bool) -> None:
        self.within.is_quiet = quiet


class _Workings:
    """The figures and the reason of the policy's own decision, but for what the floor decided."""

    def __init__(self, floor: float, share: float, own: Decision, by_floor: bool) -> None:
        self._floor, self._share, self._own, self._by_floor = floor, share, own, by_floor

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._own.figures)

    def figure(self, name: str) -> Any:
        return self._own.figures[name]

    def reason(self) -> str:
        if not self._by_floor:
            return self._own.reason
        return (
            f"by the floor of {100 * self._floor:.3g} %, which keeps every arm in play: "
            f"{drawn_by_lot(share=self._share)}"
        )
