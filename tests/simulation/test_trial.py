"""Trials: their inputs equal slow twins, and little time is spent outside of the rounds."""

import sys

import numpy as np
import pytest
from support.simulation_times import time_outside_and_inside_rounds

from dowise import Environment, Problem, load_problem, make_environment, make_policy, simulate
from dowise._core.rng import stream
from dowise.environments import WorldOptions, resolve_worlds
from dowise.environments.cpts import random_cpts
from dowise.simulation.trial import (
    Purpose,
    Trial,
    TrialCollector,
    _distinct,
    kept_rounds,
    make_world,
    prepare_trials,
    run_trial,
)


def test_quick_trials_make_few_python_calls():
    """A call costs about as much as a round of `ucb`."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    def count_calls(trials):
        nonlocal calls
        calls = 0
        sys.setprofile(count)
        try:
            simulate(["task1"], ["ucb"], horizon=1000, trials=trials)
        finally:
            sys.setprofile(None)
        return calls

    count_calls(20)  # loads the kernels
    assert (count_calls(120) - count_calls(20)) / 100 < 75


@pytest.mark.slow
def test_most_time_is_spent_in_rounds():
    """Writing, verifying and reading results included; on an idle machine the ratio is below 1."""
    outside, inside = time_outside_and_inside_rounds(
        "task1", "ucb", times=20, horizon=1000, trials=500
    )
    assert outside < 1.5 * inside


# -- random numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [1.0, 0.2])
@pytest.mark.parametrize("seed", range(5))
def test_random_cpts_equal_dirichlet_draws(concentration, seed):
    rng = np.random.default_rng(seed)
    shapes = {f"V{i}": tuple(rng.integers(2, 14, rng.integers(1, 4)).tolist()) for i in range(5)}
    cpts = random_cpts(shapes, [np.random.default_rng(s) for s in (seed, 99)], concentration)
    source = np.random.default_rng(seed)
    for name, (*parents, size) in shapes.items():
        expected = source.dirichlet(np.full(size, concentration), size=parents)
        np.testing.assert_array_equal(cpts[name][0], expected)


# -- inputs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [2, 3, 300])  # too many combinations for a dense table
@pytest.mark.parametrize("variables", [1, 2, 3])
def test_distinct_contexts_equal_those_of_numpy(values, variables):
    contexts = np.random.default_rng(values).integers(0, values, (50, variables))
    distinct, rows = _distinct(contexts)
    expected, expected_rows = np.unique(contexts, axis=0, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(rows, expected_rows.ravel())


def problem_from(name):
    return Problem(name, reward="Y", context=["Z"]) if " " in name else name


@pytest.mark.parametrize("name", ["task2", "task3", "asia", "alarm", "X -> Y; Z -> X; X <-> Z"])
def test_contexts_equal_those_of_whole_worlds(name):
    world = make_environment(problem_from(name), seed=2)
    uniforms = np.random.default_rng(4).random((60, len(world.graph)))
    cpts, expected = world.cpts, []
    for row in uniforms:
        codes = {}
        for variable, uniform in zip(world.graph.topological_order(), row, strict=True):
            shares = cpts[variable][tuple(codes[u] for u in world.graph.parents(variable))]
            codes[variable] = min(int((shares.cumsum() <= uniform).sum()), len(shares) - 1)
        expected.append([codes[variable] for variable in world.problem.context])
    contexts = world.draw_contexts(60, np.random.default_rng(4))
    np.testing.assert_array_equal(contexts, expected)


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare", "asia"])
def test_means_of_several_contexts_equal_those_of_each(name):
    world = make_environment(name, seed=3)
    contexts = np.unique(world.draw_contexts(50, np.random.default_rng(0)), axis=0)
    codes = [tuple(row) for row in contexts.tolist()]
    expected = [world.means(world.problem.context_labels(context)) for context in codes]
    np.testing.assert_array_equal(world.means_in(codes), expected)


def test_sampled_world_equals_a_validated_one():
    world = make_environment("task3", seed=5)
    validated = Environment(world.problem, world.cpts, world.graph)
    np.testing.assert_array_equal(validated.means({"C": "0"}), world.means({"C": "0"}))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("task1", WorldOptions()),
        ("task3", WorldOptions(strong=True)),
        ("healthcare", WorldOptions()),
        ("X -> Y; Z -> X; Z ?-> Y; X <-> Z", WorldOptions(edges="prior")),
        ("X -> Y; Z -> X; X <-> Z", WorldOptions(hidden_values=3)),
        ("chordal-6-0.4", WorldOptions()),
        ("asia", WorldOptions()),
    ],
)
def test_trials_prepared_together_equal_single_trials(name, options):
    worlds, trials = resolve_worlds(problem_from(name), options), [3, 4, 9]
    for trial, (world, inputs) in zip(trials, prepare_trials(worlds, 40, 5, trials), strict=True):
        single = make_world(worlds, 5, trial)
        for variable, table in single.cpts.items():
            np.testing.assert_array_equal(world.cpts[variable], table)
        if inputs is not None:
            contexts = single.draw_contexts(40, stream(5, trial, Purpose.CONTEXTS))
            np.testing.assert_array_equal(inputs.distinct[inputs.rows], contexts)
            labels = map(single.problem.context_labels, inputs.contexts)
            means = np.array([single.means(context) for context in labels])
            regrets = single.problem.payoff.regrets(means)
            np.testing.assert_array_equal(inputs.regrets, regrets)
        arguments = (lambda p: make_policy("ts", p), 40, 5, trial, 2)
        prepared, expected = (
            run_trial(world, *arguments, inputs=inputs),
            run_trial(single, *arguments),
        )
        np.testing.assert_array_equal(prepared.arms, expected.arms)
        np.testing.assert_array_equal(prepared.regrets, expected.regrets)


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [1, 7, 100])
@pytest.mark.parametrize("expected", [True, False])
def test_collector_keeps_cumulative_regrets_and_arms(every, expected):
    """Consecutive problems may have other arms, or the same arms in another order."""
    rng, rounds = np.random.default_rng(every), kept_rounds(40, every)
    problems = [load_problem(name) for name in ("task1", "task1", "task3", "task2")]
    problems.insert(2, problems[0])
    collector, trials = TrialCollector([*range(5)], rounds, expected), []
    for problem in problems:
        arms, (regrets, gaps) = rng.integers(0, len(problem.arms), 40), rng.random((2, 40))
        trials.append(Trial(problem, arms, regrets, gaps if expected else None))
        collector.add(trials[-1])
    result, positions = collector.result(), rounds - 1
    for i, trial in enumerate(trials):
        np.testing.assert_array_equal(result.regrets[i], trial.regrets.cumsum()[positions])
        names = [result.arms.distinct[number] for number in result.arms.codes[i]]
        assert names == [str(trial.problem.arms[position]) for position in trial.arms[positions]]
        if expected:
            np.testing.assert_array_equal(result.expected[i], trial.expected.cumsum()[positions])
    assert (result.expected is not None) is expected
    assert len({*result.arms.distinct}) == len(result.arms.distinct)
