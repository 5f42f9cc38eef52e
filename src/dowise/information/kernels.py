"""Compiled loops over arms and draws, and the minimiser of a divergence between two boxes."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["best_pair", "box_divergence", "gain_bounds", "summarise"]

_NO_ANSWER = -1.0  # what `box_divergence` returns where a box holds no distribution
_ROUNDING = 1e-12
_TOLERANCE = 1e-10
_MOST_SWEEPS = 20_000
_SHORT = 64


# An entry that may be 0 is kept here: the sums don't feel it, and no ratio is 0/0.
_TINY = 1e-200


@njit(cache=True)
def summarise(drawn, worth, joint, best, means, delta, gain):
    """Lemma 2 in one go: p_a(a*, y), p*(a), the mean rewards, Δ(a) and g(a) from N draws.

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first, whose probability is
    what the others leave; worth[y] is what a value is worth. joint[arm, best, y] comes in as zeros.
    """
    arms, others, samples = drawn.shape
    winners = np.empty(samples, dtype=np.int64)
    peak = _find_winners(drawn, worth, winners)
    best[:] = 0.0
    for i in range(samples):
        best[winners[i]] += 1.0
    for b in range(arms):
        best[b] /= samples
    for a in range(arms):
        for y in range(others):
            _sum_by_winner(drawn[a, y], winners, joint[a, :, y + 1])
        for b in range(arms):
            left = best[b]
            for y in range(1, others + 1):
                joint[a, b, y] /= samples
                left -= joint[a, b, y]
            joint[a, b, 0] = max(left, 0.0)
    outcome = np.empty(others + 1)
    for a in range(arms):
        for y in range(others + 1):
            outcome[y] = joint[a, :, y].sum()
        means[a] = (outcome * worth).sum()
        cost = peak / samples - means[a]
        delta[a] = cost if cost > _ROUNDING else 0.0
        gain[a] = _mutual_information(joint[a], best, outcome)


@njit(cache=True)
def _find_winners(drawn, worth, winners):
    """The best arm of every draw, the first among equals; returns the sum of their rewards."""
    arms, others, samples = drawn.shape
    top = np.full(samples, -np.inf)
    rewards = np.empty(samples)
    for a in range(arms):
        rewards[:] = worth[0]
        for y in range(others):
            more = worth[y + 1] - worth[0]
            row = drawn[a, y]
            for i in range(samples):
                rewards[i] += more * row[i]
        for i in range(samples):  # without a branch, so that it is done many draws at a time
            better = rewards[i] > top[i]
            top[i] = rewards[i] if better else top[i]
            winners[i] = a if better else winners[i]
    return top.sum()


@njit(cache=True)
def _sum_by_winner(row, winners, sums):
    """sums[b] += what `row` has where b wins; four sums in turn don't wait for one another."""
    parts = np.zeros((4, len(sums)))
    whole = len(row) // 4 * 4
    for i in range(0, whole, 4):
        parts[0, winners[i]] += row[i]
        parts[1, winners[i + 1]] += row[i + 1]
        parts[2, winners[i + 2]] += row[i + 2]
        parts[3, winners[i + 3]] += row[i + 3]
    for i in range(whole, len(row)):
        parts[0, winners[i]] += row[i]
    for b in range(len(sums)):
        sums[b] += parts[0, b] + parts[1, b] + parts[2, b] + parts[3, b]


@njit(cache=True)
def _mutual_information(joint, best, outcome):
    """KL(joint[b, y] ‖ best[b] outcome[y]) ≥ 0; exactly 0 where one arm is always the best."""
    total = 0.0
    for b in range(len(best)):
        if best[b] == 1.0:
            return 0.0
        for y in range(len(outcome)):
            if joint[b, y] > 0:
                total += joint[b, y] * np.log(joint[b, y] / (best[b] * outcome[y]))
    return max(total, 0.0)


