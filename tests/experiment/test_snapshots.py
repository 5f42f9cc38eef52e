"""Snapshots save time, and are not used if anything in them is wrong."""

import json
import zlib

import pytest
from support.experiments import new_experiment, play_experiment, stored_events

from dowise.experiment import snapshots
from dowise.experiment.experiment import Experiment
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage import Snapshot


@pytest.fixture(autouse=True)
def _early(monkeypatch):
    monkeypatch.setattr(snapshots, "FIRST_SNAPSHOT", 8)


def stored_snapshot(experiment):
    return experiment._journal.storage.snapshot("w")


def replace_snapshot(experiment, snapshot):
    experiment._journal.storage._snapshots["w"] = snapshot


def reopen(experiment, monkeypatch):
    """Open an experiment again, compare, and return the number of events that were applied."""
    count = []
    apply = ExperimentState.apply

    def counting(self, event):
        count.append(event)
        apply(self, event)

    with monkeypatch.context() as patch:
        patch.setattr(ExperimentState, "apply", counting)
        again = Experiment.open(experiment._journal.storage)
        again._journal.read(), experiment._journal.read()
        one, other = again._journal._state, experiment._journal._state
    assert again.records() == experiment.records() and again.head == experiment.head
    assert (
        one.digest() == other.digest()
        and one.snapshot_rows() == other.snapshot_rows()
        and one.requests == other.requests
    )
    assert [case.told_at for case in one.cases.values()] == [
        case.told_at for case in other.cases.values()
    ]
    assert one.imports == other.imports and one.imported == other.imported
    assert one.last_asked == other.last_asked and one.at == other.at and one.seed == other.seed
    return len(count)


@pytest.fixture
def long():
    experiment = play_experiment(14)
    experiment.import_records({name: ["0", "1"] for name in "CWXYZ"})
    experiment.withdraw(3, "left")
    experiment.revise(policy="ts", reason="to compare")
    for number in range(4):
        experiment.ask({"C": 0}, f"r{number}")
    assert stored_snapshot(experiment).number > 20
    return experiment


def test_only_events_after_the_snapshot_are_applied(long, monkeypatch):
    events = long.events()
    after = [e for e in events if e.number > stored_snapshot(long).number]
    special = [
        e
        for e in events[: stored_snapshot(long).number]
        if e.kind in ("created", "revised", "imported")
    ]
    assert reopen(long, monkeypatch) == len(after) + len(special) < len(events) / 2
    replace_snapshot(long, None)
    assert reopen(long, monkeypatch) == len(events)


def repacked(snapshot, change):
    *rows, _, told_at = zlib.decompress(snapshot.body).decode().split("\n")
    rows = [json.loads(row) for row in rows]
    change(rows)
    text = "\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    return snapshot._replace(body=zlib.compress(f"{text}\n\n{told_at}".encode()))


def test_equal_rows_in_another_compression_are_accepted(long, monkeypatch):
    replace_snapshot(long, repacked(stored_snapshot(long), lambda _: None))
    assert reopen(long, monkeypatch) < len(long.events()) / 2


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[0][9].update(Y="0" if rows[0][9]["Y"] == "1" else "1"),
        lambda rows: rows[0].__setitem__(2, "withdrawn"),
        lambda rows: rows.pop(),
        lambda rows: rows.reverse(),
        lambda rows: rows.append(rows[0]),
        lambda rows: rows[2].pop(),
        lambda rows: rows[2].append(1),
        lambda rows: rows.__setitem__(1, {"id": 1}),
        lambda rows: rows.__setitem__(1, 7),
        lambda rows: rows[1].__setitem__(5, None),
        lambda rows: rows[1].__setitem__(6, [1, 2]),
    ],
)
def test_changed_rows_are_not_used(long, monkeypatch, change):
    replace_snapshot(long, repacked(stored_snapshot(long), change))
    assert reopen(long, monkeypatch) >= len(long.events())


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.clear(),
        lambda told: told[0].pop("Y"),
        lambda told: told[2].update(Y=3),  # decision 3 has no values
        lambda told: told[0].update(Y=10**6),
        lambda told: told[0].update(Y=0),
        lambda told: told[0].update(Y="3"),
        lambda told: told.__setitem__(0, None),
    ],
)
def test_impossible_events_of_values_are_not_used(long, monkeypatch, change):
    snapshot = stored_snapshot(long)
    rows, _, told_at = zlib.decompress(snapshot.body).decode().partition("\n\n")
    told_at = json.loads(told_at)
    change(told_at)
    body = zlib.compress(f"{rows}\n\n{json.dumps(told_at)}".encode())
    replace_snapshot(long, snapshot._replace(body=body))
    assert reopen(long, monkeypatch) >= len(long.events())


def test_a_snapshot_of_an_earlier_version_is_not_used(long, monkeypatch):
    snapshot = stored_snapshot(long)
    rows, _, _ = zlib.decompress(snapshot.body).partition(b"\n\n")
    replace_snapshot(long, snapshot._replace(body=zlib.compress(rows)))
    assert reopen(long, monkeypatch) >= len(long.events())


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s._replace(body=b""),
        lambda s: s._replace(body=b"no zlib"),
        lambda s: s._replace(body=s.body[:-3]),
        lambda s: s._replace(body=zlib.compress(b"\xff\xfe")),
        lambda s: s._replace(body=zlib.compress(b"[" * 200_000)),
        lambda s: s._replace(body=zlib.compress(b"")),
        lambda s: s._replace(number=s.number - 1),
        lambda s: s._replace(number=s.number + 1),
        lambda s: s._replace(number=10**9),
        lambda s: s._replace(number=0),
        lambda s: s._replace(number=-5),
        lambda s: s._replace(hash="0" * 64),
    ],
)
def test_a_damaged_snapshot_is_not_used(long, monkeypatch, change):
    replace_snapshot(long, change(stored_snapshot(long)))
    assert reopen(long, monkeypatch) >= len(long.events())


def test_a_snapshot_of_another_journal_is_not_used(monkeypatch):
    one, other = play_experiment(12), play_experiment(12, seed=8)
    replace_snapshot(one, stored_snapshot(other))
    assert reopen(one, monkeypatch) >= len(one.events())


def test_a_damaged_snapshot_is_replaced(long):
    replace_snapshot(long, Snapshot("w", 5, "0" * 64, b""))
    again = Experiment.open(long._journal.storage)
    for _ in range(8):
        again.ask({"C": 0})
    assert stored_snapshot(again).number > 20 and again.audit().ok


def test_snapshots_contain_no_erased_decision():
    experiment = play_experiment(10)
    old = stored_snapshot(experiment)
    experiment.erase(2, "right")
    assert stored_snapshot(experiment) is None
    experiment._journal.storage.save_snapshot(old)
    assert stored_snapshot(experiment) is None
    for _ in range(12):
        experiment.ask({"C": 0})
    text = zlib.decompress(stored_snapshot(experiment).body).decode().split("\n")
    assert json.loads(text[1])[2] == "erased" and len(json.loads(text[1])) == 4


def test_the_decision_after_a_snapshot_records_the_build(long):
    again = Experiment.open(long._journal.storage)
    again.ask({"C": 0})
    assert "maker" in again.events()[-1].payload and again.audit().ok


def test_snapshots_are_taken_before_some_decisions():
    experiment = new_experiment(policy="random")
    taken = set()
    for _ in range(60):
        experiment.ask({"C": 0})
        taken.add(stored_snapshot(experiment) and stored_snapshot(experiment).number)
    assert None in taken and 5 < len(taken) < 40
    assert all(stored_events(experiment)[number].kind == "asked" for number in taken - {None})
