"""Kernels of pooled rows: counting, weighing hypotheses, and matching rows.

See `dowise.belief.pooling` for the model. With hit and miss the counts of a stick in a row, and B
the Beta function, the evidence of the pair (a, b) is

    L(a, b) = Π_rows B(a + hit, b + miss) / B(a, b),

so one more hit multiplies it by (a + hit)/(a + b + hit + miss), and one more miss by
(b + miss)/(a + b + hit + miss).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, njit
from numba.extending import overload

from dowise._core.kernels import kernel
from dowise.belief.pooling import NAT
from dowise.belief.variates import SMALL, exp64, log64


@SMALL
def log_in_nats(x):
    """Return log x as an integer number of 2⁻³⁶ nats."""
    return int64(np.rint(log64(x) * NAT))


def add_count(state: Any, table: Any, entry: Any, code: Any, step: Any) -> None:
    """Count an entry of a table (`step` 1) or take it back (−1); `code` is its place in the row.

    With pooled rows it updates the evidence of the table, and matches its rows.
    """
    raise NotImplementedError("for kernels only")


@overload(add_count)
def _add_count(state, table, entry, code, step):  # noqa: ARG001 (the types of the call)
    return _add_pooled if "pooling" in state.fields else _add_flat


def _add_flat(state, table, entry, code, step):  # noqa: ARG001 (the arguments of `_add_pooled`)
    state.counts[entry] += step


def _add_pooled(state, table, entry, code, step):
    is_pooled = state.pooling.is_pooled[table]
    if step < 0:
        state.counts[entry] += step
    if is_pooled:
        _weigh_entry(state, table, entry - code, code, step)
    if step > 0:
        state.counts[entry] += step
    if is_pooled:
        match_table(state, table)


@SMALL
def _weigh_entry(state, table, row, code, step):
    """Add to the evidence what one more record with this value tells; see the module docstring."""
    counts, told, size = state.counts, state.told, state.pooling.sizes[table]
    shapes, grid_sums = state.pooling.grid.shapes, state.pooling.grid.sums
    sum_of = state.pooling.grid.sum_of
    left = int64(0)
    for k in range(size):
        left += counts[row + k]
    gain = log_in_nats(1.0 + counts[row + code]) - log_in_nats(float(size) + left)
    state.told_flat[table] += step * gain
    width = len(shapes)
    logs = np.empty(width + len(grid_sums), dtype=np.int64)
    for stick in range(min(code, size - 2) + 1):
        hit = counts[row + stick]
        is_hit = stick == code
        count = hit if is_hit else left - hit
        for i in range(width):
            logs[i] = log_in_nats(shapes[i] + count)
        for i in range(len(grid_sums)):
            logs[width + i] = log_in_nats(grid_sums[i] + left)
        for i in range(width):
            for j in range(width):
                g = i * width + j
                gain = logs[i if is_hit else j] - logs[width + sum_of[g]]
                told[table, stick, g] += step * gain
        left -= hit


@kernel()
def weigh_table(state, table, shares):
    """Fill shares[stick, g] with the posterior of the pairs, and return P(pooled)."""
    grid, size = state.pooling.grid, state.pooling.sizes[table]
    return _weigh(state.told, state.told_flat[table], table, grid.log_prior, size, shares)


@SMALL
def _weigh(told, told_flat, table, log_prior, size, shares):
    pooled, pairs = 0.0, log_prior.shape[1]
    for stick in range(size - 1):
        later = size - 1 - stick
        for g in range(pairs):  # sums have loops of their own: the others are vectorised
            shares[stick, g] = log_prior[later, g] + told[table, stick, g] * (1 / NAT)
        top, total = -np.inf, 0.0
        for g in range(pairs):
            top = max(top, shares[stick, g])
        for g in range(pairs):
            shares[stick, g] = exp64(shares[stick, g] - top)
        for g in range(pairs):
            total += shares[stick, g]
        scale = 1.0 / total
        for g in range(pairs):
            shares[stick, g] *= scale
        pooled += top + log64(total)
    gap = told_flat / NAT - pooled
    odds = exp64(-abs(gap))
    return odds / (1 + odds) if gap > 0 else 1 / (1 + odds)


# Rows of the room of `match_table`. One array is allocated: several take longer than all the rest.
_SUMS, _FIRST, _SECOND, _MEANS, _SQUARES, _UNSEEN, _MOMENTS = 0, 1, 2, 3, 4, 5, 6


@SMALL
def _sum_moments(room, stick, shares, shape, pair, mirrored):
    """Fill in Σ w, Σ w·a and Σ w·a² over the pairs of each distinct sum a + b, for one stick.

    w is the share of a pair. Of the rows of `room` three each are the moments of a stick.
    """
    row = _MOMENTS + 3 * stick
    for c in range(len(pair)):
        g, h = pair[c], mirrored[c]
        w, v = shares[stick, g], shares[stick, h] if g != h else 0.0
        a, b = w * shape[g], v * shape[h]
        room[row, c], room[row + 1, c], room[row + 2, c] = w + v, a + b, a * shape[g] + b * shape[h]


@SMALL
def _moments_of_stick(room, stick, sums, hit, left):
    """Return E[s] and E[s²] of a stick with `hit` hits among `left` records, if rows are pooled.

    Given the pair they are (a + hit)/(c + left), and that times (a + hit + 1)/(c + left + 1).
    """
    row, x, n = _MOMENTS + 3 * stick, float64(hit), float64(left)
    for i in range(sums):
        total, first, second = room[row, i], room[row + 1, i], room[row + 2, i]
        inverse = 1.0 / (room[_SUMS, i] + n)
        room[_FIRST, i] = (first + x * total) * inverse
        top = second + (2.0 * x + 1.0) * first + x * (x + 1.0) * total
        room[_SECOND, i] = top * (inverse / (room[_SUMS, i] + n + 1.0))
    mean, square, more_mean, more_square = 0.0, 0.0, 0.0, 0.0
    for i in range(0, sums - 1, 2):  # two sums each run in parallel
        mean += room[_FIRST, i]
        more_mean += room[_FIRST, i + 1]
        square += room[_SECOND, i]
        more_square += room[_SECOND, i + 1]
    if sums % 2:
        mean += room[_FIRST, sums - 1]
        square += room[_SECOND, sums - 1]
    return mean + more_mean, square + more_square


@kernel()
def match_table(state, table):
    """Match all rows of a table: Dirichlet parameters with each row's mean and total variance.

    The rows without records are all alike, and are matched once.
    """
    counts, prior, starts = state.counts, state.prior, state.pooling.starts
    size, a, grid_sums = state.pooling.sizes[table], state.pooling.grid.a, state.pooling.grid.sums
    used, sums = _MOMENTS + 3 * (size - 1), len(grid_sums)
    room = np.empty((used + size - 1, max(len(a), size)))
    shares = room[used:]
    log_prior = state.pooling.grid.log_prior
    pooled = _weigh(state.told, state.told_flat[table], table, log_prior, size, shares)
    pair, mirrored = state.pooling.grid.pair, state.pooling.grid.mirrored
    for stick in range(size - 1):
        _sum_moments(room, stick, shares, a, pair, mirrored)
    for i in range(sums):
        room[_SUMS, i] = grid_sums[i]
    has_unseen = False
    for row in range(starts[table], starts[table + 1], size):
        records = int64(0)
        for k in range(size):
            records += counts[row + k]
        if records == 0 and has_unseen:
            for k in range(size):
                prior[row + k] = room[_UNSEEN, k]
            continue
        left, rest, rest2 = records, 1.0, 1.0
        for stick in range(size - 1):
            hit = counts[row + stick]
            mean, square = _moments_of_stick(room, stick, sums, hit, left)
            room[_MEANS, stick], room[_SQUARES, stick] = rest * mean, rest2 * square
            rest *= 1.0 - mean
            rest2 *= 1.0 - 2.0 * mean + square
            left -= hit
        room[_MEANS, size - 1], room[_SQUARES, size - 1] = rest, rest2
        above, below = 0.0, 0.0
        for k in range(size):
            own = 1.0 + counts[row + k]
            m = own / (size + records)
            square = m * (own + 1.0) / (size + records + 1.0)
            room[_MEANS, k] = (1.0 - pooled) * m + pooled * room[_MEANS, k]
            square = (1.0 - pooled) * square + pooled * room[_SQUARES, k]
            above += room[_MEANS, k] * (1.0 - room[_MEANS, k])
            below += square - room[_MEANS, k] * room[_MEANS, k]
        kappa = above / below - 1.0
        for k in range(size):
            prior[row + k] = kappa * room[_MEANS, k] - counts[row + k]
            if records == 0:
                has_unseen = True
                room[_UNSEEN, k] = prior[row + k]


@kernel()
def recount(state, points):
    """Compute the evidence of all pooled tables from the counts, equal to that of `add_count`.

    `points` are all counts of values, and of a value and those after it, ascending.
    """
    counts, grid = state.counts, state.pooling.grid
    shapes, sums = _log_sums(grid.shapes, points), _log_sums(grid.sums, points)
    whole = _log_sums(np.arange(1.0, len(grid.log_prior) + 1.0), points)
    width = len(grid.shapes)
    for table in range(len(state.pooling.sizes)):
        if not state.pooling.is_pooled[table]:
            continue
        size, told = state.pooling.sizes[table], state.told[table]
        told[:] = 0
        flat = int64(0)
        for row in range(state.pooling.starts[table], state.pooling.starts[table + 1], size):
            left = int64(0)
            for k in range(size):
                left += counts[row + k]
                flat += whole[0, _index(points, counts[row + k])]
            flat -= whole[size - 1, _index(points, left)]
            for stick in range(size - 1):
                hit = counts[row + stick]
                hits, misses = _index(points, hit), _index(points, left - hit)
                total = _index(points, left)
                for g in range(len(grid.a)):
                    told[stick, g] += shapes[g // width, hits] + shapes[g % width, misses]
                    told[stick, g] -= sums[grid.sum_of[g], total]
                left -= hit
        state.told_flat[table] = flat


@njit
def _index(points, count):
    """Return the index of a count among ascending points."""
    low, high = 0, len(points) - 1
    while low < high:
        middle = (low + high) // 2
        if points[middle] < count:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _log_sums(shapes, points):
    """Return sums[i, j] = Σ_{c<points[j]} log(shapes[i] + c) in 2⁻³⁶ nats; points ascend."""
    sums = np.empty((len(shapes), len(points)), dtype=np.int64)
    for i in range(len(shapes)):
        total, count = int64(0), int64(0)
        for j in range(len(points)):
            while count < points[j]:
                total += log_in_nats(shapes[i] + count)
                count += 1
            sums[i, j] = total
    return sums
