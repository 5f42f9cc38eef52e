"""Beta and gamma variates in single precision, many lanes at a time.

The functions neither call libm nor branch, so LLVM vectorises loops over lanes. All methods are
exact.

**Random bits.** Lane i of attempt k of a stream is a function of a hash of (key of the stream, k,
i), by SplitMix64's finaliser (Steele, Lea & Flood 2014); there is no state. Two lanes share a hash,
lane i and lane i + half of those drawn together, so the same key gives the same variates for the
same number of lanes.

**Beta variates**, for shapes 1 ≤ a ≤ b (others are drawn with their ends exchanged):

- both shapes are 1: a uniform; a is 2 and b at most 4 and whole: the second smallest of b + 1
  uniforms;
- a is whole and at most 4: 1 − X is a product of independent U_i^(1/(b+i)) for i below a, because
  U^(1/c) is a Beta(c, 1) variate, and Beta(c, d) times Beta(c + d, e) is Beta(c, d + e);
- otherwise a transformed normal and rejection, as Marsaglia & Tsang (2000) do for gammas.

*The transformation.* Let X / (1 − X) = r (v/w)² with v = 1 + s and w = 1 − ρs, A = 2a − 1 and
B = 2b − 1. With S = r v² + w² the logarithm of the density of s is, up to a constant,

    M(s) = A log v + B log w − (a + b) log S,

and for r = (A(1+ρ) + 2ρ) / (B(1+ρ) + 2), which puts its mode at s = 0, its derivative is

    M'(s) = −s G(s),    G(s) = (m (1+ρ)(v + w) / S − 2ρ) / (vw),    m = A(1+ρ) + 2ρ.

If κ ≤ G on −1 < s < 1/ρ, then M(s) − M(0) ≤ −κs²/2: normals of variance 1/κ, each accepted with
probability exp(M(s) − M(0) + κs²/2), have the right distribution for any ρ. With
ρ = (B + 5A) / (5B + A) the slope of G at 0 vanishes up to terms in 1/A, so that G hardly varies,
and G(0) − 1/(A + 3) is such a κ: the numerator of κ − G is a polynomial of degree 4 in s, negative
on the interval (`test_variates.py` checks its extremes). More than 0.97 of all normals are
accepted for a ≥ 3, more than 0.99 for a ≥ 8, and nearly all if a and b are similar.

*The quick acceptance.* G − κ is below the cubic polynomial that has its value and slope at 0 and
its values at the ends of [−l, h], because its fourth derivative is positive there (the test checks
this as well). Integrated, it gives E(s) = s²(e₀ + e₁s + e₂s² + e₃s³) ≥ −log of that probability,
so u ≤ 1 − E(s) accepts almost every lane without a logarithm.

**Gamma variates**, for rows with a parameter below 1, by shape:

- a whole shape up to 4: minus the logarithm of a product of that many uniforms (Erlang);
- any other shape of at least 1: Marsaglia & Tsang (2000), "A simple method for generating gamma
  variables", with Box–Muller normals; the few rejected lanes are drawn again one by one;
- a shape α below 1: a variate of shape α + 1 times U^(1/α) (also Marsaglia & Tsang), as a
  logarithm, because the variate itself may underflow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float32, float64, int32, int64, njit, uint64

from dowise._core.hashing import GOLDEN, mix

SCAN = 64  # lanes that are scanned together for a rejection
ATTEMPT = uint64(1 << 44)  # counters per attempt: more than the number of lanes

# Small functions are inlined by LLVM, those called from one place by Numba: a function that is not
# inlined is optimised by itself and again with every caller. Division is NumPy's, because a test
# for zero keeps LLVM from vectorising a loop. Never use `fastmath`: results are the same bits on
# every machine only if no multiplication is fused with an addition and no sum is rearranged. (An
# inlined function has the options of its caller.)
SMALL = njit(forceinline=True, error_model="numpy")
INLINED = njit(inline="always")
CALLED = njit(error_model="numpy")


@CALLED
def stream_key(key0, key1, number):
    """Return the key of stream `number` under a key of two words; neighbours are unrelated."""
    return mix(uint64(key0) ^ mix(uint64(key1) + uint64(number) * GOLDEN))


@SMALL
def hash_input(key, counter):
    """Return the input of the hash for a counter; those of successive counters differ by GOLDEN."""
    return key + uint64(counter) * GOLDEN


@SMALL
def from_one(k):
    """Return 1 + k/2^23 for k of 23 bits: the fraction of a float32 between 1 and 2."""
    return np.int32(k | int32(0x3F800000)).view(np.float32)


@SMALL
def uniform(z):
    """Return a uniform on (0, 1) from the upper 23 bits: exact in a float32, never 0 or 1."""
    return from_one(np.int32(z >> uint64(41))) - float32(1 - 2.0**-24)


@SMALL
def other_uniform(z):
    """Return a uniform on (0, 1) from the lower 23 bits."""
    return from_one(np.int32(z & uint64(0x7FFFFF))) - float32(1 - 2.0**-24)


@SMALL
def log32(x):
    """Return the natural logarithm of a positive, normal float32, to about 1e-7 of its size.

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
    """Return the natural logarithm of a positive, normal float64, nearly to the last bit.

    By Sun's e_log.c, since libm differs between machines.
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
    """Return e^x for x ≤ 0 (0 below −87), to about 1e-7 of its size: Cephes' polynomial."""
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
def exp64(x):
    """Return e^x for x ≤ 0 (0 below −708), to about 2e-16: Cephes' rational approximation.

    libm is not used because it differs between machines.
    """
    low = x < -708
    x = -708.0 if low else x
    k = np.floor(x * 1.4426950408889634073599 + 0.5)
    r = x - k * 6.93145751953125e-1
    r -= k * 1.42860682030941723212e-6
    r2 = r * r
    p = r * ((1.26177193074810590878e-4 * r2 + 3.02994407707441961300e-2) * r2 + 1.0)
    q = 3.00198505138664455042e-6 * r2 + 2.52448340349684104192e-3
    q = (q * r2 + 2.27265548208155028766e-1) * r2 + 2.0
    power = np.int64((int64(k) + int64(1023)) << int64(52)).view(np.float64)
    return 0.0 if low else (1.0 + 2.0 * (p / (q - p))) * power


