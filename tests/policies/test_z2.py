"""The causal baseline: weights against a general solver, data, and what it is worth."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed
from scipy.optimize import minimize
from support.parametrize import one_in
from support.strategies import examples

from dowise import CausalGraph, DowiseError, Problem, load_problem, make_environment, make_policy
from dowise.environments import front_door_world
from dowise.identification.pooling import least_variance_weights, pool_estimates


def variance_of(weights, covariance):
    return float(weights @ covariance @ weights)


def random_covariance(rng, size):
    """Of few resamples at times, so that it is singular, with equal estimators among them."""
    samples = rng.normal(size=(int(rng.integers(2, 2 * size + 2)), size))
    samples *= rng.choice([1e-3, 1.0, 10.0], size=size)
    if size > 1 and rng.random() < 0.3:
        samples[:, 1] = samples[:, 0]
    return np.cov(samples, rowvar=False).reshape(size, size)


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
@examples(60)
def test_no_weights_vary_less(seed, size):
    rng = np.random.default_rng(seed)
    covariance = random_covariance(rng, size)
    weights, scale = np.empty(size), 1e-12 * np.trace(covariance)
    found = least_variance_weights(covariance, weights)
    assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
    assert found == pytest.approx(variance_of(weights, covariance), rel=1e-9, abs=scale)
    others = np.vstack([np.eye(size), rng.dirichlet(np.full(size, 0.5), size=300)])
    least = np.einsum("ki,ij,kj->k", others, covariance, others).min()
    assert found <= least + 10 * scale
    # Optimality: no weight could move towards an estimator with a smaller slope.
    slopes = covariance @ weights
    assert (slopes >= found - 1000 * scale).all()


def test_a_general_solver_finds_the_same():
    rng = np.random.default_rng(0)
    for _ in range(40):
        size = int(rng.integers(2, 8))
        basis = rng.normal(size=(size + 3, size))
        covariance = basis.T @ basis
        weights = np.empty(size)
        found = least_variance_weights(covariance, weights)
        solved = minimize(
            lambda w, c=covariance: w @ c @ w,
            np.full(size, 1 / size),
            jac=lambda w, c=covariance: 2 * c @ w,
            bounds=[(0, 1)] * size,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert found == pytest.approx(solved.fun, rel=1e-6)
        np.testing.assert_allclose(weights, solved.x, atol=1e-4)


def played(policy, world, rounds, seed=0):
    """Every arm in turn, the same data whatever the policy."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        context = world.draw_context(rng)
        arm = world.problem.arms[t % len(world.problem.arms)]
        policy.observe(arm, world.play(arm, context, rng))
    return policy


@pytest.mark.slow
def test_estimates_close_in_on_the_truth_and_vary_less_than_the_arms_own():
    """30,000 rounds on the front door: θ̂ within five s of the means; s² that of the arm's own data,
    θ(1−θ)/n, for do(), and clearly less for do(X=x), which has the front door besides. A variance
    from 3,000 resamples has an error of 2.6 %."""
    world = front_door_world()
    policy = played(make_policy("z2-ts", world.problem, resamples=3000), world, 30_000)
    pooled = policy.pooled()
    means = world.means()
    assert (np.abs(pooled.means - means) < 5 * np.sqrt(pooled.variances)).all()
    own = means * (1 - means) / 10_000
    assert pooled.variances[0] == pytest.approx(own[0], rel=0.13)
    assert (pooled.variances[1:] < 0.8 * own[1:]).all()


@pytest.mark.slow
def test_variances_are_those_of_repeated_data():
    """θ̂ over 300 independent sets of 300 rounds: its variance is what s² says, within a factor of
    1.5 (the standard error of a ratio of such variances is about 0.1)."""
    world = front_door_world()
    means, claimed = [], []
    for seed in range(300):
        pooled = played(make_policy("z2-ts", world.problem, seed=seed), world, 300, seed).pooled()
        means.append(pooled.means)
        claimed.append(pooled.variances)
    ratio = np.var(means, axis=0) / np.mean(claimed, axis=0)
    assert ((ratio > 1 / 1.5) & (ratio < 1.5)).all()


