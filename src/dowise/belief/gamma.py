"""Gamma variates in single precision, many lanes at a time.

For rows with a parameter below 1; others are drawn by `beta`. Three exact methods, by shape:

- a whole shape up to 4: minus the logarithm of a product of that many uniforms (Erlang);
- any other shape of at least 1: Marsaglia & Tsang (2000), "A simple method for generating gamma
  variables", with Box–Muller normals; the few lanes that reject are drawn again one by one;
- a shape α below 1: a variate of shape α + 1 times U^(1/α) (same source), in logarithms, because
  its value underflows where its logarithm does not.
"""

from __future__ import annotations

import math

from numba import float32, float64, uint64

from dowise.belief.variates import (
    ATTEMPT,
    CALLED,
    INLINED,
    SCAN,
    SMALL,
    at,
    cell_end,
    cells,
    log32,
    log64,
    normals,
    other_uniform,
    uniform,
)  # fmt: skip
from dowise.mixing import GOLDEN, mix

__all__ = ["LARGEST_ERLANG", "gammas", "take_logs"]

LARGEST_ERLANG = 4  # a product of six uniforms could fall below float32's 2^-126


@SMALL
def _surely(t, cell, d):
    """Marsaglia & Tsang's candidate d·v³ with v = 1 + t if it is accepted for sure, or else −1.

    The test is v > 0 and log u < h, where, with t = cx, h = 3d(log(1+t) − t + t²/2 − t³/3)
    = −d t⁴ (3/4 − 3t/5 + 3t²/6 − …). For t ≥ −½ the bracket is at most 3/4 − 3t/5 + 0.89t², and
    1 + h ≤ e^h: so u < 1 − d t⁴ (3/4 − 3t/5 + 0.89t²) settles almost every case without a
    logarithm, even if of u no more is known than its first ten bits, its cell.
    """
    v = float32(1) + t
    t2 = t * t
    bracket = (float32(0.75) - float32(0.6) * t) + float32(0.89) * t2
    sure = (t >= float32(-0.5)) & (cell_end(cell) <= float32(1) - (d * t2) * (t2 * bracket))
    return (d * v) * (v * v) if sure else float32(-1)


@INLINED
def _erlang(key, first, shape, out, lanes):
    half = (lanes + 1) // 2
    z = at(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        out[i] = uniform(bits)
        out[half + i] = other_uniform(bits)
    for factor in range(1, shape):
        z = at(key + uint64(factor) * ATTEMPT, first)
        for i in range(half):
            bits = mix(z)
            z += GOLDEN
            out[i] *= uniform(bits)
            out[half + i] *= other_uniform(bits)
    for i in range(2 * half):
        out[i] = -log32(out[i])


@INLINED
def _marsaglia_tsang(key, first, shape, out, lanes):
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    half = (lanes + 1) // 2
    z = at(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        t, s = normals(bits, float32(c))
        one, other = cells(bits)
        out[i] = _surely(t, one, float32(d))
        out[half + i] = _surely(s, other, float32(d))
    for start in range(0, lanes, SCAN):
        part = out[start : min(start + SCAN, lanes)]
        still_open = 0
        for i in range(len(part)):
            still_open += part[i] < float32(0)
        if still_open:
            for i in range(start, start + len(part)):
                if out[i] < float32(0):
                    upper = i < half
                    out[i] = _settle(key, first + (i if upper else i - half), upper, d, c)


@CALLED
def _settle(key, counter, upper, d, c):
    """Marsaglia & Tsang's own test, in double precision, from the lane's first attempt on."""
    z = at(key, counter)
    while True:
        bits, rest = mix(z), mix(z + ATTEMPT)
        x, y = normals(bits, float32(1))
        one, other = cells(bits)
        u = (one + uniform(rest)) / 1024
        if not upper:
            x, u = y, (other + other_uniform(rest)) / 1024
        v = 1 + c * x
        v3 = v * v * v
        x2 = float64(x) * x
        if v > 0 and (
            u < 1 - 0.0331 * (x2 * x2)  # their squeeze, which spares most logarithms
            or log64(u) < 0.5 * x2 + d - d * v3 + 3 * d * log64(v)
        ):
            return float32(d * v3)
        z += ATTEMPT + ATTEMPT


@CALLED
def gammas(key, first, shape, out, lanes):
    """Fill out[:lanes] with gamma variates of a shape of at least 1.

    `first` is the number of the first lane in the stream. `out` has room for one lane more,
    which serves as scratch where `lanes` is odd.
    """
    whole = int(shape)
    if whole == shape and whole <= LARGEST_ERLANG:
        _erlang(key, first, whole, out, lanes)
    else:
        _marsaglia_tsang(key, first, shape, out, lanes)


@INLINED
def take_logs(key, first, shape, out, lanes):
    """Turn variates of a shape, or of shape + 1 where that is below 1, into logarithms of variates.

    `out` comes from `gammas`, with the same key.
    """
    for i in range(lanes):
        out[i] = log32(out[i])
    if shape < 1:
        # attempts are counted in pairs from 0 by `gammas`; the last counter is free
        z = at(key - ATTEMPT, first)
        inverse = float32(1 / shape)
        for i in range(lanes):
            out[i] += log32(uniform(mix(z))) * inverse
            z += GOLDEN
