"""A policy that learns from records: one by one or many at once, and what it can't learn from."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dowise._core.codec import to_json
from dowise._core.kernels import kernel
from dowise._core.rng import Random, generator
from dowise._core.validation import check_integer
from dowise.belief import Belief
from dowise.belief.predictive import draw_record
from dowise.belief.prior import Prior
from dowise.errors import DowiseError, DowiseWarning
from dowise.model.kernels import observe_round
from dowise.model.sampler import TrialScript
from dowise.policies.decision import Decision, drawn_by_lot
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record, check_same_problem, without_value

Integers = NDArray[np.int64]
Numbers = NDArray[np.int64] | None
"""Those of the decisions that records follow, or None where there were none."""
PAST = 2**32  # from here on numbers are those of past records, which followed no decision

NEEDS_CONTEXT = "put the context in it as well"


class RecordMask(NamedTuple):
    """The records that can be used, and how many can't, by the reason: (mask, reasons).

    A record that can't be used for several reasons counts with the first that is found.

    >>> found = RecordMask.all_of(3)
    >>> found.leave_out(np.array([False, True, True]), "it rained")
    >>> found.mask.tolist(), found.reasons
    ([True, False, False], {'it rained': 2})
    """

    mask: NDArray[np.bool_]
    """mask[i]: whether record i can be used."""
    reasons: dict[str, int]

    @classmethod
    def all_of(cls, size: int) -> Self:
        """So many records that can all be used, to begin with."""
        return cls(np.ones(size, dtype=bool), {})

    def leave_out(self, which: NDArray[np.bool_], why: str) -> None:
        """These can't be used; what was left out before keeps its reason."""
        self._count(why, int(np.count_nonzero(which & self.mask)))
        self.mask[which] = False

    def leave_out_one(self, number: int, why: str) -> None:
        """Record `number` can't be used, which was not left out before."""
        self._count(why, 1)
        self.mask[number] = False

    def _count(self, why: str, times: int) -> None:
        if times:
            self.reasons[why] = self.reasons.get(why, 0) + times

    def need(self, records: RecordBatch, positions: Iterable[int], why: str) -> None:
        """Leave out where one of these variables was not seen; `why` ends the sentence."""
        for v in positions:
            self.leave_out(records.codes[v] == MISSING, without_value(records.problem, v, why))

    def need_context(self, records: RecordBatch) -> None:
        """Leave out where the context is not known."""
        self.need(records, records.problem.context_positions.tolist(), NEEDS_CONTEXT)

    def need_arms(self, records: RecordBatch) -> Integers:
        """Leave out what is of no arm; returns where each record's arm stands, −1 for none."""
        problem = records.problem
        arms, which = records.arms()
        places = np.array([problem.arm_positions.get(arm, -1) for arm in arms], dtype=np.int64)
        found: Integers = places[which]
        times = np.bincount(which[self.mask & (found < 0)], minlength=len(arms))
        for kind in np.flatnonzero(times).tolist():
            self._count(problem.not_an_arm(arms[kind]), int(times[kind]))
        self.mask[found < 0] = False
        return found

    def check_all(self) -> None:
        """Raise unless all can be used."""
        if self.reasons:
            (why, _), *others = self.reasons.items()
            out, size = int(np.count_nonzero(~self.mask)), len(self.mask)
            more = f" (and {len(others):,} other reasons)" if others else ""
            raise DowiseError(
                f"{out:,} of {size:,} records can't be learned, so none was: {why}{more}. "
                "policy.usable(records, numbers) says which"
            )


def check_batch(problem: Problem, records: RecordBatch, numbers: Numbers) -> None:
    """Raise unless these are records of this problem, with a number each or none at all."""
    check_same_problem(records, problem)
    if numbers is not None and len(numbers) != len(records):
        raise DowiseError(
            f"{len(numbers):,} numbers for {len(records):,} records: give one for each, or none"
        )


Loop = Callable[[TrialScript, np.random.Generator], NDArray[np.int64]]
"""A whole trial, compiled: the arm of every round, by its position."""