@SMALL
def normals(z, scale):
    """Return two normals times a scale (Box–Muller), from a hash.

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
    """Return the first ten bits k of two uniforms in [k, k+1)/1024, from a hash's free bits."""
    return np.int32((z >> uint64(10)) & uint64(0x3FF)), np.int32(z & uint64(0x3FF))


@SMALL
def cell_end(cell):
    """Return the end of a uniform's cell."""
    return from_one(np.int32(cell << int32(13))) - float32(1 - 2.0**-10)


MAX_PRODUCT_SHAPE = 4  # with more logarithms the normals are faster
MAX_ORDERED_SHAPE = 4  # with more uniforms the product is faster

_MAX_CHANGE, _MAX_DEVIATIONS = 0.6, 4.0  # range of E: v and w above 0.4, and 4 standard deviations


class Fit(NamedTuple):
    """Constants of two shapes, as in the module docstring. The scale is κ^(−1/2)."""

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
def _slope_over_s(s, r, rho, slope):
    """Return G(s) = −M'(s)/s, for slope = m (1 + ρ)."""
    v, w = 1 + s, 1 - rho * s
    return (slope * (v + w) / (r * v * v + w * w) - 2 * rho) / (v * w)


@CALLED
def fit(a, b):
    """Return the constants of two shapes, 1 ≤ a ≤ b."""
    upper_a, upper_b = 2 * a - 1, 2 * b - 1  # A and B
    rho = (upper_b + 5 * upper_a) / (5 * upper_b + upper_a)
    rho1 = 1 + rho
    m = upper_a * rho1 + 2 * rho
    r = m / (upper_b * rho1 + 2)
    at_0, margin = 2 * m * rho1 / (1 + r) - 2 * rho, 1 / (upper_a + 3)  # G(0), G(0) − κ
    kappa = at_0 - margin
    scale = 1 / math.sqrt(kappa)
    tilt = (at_0 / 2 + rho) * ((1 - rho) - 4 * (r - rho) / (1 + r)) - at_0 * (1 - rho)
    low = min(_MAX_CHANGE, _MAX_DEVIATIONS * scale)
    high = min(_MAX_CHANGE / rho, _MAX_DEVIATIONS * scale)
    left = (_slope_over_s(-low, r, rho, m * rho1) - at_0 + tilt * low) / (low * low)
    right = (_slope_over_s(high, r, rho, m * rho1) - at_0 - tilt * high) / (high * high)
    third = (right - left) / (high + low)
    second = left + third * low
    return Fit(a, b, r, rho, kappa, scale, -low, high, margin / 2, tilt / 3, second / 4, third / 5)


@SMALL
def _beta_of(s, r, rho):
    """Return the variate x of s, and 1 − x."""
    v, w = float32(1) + s, float32(1) - rho * s
    x, y = (r * v) * v, w * w
    scale = float32(1) / (x + y)
    return x * scale, y * scale