@njit(cache=True)
def best_pair(regret, gain, nothing):
    """(first, second, probability of the first): the smallest (πᵀΔ)² / πᵀg.

    A gain of at most `nothing` counts as 0. Single arms first, then for each pair the inner
    stationary point, if there is one (see `dowise.information.ratio`). The first is −1 where a
    number is negative or not finite.
    """
    arms = len(regret)
    single, least = 0, np.inf
    cheapest, some = 0, False
    for a in range(arms):
        if not (0 <= regret[a] < np.inf and 0 <= gain[a] < np.inf):
            return -1, -1, 1.0
        if regret[a] < regret[cheapest]:
            cheapest = a
        if gain[a] > nothing:
            some = True
            ratio = regret[a] * regret[a] / gain[a]
        else:
            ratio = np.inf if regret[a] > 0 else 0.0
        if ratio < least:
            single, least = a, ratio
    if not some:
        return cheapest, cheapest, 1.0
    first, second, probability = single, single, 1.0
    for a in range(arms):
        g_a = gain[a] if gain[a] > nothing else 0.0
        for b in range(a + 1, arms):
            g_b = gain[b] if gain[b] > nothing else 0.0
            d, e = regret[a] - regret[b], g_a - g_b
            if d * e == 0:
                continue
            q = (e * regret[b] - 2 * d * g_b) / (d * e)
            rest = 1 - q
            if q >= 1:  # or so close below that it was rounded: then the other arm's is exact
                rest = (2 * d * g_a - e * regret[a]) / (d * e)
            if q > 0 and rest > 0:
                cost = q * regret[a] + rest * regret[b]
                ratio = cost * cost / (q * g_a + rest * g_b)
                if ratio < least:
                    least = ratio
                    first, second, probability = (a, b, q) if q < 1 else (b, a, rest)
    return first, second, probability


@njit(cache=True)
def _scaled(weights, low, high, out):
    """out = clip(s·weights, low, high) with the s that makes it sum to 1; False if there is none.

    The sum rises in s, piecewise linearly, so Newton's steps end in finitely many; a bracket keeps
    them honest where the sum is flat.
    """
    n = len(weights)
    below, above = 0.0, np.inf
    s = 1.0
    for _ in range(200):
        total, slope = 0.0, 0.0
        for i in range(n):
            x = s * weights[i]
            if x <= low[i]:
                x = low[i]
            elif x >= high[i]:
                x = high[i]
            else:
                slope += weights[i]
            out[i] = x
            total += x
        missing = 1.0 - total
        if abs(missing) <= 4e-16 * n:
            return True
        if missing > 0:
            below = s
        else:
            above = s
        s = s + missing / slope if slope > 0 else (2 * s if missing > 0 else s / 2)
        if not below < s < above:
            s = 2 * below + 1.0 if above == np.inf else 0.5 * (below + above)
        if s > 1e300 or (above < np.inf and above - below <= 1e-16 * above):
            break
    return abs(missing) <= 1e-12


@njit(cache=True)
def _fill_up(out, high, movable):
    """Give what is missing to 1 to the movable cells; whether that was possible."""
    missing = 1.0
    for i in range(len(out)):
        missing -= out[i]
    for i in range(len(out)):
        if movable[i] and missing > 0:
            more = min(high[i] - out[i], missing)
            out[i] += more
            missing -= more
    return missing <= 1e-12


@njit(cache=True)
def _smallest_product(gradient, low, high, order):
    """min of gradient·x over the box and the simplex: fill the cheapest cells first.

    `order` is any permutation of the cells, and comes back sorted.
    """
    left = 1.0
    total = 0.0
    for i in range(len(low)):
        left -= low[i]
        total += gradient[i] * low[i]
    _sort_by(gradient, order)
    for k in range(len(order)):
        if left <= 0:
            break
        i = order[k]
        more = min(high[i] - low[i], left)
        total += gradient[i] * more
        left -= more
    return total


@njit(cache=True)
def _sort_by(keys, order):
    """Sort the permutation `order` by its keys: by insertion where it is short or nearly done."""
    if len(order) > _SHORT:
        order[:] = np.argsort(keys)
        return
    for i in range(1, len(order)):
        moved = order[i]
        j = i
        while j > 0 and keys[order[j - 1]] > keys[moved]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = moved


@njit(cache=True)
def _alternate(p_low, p_high, q_low, q_high, start):
    """A lower bound on min KL(P‖Q) over the two boxes, within a tolerance of it, or negative.

    P and Q take turns: P = clip(s·Q), Q = clip(s·P). After each turn the Frank-Wolfe gap bounds how
    far the value is above the minimum; value − gap is a true lower bound at any time. All cells
    must have q_high > 0, and `start` is a Q inside its box with no entry 0.
    """
    n = len(p_low)
    scratch = np.empty((3, n))
    q, p, grad_p, grad_q = start, scratch[0], scratch[1], scratch[2]
    orders = np.empty((2, n), dtype=np.int64)
    order_p, order_q = orders[0], orders[1]
    for i in range(n):
        order_p[i] = order_q[i] = i
    empty = p_high == 0
    bound = 0.0
    for _ in range(_MOST_SWEEPS):
        if not _scaled(q, p_low, p_high, p):
            return _NO_ANSWER
        for i in range(n):
            if not empty[i]:
                p[i] = max(p[i], _TINY)
        if not _scaled(p, q_low, q_high, q) and not _fill_up(q, q_high, empty):
            return _NO_ANSWER
        for i in range(n):
            q[i] = max(q[i], _TINY)
        value, at_p, at_q = 0.0, 0.0, 0.0
        for i in range(n):
            if empty[i]:  # P must be 0 here: nothing to gain or lose
                grad_p[i] = grad_q[i] = 0.0
                continue
            ratio = p[i] / q[i]
            grad_p[i] = np.log(ratio) + 1.0
            grad_q[i] = -ratio
            value += p[i] * (grad_p[i] - 1.0)
            at_p += grad_p[i] * p[i]
            at_q += grad_q[i] * q[i]
        gap = at_p - _smallest_product(grad_p, p_low, p_high, order_p)
        gap += at_q - _smallest_product(grad_q, q_low, q_high, order_q)
        bound = max(bound, value - gap)
        if gap <= _TOLERANCE:
            break
    return bound


