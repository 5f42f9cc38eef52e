"""Kernels of a posterior without open edges: counting records, drawing rows, running the circuit.

Draws are made in blocks of lanes, so that all values of a block stay in the cache and memory is
bounded whatever the number of draws. The rows are drawn into their slots, then the circuit runs,
operation by operation.

Draws are in single precision. With a parameter of 0.05 half of the mass of a Beta distribution is
within about 1e-7 of 0 or 1: many arms would have a reward of exactly 1, and the first of them would
be taken for the best. For small parameters the circuit therefore has all values of the reward as
results, the first one too, so that the difference to 1 has its own digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, njit

from dowise._core.kernels import kernel
from dowise.belief.pooled_kernels import add_count
from dowise.belief.real_rows import draw_if_real, real_room
from dowise.belief.variates import (
    MAX_ERLANG_SHAPE,
    betas,
    gammas,
    stream_key,
)
from dowise.model.kernels import run_circuit, unrolled

# One cache line more than the lanes: room for a scratch lane, and neighbouring slots don't fall on
# the same line of the cache.
PADDING = 16
MIN_BETA_LANES = 16  # for fewer lanes gamma variates are faster


@njit
def locate(codes, v, f, strides):
    """Return the offset of a record's entry in f, the factor of v, and which variable is missing.

    This is −1 if the record counts, v if v has no value, otherwise the first variable of the scope
    without one, or the number of variables if there is no factor (f < 0).
    """
    offset, missing = 0, -1
    if f < 0:
        return offset, len(codes)
    if codes[v] < 0:
        missing = v
    for u in range(len(codes)):
        if strides[f, u] > 0:
            if codes[u] < 0 and missing < 0:
                missing = u
            offset += codes[u] * strides[f, u]
    return offset, missing


@kernel()
def count_record(state, codes, fixed, under, starts, strides, step):
    """Count a record (`step` 1) or retract it (−1) in the factor of every variable not set.

    codes[v] is the code of v's value, negative if it is missing, fixed[v] that of the value the arm
    set, negative if it set none, and under[v] the factor of v under this arm, negative if there is
    none. If variable u is missing, the record is counted in unused[v, u] instead (see `locate`).
    """
    for v in range(len(codes)):
        if fixed[v] >= 0:
            continue
        f = under[v]
        offset, missing = locate(codes, v, f, strides)
        if missing < 0:
            add_count(state, f, starts[f] + offset, codes[v], step)
        else:
            state.unused[v, missing] += step


@njit
def unpack(codes, was_set, i, record, fixed):
    """Copy record i of many to the arrays of one record."""
    for v in range(len(record)):
        record[v] = codes[v, i]
        fixed[v] = codes[v, i] if was_set[v, i] else -1


@kernel()
def count_records(state, codes, was_set, place, under, starts, strides):
    """Count many records: record i has codes[:, i], and its factors are under[place[i]]."""
    step = codes.ndim - 1  # a literal 1 would be compiled again as its own type
    fixed = np.empty(len(codes), dtype=np.int64)
    record = np.empty(len(codes), dtype=np.int64)
    for i in range(len(place)):
        unpack(codes, was_set, i, record, fixed)
        count_record(state, record, fixed, under[place[i]], starts, strides, step)


@njit
def _max_size(sizes):
    largest = 0
    for i in range(len(sizes)):
        largest = max(largest, sizes[i])
    return largest


@njit(inline="always")
def draw_row(key, entry, first, shapes, values, slot, total, real, lanes):
    """Draw a Dirichlet row in every lane; stream e of the key is that of entry e.

    A row of n whole shapes is n − 1 Beta variates, each a share of the probability that the entries
    before it leave, or n gamma variates divided by their sum; see `uses_betas`.
    """
    if draw_if_real(key, entry, first, shapes, values, slot, real, lanes):
        pass
    elif uses_betas(shapes, lanes):
        for k in range(len(shapes) - 1):
            later = 0.0
            for j in range(k + 1, len(shapes)):
                later += shapes[j]
            share, remainder = values[slot + k], values[slot + k + 1]
            if k > 0:
                for lane in range(lanes):
                    total[lane] = share[lane]
            stream = stream_key(key[0], key[1], entry + k)
            betas(stream, first, shapes[k], later, share, remainder, lanes)
            if k > 0:
                for lane in range(lanes):
                    share[lane] *= total[lane]
                    remainder[lane] *= total[lane]
    else:
        _draw_row_by_gammas(key, entry, first, shapes, values, slot, total, lanes)


@njit
def uses_betas(shapes, lanes):
    """Return True if a row is drawn by Beta variates, False if by gamma variates.

    Gamma variates are faster for a few lanes, and if all shapes are at most 4, unless one of two
    shapes is 1 or 2. All shapes are whole.
    """
    least, is_small = shapes[0], True
    for k in range(len(shapes)):
        least = min(least, shapes[k])
        is_small &= shapes[k] <= MAX_ERLANG_SHAPE
    if lanes < MIN_BETA_LANES:
        return False
    return not is_small or (len(shapes) == 2 and least < 3)


@njit(inline="always")
def _draw_row_by_gammas(key, entry, first, shapes, values, slot, total, lanes):
    size = len(shapes)
    for k in range(size):
        stream = stream_key(key[0], key[1], entry + k)
        gammas(stream, first, shapes[k], values[slot + k], lanes)
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


class Workspace(NamedTuple):
    """Arrays that a block of lanes is drawn in; see `workspace`."""

    values: Any
    """Slots of the circuit, one per row."""
    total: Any
    real: Any
    """Room for rows of any shape (`dowise.belief.real_rows`), or None: all shapes are whole."""
    shapes: Any


@njit(inline="always")
def workspace(circuit, block, any_shape):
    """Return arrays for `block` lanes of a circuit, with its constants filled in.

    any_shape is None if all shapes are whole numbers, otherwise True.
    """
    width = block + PADDING
    values = np.empty((circuit.slots, width), dtype=np.float32)
    for i in range(len(circuit.constants)):
        for lane in range(width):
            values[i, lane] = float32(circuit.constants[i])
    total = np.empty(width, dtype=np.float32)
    real = real_room(width, any_shape)
    return Workspace(values, total, real, np.empty(_max_size(circuit.block_sizes)))


@kernel()
def draw_block(key, prior, counts, rows, circuit, first, lanes, work):
    """Draw the rows of lanes first to first + lanes, and run the circuit."""
    for r in range(len(rows)):
        entry, size = rows[r], circuit.block_sizes[r]
        for k in range(size):
            work.shapes[k] = prior[entry + k] + counts[entry + k]
        shapes, slot = work.shapes[:size], circuit.block_slots[r]
        draw_row(key, entry, first, shapes, work.values, slot, work.total, work.real, lanes)
    run_circuit(work.values, lanes, circuit.operations, work.total)


@njit
def copy_results(values, results, lanes, out, first):
    """Fill out[…, first : first + lanes] with the circuit's results, which are probabilities."""
    for arm in range(out.shape[0]):
        for y in range(out.shape[1]):
            row = values[results[arm, y]]
            for lane in range(lanes):  # rounding may have carried a sum beyond 1
                out[arm, y, first + lane] = min(row[lane], float32(1))


