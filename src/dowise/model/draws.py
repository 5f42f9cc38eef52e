"""Reward distributions of all arms under draws of the entries, and the best arm of each draw."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dowise._core.kernels import lazy_kernels
from dowise._core.types import AnyArray, FloatArray, IntArray
from dowise.model.model import with_first_value
from dowise.problem import Payoff

_kernels = lazy_kernels("dowise.model.kernels")


@dataclass(frozen=True, eq=False, slots=True)
class Draws:
    """P(Y = y | do(arm), c) under draws; all arms of one draw share its entries.

    Parameters
    ----------
    after_first : array (arms, values of Y but the first, samples)
        Probabilities of all values but the first.
    whole : array (arms, values of Y, samples), optional
        Probabilities of all values, if arms may be told apart only by how far they are from 1.
    kinds : array (arms,), optional
        With `whole`: numbers that are equal for arms with the same reward in every world.
    key, first : int
        With `whole`: ties are broken by a hash of `key` and the number of the draw, counted from
        `first`.
    arms : array, optional
        Positions of the arms among the problem's, if these are not all of them.
    """

    after_first: NDArray[np.float32]
    whole: NDArray[np.float32] | None = None
    kinds: IntArray | None = None
    key: int = 0
    first: int = 0
    arms: IntArray | None = None

    @property
    def samples(self) -> int:
        """Number of draws."""
        return int(self.after_first.shape[2])

    def among(self, arms: IntArray) -> Draws:
        """Return the draws of these arms only."""
        return replace(
            self,
            after_first=self.after_first[arms],
            whole=None if self.whole is None else self.whole[arms],
            kinds=None if self.kinds is None else self.kinds[arms],
            arms=arms if self.arms is None else self.arms[arms],
        )

    def head(self, count: int) -> Draws:
        """Return the first `count` draws."""
        after_first = np.ascontiguousarray(self.after_first[..., :count])
        whole = None if self.whole is None else np.ascontiguousarray(self.whole[..., :count])
        return replace(self, after_first=after_first, whole=whole)

    def distributions(self) -> AnyArray:
        """Return the probabilities of all values of the reward: (arms, values of Y, samples)."""
        return with_first_value(self.after_first) if self.whole is None else self.whole

    def rewards(self, payoff: Payoff) -> AnyArray:
        """Return the mean reward of every arm, net of cost, in the user's units: (arms, samples).

        Rewards of 0 and 1 are in single precision; other values and costs are applied in double
        precision.
        """
        worth, rewards = payoff.values, self.after_first[:, 0]
        if not payoff.is_plain:
            rewards = worth[0] + np.einsum("avs,v->as", self.after_first, worth[1:] - worth[0])
        return payoff.net(rewards.T, self.arms).T

    def costs(self, payoff: Payoff) -> FloatArray:
        """Return the scaled cost of every arm, for kernels."""
        if not payoff.has_costs:
            return zero_costs(len(self.after_first))
        return payoff.scaled_costs if self.arms is None else _fixed(payoff.scaled_costs[self.arms])

    def winners(self, payoff: Payoff) -> tuple[IntArray, float]:
        """Return the best arm of every draw, and the sum of their scaled net rewards.

        Ties go to the first arm. In `whole` draws that holds for arms with the same reward and
        cost; other arms that tie have equal chances.
        """
        winners = np.zeros(self.samples, dtype=np.int64)
        scaled, costs = payoff.scaled, self.costs(payoff)
        if self.whole is None or self.kinds is None:
            after_first = np.ascontiguousarray(self.after_first)
            return winners, float(_kernels.find_winners(after_first, scaled, costs, winners))
        firsts, key = first_of_each_kind(self.kinds, costs), np.uint64(self.key)
        whole = np.ascontiguousarray(self.whole)
        best_sum = _kernels.find_winners_by_odds(
            whole, scaled, costs, firsts, key, self.first, winners
        )
        return winners, float(best_sum)


def first_of_each_kind(kinds: IntArray, costs: FloatArray) -> IntArray:
    """Return the first of the cheapest arms of each kind, rising."""
    return _first_of_each_kind(kinds.tobytes(), costs.tobytes())


@lru_cache(maxsize=64)
def _first_of_each_kind(kinds: bytes, costs: bytes) -> IntArray:
    by_cost = np.argsort(np.frombuffer(costs), kind="stable")
    of_arms = np.frombuffer(kinds, dtype=np.int64)[by_cost]
    return np.sort(by_cost[np.unique(of_arms, return_index=True)[1]])


@lru_cache(maxsize=64)
def zero_costs(arms: int) -> FloatArray:
    """Return zero costs for this number of arms, for kernels."""
    return _fixed(np.zeros(arms))


def _fixed(costs: FloatArray) -> FloatArray:
    """Make an array read-only: kernels would be compiled again for a writeable one."""
    costs.setflags(write=False)
    return costs
