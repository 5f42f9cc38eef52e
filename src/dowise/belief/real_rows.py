"""Dirichlet rows with parameters that are not whole numbers, however small; many lanes at a time.

A row is gamma variates divided by their sum. All methods are exact, and lane i of a stream is a
function of the key and i alone, however many lanes are drawn together.

**Gamma variates** are drawn in pairs: a lane has one hash per attempt (`dowise.belief.variates`),
which gives two normals (Box–Muller) and ten bits of two uniforms.

- A shape α of at least 1: Marsaglia & Tsang (2000), "A simple method for generating gamma
  variables". With d = α − ⅓, c = 1/√(9d), t = cx and v = 1 + t the candidate d·v³ is accepted with
  probability e^h, h = 3d(log v − t + t²/2 − t³/3) ≤ 0.
- A shape α below 1: a variate of shape α + 1 times U^(1/α), as a logarithm, because the variate
  itself may underflow.

**Acceptance.** The uniform is known to ten bits, its cell, and a candidate is accepted at once if
the end of the cell is below a bound of e^h: 1 + h + h²/2 + h³/6 less a margin for rounding, or the
polynomial of `quick_gamma` for larger shapes, which needs no logarithm. The lanes that are left,
0.3 to 5 % for each entry, are gathered and settled together by the exact test.

**Division.** With a shape below 1 the row is e^(logarithm less the largest), 0 below e^−87. Each
entry has its own digits, also where another is close to 1: a Beta(0.05, 0.05) variate and its
complement fall below 1e-38 once in 75 draws each, and within 1e-7 of 0 once in 2.2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float32, int32, uint64

from dowise._core.hashing import GOLDEN, mix
from dowise.belief.variates import (
    ATTEMPT,
    CALLED,
    INLINED,
    SMALL,
    cell_end,
    cells,
    exp32,
    hash_input,
    log32,
    log64,
    normals,
    other_uniform,
    quick_gamma,
    stream_key,
    uniform,
)

MAX_LOG_TEST = 4.0  # from here on the polynomial accepts enough candidates
OPEN = float32(3e38)  # candidate that is not accepted yet
_IS_OPEN = float32(1e38)
_MARGIN = 3e-6  # rounding of h in single precision, for shapes below `MAX_LOG_TEST`
_TOGETHER = 8  # lanes that are left are padded to a multiple, to fill vectors


class Room(NamedTuple):
    """Arrays for drawing rows in some number of lanes."""

    spare: Any
    """Rows 0 and 1: a pair of entries; 2 and 3: those of the lanes that are left to settle."""
    marks: Any
    """First bits of two uniforms per lane; later 1 for each lane that is left to settle."""
    places: Any
    """Lanes that are left to settle."""


@SMALL
def real_room(width, any_shape):
    """Return room for this number of lanes; None, so that less is compiled, if any_shape is."""
    if any_shape is None:
        return None
    return Room(
        np.empty((4, width + _TOGETHER), dtype=np.float32),
        np.empty(width, dtype=np.int32),
        np.empty(width + _TOGETHER, dtype=np.int64),
    )


@SMALL
def _constants(shape):
    """Return c, d and log d of a shape."""
    d = shape - 1 / 3
    return float32(1 / math.sqrt(9 * d)), float32(d), float32(log64(d))


@SMALL
def _test_by_log(x, cell, c, d, log_d, in_logs):
    """Return the candidate of a normal or its logarithm, `OPEN` if undecided; for small shapes."""
    t = c * x
    v = float32(1) + t
    is_inside = v > float32(0)
    log_v = log32(v if is_inside else float32(1))
    h = float32(3) * d * (log_v - t + t * t * (float32(0.5) - float32(1 / 3) * t))
    bound = float32(1) + h * (float32(1) + h * (float32(0.5) + float32(1 / 6) * h))
    # The bound holds for h ≤ 0; rounding may have carried h above.
    is_accepted = is_inside & (cell_end(cell) <= min(bound, float32(1)) - float32(_MARGIN))
    candidate = log_d + float32(3) * log_v if in_logs else (d * v) * (v * v)
    return candidate if is_accepted else OPEN


@SMALL
def _test_by_polynomial(x, cell, c, d):
    """Return the candidate of a normal, `OPEN` if undecided; for large shapes."""
    candidate = quick_gamma(c * x, cell, d)
    return OPEN if candidate < float32(0) else candidate


@INLINED
def _accept(shape, in_logs, spare, row, marks, shift, lanes):
    """Turn normals into accepted variates or their logarithms, and `OPEN` where undecided."""
    c, d, log_d = _constants(shape)
    if shape < MAX_LOG_TEST:
        for i in range(lanes):
            cell = np.int32((marks[i] >> shift) & int32(0x3FF))
            spare[row, i] = _test_by_log(spare[row, i], cell, c, d, log_d, in_logs)
    else:
        for i in range(lanes):
            cell = np.int32((marks[i] >> shift) & int32(0x3FF))
            spare[row, i] = _test_by_polynomial(spare[row, i], cell, c, d)
        if in_logs:
            for i in range(lanes):
                x = spare[row, i]
                spare[row, i] = log32(x) if x < _IS_OPEN else x


@SMALL
def _acceptance(t, log_v, d):
    """Return h = 3d (log v − t + t²/2 − t³/3), by its series where t is small."""
    t2 = t * t
    series = (float32(1 / 4) - float32(1 / 5) * t) + t2 * (
        (float32(1 / 6) - float32(1 / 7) * t)
        + t2 * ((float32(1 / 8) - float32(1 / 9) * t) + t2 * float32(1 / 10))
    )
    rest = log_v - t + t2 * (float32(0.5) - float32(1 / 3) * t)
    return float32(3) * d * (-t2 * t2 * series if abs(t) < float32(0.125) else rest)


@SMALL
def _settled(x, u, c, d, log_d, in_logs):
    """Return the candidate of a normal or its logarithm, `OPEN` if a uniform rejects it."""
    t = c * x
    v = float32(1) + t
    is_inside = v > float32(0)
    log_v = log32(v if is_inside else float32(1))
    candidate = log_d + float32(3) * log_v if in_logs else (d * v) * (v * v)
    return candidate if is_inside & (log32(u) < _acceptance(t, log_v, d)) else OPEN


@INLINED
def _settle(key, first, a, b, in_logs, spare, marks, places, lanes):
    """Draw what is left of a pair of entries, from the first attempt on."""
    for i in range(lanes):
        marks[i] = np.int32(max(spare[0, i], spare[1, i]) > _IS_OPEN)
    left = uint64(0)  # unsigned: a negative index would have to be looked for
    for i in range(lanes):
        places[left] = i
        left += uint64(marks[i])
    for j in range(left):
        spare[2, j], spare[3, j] = spare[0, places[j]], spare[1, places[j]]
    c, d, log_d = _constants(a)
    f, e, log_e = _constants(b)
    attempt = key
    while left > 0:
        padded = (left + uint64(_TOGETHER - 1)) & ~uint64(_TOGETHER - 1)
        for j in range(left, padded):
            places[j], spare[2, j], spare[3, j] = 0, float32(1), float32(1)
        for j in range(padded):
            z = hash_input(attempt, first + places[j])
            bits, more_bits = mix(z), mix(z + ATTEMPT)
            x, y = normals(bits, float32(1))
            cell, other_cell = cells(bits)
            u = cell_end(cell) - uniform(more_bits) * float32(2**-10)
            w = cell_end(other_cell) - other_uniform(more_bits) * float32(2**-10)
            new = _settled(x, u, c, d, log_d, in_logs)
            newer = _settled(y, w, f, e, log_e, in_logs)
            spare[2, j] = new if spare[2, j] > _IS_OPEN else spare[2, j]
            spare[3, j] = newer if spare[3, j] > _IS_OPEN else spare[3, j]
        count, left = left, uint64(0)
        for j in range(count):
            place, x, y = places[j], spare[2, j], spare[3, j]
            spare[0, place], spare[1, place] = x, y
            places[left], spare[2, left], spare[3, left] = place, x, y
            left += uint64(max(x, y) > _IS_OPEN)
        attempt += ATTEMPT + ATTEMPT


@INLINED
def _gamma_pair(key, first, a, b, in_logs, spare, marks, places, lanes):
    """Fill rows 0 and 1 of `spare` with gamma variates of shapes a and b of at least 1.

    With `in_logs` these are logarithms. `first` is the number of the first lane in the stream.
    """
    z = hash_input(key, first)
    for i in range(lanes):
        bits = mix(z)
        z += GOLDEN
        spare[0, i], spare[1, i] = normals(bits, float32(1))
        marks[i] = np.int32(bits & uint64(0xFFFFF))
    _accept(a, in_logs, spare, 0, marks, int32(10), lanes)
    _accept(b, in_logs, spare, 1, marks, int32(0), lanes)
    _settle(key, first, a, b, in_logs, spare, marks, places, lanes)


@INLINED
def _raise_back(key, first, shape, is_first, spare, lanes):
    """Turn logarithms of variates of shape + 1 into those of a shape below 1."""
    if shape < 1:
        power, row = float32(1 / shape), 0 if is_first else 1
        z = hash_input(key, first)
        for i in range(lanes):
            bits = mix(z)
            z += GOLDEN
            u = uniform(bits) if is_first else other_uniform(bits)
            spare[row, i] += power * log32(u)


@CALLED
def _draw_real_row(key, entry, first, shapes, values, slot, room, lanes):
    """Draw a Dirichlet row in every lane, entry k into values[slot + k]; see the module docstring.

    Stream e of the key is that of entry e; a pair has the stream of its first entry.
    """
    spare, marks, places = room.spare, room.marks, room.places
    size, in_logs = len(shapes), False
    for k in range(size):
        in_logs |= shapes[k] < 1
    for k in range(0, size, 2):
        a, b = shapes[k], shapes[min(k + 1, size - 1)]
        stream = stream_key(key[0], key[1], entry + k)
        raised_a, raised_b = a + 1 if a < 1 else a, b + 1 if b < 1 else b
        _gamma_pair(stream, first, raised_a, raised_b, in_logs, spare, marks, places, lanes)
        if in_logs:
            # Attempts are counted from 0: the last counter is free.
            _raise_back(stream - ATTEMPT, first, a, True, spare, lanes)
            _raise_back(stream - ATTEMPT, first, b, False, spare, lanes)
        if size == 2:
            break
        for i in range(lanes):
            values[slot + k, i] = spare[0, i]
        if k + 1 < size:
            for i in range(lanes):
                values[slot + k + 1, i] = spare[1, i]
    if size == 2 and in_logs:
        for i in range(lanes):
            x, y = spare[0, i], spare[1, i]
            less = exp32(-abs(x - y))
            large = float32(1) / (float32(1) + less)
            small = less * large
            values[slot, i] = large if x > y else small
            values[slot + 1, i] = small if x > y else large
    elif size == 2:
        for i in range(lanes):
            x, y = spare[0, i], spare[1, i]
            scale = float32(1) / (x + y)
            values[slot, i], values[slot + 1, i] = x * scale, y * scale
    else:
        _divide(values, slot, size, in_logs, spare, lanes)


@INLINED
def _divide(values, slot, size, in_logs, spare, lanes):
    """Turn variates or their logarithms into a row."""
    if in_logs:
        for i in range(lanes):
            spare[0, i] = values[slot, i]
        for k in range(1, size):
            for i in range(lanes):
                spare[0, i] = max(spare[0, i], values[slot + k, i])
        for k in range(size):
            for i in range(lanes):
                values[slot + k, i] = exp32(values[slot + k, i] - spare[0, i])
    for i in range(lanes):
        spare[0, i] = values[slot, i]
    for k in range(1, size):
        for i in range(lanes):
            spare[0, i] += values[slot + k, i]
    for i in range(lanes):
        spare[0, i] = float32(1) / spare[0, i]
    for k in range(size):
        for i in range(lanes):
            values[slot + k, i] *= spare[0, i]


@SMALL
def draw_if_real(key, entry, first, shapes, values, slot, room, lanes):
    """Draw a row if some of its shapes is not a whole number, and return True if so."""
    if room is None:
        return False
    is_real = False
    for k in range(len(shapes)):
        is_real |= shapes[k] != np.floor(shapes[k])
    if is_real:
        _draw_real_row(key, entry, first, shapes, values, slot, room, lanes)
    return is_real
