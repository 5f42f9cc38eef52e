"""Replay of the steps of an experiment with another policy, the target.

At every decision three things are noted before its outcome is learned: the probabilities with which
the log played, those with which the target would have played, and the rewards that a model (a
belief that has learned what was known by then) expects of every arm. None of them depends on the
arm that was then drawn, or on its outcome. The guarantees of the estimates rest on this.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dowise._core.rng import stream
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.config import PROPENSITY_SAMPLES, ExperimentConfig
from dowise.experiment.event import Event
from dowise.experiment.record_columns import unpack
from dowise.experiment.replay import record_of
from dowise.experiment.state import ExperimentState
from dowise.policies import make_policy
from dowise.policies.base import MinimalPolicy, Policy, one_hot
from dowise.policies.registry import policy_factory, resolve_policy
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike
from dowise.problem.record import RecordBatch, check_record

ROUNDING = 1e-12
"""Probabilities up to this are rounding errors, and count as 0."""
_TARGET_STREAM = 1  # the decisions themselves were drawn from the streams (number,)

TargetLike = str | ArmLike | Mapping[tuple[str, ...], ArmLike] | MinimalPolicy


@dataclass(frozen=True, eq=False)
class LoggedDecision:
    """A decision to evaluate: its context, the probabilities of all arms, and its outcome."""

    number: int
    context: Mapping[str, str]
    """The context that the policy saw when it decided."""
    probabilities: FloatArray
    """Exact probability of every arm of the problem."""
    allowed: BoolArray
    """Mask of the arms that could be chosen."""
    record: Record
    """The outcome as it is known today, with its reward."""

    @property
    def arm(self) -> Intervention:
        """Arm that was played."""
        return self.record.arm


@dataclass(frozen=True, eq=False)
class Decide:
    """Step: a decision to evaluate was made."""

    row: LoggedDecision


@dataclass(frozen=True, eq=False)
class Learn:
    """Step: a record became known; a more complete one follows the `Retract` of the old one."""

    record: Record


@dataclass(frozen=True, eq=False)
class LearnMany:
    """Step: records that follow no decision became known together."""

    records: RecordBatch


@dataclass(frozen=True, eq=False)
class Retract:
    """Step: a record that was learned before no longer counts."""

    record: Record


Step = Decide | Learn | LearnMany | Retract


class NothingToEvaluateError(DowiseError):
    """No decision has what an evaluation needs."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Arrays with a row for every decision: (decisions, arms), or (decisions,) for what was played.

    Rewards and predictions are scaled: the worst value is 0 and the best 1. They are gross: the
    costs of arms are known, so they are subtracted in the end and widen no interval.
    """

    numbers: IntArray
    target: FloatArray
    """π_t(a): probability with which the target would have played each arm."""
    logged: FloatArray
    """e_t(a): probability with which it was played; exactly 0 if it could not be."""
    predictions: FloatArray
    """m_t(a): reward that the model expected of each arm."""
    arms: IntArray
    rewards: FloatArray
    costs: FloatArray
    """c(a): cost of each arm, on the same scale; the same in every row."""

    @classmethod
    def empty(cls, arms: int) -> Replay:
        """Return a replay without decisions."""
        table, column = np.zeros((0, arms)), np.zeros(0, dtype=np.int64)
        return cls(column, table, table, table, column, np.zeros(0), table)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice) -> Replay:
        """Return some of the decisions."""
        return replace(self, **{name: column[rows] for name, column in vars(self).items()})

    @property
    def rows(self) -> IntArray:
        """Indices of the decisions, to select entries with `arms`."""
        return np.arange(len(self))

    def cost_of(self, target: FloatArray) -> float:
        """Return (1/T) Σ_t Σ_a q_t(a) c(a): the cost per decision of playing so."""
        return float((target * self.costs).sum()) / len(self)

    @property
    def unsupported(self) -> float:
        """(1/T) Σ_t Σ_a π_t(a) 1[e_t(a) = 0]: share of the target's choices with probability 0."""
        return float(self.target[self.logged == 0].sum()) / len(self)


