"""Regret bounds: how they relate, γ_t against a search over its definition, entropy of maps."""

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, load_problem
from dowise.information import Interval, delta_interval, estimate, gain_interval
from dowise.information.bounds import (
    corollary_1,
    corollary_2,
    gamma_bracket,
    map_entropy,
    theorem_1,
    theorem_2,
)


def test_corollaries_are_theorems_at_their_largest_ratio():
    assert theorem_1(np.sqrt(3 / 2), np.log(3), 100) == pytest.approx(corollary_1(3, 1, 100))
    assert theorem_2(3, 0.9, 100, [0.0] * 100) == pytest.approx(corollary_2(3, 0.9, 100))


def test_theorem_2_increases_with_gamma():
    assert theorem_2(3, 0.9, 100, [0.1] * 100) > corollary_2(3, 0.9, 100)
    assert theorem_2(3, 0.9, 2, [0.1, np.inf]) == np.inf == theorem_2(3, 0.0, 1, [np.inf])


def test_an_entropy_below_0_by_rounding_counts_as_0():
    assert corollary_2(3, -1e-17, 5) == 0


def test_a_number_of_arms_below_1_is_refused():
    with raises_code("invalid-number", "arms=0"):
        corollary_1(0, 1, 1)


def random_intervals(rng, arms):
    regret = np.sort(rng.random((2, arms)), axis=0)
    gain = np.sort(rng.random((2, arms)) * 0.5 + 0.05, axis=0)
    return Interval(*regret), Interval(*gain)


def test_gamma_is_in_its_bracket():
    """The supremum of the definition, searched over many π; for a given π corners are extreme."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        arms = int(rng.integers(1, 6))
        regret, gain = random_intervals(rng, arms)
        low, high = gamma_bracket(regret, gain)
        pi = np.vstack([np.eye(arms), rng.dirichlet(np.full(arms, 0.5), size=500)])
        gammas = (pi @ regret.high) ** 2 / (pi @ gain.low) - (pi @ regret.low) ** 2 / (
            pi @ gain.high
        )
        assert low - 1e-12 <= gammas.max() <= high + 1e-12
        assert gammas[:arms].max() == pytest.approx(low)


def test_gamma_of_one_arm_is_exact():
    low, high = gamma_bracket(
        Interval(np.array([0.1]), np.array([0.3])), Interval(np.array([0.2]), np.array([0.5]))
    )
    assert low == pytest.approx(high) == pytest.approx(0.09 / 0.2 - 0.01 / 0.5)


def test_gamma_is_infinite_if_a_gain_may_be_0():
    estimated = estimate(Belief(load_problem("task1")).draw_rewards(None, 1000, 0))
    level = 0.05 / (2 * 1000 * 3)
    assert gamma_bracket(delta_interval(estimated, level), gain_interval(estimated, level)) == (
        np.inf,
        np.inf,
    )
    zeros = Interval(np.zeros(2), np.zeros(2))
    assert gamma_bracket(zeros, zeros) == (0.0, 0.0)  # 0/0 = 0


def test_gamma_falls_with_samples_but_not_to_0():
    """Of the claims after Theorem 2 the first and the last hold; the limit is not 0."""
    estimated = estimate(Belief(load_problem("task1")).draw_rewards(None, 200_000, 0))

    def bracket(samples, level):
        return gamma_bracket(
            delta_interval(estimated, level, samples), gain_interval(estimated, level, samples)
        )

    few, many, limit = (bracket(n, 1e-5) for n in (10**8, 10**10, 10**16))
    # In the limit g alone is uncertain, between g itself and min(log 2, χ²).
    product = estimated.best[None, :, None] * estimated.outcomes[:, None, :]
    chi_squared = (estimated.joint**2 / product).sum(axis=(1, 2)) - 1
    expected = estimated.delta**2 / estimated.gain - estimated.delta**2 / np.minimum(
        np.log(2), chi_squared
    )
    assert few[0] >= many[0] >= limit[0] == pytest.approx(expected.max(), rel=1e-3)
    assert expected.max() > 1
    assert bracket(10**8, 1e-9)[0] >= bracket(10**8, 1e-2)[0]


def test_map_entropy_of_certain_and_uniform_counts():
    assert map_entropy([100, 0])[0] == 0
    uniform, error = map_entropy([1000] * 4)
    assert uniform == pytest.approx(np.log(4) + 3 / 8000)
    assert error == pytest.approx(0, abs=1e-9)


def test_map_entropy_corrects_the_bias_of_the_plug_in_estimate():
    """The plug-in estimate has a bias of about 3/80 = .0375; the correction removes most of it."""
    rng = np.random.default_rng(0)
    p = np.array([0.5, 0.3, 0.15, 0.05])
    truth = -(p * np.log(p)).sum()
    counts = rng.multinomial(40, p, size=4000)
    corrected = np.array([map_entropy(c)[0] for c in counts])
    plain = corrected - (np.count_nonzero(counts, axis=1) - 1) / 80
    assert abs(corrected.mean() - truth) < 0.3 * abs(plain.mean() - truth)


@pytest.mark.parametrize("counts", [[], [-1, 2], [0, 0], [np.nan]])
def test_map_entropy_refuses_invalid_counts(counts):
    with raises_code("invalid-number", "counts="):
        map_entropy(counts)
