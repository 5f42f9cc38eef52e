"""Bayes-optimal play against a brute-force recursion, known numbers, and simulated worlds."""

from itertools import product

import numpy as np
import pytest
from support.errors import raises_code
from support.policies import TWO_ARMS

from dowise import CausalGraph, Problem, load_problem, make_environment, make_policy
from dowise.model import model_of
from dowise.policies import bayes_optimal

IN_CONTEXT = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; D"),
    "Y",
    context=("C", "D"),
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)
# P does not change the reward of either arm, but under do(X=1) it tells which row of V is learned.
CHAIN = Problem(CausalGraph.parse("P -> V -> X -> Y"), "Y", arms=["do(P=0)", "do(X=1)"])
WITH_COSTS = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y"),
    "Y",
    "C",
    costs={"X": 0.5},
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)


PROBLEMS = {
    "two arms": TWO_ARMS,
    "context": IN_CONTEXT,
    "chain": CHAIN,
    "costs": WITH_COSTS,
    "task1": load_problem("task1"),
    "task2": load_problem("task2"),
}


# -- a slow twin ------------------------------------------------------------------------------


def joint(problem, alpha, arm, context):
    """Yield (probability, record) of all outcomes, by the chain rule on mean CPTs."""
    names = problem.graph.topological_order()
    for values in product(*(problem.domains[name] for name in names)):
        record = dict(zip(names, values, strict=True))
        if any(record[name] != value for name, value in (context | dict(arm)).items()):
            continue
        chance = 1.0
        for name in names:
            if name not in arm:
                row = tuple(record[parent] for parent in problem.graph.parents(name))
                counts = [alpha[name, row, label] for label in problem.domains[name]]
                chance *= alpha[name, row, record[name]] / sum(counts)
        yield chance, record


def learned(problem, alpha, arm, record):
    alpha = dict(alpha)
    for name in problem.graph:
        if name not in arm:
            row = tuple(record[parent] for parent in problem.graph.parents(name))
            alpha[name, row, record[name]] += 1
    return alpha


def flat_prior(problem, number=1.0):
    return {
        (name, row, label): number
        for name in problem.graph
        for row in product(*(problem.domains[p] for p in problem.graph.parents(name)))
        for label in problem.domains[name]
    }


def values_of_arms(problem, alpha, context, rounds):
    """Return for each arm P(context) times its value from here on, and P(context)."""
    values = []
    for arm in problem.arms:
        total = probability = 0.0
        for chance, record in joint(problem, alpha, arm, context):
            later = best_value(problem, learned(problem, alpha, arm, record), rounds - 1)
            reward = problem.reward_values[record[problem.reward]]
            cost = sum(problem.costs.get(name, 0) for name in arm)
            total += chance * (reward - cost + later)
            probability += chance
        values.append(total)
    return np.array(values), probability


def best_value(problem, alpha, rounds):
    if rounds == 0:
        return 0.0
    labels = product(*(problem.domains[name] for name in problem.context))
    contexts = [dict(zip(problem.context, x, strict=True)) for x in labels]
    return sum(values_of_arms(problem, alpha, c, rounds)[0].max() for c in contexts)


@pytest.mark.parametrize(
    ("name", "horizon"),
    [
        ("task1", 1),
        ("task1", 3),
        ("two arms", 3),
        ("context", 2),
        ("chain", 3),
        ("task2", 2),
        ("costs", 3),
    ],
)
def test_the_value_equals_that_of_a_brute_force_recursion(name, horizon):
    problem = PROBLEMS[name]
    policy = make_policy("bayes-optimal", problem, horizon=horizon)
    expected = best_value(problem, flat_prior(problem), horizon)
    assert policy.value == pytest.approx(expected, abs=1e-12)


