"""Dirichlet rows of any shape: distribution, ties, twin, proofs of acceptance, and lane splits.

Seeds are fixed. Each of about 180 p-values must be above 1e-4, and each of 120 scores below 4.5:
with other seeds this file would raise a false alarm in one of 50 runs.
"""

import itertools

import numpy as np
import pytest
from numba import njit
from scipy import special, stats
from support.parametrize import one_in
from support.real_row_twin import draw_row

from dowise._core.rng import draw_key
from dowise.belief import draw_kernels, real_rows, variates

ALARM = 1e-4
DRAWS = 60_000
SIZES = [1e-3, 0.01, 0.05, 0.3, 0.5, 0.9, 1.3, 2.5, 3.7, 4.1, 9.5, 100.5, 1e4 + 0.5]
ROWS = [
    *([a, b] for a, b in itertools.combinations_with_replacement(SIZES, 2)),
    [1, 0.4],
    [3, 0.02],
    [0.3, 0.3, 0.3],
    [1.5, 2.5, 30],
    [0.02, 4, 9.5],
    [40, 3.5, 11, 2],
    [0.1, 1e4, 0.7, 2.5],
    [0.05] * 5,
    [1.5, 2, 0.01, 1e3, 7.25],
]


def draw(shapes, seed=0, draws=DRAWS, block=256):
    out = np.empty((len(shapes), draws), dtype=np.float32)
    key, sizes = draw_key(np.random.default_rng(seed)), np.array([len(shapes)])
    shapes = np.array(shapes, dtype=float)
    draw_kernels.draw_entries(key, shapes, np.array([0]), sizes, block, out, True)
    return out.astype(np.float64)


def log_ratio_cdf(a, b):
    """Return the distribution function of log(x/(1 − x)) for a Beta(a, b) variate x."""

    def cdf(z):
        low = special.betainc(a, b, special.expit(z))
        # Far from 0, where expit(z) is rounded: x^a / (a B(a, b)), and the other way round.
        left = np.exp(np.minimum(a * z - np.log(a) - special.betaln(a, b), 0))
        right = 1 - np.exp(np.minimum(-b * z - np.log(b) - special.betaln(a, b), 0))
        return np.where(z < -30, left, np.where(z > 30, right, low))

    return cdf


@pytest.mark.parametrize("shapes", one_in(6, ROWS), ids=str)
def test_rows_have_a_dirichlet_distribution(shapes):
    """The share of each entry in its sum with the next one is Beta; so are entries, by moments.

    Shares below 1e-38 are 0, so the Kolmogorov-Smirnov distance is taken between log odds of ±80.
    """
    entries, total = draw(shapes), sum(shapes)
    np.testing.assert_allclose(entries.sum(axis=0), 1, atol=1e-6)
    for k, (a, b) in enumerate(itertools.pairwise(shapes)):
        usable = entries[k] + entries[k + 1] > 1e-6  # elsewhere the smaller one may underflow
        if len(shapes) == 2:
            usable[:] = True
        elif usable.mean() < 0.999:
            continue  # the share depends on the sum where rows are cut off
        with np.errstate(divide="ignore"):
            z = np.log(entries[k][usable]) - np.log(entries[k + 1][usable])
        cdf = log_ratio_cdf(a, b)
        inner = np.sort(z[(z > -80) & (z < 80)])
        below = np.sum(z <= -80) / len(z)
        expected = cdf(inner)
        steps = below + np.arange(len(inner) + 1) / len(z)
        distance = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]), 0)
        assert stats.kstwobign.sf(distance * np.sqrt(len(z))) > ALARM
    for k, shape in enumerate(shapes):
        mean, variance, excess = stats.beta(shape, total - shape).stats("mvk")
        scores = (entries[k] - mean) / np.sqrt(variance)
        # Moments of nearly constant entries say nothing at this number of draws.
        if excess < DRAWS / 100:
            assert abs(np.mean(scores)) * np.sqrt(DRAWS) < 4.5
            assert abs(np.mean(scores**2) - 1) / np.sqrt(2 + excess) * np.sqrt(DRAWS) < 4.5


