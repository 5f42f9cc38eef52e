"""Policies in problems with costs, or with rewards to minimise."""

import json

import numpy as np
import pytest
from support.errors import raises_code
from support.payoff_problems import (
    DOUBTFUL_GRAPH,
    GRAPH,
    THREE,
    TWO,
    costly_problem,
    mirrored_pairs,
    mirrored_problems,
)
from support.played_experiments import COIN

from dowise import Environment, Problem, check_policy, make_environment, make_policy, simulate
from dowise.policies import policy_names
from dowise.policies.registry import policy_info
from dowise.simulation import On
from dowise.simulation.trial import run_trial

OPTIONS = {
    "ids": {"samples": 100},
    "arm-ids": {"samples": 100},
    "z2-ts": {"resamples": 30},
    "z2-kl-ucb": {"resamples": 30},
}
LEARNING = [name for name in policy_names() if name not in ("random", "bayes-optimal")]
BY_GRAPH = [name for name in LEARNING if policy_info(name).learns_from == "everything"]
VARIANTS = [
    *((name, OPTIONS.get(name, {})) for name in LEARNING),
    ("ts", {"propensity_samples": 20}),
    ("ts", {"prior": 0.02, "propensity_samples": 20}),  # draws of all values
    ("ids", {"samples": 50, "interval": "optimistic"}),
    ("ids", {"samples": 50, "prior": 0.02}),
    ("bernoulli-ts", {"prior": (0.05, 0.05), "propensity_samples": 20}),
    ("z2-ts", {"propensity_samples": 20}),
]


def decisions(name, problem, options, rounds):
    """Return the decisions of a policy in a world that is the same for similar problems."""
    policy, world = make_policy(name, problem, **options), make_environment(problem, 3)
    rng, choices = np.random.default_rng(0), []
    for t in range(rounds):
        context = world.draw_context(rng)
        decision = policy.decide(context, t)
        policy.observe(decision.arm, world.play(decision.arm, context, rng))
        chances = [] if decision.probabilities is None else decision.probabilities.round(9)
        choices.append((str(decision.arm), *chances))
    return choices


# -- rewards to minimise ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"), [*VARIANTS, ("random", {}), ("bayes-optimal", {"horizon": 9})]
)
def test_policies_decide_as_in_the_mirrored_problem(name, options):
    is_planned = name == "bayes-optimal"
    down, up = mirrored_pairs(THREE) if is_planned else mirrored_problems(THREE, costs={"X": 4})
    rounds = 9 if is_planned else 60
    choices = decisions(name, down, options, rounds)
    assert choices == decisions(name, up, options, rounds)
    maximised = Problem(
        down.graph, "Y", down.context, down.non_manipulable, reward_values=THREE, arms="all"
    )
    assert name == "random" or choices != decisions(name, maximised, options, rounds)


@pytest.mark.parametrize("worth", [TWO, THREE], ids=["two", "three"])
def test_the_best_plan_is_that_of_the_mirrored_problem(worth):
    down, up = (make_policy("bayes-optimal", p, horizon=4) for p in mirrored_pairs(worth))
    assert down.value == -up.value < 4 * np.mean(list(worth.values()))
    assert down.expected_regret(2000, 0) == pytest.approx(up.expected_regret(2000, 0))
    assert down.expected_regret(2000, 0)[0] > 0
    values = [policy.decide(rng=0).figures["values"] for policy in (down, up)]
    assert np.array_equal(values[0], -values[1])


def test_reasons_are_in_the_users_units():
    down = mirrored_pairs({"0": 10.0, "1": 50.0})[0]
    policy = make_policy("kl-ucb", down)
    for arm, y in zip(down.arms, "110", strict=True):
        policy.observe(arm, {"X": 1, "Y": y} | dict(arm))
    assert "mean reward was 10 in 1 play" in policy.decide(rng=0).reason
    # The prior knows only that every arm costs 30 on average.
    reason = make_policy("ids", down).decide(rng=0).reason
    assert 0 < float(reason.split("expected to lose ")[1].split()[0]) < 20


# -- costs --------------------------------------------------------------------------------------


