"""Audits: whatever is changed, removed, moved or made up is found, and the first event named."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from support.experiments import (
    WARD,
    head_text,
    new_experiment,
    play_experiment,
    rehash,
    stored_events,
    with_payload,
)

from dowise import DowiseError
from dowise.experiment import audit as auditing
from dowise.experiment.audit import Audit
from dowise.experiment.event import Head, next_event
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import open_storage

COLUMNS = ("number", "kind", "at", "actor", "salt", "body", "hash")


@pytest.fixture
def whole():
    """A journal with an event of every kind."""
    experiment = play_experiment(5)
    experiment.withdraw(3, "left")
    rows = {name: ["0", "1"] for name in "CWXYZ"}
    experiment.import_records(rows | {"arm": ["do()", "do(X=1)"]})
    experiment.revise(policy="ts", reason="to compare")
    experiment.ask({"C": 0}, "r", forbid=["do(W=1)"])
    experiment.erase(2, "right")
    experiment.ask({"C": 0})
    kinds = {event.kind for event in experiment.events()}
    assert kinds == {
        "created", "asked", "told", "amended", "withdrawn", "imported", "revised", "erased",
    }  # fmt: skip
    return experiment


def finding(experiment, head=None):
    found = experiment.audit(head)
    assert found.ok == (found.finding is None)
    return found.finding


def changed(event, column):
    """The event with one letter changed in a column."""
    before = getattr(event, column)
    if column == "number":
        return replace(event, number=before + 1)
    if column == "body":
        other = before.replace(":", ": ", 1)  # says the same
    else:
        other = ("0" if before[:1] != "0" else "1") + before[1:]
    return replace(event, **{column: other})


def test_a_whole_journal_is_fine_and_says_what_it_can_not_know(whole):
    audit = whole.audit()
    assert audit.ok and audit.events == whole.head.number and audit.head == whole.head
    page = audit.as_dict()
    assert page["head"] == str(whole.head) and page["finding"] is None and page["ok"] is True
    assert "cut off at the end" in page["notes"][-1]
    with_head = whole.audit(str(whole.head))
    assert with_head.ok and not any("cut off" in note for note in with_head.notes())
    assert json.loads(json.dumps(page)) == page


@pytest.mark.parametrize("column", COLUMNS)
def test_a_letter_changed_in_any_column_of_any_event_is_found_there(whole, column):
    events = stored_events(whole)
    for place, event in enumerate(list(events)):
        events[place] = changed(event, column)
        found = finding(whole)
        assert found is not None and found.event == place + 1, (column, event.kind)
        events[place] = event
    assert finding(whole) is None


def test_a_body_that_is_no_json_is_found_where_it_is_even_an_erasure(whole):
    events = stored_events(whole)
    for place, event in enumerate(list(events)):
        events[place] = replace(event, body=event.body[:-1])
        assert finding(whole).event == place + 1, event.kind
        events[place] = event


@pytest.mark.parametrize("place", [-1, 3])
def test_a_row_that_somebody_spoiled_is_named_even_the_last(tmp_path, place):
    path = tmp_path / "ward.db"
    with Experiment.create(path, "w", "task1", policy="ucb", seed=1) as experiment:
        for _ in range(3):
            experiment.tell(experiment.ask().id, {"Y": 1})
        number = experiment.head.number if place == -1 else place
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE events SET actor = x'ff' WHERE number = ?", (number,))
        raw.commit()
    with closing(open_storage(path)) as storage:
        audit = auditing.audit(storage, "w")
    assert audit.finding.event == number and audit.events == 7
    assert audit.finding.why == f"it can't be read: event {number} of w can't be read"


def test_a_removed_event_and_two_that_changed_places_are_found(whole):
    events = stored_events(whole)
    kept = list(events)
    for place in range(len(kept) - 1):
        events[:] = kept[:place] + kept[place + 1 :]
        assert finding(whole).event == place + 1
        events[:] = kept
        events[place], events[place + 1] = events[place + 1], events[place]
        assert finding(whole).event == place + 1
    events[:] = [replace(event, number=i + 1) for i, event in enumerate(kept[:3] + kept[4:])]
    assert finding(whole).event == 4


def test_a_cut_tail_is_found_by_a_head_that_was_kept_and_by_nothing_else(whole):
    head, events = whole.head, stored_events(whole)
    number = len(events)
    del events[-2:]
    opened = Experiment.open(whole._journal.storage)
    short = opened.audit()  # without the erasure, what it blanked is unexplained
    assert short.finding.event < number - 1
    events.pop()
    fresh = play_experiment(4)
    kept, tail = fresh.head, stored_events(fresh)
    del tail[-2:]
    assert finding(fresh) is None
    for given in (kept, str(kept), (kept.number, kept.hash), [str(kept.number), kept.hash.upper()]):
        found = finding(fresh, given)
        assert found.event == len(tail) + 1
        assert found.why == f"it is missing: the journal once had {kept.number} events"
    assert finding(fresh, head_text(tail[2])) is None
    assert head.number == number


def test_a_tail_that_was_written_anew_is_found_by_a_head_that_was_kept():
    experiment = play_experiment(4)
    head, events = experiment.head, stored_events(experiment)
    last = events.pop()
    assert last.kind == "told"
    events.append(
        next_event(
            events[-1], "w", "told", last.at, last.actor, last.payload | {"values": {"Y": "1"}}
        )
    )
    opened = Experiment.open(experiment._journal.storage)
    assert finding(opened) is None  # it could have been so
    assert finding(opened, head).event == head.number
    assert "rewritten" in finding(opened, head).why


@pytest.mark.parametrize("head", ["12", "x:y", "1:2:3", 5, (1,), ("a", "b")])
def test_heads_that_are_none(head):
    with pytest.raises(DowiseError, match="must have the form NUMBER:HASH"):
        new_experiment().audit(head)


def test_a_body_in_the_form_of_an_erased_one_is_found(whole):
    events = stored_events(whole)
    for place, event in enumerate(list(events)):
        if not event.is_erased:
            events[place] = event.erased()
            found = finding(whole)
            assert found.event == place + 1 and "its content is missing" in found.why, event.kind
            events[place] = event


# -- made up with right hashes: only deriving everything again finds it ----------------------------


def forged(experiment, place, **changes):
    events = stored_events(experiment)
    events[place] = with_payload(events[place], **changes)
    rehash(events, place)
    return finding(Experiment.open(experiment._journal.storage))


def place_of(experiment, kind, which=0):
    return [i for i, event in enumerate(stored_events(experiment)) if event.kind == kind][which]


@pytest.mark.parametrize(
    "change",
    [
        lambda says: {"arm": {"W": "0", "X": "0"} if len(says["arm"]) != 2 else {"X": "1"}},
        lambda says: {"probabilities": says["probabilities"][::-1]},
        lambda says: {"context": {"C": "0" if says["context"]["C"] == "1" else "1"}},
        lambda _: {"stream": [99]},
        lambda says: {"reason": says["reason"] + "!"},
        lambda _: {"figures": {}},
        lambda _: {"allowed": [0, 1]},
        lambda says: {"decision": says["decision"] + 1},
        lambda says: {"known": says["known"] | {"counts": "00"}},
        lambda says: {"known": says["known"] | {"cases": "00"}},
        lambda says: {"known": says["known"] | {"event": 1}},
        lambda _: {"known": None},
        lambda _: {"context": "C=1"},
        lambda _: {"allowed": ["do(X=1)"]},
        lambda _: {"allowed": [999]},
        lambda _: {"context": {}},
    ],
)
def test_a_decision_that_does_not_follow(change):
    experiment = play_experiment(5)
    place = place_of(experiment, "asked", 3)
    found = forged(experiment, place, **change(stored_events(experiment)[place].payload))
    assert found is not None and found.event == place + 1


def test_told_values_that_were_changed_are_found_at_the_next_decision():
    experiment = play_experiment(5)
    place = place_of(experiment, "told", 1)
    later = next(e for e in stored_events(experiment)[place:] if e.kind == "asked").number
    values = stored_events(experiment)[place].payload["values"]
    other = {name: "1" if label == "0" else "0" for name, label in values.items()}
    found = forged(experiment, place, values=other)
    assert found.event == later and "what it records as known" in found.why


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
def test_other_events_that_were_made_up(kind, changes):
    experiment = play_experiment(5)
    found = forged_unopened(experiment, place_of(experiment, kind), **changes)
    assert found is not None


def forged_unopened(experiment, place, **changes):
    events = stored_events(experiment)
    events[place] = with_payload(events[place], **changes)
    rehash(events, place)
    return auditing.audit(experiment._journal.storage, "w").finding


def test_time_does_not_go_backwards():
    experiment = play_experiment(4)
    events = stored_events(experiment)
    events[3] = replace(events[3], at="2020-01-01T00:00:00.000000Z")
    rehash(events, 3)
    assert finding(experiment).event == 4 and "2020" in finding(experiment).why


# -- made elsewhere --------------------------------------------------------------------------------


def test_other_bits_by_another_version_or_processor_are_told_apart_from_changes(monkeypatch):
    experiment = play_experiment(5)
    place = place_of(experiment, "asked", 3)
    chances = stored_events(experiment)[place].payload["probabilities"]
    wiggled = [chances[0] + 2**-50, *chances[1:]]
    here = auditing.build_info()
    monkeypatch.setattr(auditing, "build_info", lambda: here | {"processor": "another"})
    assert forged(experiment, place, probabilities=wiggled) is None
    audit = experiment.audit()
    assert audit.made_elsewhere == (4,) and "another version or processor" in audit.notes()[0]
    known = stored_events(experiment)[place].payload["known"]
    assert forged(experiment, place, known=known | {"counts": "00"}).event == place + 1


def test_reasons_that_were_worded_otherwise_are_told_apart_from_changes():
    experiment = play_experiment(5)
    place = place_of(experiment, "asked", 3)
    here = auditing.build_info()
    before = {part: here[part] for part in here if part != "wording"}  # as journals have had it
    chances = stored_events(experiment)[place].payload["probabilities"]
    assert forged(experiment, place, reason="as it was put then", maker=before) is None
    assert experiment.audit().made_elsewhere == ()
    found = forged(experiment, place, probabilities=[chances[0] + 2**-50, *chances[1:]])
    assert found.event == place + 1 and "its probabilities would differ" in found.why


def test_what_made_a_decision_is_said_again_when_it_changes(monkeypatch):
    from dowise.experiment import ask as asking

    experiment = play_experiment(2)
    here = asking.build_info()
    monkeypatch.setattr(asking, "build_info", lambda: here | {"numpy": "99"})
    experiment.ask({"C": 0})
    experiment.ask({"C": 0})
    asked = [event.payload for event in experiment.events() if event.kind == "asked"]
    assert [("maker" in says) for says in asked] == [False, False, True, False]
    assert asked[2]["maker"]["numpy"] == "99" and experiment.audit().ok


# -- on the real thing -----------------------------------------------------------------------------


def test_what_was_changed_in_a_file_is_found(tmp_path):
    path = tmp_path / "ward.db"
    with Experiment.create(path, "w", WARD, "random", seed=2) as experiment:
        for _ in range(3):
            asked = experiment.ask({"C": 1})
            experiment.tell(asked.id, {"Y": 1})
        head = experiment.head
    for change, number in [
        ('update events set body = replace(body, \'"Y":"1"\', \'"Y":"0"\') where number = 3', 3),
        ("update events set actor = 'somebody' where number = 4", 4),
        ("delete from events where number = 5", 5),
        ("update events set experiment = 'other' where number = 2", 2),
        ("update events set number = 99 where number = 6", 6),
        ("delete from events where number > 5", None),
    ]:
        copy = tmp_path / f"{number}.db"
        copy.write_bytes(path.read_bytes())
        connection = sqlite3.connect(copy)
        for (trigger,) in connection.execute("select name from sqlite_master where type='trigger'"):
            connection.execute(f"drop trigger {trigger}")
        assert connection.execute(change).rowcount >= 1
        connection.commit()
        connection.close()
        with Experiment.open(copy, "w") as opened:
            found = opened.audit().finding
            assert (None if found is None else found.event) == number, change
            kept = opened.audit(head).finding
            assert kept.event == (6 if number is None else number)
            assert isinstance(head, Head)


def test_progress_is_told_for_every_event():
    seen = []

    def track(events, count):
        for event in events:
            seen.append((event.number, count))
            yield event

    experiment = play_experiment(3)
    experiment.audit(track=track)
    assert [number for number, _ in seen] == [*range(1, experiment.head.number + 1)]


def test_an_old_head_does_not_vouch_for_what_came_later(whole):
    early = whole.events(upto=3)[-1].head
    stored_events(whole).pop()
    found = Experiment.open(whole._journal.storage).audit(head=early)
    assert found.ok
    assert any("up to event 3 nothing was cut off" in note for note in found.notes())
    last = Experiment.open(whole._journal.storage).audit(head=whole.events()[-1].head)
    assert not any("cut off" in note for note in last.notes())


@pytest.mark.parametrize("digits", [12, 40, 64])
def test_the_first_digits_of_a_head_will_do_and_what_they_prove_is_said(whole, digits):
    number, digest = whole.head
    found = whole.audit(f"{number}: {digest[:digits].upper()}")
    assert found.ok and (found.known_upto, found.known_digits) == (number, digits)
    assert any("digits" in note for note in found.notes()) == (digits < 64)
    assert Audit.from_dict(found.as_dict()) == found
    other = digest[: digits - 1] + ("1" if digest[digits - 1] == "0" else "0")
    assert "rewritten" in finding(whole, (number, other)).why
    assert "is missing" in finding(whole, (number + 1, digest[:digits])).why


def test_too_few_digits_of_a_head_are_refused(whole):
    with pytest.raises(DowiseError, match="has 11 digits of the hash: pass at least 12, or better"):
        whole.audit(f"3:{'a' * 11}")


@pytest.mark.parametrize("head", ["0:" + 64 * "a", "-5:x", "3:xyz", (1.5, 64 * "a")])
def test_a_head_that_can_not_be_one_is_refused(whole, head):
    with pytest.raises(DowiseError, match="NUMBER:HASH"):
        whole.audit(head=head)


@pytest.mark.parametrize("column", ["number", "body", "hash"])
def test_columns_of_another_type_are_a_finding(tmp_path, column):
    path = tmp_path / "ward.db"
    with new_experiment(storage=str(path)) as experiment:
        for _ in range(3):
            experiment.ask({"C": 0})
    with sqlite3.connect(path) as base:
        value = "'x'" if column == "number" else "x'00'"
        base.execute(f"update events set {column}={value} where number=3")
    base.close()
    with Experiment.open(path) as experiment:
        found = experiment.audit().finding
        assert found.event == 3


def test_an_erasure_that_can_not_be_read_is_a_finding(tmp_path):
    path = tmp_path / "ward.db"
    with new_experiment(storage=str(path)) as experiment:
        for _ in range(3):
            experiment.ask({"C": 0})
        experiment.erase(1, "right")
        experiment.ask({"C": 0})
    with closing(sqlite3.connect(path)) as base:
        base.execute("update events set body=x'00' where kind='erased'")
        base.commit()
    with Experiment.open(path) as experiment:
        assert experiment.audit().finding.event == 5