def replay(problem: Problem, steps: Iterable[Step], target: Target, belief: Belief) -> Replay:
    """Go through the steps; `belief` is the model, and learns from them as the target does."""
    rows: list[LoggedDecision] = []
    probabilities: list[FloatArray] = []
    predictions: list[FloatArray] = []
    numbers: set[int | None] = set()  # of decisions that were made or learned so far
    by_context: dict[tuple[int, ...], FloatArray] = {}  # predictions since the last change
    for step in steps:
        if isinstance(step, Decide):
            row = step.row
            _check_logged(row, problem)
            if row.number in numbers:
                raise DowiseError(
                    f"decision {row.number} comes twice, or after its outcome: pass each decision "
                    "once, and the steps in the order in which they happened"
                )
            numbers.add(row.number)
            codes = problem.context_codes(row.context)
            if codes not in by_context:
                means = belief.mean_distributions(row.context) @ problem.payoff.scaled
                by_context[codes] = np.clip(means, 0, 1)
            rows.append(row)
            probabilities.append(target.probabilities(row))
            predictions.append(by_context[codes])
            continue
        by_context.clear()
        if isinstance(step, Learn):
            numbers.add(step.record.number)
            target.learn(step.record)
            belief.learn(step.record)
        elif isinstance(step, LearnMany):
            target.learn_many(step.records)
            belief.learn_many(step.records)
        elif isinstance(step, Retract):
            target.retract(step.record)
            belief.retract(step.record)
        else:
            raise DowiseError(
                f"{step!r} is not a step (expected Decide, Learn, LearnMany or Retract)",
                code="invalid-type",
            )
    if not rows:
        raise NothingToEvaluateError("there is no decision to evaluate")
    return Replay(
        numbers=np.array([row.number for row in rows]),
        target=_without_rounding(probabilities),
        logged=_without_rounding([row.probabilities for row in rows]),
        predictions=np.array(predictions),
        arms=np.array([problem.arm_index(row.arm) for row in rows]),
        rewards=problem.payoff.scaled[[row.record.reward for row in rows]],
        costs=np.broadcast_to(problem.payoff.scaled_costs, (len(rows), len(problem.arms))),
    )


def _check_logged(row: LoggedDecision, problem: Problem) -> None:
    """Raise `DowiseError` unless the row can be evaluated."""
    check_record(row.record, problem)
    shape, name = (len(problem.arms),), f"decision {row.number}"
    if np.shape(row.probabilities) != shape or np.shape(row.allowed) != shape:
        raise DowiseError(
            f"{name}: probabilities and allowed must have one entry for each of the {shape[0]} "
            "arms",
            code="invalid-shape",
        )
    total = float(row.probabilities.sum())
    if not (row.probabilities >= 0).all() or not abs(total - 1) < 1e-6:
        raise DowiseError(f"{name}: its probabilities must sum to 1, not {total:g}")
    if (row.probabilities[~row.allowed] > ROUNDING).any():
        raise DowiseError(f"{name}: an arm that was not allowed has a probability above 0")
    if not row.probabilities[problem.arm_index(row.arm)] > ROUNDING:
        raise DowiseError(
            f"{name} played {row.arm}, which had probability 0, so its probabilities are wrong: "
            "leave it out"
        )
    if row.record.reward == MISSING:
        raise DowiseError(
            f"{name} has no {problem.reward} yet: leave it out until it is known",
            code="missing-value",
        )


def _without_rounding(probabilities: list[FloatArray]) -> FloatArray:
    """Stack probabilities, and set to 0 those that are rounding errors."""
    stacked = np.array(probabilities, dtype=np.float64)
    stacked[stacked <= ROUNDING] = 0.0
    return stacked


# -- targets --------------------------------------------------------------------------------------


