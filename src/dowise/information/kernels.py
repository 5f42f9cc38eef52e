"""Compiled loops over arms and draws, and the minimiser of a divergence between two boxes."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["accumulate", "minimise_divergence"]


# An entry that may be 0 is kept here: the sums don't feel it, and no ratio is 0/0.
_TINY = 1e-200


@njit(cache=True)
def accumulate(drawn, worth, joint, counts):
    """Add up each draw's probabilities under its best arm; the sum of the best mean rewards.

    drawn[arm, value, draw]; joint[arm, best, value] and counts[best] must come in as zeros.
    """
    arms, values, samples = drawn.shape
    best = np.zeros(samples, dtype=np.int64)
    top = np.full(samples, -np.inf)
    means = np.empty(samples)
    for a in range(arms):
        means[:] = 0.0
        for y in range(values):
            row = drawn[a, y]
            w = worth[y]
            for i in range(samples):
                means[i] += w * row[i]
        for i in range(samples):
            if means[i] > top[i]:
                top[i] = means[i]
                best[i] = a
    peak = 0.0
    for i in range(samples):
        counts[best[i]] += 1.0
        peak += top[i]
    for a in range(arms):
        for y in range(values):
            row = drawn[a, y]
            for i in range(samples):
                joint[a, best[i], y] += row[i]
    return peak


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
def _smallest_product(gradient, low, high):
    """min of gradient·x over the box and the simplex: fill the cheapest cells first."""
    left = 1.0
    total = 0.0
    for i in range(len(low)):
        left -= low[i]
        total += gradient[i] * low[i]
    for i in np.argsort(gradient):
        if left <= 0:
            break
        more = min(high[i] - low[i], left)
        total += gradient[i] * more
        left -= more
    return total


@njit(cache=True)
def minimise_divergence(p_low, p_high, q_low, q_high, start, tolerance, most_sweeps):
    """A lower bound on min KL(P‖Q) over the two boxes, within `tolerance` of it; −1 if infeasible.

    P and Q take turns: P = clip(s·Q), Q = clip(s·P). After each turn the Frank-Wolfe gap bounds how
    far the value is above the minimum; value − gap is a true lower bound at any time. All cells
    must have q_high > 0, and `start` is a Q inside its box with no entry 0.
    """
    n = len(p_low)
    q, p = start.copy(), np.empty(n)
    grad_p, grad_q = np.empty(n), np.empty(n)
    empty = np.zeros(n, dtype=np.bool_)
    bound = 0.0
    for _ in range(most_sweeps):
        if not _scaled(q, p_low, p_high, p):
            return -1.0
        for i in range(n):
            empty[i] = p_high[i] == 0
            if not empty[i]:
                p[i] = max(p[i], _TINY)
        if not _scaled(p, q_low, q_high, q) and not _fill_up(q, q_high, empty):
            return -1.0
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
            value += p[i] * np.log(ratio)
            at_p += grad_p[i] * p[i]
            at_q += grad_q[i] * q[i]
        gap = at_p - _smallest_product(grad_p, p_low, p_high)
        gap += at_q - _smallest_product(grad_q, q_low, q_high)
        bound = max(bound, value - gap)
        if gap <= tolerance:
            break
    return bound
