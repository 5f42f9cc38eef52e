"""Which arm is best under each draw: compiled loops over arms and draws."""

from __future__ import annotations

import numpy as np
from numba import uint64

from dowise.compiling import kernel
from dowise.mixing import GOLDEN, mix

__all__ = ["find_winners", "find_winners_by_odds"]


@kernel()
def find_winners(drawn, scaled, costs, winners):
    """The best arm of every draw, the first among equals; returns the sum of their net rewards.

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first; scaled[y] is what a
    value is worth, from 0 to 1, and costs[arm] what the arm costs, on the same scale.
    """
    arms, others, samples = drawn.shape
    top = np.empty(samples)
    rewards = np.empty(samples)
    for i in range(samples):
        top[i] = -np.inf
    for a in range(arms):
        for i in range(samples):
            rewards[i] = scaled[0] - costs[a]
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
def find_winners_by_odds(whole, scaled, costs, key, first, winners):
    """The same for draws so close to 0 and 1 that rewards can't be told apart, in full precision.

    whole[arm, y, draw] has all values of the reward. What an arm brings above the least value and
    what it lacks to the greatest are sums without a difference of large numbers, so arms are
    compared by the odds of the two: 1 − 1e-30 is more than 1 − 1e-20. Arms that tie even so have
    the same chance each, by a hash of the key (an uint64) and the draw's number, which is `first`
    and so on: the k-th of them replaces the one before with probability 1/k.

    Of arms with different costs the net rewards decide, from below where one of them is nearer to
    the least value, from above where both are nearer to the greatest; where even so they are the
    same, the cheaper one is better: rounding has brought its reward down to the other's, or that
    one's up. So costs of a whole span are no matter of chance.
    """
    arms, values, samples = whole.shape
    least, most = scaled[0], scaled[0]
    for y in range(values):
        least, most = min(least, scaled[y]), max(most, scaled[y])
    top, highest, lowest = np.empty(samples), np.empty(samples), np.empty(samples)
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
            extra = 0.0 if a == 0 else costs[a] - costs[winners[i]]
            is_tie = odds == top[i]
            is_better = odds > top[i]
            if extra != 0:
                is_high = brings > lacks and highest[i] > lowest[i]
                over = lowest[i] - lacks if is_high else brings - highest[i]
                is_tie = False
                is_better = over > extra or (over == extra and extra < 0)
            if is_better:
                winners[i], top[i], tied[i] = a, odds, 1
                highest[i], lowest[i] = brings, lacks
            elif is_tie:
                tied[i] += 1
                own = mix(uint64(key) + uint64(first + i) * GOLDEN)
                coin = mix(own + uint64(tied[i]) * GOLDEN)
                if np.float64(coin >> uint64(11)) * 2.0**-53 * tied[i] < 1:
                    winners[i], highest[i], lowest[i] = a, brings, lacks
    peak = 0.0
    for i in range(samples):
        peak += least + highest[i] - costs[winners[i]]
    return peak
