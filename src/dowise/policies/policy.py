"""What every policy can do, and the blocks that the built-in ones are made of."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief, Dirichlet, Mixture, Posterior
from dowise.belief.prior import Prior
from dowise.checks import whole_number
from dowise.errors import DowiseError, DowiseWarning
from dowise.policies.batches import contexts_of_batch, decide_imagining, has_stand_in
from dowise.policies.decision import Decision
from dowise.policies.reasons import drawn_by_lot
from dowise.policies.record_policy import Loop, RecordPolicy, digest_of, listed
from dowise.policies.usable import NEEDS_CONTEXT, Numbers, Usable, check_batch
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record
from dowise.randomness import Random, generator

__all__ = [
    "BayesianPolicy",
    "Edges",
    "EdgesThen",
    "Loop",
    "Picked",
    "Policy",
    "RecordPolicy",
    "allowed_arms",
    "certainly",
    "checked_propensity_samples",
    "pick_winner",
]

_POSTERIOR = ("problem", "learn", "retract", "draw", "mean_distributions")
Edges = Callable[[], dict[str, float]]
"""What tells how likely each doubtful edge is."""
_LOOKS = (10, 100, 1000)  # after so many records a policy looks whether they teach it anything


class EdgesThen:
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

    Where a `belief` is given, or a posterior of one's own, the policy goes on from it and learns
    into it; otherwise it starts from the `prior`, the problem's unless given.
    """

    is_quiet = False
    """Whether it is left to others to say what is never learned from (`belief.never_used`)."""

    takes_notes = False
    """Whether it has a `note` of its own."""
    imagines = False
    """Whether in a batch it imagines the outcomes of what it has asked for before
    (`dowise.policies.batches`): for policies that would otherwise repeat themselves."""

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        belief: Belief | Posterior | None = None,
    ) -> None:
        super().__init__(problem)
        self.belief = self._belief(prior, belief)
        self._records, self._has_warned = 0, False

    def _belief(self, prior: Prior | None, given: Belief | Posterior | None) -> Belief:
        if given is None:
            return Belief(self.problem, prior)
        if prior is not None:
            raise DowiseError("give the prior or a belief, not both: the belief has its own")
        if not isinstance(given, Belief):
            if not all(hasattr(given, name) for name in _POSTERIOR):
                raise DowiseError(f"belief={given!r}: give a Belief, or a posterior of your own")
            return Belief(self.problem, posterior=given)
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
        if not has_stand_in(self):
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

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> Usable:
        """Those whose context is known."""
        check_batch(self.problem, records, numbers)
        found = Usable.all_of(len(records))
        found.need_context(records)
        return found

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Learn from many records at once."""
        self.usable(records, numbers).check_all()
        own = type(self).learn is not BayesianPolicy.learn
        if own or not hasattr(self.belief.posterior, "learn_many"):
            super().learn_many(records, numbers)
            return
        self.belief.learn_many(records)
        self.note_many(records, numbers)
        before, self._records = self._records, self._records + len(records)
        if any(before < look <= self._records for look in _LOOKS):
            self._say_what_is_never_used()

    def fingerprint(self) -> bytes:
        """Of the counts; a posterior that has none is told by its page."""
        posterior = self.belief.posterior
        is_own = type(self).state is not BayesianPolicy.state
        if is_own or not isinstance(posterior, Dirichlet | Mixture):
            return super().fingerprint()
        return digest_of(posterior.counts)

    def _edges(self) -> Edges | None:
        """What tells later how likely doubtful edges are now; None where there are none."""
        return self.belief.edges_of_today() if self.belief.problem.edge_priors else None

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


class Picked(NamedTuple):
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
) -> Picked:
    """Pick one of the draws, all alike, and play its winner; `winners` are places in `arms`.

    Given the draws each arm has the probability of its share of the winners, no more and no less;
    what is played has won at least one of them. Over the draws, that is the probability with which
    a single draw would have chosen it.
    """
    draw = int(source.integers(len(winners)))
    shares = np.zeros(len(problem.arms))
    shares[arms] = np.bincount(winners, minlength=len(arms)) / len(winners)
    return Picked(draw, int(arms[winners[draw]]), shares)


def checked_propensity_samples(number: int) -> int:
    """How many draws a policy picks a winner from; with 0 it makes one and knows no shares."""
    return whole_number("propensity_samples", number, 0)