@pytest.mark.parametrize(("shape", "rate"), [(0.05, 0.013), (0.02, 0.18), (1e-3, 0.92)])
def test_tiny_entries_tie_only_where_they_underflow(shape, rate):
    """P(x < e⁻⁸⁷) of Beta(α, α), about e^(−87α)/2 on either side; all other draws differ."""
    x, y = draw([shape, shape])
    expected = np.exp(-87 * shape) / 2
    assert expected == pytest.approx(rate / 2, rel=0.1)
    for part in (x, y):
        is_zero = part == 0
        error = np.sqrt(expected * (1 - expected) / DRAWS)
        assert abs(is_zero.mean() - expected) < 4.5 * error + 0.02 * expected
        assert len(np.unique(part[~is_zero & (part < 0.5)])) > 0.99 * np.sum(
            ~is_zero & (part < 0.5)
        )


@pytest.mark.parametrize("shapes", [[0.05, 0.3], [0.5, 7.5], [2.5, 9.1], [0.2, 3.5, 50]], ids=str)
def test_equal_keys_give_equal_bits_for_any_block_and_lanes(shapes):
    whole = draw(shapes, draws=1000)
    for block in (1, 7, 16, 100, 1000):
        assert np.array_equal(draw(shapes, draws=1000, block=block), whole)
    assert np.array_equal(draw(shapes, draws=333), whole[:, :333])
    assert not np.array_equal(draw(shapes, seed=1, draws=1000), whole)


@pytest.mark.parametrize("shapes", one_in(6, ROWS), ids=str)
def test_every_lane_equals_its_twin(shapes):
    lanes, seed = 150, 5
    drawn = draw(shapes, seed, lanes)
    key = draw_key(np.random.default_rng(seed))
    streams = [int(variates.stream_key(key[0], key[1], k)) for k in range(len(shapes))]
    expected = np.array([draw_row(streams.__getitem__, shapes, lane) for lane in range(lanes)]).T
    # Logarithms of tiny shapes are large: their rounding is relative to the exponent.
    np.testing.assert_allclose(drawn, expected, rtol=2e-3, atol=1e-37)
    np.testing.assert_allclose(drawn, expected, atol=2e-4)


@njit
def first_attempts(x, cell, shape):
    accepted = np.empty(len(x), dtype=np.bool_)
    c, d, log_d = real_rows._constants(shape)
    for i in range(len(x)):
        if shape < real_rows.MAX_LOG_TEST:
            y = real_rows._test_by_log(x[i], np.int32(cell[i]), c, d, log_d, False)
        else:
            y = real_rows._test_by_polynomial(x[i], np.int32(cell[i]), c, d)
        accepted[i] = y < real_rows.OPEN
    return accepted


@njit
def acceptances(x, shape):
    h = np.empty(len(x))
    c, d, _ = real_rows._constants(shape)
    for i in range(len(x)):
        t = c * x[i]
        h[i] = real_rows._acceptance(t, variates.log32(np.float32(1) + t), d)
    return h


@pytest.mark.parametrize("shape", [1.0, 1.01, 1.5, 2.2, 3.99, 4.0, 7.5, 50.5, 1e4 + 0.5])
def test_acceptance(shape):
    """At once only if the exact test accepts every uniform of the cell; else by e^h."""
    d = shape - 1 / 3
    x, cell = np.meshgrid(np.linspace(-5.8, 5.8, 1001).astype(np.float32), np.arange(1024))
    x, cell = x.ravel(), cell.ravel()
    t = x.astype(np.float64) / np.sqrt(9 * d)
    is_inside = t > -1
    v = 1 + t
    with np.errstate(invalid="ignore", divide="ignore"):
        h = 3 * d * (np.log(v) - t + t**2 / 2 - t**3 / 3)
    accepted = first_attempts(x, cell, shape)
    assert is_inside[accepted].all()
    # The polynomial of large shapes has no margin for rounding.
    rounding = 1e-9 if shape < real_rows.MAX_LOG_TEST else 1e-6
    assert (np.log((cell[accepted] + 1) / 1024) <= h[accepted] + rounding).all()
    weights = np.exp(-(x.astype(np.float64) ** 2) / 2)
    assert weights[~accepted].sum() / weights.sum() < (0.055 if shape < 2 else 0.025)
    near = is_inside[:1001] & (h[:1001] > -30)
    np.testing.assert_allclose(
        np.exp(acceptances(x[:1001], shape)[near]), np.exp(h[:1001][near]), atol=1e-4
    )
