"""Baselines that know only rewards: UCB1, KL-UCB, Bernoulli Thompson Sampling, random."""

from math import log, sqrt

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import optimize, stats
from support.errors import raises_code
from support.policies import TWO_ARMS, play

from dowise import CausalGraph, Problem, load_problem, make_environment, make_policy
from dowise.policies.baselines import bernoulli_upper_bound, coin

IN_CONTEXT = Problem(CausalGraph.parse("C -> Y; X -> Y"), "Y", context="C")
THREE_VALUES = Problem(
    CausalGraph.parse("X -> Y"), "Y", reward_values={"bad": -10, "fair": 0, "good": 30}
)
ON_REWARDS = ["ucb", "kl-ucb", "bernoulli-ts"]


def observe(policy, arm, rewards, **context):
    for reward in rewards:
        policy.observe(arm, {"Y": reward, **context})


# -- indices against slow twins ---------------------------------------------------------------


def test_ucb1_follows_its_formula():
    policy = make_policy("ucb", TWO_ARMS)
    observe(policy, "do(X=0)", [1, 0, 1])
    observe(policy, "do(X=1)", [0, 0, 0, 1, 0])
    figures = policy.decide(rng=0).figures
    np.testing.assert_array_equal(figures["counts"], [3, 5])
    np.testing.assert_allclose(figures["means"], [2 / 3, 1 / 5])
    index = [2 / 3 + sqrt(2 * log(8) / 3), 1 / 5 + sqrt(2 * log(8) / 5)]
    np.testing.assert_allclose(figures["index"], index, rtol=1e-14)
    greedy = make_policy("ucb", TWO_ARMS, exploration=0)
    greedy.knowledge.by_context = policy.knowledge.by_context
    np.testing.assert_allclose(greedy.decide(rng=0).figures["index"], [2 / 3, 1 / 5])


