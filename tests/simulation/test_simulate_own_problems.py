"""Policies with another problem than the world's, to study wrong graphs."""

import json
import pickle

import numpy as np
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Problem, load_problem, make_policy, simulate
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
OTHER = CausalGraph.parse("C -> X1; X1 -> Y; Z -> Y; X2 -> Y")


@pytest.mark.parametrize("policy", ["ts", "ids", "ucb", "bernoulli-ts"])
@pytest.mark.parametrize("problem", [RIGHT, DRAWN, SOFT, WORLD], ids=["right", "drawn", "soft", ""])
def test_compiled_loops_decide_like_single_decisions(policy, problem, monkeypatch):
    options = {"samples": 100} if policy == "ids" else {}

    def make(_):
        return make_policy(policy, problem, **options)

    for number, worlds in enumerate([WORLD, HIDDEN]):
        world = make_world(worlds, 7, number)
        fast = run_trial(world, make, 80, 7, number, 4)
        monkeypatch.setattr(trials, "_compiled_loop", lambda _policy, _world: None)
        slow = run_trial(world, make, 80, 7, number, 4)
        monkeypatch.undo()
        np.testing.assert_array_equal(fast.arms, slow.arms)
        np.testing.assert_array_equal(fast.regrets, slow.regrets)
        assert {world.problem.arms[i] for i in fast.arms} <= {*problem.arms}


def test_regret_is_against_the_best_of_all_arms_of_the_world():
    one_arm = Problem(TASK2.graph, **ROLES, arms=["do(X1=1)"])
    world = make_world(WORLD, 0, 0)
    trial = run_trial(world, lambda _: make_policy("ucb", one_arm), 30, 0, 0)
    assert {str(world.problem.arms[i]) for i in trial.arms} == {"do(X1=1)"}
    regrets = {round(world.regret("do(X1=1)", {"C": c}), 12) for c in "01"}
    assert {*trial.regrets.round(12).tolist()} == regrets and max(regrets) > 0


def test_observational_records_are_shown_if_doing_nothing_is_an_arm_of_the_own_problem():
    observed = []

    class CountingPolicy(ArmRewardsPolicy):
        def observe(self, arm, outcome):
            observed.append((self.problem, str(arm)))
            super().observe(arm, outcome)

        def values(self, table, context, rng):  # noqa: ARG002
            return np.zeros(len(self.problem.arms)), {}

        def decide(self, context=None, rng=None, allowed=None):  # noqa: ARG002
            return type("Choice", (), {"arm": self.problem.arms[-1]})

    world = make_world(WORLD, 0, 0)
    for problem in (DRAWN, WORLD):
        run_trial(world, lambda _, p=problem: CountingPolicy(p), 1, 0, 0, observational=5)
    assert [arm for problem, arm in observed if problem is DRAWN] == ["do(X2=1)"]
    assert [arm for problem, arm in observed if problem is WORLD][:5] == ["do()"] * 5


def test_simulation_of_policies_with_other_graphs(tmp_path):
    policies = [
        On(RIGHT, "ts", "ts, right"),
        ("ts, drawn", On(DRAWN, "ts")),
        On(SOFT, "ts", label="ts, soft"),
        "bernoulli-ts",
    ]
    spec = {"horizon": 40, "trials": 12, "seed": 1}
    result = simulate([WORLD], policies, out=tmp_path / "run", **spec)
    final, frame = result.final(), result.frame()
    assert final.columns.tolist() == ["ts, right", "ts, drawn", "ts, soft", "bernoulli-ts"]
    arms = {*frame[frame["policy"] == "ts, drawn"]["arm"]}
    assert arms <= {str(arm) for arm in DRAWN.arms} != {*map(str, RIGHT.arms)}
    assert simulate([WORLD], policies, workers=2, **spec).final().equals(final)
    (file,) = (tmp_path / "run" / "calls").iterdir()
    described = json.loads(file.read_text("utf-8"))["spec"]["policies"]
    assert "soft = 0.1" in described["ts, soft"]["problem"]
    assert "problem" not in described["bernoulli-ts"]
    other = [On(DRAWN, "ts", "ts, right"), *policies[1:]]
    changed = simulate([WORLD], other, out=tmp_path / "run", **spec).final()
    assert changed.equals(simulate([WORLD], other, **spec).final())
    single = simulate([WORLD], [On(SOFT, "ts")], **spec).final()  # the label is the policy's name
    np.testing.assert_array_equal(single["ts"], final["ts, soft"])


def test_policy_with_its_own_problem_can_be_pickled():
    assert pickle.loads(pickle.dumps(On(SOFT, "ids", "soft"))) == On(SOFT, "ids", "soft")


@pytest.mark.parametrize(
    ("problem", "code", "reason"),
    [
        (load_problem("task1"), "wrong-problem", "recorded variables"),
        (Problem(OTHER, "Y", (), "Z"), "wrong-problem", "context, () against ('C',)"),
        (Problem(OTHER, "X1", "C", "Z"), "wrong-problem", "reward, 'X1' against 'Y'"),
        (Problem(OTHER, **ROLES, domains={"Z": [*"abc"]}), "wrong-problem", "domains"),
        (Problem(OTHER, **ROLES, reward_values={"0": 0, "1": 9}), "wrong-problem", "reward_values"),
        (Problem(OTHER, **ROLES, minimise=True), "wrong-problem", "minimise, True against False"),
        (Problem(OTHER, "Y", "C", arms=["do(Z=1)"]), "not-manipulable", "do(Z=1)"),
    ],
)
def test_problem_that_does_not_fit_the_world_is_rejected(problem, code, reason):
    with raises_code(code, "the policy 'ts'", reason):
        simulate([WORLD], [On(problem, "ts")], horizon=5, trials=2)


def test_arms_outside_the_world_and_invalid_arguments_are_rejected():
    with raises_code("unknown-arm", "do()"):
        simulate([RIGHT], [On(WORLD, "ucb")], horizon=5, trials=2)
    with raises_code("invalid-type", "On('ts', …)"):
        On("ts", "task1")
    with raises_code("invalid-type", "3"):
        simulate([WORLD], [On(RIGHT, 3)], horizon=5, trials=2)
