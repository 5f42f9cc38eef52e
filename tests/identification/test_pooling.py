"""Weights of estimators with the least variance, and which estimators they pool."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from support.strategies import examples

from dowise.identification.pooling import least_variance_weights, pool_estimates


def random_covariance(rng, size):
    """Draw a covariance matrix, sometimes singular, sometimes with equal estimators."""
    samples = rng.normal(size=(int(rng.integers(2, 2 * size + 2)), size))
    samples *= rng.choice([1e-3, 1.0, 10.0], size=size)
    if size > 1 and rng.random() < 0.3:
        samples[:, 1] = samples[:, 0]
    return np.cov(samples, rowvar=False).reshape(size, size)


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
@examples(60)
def test_weights_have_the_least_variance(seed, size):
    rng = np.random.default_rng(seed)
    covariance = random_covariance(rng, size)
    weights, scale = np.empty(size), 1e-12 * np.trace(covariance)
    variance = least_variance_weights(covariance, weights)
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert variance == pytest.approx(float(weights @ covariance @ weights), rel=1e-9, abs=scale)
    alternatives = np.vstack([np.eye(size), rng.dirichlet(np.full(size, 0.5), size=300)])
    least = np.einsum("ki,ij,kj->k", alternatives, covariance, alternatives).min()
    assert variance <= least + 10 * scale
    # Optimality: no weight can move to an estimator with a smaller slope.
    slopes = covariance @ weights
    assert (slopes >= variance - 1000 * scale).all()


def test_weights_equal_those_of_a_general_solver():
    rng = np.random.default_rng(0)
    for _ in range(40):
        size = int(rng.integers(2, 8))
        basis = rng.normal(size=(size + 3, size))
        covariance = basis.T @ basis
        weights = np.empty(size)
        variance = least_variance_weights(covariance, weights)
        solved = minimize(
            lambda w, c=covariance: w @ c @ w,
            np.full(size, 1 / size),
            jac=lambda w, c=covariance: 2 * c @ w,
            bounds=[(0, 1)] * size,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert variance == pytest.approx(solved.fun, rel=1e-6)
        np.testing.assert_allclose(weights, solved.x, atol=1e-4)


def combined(rows, undefined=()):
    """Return θ̂, s² and weights of one arm whose estimators have these values, the data first."""
    values = np.array(rows, dtype=float)
    doubled = np.hstack([values, values])
    for estimator, lane in undefined:
        doubled[estimator, values.shape[1] + lane] += 1
    count = len(values)
    means, variances, weights = np.empty(1), np.empty(1), np.empty(count)
    offsets = np.array([0, count])
    lanes = values.shape[1]
    pool_estimates(doubled, lanes, np.arange(count), offsets, means, variances, weights)
    return means[0], variances[0], weights


def least_variance(covariance):
    weights = np.empty(len(covariance))
    return least_variance_weights(covariance, weights)


def two_estimators():
    """Return estimators of one arm that differ, the data first."""
    rng = np.random.default_rng(0)
    return 0.5 + 0.01 * rng.normal(size=101), 0.4 + 0.02 * rng.normal(size=101)


def test_two_estimators_are_pooled_by_their_covariance():
    first, second = two_estimators()
    covariance = np.cov(first[1:], second[1:])
    best = np.linalg.solve(covariance, np.ones(2))
    best /= best.sum()
    mean, variance, weights = combined([first, second])
    np.testing.assert_allclose(weights, best, rtol=1e-6)
    assert mean == pytest.approx(best @ [first[0], second[0]])
    assert variance == pytest.approx(best @ covariance @ best)


def test_an_estimator_that_is_undefined_on_the_data_gets_no_weight():
    first, second = two_estimators()
    assert combined([first, second], [(0, 0)])[2].tolist() == [0, 1]
    assert np.isnan(combined([first], [(0, 0)])[0])


def test_an_estimator_may_be_undefined_on_a_tenth_of_the_resamples():
    first, second = two_estimators()
    assert combined([first, second], [(0, lane) for lane in range(1, 12)])[2].tolist() == [0, 1]
    lanes = list(range(1, 11))
    variance = combined([first, second], [(0, lane) for lane in lanes])[1]
    samples = np.delete(first, [0, *lanes]), np.delete(second, [0, *lanes])
    np.testing.assert_allclose(variance, least_variance(np.cov(*samples)))


def test_a_constant_estimator_gets_no_weight_unless_it_is_alone():
    constant, second = np.full(101, 0.3), two_estimators()[1]
    assert combined([constant, second])[2].tolist() == [0, 1]
    assert combined([constant])[:2] == (0.3, 0.0)


def test_few_resamples_limit_the_number_of_estimators():
    """Twenty resamples are enough for four estimators; the most often undefined go first."""
    rng = np.random.default_rng(1)
    rows = 0.5 + 0.01 * rng.normal(size=(6, 21))
    weights = combined(rows, [(2, 1), (2, 2), (4, 3)])[2]
    assert weights[2] == weights[4] == 0 and weights.sum() == pytest.approx(1)
