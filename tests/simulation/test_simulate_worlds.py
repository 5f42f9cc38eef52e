"""Simulations in given worlds: environments, networks with their own numbers, and custom worlds."""

import importlib
import json
import pickle
import sys
import threading

import numpy as np
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Environment, Problem, make_environment, simulate
from dowise.environments import (
    FixedWorld,
    WorldOptions,
    front_door_world,
    network_world,
    resolve_worlds,
)
from dowise.errors import UserCodeError
from dowise.simulation import spec as specs
from dowise.simulation.trial import run_trial

QUICK = {"horizon": 30, "trials": 4}


class CustomWorld:
    """A world that has only the methods of the protocol, and the numbers of an environment."""

    def __init__(self, world):
        self._world = world

    @property
    def problem(self):
        return self._world.problem

    def draw_context(self, rng):
        return self._world.draw_context(rng)

    def play(self, arm, context, rng):
        return self._world.play(arm, context, rng)

    def means(self, context=None):
        return self._world.means(context)

    def best_arm(self, context=None):
        return self._world.best_arm(context)

    def regret(self, arm, context=None):
        return self._world.regret(arm, context)


class OtherWorld(CustomWorld):
    """Another class with the same numbers."""


class WorldInCents(CustomWorld):
    def means(self, context=None):
        return 100 * super().means(context)


class LockedWorld(CustomWorld):
    """A world that can't be pickled."""

    def __init__(self, world):
        super().__init__(world)
        self.lock = threading.Lock()


# -- playing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["task1", "task3"])  # without and with context
def test_custom_world_is_played_like_an_environment_with_its_numbers(name):
    world = make_environment(name, 1)
    policies = ["ids", "ts", "ucb", "kl-ucb", "bernoulli-ts"]
    options = {"options": {"ids": {"samples": 50}}, "observational": 3, "seed": 3}
    worlds = [("environment", world), ("custom", CustomWorld(world))]
    frame = simulate(worlds, policies, horizon=40, trials=12, **options).frame()
    environment, custom = (
        frame[frame.problem == label].drop(columns="problem").reset_index(drop=True)
        for label in ("environment", "custom")
    )
    assert environment.equals(custom) and len(environment) == 5 * 12 * 40


def test_given_world_is_the_same_in_every_trial():
    world = make_environment("task1", 1)
    frame = simulate([world], ["random"], horizon=200, trials=3).frame()
    steps = frame.groupby("trial")["regret"].diff().dropna().round(9)
    assert {*steps} == {round(float(x), 9) for x in world.means().max() - world.means()}
    assert frame.groupby("trial")["arm"].agg(tuple).nunique() == 3


def test_regret_is_in_the_units_of_the_world():
    world = make_environment("task1", 1)
    worlds = [("plain", world), ("cents", WorldInCents(world))]
    final = simulate(worlds, ["ts"], **QUICK).final()
    np.testing.assert_allclose(final.loc["cents"], 100 * final.loc["plain"])


class FixedArm:
    def __init__(self, problem, arm):
        self.problem, self._arm = problem, problem.arms[arm]

    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        return type("Choice", (), {"arm": self._arm})

    def observe(self, arm, outcome):
        pass


def test_regrets_of_a_trial_in_a_custom_world_are_those_of_its_arm():
    world = make_environment("task2", 4)
    trial = run_trial(CustomWorld(world), lambda p: FixedArm(p, 2), 20, 0, 0)
    assert (trial.arms == 2).all()
    regrets = {round(world.regret(world.problem.arms[2], {"C": c}), 12) for c in "01"}
    assert {*trial.regrets.round(12).tolist()} <= regrets


def test_overridden_play_is_called():
    class CountingWorld(Environment):
        plays = 0

        def play(self, arm, context, rng):
            CountingWorld.plays += 1
            return super().play(arm, context, rng)

    environment = make_environment("task1", 1)
    world = CountingWorld(environment.problem, environment.cpts)
    final = simulate([world, ("environment", environment)], ["ucb"], **QUICK).final()
    assert CountingWorld.plays == 30 * 4
    np.testing.assert_array_equal(final.loc["task1"], final.loc["environment"])


