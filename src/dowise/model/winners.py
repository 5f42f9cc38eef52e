"""Which arm is best under each draw: compiled loops over arms and draws."""

from __future__ import annotations

import numpy as np
from numba import uint64

from dowise.compiling import kernel
from dowise.mixing import GOLDEN, mix

__all__ = ["find_winners", "find_winners_by_odds"]


@kernel()
def find_winners(drawn, scaled, winners):
    """The best arm of every draw, the first among equals; returns the sum of their rewards.

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first; scaled[y] is what a
    value is worth, from 0 to 1.
    """
    arms, others, samples = drawn.shape
    top = np.empty(samples)
    rewards = np.empty(samples)
    for i in range(samples):
        top[i] = -np.inf
    for a in range(arms):
        for i in range(samples):
            rewards[i] = scaled[0]
        for y in range(others):
            more = scaled[y + 1] - scaled[0]
            for i in range(samples):
                rewards[i] += more * drawn[a, y, i]
        for i in range(samples):  # without a branch, so that it is done many draws at a time
            better = rewards[i] > top[i]
            top[i] = rewards[i] if better else top[i]
            winners[i] = a if better else winners[i]
    peak = 0.0
    for i in range(samples):
        peak += top[i]
    return peak


@kernel()
def find_winners_by_odds(whole, scaled, key, first, winners):
    """The same for draws so close to 0 and 1 that rewards can't be told apart, in full precision.

    whole[arm, y, draw] has all values of the reward. What an arm brings above the least value and
    what it lacks to the greatest are sums without a difference of large numbers, so arms are
    compared by the odds of the two: 1 − 1e-30 is more than 1 − 1e-20. Arms that tie even so have
    the same chance each, by a hash of the key (an uint64) and the draw's number, which is `first`
    and so on: the k-th of them replaces the one before with probability 1/k.
    """
    arms, values, samples = whole.shape
    least, most = scaled[0], scaled[0]
    for y in range(values):
        least, most = min(least, scaled[y]), max(most, scaled[y])
    top, highest = np.empty(samples), np.empty(samples)
    tied = np.empty(samples, dtype=np.int64)
    for i in range(samples):
        top[i] = -1.0
    for a in range(arms):
        for i in range(samples):
            brings, lacks = 0.0, 0.0
            for y in range(values):
                brings += (scaled[y] - least) * whole[a, y, i]
                lacks += (most - scaled[y]) * whole[a, y, i]
            odds = brings / lacks if lacks > 0 else np.inf
            if odds > top[i]:
                winners[i], top[i], highest[i], tied[i] = a, odds, brings, 1
            elif odds == top[i]:
                tied[i] += 1
                own = mix(uint64(key) + uint64(first + i) * GOLDEN)
                coin = mix(own + uint64(tied[i]) * GOLDEN)
                if np.float64(coin >> uint64(11)) * 2.0**-53 * tied[i] < 1:
                    winners[i], highest[i] = a, brings
    peak = 0.0
    for i in range(samples):
        peak += least + highest[i]
    return peak
