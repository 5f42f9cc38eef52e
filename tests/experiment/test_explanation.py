"""Explanations: why a decision was made, with what was known at the time."""

from math import log

import pytest
from support.errors import raises_code
from support.played_experiments import create_experiment, played_experiment

from dowise.graph import CausalGraph
from dowise.problem import Problem

MONEY = Problem(CausalGraph.parse("X -> Y"), "Y", reward_values={"0": 0.0, "1": 20.0})


def test_explanation_shows_what_was_known_at_the_time():
    experiment = create_experiment()
    for reward in (1, 1, 0):
        decision = experiment.ask(allowed=["do(X=1)"])
        experiment.tell(decision.id, {"Y": reward})
    pending, decision = experiment.ask(), experiment.ask()
    for _ in range(5):
        later = experiment.ask(allowed=["do(X=0)"])
        experiment.tell(later.id, {"Y": 1})
    experiment.tell(pending.id, {"Y": 1})
    result = experiment.explain(decision.id)
    assert (result.records, result.pending, result.imported) == (3, 1, 0)
    assert result.is_complete
    assert result.then.mean == pytest.approx([1 / 2, 3 / 5])
    assert result.then.plays.tolist() == [0, 3]
    text = str(result)
    assert "the outcomes of 3 decisions; 1 decision was pending." in text
    assert f"The policy ids chose {decision.arm}" in text and decision.reason in text
    assert f"recorded of it now: decision {decision.id}, {decision.arm}, pending." in text


def test_costs_are_in_units_of_the_reward_and_gains_in_bits():
    plain, money = create_experiment(), create_experiment(MONEY)
    scaled, in_units = (x.explain(x.ask().id).rows() for x in (plain, money))
    for first, second in zip(scaled, in_units, strict=True):
        assert second["cost"] == pytest.approx(20 * first["cost"])
        assert second["bits"] == pytest.approx(first["bits"])
        assert second["mean"] == pytest.approx(20 * first["mean"])
    gain = plain.explain(1).decision.figures["gain"]
    assert [row["bits"] for row in scaled] == pytest.approx([g / log(2) for g in gain])
    assert sum(row["probability"] for row in scaled) == pytest.approx(1)


def test_index_policies_show_their_own_figures():
    experiment = create_experiment(MONEY, policy="ucb")
    for label, reward in (("0", 1), ("1", 0), ("1", 1)):
        decision = experiment.ask(allowed=[f"do(X={label})"])
        experiment.tell(decision.id, {"Y": reward})
    result = experiment.explain(experiment.ask().id)
    assert {"counts", "means", "index"} <= {*result.policy_figures}
    first, second = result.rows()
    assert first["own"]["counts"] == 1 and second["own"]["counts"] == 2
    assert first["own"]["means"] == 20 and second["own"]["means"] == 10
    assert first["own"]["index"] > 20 and first["bits"] is None and first["cost"] >= 0
    nothing_known = experiment.explain(1).rows()[0]["own"]
    assert nothing_known["means"] is None and nothing_known["index"] == "inf"


@pytest.mark.parametrize("policy", ["ts", "bernoulli-ts", "kl-ucb", "random", "z2-ts"])
def test_every_policy_can_be_explained(policy):
    result = played_experiment("task2", 6, policy).explain(6)
    assert result.policy == policy and "pair" not in result.policy_figures
    data = result.as_dict()
    assert data["id"] == 6 and data["known"]["records"] == 5 and len(data["arms"]) == 4
    assert data["now"]["status"] == "done" and data["text"] == str(result.decision.arm)


def test_explanations_name_the_allowed_arms():
    experiment = create_experiment("task2")
    experiment.ask({"C": 1}, forbid=["do(X2=0)", "do(X2=1)"])
    result = experiment.explain(1)
    assert "2 of 4 arms were allowed." in str(result)
    assert [row["allowed"] for row in result.rows()] == [True, True, False, False]
    assert [row["probability"] for row in result.rows()][2:] == [0, 0]


def test_erased_decisions_are_not_explained():
    experiment = played_experiment("task2", 6)
    experiment.erase(2, reason="asked for")
    for query in (experiment.explain, experiment.decision):
        with raises_code("not-found", "decision 2 was erased"):
            query(2)
    assert experiment.explain(1).is_complete
    later = experiment.explain(5)
    assert not later.is_complete and "has been erased since" in str(later)
    assert later.records == 3


def test_decisions_before_a_revision_keep_their_configuration():
    experiment = played_experiment("task2", 4)
    decision = experiment.ask({"C": 1})
    graph = CausalGraph.parse("C -> X1; X1 -> X2; Z -> Y; X2 -> Y; C -> Y")
    wide = Problem(graph, "Y", context="C", non_manipulable="Z", arms="all")
    experiment.revise(problem=wide, policy="ids", reason="C matters")
    experiment.ask({"C": 1})
    assert experiment.explain(5).policy == "ts" and experiment.explain(6).policy == "ids"
    assert experiment.explain(5).then.arms != experiment.explain(6).then.arms
    assert experiment.decision(5).as_dict() == decision.as_dict()
    assert experiment.decision(5).probability == decision.probability
    for query in (experiment.explain, experiment.decision):
        with raises_code("unknown-decision", "there are 1 to 6"):
            query(7)
