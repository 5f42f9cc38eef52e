"""Snapshots: they save time, and whatever is wrong with one, the answer is right."""

import json
import zlib

import pytest
from support.experiments import journal, new, played

from dowise.experiment import journal as snapshots
from dowise.experiment.experiment import Experiment
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage import Snapshot


@pytest.fixture(autouse=True)
def _early(monkeypatch):
    monkeypatch.setattr(snapshots, "FIRST_SNAPSHOT", 8)


def kept(experiment):
    return experiment._journal.storage.snapshot("w")


def put(experiment, snapshot):
    experiment._journal.storage._snapshots["w"] = snapshot


def opened(experiment, monkeypatch):
    """Open it again; how many events were folded one by one, and whether all is as it was."""
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
    assert one.imports == other.imports and one.imported == other.imported
    assert one.last_asked == other.last_asked and one.at == other.at and one.seed == other.seed
    return len(count)


@pytest.fixture
def long():
    experiment = played(14)
    experiment.import_records({name: ["0", "1"] for name in "CWXYZ"})
    experiment.withdraw(3, "left")
    experiment.revise(policy="ts", reason="to compare")
    for number in range(4):
        experiment.ask({"C": 0}, f"r{number}")
    assert kept(experiment).number > 20
    return experiment


def test_opening_folds_only_what_comes_after_it(long, monkeypatch):
    events = long.events()
    after = [e for e in events if e.number > kept(long).number]
    special = [
        e for e in events[: kept(long).number] if e.kind in ("created", "revised", "imported")
    ]
    assert opened(long, monkeypatch) == len(after) + len(special) < len(events) / 2
    put(long, None)
    assert opened(long, monkeypatch) == len(events)


def repacked(snapshot, change):
    rows = [json.loads(row) for row in zlib.decompress(snapshot.body).decode().split("\n")]
    change(rows)
    text = "\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    return snapshot._replace(body=zlib.compress(text.encode()))


def test_packing_the_same_rows_again_changes_nothing(long, monkeypatch):
    put(long, repacked(kept(long), lambda _: None))
    assert opened(long, monkeypatch) < len(long.events()) / 2


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
def test_rows_that_were_changed_are_not_believed(long, monkeypatch, change):
    put(long, repacked(kept(long), change))
    assert opened(long, monkeypatch) >= len(long.events())


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
def test_whatever_else_is_wrong_with_it_the_journal_is_read_instead(long, monkeypatch, change):
    put(long, change(kept(long)))
    assert opened(long, monkeypatch) >= len(long.events())


def test_a_snapshot_that_belongs_to_another_journal_is_not_used(monkeypatch):
    one, other = played(12), played(12, seed=8)
    put(one, kept(other))
    assert opened(one, monkeypatch) >= len(one.events())


def test_a_wrong_one_is_replaced_by_and_by(long):
    put(long, Snapshot("w", 5, "0" * 64, b""))
    again = Experiment.open(long._journal.storage)
    for _ in range(8):
        again.ask({"C": 0})
    assert kept(again).number > 20 and again.audit().ok


def test_nothing_of_an_erased_decision_is_in_a_snapshot_even_one_that_was_drafted_before():
    experiment = played(10)
    old = kept(experiment)
    experiment.erase(2, "right")
    assert kept(experiment) is None
    experiment._journal.storage.save_snapshot(old)
    assert kept(experiment) is None
    for _ in range(12):
        experiment.ask({"C": 0})
    text = zlib.decompress(kept(experiment).body).decode().split("\n")
    assert json.loads(text[1])[2] == "erased" and len(json.loads(text[1])) == 4


def test_decisions_after_a_snapshot_say_again_what_made_them(long):
    again = Experiment.open(long._journal.storage)
    again.ask({"C": 0})
    assert "maker" in again.events()[-1].payload and again.audit().ok


def test_the_first_is_taken_before_a_decision_and_not_at_each():
    experiment = new(policy="random")
    taken = set()
    for _ in range(60):
        experiment.ask({"C": 0})
        taken.add(kept(experiment) and kept(experiment).number)
    assert None in taken and 5 < len(taken) < 40
    assert all(journal(experiment)[number].kind == "asked" for number in taken - {None})
