"""Credible intervals of Beta and Dirichlet distributions, against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dowise.belief.predictive import beta_interval, dirichlet_intervals

SIZES = (0.001, 0.01, 0.05, 0.3, 0.5, 1.0, 1.5, 3.0, 10.0, 100.0, 1e4, 1e6, 1e9)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_quantiles_of_the_beta_distribution(level):
    a, b = (grid.ravel() for grid in np.meshgrid(SIZES, SIZES))
    exact = np.stack([stats.beta.ppf((1 + sign * level) / 2, a, b) for sign in (-1, 1)], axis=1)
    error = np.abs(beta_interval(a, b, level) - exact)
    assert error.max() < 3e-5
    assert (error < 1e-3 * stats.beta.std(a, b)[:, None] + 1e-15).all()


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_interval_of_any_parameters(a, b):
    low, high = beta_interval(np.array([a]), np.array([b]), 0.9)[0]
    assert 0 <= low < high <= 1
    assert stats.beta.cdf(low, a, b) == pytest.approx(0.05, abs=1e-4)
    assert stats.beta.cdf(high, a, b) == pytest.approx(0.95, abs=1e-4) or high > 1 - 1e-12


def test_intervals_of_a_row_are_those_of_its_marginals():
    parameters = np.array([[1.0, 2.0, 5.0], [3.0, 0.5, 7.0]])
    intervals = dirichlet_intervals(parameters, 0.9)
    assert intervals.shape == (2, 3, 2)
    assert intervals[1, 2] == pytest.approx(stats.beta.ppf([0.05, 0.95], 7.0, 3.5), abs=1e-5)


def test_blocks_do_not_change_intervals():
    a = np.linspace(1.0, 9.0, 200)
    single = [beta_interval(a[i : i + 1], a[i : i + 1], 0.9)[0] for i in range(200)]
    assert np.array_equal(beta_interval(a, a, 0.9), single)