def shares_of_arms(name, options, costs):
    """Return how often each of two arms is played, with mean rewards of .5 and .9."""
    problem = Problem(COIN.graph, "Y", arms=COIN.arms, costs=costs)
    world = Environment(problem, {"X": [0.5, 0.5], "Y": [[0.5, 0.5], [0.1, 0.9]]})
    trial = run_trial(world, lambda p: make_policy(name, p, **options), 300, 3, 0)
    assert (trial.regrets >= 0).all()
    return np.bincount(trial.arms, minlength=2) / 300


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_policies_learn_to_avoid_an_arm_that_is_not_worth_its_cost(name, options):
    assert shares_of_arms(name, options, None)[1] > 0.6
    assert shares_of_arms(name, options, {"do(X=1)": 0.8})[0] > 0.6


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), VARIANTS)
def test_a_cost_of_all_arms_changes_no_decision(name, options):
    """Subtracting a half from a float does not round, so not even ties change."""
    if options.get("interval") == "optimistic":
        pytest.skip("the interval is wider if Δ may be more than 1")
    free, costly = (
        decisions(name, costly_problem(costs={"X": c}, arms=["do(X=0)", "do(X=1)"]), options, 60)
        for c in (0.0, 0.5)
    )
    assert free == costly


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "graph"),
    [*((name, GRAPH) for name in LEARNING), *((name, DOUBTFUL_GRAPH) for name in BY_GRAPH)],
)
def test_compiled_trials_agree_with_single_steps(name, graph):
    minimise = graph is GRAPH
    problem = costly_problem(minimise=minimise, graph=graph)
    world, options = make_environment(problem, 5), OPTIONS.get(name, {})
    compiled, stepped = (make_policy(name, problem, **options) for _ in range(2))
    if compiled.compiled_trial() is None:
        pytest.skip(f"{name} has no compiled loop")
    stepped.compiled_trial = lambda: None
    first, second = (run_trial(world, lambda _, p=p: p, 80, 1, 2) for p in (compiled, stepped))
    np.testing.assert_array_equal(first.arms, second.arms)
    np.testing.assert_array_equal(first.regrets, second.regrets)
    assert json.dumps(compiled.state()) == json.dumps(stepped.state())
    problem = costly_problem(minimise=minimise, costs={"X": 0}, graph=graph)
    free = make_policy(name, problem, **options)
    without = run_trial(make_environment(problem, 5), lambda _: free, 80, 1, 2)
    assert without.arms.tolist() != first.arms.tolist()  # costs make a difference


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ids", "ts", "ucb", "bernoulli-ts", "kl-ucb", "z2-ts"])
def test_policies_keep_their_contract_with_costs(name):
    check_policy(name, rounds=40, problems=[costly_problem(THREE)], **OPTIONS.get(name, {}))


@pytest.mark.parametrize("name", ["ucb", "kl-ucb", "bernoulli-ts"])
def test_figures_are_net_and_reasons_gross(name):
    problem = Problem(COIN.graph, "Y", reward_values={"0": 10, "1": 30}, costs={"do(X=1)": 5})
    policy = make_policy(name, problem)
    for arm in problem.arms:
        for reward in (0, 1, 1, 1):
            policy.observe(arm, {"X": arm.get("X", 0), "Y": reward})
    decision = policy.decide(None, 0, allowed=["do(X=1)"])
    means, index = decision.figures["means"], decision.figures["index"]
    assert means[1] - means[2] == pytest.approx(0.25)
    if name != "bernoulli-ts":
        assert index[1] - index[2] == pytest.approx(0.25)
        assert means[1:].tolist() == [0.75, 0.5]
        assert "mean reward was 20 in 4 plays" in decision.reason


# -- simulations --------------------------------------------------------------------------------

SIMULATED = ["ts", "ids", "ucb", "bernoulli-ts", "kl-ucb"]


@pytest.mark.slow
def test_regrets_are_net_and_equal_in_mirrored_problems():
    frames = [
        simulate([("p", problem)], SIMULATED, 40, 3).frame()
        for problem in mirrored_problems(THREE, costs={"X": 50})
    ]
    assert frames[0].equals(frames[1])
    steps = frames[0].groupby(["policy", "trial"], observed=True)["regret"].diff().dropna()
    assert (steps >= 0).all() and (steps > 1).any()


def test_a_policy_with_a_problem_of_other_costs_is_refused():
    with raises_code("wrong-problem", "in its own problem and 0"):
        simulate([("p", costly_problem())], [On(costly_problem(costs={"X": 0.25}), "ts")], 5, 1)
