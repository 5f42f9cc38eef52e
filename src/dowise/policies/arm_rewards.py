"""Policies that know the arms only by their rewards: one tally per context.

They use the graph for one thing, which arms are worth playing. What is seen of other variables they
ignore, so they need no posterior and apply whatever the graph is like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import format_number, pluralize
from dowise._core.kernels import kernel
from dowise._core.rng import Random, generator
from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.model.sampler import TrialScript
from dowise.policies.base import (
    Numbers,
    RecordMask,
    RecordPolicy,
    allowed_arms,
    certainly,
    check_batch,
    digest_of,
)
from dowise.policies.decision import BEST_BY_CHANCE, Decision, Figures, not_played_before, under_way
from dowise.problem import Intervention, Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record, equal_columns

Integers = NDArray[np.int64]

UNKNOWN_MEAN = 0.5
"""What a play under way of an arm that has no finished one is taken to bring."""


class Pending:
    """How many plays of each arm are under way, for each context."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._plays: dict[Codes, Integers] = {}

    def add(self, arm: ArmLike, context: Context, times: int) -> None:
        """So many more, or less; what is no arm of the problem has no index, and is passed over."""
        problem = self._problem
        played = arm if isinstance(arm, Intervention) else problem.intervention(arm)
        place, codes = problem.arm_positions.get(played), problem.context_codes(context)
        if place is None:
            return
        plays = self.of(codes)
        if plays[place] + times < 0:
            raise DowiseError(
                f"{-times:,} plays of {played} can't be taken back: {plays[place]:,} are under way"
            )
        plays[place] += times
        if plays.any():
            self._plays[codes] = plays
        else:
            self._plays.pop(codes, None)

    def of(self, codes: Codes) -> Integers:
        """The plays of every arm that are under way in a context, given by positions."""
        found = self._plays.get(codes)
        return np.zeros(len(self._problem.arms), dtype=np.int64) if found is None else found.copy()

    def __bool__(self) -> bool:
        return bool(self._plays)


Floats = NDArray[np.float64]

_NEEDS = "this policy learns from the reward in its context and can't do without"


class Tally:
    """For each arm how often each reward was seen in one context: whole numbers, (arms, rewards).

    `worth` has what each of the rewards is worth, in [0, 1]. How often each arm was played and what
    it brought in all follow from the counts, whatever their order.
    """

    __slots__ = ("plays", "seen", "totals", "worth")

    def __init__(self, seen: Integers, plays: Integers, totals: Floats, worth: Floats) -> None:
        self.seen, self.plays, self.totals, self.worth = seen, plays, totals, worth

    @classmethod
    def of(cls, seen: Integers, worth: Floats) -> Tally:
        """What follows of counts."""
        tally = cls(seen, seen.sum(axis=1), np.zeros(len(seen)), worth)
        for arm in range(len(seen)):
            tally._add_up(arm)
        return tally

    def add(self, arm: int, reward: int, times: int) -> None:
        """So many times more of a reward of an arm; less, where that is negative."""
        self.seen[arm, reward] += times
        self.plays[arm] += times
        self._add_up(arm)

    def _add_up(self, arm: int) -> None:
        total = 0.0
        for count, value in zip(self.seen[arm].tolist(), self.worth.tolist(), strict=True):
            total += count * value
        self.totals[arm] = total


class Tallies(NamedTuple):
    """What the compiled loops learn into: seen[context, arm, reward], and what follows of it."""

    seen: Integers
    plays: Integers
    totals: Floats
    worth: Floats


@kernel()
def count_reward(tallies: Any, context: Any, arm: Any, reward: Any) -> None:
    """One more reward of an arm in a context."""
    tallies.seen[context, arm, reward] += 1
    tallies.plays[context, arm] += 1
    total = 0.0
    for y in range(len(tallies.worth)):
        total += tallies.seen[context, arm, y] * tallies.worth[y]
    tallies.totals[context, arm] = total


@kernel()
def first_largest(numbers: Any) -> Any:
    """Where the largest number is, the first of equals."""
    best = 0
    for i in range(len(numbers)):
        if numbers[i] > numbers[best]:
            best = i
    return best


