"""Audits find whatever was changed, removed, moved or made up, and name the first such event."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from support.errors import raises_code
from support.experiments import (
    WARD,
    head_text,
    new_experiment,
    play_experiment,
    rehash,
    stored_events,
    with_payload,
)

from dowise.experiment import audit as audit_module
from dowise.experiment.audit import Audit
from dowise.experiment.event import next_event
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import open_storage

COLUMNS = ("number", "kind", "at", "actor", "salt", "body", "hash")


@pytest.fixture
def experiment():
    """An experiment with an event of every kind."""
    experiment = play_experiment(5)
    experiment.withdraw(3, "left")
    rows = {name: ["0", "1"] for name in "CWXYZ"}
    experiment.import_records(rows | {"arm": ["do()", "do(X=1)"]})
    experiment.revise(policy="ts", reason="to compare")
    experiment.ask({"C": 0}, "r", forbid=["do(W=1)"])
    experiment.erase(2, "right")
    experiment.ask({"C": 0})
    assert {event.kind for event in experiment.events()} == {
        "created", "asked", "told", "amended", "withdrawn", "imported", "revised", "erased",
    }  # fmt: skip
    return experiment


def finding(experiment, head=None):
    audit = experiment.audit(head)
    assert audit.ok == (audit.finding is None)
    return audit.finding


def changed(event, column):
    """Return the event with one character changed in a column."""
    value = getattr(event, column)
    if column == "number":
        other = value + 1
    elif column == "body":
        other = value.replace(":", ": ", 1)  # the same JSON
    else:
        other = ("0" if value[:1] != "0" else "1") + value[1:]
    return replace(event, **{column: other})


# -- stored events --------------------------------------------------------------------------------


def test_an_intact_journal_has_no_finding(experiment):
    audit = experiment.audit()
    assert audit.ok and audit.events == experiment.head.number and audit.head == experiment.head
    data = audit.as_dict()
    assert data["head"] == str(experiment.head)
    assert data["finding"] is None and data["ok"] is True
    assert "cut off at the end" in data["notes"][-1]
    assert json.loads(json.dumps(data)) == data
    with_head = experiment.audit(str(experiment.head))
    assert with_head.ok and not any("cut off" in note for note in with_head.notes())


@pytest.mark.parametrize("column", COLUMNS)
def test_any_changed_character_is_found(experiment, column):
    events = stored_events(experiment)
    for i, event in enumerate(list(events)):
        events[i] = changed(event, column)
        assert finding(experiment).event == i + 1, (column, event.kind)
        events[i] = event
    assert finding(experiment) is None


def test_bodies_that_are_not_json_or_look_erased_are_found(experiment):
    events = stored_events(experiment)
    for i, event in enumerate(list(events)):
        events[i] = replace(event, body=event.body[:-1])
        assert finding(experiment).event == i + 1, event.kind
        if not event.is_erased:
            events[i] = event.erased()
            result = finding(experiment)
            assert result.event == i + 1 and "its content is missing" in result.why, event.kind
        events[i] = event


@pytest.mark.parametrize("number", [3, None])
def test_unreadable_rows_are_found(tmp_path, number):
    path = tmp_path / "ward.db"
    with Experiment.create(path, "w", "task1", policy="ucb", seed=1) as experiment:
        for _ in range(3):
            experiment.tell(experiment.ask().id, {"Y": 1})
        number = number or experiment.head.number
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE events SET actor = x'ff' WHERE number = ?", (number,))
        raw.commit()
    with closing(open_storage(path)) as storage:
        audit = audit_module.audit(storage, "w")
    assert audit.finding.event == number and audit.events == 7
    assert audit.finding.why == f"it can't be read: event {number} of w can't be read"


def test_removed_and_swapped_events_are_found(experiment):
    events = stored_events(experiment)
    original = list(events)
    for i in range(len(original) - 1):
        events[:] = original[:i] + original[i + 1 :]
        assert finding(experiment).event == i + 1
        events[:] = original
        events[i], events[i + 1] = events[i + 1], events[i]
        assert finding(experiment).event == i + 1
    shorter = original[:3] + original[4:]
    events[:] = [replace(event, number=i + 1) for i, event in enumerate(shorter)]
    assert finding(experiment).event == 4


def test_a_cut_is_found_by_a_head_only(experiment):
    events = stored_events(experiment)
    number = len(events)
    del events[-2:]
    # Without the erasure, the events that it erased are unexplained.
    assert Experiment.open(experiment._journal.storage).audit().finding.event < number - 1
    experiment = play_experiment(4)
    head, events = experiment.head, stored_events(experiment)
    del events[-2:]
    assert finding(experiment) is None
    for form in (head, str(head), (head.number, head.hash), [str(head.number), head.hash.upper()]):
        result = finding(experiment, form)
        assert result.event == len(events) + 1
        assert result.why == f"it is missing: the journal once had {head.number} events"
    assert finding(experiment, head_text(events[2])) is None


def test_a_rewritten_end_is_found_by_a_head_only():
    experiment = play_experiment(4)
    head, events = experiment.head, stored_events(experiment)
    last = events.pop()
    assert last.kind == "told"
    payload = last.payload | {"values": {"Y": "1"}}
    events.append(next_event(events[-1], "w", "told", last.at, last.actor, payload))
    reopened = Experiment.open(experiment._journal.storage)
    assert finding(reopened) is None
    result = finding(reopened, head)
    assert result.event == head.number and "rewritten" in result.why


def test_changes_in_a_file_are_found(tmp_path):
    path = tmp_path / "ward.db"
    with Experiment.create(path, "w", WARD, "random", seed=2) as experiment:
        for _ in range(3):
            experiment.tell(experiment.ask({"C": 1}).id, {"Y": 1})
        head = experiment.head
    for change, number in [
        ('update events set body = replace(body, \'"Y":"1"\', \'"Y":"0"\') where number = 3', 3),
        ("update events set actor = 'somebody' where number = 4", 4),
        ("delete from events where number = 5", 5),
        ("update events set experiment = 'other' where number = 2", 2),
        ("update events set number = 99 where number = 6", 6),
        ("delete from events where number > 5", None),
        ("update events set number = 'x' where number = 3", 3),
        ("update events set body = x'00' where number = 3", 3),
        ("update events set hash = x'00' where number = 3", 3),
    ]:
        copy = tmp_path / "copy.db"
        copy.write_bytes(path.read_bytes())
        with closing(sqlite3.connect(copy)) as raw:
            triggers = raw.execute("select name from sqlite_master where type='trigger'").fetchall()
            for (trigger,) in triggers:
                raw.execute(f"drop trigger {trigger}")
            assert raw.execute(change).rowcount >= 1
            raw.commit()
        with Experiment.open(copy, "w") as opened:
            result = opened.audit().finding
            assert (None if result is None else result.event) == number, change
            assert opened.audit(head).finding.event == (6 if number is None else number)


def test_an_unreadable_erasure_is_found(tmp_path):
    path = tmp_path / "ward.db"
    with new_experiment(storage=str(path)) as experiment:
        for _ in range(3):
            experiment.ask({"C": 0})
        experiment.erase(1, "right")
        experiment.ask({"C": 0})
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("update events set body=x'00' where kind='erased'")
        raw.commit()
    with Experiment.open(path) as experiment:
        assert experiment.audit().finding.event == 5


# -- events that were made up with right hashes ---------------------------------------------------


def finding_of_forgery(experiment, i, **changes):
    events = stored_events(experiment)
    events[i] = with_payload(events[i], **changes)
    rehash(events, i)
    return audit_module.audit(experiment._journal.storage, "w").finding


def index_of(experiment, kind, nth=0):
    return [i for i, event in enumerate(stored_events(experiment)) if event.kind == kind][nth]


@pytest.mark.parametrize(
    "change",
    [
        lambda body: {"arm": {"W": "0", "X": "0"} if len(body["arm"]) != 2 else {"X": "1"}},
        lambda body: {"probabilities": body["probabilities"][::-1]},
        lambda body: {"context": {"C": "0" if body["context"]["C"] == "1" else "1"}},
        lambda _: {"stream": [99]},
        lambda body: {"reason": body["reason"] + "!"},
        lambda _: {"figures": {}},
        lambda _: {"allowed": [0, 1]},
        lambda body: {"decision": body["decision"] + 1},
        lambda body: {"known": body["known"] | {"counts": "00"}},
        lambda body: {"known": body["known"] | {"cases": "00"}},
        lambda body: {"known": body["known"] | {"event": 1}},
        lambda _: {"known": None},
        lambda _: {"context": "C=1"},
        lambda _: {"allowed": ["do(X=1)"]},
        lambda _: {"allowed": [999]},
        lambda _: {"context": {}},
    ],
)
def test_forged_decisions_are_found(change):
    experiment = play_experiment(5)
    i = index_of(experiment, "asked", 3)
    result = finding_of_forgery(experiment, i, **change(stored_events(experiment)[i].payload))
    assert result.event == i + 1


def test_forged_outcomes_are_found_at_the_next_decision():
    experiment = play_experiment(5)
    i = index_of(experiment, "told", 1)
    later = next(event for event in stored_events(experiment)[i:] if event.kind == "asked").number
    values = stored_events(experiment)[i].payload["values"]
    flipped = {name: "1" if label == "0" else "0" for name, label in values.items()}
    result = finding_of_forgery(experiment, i, values=flipped)
    assert result.event == later and "what it records as known" in result.why


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("created", {"seed": "8"}),
        ("created", {"options": {"samples": 51, "prior": 1.0}}),
        ("created", {"problem": "graph = 'X ->'"}),
        ("created", {"problem": None, "options": 3}),
        ("created", {"learn_restricted": [], "options": []}),
        ("told", {"decision": 77}),
        ("told", {"values": ["Y"]}),
        ("told", {"values": None}),
        ("amended", {"values": 3}),
    ],
)
def test_other_forged_events_are_found(kind, changes):
    experiment = play_experiment(5)
    assert finding_of_forgery(experiment, index_of(experiment, kind), **changes) is not None


def test_time_goes_forward():
    experiment = play_experiment(4)
    events = stored_events(experiment)
    events[3] = replace(events[3], at="2020-01-01T00:00:00.000000Z")
    rehash(events, 3)
    assert finding(experiment).event == 4 and "2020" in finding(experiment).why


# -- other builds ---------------------------------------------------------------------------------


def test_other_bits_of_another_build_are_not_a_finding(monkeypatch):
    experiment = play_experiment(5)
    i = index_of(experiment, "asked", 3)
    chances = stored_events(experiment)[i].payload["probabilities"]
    build = audit_module.build_info()
    monkeypatch.setattr(audit_module, "build_info", lambda: build | {"processor": "another"})
    assert (
        finding_of_forgery(experiment, i, probabilities=[chances[0] + 2**-50, *chances[1:]]) is None
    )
    audit = experiment.audit()
    assert audit.made_elsewhere == (4,) and "another version or processor" in audit.notes()[0]
    known = stored_events(experiment)[i].payload["known"]
    assert finding_of_forgery(experiment, i, known=known | {"counts": "00"}).event == i + 1


def test_other_wordings_of_another_build_are_not_a_finding():
    experiment = play_experiment(5)
    i = index_of(experiment, "asked", 3)
    build = audit_module.build_info()
    without_wording = {part: build[part] for part in build if part != "wording"}
    chances = stored_events(experiment)[i].payload["probabilities"]
    assert finding_of_forgery(experiment, i, reason="other words", maker=without_wording) is None
    assert experiment.audit().made_elsewhere == ()
    result = finding_of_forgery(experiment, i, probabilities=[chances[0] + 2**-50, *chances[1:]])
    assert result.event == i + 1 and "its probabilities would differ" in result.why


def test_a_new_build_is_recorded_once(monkeypatch):
    from dowise.experiment import ask as ask_module

    experiment = play_experiment(2)
    build = ask_module.build_info()
    monkeypatch.setattr(ask_module, "build_info", lambda: build | {"numpy": "99"})
    experiment.ask({"C": 0})
    experiment.ask({"C": 0})
    makers = [event.payload.get("maker") for event in experiment.events() if event.kind == "asked"]
    assert [maker is not None for maker in makers] == [False, False, True, False]
    assert makers[2]["numpy"] == "99" and experiment.audit().ok


# -- heads and progress ---------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [12, 40, 64])
def test_first_digits_of_a_head_are_enough(experiment, digits):
    number, digest = experiment.head
    audit = experiment.audit(f"{number}: {digest[:digits].upper()}")
    assert audit.ok and (audit.known_upto, audit.known_digits) == (number, digits)
    assert any("digits" in note for note in audit.notes()) == (digits < 64)
    assert Audit.from_dict(audit.as_dict()) == audit
    other = digest[: digits - 1] + ("1" if digest[digits - 1] == "0" else "0")
    rewritten = experiment.audit(head=(number, other))
    assert rewritten.finding is not None and "rewritten" in rewritten.finding.why
    assert not any("nothing was" in note for note in rewritten.notes())
    assert "is missing" in finding(experiment, (number + 1, digest[:digits])).why


def test_an_old_head_does_not_cover_later_events(experiment):
    early, last = experiment.events(upto=3)[-1].head, experiment.events()[-2].head
    stored_events(experiment).pop()
    reopened = Experiment.open(experiment._journal.storage)
    audit = reopened.audit(head=early)
    assert audit.ok
    assert any("up to event 3 nothing was cut off" in note for note in audit.notes())
    assert not any("cut off" in note for note in reopened.audit(head=last).notes())


@pytest.mark.parametrize(
    "head",
    [
        "12", "x:y", "1:2:3", 5, (1,), ("a", "b"), "0:" + 64 * "a", "-5:x", "3:xyz",
        (1.5, 64 * "a"), f"3:{11 * 'a'}",
    ],
)  # fmt: skip
def test_invalid_heads_are_refused(head):
    with raises_code("invalid-input", "head="):
        new_experiment().audit(head)


def test_every_event_is_tracked():
    progress = []

    def track(events, count):
        for event in events:
            progress.append((event.number, count))
            yield event

    experiment = play_experiment(3)
    experiment.audit(track=track)
    count = experiment.head.number
    assert progress == [(number, count) for number in range(1, count + 1)]
