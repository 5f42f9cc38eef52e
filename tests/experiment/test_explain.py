"""Why a decision came out as it did, by what was known then."""

from math import log

import pytest
from support.played_experiments import begun, played

from dowise.errors import DowiseError, NotFoundError
from dowise.experiment.plots import intervals_then
from dowise.graph import CausalGraph
from dowise.problem import Problem


def test_it_tells_what_was_known_then_not_what_is_known_now():
    experiment = begun()
    for reward in (1, 1, 0):
        decision = experiment.ask(allowed=["do(X=1)"])
        experiment.tell(decision.id, {"Y": reward})
    pending = experiment.ask()
    asked = experiment.ask()
    for _ in range(5):
        later = experiment.ask(allowed=["do(X=0)"])
        experiment.tell(later.id, {"Y": 1})
    experiment.tell(pending.id, {"Y": 1})
    found = experiment.explain(asked.id)
    assert (found.records, found.pending, found.imported, found.is_complete) == (3, 1, 0, True)
    assert found.then.mean == pytest.approx([1 / 2, 3 / 5])
    assert found.then.plays.tolist() == [0, 3]
    words = found.document().to_text()
    assert "Known at that time: the outcomes of 3 decisions; 1 decision was pending." in words
    assert f"The policy ids chose {asked.arm}" in words and asked.reason in words
    assert f"What is recorded of it now: decision {asked.id}, {asked.arm}, pending." in words


def test_cost_and_gain_are_in_units_of_the_reward_and_bits():
    graph = CausalGraph.parse("X -> Y")
    plain = begun(Problem(graph, "Y"))
    dear = begun(Problem(graph, "Y", reward_values={"0": 0.0, "1": 20.0}))
    one, other = (x.explain(x.ask().id) for x in (plain, dear))
    for first, second in zip(one.rows(), other.rows(), strict=True):
        assert second["cost"] == pytest.approx(20 * first["cost"])
        assert second["bits"] == pytest.approx(first["bits"])
        assert second["mean"] == pytest.approx(20 * first["mean"])
    gain = plain.explain(1).decision.figures["gain"]
    assert [row["bits"] for row in one.rows()] == pytest.approx([g / log(2) for g in gain])
    assert sum(row["probability"] for row in one.rows()) == pytest.approx(1)


def test_index_policies_show_their_own_figures():
    graph = CausalGraph.parse("X -> Y")
    experiment = begun(Problem(graph, "Y", reward_values={"0": 0.0, "1": 20.0}), policy="ucb")
    for label, reward in (("0", 1), ("1", 0), ("1", 1)):
        decision = experiment.ask(allowed=[f"do(X={label})"])
        experiment.tell(decision.id, {"Y": reward})
    found = experiment.explain(experiment.ask().id)
    assert {"counts", "means", "index"} <= {*found.policy_figures}
    first, second = found.rows()
    assert first["own"]["counts"] == 1 and second["own"]["counts"] == 2
    assert first["own"]["means"] == 20 and second["own"]["means"] == 10
    assert first["own"]["index"] > 20 and first["bits"] is None and first["cost"] >= 0
    never = experiment.explain(1).rows()[0]["own"]  # nothing was known: no mean, no bound
    assert never["means"] is None and never["index"] == "inf"


@pytest.mark.parametrize("policy", ["ts", "bernoulli-ts", "kl-ucb", "random", "z2-ts"])
def test_every_policy_can_be_explained(policy):
    experiment = played("task2", 6, policy)
    found = experiment.explain(6)
    assert found.policy == policy and "pair" not in found.policy_figures
    page = found.as_dict()
    assert page["id"] == 6 and page["known"]["records"] == 5 and len(page["arms"]) == 4
    assert page["now"]["status"] == "done" and page["text"] == str(found.decision.arm)


def test_restricted_decisions():
    experiment = begun("task2")
    experiment.ask({"C": 1}, forbid=["do(X2=0)", "do(X2=1)"])
    found = experiment.explain(1)
    assert "2 of 4 arms were allowed." in found.document().to_text()
    assert [row["allowed"] for row in found.rows()] == [True, True, False, False]
    assert [row["probability"] for row in found.rows()][2:] == [0, 0]


def test_erasures():
    experiment = played("task2", 6)
    experiment.erase(2, reason="asked for")
    with pytest.raises(DowiseError, match="decision 2 was erased"):
        experiment.explain(2)
    assert experiment.explain(1).is_complete
    later = experiment.explain(5)
    assert not later.is_complete and "has been erased since" in later.document().to_text()
    assert later.records == 3


def test_decisions_before_a_revision_are_explained_by_what_held_then():
    experiment = played("task2", 4)
    graph = CausalGraph.parse("C -> X1; X1 -> X2; Z -> Y; X2 -> Y; C -> Y")
    wide = Problem(graph, "Y", context="C", non_manipulable="Z", arms="all")
    experiment.revise(problem=wide, policy="ids", reason="C matters")
    experiment.ask({"C": 1})
    assert experiment.explain(3).policy == "ts" and experiment.explain(5).policy == "ids"
    assert experiment.explain(3).then.arms != experiment.explain(5).then.arms
    with pytest.raises(DowiseError, match="there are 1 to 5"):
        experiment.explain(6)


def test_the_picture_has_the_intervals_of_then(tmp_path):
    experiment = played("task2", 8)
    found = experiment.explain(4)
    data = intervals_then(found)
    assert data.title == f"decision 4, C={found.decision.context['C']}"
    assert data.arms[data.marked] == str(found.decision.arm) and data.left_out == 0
    assert data.mean.tolist() == found.then.mean.tolist()
    found.figure(tmp_path / "then.svg")
    assert (tmp_path / "then.svg").read_text().startswith("<?xml")
    with pytest.raises(DowiseError, match="ending"):
        found.figure(tmp_path / "then.gif")


def test_a_decision_can_be_seen_as_it_was_made():
    experiment = played("task2", 4)
    asked = experiment.ask({"C": 1})
    wide = Problem(CausalGraph.parse("C -> X2 -> Y; C -> Y"), "Y", context="C")
    experiment.revise(problem=wide, reason="simpler")
    found = experiment.decision(asked.id)
    assert found.as_dict() == asked.as_dict() and found.probability == asked.probability
    experiment.erase(asked.id, reason="asked for")
    with pytest.raises(NotFoundError, match="decision 5 was erased"):
        experiment.decision(5)
    with pytest.raises(DowiseError, match="there are 1 to 5"):
        experiment.decision(6)