def divergence(p, q):
    return sum(a * log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def slow_bound(p, level):
    """The root by Brent's method; 1 where it is so close to 1 that no float is between."""
    last = 1 - 2.0**-53
    if p >= last or divergence(p, last) <= level:
        return 1.0
    return optimize.brentq(lambda q: divergence(p, q) - level, max(p, 1e-300), last, xtol=1e-15)


def test_kl_bound_agrees_with_brent():
    rng = np.random.default_rng(0)
    means = np.concatenate([rng.random(300), rng.random(100) ** 8, 1 - rng.random(100) ** 8])
    means = np.append(means, [0, 0, 1, 1, 0.5, 0.5])
    levels = np.append(10 ** rng.uniform(-6, 0.6, 500), [1e-3, 2, 1e-3, 2, 0, 1e-9])
    with np.errstate(all="raise", under="ignore"):
        bounds = bernoulli_upper_bound(means, levels)
    expected = [slow_bound(p, level) for p, level in zip(means, levels, strict=True)]
    np.testing.assert_allclose(bounds, expected, atol=1e-10, rtol=0)
    assert (bounds >= means).all() and (bounds <= 1).all()


def test_kl_bound_stays_between_the_mean_and_1():
    huge = np.array([1e-12, 40.0, 1e6])
    for mean in (0.0, 1e-300, 0.3, 1 - 1e-16, 1.0):
        with np.errstate(all="raise", under="ignore"):
            bounds = bernoulli_upper_bound(np.full(3, mean), huge)
        assert (np.diff(bounds) >= 0).all() and (bounds >= mean).all() and (bounds <= 1).all()
        assert bounds[2] == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("c", [0, 3])
def test_kl_ucb_follows_its_definition(c):
    policy = make_policy("kl-ucb", TWO_ARMS, c=c)
    for rounds in range(1, 40):
        arm = f"do(X={rounds % 3 == 0:d})"
        policy.observe(arm, {"Y": rounds % 2})
        table = policy.knowledge.by_context[()]
        level = log(rounds) + c * log(log(rounds)) if rounds > 1 else 0
        index = policy.index(table.plays, table.totals)
        for a in range(2):
            n = table.plays[a]
            expected = slow_bound(table.totals[a] / n, max(level, 0) / n) if n else np.inf
            assert index[a] == pytest.approx(expected, abs=1e-10)


# -- decisions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ucb", "kl-ucb"])
def test_each_arm_is_played_once_before_the_largest_index(name):
    policy = make_policy(name, load_problem("task1"))
    played = []
    for _ in range(3):
        decision = policy.decide(rng=0)
        assert "not played yet" in str(decision)
        assert np.isnan(decision.figures["means"][len(played) :]).all()
        played.append(decision.arm)
        policy.observe(decision.arm, {"Y": int(len(played) == 2), **dict(decision.arm)})
    assert tuple(played) == policy.problem.arms
    decision = policy.decide(rng=0)
    assert str(decision.arm) == "do(X=0)"
    np.testing.assert_array_equal(decision.probabilities, [0, 1, 0])
    assert "its mean reward was 1 in 1 play, and allowing for chance" in str(decision)
    only = policy.decide(rng=0, allowed=["do(X=1)", "do()"])
    np.testing.assert_array_equal(only.probabilities, [1, 0, 0])  # a tie: the first one
    before = decision.figures["counts"].copy()
    policy.observe("do()", {"Y": 0})
    np.testing.assert_array_equal(decision.figures["counts"], before)


@pytest.mark.parametrize("name", ON_REWARDS)
def test_contexts_keep_separate_tables(name):
    policy = make_policy(name, IN_CONTEXT)
    observe(policy, "do(X=0)", [1] * 200, C=1)
    observe(policy, "do(X=1)", [0] * 200, C=1)
    observe(policy, "do(X=0)", [0] * 200, C=0)
    assert set(policy.knowledge.by_context) == {(0,), (1,)}
    assert str(policy.decide({"C": 1}, 0).arm) == "do(X=0)"
    assert str(policy.decide({"C": 0}, 0).arm) == "do(X=1)"
    assert policy.decide({"C": 0}, 0).figures["counts"].tolist() == [200, 0]
    fresh = make_policy(name, IN_CONTEXT)
    fresh.decide({"C": 1}, 0)
    assert fresh.knowledge.by_context == {}  # deciding is not learning


@pytest.mark.parametrize("name", [*ON_REWARDS, "arm-ids"])
def test_records_without_reward_or_context_are_refused(name):
    policy = make_policy(name, IN_CONTEXT)
    with raises_code("unusable-record", "no value for Y"):
        policy.observe("do(X=1)", {"C": 1, "Y": None})
    with raises_code("unusable-record", "no value for C"):
        policy.observe("do(X=1)", {"Y": 1})
    with raises_code("unusable-record", "do() is not one of the 2 arms"):
        policy.observe("do()", {"Y": 1, "C": 1, "X": 1})
    with raises_code("missing-value", "C"):
        policy.decide(None, 0)
    assert policy.knowledge.by_context == {}


# -- Bernoulli Thompson Sampling --------------------------------------------------------------


def test_an_arm_is_played_as_often_as_its_beta_is_largest():
    """4,000 decisions against P(Beta(2, 3) > Beta(5, 3)) by quadrature: false alarm 1e-4."""
    policy = make_policy("bernoulli-ts", TWO_ARMS, propensity_samples=100_000)
    observe(policy, "do(X=0)", [1, 0, 0])
    observe(policy, "do(X=1)", [1, 1, 1, 1, 0, 0])
    first, second = stats.beta(2, 3), stats.beta(5, 3)
    grid = (np.arange(100_000) + 0.5) / 100_000
    best = float((first.pdf(grid) * second.cdf(grid)).mean())
    decision = policy.decide(None, 3)
    np.testing.assert_allclose(decision.probabilities, [best, 1 - best], atol=0.008)
    np.testing.assert_allclose(decision.figures["means"], [2 / 5, 5 / 8])
    assert "chance of being the best, judged by its own plays (" in str(decision)
    policy.propensity_samples, rng = 0, np.random.default_rng(0)
    assert policy.decide(None, rng).probabilities is None
    played = sum(str(policy.decide(None, rng).arm) == "do(X=0)" for _ in range(4000))
    assert stats.binomtest(played, 4000, best).pvalue > 1e-4


def test_a_prior_can_be_passed():
    policy = make_policy("bernoulli-ts", TWO_ARMS, prior=(3, 1))
    np.testing.assert_allclose(policy.decide(None, 0).figures["means"], 0.75)


@pytest.mark.parametrize("prior", [0.02, 0.05])
def test_small_priors_do_not_tie(prior):
    """Without the first value .568 at .02; five standard errors are a false alarm of 6e-7."""
    policy = make_policy("bernoulli-ts", TWO_ARMS, prior=(prior, prior), propensity_samples=100_000)
    assert abs(policy.decide(rng=0).probabilities[0] - 0.5) < 5 * 0.5 / np.sqrt(100_000) + 1e-5


def test_ties_of_draws_are_broken_independently_in_every_decision():
    """At .001 most draws tie; five standard errors."""
    policy = make_policy("bernoulli-ts", TWO_ARMS, prior=(0.001, 0.001))
    first = [str(policy.decide(rng=seed).arm) == "do(X=0)" for seed in range(10_000)]
    assert abs(np.mean(first) - 0.5) < 5 * 0.5 / np.sqrt(10_000)


def test_the_binarised_reward_has_its_probability_and_is_repeatable():
    """20,000 throws: within five standard errors, a false alarm of 6e-7 each."""
    for probability in (0.25, 0.9):
        thrown = [coin(probability, 0, arm, n) for arm in range(2) for n in range(10_000)]
        assert abs(np.mean(thrown) - probability) < 5 * sqrt(probability * (1 - probability) / 2e4)
        assert thrown[:50] == [coin(probability, 0, 0, n) for n in range(50)]
    assert coin(0.0, 5) == 0 and coin(1.0, 5) == 1


def test_rewards_between_worst_and_best_count_in_part():
    """-10, 0 and 30 are 0, 1/4 and 1; the coin makes successes of a quarter of the middle ones."""
    for name in ("ucb", "kl-ucb"):
        policy = make_policy(name, THREE_VALUES)
        observe(policy, "do(X=0)", ["bad", "fair", "good"])
        observe(policy, "do(X=1)", ["fair"])
        np.testing.assert_allclose(policy.decide(rng=0).figures["means"], [5 / 12, 1 / 4])
        policy = make_policy(name, THREE_VALUES, **{"exploration" if name == "ucb" else "c": 0})
        observe(policy, "do(X=0)", ["fair"])
        observe(policy, "do(X=1)", ["bad"])
        assert "its mean reward was 0 in 1 play" in str(policy.decide(rng=0))
    counts = []
    for seed in (0, 0, 1):
        policy = make_policy("bernoulli-ts", THREE_VALUES, seed=seed)
        for _ in range(2000):
            policy.observe("do(X=1)", {"Y": "fair"})
        table = policy.knowledge.by_context[()]
        assert (table.plays == [0, 2000]).all()
        counts.append(table.totals[1])
    assert counts[0] == counts[1] != counts[2]
    assert all(abs(count - 500) < 5 * sqrt(2000 * 0.25 * 0.75) for count in counts)


# -- regret -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "task", "expected"),
    [
        ("ucb", "task1", 23),
        ("ucb", "task2", 36),
        ("bernoulli-ts", "task1", 10),
        ("bernoulli-ts", "task2", 18),
    ],
)
def test_regret_equals_that_of_an_independent_prototype(name, task, expected):
    """150 worlds, as many as the prototype had: within four standard errors of the difference, and
    half a unit for its rounding; a false alarm of 6e-5 for each of the four."""
    problem = load_problem(task)
    regrets = Parallel(n_jobs=2)(
        delayed(play)(make_policy(name, problem), make_environment(problem, seed), 500, [seed, 1])
        for seed in range(150)
    )
    error = np.std(regrets) / sqrt(150)
    assert abs(np.mean(regrets) - expected) < 4 * sqrt(2) * error + 0.5


