"""Beta variates: the right distribution, the proof that they have it, and every lane by its twin.

Every statistical test has a fixed seed. Each asserts p > 1e-4 for one or a few p-values of about a
hundred in all: written anew with another seed this file would raise a false alarm in about one of
100 cases.
"""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from dowise.belief import variates
from dowise.belief import variates as beta

pytestmark = pytest.mark.slow  # what only these need takes long to compile

ALARM = 1e-4
MASK, GOLDEN, ATTEMPT = 2**64 - 1, 0x9E3779B97F4A7C15, 1 << 44


@njit
def fill(key0, key1, a, b, out, rest, lanes):
    """One stream a row, in blocks of 256 lanes as the belief's kernel draws them."""
    one, other = np.empty(257, dtype=np.float32), np.empty(257, dtype=np.float32)
    for row in range(out.shape[0]):
        key = variates.stream_key(key0, key1, row)
        for first in range(0, lanes, 256):
            width = min(256, lanes - first)
            beta.betas(key, first, a, b, one, other, width)
            out[row, first : first + width] = one[:width]
            rest[row, first : first + width] = other[:width]


def draw(a, b, rows, lanes, seed=0):
    out, rest = (np.empty((rows, lanes), dtype=np.float32) for _ in range(2))
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    fill(key[0], key[1], float(a), float(b), out, rest, lanes)
    return out.astype(np.float64), rest.astype(np.float64)


SHAPES = [
    (1, 1), (1, 2), (1, 7), (1, 1.5), (1, 1e4), (2, 2), (2, 3), (2, 4), (2, 5), (2, 2.5), (2, 300),
    (3, 3), (3, 40), (4, 4), (4, 6.5), (5, 5), (5, 8), (5, 40), (5, 1e4), (7, 9), (12, 90),
    (40, 50), (200, 900), (1e3, 1e3), (1e4, 1e6), (1e6, 1e6), (1.001, 1.001), (1.1, 9), (1.5, 1.5),
    (1.5, 3), (1.9, 500), (2.5, 2.5), (2.5, 8), (3.5, 1e3),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_distribution(a, b):
    """Both parts, each way round: the lesser part has digits of its own."""
    for one, other, seed in ((a, b, 1), (b, a, 2)):
        x, y = (part.ravel() for part in draw(one, other, 200, 1000, seed))
        assert (x > 0).all() and (y > 0).all()
        np.testing.assert_allclose(x + y, 1, atol=2e-7)
        assert stats.kstest(x, stats.beta(one, other).cdf).pvalue > ALARM
        # The tails weigh little in a Kolmogorov-Smirnov test, so moments of the scores as well.
        mean, variance, excess = stats.beta(one, other).stats("mvk")
        scores = (x - mean) / np.sqrt(variance)
        assert abs(np.mean(scores)) * np.sqrt(len(scores)) < 4.5
        assert abs(np.mean(scores**2) - 1) / np.sqrt(2 + excess) * np.sqrt(len(scores)) < 4.5


def joint_uniformity(x, y, cells=16):
    """The p-value of a chi-squared test that (x, y) is uniform on the unit square."""
    table, _, _ = np.histogram2d(x, y, bins=cells, range=[[0, 1], [0, 1]])
    return stats.chisquare(table.ravel()).pvalue


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 6), (2, 3), (3, 8), (5, 9), (50, 20)])
def test_independence_between_lanes_rows_and_rounds(a, b):
    u = stats.beta(a, b).cdf(draw(a, b, 256, 1024)[0])
    later = stats.beta(a, b).cdf(draw(a, b, 256, 1024, seed=1)[0])
    pairs = {
        "neighbouring lanes": (u[:, :-1], u[:, 1:]),
        "the two lanes of one hash": (u[:, :128], u[:, 128:256]),
        "lanes of neighbouring blocks": (u[:, :256], u[:, 256:512]),
        "neighbouring rows": (u[:-1], u[1:]),
        "rounds": (u, later),
    }
    for what, (x, y) in pairs.items():
        assert joint_uniformity(x.ravel(), y.ravel()) > ALARM, what


@pytest.mark.parametrize("lanes", [1, 2, 3, 31, 63, 64, 65, 255, 256, 257, 1000])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3), (3, 9), (1.5, 7), (300, 200)])
def test_any_number_of_lanes_is_filled(lanes, a, b):
    x, y = draw(a, b, 5, lanes)
    assert ((x > 0) & (x < 1) & (y > 0) & (y < 1)).all()
    assert len(np.unique(x)) > 0.99 * x.size


# -- the proof ------------------------------------------------------------------------------------


def grid():
    """Shapes from 1 to a million, and their ratio from 1 to a million: close to 1 above all."""
    for one in np.geomspace(1, 2e6, 30):
        for ratio in np.concatenate([[0.0], np.geomspace(1e-4, 1e6, 60)]):
            yield (one + 1) / 2, (one * (1 + ratio) + 1) / 2


def density(f, s):
    """M(s) − M(0)."""
    v, w = 1 + s, 1 - f.rho * s
    whole = (f.r * v * v + w * w) / (1 + f.r)
    return (2 * f.a - 1) * np.log(v) + (2 * f.b - 1) * np.log(w) - (f.a + f.b) * np.log(whole)


def excess(f):
    """The numerator of κ − G: a polynomial of degree 4."""
    v, w = np.poly1d([1, 1]), np.poly1d([-f.rho, 1])
    whole = f.r * v * v + w * w
    m = (2 * f.a - 1) * (1 + f.rho) + 2 * f.rho
    return f.kappa * v * w * whole + 2 * f.rho * whole - m * (1 + f.rho) * (v + w)