@njit(cache=True)
def _holds_a_distribution(low, high):
    for i in range(len(low)):
        if not low[i] <= high[i]:
            return False
    return low.sum() <= 1 + _ROUNDING and high.sum() >= 1 - _ROUNDING


@njit(cache=True)
def _share_a_distribution(p_low, p_high, q_low, q_high):
    low, high = 0.0, 0.0
    for i in range(len(p_low)):
        lower, upper = max(p_low[i], q_low[i]), min(p_high[i], q_high[i])
        if lower > upper:
            return False
        low += lower
        high += upper
    return low <= 1 + _ROUNDING and high >= 1 - _ROUNDING


@njit(cache=True)
def box_divergence(p_low, p_high, q_low, q_high):
    """min KL(P‖Q) over two boxes of distributions, from below; negative where one is empty."""
    clipped = np.empty((5, len(p_low)))
    for i in range(len(p_low)):
        if not (p_low[i] <= p_high[i] and q_low[i] <= q_high[i]):  # a NaN, for one
            return _NO_ANSWER
        clipped[0, i], clipped[1, i] = max(p_low[i], 0.0), min(p_high[i], 1.0)
        clipped[2, i], clipped[3, i] = max(q_low[i], 0.0), min(q_high[i], 1.0)
    p_low, p_high, q_low, q_high = clipped[0], clipped[1], clipped[2], clipped[3]
    if not _holds_a_distribution(p_low, p_high):
        return _NO_ANSWER
    if not _holds_a_distribution(q_low, q_high):
        return _NO_ANSWER
    if _share_a_distribution(p_low, p_high, q_low, q_high):
        return 0.0
    if q_low.sum() >= 1:
        q_high = q_low  # Q has no choice
    # Where Q must be 0, P must be too.
    kept = q_high > 0
    room = 0.0
    for i in range(len(kept)):
        if kept[i]:
            room += p_high[i]
        elif p_low[i] > 0:
            return np.inf
    if room < 1 - _ROUNDING:
        return np.inf
    if not kept.all():
        p_low, p_high, q_low, q_high = p_low[kept], p_high[kept], q_low[kept], q_high[kept]
    # Strictly inside: an entry of Q that starts at 0 would stay there.
    least = q_low.sum()
    spread = q_high.sum() - least
    share = (1 - least) / spread if spread > 0 else 0.0
    start = clipped[4, : len(q_low)]
    for i in range(len(q_low)):
        start[i] = q_low[i] + (q_high[i] - q_low[i]) * share
    return _alternate(p_low, p_high, q_low, q_high, start)


@njit(cache=True)
def gain_bounds(joint, best, joint_radius, best_radius, outcome_radius, low, high):
    """Both ends of Lemma 4 for every arm; False where a box holds no distribution."""
    arms, _, values = joint.shape
    cap = np.log(values)
    cells = arms * values
    p_low, p_high, q_low, q_high = np.empty((4, cells))
    outcomes = np.empty(values)
    for a in range(arms):
        for y in range(values):
            outcomes[y] = joint[a, :, y].sum()
        chi_squared = -1.0
        for b in range(arms):
            best_low, best_high = max(best[b] - best_radius, 0.0), min(best[b] + best_radius, 1.0)
            for y in range(values):
                i = b * values + y
                seen, outcome = joint[a, b, y], outcomes[y]
                p_low[i], p_high[i] = max(seen - joint_radius, 0.0), min(seen + joint_radius, 1.0)
                q_low[i] = best_low * max(outcome - outcome_radius, 0.0)
                q_high[i] = best_high * min(outcome + outcome_radius, 1.0)
                chi_squared += p_high[i] ** 2 / q_low[i] if q_low[i] > 0 else np.inf
        high[a] = min(max(chi_squared, 0.0), cap)
        divergence = box_divergence(p_low, p_high, q_low, q_high)
        if divergence < 0:
            return False
        low[a] = min(divergence, high[a])
    return True
