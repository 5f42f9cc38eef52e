"""The reward of every arm under many draws of the entries, and which arm is best under each."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.kernels import lazy_kernels
from dowise.model.model import with_first_value
from dowise.problem import Payoff

__all__ = ["Draws", "nothing"]

_kernels = lazy_kernels("dowise.model.kernels")


class Draws:
    """P(Y = y | do(arm), c) under draws: `others` is (arms, values of Y but the first, samples).

    All arms of one draw share its entries. `whole` has the first value as well, in double
    precision: it is there only where single precision would not tell the arms apart. Then `kinds`
    numbers the arms so that those which are alike in every world have the same number, and `key`
    settles what are ties all the same, by the number of the draw; the first one here is `first`.
    `arms` are the positions of the arms among the problem's, where they are not all of them.
    """

    __slots__ = ("arms", "first", "key", "kinds", "others", "whole")

    def __init__(
        self,
        others: NDArray[np.floating],
        whole: NDArray[np.float64] | None = None,
        kinds: NDArray[np.int64] | None = None,
        key: int = 0,
        first: int = 0,
        arms: NDArray[np.int64] | None = None,
    ) -> None:
        self.others, self.whole, self.kinds = others, whole, kinds
        self.key, self.first, self.arms = key, first, arms

    @property
    def samples(self) -> int:
        """The number of draws."""
        return int(self.others.shape[2])

    def among(self, arms: NDArray[np.int64]) -> Draws:
        """The draws of these arms alone."""
        whole = None if self.whole is None else self.whole[arms]
        kinds = None if self.kinds is None else self.kinds[arms]
        among = arms if self.arms is None else self.arms[arms]
        return Draws(self.others[arms], whole, kinds, self.key, self.first, among)

    def first_ones(self, count: int) -> Draws:
        """The first draws alone."""
        others = np.ascontiguousarray(self.others[..., :count])
        whole = None if self.whole is None else np.ascontiguousarray(self.whole[..., :count])
        return Draws(others, whole, self.kinds, self.key, self.first, self.arms)

    def distributions(self) -> NDArray[Any]:
        """All values of the reward: (arms, values of Y, samples)."""
        return with_first_value(self.others) if self.whole is None else self.whole

    def rewards(self, payoff: Payoff) -> NDArray[Any]:
        """The mean reward of every arm, net of cost, in the user's units: (arms, samples).

        In single precision for rewards of 0 and 1; what others are worth, and what arms cost, is
        put in in double precision.
        """
        worth, rewards = payoff.values, self.others[:, 0]
        if not payoff.is_plain:
            rewards = worth[0] + np.einsum("avs,v->as", self.others, worth[1:] - worth[0])
        return payoff.net(rewards.T, self.arms).T

    def costs(self, payoff: Payoff) -> NDArray[np.float64]:
        """What every arm costs, scaled, as kernels take it."""
        if not payoff.has_costs:
            return nothing(len(self.others))
        return payoff.scaled_costs if self.arms is None else _fixed(payoff.scaled_costs[self.arms])

    def winners(self, payoff: Payoff) -> tuple[NDArray[np.int64], float]:
        """The best arm of every draw, and the sum of the net rewards of these, scaled.

        Ties go to the first arm. Where the draws are `whole` that is so for arms that are alike and
        cost the same; of others that can't be told apart each has the same chance.
        """
        winners = np.zeros(self.samples, dtype=np.int64)
        scaled, costs = payoff.scaled, self.costs(payoff)
        if self.whole is None or self.kinds is None:
            others = np.ascontiguousarray(self.others)
            return winners, float(_kernels.find_winners(others, scaled, costs, winners))
        by_cost = np.argsort(costs, kind="stable")  # the first of the cheapest of each kind
        firsts = np.sort(by_cost[np.unique(self.kinds[by_cost], return_index=True)[1]])
        own, key = _fixed(costs[firsts]), np.uint64(self.key)
        whole = self.whole[firsts]
        peak = _kernels.find_winners_by_odds(whole, scaled, own, key, self.first, winners)
        return firsts[winners], float(peak)


@lru_cache(maxsize=64)
def nothing(arms: int) -> NDArray[np.float64]:
    """The costs of so many arms that cost nothing."""
    return _fixed(np.zeros(arms))


def _fixed(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kernels would be compiled once more for an array that may change."""
    costs.setflags(write=False)
    return costs
