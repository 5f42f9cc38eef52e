"""Races in worlds that are given: ours, a network's own numbers, or somebody else's."""

import importlib
import json
import pickle
import sys
import threading

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Environment, Problem, make_environment, simulate
from dowise.environments import (
    FixedWorld,
    WorldOptions,
    front_door_world,
    network_world,
    resolve_worlds,
)
from dowise.errors import UserCodeError
from dowise.simulation import spec
from dowise.simulation.trial import run_trial

QUICK = {"horizon": 40, "trials": 12, "seed": 3, "options": {"ids": {"samples": 50}}}
QUICK_TS = {"horizon": 30, "trials": 4}
POLICIES = ["ids", "ts", "ucb", "kl-ucb", "bernoulli-ts"]


class Foreign:
    """A world that has the protocol and nothing else; its numbers are another's."""

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


class Scaled(Foreign):
    """The same world whose means are in cents."""

    def means(self, context=None):
        return 100 * super().means(context)


class Locked(Foreign):
    """A world that holds what can't be pickled."""

    def __init__(self, world):
        super().__init__(world)
        self.lock = threading.Lock()


@pytest.mark.parametrize("name", ["task1", "task3"])
def test_a_foreign_world_is_played_like_an_environment_with_its_numbers(name):
    """task1 has no context, task3 has two variables of it; records are shown first."""
    world = make_environment(name, 1)
    spec = {**QUICK, "observational": 3}
    frame = simulate([("ours", world), ("theirs", Foreign(world))], POLICIES, **spec).frame()
    ours, theirs = (
        frame[frame.problem == label].drop(columns="problem").reset_index(drop=True)
        for label in ("ours", "theirs")
    )
    assert ours.equals(theirs) and len(ours) == 5 * 12 * 40


def test_one_world_is_the_same_in_every_trial():
    world = make_environment("task1", 1)
    frame = simulate([world], ["random"], horizon=200, trials=3).frame()
    steps = frame.groupby("trial")["regret"].diff().dropna().round(9)
    possible = {round(float(x), 9) for x in world.means().max() - world.means()}
    assert {*steps} == possible
    assert frame.groupby("trial")["arm"].agg(tuple).nunique() == 3


def test_regret_is_in_the_units_of_the_world():
    world = make_environment("task1", 1)
    final = simulate([("plain", world), ("cents", Scaled(world))], ["ts"], **QUICK_TS).final()
    np.testing.assert_allclose(final.loc["cents"], 100 * final.loc["plain"])


def test_a_subclass_with_a_play_of_its_own_is_not_played_by_a_compiled_loop():
    class Counted(Environment):
        plays = 0

        def play(self, arm, context, rng):
            Counted.plays += 1
            return super().play(arm, context, rng)

    drawn = make_environment("task1", 1)
    world = Counted(drawn.problem, drawn.cpts)
    final = simulate([world, ("as it is", drawn)], ["ucb"], **QUICK_TS).final()
    assert Counted.plays == 30 * 4
    np.testing.assert_array_equal(final.loc["task1"], final.loc["as it is"])


def test_hidden_causes_and_two_workers():
    problem = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; C <-> Y"), "Y", context="C")
    worlds = [make_environment(problem, 0), ("front", front_door_world())]
    worlds += [("theirs", Foreign(worlds[0]))]
    alone = simulate(worlds, ["ucb", "z2-ts"], horizon=30, trials=11)
    assert set(alone.frame()["problem"]) == {"problem 1", "front", "theirs"}
    two = simulate(worlds, ["ucb", "z2-ts"], horizon=30, trials=11, workers=2)
    assert two.frame().equals(alone.frame())


def test_a_world_that_leaves_is_an_error_as_any_other():
    class Leaving(Foreign):
        def play(self, *_arguments):
            raise SystemExit(0)

    with pytest.raises(
        UserCodeError, match=r"ts on task1, trial 0: SystemExit: 0 \(.*, line \d+\)"
    ):
        simulate([Leaving(make_environment("task1", 1))], ["ts"], **QUICK_TS)