def means_of(plays: Integers, totals: Floats) -> Floats:
    """The mean reward of each arm, 0 for one that was never played."""
    means: Floats = totals / np.maximum(plays, 1)
    return means


class TabularPolicy(RecordPolicy):
    """A policy whose knowledge is a tally for each context that was seen.

    The reward's values are scaled to [0, 1], the worst to 0 and the best to 1.
    """

    is_quick = True
    """A round takes a microsecond or so, in which races cut larger jobs."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.tallies: dict[tuple[int, ...], Tally] = {}
        """Keyed by the positions of the context's values, in the order of names."""
        self._worth = problem.payoff.scaled
        self._needed = (problem.reward_position, *problem.context_positions.tolist())

    def learn(self, record: Record) -> None:
        """Learn from the reward alone; the outcome must hold it, and the context."""
        arm, context, reward = self._place(record)
        self._add(context, arm, reward, 1)

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Many records more: equal ones are added at once."""
        found, arms = self._sorted_out(records, numbers)
        found.check_all()
        if type(self).learn is not TabularPolicy.learn:
            super().learn_many(records, numbers)
            return
        rewards, contexts = self._columns(records, numbers), records.codes[self._needed[1:], :]
        first, which = equal_columns([arms, rewards, *contexts])
        for i, times in zip(first.tolist(), np.bincount(which).tolist(), strict=True):
            self._add(tuple(contexts[:, i].tolist()), int(arms[i]), int(rewards[i]), times)

    def retract(self, record: Record) -> None:
        """One record less."""
        arm, context, reward = self._place(record)
        tally = self.tally(context)
        if tally.seen[arm, reward] < 1:
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")
        tally.add(arm, reward, -1)
        if not tally.plays.any():
            del self.tallies[context]

    def state(self) -> Mapping[str, object]:
        """The tally of every context."""
        return {
            str(context): tally.seen.tolist() for context, tally in sorted(self.tallies.items())
        }

    def tally(self, codes: tuple[int, ...]) -> Tally:
        """What is known in a context, given by positions; empty where it was never seen."""
        return self.tallies.get(codes) or self._empty()

    def lacks(self, record: Record) -> str | None:
        """Whether reward or context were not seen, or it is of no arm."""
        problem = self.problem
        check_record(record, problem)
        why = record.lacking(self._needed, _NEEDS)
        if why is None and record.arm not in problem.arm_positions:
            return problem.not_an_arm(record.arm)
        return why

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Those with reward and context, of an arm."""
        return self._sorted_out(records, numbers)[0]

    def fingerprint(self) -> bytes:
        """Of the tally of every context that was seen."""
        if type(self).state is not TabularPolicy.state:
            return super().fingerprint()
        told = sorted((codes, tally.seen) for codes, tally in self.tallies.items())
        return digest_of(*(part for one in told if one[1].any() for part in one))

    def _sorted_out(self, records: RecordBatch, numbers: Numbers) -> tuple[RecordMask, Integers]:
        """Which records can be used, and where the arm of each stands."""
        check_batch(self.problem, records, numbers)
        found = RecordMask.all_of(len(records))
        found.need(records, self._needed, _NEEDS)
        return found, found.need_arms(records)

    def _add(self, context: tuple[int, ...], arm: int, reward: int, times: int) -> None:
        if context not in self.tallies:
            self.tallies[context] = self._empty()
        self.tallies[context].add(arm, reward, times)

    def _place(self, record: Record) -> tuple[int, tuple[int, ...], int]:
        """Arm, context and reward of a record, as positions."""
        why = self.lacks(record)
        if why is not None:
            raise DowiseError(why)
        return self.problem.arm_positions[record.arm], record.context, self._column(record)

    def _column(self, record: Record) -> int:
        """Which of the rewards a tally tells apart this one is."""
        return record.reward

    def _columns(self, records: RecordBatch, _numbers: Numbers) -> Integers:
        """The same for many."""
        rewards: Integers = records.codes[self.problem.reward_position]
        return rewards

    def _empty(self) -> Tally:
        arms, pluralize = len(self.problem.arms), np.int64
        seen = np.zeros((arms, len(self._worth)), dtype=pluralize)
        return Tally(seen, np.zeros(arms, dtype=pluralize), np.zeros(arms), self._worth)

    def _tallies(self, script: TrialScript) -> Tallies:
        """The tallies of a trial's contexts, for a compiled loop to learn into."""
        known, arms = [tuple(codes) for codes in script.known.tolist()], len(self.problem.arms)
        seen = np.zeros((len(known), arms, len(self._worth)), dtype=np.int64)
        tallies = Tallies(
            seen, np.zeros((len(known), arms), dtype=np.int64), np.zeros((len(known), arms)),
            self._worth,
        )  # fmt: skip
        for c, codes in enumerate(known):
            own = self.tallies.get(codes)
            if own is not None:
                seen[c], tallies.plays[c], tallies.totals[c] = own.seen, own.plays, own.totals
        return tallies

    def _keep(self, script: TrialScript, tallies: Tallies) -> None:
        """Take over what a compiled loop has learned."""
        for c, codes in enumerate(script.known.tolist()):
            own = tallies.seen[c], tallies.plays[c], tallies.totals[c], tallies.worth
            self.tallies[tuple(codes)] = Tally(*own)
        self.next_number += len(script.contexts)