def test_random_plays_each_allowed_arm_equally_often():
    policy = make_policy("random", load_problem("task3"))
    rng = np.random.default_rng(0)
    decisions = [policy.decide({"C": 0}, rng) for _ in range(4500)]
    played = np.bincount([policy.problem.arm_index(x.arm) for x in decisions], minlength=9)
    assert stats.chisquare(played).pvalue > 1e-4
    np.testing.assert_allclose(decisions[0].probabilities, 1 / 9)
    two = policy.decide({"C": 0}, 0, ["do(X1=0)", "do(X2=1)"])
    assert sorted(two.probabilities)[-3:] == [0, 0.5, 0.5]
    policy.observe("do(X1=0)", {"Y": 1})
    with raises_code("unknown-variable", "W"):
        policy.observe("do(X1=0)", {"W": 1})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ucb", {"exploration": -1}),
        ("ucb", {"exploration": "2"}),
        ("kl-ucb", {"c": float("nan")}),
        ("kl-ucb", {"c": True}),
        ("bernoulli-ts", {"prior": (0, 1)}),
        ("bernoulli-ts", {"prior": 1}),
        ("bernoulli-ts", {"prior": (1, 2, 3)}),
        ("bernoulli-ts", {"seed": -1}),
        ("bernoulli-ts", {"propensity_samples": 1.5}),
    ],
)
def test_invalid_options_are_refused(name, options):
    with raises_code("invalid-number", f"{next(iter(options))}="):
        make_policy(name, TWO_ARMS, **options)
