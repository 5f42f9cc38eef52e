"""Whom to evaluate: a policy that learns from the log, one arm, or an arm for each context."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.experiment.evaluation.log import Logged
from dowise.policies import Policy, make_policy
from dowise.policies.best import real_name
from dowise.policies.policy import RecordPolicy, certainly
from dowise.policies.registry import policy_factory
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike
from dowise.problem.record import RecordBatch
from dowise.randomness import stream

__all__ = ["Learner", "Rule", "Target", "TargetLike", "as_target"]

PROPENSITY_SAMPLES = 1000
"""From so many draws a policy that has no formula for its probabilities takes them, unless told."""
_OWN_STREAM = 1  # the decisions themselves were drawn from the streams (number,)
Floats = NDArray[np.float64]
TargetLike = str | ArmLike | Mapping[tuple[str, ...], ArmLike] | Policy


class Target(Protocol):
    """Who might have decided: the probability of every arm, from what was known by then."""

    name: str
    not_allowed: int
    """How often its one arm was not allowed, so that the log's own choice stands for it."""

    @property
    def unused(self) -> int:
        """Of how many records of today it could learn nothing."""

    def probabilities(self, row: Logged) -> Floats:
        """With which probability it would have played each arm at this decision."""

    def learn(self, record: Record) -> None:
        """One record more."""

    def learn_many(self, records: RecordBatch) -> None:
        """Many records more."""

    def retract(self, record: Record) -> None:
        """One record less."""


def as_target(
    target: TargetLike, problem: Problem, options: Mapping[str, Any] | None = None, seed: int = 0
) -> Target:
    """A target from a policy's name with its options, a fresh policy, an arm, or a rule.

    A rule maps contexts, tuples of labels in the order of `problem.context`, to arms, as
    `Environment.optimal_map` does.
    """
    is_name = isinstance(target, str) and not target.strip().startswith("do(")
    if options and not is_name:
        raise DowiseError(f"options={dict(options)!r} are for a policy that is given by its name")
    if is_name:
        name = real_name(str(target), problem)
        return Learner(name, _policy(name, problem, dict(options or {})), seed)
    if isinstance(target, str | Mapping):
        return _rule(target, problem)
    if hasattr(target, "decide"):
        if getattr(target, "problem", None) != problem:
            raise DowiseError(f"the policy {target!r} is for another problem than {problem!r}")
        return Learner(type(target).__name__, target, seed)
    raise DowiseError(
        f"{target!r} can't be evaluated: give the name of a policy, an arm such as 'do(X=1)', "
        "or a mapping from contexts to arms"
    )


def _policy(name: str, problem: Problem, options: dict[str, Any]) -> Policy:
    """One whose probabilities are known wherever it has an option for that."""
    if "propensity_samples" in inspect.signature(policy_factory(name)).parameters:
        options.setdefault("propensity_samples", PROPENSITY_SAMPLES)
    return make_policy(name, problem, **options)


def _rule(target: Any, problem: Problem) -> Rule:
    if isinstance(target, str) or not any(isinstance(key, tuple) for key in target):
        return Rule(problem, problem.arm_index(target))
    arms = {tuple(map(str, key)): problem.arm_index(arm) for key, arm in target.items()}
    return Rule(problem, arms)


class Rule:
    """One arm, or an arm for each context; where it is not allowed, what the log did stands."""

    unused = 0

    def __init__(self, problem: Problem, arms: int | Mapping[tuple[str, ...], int]) -> None:
        self.name = str(problem.arms[arms]) if isinstance(arms, int) else "the rule"
        self.not_allowed = 0
        self._problem, self._arms = problem, arms

    def probabilities(self, row: Logged) -> Floats:
        """All on its arm."""
        chosen = self._arms if isinstance(self._arms, int) else self._of(row, self._arms)
        if not row.allowed[chosen]:
            self.not_allowed += 1
            return row.probabilities
        return certainly(self._problem, chosen)

    def _of(self, row: Logged, arms: Mapping[tuple[str, ...], int]) -> int:
        codes = self._problem.context_codes(row.context)
        labels = tuple(self._problem.context_labels(codes).values())
        if labels not in arms:
            raise DowiseError(
                f"the rule has no arm for the context {labels!r} of decision {row.number}: add one"
            )
        return arms[labels]

    def learn(self, record: Record) -> None:
        """It learns nothing."""

    def learn_many(self, records: RecordBatch) -> None:
        """Nothing from many either."""

    def retract(self, record: Record) -> None:
        """It learned nothing."""


class Learner:
    """A policy that learns from the records of the log as they became known.

    It never sees what its own choices would have brought. What it draws at a decision comes from a
    stream of its own, which has nothing to do with the draw that the log's arm came from. Where it
    does not tell its probabilities, the arm that it draws stands for them, with probability 1.
    """

    def __init__(self, name: str, policy: Policy, seed: int) -> None:
        self.name, self.not_allowed = name, 0
        self._policy, self._seed = policy, seed
        self._refused: Counter[tuple[Any, ...]] = Counter()
        self._without = 0  # records among many that lacked what it learns from

    @property
    def unused(self) -> int:
        """Of how many records of today it could learn nothing."""
        return self._refused.total() + self._without

    def probabilities(self, row: Logged) -> Floats:
        """What it would have played, among the arms that were allowed."""
        problem = self._policy.problem
        allowed = None
        if not row.allowed.all():
            allowed = [problem.arms[i] for i in np.flatnonzero(row.allowed)]
        rng = stream(self._seed, row.number, _OWN_STREAM)
        decision = self._policy.decide(row.context, rng, allowed)
        if decision.probabilities is None:
            return certainly(problem, problem.arm_index(decision.arm))
        return decision.probabilities

    def learn(self, record: Record) -> None:
        """Unless it lacks what the policy learns from."""
        try:
            if isinstance(self._policy, RecordPolicy):
                self._policy.learn(record)
                return
            if record.reward != MISSING:
                self._policy.observe(record.arm, record.labels)
                return
        except DowiseError:
            pass
        self._refused[_key(record)] += 1

    def learn_many(self, records: RecordBatch) -> None:
        """Those that have what the policy learns from."""
        if not isinstance(self._policy, RecordPolicy):
            for record in records.each(None):
                self.learn(record)
            return
        usable = self._policy.usable(records).mask
        self._without += int(np.count_nonzero(~usable))
        self._policy.learn_many(records.take(np.flatnonzero(usable)))

    def retract(self, record: Record) -> None:
        """If it was learned."""
        if self._refused[_key(record)]:
            self._refused[_key(record)] -= 1
            return
        if not isinstance(self._policy, RecordPolicy):
            raise DowiseError(
                f"{record!r} was corrected, and {self.name} can't forget what it has learned: "
                "only policies with learn and retract can be evaluated here"
            )
        self._policy.retract(record)


def _key(record: Record) -> tuple[Any, ...]:
    return record.number, record.arm, record.codes.tobytes()
