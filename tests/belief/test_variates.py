"""Beta and gamma variates: their distribution, independence and proofs, and a twin of every lane.

Seeds are fixed. Each p-value must be above 1e-4: with other seeds this file would raise a false
alarm in about one of 50 runs.
"""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from dowise.belief import variates

pytestmark = pytest.mark.slow  # kernels that only these tests use take long to compile

ALARM = 1e-4
MASK, GOLDEN, ATTEMPT = 2**64 - 1, 0x9E3779B97F4A7C15, 1 << 44


@njit
def fill_betas(key0, key1, a, b, out, complement, lanes):
    """Draw one stream per row, in blocks of 256 lanes like the kernels of a belief."""
    x, y = np.empty(257, dtype=np.float32), np.empty(257, dtype=np.float32)
    for row in range(out.shape[0]):
        key = variates.stream_key(key0, key1, row)
        for first in range(0, lanes, 256):
            width = min(256, lanes - first)
            variates.betas(key, first, a, b, x, y, width)
            out[row, first : first + width] = x[:width]
            complement[row, first : first + width] = y[:width]


@njit
def fill_gammas(key0, key1, shape, out, lanes):
    scratch = np.empty(257, dtype=np.float32)
    for row in range(out.shape[0]):
        key = variates.stream_key(key0, key1, row)
        for first in range(0, lanes, 256):
            width = min(256, lanes - first)
            variates.gammas(key, first, shape, scratch, width)
            out[row, first : first + width] = scratch[:width]


def draw_betas(a, b, rows, lanes, seed=0):
    out, complement = (np.empty((rows, lanes), dtype=np.float32) for _ in range(2))
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    fill_betas(key[0], key[1], float(a), float(b), out, complement, lanes)
    return out.astype(np.float64), complement.astype(np.float64)


def draw_gammas(shape, rows, lanes, seed=0):
    out = np.empty((rows, lanes), dtype=np.float32)
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    fill_gammas(key[0], key[1], float(shape), out, lanes)
    return out.astype(np.float64)


