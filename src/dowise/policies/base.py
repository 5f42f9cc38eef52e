"""Policies: knowledge, which learns from records, plus a rule, which chooses an arm.

`Policy.decide` is the same for all policies: validate the context and the allowed arms, choose, mix
in the floor, and build the decision. A policy implements the rule, `choose`. Its knowledge (a
`Belief`, `ArmRewards`, `ArmRecords`) learns and retracts records; what a record must have is
declared once, as `RecordRequirements`.

With a floor f the probabilities are (1 − f)π + f·p*: with probability f the arm is sampled by p*,
how likely each is the best, instead of by the policy's own π. So every arm that may be the best has
a chance, and other policies can be evaluated on the records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from dowise._core.codec import to_json
from dowise._core.rng import Random, generator
from dowise._core.types import FloatArray, IntArray
from dowise._core.validation import check_integer
from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.policies.decision import Decision, DecisionTrace, floor_reason, sampled_reason
from dowise.policies.requirements import Numbers, RecordMask, RecordRequirements
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record, check_same_problem

if TYPE_CHECKING:
    from dowise.belief.arrivals import Arrivals
    from dowise.model.sampler import TrialScript
    from dowise.policies.baselines import BernoulliRewards

_COMPACT: dict[str, Any] = {"sort_keys": True, "separators": (",", ":")}
PAST = 2**32  # numbers from here on belong to imported records, which followed no decision
WARN_AFTER = (10, 100, 1000)  # numbers of records after which unused variables are looked for
FLOOR_SAMPLES = 1000  # posterior draws that p* is estimated from

TrialLoop = Callable[["TrialScript", np.random.Generator], IntArray]
"""Compiled trial: returns the index of the arm of every round."""


# -- knowledge and choices --------------------------------------------------------------------


class Knowledge(Protocol):
    """Knowledge of a policy: a function of its records, not of their order.

    The weight of a graph-free hypothesis is the exception; see `Policy.arrivals`.

    Knowledge that can draw which arm is best also has `winners(codes, arms, samples, rng)`, which
    returns the best of these arms under each draw, as indices into `arms`.
    """

    @property
    def requires(self) -> RecordRequirements:
        """Requirements of a record."""

    def learn(self, record: Record) -> None:
        """Learn from one record that has what is required."""

    def retract(self, record: Record) -> None:
        """Forget one record, as if it had never been learned."""

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Learn from many records that have what is required, with the same result as `learn`."""

    def copy(self) -> Self:
        """Return a copy that learns independently."""

    def state(self) -> Mapping[str, object]:
        """Return everything that was learned, as numbers."""

    def fingerprint(self) -> bytes:
        """Return a digest (SHA-256) of everything that was learned."""


class MinimalPolicy(Protocol):
    """Methods that a custom policy needs at least. `decide` changes nothing."""

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
        """Learn what was observed after the arm was played, the context included."""
        ...


class Choice(NamedTuple):
    """Arm chosen by a rule."""

    arm: int
    """Index among the problem's arms."""
    probabilities: FloatArray | None
    """Probability of each of the problem's arms; None if they are not known."""
    trace: DecisionTrace
    """Reason and figures."""


class PosteriorPick(NamedTuple):
    """Winner of a posterior draw: of a single one, or of one that was picked from several."""

    draw: int
    """Index of the draw."""
    arm: int
    """Index of its winner among the problem's arms."""
    probabilities: FloatArray | None = None
    """Each arm's share of the winners of several draws: given the draws, its exact probability."""
    samples: int = 0
    """Number of draws that probabilities are known from."""

    @property
    def share(self) -> float | None:
        """Probability of the winner, if known."""
        return None if self.probabilities is None else float(self.probabilities[self.arm])

    @property
    def figures(self) -> dict[str, Any]:
        """Figures of a decision: probabilities and number of draws, if known."""
        if self.probabilities is None:
            return {}
        return {"best": self.probabilities, "samples": self.samples}


def pick_winner(
    problem: Problem, arms: IntArray, winners: IntArray, rng: np.random.Generator
) -> PosteriorPick:
    """Pick one of several draws uniformly; `winners` are indices into `arms`.

    Given the draws, the probability of an arm is its share of the winners. On average over the
    draws it is the probability that a single draw would have chosen the arm.
    """
    draw = int(rng.integers(len(winners)))
    shares = np.zeros(len(problem.arms))
    shares[arms] = np.bincount(winners, minlength=len(arms)) / len(winners)
    return PosteriorPick(draw, int(arms[winners[draw]]), shares, len(winners))