def test_a_decision_after_a_round_equals_that_of_the_recursion():
    policy = make_policy("bayes-optimal", IN_CONTEXT, horizon=3, prior=0.5)
    policy.observe("do(X=1)", {"C": 1, "D": 0, "Y": "good"})
    alpha = flat_prior(IN_CONTEXT, 0.5)
    alpha = learned(IN_CONTEXT, alpha, {"X": "1"}, {"C": "1", "D": "0", "X": "1", "Y": "good"})
    for c, d in product("01", "01"):
        values, chance = values_of_arms(IN_CONTEXT, alpha, {"C": c, "D": d}, 2)
        decision = policy.decide({"C": c, "D": d}, 0)
        np.testing.assert_allclose(decision.figures["values"], values / chance, rtol=1e-12)
        first = int(np.flatnonzero(values > values.max() - 1e-9)[0])
        assert decision.arm == IN_CONTEXT.arms[first]
        assert decision.probabilities[first] == 1 and decision.figures["rounds_left"] == 2
        other = IN_CONTEXT.arms[1 - first]
        assert policy.decide({"C": c, "D": d}, 0, allowed=[other]).arm == other


def test_keys_of_several_words_give_the_same_plan(monkeypatch):
    problem = load_problem("task2")
    factors = model_of(problem).factors
    prior = np.ones(factors.entries)
    one_word = bayes_optimal.StatePlan(problem, factors, prior, 4, 10**6)
    monkeypatch.setattr(bayes_optimal, "_BITS", 7)
    many_words = bayes_optimal.StatePlan(problem, factors, prior, 4, 10**6)
    assert one_word.keys[-1].shape[1] == 1 and many_words.keys[-1].shape[1] > 5
    assert [len(x) for x in one_word.keys] == [len(x) for x in many_words.keys]
    assert many_words.value == pytest.approx(one_word.value, abs=1e-12)
    counts = np.zeros(len(one_word.outcomes.entries), dtype=np.int64)
    counts[one_word.outcomes.hits[5][one_word.outcomes.hits[5] < len(counts)]] += 1
    for context in range(2):
        np.testing.assert_allclose(
            many_words.arm_values(counts, 1, context),
            one_word.arm_values(counts, 1, context),
            rtol=1e-12,
        )


# -- known numbers ----------------------------------------------------------------------------


def test_the_regret_of_two_arms_over_a_hundred_rounds_is_1_748():
    """1.748; the expected best of two uniform means is 2/3."""
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=100)
    assert 100 * 2 / 3 - policy.value == pytest.approx(1.748, abs=0.0005)
    regret, error = policy.expected_regret(100_000, rng=0)
    assert 0 < error < 0.05
    assert abs(regret - 1.748) < 4 * error + 0.0005  # a false alarm of 6e-5


def test_the_regret_of_task_1_over_eight_rounds_is_0_565():
    """.565, within four standard errors: a false alarm of 6e-5."""
    policy = make_policy("bayes-optimal", load_problem("task1"), horizon=8)
    regret, error = policy.expected_regret(2_000_000, rng=0)
    assert error < 0.001
    assert abs(regret - 0.565) < 4 * error + 0.0005


def test_regret_with_a_context_is_averaged_over_contexts():
    """In one round any arm is the best guess, and the rewards of both have the same prior."""
    policy = make_policy("bayes-optimal", IN_CONTEXT, horizon=1)
    assert policy.value == pytest.approx(2.5 / 3)
    regret, error = policy.expected_regret(200_000, rng=0)
    rows = np.random.default_rng(0).dirichlet([1, 1, 1], size=(200_000, 2)) @ [-1, 0.5, 3]
    best = rows.max(axis=1)
    tolerance = 5 * np.hypot(error, best.std() / np.sqrt(200_000))
    assert abs(regret - (best.mean() - 2.5 / 3)) < tolerance


@pytest.mark.slow
@pytest.mark.parametrize(("name", "horizon"), [("task1", 6), ("context", 4)])
def test_simulated_rewards_average_to_the_value(name, horizon):
    """2,000 worlds from the prior, played to the end: the mean of the total true mean rewards is
    within four standard errors of the value, a false alarm of 6e-5 each."""
    problem = PROBLEMS[name]
    totals = []
    for seed in range(2000):
        world, policy = (
            make_environment(problem, seed),
            make_policy("bayes-optimal", problem, horizon=horizon),
        )
        rng, total = np.random.default_rng([seed, 1]), 0.0
        for _ in range(horizon):
            context = world.draw_context(rng)
            arm = policy.decide(context, rng).arm
            policy.observe(arm, world.play(arm, context, rng))
            total += world.means(context)[problem.arm_index(arm)]
        totals.append(total)
    error = np.std(totals) / np.sqrt(2000)
    assert abs(np.mean(totals) - policy.value) < 4 * error
    assert error < 0.03 * policy.value