@SMALL
def _is_accepted_quickly(s, end, low, high, e0, e1, e2, e3):
    """Return True if s is accepted for every uniform of the cell that ends at `end`."""
    s2 = s * s
    bound = s2 * ((e0 + e1 * s) + s2 * (e2 + e3 * s))
    return (s >= low) & (s <= high) & (end <= float32(1) - bound)


@INLINED
def _by_normals(key, first, f, out, complement, lanes):
    r, rho, scale = float32(f.r), float32(f.rho), float32(f.scale)
    low, high = float32(f.low), float32(f.high)
    e0, e1, e2, e3 = float32(f.e0), float32(f.e1), float32(f.e2), float32(f.e3)
    half = (lanes + 1) // 2
    z = hash_input(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        out[i], out[half + i] = normals(bits, scale)
        cell, other_cell = cells(bits)
        complement[i], complement[half + i] = cell_end(cell), cell_end(other_cell)
    for i in range(2 * half):  # short loops overlap with themselves
        s = out[i]
        is_accepted = _is_accepted_quickly(s, complement[i], low, high, e0, e1, e2, e3)
        x, y = _beta_of(s, r, rho)
        out[i], complement[i] = x if is_accepted else float32(-1), y if is_accepted else s
    for start in range(0, lanes, SCAN):
        part = out[start : min(start + SCAN, lanes)]
        rejected = 0
        for i in range(len(part)):
            rejected += part[i] < float32(0)
        if rejected:
            for i in range(start, start + len(part)):
                if out[i] < float32(0):
                    z = hash_input(key, first + (i if i < half else i - half))
                    s = _exact_beta(z, i < half, complement[i], f)
                    out[i], complement[i] = _beta_of(s, r, rho)


@CALLED
def _exact_beta(z, is_first, s, f):
    """Return the accepted s, by the exact test in double precision, from the first attempt on.

    `is_first` is True for lane i, False for lane i + half, which shares the hash.
    """
    while True:
        bits, more_bits = mix(z), mix(z + ATTEMPT)
        cell, other_cell = cells(bits)
        if is_first:
            u = (cell + uniform(more_bits)) / 1024
        else:
            u = (other_cell + other_uniform(more_bits)) / 1024
        v, w = 1 + float64(s), 1 - f.rho * s
        if v > 0 and w > 0:
            ratio = (f.r * v * v + w * w) / (1 + f.r)  # S(s) / S(0)
            m = (2 * f.a - 1) * log64(v) + (2 * f.b - 1) * log64(w) - (f.a + f.b) * log64(ratio)
            if log64(u) < m + 0.5 * f.kappa * float64(s) * s:
                return s
        z += ATTEMPT + ATTEMPT
        s, other_s = normals(mix(z), float32(f.scale))
        s = s if is_first else other_s


@SMALL
def _from_log(x):
    """Return (1 − e^x, e^x) for −87 ≤ x ≤ 0, each to about 1e-7: Cephes' polynomial."""
    k = np.floor(x * float32(1.44269504089) + float32(0.5))
    r = x - k * float32(0.693359375) + k * float32(2.12194440e-4)
    r2 = r * r
    p = (float32(5.0000001201e-1) + float32(1.6666665459e-1) * r) + (
        float32(4.1665795894e-2) + float32(8.3334519073e-3) * r
    ) * r2
    p += (float32(1.3981999507e-3) + float32(1.9875691500e-4) * r) * (r2 * r2)
    power = np.int32((np.int32(k) + int32(127)) << int32(23)).view(np.float32)
    remainder = power * (r + p * r2)  # e^x = power + remainder
    return (float32(1) - power) - remainder, power + remainder


@SMALL
def _uniforms(key, first, out, half):
    z = hash_input(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        out[i], out[half + i] = uniform(bits), other_uniform(bits)


@INLINED
def _by_product(key, first, factors, b, out, complement, lanes):
    half = (lanes + 1) // 2
    for i in range(2 * half):
        complement[i] = float32(0)
    for factor in range(factors):
        power = float32(1 / (b + factor))
        _uniforms(key + uint64(factor) * ATTEMPT, first, out, half)
        for i in range(2 * half):
            complement[i] += log32(out[i]) * power
    for i in range(2 * half):
        out[i], complement[i] = _from_log(complement[i])


@INLINED
def _by_order(key, first, uniforms, out, complement, lanes):
    """Fill `complement` with the second smallest of some uniforms, and `out` with the smallest."""
    half = (lanes + 1) // 2
    for i in range(2 * half):
        complement[i] = float32(1)
    _uniforms(key, first, out, half)
    for number in range(1, uniforms):
        z = hash_input(key + uint64(number) * ATTEMPT, first)
        for i in range(half):
            bits = mix(z)
            z += GOLDEN
            x, y = uniform(bits), other_uniform(bits)
            complement[i] = min(complement[i], max(out[i], x))
            out[i] = min(out[i], x)
            complement[half + i] = min(complement[half + i], max(out[half + i], y))
            out[half + i] = min(out[half + i], y)
    for i in range(2 * half):
        out[i], complement[i] = complement[i], float32(1) - complement[i]


@CALLED
def _in_order(key, first, a, b, out, complement, lanes):
    """Fill `out` and `complement` as `betas` does, for a ≤ b."""
    shape = int(a)
    if a != shape or shape > MAX_PRODUCT_SHAPE:
        _by_normals(key, first, fit(a, b), out, complement, lanes)
    elif b == 1:
        half = (lanes + 1) // 2
        _uniforms(key, first, out, half)
        for i in range(2 * half):
            complement[i] = float32(1) - out[i]
    elif shape == 2 and b <= MAX_ORDERED_SHAPE and b == int(b):
        _by_order(key, first, int(b) + 1, out, complement, lanes)
    else:
        _by_product(key, first, shape, b, out, complement, lanes)


@CALLED
def betas(key, first, a, b, out, complement, lanes):
    """Fill out[:lanes] with Beta(a, b) variates x and complement[:lanes] with 1 − x.

    Both shapes are at least 1. `first` is the number of the first lane in the stream. `out` and
    `complement` have room for one more lane, which is scratch space if `lanes` is odd.
    """
    if a <= b:
        _in_order(key, first, a, b, out, complement, lanes)
    else:
        _in_order(key, first, b, a, complement, out, lanes)


MAX_ERLANG_SHAPE = 4  # a product of six uniforms could fall below float32's 2^-126


@SMALL
def quick_gamma(t, cell, d):
    """Return Marsaglia & Tsang's candidate d·v³, v = 1 + t, if certainly accepted, else −1.

    The test is v > 0 and log u < h, where, with t = cx, h = 3d(log(1+t) − t + t²/2 − t³/3)
    = −d t⁴ (3/4 − 3t/5 + 3t²/6 − …). For t ≥ −½ the bracket is at most 3/4 − 3t/5 + 0.89t², and
    1 + h ≤ e^h: so u < 1 − d t⁴ (3/4 − 3t/5 + 0.89t²) accepts almost every candidate without a
    logarithm, even if only the first ten bits of u, its cell, are known.
    """
    v = float32(1) + t
    t2 = t * t
    bracket = (float32(0.75) - float32(0.6) * t) + float32(0.89) * t2
    is_accepted = (t >= float32(-0.5)) & (cell_end(cell) <= float32(1) - (d * t2) * (t2 * bracket))
    return (d * v) * (v * v) if is_accepted else float32(-1)


@INLINED
def _erlang(key, first, factors, out, lanes):
    half = (lanes + 1) // 2
    _uniforms(key, first, out, half)
    for factor in range(1, factors):
        z = hash_input(key + uint64(factor) * ATTEMPT, first)
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
    z = hash_input(key, first)
    for i in range(half):
        bits = mix(z)
        z += GOLDEN
        t, s = normals(bits, float32(c))
        cell, other_cell = cells(bits)
        out[i] = quick_gamma(t, cell, float32(d))
        out[half + i] = quick_gamma(s, other_cell, float32(d))
    for start in range(0, lanes, SCAN):
        part = out[start : min(start + SCAN, lanes)]
        rejected = 0
        for i in range(len(part)):
            rejected += part[i] < float32(0)
        if rejected:
            for i in range(start, start + len(part)):
                if out[i] < float32(0):
                    is_first = i < half
                    z = hash_input(key, first + (i if is_first else i - half))
                    out[i] = _exact_gamma(z, is_first, d, c)


@CALLED
def _exact_gamma(z, is_first, d, c):
    """Return a variate by the exact test in double precision, from the first attempt on."""
    while True:
        bits, more_bits = mix(z), mix(z + ATTEMPT)
        x, y = normals(bits, float32(1))
        cell, other_cell = cells(bits)
        u = (cell + uniform(more_bits)) / 1024
        if not is_first:
            x, u = y, (other_cell + other_uniform(more_bits)) / 1024
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

    `first` is the number of the first lane in the stream. `out` has room for one more lane,
    which is scratch space if `lanes` is odd.
    """
    factors = int(shape)
    if factors == shape and factors <= MAX_ERLANG_SHAPE:
        _erlang(key, first, factors, out, lanes)
    else:
        _marsaglia_tsang(key, first, shape, out, lanes)
