"""Bayes-optimal play: against a brute-force recursion, known numbers, and itself in the world."""

from itertools import product

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem, load_problem, make_environment, make_policy
from dowise.model import model_of
from dowise.policies import bayes_optimal as planning

TWO_ARMS = Problem(CausalGraph.parse("X -> Y"), "Y")
IN_CONTEXT = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; D"), "Y", context=("C", "D"),
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)  # fmt: skip
# P matters to the reward under neither arm, but under do(X=1) it says which row of V is learned.
BY_HAND = Problem(CausalGraph.parse("P -> V -> X -> Y"), "Y", arms=["do(P=0)", "do(X=1)"])
WITH_COSTS = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", "C", costs={"X": 0.5},
    reward_values={"bad": -1, "fair": 0.5, "good": 3},
)  # fmt: skip


def tiny(name):
    own = {"two arms": TWO_ARMS, "context": IN_CONTEXT, "by hand": BY_HAND, "costs": WITH_COSTS}
    return own.get(name) or load_problem(name)


# -- a slow twin ----------------------------------------------------------------------------------


def joint(problem, alpha, arm, known):
    """(probability, record) of everything that can be seen, by the chain rule on mean CPTs."""
    names = problem.graph.topological_order()
    for values in product(*(problem.domains[name] for name in names)):
        record = dict(zip(names, values, strict=True))
        if any(record[name] != value for name, value in (known | dict(arm)).items()):
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
    """For each arm P(context) times what it brings from here on, and P(context)."""
    values = []
    for arm in problem.arms:
        total = seen = 0.0
        for chance, record in joint(problem, alpha, arm, context):
            later = best_value(problem, learned(problem, alpha, arm, record), rounds - 1)
            brings = problem.reward_values[record[problem.reward]]
            paid = sum(problem.costs.get(name, 0) for name in arm)
            total += chance * (brings - paid + later)
            seen += chance
        values.append(total)
    return np.array(values), seen


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
        ("by hand", 3),
        ("task2", 2),
        ("costs", 3),
    ],
)
def test_the_value_is_that_of_a_brute_force_recursion(name, horizon):
    problem = tiny(name)
    policy = make_policy("bayes-optimal", problem, horizon=horizon)
    expected = best_value(problem, flat_prior(problem), horizon)
    assert policy.value == pytest.approx(expected, abs=1e-12)


def test_a_decision_along_the_way_is_that_of_the_recursion():
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


def test_keys_of_several_words_change_nothing(monkeypatch):
    problem = load_problem("task2")
    factors = model_of(problem).factors
    prior = np.ones(factors.entries)
    whole = planning.StatePlan(problem, factors, prior, 4, 10**6)
    monkeypatch.setattr(planning, "_BITS", 7)
    parts = planning.StatePlan(problem, factors, prior, 4, 10**6)
    assert whole.keys[-1].shape[1] == 1 and parts.keys[-1].shape[1] > 5
    assert [len(x) for x in whole.keys] == [len(x) for x in parts.keys]
    assert parts.value == pytest.approx(whole.value, abs=1e-12)
    counts = np.zeros(len(whole.outcomes.entries), dtype=np.int64)
    counts[whole.outcomes.hits[5][whole.outcomes.hits[5] < len(counts)]] += 1
    for context in range(2):
        np.testing.assert_allclose(
            parts.arm_values(counts, 1, context), whole.arm_values(counts, 1, context), rtol=1e-12
        )


# -- known numbers --------------------------------------------------------------------------------


def test_two_arms_over_a_hundred_rounds():
    """1.748; the expected best of two uniform means is 2/3."""
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=100)
    assert 100 * 2 / 3 - policy.value == pytest.approx(1.748, abs=0.0005)
    regret, error = policy.expected_regret(100_000, rng=0)
    assert 0 < error < 0.05
    assert abs(regret - 1.748) < 4 * error + 0.0005  # a false alarm of 6e-5


def test_task_1_over_eight_rounds():
    """.565, within four standard errors: a false alarm of 6e-5."""
    policy = make_policy("bayes-optimal", load_problem("task1"), horizon=8)
    regret, error = policy.expected_regret(2_000_000, rng=0)
    assert error < 0.001
    assert abs(regret - 0.565) < 4 * error + 0.0005


