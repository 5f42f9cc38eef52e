"""Thompson Sampling: each arm as often as it is best, and probabilities that are exact."""

import numpy as np
import pytest
from scipy import stats

from dowise import DowiseError, load_problem, make_policy

DRAWING = ("ts", "bernoulli-ts", "z2-ts")


class Picking(np.random.Generator):
    """Draws as usual, but the pick among them is given."""

    pick = None

    def integers(self, low, *rest, **options):
        return super().integers(low, *rest, **options) if rest or options else self.pick


def picking(seed, pick):
    source = Picking(np.random.PCG64(seed))
    source.pick = pick
    return source


def with_some_records(name, **options):
    policy, rng = make_policy(name, load_problem("task2"), **options), np.random.default_rng(4)
    for _ in range(30):
        arm = policy.problem.arms[rng.integers(len(policy.problem.arms))]
        seen = {name: str(rng.integers(2)) for name in policy.problem.graph}
        policy.observe(arm, seen | dict(arm))
    return policy


def test_an_arm_is_played_as_often_as_it_is_best():
    """3,000 decisions against p* from 200,000 draws: a chi-squared p-value above 1e-4."""
    policy = make_policy("ts", load_problem("task1"))
    policy.observe("do(X=1)", {"Z": 0, "Y": 1})
    rng = np.random.default_rng(0)
    played = [policy.problem.arm_index(policy.decide(None, rng).arm) for _ in range(3000)]
    best = policy.belief.probability_best(None, 200_000, rng=1)
    assert stats.chisquare(np.bincount(played, minlength=3), 3000 * best).pvalue > 1e-4


def test_probabilities_are_known_only_when_asked_for():
    problem = load_problem("task1")
    assert make_policy("ts", problem).decide(rng=0).probabilities is None
    decision = make_policy("ts", problem, propensity_samples=20_000).decide(rng=0)
    np.testing.assert_allclose(decision.probabilities, [0.077, 0.461, 0.461], atol=0.02)
    assert decision.figures["samples"] == 20_000
    assert "each arm's chance of being the best (" in str(decision)


def test_only_allowed_arms_compete():
    policy = make_policy("ts", load_problem("task1"), propensity_samples=5_000)
    decision = policy.decide(rng=0, allowed=["do(X=0)", "do(X=1)"])
    np.testing.assert_allclose(decision.probabilities, [0, 0.5, 0.5], atol=0.04)


def test_a_negative_sample_size_is_refused():
    for bad in (-1, True, 0.5):
        with pytest.raises(DowiseError, match="must be a whole number, 0 or more"):
            make_policy("ts", load_problem("task1"), propensity_samples=bad)


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("allowed", [None, 3])
def test_given_the_draws_the_probabilities_are_exact(name, allowed):
    """Each of the draws is as likely to be picked, so over all picks the arms are counted."""
    policy = with_some_records(name, propensity_samples=150)
    problem = policy.problem
    arms = None if allowed is None else problem.arms[-allowed:]
    decisions = [policy.decide({"C": 1}, picking(8, i), arms) for i in range(150)]
    played = [problem.arm_index(decision.arm) for decision in decisions]
    shares = np.bincount(played, minlength=len(problem.arms)) / 150
    assert np.count_nonzero(shares) > 2
    for decision in decisions:
        np.testing.assert_array_equal(decision.probabilities, shares)
        assert decision.figures["samples"] == 150


@pytest.mark.parametrize("name", DRAWING)
def test_the_pick_is_made_by_the_same_source_after_the_draws(name):
    policy = with_some_records(name, propensity_samples=20)
    picks = set()
    for seed in range(12):
        source = picking(seed, 0)
        policy.decide({"C": 0}, source)  # all that is drawn before the pick
        source.pick = np.random.Generator.integers(source, 20)
        picks.add(source.pick)
        expected = policy.decide({"C": 0}, picking(seed, source.pick))
        found = policy.decide({"C": 0}, np.random.default_rng(seed))
        assert found.as_dict(*found.figures) == expected.as_dict(*expected.figures)
    assert len(picks) > 6


@pytest.mark.parametrize("name", DRAWING)
def test_what_was_played_never_has_probability_zero(name):
    policy = make_policy(name, load_problem("task1"), propensity_samples=3)
    for seed in range(50):
        decision = policy.decide(rng=seed)
        assert decision.probabilities[policy.problem.arm_index(decision.arm)] >= 1 / 3
        assert decision.reason.startswith("sampled in proportion to each arm's chance")


@pytest.mark.parametrize("name", DRAWING)
def test_arms_are_played_as_often_whether_or_not_their_probabilities_are_known(name):
    """1,000 decisions each way, a chi-squared p-value above 1e-4."""
    played = []
    for samples in (0, 7):
        policy = make_policy(name, load_problem("task1"), propensity_samples=samples)
        policy.observe("do(X=1)", {"Z": 0, "Y": 1})
        rng = np.random.default_rng(11)
        arms = [policy.problem.arm_index(policy.decide(None, rng).arm) for _ in range(1000)]
        played.append(np.bincount(arms, minlength=3))
    assert stats.chi2_contingency(played).pvalue > 1e-4


def test_the_index_is_that_of_the_draw_that_decided():
    for name in ("bernoulli-ts", "z2-ts"):
        policy = with_some_records(name, propensity_samples=40)
        for seed in range(20):
            decision = policy.decide({"C": 1}, seed)
            best = int(decision.figures["index"].argmax())
            assert policy.problem.arms[best] == decision.arm
