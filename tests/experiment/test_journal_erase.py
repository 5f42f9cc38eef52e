"""Erasing decisions: contents, counts, audits and files."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import (
    WARD,
    new_experiment,
    play_experiment,
    rehash,
    stored_events,
    with_payload,
)

from dowise import Belief
from dowise.experiment.experiment import Experiment


def test_erase_blanks_all_events_and_keeps_the_chain():
    experiment = new_experiment()
    experiment.ask({"C": 1}, "Mrs Smith")
    experiment.tell(1, {"Y": 1})
    experiment.amend(1, {"Y": 0}, "Mrs Smith called")
    experiment.ask({"C": 0}, "other")
    experiment.erase(1, "she asked for it")
    events = experiment.events()
    assert [event.is_erased for event in events] == [False, True, True, True, False, False]
    assert all(event.salt == "" and [*event.payload] == ["erased"] for event in events[1:4])
    assert "Smith" not in "".join(event.body for event in events)
    assert events[-1].payload == {
        "decision": 1, "reason": "she asked for it", "events": [2, 3, 4],
    }  # fmt: skip
    audit = experiment.audit()
    assert audit.ok and audit.not_derivable == (2,)


def test_an_erased_decision_no_longer_counts():
    experiment = new_experiment()
    asked = experiment.ask({"C": 1}, "r1")
    experiment.tell(1, {"X": 1, "Z": 1, "W": 0, "Y": 1} | dict(asked.arm))
    experiment.erase(1, "right")
    assert np.array_equal(experiment.belief.parameters, Belief(WARD).parameters)
    with raises_code("not-found", "decision 1"):
        experiment.explain(1)
    assert experiment.ask({"C": 1}, "r1").id == 2


def test_open_experiments_see_an_erasure():
    experiment = new_experiment()
    watching = Experiment.open(experiment._journal.storage)
    experiment.ask({"C": 1}, allowed=["do(X=1)"])
    experiment.tell(1, {"Y": 1}, played="do(W=1)", unrelated=True)
    assert len(watching.records()) == 1
    experiment.erase(1, "right")
    later = Experiment.open(experiment._journal.storage)
    assert experiment.records() == watching.records() == later.records()
    counts = [x.status({"C": 1}, evidence=False).counts for x in (experiment, watching, later)]
    assert counts[0] == counts[1] == counts[2]
    assert counts[0]["restricted"] == counts[0]["played_otherwise"] == 0


@pytest.mark.parametrize("policy", ["ucb", "kl-ucb", "ids", "ts", "random"])
def test_decisions_that_depended_on_an_erased_one_are_no_findings(policy):
    experiment = new_experiment(policy=policy)
    for _ in range(4):
        experiment.ask({"C": 1})
    experiment.erase(1, "right")
    audit = experiment.audit()
    assert audit.ok, audit.finding


def test_decisions_before_and_after_an_erasure_are_derived():
    experiment = play_experiment(6)
    experiment.erase(4, "right")
    for _ in range(3):
        experiment.ask({"C": 0})
    audit = experiment.audit()
    assert audit.ok and {*audit.not_derivable} <= {5, 6}


def test_an_audit_finds_changes_in_spite_of_an_erasure():
    experiment = play_experiment(6)
    experiment.erase(6, "right")
    events = stored_events(experiment)
    place = next(i for i, event in enumerate(events) if event.kind == "asked")
    other = {"X": "0"} if events[place].payload["arm"] != {"X": "0"} else {"X": "1"}
    events[place] = with_payload(events[place], arm=other)
    rehash(events, place)
    assert experiment.audit().finding.event == place + 1


def test_erased_contents_are_not_in_the_files(tmp_path):
    path = tmp_path / "ward.db"
    with Experiment.create(path, "w", WARD, "random", seed=1) as experiment:
        for number in range(140):
            experiment.ask({"C": 1}, f"patient-{number}")
        experiment.withdraw(7, "patient-6 left")
        experiment.erase(7, "right")
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b'"patient-6"' not in files and b"patient-6 left" not in files
    assert b'"patient-60"' in files
    connection = sqlite3.connect(path)
    assert connection.execute("select count(*) from snapshots").fetchone() == (0,)
    connection.close()
    with Experiment.open(path) as again:
        assert again.audit().ok and again.records()[6].status == "erased"


def test_no_other_call_waits_for_the_removal_of_old_copies(tmp_path):
    """A reader of the file delays it; queries, asks and tells go on."""
    experiment = play_experiment(rounds=3, storage=tmp_path / "ward.db")
    other = experiment.acting_as("another")
    with closing(sqlite3.connect(tmp_path / "ward.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM events").fetchall()
        erasing = threading.Thread(target=experiment.erase, args=(1, "right"))
        erasing.start()
        until = time.monotonic() + 20
        while experiment.events()[-1].kind != "erased" and time.monotonic() < until:
            time.sleep(0.01)

        def go_on():
            assert other.case(1).status == "erased"
            asked = other.ask({"C": 0})
            return other.tell(asked.id, {"Y": 1}).last_event

        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(go_on)
            try:
                assert written.result(20) == experiment.head.number
                assert erasing.is_alive()
            finally:
                reader.execute("COMMIT")
    erasing.join(20)
    assert experiment.audit().ok
    assert (tmp_path / "ward.db-wal").stat().st_size == 0
    experiment.close()