def test_worlds_with_hidden_causes_run_with_two_workers():
    problem = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; C <-> Y"), "Y", context="C")
    worlds = [make_environment(problem, 0), ("front door", front_door_world())]
    worlds += [("custom", CustomWorld(worlds[0]))]
    result = simulate(worlds, ["ucb", "z2-ts"], horizon=30, trials=11)
    assert set(result.frame()["problem"]) == {"problem 1", "front door", "custom"}
    parallel = simulate(worlds, ["ucb", "z2-ts"], horizon=30, trials=11, workers=2)
    assert parallel.frame().equals(result.frame())


def test_network_is_simulated_with_its_own_numbers():
    world, read = network_world("asia"), Environment.from_bif("asia")
    assert world.problem.description and world.problem.arms == read.problem.arms
    final = simulate([("world", world), ("read", read)], ["ts"], **QUICK).final()
    np.testing.assert_array_equal(final.loc["world"], final.loc["read"])


def test_strong_worlds_and_sampled_edges_have_other_results(tmp_path):
    problem = Problem(CausalGraph.parse("X -> Y; Z ?-> Y; X <-> Y"), "Y", name="doubtful")
    final = simulate([problem], ["ucb"], **QUICK, out=tmp_path).final()
    for options in ({"strong": True}, {"edges": "prior"}):
        other = simulate([problem], ["ucb"], **QUICK, **options, out=tmp_path).final()
        assert not other.equals(final)
    world = make_environment(problem, 0)
    with raises_code("unused-option", "strong"):
        simulate([world], ["ucb"], strong=True, **QUICK)


# -- errors ----------------------------------------------------------------------------------------


def test_system_exit_of_a_world_is_an_error():
    class ExitingWorld(CustomWorld):
        def play(self, *_arguments):
            raise SystemExit(0)

    with raises_code(
        "user-code-failed",
        "ts on task1, trial 0: SystemExit: 0 (",
        "test_simulate_worlds.py, line ",
        error=UserCodeError,
    ):
        simulate([ExitingWorld(make_environment("task1", 1))], ["ts"], **QUICK)


def test_system_exit_of_a_signal_handler_ends_the_program(monkeypatch):
    def run_trial(*_arguments, **_options):
        raise SystemExit(0)

    monkeypatch.setattr(specs, "run_trial", run_trial)
    with pytest.raises(SystemExit):
        simulate(["task1"], ["ts"], **QUICK)


def test_invalid_world_is_an_error_with_the_missing_part():
    world = make_environment("task1", 1)
    without_means = type("WithoutMeans", (CustomWorld,), {"means": None})(world)
    with raises_code("invalid-type", "means"):
        simulate([without_means], ["ts"], **QUICK)
    with raises_code("invalid-type", "problem"):
        simulate([type("WithoutProblem", (), {"problem": 3})()], ["ts"], **QUICK)
    short = type("ShortMeans", (CustomWorld,), {"means": lambda *_: np.zeros(2)})(world)
    with raises_code("invalid-shape", "ts on task1, trial 0", "3 arms"):
        simulate([short], ["ts"], **QUICK)


def test_worlds_of_one_problem_need_labels():
    worlds = [make_environment("task1", 1), make_environment("task1", 2)]
    with raises_code("duplicate-name", "'task1'"):
        simulate(worlds, ["ts"], **QUICK)
    result = simulate([("one", worlds[0]), ("two", worlds[1]), "task1"], ["ts"], **QUICK)
    assert [*dict.fromkeys(result.frame()["problem"])] == ["one", "two", "task1"]


def test_world_that_can_not_be_pickled_runs_in_this_process_only(tmp_path):
    world = LockedWorld(make_environment("task1", 1))
    assert len(simulate([world], ["ts"], **QUICK).frame()) == 120
    with raises_code("not-picklable", "'task1'", "workers=1"):
        simulate([world], ["ts"], workers=2, out=tmp_path / "run", **QUICK)
    assert not (tmp_path / "run").exists()


