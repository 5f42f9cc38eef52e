"""The compiled kernels: draws of CPT rows, and the program run over them, lanes innermost.

Draws are made in blocks of lanes, so that all values of a block stay in the cache and the memory is
bounded whatever the number of draws. A row's gamma variates are written to their slots and divided
by their sum, which makes them a Dirichlet draw; then the program runs, operation by operation.
"""

from __future__ import annotations

import numpy as np
from numba import float32, njit

from dowise.belief.gamma import exp32, gammas, log_gammas, stream_key

__all__ = ["count_record", "draw_results", "draw_row", "run_program"]

_FAST = {"contract", "reassoc", "arcp", "nsz"}
# One cache line more than the lanes: room for a scratch lane, and neighbouring slots don't fall on
# the same line of the cache.
_PADDING = 16


@njit(cache=True, fastmath=_FAST)
def run_program(values, lanes, outputs, starts, lefts, rights):
    """Run every operation on `lanes` columns of `values`, whose rows are the slots."""
    for i in range(len(outputs)):
        out = values[outputs[i]]
        start, stop = starts[i], starts[i + 1]
        a, b = values[lefts[start]], values[rights[start]]
        if stop - start == 1:
            for lane in range(lanes):
                out[lane] = a[lane] * b[lane]
            continue
        c, d = values[lefts[start + 1]], values[rights[start + 1]]
        for lane in range(lanes):
            out[lane] = a[lane] * b[lane] + c[lane] * d[lane]
        for k in range(start + 2, stop):
            a, b = values[lefts[k]], values[rights[k]]
            for lane in range(lanes):
                out[lane] += a[lane] * b[lane]


@njit(cache=True)
def count_record(counts, codes, fixed, starts, strides):
    """Count every family that was seen whole and whose variable the arm did not set.

    codes[v] is the position of v's value, negative where it was not seen; fixed[v] likewise of the
    value that the arm set.
    """
    for v in range(len(codes)):
        entry = starts[v]
        complete = fixed[v] < 0
        for u in range(len(codes)):
            if strides[v, u] > 0:
                complete &= codes[u] >= 0
                entry += codes[u] * strides[v, u]
        if complete:
            counts[entry] += 1.0


@njit(cache=True, fastmath=_FAST)
def draw_row(key0, key1, entry, first, shapes, values, slot, total, lanes):
    """A Dirichlet draw for every lane; stream e of the key makes the variates of entry e."""
    size = len(shapes)
    if shapes.min() < 1:
        _draw_row_in_logs(key0, key1, entry, first, shapes, values, slot, total, lanes)
        return
    for k in range(size):
        out = values[slot + k]
        gammas(stream_key(key0, key1, entry + k), first, shapes[k], out, lanes)
    a, b = values[slot], values[slot + 1]
    for lane in range(lanes):
        total[lane] = a[lane] + b[lane]
    for k in range(2, size):
        a = values[slot + k]
        for lane in range(lanes):
            total[lane] += a[lane]
    for lane in range(lanes):
        total[lane] = float32(1) / total[lane]
    for k in range(size):
        a = values[slot + k]
        for lane in range(lanes):
            a[lane] *= total[lane]


@njit(cache=True, fastmath=_FAST)
def _draw_row_in_logs(key0, key1, entry, first, shapes, values, slot, total, lanes):
    """The same where a shape is below 1 and a variate may be too small for a float32."""
    size = len(shapes)
    for k in range(size):
        out = values[slot + k]
        log_gammas(stream_key(key0, key1, entry + k), first, shapes[k], out, lanes)
    for lane in range(lanes):
        largest = values[slot, lane]
        for k in range(1, size):
            largest = max(largest, values[slot + k, lane])
        total[lane] = float32(0)
        for k in range(size):
            values[slot + k, lane] = exp32(values[slot + k, lane] - largest)
            total[lane] += values[slot + k, lane]
        for k in range(size):
            values[slot + k, lane] /= total[lane]


@njit(cache=True, fastmath=_FAST)
def draw_results(
    key0, key1, counts, row_entries, row_slots, row_sizes,
    outputs, starts, lefts, rights, results, block, slots, out,
):  # fmt: skip
    """Fill out[arm, y − 1, draw] with P(Y = y | do(arm), c) for draws from the posterior.

    `row_entries` are the flat entries where the rows of this context start; `block` is the number
    of lanes that are drawn together.
    """
    draws = out.shape[2]
    width = block + _PADDING
    values = np.empty((slots, width), dtype=np.float32)
    total = np.empty(width, dtype=np.float32)
    values[0, :] = float32(1)
    for first in range(0, draws, block):
        lanes = min(block, draws - first)
        for r in range(len(row_entries)):
            entry, size = row_entries[r], row_sizes[r]
            shapes = counts[entry : entry + size]
            draw_row(key0, key1, entry, first, shapes, values, row_slots[r], total, lanes)
        run_program(values, lanes, outputs, starts, lefts, rights)
        for arm in range(out.shape[0]):
            for y in range(out.shape[1]):
                row = values[results[arm, y]]
                for lane in range(lanes):  # rounding may have carried a sum beyond 1
                    out[arm, y, first + lane] = min(row[lane], float32(1))