def mix_floor(
    choice: Choice, best: PosteriorPick, floor: float, rng: np.random.Generator
) -> Choice:
    """Return the choice with probability 1 − floor, else the arm that was picked by p*."""
    by_floor = rng.random() < floor
    probabilities = choice.probabilities
    if probabilities is not None and best.probabilities is not None:
        probabilities = (1 - floor) * probabilities + floor * best.probabilities
    trace = FloorTrace(choice.trace, floor, best, by_floor)
    return Choice(best.arm if by_floor else choice.arm, probabilities, trace)


class FloorTrace(DecisionTrace):
    """Trace of a rule's choice, and of what the floor changed."""

    def __init__(
        self, inner: DecisionTrace, floor: float, best: PosteriorPick, by_floor: bool
    ) -> None:
        super().__init__(figures={"floor": best.probabilities})
        self._inner, self._floor, self._best, self._by_floor = inner, floor, best, by_floor
        self.lazy = tuple(inner)

    @property
    def reason(self) -> str:
        """Reason of the rule's choice, or of the floor's."""
        if not self._by_floor:
            return self._inner.reason
        return floor_reason(self._floor, sampled_reason(self._best.share))

    def compute(self, name: str) -> Any:
        """Return a figure of the rule's choice."""
        return self._inner[name]


