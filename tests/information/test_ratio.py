"""IDSAction: no distribution over all arms beats the pair, and the degenerate cases are right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_numpy import smallest_ratio
from scipy.optimize import minimize

from dowise import DowiseError
from dowise.information import IDSAction, information_ratio, minimise_ratio

numbers = st.floats(0, 1) | st.sampled_from([0.0, 1e-9, 0.5, 1.0])


def ratio_of(action, delta, gain):
    q, one, other = action.probability, action.first, action.second
    regret = q * delta[one] + (1 - q) * delta[other]
    return float(information_ratio(regret, q * gain[one] + (1 - q) * gain[other]))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_no_distribution_beats_the_pair(arms, seed):
    delta, gain = np.array(arms).T
    action = minimise_ratio(delta, gain)
    assert 0 < action.probability <= 1
    ours = ratio_of(action, delta, np.where(gain <= 1e-12, 0, gain))
    rng = np.random.default_rng(seed)
    others = np.vstack([np.eye(len(delta)), rng.dirichlet(np.full(len(delta), 0.3), size=200)])
    theirs = information_ratio(others @ delta, others @ np.where(gain <= 1e-12, 0, gain))
    assert ours <= theirs.min() * (1 + 1e-9) + 1e-15


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
@settings(deadline=None)
def test_agrees_with_its_slow_twin(arms):
    delta, gain = np.array(arms).T
    seen = np.where(gain <= 1e-12, 0, gain)
    twin = ratio_of(IDSAction(*smallest_ratio(delta, gain)), delta, seen)
    ours = ratio_of(minimise_ratio(delta, gain), delta, seen)
    # The twin rounds a probability next to 1 up; then ours may only be smaller.
    assert ours == pytest.approx(twin, rel=1e-12) or ours < twin


def test_a_probability_next_to_one_is_not_rounded_away():
    """The free arm costs next to nothing and teaches nothing: a touch of the other is best."""
    action = minimise_ratio([1e-28, 1.0], [0.0, 1.0])
    assert action == (1, 0, pytest.approx(1e-28))
    assert ratio_of(action, [1e-28, 1.0], [0.0, 1.0]) == pytest.approx(4e-28)


def test_a_general_solver_does_not_beat_it_either():
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


def test_a_mixture_that_can_be_checked_by_hand():
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
        ([0.3, 0.1], [1e-13, 1e-13], (1, 1, 1.0)),  # rounding is no information
        ([0.2, 0.2], [0.1, 0.3], (1, 1, 1.0)),  # equal regret: the one that teaches more
        ([0.0, 0.2], [0.0, 0.3], (0, 0, 1.0)),  # no regret at all: 0/0 = 0
        ([0.0, 0.0], [0.1, 0.3], (0, 0, 1.0)),
        ([0.5, 0.5], [0.2, 0.2], (0, 0, 1.0)),
    ],
)
def test_degenerate_cases(delta, gain, expected):
    assert tuple(minimise_ratio(delta, gain)) == expected


@pytest.mark.parametrize(
    ("delta", "gain", "message"),
    [
        ([], [], "a number for each arm"),
        ([0.1], [0.1, 0.2], "a number for each arm"),
        ([-0.1], [0.1], "finite and not negative"),
        ([0.1], [np.inf], "finite and not negative"),
        ([np.nan], [0.1], "finite and not negative"),
    ],
)
def test_bad_input_is_explained(delta, gain, message):
    with pytest.raises(DowiseError, match=message):
        minimise_ratio(delta, gain)
