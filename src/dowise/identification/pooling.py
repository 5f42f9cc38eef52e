"""Pooling of estimators by least-variance weights: the kernels of z²ID.

Lane 0 of a value is computed from the data, the other lanes from bootstrap resamples. The second
half of the lanes repeats the first with undefined quotients set to 1 instead of 0, so an estimate
is undefined in a lane where the halves differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dowise._core.kernels import kernel

LANES_PER_ESTIMATOR = 5  # with fewer resamples per estimator the covariance is too noisy
MAX_UNDEFINED = 0.1  # share of resamples on which an estimator may be undefined
_MIN_VARIANCE = 1e-15  # a smaller variance is rounding


@kernel()
def fill_marginals(values: Any, marginals: Any, records: Any, weights: Any) -> None:
    """Count the records of one arm in all its tables, lane by lane; see `circuit.Marginals`.

    records[r] has the codes of a record, weights[r, lane] the number of times it was drawn. The
    second half of the lanes repeats the first.
    """
    lanes = weights.shape[1]
    for k in range(len(marginals.firsts)):
        first = marginals.firsts[k]
        for slot in range(first, first + marginals.sizes[k]):
            values[slot, :] = 0.0
        for r in range(len(records)):
            slot = first
            for v in range(records.shape[1]):
                slot += records[r, v] * marginals.strides[k, v]
            out, drawn = values[slot], weights[r]
            for lane in range(lanes):
                out[lane] += drawn[lane]
        for slot in range(first, first + marginals.sizes[k]):
            for lane in range(lanes):
                values[slot, lanes + lane] = values[slot, lane]


@kernel()
def pool_estimates(
    values: Any, lanes: Any, results: Any, offsets: Any, means: Any, variances: Any, weights: Any
) -> None:
    """Compute θ̂ and s² of every arm; arm a has estimators results[offsets[a]:offsets[a + 1]].

    An estimator is left out if it is undefined on the data or on too many resamples, or if it never
    varies and others do. The covariance is taken over the resamples on which all chosen estimators
    are defined; if there are fewer than five per estimator, those most often undefined are left out
    as well. An arm without a defined estimator gets NaN.
    """
    for a in range(len(means)):
        slots = results[offsets[a] : offsets[a + 1]]
        share = weights[offsets[a] : offsets[a + 1]]
        share[:] = 0.0
        means[a] = variances[a] = np.nan
        chosen, missing = _defined(values, lanes, slots)
        if len(chosen) == 0:
            continue
        chosen, usable = _with_enough_lanes(values, lanes, slots, chosen, missing)
        covariance = _covariance(values, lanes, slots[chosen], usable)
        varying = _varying(covariance)
        if len(varying) == 0:
            means[a], variances[a] = values[slots[chosen[0]], 0], 0.0
            share[chosen[0]] = 1.0
            continue
        means[a], variances[a] = _weighted(
            values, slots, chosen[varying], covariance, varying, share
        )


@kernel()
def _defined(values: Any, lanes: Any, slots: Any) -> Any:
    """Return the estimators defined on the data and most resamples, and their undefined counts."""
    chosen, missing = np.empty(len(slots), dtype=np.int64), np.empty(len(slots), dtype=np.int64)
    count = 0
    for i in range(len(slots)):
        value = values[slots[i]]
        undefined = 0
        for lane in range(1, lanes):
            undefined += value[lane] != value[lanes + lane]
        if value[0] == value[lanes] and undefined <= MAX_UNDEFINED * (lanes - 1):
            chosen[count], missing[count] = i, undefined
            count += 1
    return chosen[:count], missing[:count]


@kernel()
def _usable_lanes(values: Any, lanes: Any, slots: Any) -> Any:
    """Return a mask of the resamples on which all estimators in `slots` are defined."""
    usable = np.ones(lanes, dtype=np.bool_)
    usable[0] = False
    for i in range(len(slots)):
        value = values[slots[i]]
        for lane in range(1, lanes):
            usable[lane] &= value[lane] == value[lanes + lane]
    return usable


@kernel()
def _with_enough_lanes(values: Any, lanes: Any, slots: Any, chosen: Any, missing: Any) -> Any:
    """Drop estimators until there are enough usable resamples; return both."""
    count = len(chosen)
    usable = _usable_lanes(values, lanes, slots[chosen])
    while count > 1 and usable.sum() < LANES_PER_ESTIMATOR * count:
        worst = count - 1
        for i in range(count):
            if missing[i] > missing[worst]:
                worst = i
        for i in range(worst, count - 1):
            chosen[i], missing[i] = chosen[i + 1], missing[i + 1]
        count -= 1
        usable = _usable_lanes(values, lanes, slots[chosen[:count]])
    return chosen[:count], usable


@kernel()
def _covariance(values: Any, lanes: Any, slots: Any, usable: Any) -> Any:
    """Return the covariance of the estimators over the usable resamples."""
    count, number = len(slots), usable.sum()
    centre, covariance = np.zeros(count), np.zeros((count, count))
    for i in range(count):
        value = values[slots[i]]
        for lane in range(1, lanes):
            if usable[lane]:
                centre[i] += value[lane] / number
    if number < 2:
        return covariance
    for i in range(count):
        a = values[slots[i]]
        for j in range(i + 1):
            b = values[slots[j]]
            total = 0.0
            for lane in range(1, lanes):
                if usable[lane]:
                    total += (a[lane] - centre[i]) * (b[lane] - centre[j])
            covariance[i, j] = covariance[j, i] = total / (number - 1)
    return covariance


@kernel()
def _varying(covariance: Any) -> Any:
    """Return the estimators that vary, since a constant one would get all the weight."""
    varying = np.empty(len(covariance), dtype=np.int64)
    count = 0
    for i in range(len(covariance)):
        if covariance[i, i] > _MIN_VARIANCE:
            varying[count] = i
            count += 1
    return varying[:count]


@kernel()
def _weighted(
    values: Any, slots: Any, chosen: Any, covariance: Any, varying: Any, share: Any
) -> Any:
    """Return the weighted mean of least variance, and the variance; fills `share`."""
    count = len(varying)
    submatrix, weights = np.empty((count, count)), np.empty(count)
    for i in range(count):
        for j in range(count):
            submatrix[i, j] = covariance[varying[i], varying[j]]
    variance = least_variance_weights(submatrix, weights)
    mean = 0.0
    for i in range(count):
        share[chosen[i]] = weights[i]
        mean += weights[i] * values[slots[chosen[i]], 0]
    return min(max(mean, 0.0), 1.0), variance


@kernel()
def _solve(matrix: Any, right: Any, size: Any) -> None:
    """Solve a linear system by Gaussian elimination with pivoting; `right` gets the solution."""
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


@kernel()
def least_variance_weights(covariance: Any, weights: Any) -> Any:
    """Minimise wᵀΣw over Σw = 1, w ≥ 0, exactly, by Wolfe's (1976) active-set method.

    Σ must be positive semidefinite. A tiny ridge is added to its diagonal, so that equal estimators
    share the weight. Fills `weights` and returns wᵀΣw.
    """
    n = len(weights)
    ridge = 1e-12 * np.trace(covariance) / n + 1e-300
    weights[:] = 0.0
    first = 0
    for i in range(1, n):
        if covariance[i, i] < covariance[first, first]:
            first = i
    weights[first] = 1.0
    active = np.zeros(n, dtype=np.bool_)
    active[first] = True
    for _ in range(10 * n + 10):
        entering = _entering(covariance, ridge, weights, active)
        if entering < 0:
            break
        active[entering] = True
        while not _step(covariance, ridge, weights, active):
            pass
    variance = 0.0
    for i in range(n):
        for j in range(n):
            variance += weights[i] * covariance[i, j] * weights[j]
    return max(variance, 0.0)


@kernel()
def _entering(covariance: Any, ridge: Any, weights: Any, active: Any) -> Any:
    """Return the estimator that would lower the variance most, −1 if none would."""
    value, best, entering = 0.0, np.inf, -1
    for i in range(len(weights)):
        slope = ridge * weights[i]
        for j in range(len(weights)):
            slope += covariance[i, j] * weights[j]
        value += weights[i] * slope
        if slope < best and not active[i]:
            best, entering = slope, i
    return entering if best < value - 1e-13 * value else -1


@kernel()
def _step(covariance: Any, ridge: Any, weights: Any, active: Any) -> Any:
    """Move towards the best weights of the active estimators until one reaches 0.

    Returns True if none does; otherwise those at 0 become inactive.
    """
    places = np.flatnonzero(active)
    size = len(places)
    corner, target = np.empty((size, size)), np.ones(size)
    for i in range(size):
        for j in range(size):
            corner[i, j] = covariance[places[i], places[j]]
        corner[i, i] += ridge
    _solve(corner, target, size)
    target /= target.sum()
    step = 1.0
    for i in range(size):
        if target[i] <= 0:
            now = weights[places[i]]
            step = min(step, now / (now - target[i]) if now > target[i] else 0.0)
    for i in range(size):
        w = weights[places[i]]
        weights[places[i]] = w + step * (target[i] - w)
    if step == 1.0:
        return True
    for i in range(size):
        if target[i] <= 0 and weights[places[i]] <= 1e-15:
            weights[places[i]] = 0.0
            active[places[i]] = False
    return False
