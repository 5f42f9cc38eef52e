"""The evidence of experiments: its order of arrival, and estimates of how long it takes."""

from itertools import pairwise

import pytest
from support.experiments import new_experiment

from dowise import CausalGraph, Problem, load_problem
from dowise.experiment import snapshots
from dowise.experiment.experiment import Experiment
from dowise.experiment.read_model import evidence_seconds
from dowise.model.missing_edges import alternatives_of, count_alternatives


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare", "asia", "sachs"])
def test_missing_edges_are_counted_without_listing_them(name):
    problem = load_problem(name)
    assert count_alternatives(problem) == len(alternatives_of(problem)) > 0


def test_the_time_of_evidence_is_estimated_without_listing_edges(monkeypatch):
    names = [f"V{i}" for i in range(150)]
    graph = CausalGraph([*pairwise(names)])
    problem = Problem(graph, names[-1], (), tuple(names[1:-1]))
    monkeypatch.delattr("dowise.model.missing_edges.alternatives_of")
    assert evidence_seconds(problem, 0) > 10


# -- evidence depends on the order of arrival ------------------------------------------------------

SHOP = Problem(CausalGraph.parse("X -> Y; Z"), "Y", non_manipulable="Z")


def play(experiment, rounds, repeats=True):
    """Ask and tell: Y repeats Z, or is its opposite."""
    for i in range(rounds):
        asked = experiment.ask(allowed=["do(X=0)"])
        experiment.tell(asked.id, {"Z": i % 2, "Y": i % 2 if repeats else 1 - i % 2})


def evidence_of(experiment):
    return experiment.status(evidence=True).evidence.as_dict()


def reopened(experiment):
    return Experiment.open(experiment._journal.storage)


def test_evidence_is_the_same_in_every_process(monkeypatch):
    monkeypatch.setattr(snapshots, "FIRST_SNAPSHOT", 8)
    experiment = new_experiment(SHOP, "ts")
    decisions = [experiment.ask(allowed=["do(X=0)"]).id for _ in range(10)]
    for number in reversed(decisions):
        experiment.tell(number, {"Z": number % 2})
    experiment.import_records({"X": [0, 1], "Z": [0, 1], "Y": [0, 1]}, "do()")
    for number in decisions:
        experiment.tell(number, {"Y": number % 2})
        evidence_of(experiment)
    experiment.amend(3, {"Z": 0}, "typo")
    experiment.amend(4, {"Y": None}, "not measured")
    experiment.erase(5, "right")
    for _ in range(3):
        experiment.ask()
    assert experiment._journal.storage.snapshot("w") is not None
    assert evidence_of(reopened(experiment)) == evidence_of(experiment)


def test_a_correction_withdraws_an_alarm():
    experiment = new_experiment(SHOP, "ts")
    play(experiment, 30)
    since = evidence_of(experiment)["since"]
    assert since is not None
    for number in range(2, 31, 4):
        experiment.amend(number, {"Y": 1 - (number - 1) % 2}, "typo")
    for number in range(3, 31, 4):
        experiment.amend(number, {"Y": 1 - (number - 1) % 2}, "typo")
    corrected = evidence_of(experiment)
    assert corrected["since"] is None and corrected["withdrawn"] == 2
    assert "withdrawn after a correction of record 2." in str(experiment.status(evidence=True))
    fresh = evidence_of(reopened(experiment))
    assert fresh == corrected | {"withdrawn": None}  # known to those who saw the alarm


def test_an_earlier_moment_withdraws_nothing():
    experiment = new_experiment(SHOP, "ts")
    play(experiment, 5)
    early = experiment.view()
    play(experiment, 30)
    assert evidence_of(experiment)["since"] is not None
    before = early.status(evidence=True).evidence
    assert before.since is before.withdrawn is None and before.records == 5


def test_records_that_led_to_a_revision_of_the_graph_do_not_count_against_it():
    experiment = new_experiment(SHOP, "ts")
    play(experiment, 30)
    wider = Problem(CausalGraph.parse("X -> Y; Z -> X"), "Y", non_manipulable="Z")
    experiment.revise(wider, reason="Z matters")
    revised = evidence_of(experiment)
    assert revised["records"] == 30 and revised["since"] is None
    assert all(item["log_e_value"] == item["values"] == 0 for item in revised["alternatives"])
    play(experiment, 30)
    evidence = evidence_of(experiment)
    assert "Z -> Y" in evidence["alarms"] and 30 < evidence["since"] <= 60
    trained, values = evidence["since"], {x["edge"]: x["values"] for x in evidence["alternatives"]}
    assert values["Z -> Y"] == 30
    experiment.revise(policy="random", reason="the graph stays")
    assert evidence_of(experiment) == evidence == evidence_of(reopened(experiment))
    untrained = new_experiment(wider, "ts")
    play(untrained, 30)
    assert trained - 30 < evidence_of(untrained)["since"]  # earlier records train the stakes
