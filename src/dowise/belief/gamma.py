"""Gamma variates in single precision, many lanes at a time, from a counter-based generator.

Nothing here calls into libm and nothing branches in the inner loops, so LLVM turns them into vector
code. Three exact methods, by shape:

- a whole shape up to 4: minus the logarithm of a product of that many uniforms (Erlang);
- any other shape of at least 1: Marsaglia & Tsang (2000), "A simple method for generating gamma
  variables", with Box–Muller normals; the few lanes that reject are drawn again one by one;
- a shape α below 1: a variate of shape α + 1 times U^(1/α) (same source), in logarithms, because
  its value underflows where its logarithm does not.

Lane i of attempt k of a stream is a function of a hash of (stream's key, k, i), by SplitMix64's
finaliser (Steele, Lea & Flood 2014), and no state is carried along. Two lanes share a hash, lane i
and lane i + half of those drawn together, so the same key gives the same variates for the same
number of lanes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float32, int32, njit, uint64

__all__ = ["LARGEST_ERLANG", "exp32", "gammas", "log32", "log_gammas", "mix", "stream_key"]

LARGEST_ERLANG = 4  # a product of six uniforms could fall below float32's 2^-126

# No 'nnan' or 'ninf': a rejected lane may hold either.
_FAST = {"contract", "reassoc", "arcp", "nsz"}
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_SCAN = 32  # lanes that are looked through together for one that rejected
_ATTEMPT = uint64(1 << 44)  # counters of one attempt: more lanes than anybody draws


@njit(inline="always")
def mix(z):
    """SplitMix64's finaliser: a bijection of 64 bits whose output looks random."""
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))


@njit
def stream_key(key0, key1, number):
    """The key of stream `number` under a key of two words; neighbours are unrelated."""
    return mix(uint64(key0) ^ mix(uint64(key1) + uint64(number) * _GOLDEN))


@njit(inline="always")
def _hash(key, counter):
    return mix(key + uint64(counter) * _GOLDEN)


@njit(inline="always")
def _upper(z):
    """A uniform on (0, 1) from the upper 23 bits: exact in a float32, never 0, never 1."""
    return (float32(np.int32(z >> uint64(41))) + float32(0.5)) * float32(2.0**-23)


@njit(inline="always")
def _lower(z):
    """A uniform on (0, 1) from the lower 23 bits."""
    return (float32(np.int32(z & uint64(0x7FFFFF))) + float32(0.5)) * float32(2.0**-23)


@njit(inline="always")
def _exponent(x):
    """e such that x = m·2^e with m in [√½, √2)."""
    return (np.float32(x).view(np.int32) - int32(0x3F3504F3)) >> int32(23)


@njit(inline="always")
def _mantissa(x, e):
    return np.int32(np.float32(x).view(np.int32) - (e << int32(23))).view(np.float32)


@njit(inline="always")
def _log_tail(t):
    """(log(1+t) − t + t²/2) / t³ for 1+t in [√½, √2): the Cephes library's polynomial."""
    p = float32(7.0376836292e-2)
    p = p * t - float32(1.1514610310e-1)
    p = p * t + float32(1.1676998740e-1)
    p = p * t - float32(1.2420140846e-1)
    p = p * t + float32(1.4249322787e-1)
    p = p * t - float32(1.6668057665e-1)
    p = p * t + float32(2.0000714765e-1)
    p = p * t - float32(2.4999993993e-1)
    return p * t + float32(3.3333331174e-1)


@njit(inline="always")
def log32(x):
    """The natural logarithm of a positive, normal float32, to about 1e-7 of its size."""
    e = _exponent(x)
    t = _mantissa(x, e) - float32(1)
    z = t * t
    return float32(e) * float32(0.69314718056) + (t + (_log_tail(t) * t * z - float32(0.5) * z))


@njit(inline="always")
def exp32(x):
    """e^x for x ≤ 0 (0 below −87), to about 1e-7 of its size: Cephes' polynomial."""
    low = x < float32(-87)
    x = float32(-87) if low else x
    k = np.floor(x * float32(1.44269504089) + float32(0.5))
    r = x - k * float32(0.693359375) + k * float32(2.12194440e-4)
    p = float32(1.9875691500e-4)
    p = p * r + float32(1.3981999507e-3)
    p = p * r + float32(8.3334519073e-3)
    p = p * r + float32(4.1665795894e-2)
    p = p * r + float32(1.6666665459e-1)
    p = p * r + float32(5.0000001201e-1)
    p = p * r * r + r + float32(1)
    scaled = np.int32(np.float32(p).view(np.int32) + (np.int32(k) << int32(23))).view(np.float32)
    return float32(0) if low else scaled


