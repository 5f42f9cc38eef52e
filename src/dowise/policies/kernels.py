"""Compiled loops of the policies: indices, Beta draws, and combining the estimators of an arm."""

from __future__ import annotations

import numpy as np
from numba import njit

from dowise.belief.kernels import draw_row

LANES_PER_ESTIMATOR = 5  # fewer resamples for each say too little of how they vary together

__all__ = ["combine_estimates", "draw_betas", "least_variance_weights", "ucb_index"]


@njit(cache=True)
def ucb_index(plays, totals, rounds, exploration, index):
    """mean + √(c·ln t / n) for each arm, infinite where n = 0; c is `exploration`, t `rounds`."""
    for arm in range(len(plays)):
        n = plays[arm]
        if n == 0:
            index[arm] = np.inf
        else:
            index[arm] = totals[arm] / n + np.sqrt(exploration * np.log(rounds) / n)


@njit(cache=True)
def draw_betas(key0, key1, shapes, out):
    """out[arm, draw] from Beta(shapes[arm, 0], shapes[arm, 1]): a Dirichlet row of two entries."""
    draws = out.shape[1]
    values = np.empty((2, draws + 16), dtype=np.float32)
    total = np.empty(draws + 16, dtype=np.float32)
    for arm in range(len(shapes)):
        draw_row(key0, key1, 2 * arm, 0, shapes[arm], values, 0, total, draws)
        for i in range(draws):
            out[arm, i] = values[0, i]


@njit(cache=True)
def _solve(matrix, right, size):
    """Gaussian elimination with pivoting on the upper left corner, in place; the solution."""
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(size):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            right[k], right[pivot] = right[pivot], right[k]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            right[i] -= factor * right[k]
            for j in range(k, size):
                matrix[i, j] -= factor * matrix[k, j]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            right[k] -= matrix[k, j] * right[j]
        right[k] /= matrix[k, k]


@njit(cache=True)
def least_variance_weights(covariance, weights):
    """min wᵀΣw over Σw = 1, w ≥ 0, exactly, by Wolfe's (1976) active-set method.

    Σ must be positive semidefinite; a touch is added to its diagonal, so that equal estimators
    share the weight. Fills `weights` and returns wᵀΣw.
    """
    n = len(weights)
    touch = 1e-12 * np.trace(covariance) / n + 1e-300
    weights[:] = 0.0
    first = 0
    for i in range(1, n):
        if covariance[i, i] < covariance[first, first]:
            first = i
    weights[first] = 1.0
    active = np.zeros(n, dtype=np.bool_)
    active[first] = True
    places, target = np.empty(n, dtype=np.int64), np.empty(n)
    corner = np.empty((n, n))
    for _ in range(10 * n + 10):
        value, best, entering = 0.0, np.inf, -1
        for i in range(n):
            slope = touch * weights[i]
            for j in range(n):
                slope += covariance[i, j] * weights[j]
            value += weights[i] * slope
            if slope < best and not active[i]:
                best, entering = slope, i
        if entering < 0 or best >= value - 1e-13 * value:
            break
        active[entering] = True
        while True:
            size = 0
            for i in range(n):
                if active[i]:
                    places[size] = i
                    size += 1
            for i in range(size):
                target[i] = 1.0
                for j in range(size):
                    corner[i, j] = covariance[places[i], places[j]]
                corner[i, i] += touch
            _solve(corner, target, size)
            total = target[:size].sum()
            step = 1.0
            for i in range(size):
                target[i] /= total
                if target[i] <= 0:
                    now = weights[places[i]]
                    step = min(step, now / (now - target[i]) if now > target[i] else 0.0)
            for i in range(size):
                w = weights[places[i]]
                weights[places[i]] = w + step * (target[i] - w)
            if step == 1.0:
                break
            for i in range(size):  # whatever reached 0 leaves
                if target[i] <= 0 and weights[places[i]] <= 1e-15:
                    weights[places[i]] = 0.0
                    active[places[i]] = False
    variance = 0.0
    for i in range(n):
        for j in range(n):
            variance += weights[i] * covariance[i, j] * weights[j]
    return max(variance, 0.0)