def test_a_program_may_leave_in_the_middle_of_a_race_of_ours(monkeypatch):
    """By a signal handler of its own, say: then it was not a policy that left."""

    def leave(*_arguments, **_options):
        raise SystemExit(0)

    monkeypatch.setattr(spec, "run_trial", leave)
    with pytest.raises(SystemExit):
        simulate(["task1"], ["ts"], **QUICK_TS)


def test_a_world_whose_base_class_changed_is_another(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "world_of_mine.py").write_text(
        "from base_world_of_mine import Base\nclass World(Base):\n    pass\n"
    )
    base = "from dowise import Environment\nclass Base(Environment):\n    pass\n"
    drawn, spec = make_environment("task1", 1), {**QUICK_TS, "out": tmp_path / "run"}

    def once_more(text):
        (tmp_path / "base_world_of_mine.py").write_text(text)
        for name in ("base_world_of_mine", "world_of_mine"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        world = importlib.import_module("world_of_mine").World(drawn.problem, drawn.cpts)
        return simulate([world], ["ts"], **spec)

    done = once_more(base).frame()
    assert once_more(base).frame().equals(done)
    once_more(base + "    extra = 1\n")
    assert len([*(tmp_path / "run" / "results").iterdir()]) == 2


def test_a_world_travels_as_what_it_is_made_of():
    world = make_environment("task3", 5)
    sent = pickle.loads(pickle.dumps(FixedWorld(world)))
    assert sent.spec() == FixedWorld(world).spec()
    context = world.draw_context(0)
    np.testing.assert_array_equal(sent.world.means(context), world.means(context))
    theirs = pickle.loads(pickle.dumps(FixedWorld(Scaled(world))))
    assert type(theirs.world) is Scaled


def test_what_can_not_travel_stays_at_home(tmp_path):
    world = Locked(make_environment("task1", 1))
    assert len(simulate([world], ["ts"], **QUICK_TS).frame()) == 120
    complaint = "the world 'task1' can't be sent to other processes .*pickle.*workers=1"
    with pytest.raises(DowiseError, match=complaint):
        simulate([world], ["ts"], workers=2, out=tmp_path / "run", **QUICK_TS)
    assert not (tmp_path / "run").exists()


def nudged(world):
    """The world with one CPT entry moved by a single bit."""
    cpts = world.cpts
    cpts["Z"][0] = np.nextafter(cpts["Z"][0], 1)
    return Environment(world.problem, cpts)


class Other(Foreign):
    """The same numbers, another class."""


def test_the_manifest_tells_worlds_apart():
    world = make_environment("task1", 1)
    given = [world, make_environment("task1", 2), nudged(world), Foreign(world), Other(world),
             Scaled(world), Foreign(make_environment("task1", 2)), world.problem]  # fmt: skip
    specs = [json.dumps(resolve_worlds(one).spec()) for one in given]
    assert len({*specs}) == len(specs)
    again = [make_environment("task1", 1), Foreign(make_environment("task1", 1))]
    assert [json.dumps(resolve_worlds(one).spec()) for one in again] == [specs[0], specs[3]]
    assert 'reward = "Y"' in resolve_worlds(world).spec()["problem"]
    hidden = front_door_world()
    assert resolve_worlds(hidden).spec() == resolve_worlds(front_door_world()).spec()


def test_a_run_in_one_world_does_not_go_on_in_another(tmp_path):
    out, world = tmp_path / "run", make_environment("task1", 1)
    first = simulate([world], ["ts"], out=out, **QUICK_TS).frame()
    assert simulate([make_environment("task1", 1)], ["ts"], out=out, **QUICK_TS).frame().equals(
        first
    )  # fmt: skip
    for other in (make_environment("task1", 2), Foreign(world), world.problem):
        files = {*(out / "results").iterdir()}
        found = simulate([other], ["ts"], out=out, **QUICK_TS).frame()
        assert found.equals(simulate([other], ["ts"], **QUICK_TS).frame())
        assert len({*(out / "results").iterdir()} - files) == 1


def test_contexts_that_can_not_occur_are_no_obstacle_to_a_digest():
    problem = Problem(CausalGraph.parse("X -> Y; C <-> Y"), reward="Y", context="C")
    cpts = {"U": [1, 0], "C": [[1, 0], [0, 1]], "X": [0.5, 0.5], "Y": np.full((2, 2, 2), 0.5)}
    world = Environment(problem, cpts, CausalGraph.parse("U -> C; U -> Y; X -> Y"))
    assert not world.can_occur({"C": 1})
    assert len(resolve_worlds(Foreign(world)).spec()["means"]) == 64
    assert simulate([Foreign(world)], ["ucb"], **QUICK_TS).final().notna().all().all()


def test_what_is_no_world_is_said_with_what_it_lacks():
    world = make_environment("task1", 1)
    silent = type("Silent", (Foreign,), {"means": None})(world)
    needed = "it needs a method means \\(see dowise.check_environment\\)"
    with pytest.raises(DowiseError, match=needed):
        simulate([silent], ["ts"], **QUICK_TS)
    with pytest.raises(DowiseError, match="it needs an attribute problem that is a Problem"):
        simulate([type("Odd", (), {"problem": 3})()], ["ts"], **QUICK_TS)
    with pytest.raises(DowiseError, match="or a world that passes check_environment"):
        simulate([("a", "task1", 3)], ["ts"], **QUICK_TS)
    short = type("Short", (Foreign,), {"means": lambda *_: np.zeros(2)})(world)
    with pytest.raises(DowiseError, match="ts on task1, trial 0: means returned .* 3 arms"):
        simulate([short], ["ts"], **QUICK_TS)


def test_two_worlds_of_one_problem_need_names():
    worlds = [make_environment("task1", 1), make_environment("task1", 2)]
    with pytest.raises(DowiseError, match="two problems are called 'task1'.*in Python pairs"):
        simulate(worlds, ["ts"], **QUICK_TS)
    found = simulate([("one", worlds[0]), ("two", worlds[1]), "task1"], ["ts"], **QUICK_TS)
    assert [*dict.fromkeys(found.frame()["problem"])] == ["one", "two", "task1"]


def test_a_network_is_raced_with_its_own_numbers():
    """--world bif and Environment.from_bif are the same world: the same regrets."""
    own, read = network_world("asia"), Environment.from_bif("asia")
    assert own.problem.description and own.problem.arms == read.problem.arms
    race = simulate([("own", own), ("read", read)], ["ts"], **QUICK_TS).final()
    np.testing.assert_array_equal(race.loc["own"], race.loc["read"])


def test_a_trial_in_a_foreign_world_has_the_regrets_of_its_means():
    world = make_environment("task2", 4)
    played = run_trial(Foreign(world), lambda p: Fixed(p, 2), 20, 0, 0)
    assert (played.arms == 2).all()
    costs = {round(world.regret(world.problem.arms[2], {"C": c}), 12) for c in "01"}
    assert {*played.regrets.round(12).tolist()} <= costs


class Fixed:
    """Always the same arm."""

    def __init__(self, problem, arm):
        self.problem, self._arm = problem, problem.arms[arm]

    def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
        return type("Choice", (), {"arm": self._arm})

    def observe(self, arm, outcome):
        pass


def test_strong_worlds_and_edges_by_their_priors_are_other_races(tmp_path):
    problem = Problem(CausalGraph.parse("X -> Y; Z ?-> Y; X <-> Y"), "Y", name="doubtful")
    race = {**QUICK_TS, "out": tmp_path / "run"}
    usual = simulate([problem], ["ucb"], **race).final()
    for other in ({"strong": True}, {"edges": "prior"}):
        changed = simulate([problem], ["ucb"], **race, **other).final()
        assert not changed.equals(usual)
    chordal = [
        resolve_worlds("chordal-10-0.1", options).spec()
        for options in (None, WorldOptions(strong=True))
    ]
    assert chordal[0] != chordal[1] and chordal[0]["random"] == "chordal-10-0.1"
    world = make_environment(problem, 0)
    with pytest.raises(DowiseError, match="strong and edges have no effect: pass its problem"):
        simulate([world], ["ucb"], strong=True, **QUICK_TS)
    assert simulate([world], ["ucb"], **QUICK_TS).final().notna().all().all()