class Policy:
    """Knowledge plus a rule.

    Subclasses implement `choose`. They keep what they learn in their knowledge, or in attributes
    that `on_learned` updates and `state` returns. It must depend on the records that were learned
    and not retracted, not on their order; what depends on their order is made from `arrivals`.
    `decide` changes nothing, and equal seeds give equal decisions.

    Parameters
    ----------
    problem : Problem
        Problem to decide in.
    knowledge : Knowledge, optional
        Object that learns from records.
    requires : RecordRequirements, optional
        Requirements of a record. Defaults to those of the knowledge.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> class First(Policy):
    ...     def choose(self, codes, arms, rng):
    ...         return Choice(int(arms[0]), None, DecisionTrace("the first arm that is allowed"))
    >>> print(First(load_problem("task1")).decide(rng=0, allowed=["do(X=1)"]))
    do(X=1): the first arm that is allowed
    """

    floor = 0.0
    """Probability of sampling by p* instead of by the rule."""
    depends_on_horizon = False
    """True if decisions depend on a horizon."""
    arrivals: Arrivals | None = None
    """Order in which records arrived, for policies that depend on it; others leave it None.

    A live experiment fills it, in the order of its events, before each decision. Neither `learn`
    nor `retract` changes it.
    """
    is_quick = False
    """True if a round takes microseconds, so that simulations use larger jobs."""

    def __init__(
        self,
        problem: Problem,
        knowledge: Knowledge | None = None,
        requires: RecordRequirements | None = None,
    ) -> None:
        self.problem = problem
        self.knowledge = knowledge
        if requires is None:
            requires = RecordRequirements() if knowledge is None else knowledge.requires
        self.requires = requires
        self.next_number = 0
        """Number of the next outcome that `observe` gets."""
        self.records = 0
        """Number of records learned."""
        self._floor_rewards: BernoulliRewards | None = None

    # -- deciding -----------------------------------------------------------------------------

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Choose an arm.

        Parameters
        ----------
        context : mapping, optional
            Value of each context variable.
        rng : int or numpy.random.Generator
            Seed or source of randomness.
        allowed : iterable of arms, optional
            Arms to choose from. Defaults to all.

        Returns
        -------
        Decision

        Raises
        ------
        DowiseError
            If the context, the seed or the allowed arms are invalid.
        """
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        choice = self.choose(codes, arms, source)
        if self.floor:
            choice = self.apply_floor(choice, codes, arms, source)
        arm, probabilities, trace = choice
        labels = problem.context_labels(codes)
        return Decision(problem.arms[arm], probabilities, trace, trace, labels)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose one of these arms.

        Parameters
        ----------
        codes : tuple of int
            Index of each context variable's value in its domain, in the order of names.
        arms : array of int
            Indices of the allowed arms, rising.
        rng : numpy.random.Generator
            Source of randomness.
        """
        raise NotImplementedError(f"{type(self).__name__} has no choose(codes, arms, rng)")

    def apply_floor(
        self, choice: Choice, codes: Codes, arms: IntArray, rng: np.random.Generator
    ) -> Choice:
        """Mix the floor into a choice: draw p*, pick an arm by it, then toss the coin."""
        knowledge: Any = self.knowledge if self._floor_rewards is None else self._floor_rewards
        winners = knowledge.winners(codes, arms, FLOOR_SAMPLES, rng)
        return mix_floor(choice, pick_winner(self.problem, arms, winners, rng), self.floor, rng)

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """Make a decision for each context, before any outcome is known.

        For a problem without context, `contexts` may be the number of decisions. Each decision
        counts those before it as pending (`add_pending`). An invalid context is refused before
        anything is decided. Like `decide`, it changes nothing.
        """
        checked, source = validate_contexts(self.problem, contexts), generator(rng)
        arms = as_list(allowed)
        decisions: list[Decision] = []
        try:
            for context in checked:
                decisions.append(self.decide(context, source, arms))
                self.add_pending(decisions[-1].arm, context, 1)
        finally:
            for context, decision in zip(checked, decisions, strict=False):
                self.add_pending(decision.arm, context, -1)
        return decisions

    def add_pending(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        """Count plays of an arm that have no outcome yet; negative `times` take them back.

        Policies that would otherwise repeat the same arm until they learn something count such
        plays. What is learned does not depend on them. By default they are ignored.
        """

    # -- learning -----------------------------------------------------------------------------

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn what was observed after an arm was played, the context included.

        Parameters
        ----------
        arm : Intervention, mapping or str
            Arm that was played.
        outcome : mapping
            Observed values by variable.
        """
        self.learn(self.problem.record(arm, outcome, self.next_number))
        self.next_number += 1

    def learn(self, record: Record) -> None:
        """Learn from one record. Raises `DowiseError` if it lacks what the policy requires."""
        reason = self.rejection_reason(record)
        if reason is not None:
            raise DowiseError(reason, code="unusable-record")
        if self.knowledge is not None:
            self.knowledge.learn(record)
        if type(self).on_learned is not Policy.on_learned:
            self.on_learned(record, 1)
        if self._floor_rewards is not None and self._floor_rewards.can_learn(record):
            self._floor_rewards.learn(record)
        self.records += 1
        if self.records in WARN_AFTER:
            self._warn_of_unused()

    def retract(self, record: Record) -> None:
        """Forget one record, as if it had never been learned."""
        check_record(record, self.problem)
        reason = self.requires.rejection_reason(record)
        if reason is not None:
            raise DowiseError(reason, code="unusable-record")
        if self.knowledge is not None:
            self.knowledge.retract(record)
        self.on_learned(record, -1)
        if self._floor_rewards is not None and self._floor_rewards.can_learn(record):
            self._floor_rewards.retract(record)
        self.records -= 1

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Learn from many records, with the same result as one by one.

        Parameters
        ----------
        records : RecordBatch
            Records of this problem.
        numbers : array of int, optional
            Numbers of their decisions.

        Raises
        ------
        DowiseError
            If the policy can't learn from one of them; then nothing is learned. `usable_mask` tells
            which records it can learn from.
        """
        self.usable_mask(records, numbers).check_all()
        if type(self).learn is not Policy.learn:
            for record in records.each(numbers):
                self.learn(record)
            return
        if self.knowledge is not None:
            self.knowledge.learn_many(records, numbers)
        self.on_learned_many(records, numbers)
        if self._floor_rewards is not None:
            rows = np.flatnonzero(self._floor_rewards.requires.mask(records, numbers).mask)
            usable_numbers = None if numbers is None else np.asarray(numbers)[rows]
            self._floor_rewards.learn_many(records.take(rows), usable_numbers)
        before, self.records = self.records, self.records + len(records)
        if any(before < size <= self.records for size in WARN_AFTER):
            self._warn_of_unused()

    def on_learned(self, record: Record, times: int) -> None:
        """Update what is not in the knowledge: a record was learned (1) or retracted (−1)."""

    def on_learned_many(self, records: RecordBatch, numbers: Numbers) -> None:
        """Update what is not in the knowledge after many records were learned."""
        if type(self).on_learned is not Policy.on_learned:
            for record in records.each(numbers):
                self.on_learned(record, 1)

    def _warn_of_unused(self) -> None:
        """Warn of variables that records teach nothing about."""

    def rejection_reason(self, record: Record) -> str | None:
        """Return why `learn` would refuse a record; None if it would take it."""
        if getattr(record, "problem", None) is not self.problem:
            check_record(record, self.problem)
        return self.requires.rejection_reason(record)

    def usable_mask(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Return which records `learn_many` would take, with reasons for the rest."""
        check_same_problem(records, self.problem)
        if numbers is not None and len(numbers) != len(records):
            raise DowiseError(
                f"{len(numbers):,} numbers for {len(records):,} records: pass one number per "
                "record, or none",
                code="invalid-number",
            )
        return self.requires.mask(records, numbers)

    # -- identity -----------------------------------------------------------------------------

    def state(self) -> Mapping[str, object]:
        """Return everything that was learned, as numbers."""
        learned = {} if self.knowledge is None else self.knowledge.state()
        if self._floor_rewards is None:
            return learned
        return {"policy": learned, "rewards": self._floor_rewards.state()}

    def fingerprint(self) -> bytes:
        """Return a digest (SHA-256) of what was learned, whatever the order of the records.

        The digests of built-in policies are the same on every machine.
        """
        is_custom = type(self).state is not Policy.state
        if self.knowledge is None or is_custom:
            text = json.dumps(to_json(self.state() if is_custom else {}), **_COMPACT)
            digest = sha256(text.encode()).digest()
        else:
            digest = self.knowledge.fingerprint()
        if self._floor_rewards is None:
            return digest
        return sha256(digest + self._floor_rewards.fingerprint()).digest()

    def copy(self) -> Self:
        """Return a policy that learns independently of this one.

        Policies whose `on_learned` changes containers in place copy those as well.
        """
        copied = copy(self)
        copied.knowledge = None if self.knowledge is None else self.knowledge.copy()
        floor_rewards = self._floor_rewards
        copied._floor_rewards = None if floor_rewards is None else floor_rewards.copy()
        return copied

    def compiled_trial(self) -> TrialLoop | None:
        """Return a function that plays a whole trial as `decide` and `observe` would, or None.

        The function leaves the policy in the same state as stepping through the trial.
        """
        return None

    def __repr__(self) -> str:
        floor = f" with floor={self.floor:g}" if self.floor else ""
        return f"<{type(self).__name__} on {self.problem!r}{floor}>"


# -- helpers of rules -------------------------------------------------------------------------


def allowed_arms(problem: Problem, allowed: Iterable[ArmLike] | None) -> IntArray:
    """Return the indices of the allowed arms, rising; all of them if `allowed` is None.

    Parameters
    ----------
    problem : Problem
        Problem with the arms.
    allowed : iterable of arms, optional
        Arms, in any form that the problem understands.

    Raises
    ------
    DowiseError
        If `allowed` is not a list, is empty, or names something that is not an arm.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> allowed_arms(load_problem("task1"), ["do(X=1)", "do()"]).tolist()
    [0, 2]
    """
    if allowed is None:
        return np.arange(len(problem.arms))
    if isinstance(allowed, str | Mapping) or not isinstance(allowed, Iterable):
        raise DowiseError(f"allowed={allowed!r} must be a list of arms", code="invalid-type")
    positions = sorted({problem.arm_index(arm) for arm in allowed})
    if not positions:
        raise DowiseError("allowed is empty: allow at least one arm", code="missing-value")
    return np.array(positions)


def as_list(allowed: Iterable[ArmLike] | None) -> Iterable[ArmLike] | None:
    """Return allowed arms as a list; anything else is left for `decide` to refuse."""
    is_list = isinstance(allowed, Iterable) and not isinstance(allowed, str | Mapping)
    return list(allowed) if is_list and allowed is not None else allowed


def validate_contexts(problem: Problem, contexts: int | Iterable[Context]) -> list[dict[str, str]]:
    """Return the labels of each context; `contexts` may be a number if there is no context."""
    if isinstance(contexts, bool) or not isinstance(contexts, Iterable):
        count = check_integer("contexts", contexts, 1)
        if problem.context:
            raise DowiseError(
                f"contexts={count}: pass a list with one context per decision, because this "
                f"problem has a context ({', '.join(problem.context)})",
                code="invalid-context",
            )
        return [{} for _ in range(count)]
    if isinstance(contexts, str | Mapping):
        raise DowiseError("contexts must be a list, one per decision", code="invalid-context")
    checked = [problem.context_labels(problem.context_codes(context)) for context in contexts]
    if not checked:
        raise DowiseError("contexts is empty: pass at least one context", code="invalid-context")
    return checked


def one_hot(problem: Problem, arm: int) -> FloatArray:
    """Return the probabilities of a deterministic choice."""
    probabilities = np.zeros(len(problem.arms))
    probabilities[arm] = 1.0
    return probabilities


def digest_of(*arrays: IntArray | tuple[int, ...]) -> bytes:
    """Return the SHA-256 of shapes and numbers, as little-endian 64-bit words on every machine."""
    digest = sha256()
    for array in arrays:
        numbers = np.ascontiguousarray(array, dtype="<i8")
        digest.update(np.array([numbers.ndim, *numbers.shape], dtype="<i8").tobytes())
        digest.update(numbers.tobytes())
    return digest.digest()
