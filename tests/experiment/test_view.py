"""Views of an experiment: one moment, one read of the store."""

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Experiment, load_problem
from dowise.experiment.storage import MemoryStorage


def played(policy, rounds=6):
    options = {"samples": 50} if policy == "ids" else {}
    experiment = Experiment.create(
        MemoryStorage(), "ward", load_problem("task2"), policy, options, 7
    )
    for number in range(1, rounds + 1):
        experiment.ask({"C": number % 2})
        experiment.tell(number, {"Y": number % 2, "Z": 0})
    experiment.ask({"C": 0})
    return experiment


def write_more(experiment):
    """Change decisions of a view, and make new ones."""
    experiment.amend(1, {"Y": 0}, "typo")
    experiment.tell(7, {"Y": 1, "Z": 1})
    experiment.tell(experiment.ask({"C": 1}).id, {"Y": 1, "Z": 1})
    experiment.erase(2, "asked for")


def revise(experiment):
    experiment.revise(policy="ts", reason="simpler")


def import_more(experiment):
    experiment.import_records({"C": [0, 1], "Z": [0, 1], "Y": [1, 1]}, "do(X2=1)")


def document_of(view):
    """Return the results of a view as plain data."""
    status = view.status(evidence=True).as_dict()
    for case in status["pending"]:
        del case["waiting_seconds"]
    parts = {"status": status, "usage": view.counted().as_dict(), "counts": view.counts()}
    parts["means"] = [view.belief.mean_rewards({"C": c}).tolist() for c in (0, 1)]
    parts["records"] = [case.as_dict(view.problem) for case in view.records()]
    return parts | {"head": str(view.head), "policy": view.policy, "table": view.table()}


@pytest.mark.parametrize("policy", ["ids", "ucb"])
@pytest.mark.parametrize("write", [write_more, revise, import_more])
@pytest.mark.parametrize("is_read_between", [True, False])
def test_a_view_belongs_to_one_moment(policy, write, is_read_between):
    experiment, twin = played(policy), played(policy)
    view, expected = experiment.view(), document_of(twin.view())
    write(experiment)
    if is_read_between:  # so that the read model is ahead of the view
        document_of(experiment.view())
    document = document_of(view)
    for part in ("status", "usage", "counts", "means", "policy"):
        actual, wanted = document[part], expected[part]
        if part == "status":  # the times of the two experiments differ
            actual, wanted = (
                {k: v for k, v in status.items() if k != "pending"} for status in (actual, wanted)
            )
            actual["incomplete"] = [case["id"] for case in actual["incomplete"]]
            wanted["incomplete"] = [case["id"] for case in wanted["incomplete"]]
        assert actual == wanted, part
    assert [case["status"] for case in document["records"]] == ["done"] * 6 + ["pending"]
    assert int(document["head"].split(":")[0]) == 14
    later = document_of(experiment.view())
    assert later != document and document_of(experiment.view()) == later


def test_a_view_takes_one_read_of_the_store(monkeypatch):
    experiment = played("ids")
    storage = experiment._journal.storage
    experiment.status()
    reads, read = [], storage.read
    monkeypatch.setattr(storage, "read", lambda *a, **k: reads.append(a) or read(*a, **k))
    view = experiment.view(recent=500)
    view.status(), view.counts(), view.pending(), view.case(3), view.idle(3), view.counted()
    assert [event.number for event in view.events(10)] == [11, 12, 13, 14]
    assert len(view.events()) == 14 and view.decision(3).id == 3
    assert len(reads) == 1


def test_recent_events_end_at_the_head():
    experiment = played("ucb")
    view = experiment.view(recent=3)
    experiment.ask({"C": 0})
    assert [event.number for event in view.events(12)] == [13, 14]
    assert [event.number for event in view.events(after=12, upto=99)] == [13, 14]
    assert len(view.events()) == 14


def test_results_of_a_view_are_copies():
    view = played("ids").view()
    view.records()[0].values["Y"] = "9"
    view.counts()["asked"] = 99
    view.options["samples"] = 1
    before = view.belief
    before.update("do(X2=1)", {"C": 0, "Z": 0, "Y": 1})
    assert view.case(1).values["Y"] == "1" and view.counts()["asked"] == 7
    assert view.options["samples"] == 50
    assert not np.array_equal(before.parameters, view.belief.parameters)


def test_views_of_the_same_moment_are_shared():
    experiment = played("ucb")
    view = experiment.view()
    assert experiment.view() is view and experiment.acting_as("bob").view() is view
    experiment.ask({"C": 0})
    assert experiment.view() is not view and view.counts()["asked"] == 7


@pytest.mark.parametrize("options", [{"after": -1}, {"limit": -1}])
def test_negative_positions_and_limits_of_decisions_are_refused(options):
    with raises_code("invalid-number", *options):
        played("ucb", 1).view().decisions(**options)


def test_a_negative_number_of_recent_events_reads_none():
    experiment = played("ucb", 1)
    assert experiment.view(recent=-1).head == experiment.head