class Target:
    """A policy to evaluate; one that learns overrides `learn`, `learn_many` and `retract`."""

    not_allowed = 0
    """Number of decisions for which its only arm was not allowed; it then does what was done."""
    unused = 0
    """Number of records, among those that count today, that it could not learn from."""

    def __init__(self, name: str) -> None:
        self.name = name

    def probabilities(self, row: LoggedDecision) -> FloatArray:
        """Return the probability with which it would have played each arm, at that time."""
        raise NotImplementedError

    def learn(self, record: Record) -> None:
        """Learn a record."""

    def learn_many(self, records: RecordBatch) -> None:
        """Learn many records."""

    def retract(self, record: Record) -> None:
        """Forget a record."""


def as_target(
    target: TargetLike, problem: Problem, options: Mapping[str, Any] | None = None, seed: int = 0
) -> Target:
    """Return the target for a policy's name with its options, a fresh policy, an arm, or a rule.

    A rule maps contexts, tuples of labels in the order of `problem.context`, to arms, as
    `Environment.optimal_map` does.
    """
    is_name = isinstance(target, str) and not target.strip().startswith("do(")
    if options and not is_name:
        raise DowiseError(
            f"options={dict(options)!r} are for a policy that is passed by its name",
            code="unused-option",
        )
    if is_name:
        name, options = resolve_policy(str(target), problem, options)
        if "propensity_samples" in inspect.signature(policy_factory(name)).parameters:
            options.setdefault("propensity_samples", PROPENSITY_SAMPLES)
        return PolicyTarget(name, make_policy(name, problem, **options), seed)
    if isinstance(target, str):
        return FixedRuleTarget(problem, problem.arm_index(target))
    if isinstance(target, Mapping):
        rule: Mapping[Any, Any] = target
        if not any(isinstance(key, tuple) for key in rule):  # an arm
            return FixedRuleTarget(problem, problem.arm_index(rule))
        arms = {tuple(map(str, key)): problem.arm_index(arm) for key, arm in rule.items()}
        return FixedRuleTarget(problem, arms)
    if hasattr(target, "decide"):
        if getattr(target, "problem", None) != problem:
            raise DowiseError(
                f"the policy {target!r} is for another problem than {problem!r}",
                code="wrong-problem",
            )
        return PolicyTarget(type(target).__name__, target, seed)
    raise DowiseError(
        f"{target!r} can't be evaluated (expected the name of a policy, an arm such as 'do(X=1)', "
        "or a mapping from contexts to arms)",
        code="invalid-type",
    )


class FixedRuleTarget(Target):
    """An arm, or an arm for each context; where it is not allowed, the log's choice is assumed."""

    def __init__(self, problem: Problem, arms: int | Mapping[tuple[str, ...], int]) -> None:
        super().__init__(str(problem.arms[arms]) if isinstance(arms, int) else "the rule")
        self._problem, self._arms = problem, arms

    def probabilities(self, row: LoggedDecision) -> FloatArray:
        """Return 1 for its arm and 0 for the others."""
        arm = self._arms if isinstance(self._arms, int) else self._look_up(row, self._arms)
        if not row.allowed[arm]:
            self.not_allowed += 1
            return row.probabilities
        return one_hot(self._problem, arm)

    def _look_up(self, row: LoggedDecision, arms: Mapping[tuple[str, ...], int]) -> int:
        codes = self._problem.context_codes(row.context)
        labels = tuple(self._problem.context_labels(codes).values())
        if labels not in arms:
            raise DowiseError(
                f"the rule has no arm for the context {labels!r} of decision {row.number}: add one",
                code="missing-value",
            )
        return arms[labels]


