"""The steps of an experiment once more, with another policy looking on.

At every decision three things are noted before its outcome counts: with which probabilities the log
played, with which the target would have played, and what a model, a belief that has learned what
was known by then, expects of every arm. None of them depends on the arm that was then drawn or on
what came of it. All that the estimates claim rests on this.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dowise._core.rng import stream
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.event import Event
from dowise.experiment.records import unpack
from dowise.experiment.replay import record_of
from dowise.experiment.state import ExperimentState
from dowise.policies import make_policy
from dowise.policies.base import MinimalPolicy, Policy, one_hot
from dowise.policies.registry import policy_factory, real_name
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike
from dowise.problem.record import RecordBatch, check_record

NEVER = 1e-12
"""A probability up to this is 0: it is what rounding leaves of it."""


@dataclass(frozen=True, eq=False)
class LoggedDecision:
    """A decision that counts: who could have been played, with which probability, and what came.

    `context` is what the policy saw when it decided, and `record` what is known of the outcome
    today, its reward included.
    """

    number: int
    context: Mapping[str, str]
    probabilities: NDArray[np.float64]
    """Of every arm of the problem, as it was played: exact, not an estimate."""
    allowed: NDArray[np.bool_]
    """Mask of the arms that could be chosen."""
    record: Record

    @property
    def arm(self) -> Intervention:
        """Arm that was played."""
        return self.record.arm


@dataclass(frozen=True, eq=False)
class Decide:
    """A decision to evaluate was made here."""

    row: LoggedDecision


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


def check_logged(row: LoggedDecision, problem: Problem) -> None:
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


PROPENSITY_SAMPLES = 1000
"""From so many draws a policy that has no formula for its probabilities takes them, unless told."""
_OWN_STREAM = 1  # the decisions themselves were drawn from the streams (number,)
Floats = NDArray[np.float64]
TargetLike = str | ArmLike | Mapping[tuple[str, ...], ArmLike] | MinimalPolicy


class Target(Protocol):
    """Who might have decided: the probability of every arm, from what was known by then."""

    name: str
    not_allowed: int
    """How often its one arm was not allowed, so that the log's own choice stands for it."""

    @property
    def unused(self) -> int:
        """Of how many records of today it could learn nothing."""

    def probabilities(self, row: LoggedDecision) -> Floats:
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
        return PolicyTarget(name, _policy(name, problem, dict(options or {})), seed)
    if isinstance(target, str | Mapping):
        return _rule(target, problem)
    if hasattr(target, "decide"):
        if getattr(target, "problem", None) != problem:
            raise DowiseError(f"the policy {target!r} is for another problem than {problem!r}")
        return PolicyTarget(type(target).__name__, target, seed)
    raise DowiseError(
        f"{target!r} can't be evaluated: give the name of a policy, an arm such as 'do(X=1)', "
        "or a mapping from contexts to arms"
    )


def _policy(name: str, problem: Problem, options: dict[str, Any]) -> MinimalPolicy:
    """One whose probabilities are known wherever it has an option for that."""
    if "propensity_samples" in inspect.signature(policy_factory(name)).parameters:
        options.setdefault("propensity_samples", PROPENSITY_SAMPLES)
    return make_policy(name, problem, **options)


def _rule(target: Any, problem: Problem) -> FixedRuleTarget:
    if isinstance(target, str) or not any(isinstance(key, tuple) for key in target):
        return FixedRuleTarget(problem, problem.arm_index(target))
    arms = {tuple(map(str, key)): problem.arm_index(arm) for key, arm in target.items()}
    return FixedRuleTarget(problem, arms)


class FixedRuleTarget:
    """One arm, or an arm for each context; where it is not allowed, what the log did stands."""

    unused = 0

    def __init__(self, problem: Problem, arms: int | Mapping[tuple[str, ...], int]) -> None:
        self.name = str(problem.arms[arms]) if isinstance(arms, int) else "the rule"
        self.not_allowed = 0
        self._problem, self._arms = problem, arms

    def probabilities(self, row: LoggedDecision) -> Floats:
        """All on its arm."""
        chosen = self._arms if isinstance(self._arms, int) else self._of(row, self._arms)
        if not row.allowed[chosen]:
            self.not_allowed += 1
            return row.probabilities
        return one_hot(self._problem, chosen)

    def _of(self, row: LoggedDecision, arms: Mapping[tuple[str, ...], int]) -> int:
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


