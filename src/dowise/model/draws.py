"""The reward of every arm under many draws of the entries, and which arm is best under each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.compiling import kernels_of
from dowise.model.model import with_first_value
from dowise.problem import Payoff

__all__ = ["Draws"]

_kernels = kernels_of("dowise.model.winners")


class Draws:
    """P(Y = y | do(arm), c) under draws: `others` is (arms, values of Y but the first, samples).

    All arms of one draw share its entries. `whole` has the first value as well, in double
    precision: it is there only where single precision would not tell the arms apart. Then `kinds`
    numbers the arms so that those which are alike in every world have the same number, and `key`
    settles what are ties all the same, by the number of the draw; the first one here is `first`.
    """

    __slots__ = ("first", "key", "kinds", "others", "whole")

    def __init__(
        self,
        others: NDArray[np.floating],
        whole: NDArray[np.float64] | None = None,
        kinds: NDArray[np.int64] | None = None,
        key: int = 0,
        first: int = 0,
    ) -> None:
        self.others, self.whole, self.kinds = others, whole, kinds
        self.key, self.first = key, first

    @property
    def samples(self) -> int:
        """The number of draws."""
        return int(self.others.shape[2])

    def among(self, arms: NDArray[np.int64]) -> Draws:
        """The draws of these arms alone."""
        if self.whole is None or self.kinds is None:
            return Draws(self.others[arms])
        return Draws(self.others[arms], self.whole[arms], self.kinds[arms], self.key, self.first)

    def first_ones(self, count: int) -> Draws:
        """The first draws alone."""
        others = np.ascontiguousarray(self.others[..., :count])
        whole = None if self.whole is None else np.ascontiguousarray(self.whole[..., :count])
        return Draws(others, whole, self.kinds, self.key, self.first)

    def distributions(self) -> NDArray[Any]:
        """All values of the reward: (arms, values of Y, samples)."""
        return with_first_value(self.others) if self.whole is None else self.whole

    def rewards(self, payoff: Payoff) -> NDArray[Any]:
        """The mean reward of every arm, in the user's units: (arms, samples).

        In single precision for rewards of 0 and 1; what others are worth is put in in double
        precision.
        """
        if payoff.is_plain:
            return self.others[:, 0]
        worth = payoff.values
        rewards: NDArray[np.float64] = worth[0] + np.einsum(
            "avs,v->as", self.others, worth[1:] - worth[0]
        )
        return rewards

    def winners(self, payoff: Payoff) -> tuple[NDArray[np.int64], float]:
        """The best arm of every draw, and the sum of the rewards of these, scaled to [0, 1].

        Ties go to the first arm. Where the draws are `whole` that is so for arms that are alike; of
        others that can't be told apart each has the same chance.
        """
        winners = np.zeros(self.samples, dtype=np.int64)
        if self.whole is None or self.kinds is None:
            others = np.ascontiguousarray(self.others)
            return winners, float(_kernels.find_winners(others, payoff.scaled, winners))
        firsts = np.sort(np.unique(self.kinds, return_index=True)[1])
        key, scaled = np.uint64(self.key), payoff.scaled
        whole = self.whole[firsts]
        peak = _kernels.find_winners_by_odds(whole, scaled, key, self.first, winners)
        return firsts[winners], float(peak)
