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
from numba import float32, float64, int32, int64, njit, uint64

from dowise.mixing import GOLDEN, mix

__all__ = ["LARGEST_ERLANG", "exp32", "gammas", "log32", "log64", "stream_key", "take_logs"]

LARGEST_ERLANG = 4  # a product of six uniforms could fall below float32's 2^-126

_SCAN = 32  # lanes that are looked through together for one that rejected
_ATTEMPT = uint64(1 << 44)  # counters of one attempt: more lanes than anybody draws

# What is small is inlined by LLVM, what is called from one place by Numba: a function that stays a
# function is optimised once for itself and once again with every caller, and theirs. Division as
# NumPy's, for a test for zero in a loop keeps LLVM from vectorising it. And never `fastmath`: the
# same bits come from every machine only if no multiplication is fused with an addition and no sum
# rearranged; what may be rearranged for speed is so by hand. (An inlined function has the options
# of its caller.)
_SMALL = njit(forceinline=True, error_model="numpy")
_INLINED = njit(inline="always")
_CALLED = njit(error_model="numpy")


@_CALLED
def stream_key(key0, key1, number):
    """The key of stream `number` under a key of two words; neighbours are unrelated."""
    return mix(uint64(key0) ^ mix(uint64(key1) + uint64(number) * GOLDEN))


@_SMALL
def _at(key, counter):
    """What is hashed for a counter; one more for the next counter is GOLDEN more."""
    return key + uint64(counter) * GOLDEN


@_SMALL
def _from_one(k):
    """1 + k/2^23 for k of 23 bits: the fraction of a float32 between 1 and 2."""
    return np.int32(k | int32(0x3F800000)).view(np.float32)


@_SMALL
def _upper(z):
    """A uniform on (0, 1) from the upper 23 bits: exact in a float32, never 0, never 1."""
    return _from_one(np.int32(z >> uint64(41))) - float32(1 - 2.0**-24)


@_SMALL
def _lower(z):
    """A uniform on (0, 1) from the lower 23 bits."""
    return _from_one(np.int32(z & uint64(0x7FFFFF))) - float32(1 - 2.0**-24)


@_SMALL
def log32(x):
    """The natural logarithm of a positive, normal float32, to about 1e-7 of its size.

    log(1+t) = t − t²/2 + t³·p(t) for 1+t in [√½, √2), p the best polynomial of degree 7 in relative
    error (6e-9), summed in pairs: the shortest chain.
    """
    bits = np.float32(x).view(np.int32)
    e = np.int32(np.int32(bits - int32(0x3F3504F3)) >> int32(23))  # x = 2^e times 1 + t
    t = np.int32(bits - (e << int32(23))).view(np.float32) - float32(1)
    z = t * t
    low = (float32(0.33333331) - float32(0.25000820) * t) + (
        float32(0.20001227) - float32(0.16623357) * t
    ) * z
    high = (float32(0.14201757) - float32(0.13160184) * t) + (
        float32(0.12761582) - float32(0.07634497) * t
    ) * z
    tail = (low + high * (z * z)) * (t * z) - float32(0.5) * z
    return float32(e) * float32(0.69314718056) + (t + tail)


@_SMALL
def log64(x):
    """The natural logarithm of a positive, normal float64, to the last bit or so: Sun's e_log.c.

    Not libm's, which is another on another machine.
    """
    bits = np.float64(x).view(np.int64)
    e = (bits - int64(0x3FE6A09E667F3BCD)) >> int64(52)
    t = np.int64(bits - (e << int64(52))).view(np.float64) - 1.0
    s = t / (2.0 + t)
    z = s * s
    p = 1.479819860511658591e-01 * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = (p * z + 6.666666666666735130e-01) * z
    half = 0.5 * t * t
    return float64(e) * 0.6931471805599453 + (t - (half - s * (half + p)))


@_SMALL
def exp32(x):
    """e^x for x ≤ 0 (0 below −87), to about 1e-7 of its size: Cephes' polynomial."""
    low = x < float32(-87)
    x = float32(-87) if low else x
    k = np.floor(x * float32(1.44269504089) + float32(0.5))
    r = x - k * float32(0.693359375) + k * float32(2.12194440e-4)
    r2 = r * r
    p = (float32(5.0000001201e-1) + float32(1.6666665459e-1) * r) + (
        float32(4.1665795894e-2) + float32(8.3334519073e-3) * r
    ) * r2
    p += (float32(1.3981999507e-3) + float32(1.9875691500e-4) * r) * (r2 * r2)
    p = p * r2 + (r + float32(1))
    scaled = np.int32(np.float32(p).view(np.int32) + (np.int32(k) << int32(23))).view(np.float32)
    return float32(0) if low else scaled


