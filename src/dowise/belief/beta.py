"""Beta variates in single precision, many lanes at a time: what rows of the belief are drawn by.

For shapes a ≤ b of at least 1 (others are drawn with their ends exchanged). Exact methods:

- both are 1: a uniform; a is 2 and b at most 4 and whole: the second smallest of b + 1 uniforms;
- a is whole and at most 4: 1 − X is a product of independent U_i^(1/(b+i)) for i below a. For
  U^(1/c) is a Beta(c, 1) variate, and Beta(c, d) times Beta(c + d, e) is Beta(c, d + e);
- else a transformed normal and rejection, as Marsaglia & Tsang (2000) do it for gammas.

**The transformation.** Let X / (1 − X) = r (v/w)² with v = 1 + s and w = 1 − ρs, A = 2a − 1 and
B = 2b − 1. With S = r v² + w² the logarithm of the density of s is, but for a constant,

    M(s) = A log v + B log w − (a + b) log S,

and where r = (A(1+ρ) + 2ρ) / (B(1+ρ) + 2), so that its mode is s = 0, its derivative is

    M'(s) = −s G(s),    G(s) = (m (1+ρ)(v + w) / S − 2ρ) / (vw),    m = A(1+ρ) + 2ρ.

If κ ≤ G on −1 < s < 1/ρ, then M(s) − M(0) ≤ −κs²/2: normals of variance 1/κ, of which each is kept
with probability exp(M(s) − M(0) + κs²/2), give the right distribution, whatever ρ is. With
ρ = (B + 5A) / (5B + A) the slope of G at 0 vanishes but for terms in 1/A, so that G hardly varies,
and G(0) − 1/(A + 3) is such a κ: the numerator of κ − G is a polynomial of degree 4 in s, negative
on the interval (`tests/belief/test_beta.py` looks at its extremes). More than 0.97 of all normals
are kept where a ≥ 3, more than 0.99 where a ≥ 8, and nearly all where a and b are alike.

**The quick acceptance.** G − κ lies below the cubic polynomial that has its value and slope at 0
and its values at the ends of [−l, h], because its fourth derivative is positive there (the test
looks at that as well). Integrated, that is E(s) = s²(e₀ + e₁s + e₂s² + e₃s³) ≥ −log of the
probability, and u ≤ 1 − E(s) settles almost every case without a logarithm.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float32, float64, int32, uint64

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

__all__ = ["LARGEST_ORDERED", "LARGEST_PRODUCT", "betas"]

LARGEST_PRODUCT = 4  # with more logarithms the normals are faster
LARGEST_ORDERED = 4  # with more uniforms the product is faster

_WIDEST, _FARTHEST = 0.6, 4.0  # where E is used: v and w above 0.4, and so many deviations from 0


class Fit(NamedTuple):
    """What belongs to two shapes; see above. The scale is κ^(−1/2)."""

    a: float
    b: float
    r: float
    rho: float
    kappa: float
    scale: float
    low: float
    high: float
    e0: float
    e1: float
    e2: float
    e3: float


@SMALL
def _fall(s, r, rho, slope):
    """G(s) where slope = m (1 + ρ)."""
    v, w = 1 + s, 1 - rho * s
    return (slope * (v + w) / (r * v * v + w * w) - 2 * rho) / (v * w)


@CALLED
def fit(a, b):
    """The numbers of two shapes, 1 ≤ a ≤ b."""
    one, other = 2 * a - 1, 2 * b - 1  # A and B
    rho = (other + 5 * one) / (5 * other + one)
    more = 1 + rho
    m = one * more + 2 * rho
    r = m / (other * more + 2)
    top, spare = 2 * m * more / (1 + r) - 2 * rho, 1 / (one + 3)
    kappa = top - spare
    scale = 1 / math.sqrt(kappa)
    tilt = (top / 2 + rho) * ((1 - rho) - 4 * (r - rho) / (1 + r)) - top * (1 - rho)
    low = min(_WIDEST, _FARTHEST * scale)
    high = min(_WIDEST / rho, _FARTHEST * scale)
    left = (_fall(-low, r, rho, m * more) - top + tilt * low) / (low * low)
    right = (_fall(high, r, rho, m * more) - top - tilt * high) / (high * high)
    third = (right - left) / (high + low)
    second = left + third * low
    return Fit(a, b, r, rho, kappa, scale, -low, high, spare / 2, tilt / 3, second / 4, third / 5)


@SMALL
def _parts(s, r, rho):
    """(x, 1 − x)."""
    v, w = float32(1) + s, float32(1) - rho * s
    x, y = (r * v) * v, w * w
    whole = float32(1) / (x + y)
    return x * whole, y * whole


@SMALL
def _is_sure(s, end, low, high, e0, e1, e2, e3):
    """Whether s is kept whatever the uniform is in its cell, which ends there."""
    s2 = s * s
    left_out = s2 * ((e0 + e1 * s) + s2 * (e2 + e3 * s))
    return (s >= low) & (s <= high) & (end <= float32(1) - left_out)


@INLINED
def _by_normals(key, first, f, out, rest, lanes):
    r, rho, scale = float32(f.r), float32(f.rho), float32(f.scale)
    low, high = float32(f.low), float32(f.high)
    e0, e1, e2, e3 = float32(f.e0), float32(f.e1), float32(f.e2), float32(f.e3)
    half = (lanes + 1) // 2
    z = at(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        out[i], out[half + i] = normals(bits, scale)
        one, other = cells(bits)
        rest[i], rest[half + i] = cell_end(one), cell_end(other)
    for i in range(2 * half):  # short loops overlap with themselves
        s = out[i]
        sure = _is_sure(s, rest[i], low, high, e0, e1, e2, e3)
        x, y = _parts(s, r, rho)
        out[i], rest[i] = x if sure else float32(-1), y if sure else s
    for start in range(0, lanes, SCAN):
        part = out[start : min(start + SCAN, lanes)]
        still_open = 0
        for i in range(len(part)):
            still_open += part[i] < float32(0)
        if still_open:
            for i in range(start, start + len(part)):
                if out[i] < float32(0):
                    z = at(key, first + (i if i < half else i - half))
                    s = _settle(z, i < half, rest[i], f)
                    out[i], rest[i] = _parts(s, r, rho)


@CALLED
def _settle(z, is_one, s, f):
    """The s that is kept, by the exact test in double precision, from the first attempt on."""
    while True:
        bits, more = mix(z), mix(z + ATTEMPT)
        one, other = cells(bits)
        u = (one + uniform(more)) / 1024 if is_one else (other + other_uniform(more)) / 1024
        v, w = 1 + float64(s), 1 - f.rho * s
        if v > 0 and w > 0:
            whole = (f.r * v * v + w * w) / (1 + f.r)
            kept = (2 * f.a - 1) * log64(v) + (2 * f.b - 1) * log64(w) - (f.a + f.b) * log64(whole)
            if log64(u) < kept + 0.5 * f.kappa * float64(s) * s:
                return s
        z += ATTEMPT + ATTEMPT
        one_s, other_s = normals(mix(z), float32(f.scale))
        s = one_s if is_one else other_s


@SMALL
def _from_log(x):
    """(1 − e^x, e^x) for −87 ≤ x ≤ 0, each to about 1e-7 of its size: Cephes' polynomial."""
    k = np.floor(x * float32(1.44269504089) + float32(0.5))
    r = x - k * float32(0.693359375) + k * float32(2.12194440e-4)
    r2 = r * r
    p = (float32(5.0000001201e-1) + float32(1.6666665459e-1) * r) + (
        float32(4.1665795894e-2) + float32(8.3334519073e-3) * r
    ) * r2
    p += (float32(1.3981999507e-3) + float32(1.9875691500e-4) * r) * (r2 * r2)
    power = np.int32((np.int32(k) + int32(127)) << int32(23)).view(np.float32)
    more = power * (r + p * r2)  # e^x = power + more
    return (float32(1) - power) - more, power + more


