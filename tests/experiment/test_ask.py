"""Decisions: random streams, pending plays, and invalid questions."""

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, new_experiment

from dowise import CausalGraph, Problem, make_policy
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.policies.registry import policy_names


@pytest.mark.parametrize("policy", policy_names())
def test_every_policy_uses_the_stream_of_the_decision(policy):
    problem = Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y", non_manipulable="Z")
    options = {"bayes-optimal": {"horizon": 12}, "best": {"try_all": False}}.get(policy, {})
    experiment = Experiment.create(MemoryStorage(), "w", problem, policy, options, seed=11)
    recorded = dict(experiment.events()[0].payload["options"])
    assert recorded.pop("try_all", None) is (False if policy == "best" else None)
    twin = make_policy(experiment.policy, problem, **recorded)
    for number in range(1, 7):
        asked = experiment.ask()
        rng = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(number,)))
        expected = twin.decide({}, rng)
        assert asked.id == number and asked.arm == expected.arm
        assert np.array_equal(asked.probabilities, expected.probabilities)
        assert asked.probabilities.sum() == pytest.approx(1) and asked.probability > 0
        outcome = {"X": 0, "Z": number % 2, "Y": 1} | dict(asked.arm)
        experiment.tell(asked.id, outcome)
        twin.observe(asked.arm, outcome)
    assert experiment.audit().ok


def test_a_batch_with_an_invalid_context_records_nothing():
    experiment = new_experiment()
    with raises_code("missing-value", "C"):
        experiment.ask_many([{"C": 0}, {}])
    assert experiment.head.number == 1 and experiment.ask({"C": 0}).id == 1


@pytest.mark.parametrize(
    ("restriction", "code", "mentioned"),
    [
        ({"allowed": []}, "missing-value", "allowed"),
        ({"allowed": "do(X=1)"}, "invalid-type", "allowed="),
        ({"forbid": {"X": 1}}, "invalid-type", "forbid="),
        ({"request_id": ""}, "invalid-type", "request_id=''"),
        ({"request_id": 7}, "invalid-type", "request_id=7"),
    ],
)
def test_arguments_of_ask_of_the_wrong_type_are_refused(restriction, code, mentioned):
    experiment = new_experiment()
    with raises_code(code, mentioned):
        experiment.ask({"C": 1}, **restriction)
    assert experiment.head.number == 1


def test_index_policies_count_pending_plays():
    experiment = new_experiment(policy="ucb")
    arms = [experiment.ask({"C": 0}).arm for _ in WARD.arms]
    assert {*arms} == {*WARD.arms}  # an index policy counts plays that are under way
    assert [case.id for case in experiment.pending()] == [*range(1, len(arms) + 1)]


def test_plays_that_are_never_learned_from_are_not_pending():
    plain, other = (new_experiment(policy="kl-ucb", learn_restricted=False) for _ in range(2))
    for experiment in (plain, other):
        for number in range(12):
            experiment.tell(experiment.ask({"C": 1}).id, {"Y": number % 2})
    for _ in range(10):
        other.ask({"C": 1}, allowed=["do(X=1)"])
    arms = [[one.arm for one in x.ask_many([{"C": 1}] * 6)] for x in (plain, other)]
    assert arms[0] == arms[1]


def test_a_repeated_request_with_another_number_of_contexts_names_its_decisions():
    experiment = new_experiment(policy="random")
    experiment.ask_many([{"C": 0}] * 2, "batch")
    with raises_code("request-conflict", "decisions 1, 2, for 2 at once"):
        experiment.ask_many([{"C": 0}] * 3, "batch")


def test_a_decision_is_named_in_its_representation():
    decision = new_experiment(policy="random").ask({"C": 0})
    assert repr(decision).startswith(f"<LiveDecision 1: {decision.arm}: ")