def test_the_derivative_of_the_density_is_what_is_claimed():
    for a, b in [(1.2, 3.4), (5, 5), (7, 90)]:
        f = beta.fit(a, b)
        s = np.linspace(-0.9, 0.9 / f.rho, 50)
        v, w = 1 + s, 1 - f.rho * s
        slope = (density(f, s + 1e-6) - density(f, s - 1e-6)) / 2e-6
        claimed = s * (excess(f)(s) / (v * w * (f.r * v * v + w * w)) - f.kappa)
        np.testing.assert_allclose(slope, claimed, rtol=1e-5, atol=1e-6)


def test_normals_of_that_variance_are_dense_enough_everywhere():
    """κ ≤ G from end to end: at the extremes of the polynomial, and so in between."""
    for a, b in grid():
        f = beta.fit(a, b)
        polynomial = excess(f)
        extremes = polynomial.deriv().roots
        places = extremes[np.abs(extremes.imag) < 1e-9].real
        places = np.concatenate([places[(places > -1) & (places < 1 / f.rho)], [-1, 1 / f.rho]])
        rounding = 1e-13 * f.kappa * (1 + f.r)
        assert (polynomial(places) < rounding).all(), (a, b)


def bound(f, s):
    return s**2 * (f.e0 + f.e1 * s + f.e2 * s**2 + f.e3 * s**3)


def test_the_quick_acceptance_is_never_wrong_and_rarely_undecided():
    for a, b in grid():
        f = beta.fit(a, b)
        s = np.linspace(f.low, f.high, 401)
        log_kept = density(f, s) + f.kappa * s**2 / 2
        rounding = 1e-12 + 1e-15 * (a + b)  # of sums of so large terms
        assert (log_kept <= rounding).all(), (a, b)
        assert (-log_kept <= bound(f, s) + rounding).all(), (a, b)
        if a >= 5:
            normal = np.exp(-f.kappa * s**2 / 2) * np.sqrt(f.kappa / (2 * np.pi))
            sure = np.sum(np.clip(1 - bound(f, s), 0, 1) * normal) * (s[1] - s[0])
            assert sure > 0.975


# -- the twin -------------------------------------------------------------------------------------


def hash_twin(key, counter):
    """SplitMix64's finaliser on Python's integers."""
    z = (key + counter * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def beta_twin(key, lane, lanes, a, b):
    """One variate for a ≤ b from the counters, in double precision, by the methods as stated."""
    half = (lanes + 1) // 2
    is_one, counter = lane < half, lane if lane < half else lane - half

    def uniform(k):
        z = hash_twin(key + k * ATTEMPT, counter)
        return ((z >> 41 if is_one else z & 0x7FFFFF) + 0.5) / 2**23

    if a == b == 1:
        return uniform(0)
    if a == 2 and b == int(b) <= beta.MAX_ORDERED_SHAPE:
        return sorted(uniform(k) for k in range(int(b) + 1))[1]
    if a == int(a) <= beta.MAX_PRODUCT_SHAPE:
        return -math.expm1(sum(math.log(uniform(k)) / (b + k) for k in range(int(a))))
    f, attempt = beta.fit(a, b), 0
    while True:
        z = hash_twin(key + attempt * ATTEMPT, counter)
        radius = math.sqrt(-2 * math.log(((z >> 41) + 0.5) / 2**23))
        angle = 2 * math.pi * ((z >> 20 & 0xFFFFF) + 0.5) / 2**20
        s = f.scale * radius * (math.cos(angle) if is_one else math.sin(angle))
        u = ((z >> 10 if is_one else z) % 1024 + uniform(attempt + 1)) / 1024
        if -1 < s < 1 / f.rho and math.log(u) < density(f, s) + f.kappa * s * s / 2:
            odds = f.r * ((1 + s) / (1 - f.rho * s)) ** 2
            return odds / (1 + odds)
        attempt += 2


@pytest.mark.parametrize("lanes", [33, 256])
@pytest.mark.parametrize(("a", "b"), [
    (1, 1), (1, 3.5), (2, 2), (2, 4), (2, 5), (3, 3), (4, 50), (5, 5), (5, 30), (1.2, 1.4),
    (1.5, 20), (1e3, 1e4),
])  # fmt: skip
def test_every_lane_is_what_its_counters_say(a, b, lanes):
    """The same bits used in the same way, every rejection the same."""
    for one, other in ((a, b), (b, a)):
        out, rest = (np.empty((6, lanes), dtype=np.float32) for _ in range(2))
        fill(np.uint64(12345), np.uint64(678), float(one), float(other), out, rest, lanes)
        for row in range(len(out)):
            key = int(variates.stream_key(np.uint64(12345), np.uint64(678), row))
            twin = np.array([beta_twin(key, lane, lanes, a, b) for lane in range(lanes)])
            lesser = out if one == a else rest
            np.testing.assert_allclose(lesser[row], twin, rtol=2e-4, atol=1e-7)
            np.testing.assert_allclose(out[row] + rest[row], 1, atol=2e-7)


def test_a_part_that_is_nearly_nothing_keeps_its_digits():
    """1 − U^(1/c) for a large c, where a difference from 1 in single precision would be nothing."""
    x, _ = draw(1, 1e9, 4, 1000)
    assert stats.kstest(x.ravel(), stats.beta(1, 1e9).cdf).pvalue > ALARM