class PolicyTarget:
    """A policy that learns from the records of the log as they became known.

    It never sees what its own choices would have brought. What it draws at a decision comes from a
    stream of its own, which has nothing to do with the draw that the log's arm came from. Where it
    does not tell its probabilities, the arm that it draws stands for them, with probability 1.
    """

    def __init__(self, name: str, policy: MinimalPolicy, seed: int) -> None:
        self.name, self.not_allowed = name, 0
        self._policy, self._seed = policy, seed
        self._refused: Counter[tuple[Any, ...]] = Counter()
        self._without = 0  # records among many that lacked what it learns from

    @property
    def unused(self) -> int:
        """Of how many records of today it could learn nothing."""
        return self._refused.total() + self._without

    def probabilities(self, row: LoggedDecision) -> Floats:
        """What it would have played, among the arms that were allowed."""
        problem = self._policy.problem
        allowed = None
        if not row.allowed.all():
            allowed = [problem.arms[i] for i in np.flatnonzero(row.allowed)]
        rng = stream(self._seed, row.number, _OWN_STREAM)
        decision = self._policy.decide(row.context, rng, allowed)
        if decision.probabilities is None:
            return one_hot(problem, problem.arm_index(decision.arm))
        return decision.probabilities

    def learn(self, record: Record) -> None:
        """Unless it lacks what the policy learns from."""
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

    def learn_many(self, records: RecordBatch) -> None:
        """Those that have what the policy learns from."""
        if not isinstance(self._policy, Policy):
            for record in records.each(None):
                self.learn(record)
            return
        usable = self._policy.usable_mask(records).mask
        self._without += int(np.count_nonzero(~usable))
        self._policy.learn_many(records.take(np.flatnonzero(usable)))

    def retract(self, record: Record) -> None:
        """If it was learned."""
        if self._refused[_key(record)]:
            self._refused[_key(record)] -= 1
            return
        if not isinstance(self._policy, Policy):
            raise DowiseError(
                f"{record!r} was corrected, and {self.name} can't forget what it has learned: "
                "only policies with learn and retract can be evaluated here"
            )
        self._policy.retract(record)


def _key(record: Record) -> tuple[Any, ...]:
    return record.number, record.arm, record.codes.tobytes()


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
    model, rows, found, predicted = _Model(belief), list[LoggedDecision](), [], []
    told: set[int | None] = set()  # whose decisions or outcomes were among the steps
    for step in steps:
        if isinstance(step, Learn):
            told.add(step.record.number)
            target.learn(step.record)
            belief.learn(step.record)
            model.forget()
        elif isinstance(step, LearnMany):
            target.learn_many(step.records)
            belief.learn_many(step.records)
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

    def expects(self, row: LoggedDecision) -> Floats:
        problem = self._belief.problem
        codes = problem.context_codes(row.context)
        if codes not in self._known:
            means = self._belief.mean_distributions(row.context) @ problem.payoff.scaled
            self._known[codes] = np.clip(means, 0, 1)
        return self._known[codes]

    def forget(self) -> None:
        self._known.clear()


class EvaluationLog:
    """The steps of an experiment, in order, under the config that holds now.

    `left_out` counts the decisions that are not evaluated, by the reason, once the steps were gone
    through.
    """

    def __init__(
        self,
        state: ExperimentState,
        events: Iterable[Event],
        columns: Callable[[int], dict[str, Any]],
    ) -> None:
        self.left_out: Counter[str] = Counter()
        self._final, self._events, self._columns = state, events, columns
        self._config = state.config

    def steps(self) -> Iterator[Step]:
        """Fold the journal once more, and say what became known."""
        then, known = ExperimentState(self._final.name), dict[int, Record]()
        for event in self._events:
            read = len(then.log)
            then.apply_all([event])
            if event.kind == "imported":
                batch, _ = unpack(self._columns(event.number), self._config.problem)
                yield LearnMany(batch)
            if event.kind == "asked":
                yield from self._decision(then, event)
            for number in then.log[read:]:
                yield from self._news(then.cases[number], known)

    def _decision(self, then: ExperimentState, event: Event) -> Iterator[Decide]:
        case = self._final.cases[len(then.cases)]
        row = self._row(case, event, then.config)
        if isinstance(row, str):
            self.left_out[row] += 1
        else:
            yield Decide(row)

    def _row(self, case: Case, event: Event, config: ExperimentConfig) -> LoggedDecision | str:
        """A decision that counts, or why it does not."""
        problem = self._config.problem
        if event.is_erased or case.status != "done":
            return "erased" if case.status == "erased" else case.status
        if case.played is not None:
            return "another arm was played"
        then = config.problem
        if (then.arms, then.context) != (problem.arms, problem.context):
            return "made when there were other arms or another context, before a revision"
        says = event.payload
        if says["probabilities"] is None:
            return "its probabilities are not known"
        record = record_of(case, ExperimentConfig(problem, config.policy, {}))
        if isinstance(record, str) or case.values.get(problem.reward) is None:
            return "the reward is missing"
        allowed = np.ones(len(problem.arms), dtype=bool)
        if says["allowed"] is not None:
            allowed[:] = False
            allowed[says["allowed"]] = True
        chances = np.array(says["probabilities"], dtype=float)
        return LoggedDecision(case.id, says["context"], chances, allowed, record)

    def _news(self, case: Case, known: dict[int, Record]) -> Iterator[Learn | Retract]:
        record = record_of(case, self._config) if case.values else ""
        if case.id in known:
            yield Retract(known.pop(case.id))
        if isinstance(record, Record):
            known[case.id] = record
            yield Learn(record)