@njit(inline="always")
def _normals(z):
    """Two normals (Box–Muller): the radius from the upper 23 bits, the angle from bits 20 to 39."""
    radius = math.sqrt(float32(-2) * log32(_upper(z)))
    angle = float32(np.int32((z >> uint64(20)) & uint64(0xFFFFF))) + float32(0.5)
    turn = angle * float32(2.0**-18)  # in quarters of a circle
    quadrant = np.int32(turn + float32(0.5))
    r = (turn - float32(quadrant)) * float32(1.57079632679)
    r2 = r * r
    sine = float32(8.3321608736e-3) - r2 * float32(1.9515295891e-4)
    sine = r + r * r2 * (float32(-1.6666654611e-1) + r2 * sine)
    cosine = float32(-1.388731625493765e-3) + r2 * float32(2.443315711809948e-5)
    cosine = float32(4.166664568298827e-2) + r2 * cosine
    cosine = float32(1) - float32(0.5) * r2 + r2 * r2 * cosine
    swap = (quadrant & int32(1)) != 0
    s = cosine if swap else sine
    c = sine if swap else cosine
    s = -s if (quadrant & int32(2)) != 0 else s
    c = -c if ((quadrant + int32(1)) & int32(2)) != 0 else c
    return radius * c, radius * s


@njit(inline="always")
def _surely(x, cell, d, c):
    """Marsaglia & Tsang's candidate d·v³ with v = 1 + cx if it is accepted for sure, or else −1.

    The test is v > 0 and log u < h, where, with t = cx, h = 3d(log(1+t) − t + t²/2 − t³/3)
    = −d t⁴ (3/4 − 3t/5 + 3t²/6 − …). For t ≥ −½ the bracket is at most 3/4 − 3t/5 + 0.89t², and
    1 + h ≤ e^h: so u < 1 − d t⁴ (3/4 − 3t/5 + 0.89t²) settles almost every case without a
    logarithm, even if of u no more is known than its first ten bits, the cell [k, k+1)/1024.
    """
    t = c * x
    v = float32(1) + t
    t2 = t * t
    bracket = float32(0.75) - float32(0.6) * t + float32(0.89) * t2
    above = (float32(np.int32(cell & uint64(0x3FF))) + float32(1)) * float32(2.0**-10)
    sure = (t >= float32(-0.5)) & (above <= float32(1) - d * t2 * t2 * bracket)
    return d * v * v * v if sure else float32(-1)


@njit(fastmath=_FAST)
def _erlang(key, first, shape, out, lanes):
    half = (lanes + 1) // 2
    for i in range(half):
        z = _hash(key, first + i)
        out[i] = _upper(z)
        out[half + i] = _lower(z)
    for factor in range(1, shape):
        another = key + uint64(factor) * _ATTEMPT
        for i in range(half):
            z = _hash(another, first + i)
            out[i] *= _upper(z)
            out[half + i] *= _lower(z)
    for i in range(2 * half):
        out[i] = -log32(out[i])


@njit(fastmath=_FAST)
def _marsaglia_tsang(key, first, shape, out, lanes):
    d = float32(shape - 1 / 3)
    c = float32(1 / math.sqrt(9 * shape - 3))
    half = (lanes + 1) // 2
    for i in range(half):
        z = _hash(key, first + i)
        x, y = _normals(z)
        out[i] = _surely(x, z >> uint64(10), d, c)
        out[half + i] = _surely(y, z, d, c)
    for start in range(0, lanes, _SCAN):
        stop = min(start + _SCAN, lanes)
        still_open = 0
        for i in range(start, stop):
            still_open += out[i] < float32(0)
        if still_open:
            for i in range(start, stop):
                if out[i] < float32(0):
                    out[i] = _settle(key, first, i, half, shape)


@njit
def _settle(key, first, lane, half, shape):
    """Marsaglia & Tsang's own test, in double precision, from the lane's first attempt on."""
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    counter = first + (lane if lane < half else lane - half)
    attempt = uint64(0)
    while True:
        z = _hash(key + attempt * _ATTEMPT, counter)
        rest = _hash(key + (attempt + uint64(1)) * _ATTEMPT, counter)
        x, y = _normals(z)
        if lane < half:
            u = (np.int32((z >> uint64(10)) & uint64(0x3FF)) + _upper(rest)) / 1024
        else:
            x, u = y, (np.int32(z & uint64(0x3FF)) + _lower(rest)) / 1024
        v = 1 + c * x
        if v > 0 and math.log(u) < 0.5 * x * x + d - d * v**3 + 3 * d * math.log(v):
            return float32(d * v**3)
        attempt += uint64(2)


@njit
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


@njit(fastmath=_FAST)
def log_gammas(key, first, shape, out, lanes):
    """Fill out[:lanes] with the logarithms of gamma variates of any positive shape."""
    if shape >= 1:
        gammas(key, first, shape, out, lanes)
        for i in range(lanes):
            out[i] = log32(out[i])
        return
    gammas(key, first, shape + 1, out, lanes)
    for i in range(lanes):
        # attempts are counted in pairs from 0 by `gammas`; the last counter is free
        u = _upper(_hash(key - _ATTEMPT, first + i))
        out[i] = log32(out[i]) + log32(u) / float32(shape)