# -- limits -----------------------------------------------------------------------------------


def test_the_state_has_only_relevant_variables():
    assert bayes_optimal.relevant_variables(TWO_ARMS) == ("Y",)
    assert bayes_optimal.relevant_variables(IN_CONTEXT) == ("C", "Y")
    assert bayes_optimal.relevant_variables(load_problem("task1")) == ("X", "Y", "Z")
    assert bayes_optimal.relevant_variables(CHAIN) == ("P", "V", "X", "Y")
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=5)
    assert [len(x) for x in policy._plan.keys] == [1, 4, 10, 20, 35]


def test_ties_go_to_the_first_arm():
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=40)
    assert str(policy.decide(rng=0).arm) == "do(X=0)"
    assert "40 rounds" in policy.decide(rng=0).reason


@pytest.mark.parametrize(
    ("name", "horizon", "estimate"),
    [("task1", 11, "5.31e+06"), ("task3", 10**6, "1e+300"), ("insurance", 1, "2.72e+11")],
)
def test_too_large_problems_are_refused_with_an_estimate_of_the_size(name, horizon, estimate):
    with raises_code("too-large", f"{estimate} states"):
        make_policy("bayes-optimal", load_problem(name), horizon=horizon)
    with raises_code("too-large", "max_states is 100"):
        make_policy("bayes-optimal", TWO_ARMS, horizon=20, max_states=100)


def test_decisions_after_the_horizon_and_missing_values_are_refused():
    policy = make_policy("bayes-optimal", load_problem("task1"), horizon=2)
    with raises_code("unusable-record", "no value for Z", "X, Y, Z"):
        policy.observe("do(X=1)", {"Y": 1})
    for _ in range(2):
        policy.decide(rng=0)
        policy.observe("do(X=1)", {"Y": 1, "Z": 0})
    with raises_code("horizon-over", "2 rounds"):
        policy.decide(rng=0)
    with raises_code("unusable-record", "horizon of 2 rounds"):
        policy.observe("do(X=1)", {"Y": 1, "Z": 0})
    policy = make_policy("bayes-optimal", load_problem("task1"), horizon=2)
    policy.belief.update("do()", {"Z": 1})
    with raises_code("unusable-record", "complete outcomes"):
        policy.decide(rng=0)
    for invalid in ({"horizon": 0}, {"horizon": 2.5}, {"horizon": 3, "max_states": True}):
        with raises_code("invalid-number"):
            make_policy("bayes-optimal", load_problem("task1"), **invalid)


@pytest.mark.parametrize("edges", ["X -> Y; X <-> Y!", "X -> Y; X <-> Y", "X ?-> Y"])
def test_hidden_causes_and_doubtful_edges_are_refused(edges):
    with raises_code("unsupported-graph", "ids, ts, z2-ts"):
        make_policy("bayes-optimal", Problem(CausalGraph.parse(edges), "Y"), horizon=3)
    harmless = Problem(CausalGraph.parse("X -> Y -> W; Y <-> W"), "Y")
    assert make_policy("bayes-optimal", harmless, horizon=3).value > 1.5


def test_a_batch_of_records_is_usable_up_to_the_horizon():
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=3)
    policy.observe("do(X=1)", {"Y": 0})
    batch = TWO_ARMS.records({"Y": [1, None, 0, 1], "arm": ["do(X=0)"] * 4})
    mask, reasons = policy.usable_mask(batch)
    assert mask.tolist() == [True, False, True, False]
    assert any("horizon of 3 rounds" in reason for reason in reasons) and len(reasons) == 2
    policy.learn_many(batch.take(mask))
    record = TWO_ARMS.record("do(X=0)", {"Y": 1})
    assert "horizon of 3 rounds" in policy.rejection_reason(record)
