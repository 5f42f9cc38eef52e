"""From draws and winners to p*(a), p_a(a*, y), Δ(a) and g(a): Lemma 2 in compiled loops.

Related arrays come one by one, not in a NamedTuple: numba takes a microsecond to unpack one of
five arrays, and a round of a small problem is made of few of them.
"""

from __future__ import annotations

import numpy as np

from dowise.compiling import kernel
from dowise.model.winners import find_winners

__all__ = [
    "add_up", "count_winners", "find_and_count", "finish", "sum_by_winner", "summarise",
]  # fmt: skip

_ROUNDING = 1e-12


@kernel()
def find_and_count(drawn, scaled, costs, winners, best, winning):
    """`find_winners`, then `count_winners`: the sum of the best rewards, and how many arms win."""
    peak = find_winners(drawn, scaled, costs, winners)
    return peak, count_winners(winners, best, winning)


@kernel()
def count_winners(winners, best, winning):
    """best[a]: the share of draws that arm a wins. Returns how many arms win some draw.

    winning[:that many] are those arms, rising.
    """
    for a in range(len(best)):
        best[a] = 0.0
        winning[a] = 0
    half = len(winners) // 2
    for i in range(half):  # two counts don't wait for one another
        best[winners[i]] += 1.0
        winning[winners[half + i]] += 1
    for i in range(2 * half, len(winners)):
        best[winners[i]] += 1.0
    count = 0
    for a in range(len(best)):
        best[a] = (best[a] + winning[a]) / len(winners)
        if best[a] > 0:
            winning[count] = a
            count += 1
    return count


@kernel()
def summarise(drawn, scaled, peak, winners, winning, best, joint, means, regret, gain):
    """p_a(a*, y), the mean rewards, Δ(a) and g(a) from N draws: the last four are filled here.

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first, whose probability is
    what the others leave; scaled[y] is what a value is worth; `peak` is the sum of the best net
    rewards; joint[a, k, y] = p_a(a* = winning[k], Y_a = y). At first means[a] is minus what the arm
    costs, so that in the end the means are net.
    """
    arms, others, samples = drawn.shape
    ranks = winners if len(winning) == arms else _ranks(winners, winning, arms)
    parts = np.empty((4, len(winning)))
    for a in range(arms):
        for y in range(others):
            sum_by_winner(drawn[a, y], ranks, parts)
            for k in range(len(winning)):
                total = parts[0, k] + parts[1, k] + parts[2, k] + parts[3, k]
                joint[a, k, y + 1] = total / samples
    finish(scaled, peak / samples, winning, best, joint, means, regret, gain)


@kernel()
def add_up(drawn, ranks, joint):
    """Add draws to joint[a, k, y], of all values but the first, where the k-th winning arm wins.

    ranks[i] is the place of draw i's winner among the winning arms.
    """
    arms, others, samples = drawn.shape
    for a in range(arms):
        for y in range(others):
            for i in range(samples):
                joint[a, ranks[i], y + 1] += drawn[a, y, i]


@kernel()
def finish(scaled, top, winning, best, joint, means, regret, gain):
    """Fill in p_a(a*, y) for the first value y, and the last three; `top` is the mean of the best.

    The arms are those of `joint`: some of all, whose p* are in `best`. Of `means` see `summarise`.
    """
    arms, _, values = joint.shape
    outcome = np.empty(values)
    for a in range(arms):
        for k in range(len(winning)):
            left = best[winning[k]]
            for y in range(1, values):
                left -= joint[a, k, y]
            joint[a, k, 0] = max(left, 0.0)
        for y in range(values):
            outcome[y] = 0.0
            for k in range(len(winning)):
                outcome[y] += joint[a, k, y]
            means[a] += outcome[y] * scaled[y]
        cost = top - means[a]
        regret[a] = cost if cost > _ROUNDING * max(1.0, abs(top)) else 0.0
        gain[a] = _mutual_information(joint[a], winning, best, outcome)


@kernel()
def _ranks(winners, winning, arms):
    """The place of every draw's winner among the winning arms."""
    places = np.empty(arms, dtype=np.int64)
    for k in range(len(winning)):
        places[winning[k]] = k
    ranks = np.empty(len(winners), dtype=np.int64)
    for i in range(len(winners)):
        ranks[i] = places[winners[i]]
    return ranks


@kernel()
def sum_by_winner(row, ranks, parts):
    """parts[0, k] + … + parts[3, k] is what `row` has where the k-th winning arm wins.

    Four sums in turn don't wait for one another.
    """
    for k in range(parts.shape[1]):
        parts[0, k] = parts[1, k] = parts[2, k] = parts[3, k] = 0.0
    whole = len(row) // 4 * 4
    for i in range(0, whole, 4):
        parts[0, ranks[i]] += row[i]
        parts[1, ranks[i + 1]] += row[i + 1]
        parts[2, ranks[i + 2]] += row[i + 2]
        parts[3, ranks[i + 3]] += row[i + 3]
    for i in range(whole, len(row)):
        parts[0, ranks[i]] += row[i]


@kernel()
def _mutual_information(joint, winning, best, outcome):
    """KL(joint[k, y] ‖ best[k] outcome[y]) ≥ 0; exactly 0 where one arm is always the best."""
    if len(winning) == 1:
        return 0.0
    total = 0.0
    for k in range(len(winning)):
        share = best[winning[k]]
        for y in range(len(outcome)):
            if joint[k, y] > 0:
                total += joint[k, y] * np.log(joint[k, y] / (share * outcome[y]))
    return max(total, 0.0)
