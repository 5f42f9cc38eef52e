"""z² policies: pooled estimates, the choices made from them, and their regret."""

from concurrent.futures import ThreadPoolExecutor
from math import log

import numpy as np
import pytest
from joblib import Parallel, delayed
from support.errors import raises_code
from support.parametrize import one_in
from support.policies import play

from dowise import CausalGraph, Problem, load_problem, make_environment, make_policy
from dowise.environments import front_door_world
from dowise.policies.z2 import settled_size


def trained(policy, world, rounds, seed=0):
    """Return the policy after rounds with the arms in turn: the same data for every policy."""
    play(policy, world, rounds, seed, lambda t: t % len(world.problem.arms))
    return policy


@pytest.mark.slow
def test_estimates_converge_and_vary_less_than_the_arms_own_data():
    """30,000 rounds on the front door: θ̂ within five s of the means; s² that of the arm's own data,
    θ(1−θ)/n, for do(), and clearly less for do(X=x), which has the front-door estimator too. The
    variance from 3,000 resamples has an error of 2.6 %."""
    world = front_door_world()
    policy = trained(make_policy("z2-ts", world.problem, resamples=3000), world, 30_000)
    pooled = policy.pooled()
    means = world.means()
    assert (np.abs(pooled.means - means) < 5 * np.sqrt(pooled.variances)).all()
    direct = means * (1 - means) / 10_000
    assert pooled.variances[0] == pytest.approx(direct[0], rel=0.13)
    assert (pooled.variances[1:] < 0.8 * direct[1:]).all()


@pytest.mark.slow
def test_variances_equal_those_of_independent_data():
    """θ̂ over 300 independent sets of 300 rounds: its variance is what s² says, within a factor of
    1.5 (the standard error of a ratio of such variances is about 0.1)."""
    world = front_door_world()
    means, claimed = [], []
    for seed in range(300):
        pooled = trained(make_policy("z2-ts", world.problem, seed=seed), world, 300, seed).pooled()
        means.append(pooled.means)
        claimed.append(pooled.variances)
    ratio = np.var(means, axis=0) / np.mean(claimed, axis=0)
    assert ((ratio > 1 / 1.5) & (ratio < 1.5)).all()


def test_degenerate_estimates_are_replaced_by_the_arms_own_data():
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
    switched = [policy.decide(rng=seed).arm != problem.arms[2] for seed in range(100)]
    assert 0 < sum(switched) < 60  # Beta(21, 1) against two Beta(1, 1)


def test_an_arm_that_was_never_played_is_estimated_from_others():
    """do(X=x) of task1 follows from do() by adjusting for Z."""
    world = make_environment("task1", seed=4)
    policy, rng = make_policy("z2-ts", world.problem), np.random.default_rng(0)
    for _ in range(5000):
        policy.observe("do()", world.play("do()", None, rng))
    pooled = policy.pooled()
    assert (np.abs(pooled.means - world.means()) < 5 * np.sqrt(pooled.variances)).all()


