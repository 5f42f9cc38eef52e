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
from numba import int64, njit
from numba.extending import overload

from dowise._core.kernels import kernel
from dowise.belief.variates import exp64, log64

NAT = float(2**36)  # one nat of evidence, which is counted in integers
_NEGLIGIBLE = 1e-12  # pairs with a smaller share are left out when rows are matched


@njit
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


@njit
def _weigh_entry(state, table, row, code, step):
    """Add to the evidence what one more record with this value tells; see the module docstring."""
    counts, grid, size = state.counts, state.pooling.grid, state.pooling.sizes[table]
    left = int64(0)
    for k in range(size):
        left += counts[row + k]
    gain = log_in_nats(1.0 + counts[row + code]) - log_in_nats(float(size) + left)
    state.told_flat[table] += step * gain
    logs = np.empty(len(grid.shapes), dtype=np.int64)
    sums = np.empty(len(grid.sums), dtype=np.int64)
    for stick in range(min(code, size - 2) + 1):
        hit = counts[row + stick]
        is_hit = stick == code
        told = state.told[table, stick]
        for i in range(len(sums)):
            sums[i] = log_in_nats(grid.sums[i] + left)
        for i in range(len(logs)):
            logs[i] = log_in_nats(grid.shapes[i] + (hit if is_hit else left - hit))
        width = len(logs)
        for g in range(len(told)):
            shape = g // width if is_hit else g % width
            told[g] += step * (logs[shape] - sums[grid.sum_of[g]])
        left -= hit


@kernel()
def weigh_table(state, table, shares):
    """Fill shares[stick, g] with the posterior of the pairs, and return P(pooled)."""
    grid, size = state.pooling.grid, state.pooling.sizes[table]
    pooled = 0.0
    for stick in range(size - 1):
        share, top = shares[stick], -np.inf
        for g in range(len(grid.a)):
            share[g] = grid.log_prior[size - 1 - stick, g] + state.told[table, stick, g] / NAT
            top = max(top, share[g])
        total = 0.0
        for g in range(len(grid.a)):
            share[g] = exp64(share[g] - top)
            total += share[g]
        for g in range(len(grid.a)):
            share[g] /= total
        pooled += top + log64(total)
    gap = state.told_flat[table] / NAT - pooled
    odds = exp64(-abs(gap))
    return odds / (1 + odds) if gap > 0 else 1 / (1 + odds)


@kernel()
def match_table(state, table):
    """Match all rows of a table: Dirichlet parameters with each row's mean and total variance.

    The rows without records are all alike, and are matched once.
    """
    pooling, counts = state.pooling, state.counts
    size, grid = pooling.sizes[table], pooling.grid
    shares = np.empty((size - 1, len(grid.a)))
    pooled = weigh_table(state, table, shares)
    a, c, share = np.empty_like(shares), np.empty_like(shares), np.empty_like(shares)
    used = np.zeros(size - 1, dtype=np.int64)
    for stick in range(size - 1):
        total = 0.0
        for g in range(len(grid.a)):
            if shares[stick, g] > _NEGLIGIBLE:
                i = used[stick]
                a[stick, i], c[stick, i] = grid.a[g], grid.a[g] + grid.b[g]
                share[stick, i] = shares[stick, g]
                total += shares[stick, g]
                used[stick] += 1
        for i in range(used[stick]):
            share[stick, i] /= total
    means, squares, unseen = np.empty(size), np.empty(size), np.empty(size)
    unseen[0] = -1.0
    for row in range(pooling.starts[table], pooling.starts[table + 1], size):
        records = int64(0)
        for k in range(size):
            records += counts[row + k]
        if records == 0 and unseen[0] >= 0:
            for k in range(size):
                state.prior[row + k] = unseen[k]
            continue
        left, rest, rest2 = records, 1.0, 1.0
        for stick in range(size - 1):
            hit, mean, square = counts[row + stick], 0.0, 0.0
            for i in range(used[stick]):
                m = (a[stick, i] + hit) / (c[stick, i] + left)
                mean += share[stick, i] * m
                square += (
                    share[stick, i] * m * (a[stick, i] + hit + 1.0) / (c[stick, i] + left + 1.0)
                )
            means[stick], squares[stick] = rest * mean, rest2 * square
            rest *= 1.0 - mean
            rest2 *= 1.0 - 2.0 * mean + square
            left -= hit
        means[size - 1], squares[size - 1] = rest, rest2
        above, below = 0.0, 0.0
        for k in range(size):
            own = 1.0 + counts[row + k]
            m = own / (size + records)
            square = m * (own + 1.0) / (size + records + 1.0)
            means[k] = (1.0 - pooled) * m + pooled * means[k]
            square = (1.0 - pooled) * square + pooled * squares[k]
            above += means[k] * (1.0 - means[k])
            below += square - means[k] * means[k]
        kappa = above / below - 1.0
        for k in range(size):
            state.prior[row + k] = kappa * means[k] - counts[row + k]
            if records == 0:
                unseen[k] = state.prior[row + k]


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