@kernel()
def draw_results(key, prior, counts, rows, tape, block, begin, out, any_shape):
    """Fill out[arm, y − 1, draw] with P(Y = y | do(arm), c) for draws from the posterior.

    `rows` are the first entries of the rows in this context, `tape` has the circuit, `block` is the
    number of lanes that are drawn together, and `begin` the number of the first draw. The circuit
    of all values of the reward fills out[arm, y, draw], the first value included. For any_shape see
    `workspace`.
    """
    circuit = unrolled(tape)
    work = workspace(circuit, block, any_shape)
    draws = out.shape[2]
    for first in range(0, draws, block):
        lanes = min(block, draws - first)
        draw_block(key, prior, counts, rows, circuit, begin + first, lanes, work)
        copy_results(work.values, circuit.results, lanes, out, first)


@kernel()
def draw_entries(key, shapes, starts, sizes, block, out, any_shape):
    """Fill out[entry, draw] with draws of these rows, equal to those of `draw_results`."""
    draws = out.shape[1]
    total = np.empty(block + PADDING, dtype=np.float32)
    real = real_room(block + PADDING, any_shape)
    values = np.empty((_max_size(sizes), block + PADDING), dtype=np.float32)
    for first in range(0, draws, block):
        lanes = min(block, draws - first)
        for r in range(len(starts)):
            entry, size = starts[r], sizes[r]
            row = shapes[entry : entry + size]
            draw_row(key, entry, first, row, values, 0, total, real, lanes)
            for k in range(size):
                for lane in range(lanes):
                    out[entry + k, first + lane] = values[k, lane]


@kernel()
def mean_results(prior, counts, rows, tape, out):
    """Fill out[arm, y] with P(Y = y | do(arm), c) at the mean of every row, y = 0 included."""
    circuit = unrolled(tape)
    values = np.empty((circuit.slots, 1))
    for i in range(len(circuit.constants)):
        values[i, 0] = circuit.constants[i]
    for r in range(len(rows)):
        entry, size, slot = rows[r], circuit.block_sizes[r], circuit.block_slots[r]
        total = 0.0
        for k in range(size):
            total += prior[entry + k] + counts[entry + k]
        for k in range(size):
            values[slot + k, 0] = (prior[entry + k] + counts[entry + k]) / total
    run_circuit(values, values.shape[1], circuit.operations, values[0, :0])
    for arm in range(len(out)):
        total = 0.0
        for y in range(1, out.shape[1]):
            out[arm, y] = values[circuit.results[arm, y - 1], 0]
            total += out[arm, y]
        out[arm, 0] = max(1 - total, 0.0)


@kernel()
def smallest_parameter(prior, counts, rows, tape):
    """Return the smallest parameter of the rows that a circuit reads."""
    circuit, smallest = unrolled(tape), np.inf
    for r in range(len(rows)):
        for entry in range(rows[r], rows[r] + circuit.block_sizes[r]):
            smallest = min(smallest, prior[entry] + counts[entry])
    return smallest