# -- identity --------------------------------------------------------------------------------------


def test_pickled_world_is_equal():
    world = make_environment("task3", 5)
    unpickled = pickle.loads(pickle.dumps(FixedWorld(world)))
    assert unpickled.spec() == FixedWorld(world).spec()
    context = world.draw_context(0)
    np.testing.assert_array_equal(unpickled.world.means(context), world.means(context))
    custom = pickle.loads(pickle.dumps(FixedWorld(WorldInCents(world))))
    assert type(custom.world) is WorldInCents


def with_one_changed_bit(world):
    cpts = world.cpts
    cpts["Z"][0] = np.nextafter(cpts["Z"][0], 1)
    return Environment(world.problem, cpts)


def test_specs_of_worlds_differ_unless_the_worlds_are_equal():
    world = make_environment("task1", 1)
    worlds = [
        world,
        CustomWorld(world),
        make_environment("task1", 2),
        with_one_changed_bit(world),
        OtherWorld(world),
        WorldInCents(world),
        CustomWorld(make_environment("task1", 2)),
        world.problem,
    ]
    texts = [json.dumps(resolve_worlds(x).spec()) for x in worlds]
    assert len({*texts}) == len(texts)
    equal = [make_environment("task1", 1), CustomWorld(make_environment("task1", 1))]
    assert [json.dumps(resolve_worlds(x).spec()) for x in equal] == texts[:2]
    assert 'reward = "Y"' in resolve_worlds(world).spec()["problem"]
    assert resolve_worlds(front_door_world()).spec() == resolve_worlds(front_door_world()).spec()
    names = resolve_worlds("chordal-10-0.1"), WorldOptions(strong=True)
    assert names[0].spec() != resolve_worlds(*("chordal-10-0.1", names[1])).spec()


def test_run_in_one_world_is_not_resumed_in_another(tmp_path):
    out, world = tmp_path / "run", make_environment("task1", 1)
    first = simulate([world], ["ts"], out=out, **QUICK).frame()
    again = simulate([make_environment("task1", 1)], ["ts"], out=out, **QUICK).frame()
    assert again.equals(first)
    for other in (make_environment("task1", 2), CustomWorld(world), world.problem):
        files = {*(out / "results").iterdir()}
        frame = simulate([other], ["ts"], out=out, **QUICK).frame()
        assert frame.equals(simulate([other], ["ts"], **QUICK).frame())
        assert len({*(out / "results").iterdir()} - files) == 1


def test_world_with_a_changed_base_class_is_another_world(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "custom_world.py").write_text(
        "from custom_world_base import Base\nclass World(Base):\n    pass\n"
    )
    base = "from dowise import Environment\nclass Base(Environment):\n    pass\n"
    environment = make_environment("task1", 1)

    def simulate_with(text):
        (tmp_path / "custom_world_base.py").write_text(text)
        for name in ("custom_world_base", "custom_world"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        kind = importlib.import_module("custom_world").World
        world = kind(environment.problem, environment.cpts)
        return simulate([world], ["ts"], **QUICK, out=tmp_path / "run").frame()

    assert simulate_with(base).equals(simulate_with(base))
    simulate_with(base + "    extra = 1\n")
    assert len([*(tmp_path / "run" / "results").iterdir()]) == 2


def test_impossible_contexts_do_not_prevent_a_digest():
    problem = Problem(CausalGraph.parse("X -> Y; C <-> Y"), reward="Y", context="C")
    cpts = {"U": [1, 0], "C": [[1, 0], [0, 1]], "X": [0.5, 0.5], "Y": np.full((2, 2, 2), 0.5)}
    world = Environment(problem, cpts, CausalGraph.parse("U -> C; U -> Y; X -> Y"))
    assert not world.can_occur({"C": 1})
    assert len(resolve_worlds(CustomWorld(world)).spec()["means"]) == 64
    assert simulate([CustomWorld(world)], ["ucb"], **QUICK).final().notna().all().all()
