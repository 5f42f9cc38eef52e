"""Policies that know the arms only by their rewards: one tally per context.

They use the graph for one thing, which arms are worth playing. What is seen of other variables they
ignore, so they need no posterior and apply whatever the graph is like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.compiling import kernel
from dowise.errors import DowiseError
from dowise.model.sampling import Script
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import RecordPolicy, allowed_arms, certainly
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import check_record
from dowise.randomness import Random, generator

__all__ = [
    "IndexPolicy",
    "TabularPolicy",
    "Tallies",
    "Tally",
    "count_reward",
    "first_largest",
    "means_of",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tally:
    """For each arm how often each reward was seen in one context: whole numbers, (arms, rewards).

    `worth` has what each of the rewards is worth, in [0, 1]. How often each arm was played and what
    it brought in all follow from the counts, whatever their order.
    """

    __slots__ = ("plays", "seen", "totals", "worth")

    def __init__(self, seen: Integers, worth: Floats) -> None:
        self.seen, self.worth = seen, worth
        self.plays: Integers = seen.sum(axis=1)
        self.totals: Floats = np.zeros(len(seen))
        for column, value in zip(seen.T, worth, strict=True):
            self.totals += column * value  # in this order, as the compiled loops do

    def add(self, arm: int, reward: int, times: int) -> None:
        """So many times more of a reward of an arm; less, where that is negative."""
        row = self.seen[arm]
        row[reward] += times
        self.plays[arm] += times
        total = 0.0
        for count, value in zip(row.tolist(), self.worth.tolist(), strict=True):
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

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.tallies: dict[tuple[int, ...], Tally] = {}
        """Keyed by the positions of the context's values, in the order of names."""
        self._worth = problem.payoff.scaled

    def learn(self, record: Record) -> None:
        """Learn from the reward alone; the outcome must hold it, and the context."""
        arm, context, reward = self._place(record)
        if context not in self.tallies:
            self.tallies[context] = self._empty()
        self.tallies[context].add(arm, reward, 1)

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

    def _place(self, record: Record) -> tuple[int, tuple[int, ...], int]:
        """Arm, context and reward of a record, as positions."""
        problem = self.problem
        check_record(record, problem)
        why = "this policy learns from the reward in its context and can't do without"
        record.need((problem.reward_position, *problem.context_positions), why)
        return problem.arm_index(record.arm), record.context, self._column(record)

    def _column(self, record: Record) -> int:
        """Which of the rewards a tally tells apart this one is."""
        return record.reward

    def _empty(self) -> Tally:
        shape = len(self.problem.arms), len(self._worth)
        return Tally(np.zeros(shape, dtype=np.int64), self._worth)

    def _tallies(self, script: Script) -> Tallies:
        """The tallies of a trial's contexts, for a compiled loop to learn into."""
        own = [self.tally(tuple(codes)) for codes in script.known.tolist()]
        return Tallies(
            np.array([tally.seen for tally in own]),
            np.array([tally.plays for tally in own]),
            np.array([tally.totals for tally in own]),
            self._worth,
        )

    def _keep(self, script: Script, tallies: Tallies) -> None:
        """Take over what a compiled loop has learned."""
        for codes, seen in zip(script.known.tolist(), tallies.seen, strict=True):
            self.tallies[tuple(codes)] = Tally(seen, self._worth)
        self.next_number += len(script.contexts)


class IndexPolicy(TabularPolicy):
    """Play the arm with the largest index, an optimistic guess at its mean reward.

    Nothing here is random, so the chosen arm has probability 1. An arm that was not played in this
    context has an infinite index; ties go to the first arm. So each is played once, in order.
    Figures: `counts` (plays), `means` (NaN before the first play) and `index`, on the [0, 1] scale.
    """

    def index(self, plays: Integers, totals: Floats) -> Floats:
        """The index of each arm, infinite for one that was never played."""
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
        tally = self.tally(codes)
        counts, totals = tally.plays.copy(), tally.totals
        index = self.index(counts, totals)
        chosen = int(arms[index[arms].argmax()])
        plays = int(counts[chosen])
        means = np.where(counts > 0, means_of(counts, totals), np.nan)
        if plays:
            reason = (
                f"its mean reward, {payoff.in_units(means[chosen]):.3g} in {plays:,} "
                f"{'play' if plays == 1 else 'plays'}, may be as good as "
                f"{payoff.in_units(index[chosen]):.3g}, the best of these bounds"
            )
        else:
            reason = "not played before in this context" if context else "not played before"
        figures = Figures({"counts": counts, "means": means, "index": index})
        sure, seen = certainly(problem, chosen), problem.context_labels(codes)
        return Decision(problem.arms[chosen], sure, reason, figures, seen)