@njit
def apply(function, x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = function(x[i])
    return out


def test_logarithm_and_exponential_in_single_precision():
    x = np.geomspace(2e-38, 3e38, 200_001).astype(np.float32)
    logs, truth = apply(variates.log32, x), np.log(x.astype(np.float64))
    assert np.abs(logs - truth).max() < 1e-5
    assert (np.abs(logs - truth) <= 3e-7 * np.maximum(1, np.abs(truth))).all()
    y = np.linspace(-87, 0, 200_001).astype(np.float32)
    assert np.abs(apply(variates.exp32, y) / np.exp(y.astype(np.float64)) - 1).max() < 3e-7
    assert apply(variates.exp32, np.float32([-88, -1000, -np.inf])).tolist() == [0, 0, 0]


def test_logarithm_in_double_precision():
    x = np.concatenate(
        [np.geomspace(2.3e-308, 1.7e308, 200_001), 1 + np.linspace(-0.5, 1, 200_001)]
    )
    np.testing.assert_allclose(apply(variates.log64, x), np.log(x), rtol=4e-16)
    assert apply(variates.log64, np.ones(1))[0] == 0


def test_uniforms_are_never_0_or_1():
    for bits, expected in ((0, 2**-24), (MASK, 1 - 2**-24)):
        for uniform in (variates.uniform, variates.other_uniform):
            assert uniform(np.uint64(bits)) == expected


# -- distribution ---------------------------------------------------------------------------------

BETA_SHAPES = [
    (1, 1),
    (1, 2),
    (1, 7),
    (1, 1.5),
    (1, 1e4),
    (2, 2),
    (2, 3),
    (2, 4),
    (2, 5),
    (2, 2.5),
    (2, 300),
    (3, 3),
    (3, 40),
    (4, 4),
    (4, 6.5),
    (5, 5),
    (5, 8),
    (5, 40),
    (5, 1e4),
    (7, 9),
    (12, 90),
    (40, 50),
    (200, 900),
    (1e3, 1e3),
    (1e4, 1e6),
    (1e6, 1e6),
    (1.001, 1.001),
    (1.1, 9),
    (1.5, 1.5),
    (1.5, 3),
    (1.9, 500),
    (2.5, 2.5),
    (2.5, 8),
    (3.5, 1e3),
]


def assert_distributed(sample, distribution):
    """Kolmogorov-Smirnov, and moments of the scores, because it gives little weight to tails."""
    assert stats.kstest(sample, distribution.cdf).pvalue > ALARM
    mean, variance, excess = distribution.stats("mvk")
    scores = (sample - mean) / np.sqrt(variance)
    assert abs(np.mean(scores)) * np.sqrt(len(scores)) < 4.5
    assert abs(np.mean(scores**2) - 1) / np.sqrt(2 + excess) * np.sqrt(len(scores)) < 4.5


@pytest.mark.parametrize(("a", "b"), BETA_SHAPES)
def test_beta_variates_have_their_distribution(a, b):
    """Both parts in both orders: the smaller part has its own digits."""
    for first, second, seed in ((a, b, 1), (b, a, 2)):
        x, y = (part.ravel() for part in draw_betas(first, second, 200, 1000, seed))
        assert (x > 0).all() and (y > 0).all()
        np.testing.assert_allclose(x + y, 1, atol=2e-7)
        assert_distributed(x, stats.beta(first, second))


def test_a_tiny_beta_variate_keeps_its_digits():
    """1 − U^(1/c) for a large c: in single precision the difference from 1 would be 0."""
    x, _ = draw_betas(1, 1e9, 4, 1000)
    assert stats.kstest(x.ravel(), stats.beta(1, 1e9).cdf).pvalue > ALARM


@pytest.mark.parametrize(
    "shape", [1, 1.01, 1.5, 2, 2.5, 3, 4, 4.5, 5, 7, 10, 30, 100, 1e3, 1e4, 1e5, 1e6]
)
def test_gamma_variates_have_their_distribution(shape):
    sample = draw_gammas(shape, 400, 1000, seed=int(shape * 100)).ravel()
    assert_distributed(sample, stats.gamma(shape))


def test_any_number_of_lanes_is_filled():
    for lanes in (1, 2, 3, 31, 63, 64, 65, 255, 256, 257, 1000):
        for a, b in ((1, 1), (2, 3), (3, 9), (1.5, 7), (300, 200)):
            x, y = draw_betas(a, b, 5, lanes)
            assert ((x > 0) & (x < 1) & (y > 0) & (y < 1)).all()
            assert len(np.unique(x)) > 0.99 * x.size
        for shape in (1, 3, 1.5, 200):
            sample = draw_gammas(shape, 5, lanes)
            assert (sample > 0).all()
            # v = 1 + cx has a resolution of 1.2e-7, so a few of 5000 values are equal.
            assert len(np.unique(sample)) > 0.99 * sample.size


# -- independence ---------------------------------------------------------------------------------


def joint_uniformity(x, y, cells=16):
    """Return the p-value of a chi-squared test that (x, y) is uniform on the unit square."""
    table, _, _ = np.histogram2d(x, y, bins=cells, range=[[0, 1], [0, 1]])
    return stats.chisquare(table.ravel()).pvalue


def assert_independent(u, later):
    pairs = {
        "neighbouring lanes": (u[:, :-1], u[:, 1:]),
        "the two lanes of a hash": (u[:, :128], u[:, 128:256]),
        "lanes of neighbouring blocks": (u[:, :256], u[:, 256:512]),
        "neighbouring rows": (u[:-1], u[1:]),
        "rows far apart": (u[:128], u[128:]),
        "rows shifted by a lane": (u[:-1, :-1], u[1:, 1:]),
        "rounds": (u, later),
    }
    for name, (x, y) in pairs.items():
        assert joint_uniformity(x.ravel(), y.ravel()) > ALARM, name
        assert abs(np.corrcoef(x.ravel(), y.ravel())[0, 1]) * np.sqrt(x.size) < 4.5, name


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 6), (2, 3), (3, 8), (5, 9), (50, 20)])
def test_beta_variates_are_independent_of_lane_row_and_round(a, b):
    assert_independent(
        *(stats.beta(a, b).cdf(draw_betas(a, b, 256, 1024, seed)[0]) for seed in (0, 1))
    )


@pytest.mark.parametrize("shape", [1, 2, 4, 1.5, 5, 50])
def test_gamma_variates_are_independent_of_lane_row_and_round(shape):
    assert_independent(
        *(stats.gamma(shape).cdf(draw_gammas(shape, 256, 1024, seed)) for seed in (0, 1))
    )


def test_rows_of_different_shapes_are_independent():
    x = stats.gamma(1).cdf(draw_gammas(1, 2, 60_000)[0])
    y = stats.gamma(7).cdf(draw_gammas(7, 2, 60_000)[1])
    assert joint_uniformity(x, y) > ALARM


def test_keys_that_differ_in_one_bit_give_unrelated_streams():
    out = np.empty((65, 4096), dtype=np.float32)
    for bit in range(64):
        fill_gammas(np.uint64(1 << bit), np.uint64(0), 5.5, out[bit : bit + 1], 4096)
    fill_gammas(np.uint64(0), np.uint64(0), 5.5, out[64:], 4096)
    correlations = np.corrcoef(out)[np.triu_indices(65, 1)]
    assert np.abs(correlations).max() * np.sqrt(4096) < 5.5  # 2080 pairs: p < 1e-4


