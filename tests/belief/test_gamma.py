"""Gamma variates: the right distribution, and independent wherever they should be.

Every statistical test has a fixed seed. Each asserts p > 1e-4 for one or a few dozen p-values, so
written anew with another seed this file would raise a false alarm in about one of 100 cases.
"""

import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from dowise.belief import variates
from dowise.belief import variates as gamma

pytestmark = pytest.mark.slow  # what only these need takes long to compile

ALARM = 1e-4


@njit
def fill(key0, key1, shape, out, lanes, logs):
    """One stream a row, in blocks of 256 lanes as the belief's kernel draws them."""
    scratch = np.empty(257, dtype=np.float32)
    for row in range(out.shape[0]):
        key = variates.stream_key(key0, key1, row)
        for first in range(0, lanes, 256):
            width = min(256, lanes - first)
            gamma.gammas(key, first, shape + 1 if shape < 1 else shape, scratch, width)
            if logs:
                gamma.take_logs(key, first, shape, scratch, width)
            out[row, first : first + width] = scratch[:width]


def draw(shape, rows, lanes, seed=0, logs=False):
    out = np.empty((rows, lanes), dtype=np.float32)
    key = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    fill(key[0], key[1], float(shape), out, lanes, logs)
    return out.astype(np.float64)


@njit
def logs_of(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = variates.log32(x[i])
    return out


@njit
def exps_of(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = variates.exp32(x[i])
    return out


def test_logarithm_and_exponential_in_single_precision():
    x = np.geomspace(2e-38, 3e38, 200_001).astype(np.float32)
    truth = np.log(x.astype(np.float64))
    assert np.abs(logs_of(x) - truth).max() < 1e-5
    assert (np.abs(logs_of(x) - truth) <= 3e-7 * np.maximum(1, np.abs(truth))).all()
    y = np.linspace(-87, 0, 200_001).astype(np.float32)
    assert np.abs(exps_of(y) / np.exp(y.astype(np.float64)) - 1).max() < 3e-7
    assert exps_of(np.float32([-88, -1000, -np.inf])).tolist() == [0, 0, 0]


@njit
def logs_in_double_precision(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = variates.log64(x[i])
    return out


def test_logarithm_in_double_precision():
    x = np.concatenate(
        [np.geomspace(2.3e-308, 1.7e308, 200_001), 1 + np.linspace(-0.5, 1, 200_001)]
    )
    np.testing.assert_allclose(logs_in_double_precision(x), np.log(x), rtol=4e-16)
    assert logs_in_double_precision(np.ones(1))[0] == 0


SHAPES = [1, 1.01, 1.5, 2, 2.5, 3, 4, 4.5, 5, 7, 10, 30, 100, 1e3, 1e4, 1e5, 1e6]


@pytest.mark.parametrize("shape", SHAPES)
def test_distribution_of_shapes_of_at_least_one(shape):
    sample = draw(shape, 400, 1000, seed=int(shape * 100)).ravel()
    assert stats.kstest(sample, stats.gamma(shape).cdf).pvalue > ALARM
    # The tails weigh little in a Kolmogorov-Smirnov test, so moments of the scores as well.
    scores = (sample - shape) / np.sqrt(shape)
    for power, spread in ((1, 1.0), (2, np.sqrt(2 + 6 / shape))):
        expected = 0.0 if power == 1 else 1.0
        z = (np.mean(scores**power) - expected) / spread * np.sqrt(len(scores))
        assert abs(z) < 4.5


@pytest.mark.parametrize("shape", [0.05, 0.1, 0.3, 0.5, 0.9, 0.999])
def test_distribution_of_shapes_below_one_in_logarithms(shape):
    sample = draw(shape, 400, 1000, seed=int(shape * 1000), logs=True).ravel()
    assert np.isfinite(sample).all()
    assert stats.kstest(sample, stats.loggamma(shape).cdf).pvalue > ALARM


def test_logarithms_of_shapes_above_one_are_those_of_the_variates():
    np.testing.assert_allclose(
        draw(3.7, 3, 100, logs=True), np.log(draw(3.7, 3, 100)), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("lanes", [1, 2, 3, 31, 32, 33, 255, 256, 257, 1000])
@pytest.mark.parametrize("shape", [1, 3, 1.5, 200])
def test_any_number_of_lanes_is_filled(lanes, shape):
    sample = draw(shape, 5, lanes)
    assert (sample > 0).all()
    # v = 1 + cx has a resolution of 1.2e-7, so a few of 5000 values coincide (18 expected at 200).
    assert len(np.unique(sample)) > 0.99 * sample.size


def uniforms(shape, rows, lanes, seed=0):
    """Variates turned into what should be independent uniforms."""
    return stats.gamma(shape).cdf(draw(shape, rows, lanes, seed))


def joint_uniformity(x, y, cells=16):
    """The p-value of a chi-squared test that (x, y) is uniform on the unit square."""
    table, _, _ = np.histogram2d(x, y, bins=cells, range=[[0, 1], [0, 1]])
    return stats.chisquare(table.ravel()).pvalue


@pytest.mark.parametrize("shape", [1, 2, 4, 1.5, 5, 50])
def test_independence_between_lanes_rows_and_rounds(shape):
    u = uniforms(shape, 256, 1024)
    later = uniforms(shape, 256, 1024, seed=1)
    pairs = {
        "neighbouring lanes": (u[:, :-1], u[:, 1:]),
        "the two lanes of one Box-Muller pair": (u[:, :128], u[:, 128:256]),
        "lanes of neighbouring blocks": (u[:, :256], u[:, 256:512]),
        "neighbouring rows": (u[:-1], u[1:]),
        "rows far apart": (u[:128], u[128:]),
        "rows shifted by a lane": (u[:-1, :-1], u[1:, 1:]),
        "rounds": (u, later),
    }
    for what, (x, y) in pairs.items():
        assert joint_uniformity(x.ravel(), y.ravel()) > ALARM, what
        assert abs(np.corrcoef(x.ravel(), y.ravel())[0, 1]) * np.sqrt(x.size) < 4.5, what


def test_two_shapes_on_one_stream_are_still_two_rows_apart():
    """Rows of different shape, as in a belief, are independent as well."""
    x, y = uniforms(1, 2, 60_000)[0], uniforms(7, 2, 60_000)[1]
    assert joint_uniformity(x, y) > ALARM


def test_keys_that_differ_in_one_bit_give_unrelated_streams():
    out = np.empty((65, 4096), dtype=np.float32)
    for bit in range(64):
        fill(np.uint64(1 << bit), np.uint64(0), 5.5, out[bit : bit + 1], 4096, False)
    fill(np.uint64(0), np.uint64(0), 5.5, out[64:], 4096, False)
    correlations = np.corrcoef(out)[np.triu_indices(65, 1)]
    assert np.abs(correlations).max() * np.sqrt(4096) < 5.5  # 2080 pairs: p < 1e-4


MASK = 2**64 - 1
GOLDEN, ATTEMPT = 0x9E3779B97F4A7C15, 1 << 44


def hash_twin(key, counter):
    """SplitMix64's finaliser on Python's integers."""
    z = (key + counter * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def uniform_twin(z, upper):
    return ((z >> 41 if upper else z & 0x7FFFFF) + 0.5) / 2**23


def gamma_twin(key, lane, lanes, shape):
    """One variate from the counters, in double precision, by the methods as their authors state."""
    half = (lanes + 1) // 2
    upper, counter = lane < half, lane % half if lane >= half else lane
    if shape == int(shape) and shape <= gamma.MAX_ERLANG_SHAPE:
        hashes = [hash_twin(key + k * ATTEMPT, counter) for k in range(int(shape))]
        return -sum(math.log(uniform_twin(z, upper)) for z in hashes)
    d = shape - 1 / 3
    attempt = 0
    while True:
        z = hash_twin(key + attempt * ATTEMPT, counter)
        rest = hash_twin(key + (attempt + 1) * ATTEMPT, counter)
        radius = math.sqrt(-2 * math.log(uniform_twin(z, True)))
        angle = 2 * math.pi * ((z >> 20 & 0xFFFFF) + 0.5) / 2**20
        x = radius * (math.cos(angle) if upper else math.sin(angle))
        u = ((z >> 10 if upper else z) % 1024 + uniform_twin(rest, upper)) / 1024
        v = 1 + x / math.sqrt(9 * d)
        if v > 0 and math.log(u) < x * x / 2 + d - d * v**3 + 3 * d * math.log(v):
            return d * v**3
        attempt += 2


@pytest.mark.parametrize("lanes", [33, 256])
@pytest.mark.parametrize("shape", [1, 2, 3, 4, 1.001, 1.3, 2.5, 4.5, 7, 30, 1e4])
def test_every_lane_is_what_its_counters_say(shape, lanes):
    """The slow twin, lane by lane: the same bits used in the same way, every rejection the same."""
    out = np.empty((8, lanes), dtype=np.float32)
    fill(np.uint64(12345), np.uint64(678), float(shape), out, lanes, False)
    for row in range(len(out)):
        key = int(variates.stream_key(np.uint64(12345), np.uint64(678), row))
        twin = [gamma_twin(key, lane, lanes, shape) for lane in range(lanes)]
        np.testing.assert_allclose(out[row], twin, rtol=2e-4)


@pytest.mark.parametrize("shape", [0.01, 0.5, 0.99])
def test_every_lane_of_a_shape_below_one_is_what_its_counters_say(shape):
    out = np.empty((4, 64), dtype=np.float32)
    fill(np.uint64(9), np.uint64(8), shape, out, 64, True)
    for row in range(len(out)):
        key = int(variates.stream_key(np.uint64(9), np.uint64(8), row))
        for lane in range(64):
            u = uniform_twin(hash_twin(key - ATTEMPT, lane), True)
            expected = math.log(gamma_twin(key, lane, 64, shape + 1)) + math.log(u) / shape
            assert out[row, lane] == pytest.approx(expected, rel=2e-4, abs=2e-4)


def test_uniforms_are_never_0_or_1():
    for bits, ends in ((0, 2**-24), (MASK, 1 - 2**-24)):
        for uniform in (variates.uniform, variates.other_uniform):
            assert uniform(np.uint64(bits)) == ends


@njit
def surely(x, cell, d, c):
    out = np.empty(len(x), dtype=np.float32)
    for i in range(len(x)):
        out[i] = gamma._quick_gamma(np.float32(c) * x[i], np.int32(cell[i]), np.float32(d))
    return out


@pytest.mark.parametrize("shape", [1.0, 1.2, 2.0, 5.0, 50.0, 1e4])
def test_the_quick_acceptance_is_never_wrong_and_rarely_undecided(shape):
    """What `_quick_gamma` accepts, Marsaglia & Tsang's own test accepts for every u in the cell."""
    d = shape - 1 / 3
    c = 1 / np.sqrt(9 * d)
    x, cell = np.meshgrid(np.linspace(-5.8, 5.8, 2001).astype(np.float32), np.arange(1024))
    x, cell = x.ravel(), cell.ravel()
    accepted = surely(x, cell, d, c) >= 0
    v = 1 + c * x.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        room = x.astype(np.float64) ** 2 / 2 + d - d * v**3 + 3 * d * np.log(v)
    worst = np.log((cell + 1) / 1024)
    assert (v[accepted] > 0).all()
    assert (worst[accepted] <= room[accepted] + 1e-6).all()
    weights = np.exp(-(x.astype(np.float64) ** 2) / 2)
    undecided = weights[~accepted].sum() / weights.sum()
    assert undecided < (0.15 if shape < 2 else 0.05 if shape < 5 else 0.012)
