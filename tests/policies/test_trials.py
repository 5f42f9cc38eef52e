"""Compiled trials: the same arms and the same knowledge as stepping through the trial."""

import json

import numpy as np
import pytest
from support.policies import CERTAIN, DOUBTFUL, TWO_ARMS, play

from dowise import CausalGraph, Problem, load_problem, make_environment, make_policy
from dowise.environments import front_door_world
from dowise.policies.arm_ids import ArmIDS
from dowise.policies.commit_kg import CommitKG
from dowise.policies.ids import InformationDirectedSampling
from dowise.simulation.trial import run_trial

REVERSED_REWARD = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y"), "Y", "C", reward_values={"0": 1.0, "1": 0.0}
)
COSTLY = Problem(
    CausalGraph.parse("C -> Y; Z -> X -> Y; Z -> Y"),
    "Y",
    "C",
    costs={"X": 0.1, "Z": 0.05, "do(Z=1)": 0.02},
)
THREE_REWARDS = Problem(
    CausalGraph.parse("C -> X -> Z -> Y; C -> Y; W -> Z"),
    "Y",
    "C",
    "Z",
    domains={"Y": ("none", "some", "all"), "Z": ("0", "1", "2")},
    reward_values={"none": 0, "some": 2, "all": 10},
    minimise=True,
)
MANY_CONTEXTS = Problem(
    CausalGraph.parse("A -> Y; B -> Y; D -> Y; X -> Y"),
    "Y",
    ("A", "B", "D"),
    domains={"A": ("0", "1", "2"), "B": ("0", "1", "2"), "D": ("0", "1")},
)
SOFT = Problem(load_problem("task1").graph, "Y", non_manipulable="Z", soft=0.1)
PROBLEMS = {
    "task1": "task1",
    "task2": "task2",
    "task3": "task3",
    "reversed reward": REVERSED_REWARD,
    "costs": COSTLY,
    "three rewards": THREE_REWARDS,
    "many contexts": MANY_CONTEXTS,
    "doubtful edges": DOUBTFUL,
    "certain hidden cause": CERTAIN,
    "soft edges": SOFT,
}


def case(name, world, **options):
    return pytest.param(name, world, options, id="-".join([name, world, *map(str, options)]))


@pytest.mark.parametrize(
    ("name", "world", "options"),
    [
        *(
            case(name, world)
            for name in ("ids", "ts", "ucb", "bernoulli-ts", "arm-ids", "commit-kg")
            for world in ("task1", "task2", "reversed reward", "front door")
            if (name, world) not in (("commit-kg", "front door"), ("arm-ids", "task1"))
        ),
        *(
            case(name, world)
            for name in ("ids", "ts")
            for world in ("doubtful edges", "certain hidden cause", "soft edges")
        ),
        case("arm-ids", "costs"),
        case("arm-ids", "many contexts"),
        case("commit-kg", "certain hidden cause"),
        case("commit-kg", "costs"),
        case("commit-kg", "many contexts"),
        *(
            case(name, world, prior="pooled", graph_free_prior=0.3)
            for name in ("commit-kg", "ids")
            for world in ("task2", "costs", "three rewards")
        ),
        case("commit-kg", "certain hidden cause", prior="pooled", graph_free_prior=0.3),
        case("ids", "task3", prior="pooled"),
        case("ids", "costs", prior=0.05),
        case("ids", "task2", prior=0.5),
        case("ts", "task3", prior="pooled"),
        case("ts", "costs", prior=0.05),
        case("ts", "doubtful edges", prior=0.5),
        case("ids", "task2", about="map", choice="deterministic", floor=0.1),
        case("ids", "task2", gain="rows", about="map", choice="deterministic"),
    ],
)
def test_a_compiled_trial_equals_stepping(name, world, options):
    """Arms and knowledge; after observational records, in contexts that were seen before too."""
    if name in ("ids", "arm-ids"):
        options = options | {"samples": 50}
    world = (
        front_door_world() if world == "front door" else make_environment(PROBLEMS[world], seed=1)
    )
    compiled, stepped = (make_policy(name, world.problem, **options) for _ in range(2))
    assert compiled.compiled_trial() is not None
    stepped.compiled_trial = lambda: None
    for policy in (compiled, stepped):
        play(policy, world, 5, rng=0)
    fast, slow = (
        run_trial(world, lambda _, policy=policy: policy, 60, seed=4, trial=1, observational=7)
        for policy in (compiled, stepped)
    )
    np.testing.assert_array_equal(fast.arms, slow.arms)
    assert json.dumps(compiled.state()) == json.dumps(stepped.state())
    assert compiled.fingerprint() == stepped.fingerprint()
    assert compiled.next_number == stepped.next_number
    assert len(np.unique(fast.arms)) > 1


@pytest.mark.parametrize("base", [InformationDirectedSampling, CommitKG, ArmIDS])
def test_a_subclass_is_stepped(base):
    class Custom(base):
        pass

    assert base(TWO_ARMS).compiled_trial() is not None
    assert Custom(TWO_ARMS).compiled_trial() is None


def test_bernoulli_ts_is_stepped_where_small_parameters_would_tie():
    assert make_policy("bernoulli-ts", TWO_ARMS, prior=(0.05, 0.05)).compiled_trial() is None


@pytest.mark.parametrize("name", ["ucb", "commit-kg"])
def test_a_policy_with_pending_plays_is_stepped(name):
    policy = make_policy(name, TWO_ARMS)
    assert policy.compiled_trial() is not None
    policy.add_pending("do(X=0)")
    assert policy.compiled_trial() is None