class IndexPolicy(TabularPolicy):
    """Play the arm with the largest index, an optimistic guess at its mean reward, net of cost.

    Nothing here is random, so the chosen arm has probability 1. An arm that was not played in this
    context has an infinite index; ties go to the first arm. So each is played once, in order.
    Plays that are under way (`expect`) count as if each had brought the arm's mean so far, so that
    the same arm is not asked for until something is learned (`dowise.policies.arm_rewards`).

    Figures: `counts` (finished plays), `pending` (those under way), `means` (NaN before the first
    play is finished) and `index`, on the [0, 1] scale, net of what the arms cost.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.pending = Pending(problem)
        """The plays that are under way."""

    def expect(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        """Count so many more plays of an arm as under way, or fewer."""
        self.pending.add(arm, context, times)

    def index(self, plays: Integers, totals: Floats) -> Floats:
        """The index of each arm, infinite for one that was never played; costs come off later."""
        raise NotImplementedError

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play the allowed arm with the largest index."""
        generator(rng)  # nothing is drawn, but every policy wants one
        problem, payoff = self.problem, self.problem.payoff
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        tally, pending = self.tally(codes), self.pending.of(codes)
        counts, totals = tally.plays.copy(), tally.totals
        index = payoff.net_scaled(self.index(*_with_pending(counts, totals, pending)))
        chosen = int(arms[index[arms].argmax()])
        plays, more = int(counts[chosen]), int(pending[chosen])
        means = np.where(counts > 0, payoff.net_scaled(means_of(counts, totals)), np.nan)
        if plays:
            mean = format_number(payoff.unscale(means[chosen]))
            reason = (
                f"its mean reward was {mean} in {pluralize(plays, 'play')}{under_way(more)}, "
                f"{BEST_BY_CHANCE}"
            )
        elif more:
            reason = f"none of its plays has an outcome yet{under_way(more)}, {BEST_BY_CHANCE}"
        else:
            reason = not_played_before(bool(context))
        figures = Figures({"counts": counts, "pending": pending, "means": means, "index": index})
        sure, seen = certainly(problem, chosen), problem.context_labels(codes)
        return Decision(problem.arms[chosen], sure, reason, figures, seen)


def _with_pending(plays: Integers, totals: Floats, pending: Integers) -> tuple[Integers, Floats]:
    """Plays and totals if each play under way brought its arm's mean so far."""
    if not pending.any():
        return plays, totals
    means = np.where(plays > 0, means_of(plays, totals), UNKNOWN_MEAN)
    return plays + pending, np.where(pending > 0, (plays + pending) * means, totals)