@SMALL
def _uniforms(key, first, out, half):
    z = at(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        out[i], out[half + i] = uniform(bits), other_uniform(bits)


@INLINED
def _by_product(key, first, factors, b, out, rest, lanes):
    half = (lanes + 1) // 2
    for i in range(2 * half):
        rest[i] = float32(0)
    for factor in range(factors):
        power = float32(1 / (b + factor))
        _uniforms(key + uint64(factor) * ATTEMPT, first, out, half)
        for i in range(2 * half):
            rest[i] += log32(out[i]) * power
    for i in range(2 * half):
        out[i], rest[i] = _from_log(rest[i])


@INLINED
def _by_order(key, first, uniforms, out, rest, lanes):
    """The second smallest of these uniforms: `rest`, while `out` is the smallest."""
    half = (lanes + 1) // 2
    for i in range(2 * half):
        rest[i] = float32(1)
    _uniforms(key, first, out, half)
    for number in range(1, uniforms):
        z = at(key + uint64(number) * ATTEMPT, first)
        for i in range(half):
            bits = mix(z)
            z += GOLDEN
            x, y = uniform(bits), other_uniform(bits)
            rest[i] = min(rest[i], max(out[i], x))
            out[i] = min(out[i], x)
            rest[half + i] = min(rest[half + i], max(out[half + i], y))
            out[half + i] = min(out[half + i], y)
    for i in range(2 * half):
        out[i], rest[i] = rest[i], float32(1) - rest[i]


@CALLED
def _in_order(key, first, a, b, out, rest, lanes):
    """The same for a ≤ b."""
    whole = int(a)
    if a != whole or whole > LARGEST_PRODUCT:
        _by_normals(key, first, fit(a, b), out, rest, lanes)
    elif b == 1:
        half = (lanes + 1) // 2
        _uniforms(key, first, out, half)
        for i in range(2 * half):
            rest[i] = float32(1) - out[i]
    elif whole == 2 and b <= LARGEST_ORDERED and b == int(b):
        _by_order(key, first, int(b) + 1, out, rest, lanes)
    else:
        _by_product(key, first, whole, b, out, rest, lanes)


@CALLED
def betas(key, first, a, b, out, rest, lanes):
    """Fill out[:lanes] with Beta(a, b) variates and rest[:lanes] with what they leave to 1.

    Both shapes are at least 1. `first` is the number of the first lane in the stream. `out` and
    `rest` have room for one lane more, which serves as scratch where `lanes` is odd.
    """
    if a <= b:
        _in_order(key, first, a, b, out, rest, lanes)
    else:
        _in_order(key, first, b, a, rest, out, lanes)