def test_contexts_have_separate_data():
    world = make_environment("task2", seed=2)
    all_contexts, single_context = (make_policy("z2-kl-ucb", world.problem) for _ in range(2))
    rng = np.random.default_rng(0)
    for t in range(400):
        arm, context = world.problem.arms[t // 2 % 4], {"C": t % 2}
        outcome = world.play(arm, context, rng)
        all_contexts.observe(arm, outcome)
        if t % 2:
            single_context.observe(arm, outcome)
    for figure in ("means", "variances", "weights"):
        np.testing.assert_array_equal(
            getattr(all_contexts.pooled({"C": 1}), figure),
            getattr(single_context.pooled({"C": 1}), figure),
        )


def test_estimates_are_renewed_when_records_have_grown_by_the_share():
    assert [settled_size(n, 0.0) for n in (0, 1, 17)] == [0, 1, 17]
    sizes = sorted({settled_size(n, 0.5) for n in range(30)})
    assert sizes == [0, 1, 2, 3, 5, 8, 12, 18, 27]


def test_a_refresh_share_uses_older_data():
    world = front_door_world()
    always = trained(make_policy("z2-ts", world.problem), world, 300)
    seldom = trained(make_policy("z2-ts", world.problem, refresh=0.5), world, 300)
    for policy in (always, seldom):
        policy.pooled()
    settled = seldom.knowledge.by_context[()].arms[0].counts.sum()
    assert 100 / 1.5 <= settled < 100 == always.knowledge.by_context[()].arms[0].counts.sum()
    np.testing.assert_allclose(seldom.pooled().means, always.pooled().means, atol=0.2)
    assert not np.array_equal(seldom.pooled().means, always.pooled().means)


def test_decisions_in_between_do_not_change_estimates():
    """Estimates are a function of the data, refreshed or not."""
    world = front_door_world()
    for refresh in (0.0, 0.3):
        deciding, silent = (make_policy("z2-ts", world.problem, refresh=refresh) for _ in range(2))
        rng = np.random.default_rng(1)
        for t in range(60):
            arm = world.problem.arms[t % 3]
            outcome = world.play(arm, None, rng)
            deciding.decide(rng=t)
            deciding.observe(arm, outcome)
            silent.observe(arm, outcome)
        np.testing.assert_array_equal(deciding.pooled().means, silent.pooled().means)


def test_rewards_of_three_values_are_estimated():
    problem = Problem(
        CausalGraph.parse("Z -> X -> Y; Z -> Y"),
        "Y",
        non_manipulable="Z",
        reward_values={"bad": -1, "fair": 0, "good": 3},
    )
    world = make_environment(problem, seed=5)
    policy = trained(make_policy("z2-ts", problem), world, 9000)
    pooled = policy.pooled()
    scaled = (world.means() + 1) / 4
    assert (np.abs(pooled.means - scaled) < 5 * np.sqrt(pooled.variances)).all()


def test_fifteen_variables_fit_into_memory():
    """A chain of fifteen: records are few, dense joint tables would be large."""
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
def test_incomplete_outcomes_and_invalid_options_are_refused(name):
    problem = load_problem("task2")
    policy = make_policy(name, problem)
    for outcome, missing in (({"Z": 0, "X2": 0, "Y": 1}, "C"), ({"C": 0, "X2": 0, "Y": 1}, "Z")):
        with raises_code("unusable-record", f"no value for {missing}"):
            policy.observe("do(X1=0)", outcome)
    for options in ({"resamples": 1}, {"refresh": -1}, {"refresh": float("nan")}, {"seed": -1}):
        with raises_code("invalid-number", f"{next(iter(options))}="):
            make_policy(name, problem, **options)


def test_beta_distributions_have_the_pooled_mean_and_variance():
    world = front_door_world()
    policy = trained(make_policy("z2-ts", world.problem), world, 300)
    pooled = policy.pooled()
    alpha, beta = policy._betas(pooled, policy.knowledge.by_context[()])
    np.testing.assert_allclose(alpha / (alpha + beta), pooled.means)
    np.testing.assert_allclose(
        alpha * beta / (alpha + beta) ** 2 / (alpha + beta + 1), pooled.variances
    )
    index = policy.decide(rng=0).figures["index"]
    np.testing.assert_array_equal(index, np.random.default_rng(0).beta(alpha, beta))
    wide = make_policy("z2-ts", world.problem, propensity_samples=400)
    assert trained(wide, world, 30).decide(rng=0).probabilities.sum() == pytest.approx(1)


def test_the_index_is_kl_ucb_at_the_effective_number_of_plays():
    """N̂ = θ̂(1−θ̂)/s², t̂ = ΣN̂, the largest μ with kl(θ̂, μ) ≤ (ln t̂ + 3 ln ln t̂)/N̂."""
    world = front_door_world()
    policy = trained(make_policy("z2-kl-ucb", world.problem), world, 300)
    pooled, figures = policy.pooled(), policy.decide(rng=0).figures
    counts = pooled.means * (1 - pooled.means) / pooled.variances
    np.testing.assert_allclose(figures["counts"], counts)
    level = (log(counts.sum()) + 3 * log(log(counts.sum()))) / counts
    for mean, mu, bound in zip(pooled.means, figures["index"], level, strict=True):
        divergence = mean * log(mean / mu) + (1 - mean) * log((1 - mean) / (1 - mu))
        assert mu > mean and divergence == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("name", one_in(4, ["task3", "child", "alarm", "insurance"]))
def test_every_arm_has_an_estimator_and_nothing_else_is_computed(name):
    problem = load_problem(name)
    policy = make_policy("z2-ts", problem)
    assert (np.diff(policy.estimates.offsets) >= 1).all()
    circuit = policy.estimates.circuit
    needed, operations = set(circuit.results.tolist()), circuit.operations
    for i in reversed(range(len(operations.outputs))):
        assert operations.outputs[i] in needed
        if operations.outputs[i] not in circuit.results:
            needed.remove(operations.outputs[i])  # before it the slot held another value
        pairs = slice(operations.starts[i], operations.starts[i + 1])
        needed |= {*operations.lefts[pairs].tolist(), *operations.rights[pairs].tolist()}


@pytest.mark.slow
def test_estimators_of_hundreds_of_arms_are_limited(caplog):
    """Six confounded causes make 729 arms and 32,071 estimators. Arms get estimators in turn, so
    their numbers differ by at most one, and the log states how many were left out."""
    pairs = [f"Z{i} -> X{i}; X{i} -> Y; Z{i} -> Y" for i in range(6)]
    hidden = [f"Z{i}" for i in range(6)]
    problem = Problem(CausalGraph.parse("; ".join(pairs)), "Y", non_manipulable=hidden)
    estimates = make_policy("z2-ts", problem).estimates
    sizes = np.diff(estimates.offsets)
    assert estimates.circuit.slots <= 20_000 and sizes.min() == 1 and sizes.max() == 2
    assert "of 32071 estimators are left out" in caplog.text


def test_arms_that_are_not_allowed_are_not_played_first():
    world = front_door_world()
    policy = make_policy("z2-kl-ucb", world.problem)
    for seed in range(5):
        policy.observe("do(X=1)", world.play("do(X=1)", None, seed))
    assert str(policy.decide(None, rng=0, allowed=["do(X=1)"]).arm) == "do(X=1)"


def front_door_regret(name, trial):
    world = front_door_world()
    options = {"refresh": 0.05} if name.startswith("z2") else {}  # a fraction of the time
    return play(make_policy(name, world.problem, **options), world, 1000, [trial])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("causal", "plain", "trials"),
    [("z2-ts", "bernoulli-ts", 150), ("z2-kl-ucb", "kl-ucb", 100)],
)
def test_causal_knowledge_reduces_regret_in_the_front_door_world(causal, plain, trials):
    """Runs of 1000 rounds each: the mean regret is lower by more than four standard errors of the
    difference (a false claim in 3e-5), and by a fifth at least."""
    with_graph, without = (
        np.array(Parallel(n_jobs=2)(delayed(front_door_regret)(name, i) for i in range(trials)))
        for name in (causal, plain)
    )
    error = np.sqrt((with_graph.var(ddof=1) + without.var(ddof=1)) / trials)
    assert with_graph.mean() < without.mean() - 4 * error, (with_graph.mean(), without.mean())
    assert with_graph.mean() < 0.8 * without.mean()


def test_threads_may_share_a_policy():
    world = make_environment("task2", seed=1)
    policies = [trained(make_policy("z2-kl-ucb", world.problem), world, 60) for _ in range(40)]
    expected = [policies[0].pooled({"C": c}).means for c in "01"]
    with ThreadPoolExecutor(2) as pool:
        for policy in policies[1:]:
            means = list(pool.map(lambda c, policy=policy: policy.pooled({"C": c}).means, "01"))
            np.testing.assert_array_equal(means, expected)