def test_regret_with_a_context():
    """One round: the best guess at the prior is any arm, and the rewards of both are alike."""
    policy = make_policy("bayes-optimal", IN_CONTEXT, horizon=1)
    assert policy.value == pytest.approx(2.5 / 3)
    regret, error = policy.expected_regret(200_000, rng=0)
    rows = np.random.default_rng(0).dirichlet([1, 1, 1], size=(200_000, 2)) @ [-1, 0.5, 3]
    best = rows.max(axis=1)
    tolerance = 5 * np.hypot(error, best.std() / np.sqrt(200_000))
    assert abs(regret - (best.mean() - 2.5 / 3)) < tolerance


@pytest.mark.slow
@pytest.mark.parametrize(("name", "horizon"), [("task1", 6), ("context", 4)])
def test_it_brings_what_it_claims(name, horizon):
    """2,000 worlds from the prior, played to the end: the mean of the total true mean rewards is
    within four standard errors of the value, a false alarm of 6e-5 each."""
    problem = tiny(name)
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


# -- limits ---------------------------------------------------------------------------------------


def test_only_what_matters_is_in_the_state():
    assert planning.relevant_variables(TWO_ARMS) == ("Y",)
    assert planning.relevant_variables(IN_CONTEXT) == ("C", "Y")
    assert planning.relevant_variables(load_problem("task1")) == ("X", "Y", "Z")
    assert planning.relevant_variables(BY_HAND) == ("P", "V", "X", "Y")
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=5)
    assert [len(x) for x in policy._plan.keys] == [1, 4, 10, 20, 35]


def test_ties_go_to_the_first_arm():
    policy = make_policy("bayes-optimal", TWO_ARMS, horizon=40)
    assert str(policy.decide(rng=0).arm) == "do(X=0)"
    assert "expected to bring" in str(policy.decide(rng=0)) and "40 rounds" in str(
        policy.decide(rng=0)
    )


def test_it_says_when_a_problem_is_too_large():
    for name, horizon, estimate in (
        ("task1", 11, "5.31e.06"),
        ("task3", 10**6, "1e.300"),
        ("insurance", 1, "2.72e.11"),
    ):
        with pytest.raises(DowiseError, match=f"takes up to {estimate} states.* shorten"):
            make_policy("bayes-optimal", load_problem(name), horizon=horizon)
    with pytest.raises(DowiseError, match="max_states is 100"):
        make_policy("bayes-optimal", TWO_ARMS, horizon=20, max_states=100)


def test_no_round_after_the_last_and_no_missing_value():
    policy = make_policy("bayes-optimal", load_problem("task1"), horizon=2)
    with pytest.raises(DowiseError, match="no value for Z: .*X, Y, Z"):
        policy.observe("do(X=1)", {"Y": 1})
    for _ in range(2):
        policy.decide(rng=0)
        policy.observe("do(X=1)", {"Y": 1, "Z": 0})
    with pytest.raises(DowiseError, match="horizon of 2 rounds is over"):
        policy.decide(rng=0)
    with pytest.raises(DowiseError, match="horizon of 2 rounds is over"):
        policy.observe("do(X=1)", {"Y": 1, "Z": 0})
    policy = make_policy("bayes-optimal", load_problem("task1"), horizon=2)
    policy.belief.update("do()", {"Z": 1})
    with pytest.raises(DowiseError, match="no play of this problem's arms can show"):
        policy.decide(rng=0)
    for bad in ({"horizon": 0}, {"horizon": 2.5}, {"horizon": 3, "max_states": True}):
        with pytest.raises(DowiseError, match="must be a whole number"):
            make_policy("bayes-optimal", load_problem("task1"), **bad)


@pytest.mark.parametrize("edges", ["X -> Y; X <-> Y!", "X -> Y; X <-> Y", "X ?-> Y"])
def test_hidden_causes_and_doubtful_edges_are_refused(edges):
    with pytest.raises(DowiseError, match="hidden common causes or doubtful edges, here"):
        make_policy("bayes-optimal", Problem(CausalGraph.parse(edges), "Y"), horizon=3)
    harmless = Problem(CausalGraph.parse("X -> Y -> W; Y <-> W"), "Y")
    assert make_policy("bayes-optimal", harmless, horizon=3).value > 1.5
