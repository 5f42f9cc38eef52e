"""Policies that have another problem in mind than the world's: wrong graphs."""

import json
import pickle

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem, load_problem, make_policy, simulate
from dowise.policies.arm_rewards import ArmRewardsPolicy
from dowise.simulation import On
from dowise.simulation import trial as trials
from dowise.simulation.trial import make_world, run_trial

TASK2 = load_problem("task2")
ROLES = {"reward": "Y", "context": "C", "non_manipulable": "Z"}
RIGHT = Problem(TASK2.graph.with_edges("X1 -> Y"), **ROLES)
WORLD = Problem(RIGHT.graph, **ROLES, arms="all", name="task2 with X1 -> Y")
DRAWN = Problem(TASK2.graph, **ROLES)
SOFT = Problem(TASK2.graph, **ROLES, soft=0.1)
HIDDEN = Problem(TASK2.graph.with_edges(["X1 <-> Y", "C <-> Y"]), **ROLES, arms="all")


@pytest.mark.parametrize("policy", ["ts", "ids", "ucb", "bernoulli-ts"])
@pytest.mark.parametrize("own", [RIGHT, DRAWN, SOFT, WORLD], ids=["right", "drawn", "soft", "all"])
def test_compiled_loops_decide_as_stepping_does(policy, own, monkeypatch):
    options = {"samples": 100} if policy == "ids" else {}
    for number, problem in enumerate([WORLD, HIDDEN]):
        world = make_world(problem, 7, number)
        quick = run_trial(world, lambda _: make_policy(policy, own, **options), 80, 7, number, 4)
        monkeypatch.setattr(trials, "_compiled_loop", lambda _policy, _world: None)
        slow = run_trial(world, lambda _: make_policy(policy, own, **options), 80, 7, number, 4)
        monkeypatch.undo()
        np.testing.assert_array_equal(quick.arms, slow.arms)
        np.testing.assert_array_equal(quick.regrets, slow.regrets)
        played = {world.problem.arms[i] for i in quick.arms}
        assert played <= {*own.arms}


def test_regret_is_the_worlds_word():
    """Against the best of all arms of the world, not of those that the policy has in mind."""
    few = Problem(TASK2.graph, **ROLES, arms=["do(X1=1)"])
    world = make_world(WORLD, 0, 0)
    played = run_trial(world, lambda _: make_policy("ucb", few), 30, 0, 0)
    assert {str(world.problem.arms[i]) for i in played.arms} == {"do(X1=1)"}
    costs = {round(world.regret("do(X1=1)", {"C": c}), 12) for c in "01"}
    assert {*played.regrets.round(12).tolist()} == costs and max(costs) > 0


def test_observational_records_go_to_who_can_use_them():
    """A tabular policy uses do() if it is an arm of its own problem."""
    seen = []

    class Counting(ArmRewardsPolicy):
        def observe(self, arm, outcome):
            seen.append((self.problem, str(arm)))
            super().observe(arm, outcome)

        def values(self, table, context, rng):  # noqa: ARG002
            return np.zeros(len(self.problem.arms)), {}

        def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
            return type("Choice", (), {"arm": self.problem.arms[-1]})

    world = make_world(WORLD, 0, 0)
    for own in (DRAWN, WORLD):
        run_trial(world, lambda _, own=own: Counting(own), 1, 0, 0, observational=5)
    assert [arm for own, arm in seen if own is DRAWN] == ["do(X2=1)"]
    assert [arm for own, arm in seen if own is WORLD][:5] == ["do()"] * 5


def test_a_race_with_policies_that_have_other_graphs_in_mind(tmp_path):
    policies = [
        On(RIGHT, "ts", "ts, right"),
        ("ts, drawn", On(DRAWN, "ts")),
        On(SOFT, "ts", label="ts, soft"),
        "bernoulli-ts",
    ]
    race = {"horizon": 40, "trials": 12, "seed": 1}
    found = simulate([WORLD], policies, out=tmp_path / "run", **race)
    final = found.final()
    assert final.columns.tolist() == ["ts, right", "ts, drawn", "ts, soft", "bernoulli-ts"]
    frame = found.frame()
    drawn = frame[frame["policy"] == "ts, drawn"]["arm"]
    assert {*drawn} <= {str(arm) for arm in DRAWN.arms} != {*map(str, RIGHT.arms)}
    assert simulate([WORLD], policies, workers=2, **race).final().equals(final)
    (file,) = (tmp_path / "run" / "calls").iterdir()
    manifest = json.loads(file.read_text("utf-8"))["spec"]["policies"]
    assert "soft = 0.1" in manifest["ts, soft"]["problem"]
    assert "problem" not in manifest["bernoulli-ts"]
    other = [On(DRAWN, "ts", "ts, right"), *policies[1:]]
    changed = simulate([WORLD], other, out=tmp_path / "run", **race).final()
    assert changed.equals(simulate([WORLD], other, **race).final())
    alone = simulate([WORLD], [On(SOFT, "ts")], **race).final()  # its name is the policy's
    np.testing.assert_array_equal(alone["ts"], final["ts, soft"])


def test_an_entry_can_be_sent_to_other_processes():
    again = pickle.loads(pickle.dumps(On(SOFT, "ids", "soft")))
    assert again == On(SOFT, "ids", "soft") and again.problem.soft == 0.1


OTHER = CausalGraph.parse("C -> X1; X1 -> Y; Z -> Y; X2 -> Y")


@pytest.mark.parametrize(
    ("problem", "complaint"),
    [
        (load_problem("task1"), r"the policy 'ts': its own problem and .* in recorded variables"),
        (Problem(OTHER, "Y", (), "Z"), r"differ in context, \(\) against \('C',\)"),
        (Problem(OTHER, "X1", "C", "Z"), "differ in reward, 'X1' against 'Y'"),
        (Problem(OTHER, **ROLES, domains={"Z": [*"abc"]}), "differ in domains"),
        (Problem(OTHER, **ROLES, reward_values={"0": 0, "1": 9}), "differ in reward_values"),
        (Problem(OTHER, **ROLES, minimise=True), "differ in minimise, True against False"),
        (
            Problem(OTHER, "Y", "C", arms=["do(Z=1)"]),
            r"do\(Z=1\) is an arm .*, but Z can't be set in",
        ),
    ],
)
def test_what_does_not_fit_is_explained(problem, complaint):
    with pytest.raises(DowiseError, match=complaint):
        simulate([WORLD], [On(problem, "ts")], horizon=5, trials=2)


def test_arms_that_the_world_lacks_and_things_that_are_no_problem():
    with pytest.raises(DowiseError, match=r"do\(\) is an arm .*: use arms=\"all\""):
        simulate([RIGHT], [On(WORLD, "ucb")], horizon=5, trials=2)
    with pytest.raises(DowiseError, match="pass a Problem first, then the policy"):
        On("ts", "task1")
    with pytest.raises(DowiseError, match=r"3 is not a policy: .* or On\(problem, policy\)"):
        simulate([WORLD], [On(RIGHT, 3)], horizon=5, trials=2)