def test_nothing_seen_and_always_the_same():
    problem = load_problem("task1")
    policy = make_policy("z2-ts", problem)
    assert np.isnan(policy.pooled().means).all()
    counts = np.bincount(
        [problem.arm_index(policy.decide(rng=seed).arm) for seed in range(300)], minlength=3
    )
    assert (counts > 60).all()  # Beta(1, 1) for each: 100 ± 8
    for _ in range(20):
        policy.observe("do(X=1)", {"Z": 0, "Y": 1})
    assert policy.pooled().means[2] == 1 and policy.pooled().variances[2] == 0
    lost = [policy.decide(rng=seed).arm != problem.arms[2] for seed in range(100)]
    assert 0 < sum(lost) < 60  # Beta(21, 1) against two Beta(1, 1)


def test_an_arm_never_played_is_known_through_the_others():
    """do(X=x) of task1 follows from do() by adjusting for Z."""
    world = make_environment("task1", seed=4)
    policy, rng = make_policy("z2-ts", world.problem), np.random.default_rng(0)
    for _ in range(5000):
        policy.observe("do()", world.play("do()", None, rng))
    pooled = policy.pooled()
    assert (np.abs(pooled.means - world.means()) < 5 * np.sqrt(pooled.variances)).all()


def test_contexts_keep_to_themselves():
    world = make_environment("task2", seed=2)
    both, one = (make_policy("z2-kl-ucb", world.problem) for _ in range(2))
    rng = np.random.default_rng(0)
    for t in range(400):
        arm, context = world.problem.arms[t // 2 % 4], {"C": t % 2}
        outcome = world.play(arm, context, rng)
        both.observe(arm, outcome)
        if t % 2:
            one.observe(arm, outcome)
    for figure in ("means", "variances", "weights"):
        np.testing.assert_array_equal(
            getattr(both.pooled({"C": 1}), figure), getattr(one.pooled({"C": 1}), figure)
        )


def test_refreshing_less_often_uses_older_data():
    world = front_door_world()
    always = played(make_policy("z2-ts", world.problem), world, 300)
    seldom = played(make_policy("z2-ts", world.problem, refresh=0.5), world, 300)
    for policy in (always, seldom):
        policy.pooled()
    settled = seldom.knowledge.by_context[()].arms[0].counts.sum()
    assert 100 / 1.5 <= settled < 100 == always.knowledge.by_context[()].arms[0].counts.sum()
    np.testing.assert_allclose(seldom.pooled().means, always.pooled().means, atol=0.2)
    assert not np.array_equal(seldom.pooled().means, always.pooled().means)


def test_asking_in_between_changes_nothing():
    """Estimates are a function of the data, refreshed or not."""
    world = front_door_world()
    for refresh in (0.0, 0.3):
        asked, silent = (make_policy("z2-ts", world.problem, refresh=refresh) for _ in range(2))
        rng = np.random.default_rng(1)
        for t in range(60):
            arm = world.problem.arms[t % 3]
            outcome = world.play(arm, None, rng)
            asked.decide(rng=t)
            asked.observe(arm, outcome)
            silent.observe(arm, outcome)
        np.testing.assert_array_equal(asked.pooled().means, silent.pooled().means)


def test_rewards_of_three_values():
    problem = Problem(
        CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", non_manipulable="Z",
        reward_values={"bad": -1, "fair": 0, "good": 3},
    )  # fmt: skip
    world = make_environment(problem, seed=5)
    policy = played(make_policy("z2-ts", problem), world, 9000)
    pooled = policy.pooled()
    scaled = (world.means() + 1) / 4
    assert (np.abs(pooled.means - scaled) < 5 * np.sqrt(pooled.variances)).all()


def test_fifteen_variables_fit():
    """A chain of fifteen with a confounder at each end: records are few, joint tables are not."""
    names = [f"V{i:02}" for i in range(14)]
    edges = " -> ".join([*names, "Y"])
    graph = CausalGraph.parse(f"{edges}; V00 <-> Y")
    problem = Problem(graph, "Y", non_manipulable=names[1:])
    policy, rng = make_policy("z2-ts", problem), np.random.default_rng(0)
    for t in range(300):
        arm = problem.arms[t % len(problem.arms)]
        outcome = {name: int(rng.integers(2)) for name in graph if name not in arm}
        policy.decide(rng=t)
        policy.observe(arm, outcome)
    assert np.isfinite(policy.pooled().means).all()


@pytest.mark.parametrize("name", ["z2-ts", "z2-kl-ucb"])
def test_bad_outcomes_and_options_are_explained(name):
    problem = load_problem("task2")
    policy = make_policy(name, problem)
    for outcome, missing in (({"Z": 0, "X2": 0, "Y": 1}, "C"), ({"C": 0, "X2": 0, "Y": 1}, "Z")):
        with pytest.raises(DowiseError, match=f"the outcome has no value for {missing}"):
            policy.observe("do(X1=0)", outcome)
    for bad in ({"resamples": 1}, {"refresh": -1}, {"refresh": float("nan")}, {"seed": -1}):
        with pytest.raises(DowiseError, match="must be"):
            make_policy(name, problem, **bad)


def test_beta_distributions_have_the_pooled_mean_and_variance():
    world = front_door_world()
    policy = played(make_policy("z2-ts", world.problem), world, 300)
    pooled = policy.pooled()
    alpha, beta = policy._betas(pooled, policy.knowledge.by_context[()])
    np.testing.assert_allclose(alpha / (alpha + beta), pooled.means)
    np.testing.assert_allclose(
        alpha * beta / (alpha + beta) ** 2 / (alpha + beta + 1), pooled.variances
    )
    index = policy.decide(rng=0).figures["index"]
    np.testing.assert_array_equal(index, np.random.default_rng(0).beta(alpha, beta))
    wide = make_policy("z2-ts", world.problem, propensity_samples=400)
    assert played(wide, world, 30).decide(rng=0).probabilities.sum() == pytest.approx(1)


def test_the_index_by_hand():
    """N̂ = θ̂(1−θ̂)/s², t̂ = ΣN̂, the largest μ with kl(θ̂, μ) ≤ (ln t̂ + 3 ln ln t̂)/N̂."""
    world = front_door_world()
    policy = played(make_policy("z2-kl-ucb", world.problem), world, 300)
    pooled, figures = policy.pooled(), policy.decide(rng=0).figures
    counts = pooled.means * (1 - pooled.means) / pooled.variances
    np.testing.assert_allclose(figures["counts"], counts)
    level = (log(counts.sum()) + 3 * log(log(counts.sum()))) / counts
    for mean, mu, most in zip(pooled.means, figures["index"], level, strict=True):
        divergence = mean * log(mean / mu) + (1 - mean) * log((1 - mean) / (1 - mu))
        assert mu > mean and divergence == pytest.approx(most, rel=1e-6)


def combined(rows, undefined=()):
    """θ̂, s² and weights of one arm whose estimators have these values, the data first."""
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


def test_which_estimators_count():
    rng = np.random.default_rng(0)
    one, other = 0.5 + 0.01 * rng.normal(size=101), 0.4 + 0.02 * rng.normal(size=101)
    covariance = np.cov(one[1:], other[1:])
    best = np.linalg.solve(covariance, np.ones(2))
    best /= best.sum()
    mean, variance, weights = combined([one, other])
    np.testing.assert_allclose(weights, best, rtol=1e-6)
    assert mean == pytest.approx(best @ [one[0], other[0]])
    assert variance == pytest.approx(best @ covariance @ best)
    # undefined on the data; on more than a tenth of the resamples; on a tenth
    assert combined([one, other], [(0, 0)])[2].tolist() == [0, 1]
    assert combined([one, other], [(0, lane) for lane in range(1, 12)])[2].tolist() == [0, 1]
    lanes = list(range(1, 11))
    kept = combined([one, other], [(0, lane) for lane in lanes])
    np.testing.assert_allclose(
        kept[1], least(np.cov(np.delete(one, [0, *lanes]), np.delete(other, [0, *lanes])))
    )
    # one that never varies, alone and beside another; nothing at all
    constant = np.full(101, 0.3)
    assert combined([constant, other])[2].tolist() == [0, 1]
    assert combined([constant])[:2] == (0.3, 0.0)
    assert np.isnan(combined([one], [(0, 0)])[0])


def least(covariance):
    weights = np.empty(len(covariance))
    return least_variance_weights(covariance, weights)


def test_few_resamples_carry_few_estimators():
    """Twenty resamples are enough for four estimators; the most often undefined go first."""
    rng = np.random.default_rng(1)
    rows = 0.5 + 0.01 * rng.normal(size=(6, 21))
    weights = combined(rows, [(2, 1), (2, 2), (4, 3)])[2]
    assert weights[2] == weights[4] == 0 and weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", one_in(4, ["task3", "child", "alarm", "insurance"]))
def test_every_arm_has_its_direct_estimator(name):
    problem = load_problem(name)
    policy = make_policy("z2-ts", problem)
    assert (np.diff(policy.estimates.offsets) >= 1).all()
    circuit = policy.estimates.circuit
    needed, operations = set(circuit.results.tolist()), circuit.operations
    for i in reversed(range(len(operations.outputs))):
        assert operations.outputs[i] in needed  # nothing is computed in vain
        if operations.outputs[i] not in circuit.results:
            needed.remove(operations.outputs[i])  # before it the slot held something else
        pairs = slice(operations.starts[i], operations.starts[i + 1])
        needed |= {*operations.lefts[pairs].tolist(), *operations.rights[pairs].tolist()}


@pytest.mark.slow
def test_hundreds_of_arms_are_filled_in_turn_until_there_is_no_room(caplog):
    """Six confounded causes make 729 arms and 32,071 estimators: the first arms get no more than
    one more than the last, and the log says how many there was no room for."""
    pairs = [f"Z{i} -> X{i}; X{i} -> Y; Z{i} -> Y" for i in range(6)]
    hidden = [f"Z{i}" for i in range(6)]
    problem = Problem(CausalGraph.parse("; ".join(pairs)), "Y", non_manipulable=hidden)
    estimates = make_policy("z2-ts", problem).estimates
    sizes = np.diff(estimates.offsets)
    assert estimates.circuit.slots <= 20_000 and sizes.min() == 1 and sizes.max() == 2
    assert "of 32071 estimators are left out" in caplog.text


def test_arms_that_are_not_allowed_need_no_data():
    world = front_door_world()
    policy = make_policy("z2-kl-ucb", world.problem)
    for seed in range(5):
        policy.observe("do(X=1)", world.play("do(X=1)", None, seed))
    assert str(policy.decide(None, rng=0, allowed=["do(X=1)"]).arm) == "do(X=1)"


def regret_on_the_front_door(name, trial):
    world, policy = front_door_world(), make_policy(name, front_door_world().problem)
    rng, regret = np.random.default_rng([trial]), 0.0
    for _ in range(1000):
        arm = policy.decide(None, rng).arm
        policy.observe(arm, world.play(arm, None, rng))
        regret += world.regret(arm)
    return regret


@pytest.mark.slow
@pytest.mark.parametrize(
    ("causal", "plain", "trials"),
    [("z2-ts", "bernoulli-ts", 250), ("z2-kl-ucb", "kl-ucb", 100)],
)
def test_the_front_door_world_is_played_better_with_causal_knowledge(causal, plain, trials):
    """Runs of 1000 rounds each: the mean regret is lower by more than four standard errors of the
    difference (a false claim in 3e-5), and by a fifth at least."""
    ours, theirs = (
        np.array(
            Parallel(n_jobs=2)(delayed(regret_on_the_front_door)(name, i) for i in range(trials))
        )
        for name in (causal, plain)
    )
    error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / trials)
    assert ours.mean() < theirs.mean() - 4 * error, (ours.mean(), theirs.mean(), error)
    assert ours.mean() < 0.8 * theirs.mean()