class RecordPolicy:
    """A policy that learns from records, and can forget one.

    Its state is a function of the records that it has learned and not retracted, not of their
    order. `observe` numbers what it is given from 0 on.

    A policy of one's own has `decide`, `learn`, `retract` and `state`. All else follows from these;
    where it can be had faster, or said better, a policy has its own.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.next_number = 0
        """That of the next outcome that `observe` is given."""

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Choose an arm for this context, among the allowed ones if any are named."""
        raise NotImplementedError(f"{type(self).__name__} has no decide(context, rng, allowed)")

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """A decision for each context, before any outcome is known; like `decide`, no change.

        A number of decisions will do where the problem has no context. Each knows of those before
        it what `expect` tells. `probabilities` are exact given what was learned and the decisions
        before (and what was imagined of them: `BayesianPolicy.imagines`). A bad context is refused
        before anything is decided.
        """

        checked, source = contexts_of_batch(self.problem, contexts), generator(rng)
        arms = listed(allowed)
        decisions: list[Decision] = []
        try:
            for context in checked:
                decisions.append(self.decide(context, source, arms))
                self.expect(decisions[-1].arm, context, 1)
        finally:
            for context, decision in zip(checked, decisions, strict=False):
                self.expect(decision.arm, context, -1)
        return decisions

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn what was seen after the arm was played, the context included."""
        self.learn(self.problem.record(arm, outcome, self.next_number))
        self.next_number += 1

    def learn(self, record: Record) -> None:
        """One record more; one that lacks what the policy learns from is refused."""
        raise NotImplementedError(f"{type(self).__name__} has no learn(record)")

    def retract(self, record: Record) -> None:
        """One record less: as if it had never been learned."""
        raise NotImplementedError(f"{type(self).__name__} has no retract(record)")

    def state(self) -> Mapping[str, object]:
        """All that was learned, as numbers."""
        raise NotImplementedError(f"{type(self).__name__} has no state()")

    def lacks(self, record: Record) -> str | None:
        """Why `learn` would refuse this record, in its words; None if it would take it.

        Any intervention may stand in the record (`past_record`), also one that is no arm.
        """
        check_record(record, self.problem)
        try:
            self.learn(record)
        except DowiseError as error:
            return str(error)
        self.retract(record)
        return None

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Which of many records `learn_many` would take, and of the others how many lack what.

        The same as asking `lacks` and learning one by one, in this order. What was not left out
        then is taken by `learn_many`, with the same numbers.
        """
        check_batch(self.problem, records, numbers)
        found, learned = RecordMask.all_of(len(records)), []
        try:
            for i, record in enumerate(records.each(numbers)):
                why = self.lacks(record)
                if why is None:
                    self.learn(record)
                    learned.append(record)
                else:
                    found.leave_out_one(i, why)
        finally:
            self._retract_all(learned)
        return found

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Many records more, the same as one by one; `numbers` are those of their decisions.

        If there is one that the policy can't learn from, all are refused and nothing changes: ask
        `usable` first.
        """
        check_batch(self.problem, records, numbers)
        learned: list[Record] = []
        try:
            for record in records.each(numbers):
                self.learn(record)
                learned.append(record)
        except BaseException:
            self._retract_all(learned)
            raise

    def _retract_all(self, learned: list[Record]) -> None:
        for record in reversed(learned):
            self.retract(record)

    def fingerprint(self) -> bytes:
        """A digest (SHA-256) of all that was learned: the same for the same records in any order.

        It depends on whole numbers alone where the state does; the built-in policies have the same
        one on every machine.
        """
        page = json.dumps(to_json(self.state()), sort_keys=True, separators=(",", ":"))
        return sha256(page.encode()).digest()

    def expect(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        """An arm is being played in this context so many times more, and nothing is known yet.

        Negative `times` take that back: when the outcome is learned, or will never come. Policies
        that would ask for the same arm again until they learn something count such plays; what is
        learned does not depend on them. For all others, as here, it means nothing.
        """

    def compiled_loop(self) -> Loop | None:
        """What plays a whole trial as `decide` and `observe` would, or None where nothing does.

        The loop leaves the policy's state as stepping would.
        """
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.problem!r}>"


def listed(allowed: Iterable[ArmLike] | None) -> Iterable[ArmLike] | None:
    """Allowed arms that can be gone through more than once; what is no list is left to `decide`."""
    is_list = isinstance(allowed, Iterable) and not isinstance(allowed, str | Mapping)
    return list(allowed) if is_list and allowed is not None else allowed


def digest_of(*arrays: NDArray[np.int64] | tuple[int, ...]) -> bytes:
    """SHA-256 of the shapes and the numbers, as little-endian words of 64 bits on every machine."""
    digest = sha256()
    for array in arrays:
        numbers = np.ascontiguousarray(array, dtype="<i8")
        digest.update(np.array([numbers.ndim, *numbers.shape], dtype="<i8").tobytes())
        digest.update(numbers.tobytes())
    return digest.digest()


def contexts_of_batch(problem: Problem, contexts: int | Iterable[Context]) -> list[dict[str, str]]:
    """A checked context for each decision; a number of them where the problem has no context."""
    if isinstance(contexts, bool) or not isinstance(contexts, Iterable):
        count = check_integer("contexts", contexts, 1)
        if problem.context:
            raise DowiseError(
                f"contexts={count}: give a list of contexts, one for each decision, because this "
                f"problem has a context ({', '.join(problem.context)})"
            )
        return [{} for _ in range(count)]
    if isinstance(contexts, str | Mapping):
        raise DowiseError("decide_many takes a list of contexts, one for each decision")
    checked = [problem.context_labels(problem.context_codes(one)) for one in contexts]
    if not checked:
        raise DowiseError("decide_many takes a list of contexts, one at least")
    return checked


class StandIn:
    """A policy as it would decide if what it asked for had the outcomes that are imagined."""

    def __init__(self, policy: BayesianPolicy) -> None:
        own = policy.belief
        self.policy = copy(policy)
        self.policy.belief = Belief(own.problem, posterior=own.posterior.copy())
        self.policy.began_to_stand_in()

    def suppose(self, arm: ArmLike, context: Context, source: np.random.Generator) -> None:
        """Imagine the outcome of an arm that is being played in this context, and learn it."""
        belief = self.policy.belief
        posterior, problem = belief.posterior, belief.problem
        codes = problem.context_codes(context)
        record = draw_record(posterior, problem.arm_index(arm), codes, source)
        posterior.learn(record)
        self.policy.note(record, 1)


def decide_imagining(
    policy: BayesianPolicy,
    contexts: list[dict[str, str]],
    source: np.random.Generator,
    allowed: Iterable[ArmLike] | None,
) -> list[Decision]:
    """A decision for each context, with the outcomes of those before it imagined."""
    decisions, stand_in = [policy.decide(contexts[0], source, allowed)], None
    for before, context in pairwise(contexts):
        stand_in = StandIn(policy) if stand_in is None else stand_in
        stand_in.suppose(decisions[-1].arm, before, source)
        decisions.append(stand_in.policy.decide(context, source, allowed))
    return decisions


Edges = Callable[[], dict[str, float]]
"""What tells how likely each doubtful edge is."""
_LOOKS = (10, 100, 1000)  # after so many records a policy looks whether they teach it anything


class EdgeTrace:
    """Workings of a decision of which only the doubtful edges are of interest."""

    names = ("edges",)

    def __init__(self, edges: Edges) -> None:
        self._edges = edges

    def figure(self, _name: str) -> dict[str, float]:
        """How likely each doubtful edge was when the decision was made."""
        return self._edges()

    def reason(self) -> str:
        """Edges are no reason."""
        return ""


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


class BayesianPolicy(RecordPolicy):
    """A policy whose knowledge is a `Belief`.

    Where a `belief` is given, the policy goes on from it and learns into it; otherwise it starts
    from the `prior`, the problem's unless given.
    """

    is_quiet = False
    """Whether it is left to others to say what is never learned from (`belief.never_used`)."""

    takes_notes = False
    """Whether it has a `note` of its own."""
    imagines = False
    """Whether in a batch it imagines the outcomes of what it has asked for before
    (`dowise.policies.base`): for policies that would otherwise repeat themselves."""

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        belief: Belief | None = None,
    ) -> None:
        super().__init__(problem)
        self.belief = self._belief(prior, belief)
        self._records, self._has_warned = 0, False

    def _belief(self, prior: Prior | None, given: Belief | None) -> Belief:
        if given is None:
            return Belief(self.problem, prior)
        if prior is not None:
            raise DowiseError("give the prior or a belief, not both: the belief has its own")
        if not isinstance(given, Belief):
            raise DowiseError(
                f"belief={given!r} is not a Belief: pass Belief(problem)", code="invalid-type"
            )
        if given.problem != self.problem:
            raise DowiseError(f"the belief is about another problem, {given.problem!r}")
        return given

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """A decision for each context, before any outcome is known; like `decide`, no change.

        Where the policy `imagines`, each decision is made as if those before it had had an outcome,
        drawn from the posterior: `probabilities` are exact given what was learned and imagined.
        """
        checked, source = contexts_of_batch(self.problem, contexts), generator(rng)
        if not self.imagines:
            return super().decide_many(checked, source, allowed)
        return decide_imagining(self, checked, source, listed(allowed))

    def began_to_stand_in(self) -> None:
        """This is a shallow copy that is to learn what is imagined, into a belief of its own.

        Whatever else a policy keeps of its belief it sets up anew here.
        """

    def learn(self, record: Record) -> None:
        """Learn from all variables that were seen; the context must be among them."""
        why = self.lacks(record)
        if why is not None:
            raise DowiseError(why)
        self.belief.learn(record)
        if self.takes_notes:
            self.note(record, 1)
        self._records += 1
        if self._records in _LOOKS:
            self._say_what_is_never_used()

    def retract(self, record: Record) -> None:
        """One record less."""
        check_record(record, self.problem)
        record.need(self.problem.context_positions, NEEDS_CONTEXT)
        self.belief.retract(record)
        self.note(record, -1)
        self._records -= 1

    def note(self, record: Record, times: int) -> None:
        """Of a record that was learned, 1 time or −1 times, what is not the belief's to count."""

    def note_many(self, records: RecordBatch, numbers: Numbers) -> None:
        """The same of many that were learned together."""

    def _say_what_is_never_used(self) -> None:
        """Once: of which variables nothing is ever learned, because something else is not seen."""
        idle = self.belief.never_used()
        if not idle or self._has_warned or self.is_quiet:
            return
        self._has_warned = True
        absent = sorted({name for lacking in idle.values() for name in lacking})
        warnings.warn(
            f"{self._records} records taught nothing about {', '.join(idle)}, because "
            f"{', '.join(absent)} {'was' if len(absent) == 1 else 'were'} not seen. What nobody "
            f"records must be declared, hidden = {json.dumps(absent)} in the problem: then it is "
            "learned from what is seen",
            DowiseWarning,
            stacklevel=4,
        )

    def lacks(self, record: Record) -> str | None:
        """Whether the context was not seen; one that was set is known as well."""
        if getattr(record, "problem", None) is not self.problem:
            check_record(record, self.problem)
        return record.lacking(self.problem.context_positions, NEEDS_CONTEXT)

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Those whose context is known."""
        check_batch(self.problem, records, numbers)
        found = RecordMask.all_of(len(records))
        found.need_context(records)
        return found

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Learn from many records at once."""
        self.usable(records, numbers).check_all()
        if type(self).learn is not BayesianPolicy.learn:
            super().learn_many(records, numbers)
            return
        self.belief.learn_many(records)
        self.note_many(records, numbers)
        before, self._records = self._records, self._records + len(records)
        if any(before < look <= self._records for look in _LOOKS):
            self._say_what_is_never_used()

    def fingerprint(self) -> bytes:
        """Of the counts; a posterior that has none is told by its page."""
        is_own = type(self).state is not BayesianPolicy.state
        if is_own or not self.belief.has_factors:
            return super().fingerprint()
        return digest_of(self.belief.posterior.counts)

    def _edges(self) -> Edges | None:
        """What tells later how likely doubtful edges are now; None where there are none."""
        return self.belief.edge_snapshot() if self.belief.problem.edge_priors else None

    def state(self) -> Mapping[str, object]:
        """The posterior, as it is saved."""
        return self.belief.as_dict()


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


