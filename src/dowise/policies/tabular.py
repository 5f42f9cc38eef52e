"""Policies that know the arms only by their rewards: one table of plays and totals per context.

They use the graph for one thing, which arms are worth playing. What is seen of other variables they
ignore, so they need no posterior over CPTs and apply to graphs with hidden common causes too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dowise.belief.observe import encode_outcome
from dowise.belief.randomness import Random
from dowise.belief.rewards import Context
from dowise.errors import DowiseError
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import allowed_arms
from dowise.problem import Problem
from dowise.problem.problem import ArmLike
from dowise.problem.values import MISSING

__all__ = ["IndexPolicy", "Table", "TabularPolicy", "means_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """For each arm how often it was played in one context, and the rewards it brought in all."""

    plays: NDArray[np.int64]
    totals: Floats


def means_of(plays: NDArray[np.int64], totals: Floats) -> Floats:
    """The mean reward of each arm, 0 for one that was never played."""
    means: Floats = totals / np.maximum(plays, 1)
    return means


class TabularPolicy:
    """A policy whose knowledge is a table for each context that was seen.

    The reward's values are scaled to [0, 1], the worst to 0 and the best to 1.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.tables: dict[tuple[int, ...], Table] = {}
        """Keyed by the positions of the context's values, in the order of names."""
        labels = problem.domains[problem.reward]
        worth = np.array([problem.reward_values[label] for label in labels])
        self._lowest, self._span = float(worth.min()), float(np.ptp(worth))
        self._scaled = problem.scaled_rewards
        order = list(problem.domains)
        self._reward = order.index(problem.reward)
        self._context = [order.index(name) for name in problem.context]

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn from the reward alone; the outcome must hold it, and the context."""
        position = self.problem.arm_index(arm)
        codes = encode_outcome(self.problem, self.problem.arms[position], outcome)
        for place in (self._reward, *self._context):
            if codes[place] == MISSING:
                name = list(self.problem.domains)[place]
                what = "reward" if place == self._reward else "context"
                raise DowiseError(
                    f"the outcome has no value for {name}, the {what}: "
                    "this policy learns from the reward in its context and can't do without"
                )
        context = tuple(codes[place] for place in self._context)
        table = self.tables.setdefault(context, self._empty())
        reward = self._scaled[codes[self._reward]]
        table.totals[position] += self._credit(
            reward, position, int(table.plays[position]), *context
        )
        table.plays[position] += 1

    def _credit(self, reward: float, *_counter: int) -> float:
        """What a reward in [0, 1] adds to the total of an arm.

        The counter is unique to this play: the arm, how often it was played, the context.
        """
        return reward

    def table(self, codes: tuple[int, ...]) -> Table:
        """What is known in a context, given by positions; empty where it was never seen."""
        return self.tables.get(codes) or self._empty()

    def _empty(self) -> Table:
        arms = len(self.problem.arms)
        return Table(np.zeros(arms, dtype=np.int64), np.zeros(arms))

    def _in_units(self, scaled: float) -> float:
        """A reward in [0, 1] in the user's units."""
        return self._lowest + self._span * float(scaled)


class IndexPolicy(TabularPolicy):
    """Play the arm with the largest index, an optimistic guess at its mean reward.

    Nothing here is random, so the chosen arm has probability 1. An arm that was not played in this
    context has an infinite index; ties go to the first arm. So each is played once, in order.
    Figures: `counts` (plays), `means` (NaN before the first play) and `index`, on the [0, 1] scale.
    """

    def index(self, plays: NDArray[np.int64], totals: Floats) -> Floats:
        """The index of each arm, infinite for one that was never played."""
        raise NotImplementedError

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,  # noqa: ARG002 (every policy takes it)
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play the allowed arm with the largest index."""
        table, arms = (
            self.table(self.problem.context_codes(context)),
            allowed_arms(self.problem, allowed),
        )
        index = self.index(table.plays, table.totals)
        chosen = int(arms[index[arms].argmax()])
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[chosen] = 1.0
        plays, counts = int(table.plays[chosen]), table.plays.copy()
        means = np.where(counts > 0, means_of(counts, table.totals), np.nan)
        if plays:
            reason = (
                f"its mean reward, {self._in_units(means[chosen]):.3g} in {plays:,} "
                f"{'play' if plays == 1 else 'plays'}, may be as high as "
                f"{self._in_units(index[chosen]):.3g}, the highest of these bounds"
            )
        else:
            reason = "not played before in this context" if context else "not played before"
        figures = Figures({"counts": counts, "means": means, "index": index}, {})
        return Decision(self.problem.arms[chosen], probabilities, reason, figures)
