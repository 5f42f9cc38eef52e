"""Thompson Sampling, and probabilities of the policies that sample: exact given the draws."""

import numpy as np
import pytest
from scipy import stats
from support.errors import raises_code
from support.policies import learn_all, random_records

from dowise import load_problem, make_policy

SAMPLING = ("ts", "bernoulli-ts", "z2-ts")
TASK1 = load_problem("task1")


class FixedPick(np.random.Generator):
    """Generator that draws as usual, but always picks the same of several draws."""

    pick = None

    def integers(self, low, *rest, **options):
        return super().integers(low, *rest, **options) if rest or options else self.pick


def picking(seed, pick):
    source = FixedPick(np.random.PCG64(seed))
    source.pick = pick
    return source


def trained(name, **options):
    policy = make_policy(name, load_problem("task2"), **options)
    return learn_all(policy, random_records(policy.problem, 30, seed=4))


def test_an_arm_is_played_as_often_as_it_is_best():
    """3,000 decisions against p* from 200,000 draws: a chi-squared p-value above 1e-4."""
    policy = make_policy("ts", TASK1)
    policy.observe("do(X=1)", {"Z": 0, "Y": 1})
    rng = np.random.default_rng(0)
    played = [TASK1.arm_index(policy.decide(None, rng).arm) for _ in range(3000)]
    best = policy.belief.probability_best(None, 200_000, rng=1)
    assert stats.chisquare(np.bincount(played, minlength=3), 3000 * best).pvalue > 1e-4


def test_probabilities_are_known_only_on_request():
    assert make_policy("ts", TASK1).decide(rng=0).probabilities is None
    policy = make_policy("ts", TASK1, propensity_samples=20_000)
    decision = policy.decide(rng=0)
    np.testing.assert_allclose(decision.probabilities, [0.077, 0.461, 0.461], atol=0.02)
    assert decision.figures["samples"] == 20_000
    decision = policy.decide(rng=0, allowed=["do(X=0)", "do(X=1)"])
    np.testing.assert_allclose(decision.probabilities, [0, 0.5, 0.5], atol=0.02)


def test_an_invalid_number_of_samples_is_refused():
    for invalid in (-1, True, 0.5):
        with raises_code("invalid-number", "propensity_samples="):
            make_policy("ts", TASK1, propensity_samples=invalid)


@pytest.mark.parametrize("name", SAMPLING)
@pytest.mark.parametrize("allowed", [None, 3])
def test_given_the_draws_the_probabilities_are_exact(name, allowed):
    """Each draw is equally likely to be picked, so the arms are counted over all picks."""
    policy = trained(name, propensity_samples=150)
    problem = policy.problem
    arms = None if allowed is None else problem.arms[-allowed:]
    decisions = [policy.decide({"C": 1}, picking(8, i), arms) for i in range(150)]
    played = [problem.arm_index(decision.arm) for decision in decisions]
    shares = np.bincount(played, minlength=len(problem.arms)) / 150
    assert np.count_nonzero(shares) > 2
    for decision in decisions:
        np.testing.assert_array_equal(decision.probabilities, shares)
        assert decision.probabilities[problem.arm_index(decision.arm)] > 0
        assert decision.reason.startswith("sampled in proportion to each arm's chance")


@pytest.mark.parametrize("name", SAMPLING)
def test_the_pick_is_made_by_the_same_source_after_the_draws(name):
    policy = trained(name, propensity_samples=20)
    picks = set()
    for seed in range(12):
        source = picking(seed, 0)
        policy.decide({"C": 0}, source)  # everything that is drawn before the pick
        source.pick = np.random.Generator.integers(source, 20)
        picks.add(source.pick)
        expected = policy.decide({"C": 0}, picking(seed, source.pick))
        decision = policy.decide({"C": 0}, np.random.default_rng(seed))
        assert decision.as_dict(*decision.figures) == expected.as_dict(*expected.figures)
    assert len(picks) > 6


@pytest.mark.parametrize("name", SAMPLING)
def test_arms_are_played_as_often_with_and_without_probabilities(name):
    """1,000 decisions each way, a chi-squared p-value above 1e-4."""
    played = []
    for samples in (0, 7):
        policy = make_policy(name, TASK1, propensity_samples=samples)
        policy.observe("do(X=1)", {"Z": 0, "Y": 1})
        rng = np.random.default_rng(11)
        arms = [TASK1.arm_index(policy.decide(None, rng).arm) for _ in range(1000)]
        played.append(np.bincount(arms, minlength=3))
    assert stats.chi2_contingency(played).pvalue > 1e-4


@pytest.mark.parametrize("name", ["bernoulli-ts", "z2-ts"])
def test_the_index_is_that_of_the_picked_draw(name):
    policy = trained(name, propensity_samples=40)
    for seed in range(20):
        decision = policy.decide({"C": 1}, seed)
        assert policy.problem.arms[int(decision.figures["index"].argmax())] == decision.arm