def certainly(problem: Problem, chosen: int) -> NDArray[np.float64]:
    """The probabilities of a choice that nothing random is in."""
    probabilities = np.zeros(len(problem.arms))
    probabilities[chosen] = 1.0
    return probabilities


class PosteriorPick(NamedTuple):
    """The arm that won one of several draws, picked at random."""

    draw: int
    """Which of the draws was picked."""
    arm: int
    """The position of its winner among the problem's arms."""
    probabilities: NDArray[np.float64]
    """Of every arm: its share of the winners, which given the draws is exact."""

    def in_words(self, known: str = "what is known") -> str:
        """Why it was this one."""
        return drawn_by_lot(known, float(self.probabilities[self.arm]))


def pick_winner(
    problem: Problem,
    arms: NDArray[np.int64],
    winners: NDArray[np.int64],
    source: np.random.Generator,
) -> PosteriorPick:
    """Pick one of the draws, all alike, and play its winner; `winners` are places in `arms`.

    Given the draws each arm has the probability of its share of the winners, no more and no less;
    what is played has won at least one of them. Over the draws, that is the probability with which
    a single draw would have chosen it.
    """
    draw = int(source.integers(len(winners)))
    shares = np.zeros(len(problem.arms))
    shares[arms] = np.bincount(winners, minlength=len(arms)) / len(winners)
    return PosteriorPick(draw, int(arms[winners[draw]]), shares)


def checked_propensity_samples(number: int) -> int:
    """How many draws a policy picks a winner from; with 0 it makes one and knows no shares."""
    return check_integer("propensity_samples", number, 0)


def play_out(
    policy: BayesianPolicy, script: TrialScript, choose: Callable[[int, tuple[int, ...]], int]
) -> NDArray[np.int64]:
    """Play a script to its end; `choose` gives the arm of a round, by its number and context."""
    problem, posterior = policy.problem, policy.belief.posterior
    known = [tuple(codes) for codes in script.known.tolist()]
    fixed = np.array([problem.fixed(arm) for arm in problem.arms])
    factors = posterior.model.factors
    place = [factors.place(arm) for arm in problem.arms]
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    chosen = np.empty(len(script.contexts), dtype=np.int64)
    for t, number in enumerate(script.contexts.tolist()):
        arm = chosen[t] = choose(t, known[number])
        _observe(script, t, arm, seen)
        posterior.count_at(place[arm], seen, fixed[arm])
    policy.next_number += len(chosen)
    return chosen


@kernel()
def _observe(script: Any, t: Any, arm: Any, seen: Any) -> None:
    """A round after the choice: the world runs."""
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    observe_round(script, t, arm, codes, seen)
