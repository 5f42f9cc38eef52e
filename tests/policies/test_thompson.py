"""Thompson Sampling: each arm as often as it is best, and probabilities only where estimated."""

import numpy as np
import pytest
from scipy import stats

from dowise import DowiseError, load_problem, make_policy


def test_an_arm_is_played_as_often_as_it_is_best():
    """3,000 decisions against p* from 200,000 draws: a chi-squared p-value above 1e-4."""
    policy = make_policy("ts", load_problem("task1"))
    policy.observe("do(X=1)", {"Z": 0, "Y": 1})
    rng = np.random.default_rng(0)
    played = [policy.problem.arm_index(policy.decide(None, rng).arm) for _ in range(3000)]
    best = policy.belief.probability_best(None, 200_000, rng=1)
    assert stats.chisquare(np.bincount(played, minlength=3), 3000 * best).pvalue > 1e-4


def test_probabilities_are_estimated_only_when_asked_for():
    problem = load_problem("task1")
    assert make_policy("ts", problem).decide(rng=0).probabilities is None
    decision = make_policy("ts", problem, propensity_samples=20_000).decide(rng=0)
    np.testing.assert_allclose(decision.probabilities, [0.077, 0.461, 0.461], atol=0.02)
    assert decision.figures["samples"] == 20_000
    assert "estimated from 20,000 draws" in str(decision)


def test_only_allowed_arms_compete():
    policy = make_policy("ts", load_problem("task1"), propensity_samples=5_000)
    decision = policy.decide(rng=0, allowed=["do(X=0)", "do(X=1)"])
    np.testing.assert_allclose(decision.probabilities, [0, 0.5, 0.5], atol=0.04)


def test_a_negative_sample_size_is_refused():
    for bad in (-1, True, 0.5):
        with pytest.raises(DowiseError, match="must be a whole number, 0 or more"):
            make_policy("ts", load_problem("task1"), propensity_samples=bad)


def test_what_was_played_never_has_probability_zero():
    policy = make_policy("ts", load_problem("task1"), propensity_samples=1)
    for seed in range(50):
        decision = policy.decide(rng=seed)
        assert decision.probabilities[policy.problem.arm_index(decision.arm)] >= 0.5