class PolicyTarget(Target):
    """A policy that learns from the records of the log as they became known.

    It never sees the outcomes of its own choices. It draws from a stream of its own, independent of
    the draw of the log's arm. If it has no probabilities, the arm that it draws has probability 1.
    """

    def __init__(self, name: str, policy: MinimalPolicy, seed: int) -> None:
        super().__init__(name)
        self._policy, self._seed = policy, seed
        self._refused: Counter[tuple[Any, ...]] = Counter()  # single records, to retract them

    def probabilities(self, row: LoggedDecision) -> FloatArray:
        """Return the probability with which it would have played each allowed arm."""
        problem = self._policy.problem
        allowed = None
        if not row.allowed.all():
            allowed = [problem.arms[i] for i in np.flatnonzero(row.allowed)]
        rng = stream(self._seed, row.number, _TARGET_STREAM)
        decision = self._policy.decide(row.context, rng, allowed)
        if decision.probabilities is None:
            return one_hot(problem, problem.arm_index(decision.arm))
        return decision.probabilities

    def learn(self, record: Record) -> None:
        """Learn a record, unless it lacks what the policy learns from."""
        try:
            if isinstance(self._policy, Policy):
                self._policy.learn(record)
                return
            if record.reward != MISSING:
                self._policy.observe(record.arm, record.labels)
                return
        except DowiseError:
            pass
        self._refused[_key(record)] += 1
        self.unused += 1

    def learn_many(self, records: RecordBatch) -> None:
        """Learn the records that have what the policy learns from."""
        if not isinstance(self._policy, Policy):
            for record in records.each(None):
                self.learn(record)
            return
        usable = self._policy.usable_mask(records).mask
        self.unused += int(np.count_nonzero(~usable))
        self._policy.learn_many(records.take(np.flatnonzero(usable)))

    def retract(self, record: Record) -> None:
        """Forget a record, if it was learned."""
        if self._refused[_key(record)]:
            self._refused[_key(record)] -= 1
            self.unused -= 1
            return
        if not isinstance(self._policy, Policy):
            raise DowiseError(
                f"{record!r} was corrected, and {self.name} can't forget what it has learned: "
                "only policies with learn and retract can be evaluated on this log",
                code="invalid-policy",
            )
        self._policy.retract(record)


def _key(record: Record) -> tuple[Any, ...]:
    return record.number, record.arm, record.codes.tobytes()


# -- steps of an experiment -----------------------------------------------------------------------


class EvaluationLog:
    """The steps of an experiment, in order, under its present configuration.

    `left_out` counts the decisions that can't be evaluated by reason, after all steps were read.
    """

    def __init__(
        self,
        state: ExperimentState,
        events: Iterable[Event],
        columns: Callable[[int], dict[str, Any]],
    ) -> None:
        self.left_out: Counter[str] = Counter()
        self._final, self._events, self._columns = state, events, columns

    def steps(self) -> Iterator[Step]:
        """Fold the journal again, and yield what was decided and what became known."""
        config = self._final.config
        then, learned = ExperimentState(self._final.name), dict[int, Record]()
        for event in self._events:
            position = len(then.log)
            then.apply_all([event])
            if event.kind == "imported":
                batch, _ = unpack(self._columns(event.number), config.problem)
                yield LearnMany(batch)
            if event.kind == "asked":
                row = self._row(self._final.cases[len(then.cases)], event, then.config)
                if isinstance(row, str):
                    self.left_out[row] += 1
                else:
                    yield Decide(row)
            for number in then.log[position:]:
                if number in learned:
                    yield Retract(learned.pop(number))
                case = then.cases[number]
                record = record_of(case, config) if case.values else ""
                if isinstance(record, Record):
                    learned[number] = record
                    yield Learn(record)

    def _row(self, case: Case, event: Event, config: ExperimentConfig) -> LoggedDecision | str:
        """Return a decision to evaluate, or the reason why it can't be."""
        problem = self._final.config.problem
        if event.is_erased or case.status != "done":
            return case.status
        if case.played is not None:
            return "another arm was played"
        then = config.problem
        if (then.arms, then.context) != (problem.arms, problem.context):
            return "made when there were other arms or another context, before a revision"
        payload = event.payload
        if payload["probabilities"] is None:
            return "its probabilities are not known"
        # Restrictions are in the probabilities, so restricted decisions count in any case.
        record = record_of(case, ExperimentConfig(problem, config.policy, {}))
        if isinstance(record, str) or case.values.get(problem.reward) is None:
            return "the reward is missing"
        allowed = np.ones(len(problem.arms), dtype=bool)
        if payload["allowed"] is not None:
            allowed[:] = False
            allowed[payload["allowed"]] = True
        chances = np.array(payload["probabilities"], dtype=float)
        return LoggedDecision(case.id, payload["context"], chances, allowed, record)
