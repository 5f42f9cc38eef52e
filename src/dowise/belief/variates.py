"""What variates are made of, many lanes at a time: hashes, uniforms, normals, logarithms.

Nothing here calls into libm and nothing branches, so LLVM turns a loop over lanes into vector code.

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

__all__ = [
    "ATTEMPT", "CALLED", "INLINED", "SCAN", "SMALL", "at", "cell_end", "cells", "exp32", "from_one",
    "log32", "log64", "normals", "other_uniform", "stream_key", "uniform",
]  # fmt: skip

SCAN = 64  # lanes that are looked through together for one that rejected
ATTEMPT = uint64(1 << 44)  # counters of one attempt: more lanes than anybody draws

# What is small is inlined by LLVM, what is called from one place by Numba: a function that stays a
# function is optimised once for itself and once again with every caller, and theirs. Division as
# NumPy's, for a test for zero in a loop keeps LLVM from vectorising it. And never `fastmath`: the
# same bits come from every machine only if no multiplication is fused with an addition and no sum
# rearranged; what may be rearranged for speed is so by hand. (An inlined function has the options
# of its caller.)
SMALL = njit(forceinline=True, error_model="numpy")
INLINED = njit(inline="always")
CALLED = njit(error_model="numpy")


@CALLED
def stream_key(key0, key1, number):
    """The key of stream `number` under a key of two words; neighbours are unrelated."""
    return mix(uint64(key0) ^ mix(uint64(key1) + uint64(number) * GOLDEN))


@SMALL
def at(key, counter):
    """What is hashed for a counter; one more for the next counter is GOLDEN more."""
    return key + uint64(counter) * GOLDEN


@SMALL
def from_one(k):
    """1 + k/2^23 for k of 23 bits: the fraction of a float32 between 1 and 2."""
    return np.int32(k | int32(0x3F800000)).view(np.float32)


@SMALL
def uniform(z):
    """A uniform on (0, 1) from the upper 23 bits: exact in a float32, never 0, never 1."""
    return from_one(np.int32(z >> uint64(41))) - float32(1 - 2.0**-24)


@SMALL
def other_uniform(z):
    """A uniform on (0, 1) from the lower 23 bits."""
    return from_one(np.int32(z & uint64(0x7FFFFF))) - float32(1 - 2.0**-24)


@SMALL
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


@SMALL
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


@SMALL
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


@SMALL
def normals(z, scale):
    """Two normals times a scale (Box–Muller), from a hash.

    The radius is made from its upper 23 bits, the angle from bits 20 to 39; twenty bits are free
    (`cells`).
    """
    radius = scale * math.sqrt(float32(-2) * log32(uniform(z)))
    turn = np.int32(np.int32((z >> uint64(20)) & uint64(0xFFFFF)) + int32(1 << 17))
    quadrant = np.int32(turn >> int32(18))
    r = from_one(np.int32((turn & int32(0x3FFFF)) << int32(5))) - float32(1.5 - 2.0**-19)
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


@SMALL
def cells(z):
    """The first ten bits k of two uniforms, from a hash's free bits: they lie in [k, k+1)/1024."""
    return np.int32((z >> uint64(10)) & uint64(0x3FF)), np.int32(z & uint64(0x3FF))


@SMALL
def cell_end(cell):
    """The end of a uniform's cell."""
    return from_one(np.int32(cell << int32(13))) - float32(1 - 2.0**-10)
