"""What stands around the play of a trial: the same as its obvious twins, and little of it."""

import sys

import numpy as np
import pytest
from support.simulation_times import rest_and_play

from dowise import Environment, Problem, load_problem, make_environment, make_policy, simulate
from dowise._core.rng import stream
from dowise.environments import WorldOptions, resolve_worlds
from dowise.environments.cpts import random_cpts
from dowise.simulation.run_directory import CodedStrings
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


def test_a_cheap_trial_needs_few_calls_beside_its_play():
    """A call costs about as much as a round of `ucb`, and each trial has as many anew."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    def race(trials):
        nonlocal calls
        calls = 0
        sys.setprofile(count)
        try:
            simulate(["task1"], ["ucb"], horizon=1000, trials=trials)
        finally:
            sys.setprofile(None)
        return calls

    race(20)  # loads what is needed
    assert (race(120) - race(20)) / 100 < 75


@pytest.mark.slow
def test_what_stands_around_the_play_of_a_cheap_race_is_about_as_long():
    """Results written, verified and read included; alone on the machine it is no longer."""
    rest, play = rest_and_play("task1", "ucb", times=20, horizon=1000, trials=500)
    assert rest < 1.5 * play


@pytest.mark.parametrize("concentration", [1.0, 0.2])
@pytest.mark.parametrize("seed", range(20))
def test_cpts_are_those_that_dirichlet_draws(concentration, seed):
    rng = np.random.default_rng(seed)
    shapes = {f"V{i}": tuple(rng.integers(2, 14, rng.integers(1, 4)).tolist()) for i in range(5)}
    found = random_cpts(shapes, [np.random.default_rng(s) for s in (seed, 99)], concentration)
    source = np.random.default_rng(seed)
    for name, (*parents, size) in shapes.items():
        wanted = source.dirichlet(np.full(size, concentration), size=parents)
        np.testing.assert_array_equal(found[name][0], wanted)


@pytest.mark.parametrize("most", [2, 3, 300])
@pytest.mark.parametrize("variables", [1, 2, 3])
def test_the_different_contexts_are_those_of_unique(most, variables):
    """With 300 values of three variables there is no place for each."""
    contexts = np.random.default_rng(most).integers(0, most, (50, variables))
    kinds, numbers = _distinct(contexts)
    wanted, places = np.unique(contexts, axis=0, return_inverse=True)
    np.testing.assert_array_equal(kinds, wanted)
    np.testing.assert_array_equal(numbers, places.ravel())


def test_texts_come_in_the_order_of_their_first_rounds():
    positions = np.array([3, 1, 3, 0, 1])
    texts = CodedStrings.from_positions("abcd", positions)
    assert texts.distinct == ["d", "b", "a"]
    assert [texts.distinct[i] for i in texts.codes] == ["abcd"[i] for i in positions]
    alike = CodedStrings.from_positions("abca", np.array([[3, 1], [0, 0]]))
    assert (alike.distinct, alike.codes.tolist()) == (["a", "b"], [[0, 1], [0, 0]])


@pytest.mark.parametrize("every", [1, 7, 100])
@pytest.mark.parametrize("expected", [True, False])
def test_of_trials_the_sums_up_to_some_rounds_are_kept(every, expected):
    """Problems that follow one another may have other arms, or the same in another order."""
    rng, rounds = np.random.default_rng(every), kept_rounds(40, every)
    problems = [load_problem(name) for name in ("task1", "task1", "task3", "task2")]
    problems.insert(2, problems[0])
    collector, trials = TrialCollector([*range(5)], rounds, expected), []
    for problem in problems:
        arms, (regrets, others) = rng.integers(0, len(problem.arms), 40), rng.random((2, 40))
        trials.append(Trial(problem, arms, regrets, others if expected else None))
        collector.add(trials[-1])
    found, kept = collector.result(), rounds - 1
    for i, trial in enumerate(trials):
        np.testing.assert_array_equal(found.regrets[i], trial.regrets.cumsum()[kept])
        names = [found.arms.distinct[number] for number in found.arms.codes[i]]
        assert names == [str(trial.problem.arms[place]) for place in trial.arms[kept]]
        if expected:
            np.testing.assert_array_equal(found.expected[i], trial.expected.cumsum()[kept])
    assert (found.expected is not None) is expected
    assert len({*found.arms.distinct}) == len(found.arms.distinct)


@pytest.mark.parametrize("name", ["task2", "task3", "asia", "alarm", "X -> Y; Z -> X; X <-> Z"])
def test_contexts_are_those_of_the_whole_world_let_run(name):
    problem = Problem(name, reward="Y", context=["Z"]) if " " in name else name
    world = make_environment(problem, seed=2)
    uniforms = np.random.default_rng(4).random((60, len(world.graph)))
    cpts, wanted = world.cpts, []
    for row in uniforms:
        codes = {}
        for variable, uniform in zip(world.graph.topological_order(), row, strict=True):
            shares = cpts[variable][tuple(codes[u] for u in world.graph.parents(variable))]
            codes[variable] = min(int((shares.cumsum() <= uniform).sum()), len(shares) - 1)
        wanted.append([codes[variable] for variable in world.problem.context])
    found = world.draw_contexts(60, np.random.default_rng(4))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare", "asia"])
def test_means_in_several_contexts_are_those_of_each(name):
    world = make_environment(name, seed=3)
    contexts = np.unique(world.draw_contexts(50, np.random.default_rng(0)), axis=0)
    codes = [tuple(row) for row in contexts.tolist()]
    wanted = [world.means(world.problem.context_labels(one)) for one in codes]
    np.testing.assert_array_equal(world.means_in(codes), wanted)


def test_a_drawn_world_is_as_good_as_a_checked_one():
    world = make_environment("task3", seed=5)
    checked = Environment(world.problem, world.cpts, world.graph)
    np.testing.assert_array_equal(checked.means({"C": "0"}), world.means({"C": "0"}))


@pytest.mark.parametrize("lasts", [True, False])
def test_what_goes_with_the_process_is_not_forced_to_the_disk(lasts, tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr("os.fsync", forced.append)
    simulate([load_problem("task1")], ["ucb"], 5, 20, out=tmp_path / "run" if lasts else None)
    assert bool(forced) is lasts


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
def test_trials_prepared_together_are_those_of_each_alone(name, options):
    """Worlds, contexts and means to the last bit, and so what is played."""
    problem = Problem(name, reward="Y", context=["Z"]) if " " in name else name
    worlds, trials = resolve_worlds(problem, options), [3, 4, 9]
    for trial, (world, inputs) in zip(trials, prepare_trials(worlds, 40, 5, trials), strict=True):
        alone = make_world(worlds, 5, trial)
        for variable, table in alone.cpts.items():
            np.testing.assert_array_equal(world.cpts[variable], table)
        if inputs is not None:
            contexts = alone.draw_contexts(40, stream(5, trial, Purpose.CONTEXTS))
            np.testing.assert_array_equal(inputs.kinds[inputs.numbers], contexts)
            means = [alone.means(alone.problem.context_labels(codes)) for codes in inputs.contexts]
            wanted = alone.problem.payoff.regrets(np.array(means))
            np.testing.assert_array_equal(inputs.regrets, wanted)
        made = (lambda p: make_policy("ts", p), 40, 5, trial, 2)
        found, one = run_trial(world, *made, inputs=inputs), run_trial(alone, *made)
        np.testing.assert_array_equal(found.arms, one.arms)
        np.testing.assert_array_equal(found.regrets, one.regrets)