# -- proofs of the acceptance tests ---------------------------------------------------------------


def shape_grid():
    """Yield shapes from 1 to a million and ratios from 1 to a million, mostly close to 1."""
    for upper_a in np.geomspace(1, 2e6, 30):
        for ratio in np.concatenate([[0.0], np.geomspace(1e-4, 1e6, 60)]):
            yield (upper_a + 1) / 2, (upper_a * (1 + ratio) + 1) / 2


def log_density(f, s):
    """Return M(s) − M(0)."""
    v, w = 1 + s, 1 - f.rho * s
    ratio = (f.r * v * v + w * w) / (1 + f.r)
    return (2 * f.a - 1) * np.log(v) + (2 * f.b - 1) * np.log(w) - (f.a + f.b) * np.log(ratio)


def excess_polynomial(f):
    """Return the numerator of κ − G, of degree 4."""
    v, w = np.poly1d([1, 1]), np.poly1d([-f.rho, 1])
    total = f.r * v * v + w * w
    m = (2 * f.a - 1) * (1 + f.rho) + 2 * f.rho
    return f.kappa * v * w * total + 2 * f.rho * total - m * (1 + f.rho) * (v + w)


def test_derivative_of_the_beta_density():
    for a, b in [(1.2, 3.4), (5, 5), (7, 90)]:
        f = variates.fit(a, b)
        s = np.linspace(-0.9, 0.9 / f.rho, 50)
        v, w = 1 + s, 1 - f.rho * s
        slope = (log_density(f, s + 1e-6) - log_density(f, s - 1e-6)) / 2e-6
        claimed = s * (excess_polynomial(f)(s) / (v * w * (f.r * v * v + w * w)) - f.kappa)
        np.testing.assert_allclose(slope, claimed, rtol=1e-5, atol=1e-6)


def test_kappa_is_below_g_on_the_whole_interval():
    """At the extremes and the ends of the polynomial, and so in between."""
    for a, b in shape_grid():
        f = variates.fit(a, b)
        polynomial = excess_polynomial(f)
        roots = polynomial.deriv().roots
        extremes = roots[np.abs(roots.imag) < 1e-9].real
        points = [*extremes[(extremes > -1) & (extremes < 1 / f.rho)], -1, 1 / f.rho]
        rounding = 1e-13 * f.kappa * (1 + f.r)
        assert (polynomial(np.array(points)) < rounding).all(), (a, b)


def test_quick_acceptance_of_betas_is_never_wrong_and_rarely_undecided():
    for a, b in shape_grid():
        f = variates.fit(a, b)
        s = np.linspace(f.low, f.high, 401)
        bound = s**2 * (f.e0 + f.e1 * s + f.e2 * s**2 + f.e3 * s**3)
        log_probability = log_density(f, s) + f.kappa * s**2 / 2
        rounding = 1e-12 + 1e-15 * (a + b)  # of sums of large terms
        assert (log_probability <= rounding).all(), (a, b)
        assert (-log_probability <= bound + rounding).all(), (a, b)
        if a >= 5:
            normal = np.exp(-f.kappa * s**2 / 2) * np.sqrt(f.kappa / (2 * np.pi))
            assert np.sum(np.clip(1 - bound, 0, 1) * normal) * (s[1] - s[0]) > 0.975


@njit
def quick_gammas(x, cell, d, c):
    out = np.empty(len(x), dtype=np.float32)
    for i in range(len(x)):
        out[i] = variates.quick_gamma(np.float32(c) * x[i], np.int32(cell[i]), np.float32(d))
    return out


@pytest.mark.parametrize("shape", [1.0, 1.2, 2.0, 5.0, 50.0, 1e4])
def test_quick_acceptance_of_gammas_is_never_wrong_and_rarely_undecided(shape):
    """Marsaglia & Tsang's own test accepts the same candidates for every u in the cell."""
    d = shape - 1 / 3
    c = 1 / np.sqrt(9 * d)
    x, cell = np.meshgrid(np.linspace(-5.8, 5.8, 2001).astype(np.float32), np.arange(1024))
    x, cell = x.ravel(), cell.ravel()
    accepted = quick_gammas(x, cell, d, c) >= 0
    v = 1 + c * x.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        limit = x.astype(np.float64) ** 2 / 2 + d - d * v**3 + 3 * d * np.log(v)
    largest = np.log((cell + 1) / 1024)
    assert (v[accepted] > 0).all()
    assert (largest[accepted] <= limit[accepted] + 1e-6).all()
    weights = np.exp(-(x.astype(np.float64) ** 2) / 2)
    undecided = weights[~accepted].sum() / weights.sum()
    assert undecided < (0.15 if shape < 2 else 0.05 if shape < 5 else 0.012)


