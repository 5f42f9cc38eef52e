"""Minimiser of the information ratio: against all distributions, a twin and a solver."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_numpy import smallest_ratio
from scipy.optimize import minimize
from support.errors import raises_code

from dowise.information import IDSAction, information_ratio, minimise_ratio
from dowise.information.ratio import MIN_GAIN, best_pair, best_pair_on_hull

# The square of a number below 1e-160 is 0, as if there were no regret.
numbers = st.floats(1e-100, 1) | st.sampled_from([0.0, 1e-9, 0.5, 1.0])


def ratio_of(action, delta, gain):
    a, b, q = action
    regret = q * delta[a] + (1 - q) * delta[b]
    return float(information_ratio(regret, q * gain[a] + (1 - q) * gain[b]))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_no_distribution_beats_the_pair(arms, seed):
    delta, gain = np.array(arms).T
    action = minimise_ratio(delta, gain)
    assert 0 < action.probability <= 1
    ours = ratio_of(action, delta, np.where(gain <= 1e-12, 0, gain))
    rng = np.random.default_rng(seed)
    pi = np.vstack([np.eye(len(delta)), rng.dirichlet(np.full(len(delta), 0.3), size=200)])
    ratios = information_ratio(pi @ delta, pi @ np.where(gain <= 1e-12, 0, gain))
    assert ours <= ratios.min() * (1 + 1e-9) + 1e-15


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_pair_equals_its_slow_twin(arms):
    delta, gain = np.array(arms).T
    positive = np.where(gain <= 1e-12, 0, gain)
    twin = ratio_of(IDSAction(*smallest_ratio(delta, gain)), delta, positive)
    ours = ratio_of(minimise_ratio(delta, gain), delta, positive)
    # The twin rounds a probability next to 1 up; then ours may only be smaller.
    assert ours == pytest.approx(twin, rel=1e-12) or ours < twin


def test_a_probability_next_to_1_is_exact():
    """One arm has nearly no regret and no gain, so the other gets a tiny probability."""
    action = minimise_ratio([1e-28, 1.0], [0.0, 1.0])
    assert action == (1, 0, pytest.approx(1e-28))
    assert ratio_of(action, [1e-28, 1.0], [0.0, 1.0]) == pytest.approx(4e-28)


def test_pair_agrees_with_a_general_solver():
    rng = np.random.default_rng(0)
    for _ in range(40):
        k = int(rng.integers(2, 9))
        delta, gain = rng.random(k), rng.random(k) * 0.3 + 1e-3
        ours = ratio_of(minimise_ratio(delta, gain), delta, gain)
        solved = minimize(
            lambda pi, d=delta, g=gain: (pi @ d) ** 2 / (pi @ g),
            np.full(k, 1 / k),
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda pi: pi.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert ours <= solved.fun + 1e-9
        assert ours == pytest.approx(solved.fun, abs=1e-5)


def test_a_mixture_computed_by_hand():
    # (q)² / (0.5q) on arms (Δ, g) = (1, 1) and (0.4, 0.1): f(q) = (0.4 + 0.6q)² / (0.1 + 0.9q).
    action = minimise_ratio([1.0, 0.4], [1.0, 0.1])
    q = (0.9 * 0.4 - 2 * 0.6 * 0.1) / (0.6 * 0.9)
    assert action == IDSAction(0, 1, pytest.approx(q))


@pytest.mark.parametrize(
    ("delta", "gain", "expected"),
    [
        ([0.3], [0.0], (0, 0, 1.0)),
        ([0.3], [0.2], (0, 0, 1.0)),
        ([0.3, 0.1, 0.1], [0.0, 0.0, 0.0], (1, 1, 1.0)),
        ([0.3, 0.1], [1e-13, 1e-13], (1, 1, 1.0)),  # only rounding
        ([0.2, 0.2], [0.1, 0.3], (1, 1, 1.0)),  # equal regret: the larger gain
        ([0.0, 0.2], [0.0, 0.3], (0, 0, 1.0)),  # 0/0 = 0
        ([0.0, 0.0], [0.1, 0.3], (0, 0, 1.0)),
        ([0.5, 0.5], [0.2, 0.2], (0, 0, 1.0)),
    ],
)
def test_ties_and_gains_of_0_choose_a_single_arm(delta, gain, expected):
    assert tuple(minimise_ratio(delta, gain)) == expected


def many_arms(rng):
    """Draw hundreds of arms: anywhere, on a grid, on a curve, on a line, tiny, or with zeros."""
    arms = int(rng.integers(2, 700))
    delta, gain = rng.random((2, arms))
    kind = rng.integers(6)
    if kind == 1:
        delta, gain = np.round(delta, 1), np.round(gain, 1)
    elif kind == 2:
        gain = np.sqrt(delta) * rng.choice([1.0, 0.9999, 0.5], size=arms)
    elif kind == 3:
        delta, gain = 0.25 + np.round(delta, 2), 0.5 * np.round(delta, 2)  # on a line
    elif kind == 4:
        delta, gain = 10.0 ** -rng.integers(0, 12, size=(2, arms))
    elif kind == 5:
        gain *= rng.choice([0.0, 1e-13, 1e-9, 1.0], size=arms)
    if rng.random() < 0.3:
        gain *= rng.random(arms) < 0.3
    if rng.random() < 0.3:
        delta += rng.random()
    if rng.random() < 0.1:
        delta *= rng.random(arms) < 0.95
    return delta, gain


def on_the_hull(delta, gain, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("dowise.information.ratio.MAX_ALL_PAIRS", 0)
        return minimise_ratio(delta, gain)


def test_pairs_on_the_hull_equal_all_pairs(monkeypatch):
    rng, mixed = np.random.default_rng(0), 0
    for _ in range(600):
        delta, gain = many_arms(rng)
        positive = np.where(gain <= 1e-12, 0, gain)
        all_pairs = IDSAction(*best_pair(delta, gain, MIN_GAIN))
        ours = on_the_hull(delta, gain, monkeypatch)
        assert 0 < ours.probability <= 1
        assert ratio_of(ours, delta, positive) == pytest.approx(
            ratio_of(all_pairs, delta, positive), rel=1e-12
        )
        if all_pairs.first == all_pairs.second:  # single arms come first
            assert ours == all_pairs
        mixed += ours.first != ours.second
    assert mixed > 100


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_the_best_pair_on_the_hull_of_few_arms_is_optimal(arms):
    delta, gain = np.array(arms).T
    positive = np.where(gain <= 1e-12, 0, gain)
    order = np.lexsort((-positive, delta))
    ours = IDSAction(*best_pair_on_hull(delta, positive, order))
    twin = ratio_of(minimise_ratio(delta, gain), delta, positive)
    assert ratio_of(ours, delta, positive) == pytest.approx(twin, rel=1e-12)


def test_equal_and_collinear_arms_on_the_hull_go_by_index(monkeypatch):
    # The best point, (.5, .25), is between the last two pairs of arms; all are on one line.
    delta, gain = np.array([0.75, 0.25, 1.0, 0.3125]), np.array([0.5, 0.0, 0.75, 0.0625])
    assert on_the_hull(delta, gain, monkeypatch) == (0, 1, pytest.approx(0.5))
    doubled = np.append(delta, delta), np.append(gain, gain)
    assert on_the_hull(*doubled, monkeypatch) == (0, 1, pytest.approx(0.5))


def test_the_ratio_of_100_000_arms_is_minimised():
    rng = np.random.default_rng(1)
    delta, gain = rng.random((2, 100_000)) + 1e-3
    action = minimise_ratio(delta, gain)
    hull = set(np.flatnonzero(delta**2 / gain < np.quantile(delta**2 / gain, 0.01)))
    assert {action.first, action.second} <= hull
    for place, bad in ((delta, -0.1), (gain, -1e-14), (gain, np.nan), (delta, np.inf)):
        valid, place[999] = place[999], bad
        with raises_code("invalid-number"):
            minimise_ratio(delta, gain)
        place[999] = valid
    assert minimise_ratio(delta, np.zeros(100_000)) == (int(delta.argmin()),) * 2 + (1.0,)