@njit(cache=True)
def _usable_lanes(values, lanes, slots, kept, count):
    """The resamples on which all that are kept are defined, and their number."""
    usable = np.ones(lanes, dtype=np.bool_)
    usable[0] = False
    for i in range(count):
        value = values[slots[kept[i]]]
        for lane in range(1, lanes):
            usable[lane] &= value[lane] == value[lanes + lane]
    return usable, usable.sum()


@njit(cache=True)
def combine_estimates(values, lanes, results, offsets, most_undefined, means, variances, weights):
    """θ̂ and s² of every arm: the estimators weighted for the least bootstrap variance.

    Lane 0 is the data, the others are resamples; an estimate is undefined where the two halves of
    the lanes differ. An estimator is left out if it is undefined on the data or on more than the
    share `most_undefined` of the resamples, and one that never varies if there are others. The
    covariance comes from the resamples on which all that are kept are defined; where these are
    fewer than five for each estimator, those most often undefined are left out as well. An arm of
    which nothing is defined gets NaN.
    """
    resamples = lanes - 1
    for a in range(len(means)):
        slots = results[offsets[a] : offsets[a + 1]]
        share = weights[offsets[a] : offsets[a + 1]]
        share[:] = 0.0
        means[a] = variances[a] = np.nan
        kept, missing = np.empty((2, len(slots)), dtype=np.int64)
        count = 0
        for i in range(len(slots)):
            value = values[slots[i]]
            undefined = 0
            for lane in range(1, lanes):
                undefined += value[lane] != value[lanes + lane]
            if value[0] == value[lanes] and undefined <= most_undefined * resamples:
                kept[count], missing[count] = i, undefined
                count += 1
        if count == 0:
            continue
        usable, number = _usable_lanes(values, lanes, slots, kept, count)
        while count > 1 and number < LANES_PER_ESTIMATOR * count:
            worst = count - 1
            for i in range(count):
                if missing[i] > missing[worst]:
                    worst = i
            for i in range(worst, count - 1):
                kept[i], missing[i] = kept[i + 1], missing[i + 1]
            count -= 1
            usable, number = _usable_lanes(values, lanes, slots, kept, count)
        centre = np.zeros(count)
        for i in range(count):
            value = values[slots[kept[i]]]
            for lane in range(1, lanes):
                if usable[lane]:
                    centre[i] += value[lane] / number
        covariance = np.zeros((count, count))
        if number > 1:
            for i in range(count):
                one = values[slots[kept[i]]]
                for j in range(i + 1):
                    other = values[slots[kept[j]]]
                    total = 0.0
                    for lane in range(1, lanes):
                        if usable[lane]:
                            total += (one[lane] - centre[i]) * (other[lane] - centre[j])
                    covariance[i, j] = covariance[j, i] = total / (number - 1)
        varying = 0  # one that never varies has seen one thing only, and would take all the weight
        for i in range(count):
            if covariance[i, i] > 1e-15:
                kept[varying] = kept[i]
                for j in range(count):
                    covariance[varying, j] = covariance[i, j]
                for j in range(count):
                    covariance[j, varying] = covariance[j, i]
                varying += 1
        if varying == 0:
            means[a], variances[a] = values[slots[kept[0]], 0], 0.0
            share[kept[0]] = 1.0
            continue
        found = np.empty(varying)
        variances[a] = least_variance_weights(covariance[:varying, :varying].copy(), found)
        means[a] = 0.0
        for i in range(varying):
            share[kept[i]] = found[i]
            means[a] += found[i] * values[slots[kept[i]], 0]
        means[a] = min(max(means[a], 0.0), 1.0)