# -- twins ----------------------------------------------------------------------------------------


def hash_twin(key, counter):
    """SplitMix64's finaliser on Python's integers."""
    z = (key + counter * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class LaneTwin:
    """Random numbers of one lane, from its counters, in double precision."""

    def __init__(self, key, lane, lanes):
        half = (lanes + 1) // 2
        self.key, self.is_first = key, lane < half
        self.counter = lane if self.is_first else lane - half

    def hash(self, k):
        return hash_twin(self.key + k * ATTEMPT, self.counter)

    def uniform(self, k):
        z = self.hash(k)
        return ((z >> 41 if self.is_first else z & 0x7FFFFF) + 0.5) / 2**23

    def normal_and_uniform(self, attempt):
        z = self.hash(attempt)
        radius = math.sqrt(-2 * math.log(((z >> 41) + 0.5) / 2**23))
        angle = 2 * math.pi * ((z >> 20 & 0xFFFFF) + 0.5) / 2**20
        normal = radius * (math.cos(angle) if self.is_first else math.sin(angle))
        cell = (z >> 10 if self.is_first else z) % 1024
        return normal, (cell + self.uniform(attempt + 1)) / 1024

    def beta(self, a, b):
        """Return a Beta(a, b) variate, a ≤ b, by the methods as stated."""
        if a == b == 1:
            return self.uniform(0)
        if a == 2 and b == int(b) <= variates.MAX_ORDERED_SHAPE:
            return sorted(self.uniform(k) for k in range(int(b) + 1))[1]
        if a == int(a) <= variates.MAX_PRODUCT_SHAPE:
            return -math.expm1(sum(math.log(self.uniform(k)) / (b + k) for k in range(int(a))))
        f, attempt = variates.fit(a, b), 0
        while True:
            normal, u = self.normal_and_uniform(attempt)
            s = f.scale * normal
            if -1 < s < 1 / f.rho and math.log(u) < log_density(f, s) + f.kappa * s * s / 2:
                odds = f.r * ((1 + s) / (1 - f.rho * s)) ** 2
                return odds / (1 + odds)
            attempt += 2

    def gamma(self, shape):
        """Return a gamma variate by the methods as their authors state them."""
        if shape == int(shape) <= variates.MAX_ERLANG_SHAPE:
            return -sum(math.log(self.uniform(k)) for k in range(int(shape)))
        d, attempt = shape - 1 / 3, 0
        while True:
            x, u = self.normal_and_uniform(attempt)
            v = 1 + x / math.sqrt(9 * d)
            if v > 0 and math.log(u) < x * x / 2 + d - d * v**3 + 3 * d * math.log(v):
                return d * v**3
            attempt += 2


KEY = np.uint64(12345), np.uint64(678)


def lane_twins(row, lanes):
    key = int(variates.stream_key(*KEY, row))
    return [LaneTwin(key, lane, lanes) for lane in range(lanes)]


@pytest.mark.parametrize("lanes", [33, 256])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1),
        (1, 3.5),
        (2, 2),
        (2, 4),
        (2, 5),
        (3, 3),
        (4, 50),
        (5, 5),
        (5, 30),
        (1.2, 1.4),
        (1.5, 20),
        (1e3, 1e4),
    ],
)
def test_every_lane_of_betas_equals_its_twin(a, b, lanes):
    for first, second in ((a, b), (b, a)):
        out, complement = (np.empty((6, lanes), dtype=np.float32) for _ in range(2))
        fill_betas(*KEY, float(first), float(second), out, complement, lanes)
        for row in range(len(out)):
            expected = [twin.beta(a, b) for twin in lane_twins(row, lanes)]
            of_a = out if first == a else complement
            np.testing.assert_allclose(of_a[row], expected, rtol=2e-4, atol=1e-7)
            np.testing.assert_allclose(out[row] + complement[row], 1, atol=2e-7)


@pytest.mark.parametrize("lanes", [33, 256])
@pytest.mark.parametrize("shape", [1, 2, 3, 4, 1.001, 1.3, 2.5, 4.5, 7, 30, 1e4])
def test_every_lane_of_gammas_equals_its_twin(shape, lanes):
    out = np.empty((8, lanes), dtype=np.float32)
    fill_gammas(*KEY, float(shape), out, lanes)
    for row in range(len(out)):
        expected = [twin.gamma(shape) for twin in lane_twins(row, lanes)]
        np.testing.assert_allclose(out[row], expected, rtol=2e-4)