@_SMALL
def _normals(z, scale):
    """Two normals times a scale (Box–Muller).

    The radius is made from the upper 23 bits, the angle from bits 20 to 39.
    """
    radius = scale * math.sqrt(float32(-2) * log32(_upper(z)))
    turn = np.int32(np.int32((z >> uint64(20)) & uint64(0xFFFFF)) + int32(1 << 17))
    quadrant = np.int32(turn >> int32(18))
    r = _from_one(np.int32((turn & int32(0x3FFFF)) << int32(5))) - float32(1.5 - 2.0**-19)
    r *= float32(1.57079632679)
    r2 = r * r
    sine = float32(-1.6666654611e-1) + r2 * (
        float32(8.3321608736e-3) - r2 * float32(1.9515295891e-4)
    )
    sine = r + (r * r2) * sine
    cosine = float32(-1.388731625493765e-3) + r2 * float32(2.443315711809948e-5)
    cosine = (float32(1) - float32(0.5) * r2) + (r2 * r2) * (
        float32(4.166664568298827e-2) + r2 * cosine
    )
    swap = (quadrant & int32(1)) != 0
    s = cosine if swap else sine
    c = sine if swap else cosine
    s = -s if (quadrant & int32(2)) != 0 else s
    c = -c if ((quadrant + int32(1)) & int32(2)) != 0 else c
    return radius * c, radius * s


@_SMALL
def _surely(t, cell, d):
    """Marsaglia & Tsang's candidate d·v³ with v = 1 + t if it is accepted for sure, or else −1.

    The test is v > 0 and log u < h, where, with t = cx, h = 3d(log(1+t) − t + t²/2 − t³/3)
    = −d t⁴ (3/4 − 3t/5 + 3t²/6 − …). For t ≥ −½ the bracket is at most 3/4 − 3t/5 + 0.89t², and
    1 + h ≤ e^h: so u < 1 − d t⁴ (3/4 − 3t/5 + 0.89t²) settles almost every case without a
    logarithm, even if of u no more is known than its first ten bits, the cell [k, k+1)/1024.
    """
    v = float32(1) + t
    t2 = t * t
    bracket = (float32(0.75) - float32(0.6) * t) + float32(0.89) * t2
    above = _from_one(np.int32((cell & uint64(0x3FF)) << uint64(13))) - float32(1 - 2.0**-10)
    sure = (t >= float32(-0.5)) & (above <= float32(1) - (d * t2) * (t2 * bracket))
    return (d * v) * (v * v) if sure else float32(-1)


@_INLINED
def _erlang(key, first, shape, out, lanes):
    half = (lanes + 1) // 2
    z = _at(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        out[i] = _upper(bits)
        out[half + i] = _lower(bits)
    for factor in range(1, shape):
        z = _at(key + uint64(factor) * _ATTEMPT, first)
        for i in range(half):
            bits = mix(z)
            z += GOLDEN
            out[i] *= _upper(bits)
            out[half + i] *= _lower(bits)
    for i in range(2 * half):
        out[i] = -log32(out[i])


@_INLINED
def _marsaglia_tsang(key, first, shape, out, lanes):
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    half = (lanes + 1) // 2
    z = _at(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        t, s = _normals(bits, float32(c))
        out[i] = _surely(t, bits >> uint64(10), float32(d))
        out[half + i] = _surely(s, bits, float32(d))
    for start in range(0, lanes, _SCAN):
        stop = start + _SCAN if start + _SCAN < lanes else lanes
        still_open = 0
        for i in range(start, stop):
            still_open += out[i] < float32(0)
        if still_open:
            for i in range(start, stop):
                if out[i] < float32(0):
                    upper = i < half
                    out[i] = _settle(key, first + (i if upper else i - half), upper, d, c)


@_CALLED
def _settle(key, counter, upper, d, c):
    """Marsaglia & Tsang's own test, in double precision, from the lane's first attempt on."""
    z = _at(key, counter)
    while True:
        bits, rest = mix(z), mix(z + _ATTEMPT)
        x, y = _normals(bits, float32(1))
        if upper:
            u = (np.int32((bits >> uint64(10)) & uint64(0x3FF)) + _upper(rest)) / 1024
        else:
            x, u = y, (np.int32(bits & uint64(0x3FF)) + _lower(rest)) / 1024
        v = 1 + c * x
        v3 = v * v * v
        x2 = float64(x) * x
        if v > 0 and (
            u < 1 - 0.0331 * (x2 * x2)  # their squeeze, which spares most logarithms
            or log64(u) < 0.5 * x2 + d - d * v3 + 3 * d * log64(v)
        ):
            return float32(d * v3)
        z += _ATTEMPT + _ATTEMPT


@_CALLED
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


@_INLINED
def take_logs(key, first, shape, out, lanes):
    """Turn variates of a shape, or of shape + 1 where that is below 1, into logarithms of variates.

    `out` comes from `gammas`, with the same key.
    """
    for i in range(lanes):
        out[i] = log32(out[i])
    if shape < 1:
        # attempts are counted in pairs from 0 by `gammas`; the last counter is free
        z = _at(key - _ATTEMPT, first)
        inverse = float32(1 / shape)
        for i in range(lanes):
            out[i] += log32(_upper(mix(z))) * inverse
            z += GOLDEN
