"""What stands around the play of a trial: the same as its obvious twins, and little of it."""

import sys

import numpy as np
import pytest

from dowise import Environment, load_problem, make_environment, simulate
from dowise.environments.cpts import random_cpts
from dowise.simulation.results import Texts
from dowise.simulation.trial import _distinct


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
    assert (race(120) - race(20)) / 100 < 300


@pytest.mark.parametrize("concentration", [1.0, 0.2])
@pytest.mark.parametrize("seed", range(20))
def test_cpts_are_those_that_dirichlet_draws(concentration, seed):
    rng = np.random.default_rng(seed)
    shapes = {f"V{i}": tuple(rng.integers(2, 14, rng.integers(1, 4)).tolist()) for i in range(5)}
    found = random_cpts(shapes, np.random.default_rng(seed), concentration)
    source = np.random.default_rng(seed)
    for name, (*parents, size) in shapes.items():
        wanted = source.dirichlet(np.full(size, concentration), size=parents)
        np.testing.assert_array_equal(found[name], wanted)


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
    texts = Texts.of("abcd", positions)
    assert texts.different == ["d", "b", "a"]
    assert [texts.different[i] for i in texts.numbers] == ["abcd"[i] for i in positions]


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
    assert (len(forced) > 2) is lasts  # the manifest and its folder are, always
