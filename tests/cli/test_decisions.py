"""`dowise ask`, `tell`, `amend`, `withdraw`, `erase`."""

import json
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.cli_runner import WARD, loaded_modules

from dowise.cli import arguments
from dowise.experiment import Experiment
from dowise.experiment import event as event_module

ASK = ("ask", "ward.db", "-c", "Age=1")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store with two decisions: 1 is done, 2 is pending."""
    folder = tmp_path_factory.mktemp("store")
    (folder / "ward.toml").write_text(WARD)
    with Experiment.create(folder / "ward.db", "ward", folder / "ward.toml", seed=7) as experiment:
        experiment.ask_many([{"Age": 1}, {"Age": 0}], allowed=["do(Dose=none)", "do(Dose=high)"])
        experiment.tell(1, {"Frailty": 0, "Recovery": 1})
    return folder / "ward.db"


@pytest.fixture
def ward(cli, store):
    shutil.copy(store, "ward.db")
    return cli


def events():
    with Experiment.open("ward.db") as experiment:
        return [(event.kind, event.payload, event.actor) for event in experiment.events()]


def test_ask_prints_the_decision_and_the_command_to_tell(ward):
    output = ward.run_ok(*ASK, "--allow", "do(Dose=low)")
    assert output.startswith("Decision 3: set Dose to low\n  do(Dose=low), with probability 1.00: ")
    assert "\n  dowise tell ward.db 3 Frailty=… Recovery=…\n" in output


def test_ask_prints_json(ward):
    decision = ward.run_json(*ASK)
    assert decision["id"] == 3 and decision["text"].startswith("do(") and decision["reason"]
    assert sum(decision["probabilities"]) == pytest.approx(1)
    assert decision["context"] == {"Age": "1"} and {*decision["arm"]} <= {"Dose"}
    assert decision["arms"] == ["do()", "do(Dose=none)", "do(Dose=low)", "do(Dose=high)"]
    assert decision["allowed"] is None and decision["text"] in decision["arms"]


def test_ask_makes_several_decisions(ward):
    output = ward.run_ok(*ASK, "-n", "3")
    assert "in words" in output and "dowise tell ward.db 3 " in output
    for number, ids in (("2", [6, 7]), ("1", [8])):
        document = ward.run_json(*ASK, "-n", number)
        assert [*document] == ["decisions"] and [x["id"] for x in document["decisions"]] == ids


def test_tell_accepts_an_outcome_in_parts(ward):
    output = ward.run_ok("tell", "ward.db", "2", "Frailty=1", "--actor", "ann")
    assert output.startswith("Decision 2, do(Dose=") and "pending: Frailty=1\n" in output
    assert "\n  dowise tell ward.db 2 Recovery=…\n" in output
    assert ward.run_ok("tell", "ward.db", "2", "Frailty=1").startswith("Nothing new: decision 2")
    case = ward.run_json("tell", "ward.db", "2", "Recovery=0")
    assert case["status"] == "done" and case["changed"] and case["open"] == []
    assert case["values"] == {"Frailty": "1", "Recovery": "0"} and case["head"].startswith("6:")
    assert not ward.run_json("tell", "ward.db", "2", "Recovery=0")["changed"]
    kind, payload, actor = events()[-2]
    assert (kind, payload["values"], actor) == ("told", {"Frailty": "1"}, "ann")


def test_tell_records_that_another_arm_was_played(ward):
    output = ward.run_ok("tell", "ward.db", "2", "Recovery=1", "--played", "do(Dose=low)")
    assert "do(Dose=low), done" in output and "Nothing is learned from it" in output
    unrelated = ("--played", "do(Dose=low)", "--unrelated", "--reason", "out of stock")
    case = ward.run_json("amend", "ward.db", "2", *unrelated)
    assert case["played"] == "do(Dose=low)" and case["changed"]
    assert "Nothing is learned" not in ward.run_ok("tell", "ward.db", "2", "Frailty=1")


def test_outcomes_that_do_not_count_yet_are_noted(cli):
    cli.create("--no-learn-restricted")
    cli.run_ok(*ASK)
    (note,) = cli.run_json("tell", "ward.db", "1", "Recovery=1")["notes"]
    assert "Recovery does not count yet" in note and "Frailty" in note
    (incomplete,) = cli.run_json("status", "ward.db")["incomplete"]
    assert incomplete["id"] == 1 and "Frailty" in incomplete["open"]
    assert cli.run_json("tell", "ward.db", "1", "Frailty=1")["notes"] == []
    assert cli.run_json("status", "ward.db")["incomplete"] == []
    cli.run_ok(*ASK, "--allow", "do(Dose=low)")
    output = cli.run_text("tell", "ward.db", "2", "Frailty=1", "Recovery=1")
    assert "Nothing is learned from it: some arms were not allowed" in output


def test_amend_replaces_a_value_and_records_the_reason(ward):
    amend = ("amend", "ward.db", "1")
    assert "Recovery=0" in ward.run_ok(*amend, "Recovery=0", "--reason", "typing error")
    kind, payload, _ = events()[-1]
    assert kind == "amended" and payload["before"] == {"Recovery": "1"}
    assert payload["reason"] == "typing error"
    assert not ward.run_json(*amend, "Recovery=0", "--reason", "again")["changed"]
    output = ward.run_ok(*amend, "Age=0", "--reason", "wrong file")
    assert "\n  Age changed from 1 to 0\n" in output
    assert "was amended: Age changed from 1 to 0." in ward.run_text("explain", "ward.db", "1")


def test_tell_a_superseded_value_names_the_amendment(ward):
    ward.run_ok("amend", "ward.db", "1", "Recovery=0", "--reason", "typing error")
    output = ward.run_text("tell", "ward.db", "1", "Recovery=1")
    assert output.startswith("Nothing new: decision 1")
    assert "Recovery=1 was told before and amended to 0 since; `dowise amend`" in output
    assert "told before" not in ward.run_ok("tell", "ward.db", "1", "Recovery=0")


def test_withdraw_twice_is_a_no_op(ward):
    withdraw = ("withdraw", "ward.db", "2", "--reason", "moved away")
    assert "withdrawn" in ward.run_ok(*withdraw)
    case = ward.run_json(*withdraw)
    assert case["status"] == "withdrawn" and not case["changed"]


def test_erase_removes_values_from_the_journal(ward):
    erase = ("erase", "ward.db", "1", "--reason", "asked to be forgotten")
    assert "was erased" in ward.run_ok(*erase, "--yes")
    document = ward.run_json(*erase)
    assert document["id"] == 1 and document["status"] == "erased" and not document["changed"]
    assert document["head"].startswith("5:") and events()[-1][0] == "erased"
    assert "already erased" in ward.run_ok(*erase)
    assert ward.error_code("tell", "ward.db", "1", "Recovery=1") == "decision-erased"
    assert ward.run_json("audit", "ward.db")["ok"]


def test_erase_without_a_terminal_needs_a_confirmation(ward):
    before = events()
    erase = ("erase", "ward.db", "2", "--reason", "asked to be forgotten")
    assert "Erase decision 2, do(Dose=" in ward.error(*erase)
    assert ward.error_code(*erase) == "confirmation-required"
    assert events() == before


def test_erase_on_a_terminal_asks_for_confirmation(ward, monkeypatch):
    monkeypatch.setattr(arguments, "is_terminal", lambda: True)
    erase = ("erase", "ward.db", "2", "--reason", "asked to be forgotten")
    before = events()
    refused = ward.run(*erase, input="n\n")
    assert refused.exit_code == 2 and "Erase decision 2, do(Dose=" in refused.stderr
    assert "nothing was changed" in refused.stderr and refused.stdout == ""
    stopped = ward.run(*erase, input="")
    assert stopped.exit_code == 130 and "Stopped." in stopped.stderr
    assert events() == before
    document = ward.run(*erase, "--json", input="y\n").stdout
    assert json.loads(document)["status"] == "erased"
    assert ward.run("erase", "ward.db", "1", "--reason", "x", "--yes", input="").exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        " ".join(ASK),
        "tell ward.db 1 Recovery=1",
        "amend ward.db 1 Recovery=1 --reason x",
        "withdraw ward.db 1 --reason x",
        "revise ward.db --policy ts --reason x",
        "erase ward.db 1 --reason x",
        "import ward.db ward.toml",
    ],
)
def test_a_missing_or_damaged_store_is_not_touched(cli, words):
    assert "ward.db" in cli.error(*words.split())
    assert [path.name for path in cli.folder.iterdir()] == ["ward.toml"]
    for content in ("", "not a store, but a text that is long enough"):
        Path("ward.db").write_text(content)
        cli.error(*words.split())
        assert Path("ward.db").read_text() == content


def test_damaged_events_are_named(ward):
    content = Path("ward.db").read_bytes()
    Path("ward.db").write_bytes(content[: len(content) // 2])
    ward.error(*ASK)
    Path("ward.db").write_bytes(content)
    for number, change in ((4, "replace(body, '\"1\"', '\"0\"')"), (2, "'nothing'")):
        with sqlite3.connect("ward.db") as connection:
            connection.execute(f"update events set body = {change} where number = {number}")
        connection.close()
        assert f"event {number} of ward" in ward.error(*ASK)


def test_a_copy_without_the_wal_file_is_explained(ward):
    with Experiment.create("late.db", "late", "ward.toml"):
        shutil.copy("late.db", "early.db")
    assert "was it copied without its -wal file" in ward.error("status", "early.db")


def test_a_clock_that_is_behind_needs_confirmation(ward, monkeypatch):
    monkeypatch.setattr(event_module, "now", lambda: datetime(2020, 1, 1, tzinfo=UTC))
    assert "--accept-clock" in ward.error("tell", "ward.db", "2", "Recovery=1")
    assert ward.run_json("tell", "ward.db", "2", "Recovery=1", "--accept-clock")["changed"]


@pytest.mark.slow
def test_telling_loads_neither_numba_nor_pandas(ward):
    ward.run_ok(*ASK)
    heavy = {"numba", "llvmlite", "scipy", "pandas", "pyarrow", "networkx"}
    for words in (
        ["tell", "ward.db", "2", "Recovery=1"],
        ["amend", "ward.db", "2", "Recovery=0", "--reason", "x"],
        ["withdraw", "ward.db", "3", "--reason", "x"],
    ):
        assert loaded_modules(words, heavy) == []


LONG_NAMES = """\
name = "stay"
graph = '"Pain relief" -> Mobility; Mobility -> Stay; Physiotherapy -> Stay'
reward = "Stay"
non_manipulable = ["Mobility"]
[domains]
"Pain relief" = ["paracetamol", "opioid infusion", "nerve block"]
Physiotherapy = ["daily", "twice a day"]
"""


def test_long_names_are_readable_on_a_narrow_terminal(cli):
    cli.write("stay.toml", LONG_NAMES)
    arm = "do(Pain relief=paracetamol, Physiotherapy=daily)"
    text = "set Pain relief to paracetamol and Physiotherapy to daily"
    outputs = {
        "arms": cli.run_ok("arms", "stay.toml"),
        "new": cli.run_ok("new", "s.db", "stay.toml", "--seed", "1"),
        "ask": cli.run_ok("ask", "s.db", "-n", "2", "--allow", arm),
        "explain": cli.run_ok("explain", "s.db", "1"),
        "status": cli.run_ok("status", "s.db", "--no-evidence"),
    }
    assert f"\n    1  {arm}\n  {text}\n    2  do(" in outputs["arms"]
    assert f"\n  arms      {arm}\n            do(Pain" in outputs["new"]
    assert f"  2  {arm}         1.00\n  {text}\n" in outputs["ask"]
    for name in ("explain", "status"):
        assert f"\n  {arm}\n    " in outputs[name]
    for line in "\n".join(outputs.values()).splitlines():
        assert len(line) <= 80 and line == line.rstrip()
