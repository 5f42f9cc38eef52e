"""`dowise ask`, `tell`, `amend`, `withdraw`, `erase`."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli_runner import one_line

from dowise.cli import arguments as store
from dowise.experiment import Experiment

ASK = ("ask", "ward.db", "-c", "Age=1")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A store in which decisions 1 and 2 were asked for, and one was told."""
    folder = tmp_path_factory.mktemp("begun")
    path = folder / "ward.db"
    from support.cli_runner import WARD

    (folder / "ward.toml").write_text(WARD)
    with Experiment.create(path, "ward", folder / "ward.toml", seed=7) as experiment:
        experiment.ask_many([{"Age": 1}, {"Age": 0}], allowed=["do(Dose=none)", "do(Dose=high)"])
        experiment.tell(1, {"Frailty": 0, "Recovery": 1})
    return path


@pytest.fixture
def ward(desk, begun):
    """A desk with that store: decision 1 is done, decision 2 is pending."""
    shutil.copy(begun, desk.folder / "ward.db")
    return desk


def events():
    with Experiment.open("ward.db") as experiment:
        return [(event.kind, event.payload, event.actor) for event in experiment.events()]


# -- ask --------------------------------------------------------------------------------------


def test_a_question_for_people(ward):
    shown = ward.well(*ASK, "--allow", "do(Dose=low)")
    assert shown.startswith("Decision 3: set Dose to low\n  do(Dose=low), with probability 1.00: ")
    assert "\n  dowise tell ward.db 3 Frailty=… Recovery=…\n" in shown


def test_a_question_for_programs(ward):
    page = ward.json(*ASK)
    assert page["id"] == 3 and page["text"].startswith("do(") and page["reason"]
    assert sum(page["probabilities"]) == pytest.approx(1) and len(page["probabilities"]) == 4
    assert page["context"] == {"Age": "1"} and {*page["arm"]} <= {"Dose"}
    assert page["arms"] == ["do()", "do(Dose=none)", "do(Dose=low)", "do(Dose=high)"]
    assert page["allowed"] is None and page["text"] in page["arms"]
    page = ward.json(*ASK, "--forbid", "do(Dose=high)")
    assert page["allowed"] == page["arms"][:3] and len(page["probabilities"]) == 4


def test_a_batch(ward):
    shown = ward.well(*ASK, "-n", "3")
    assert "in words" in shown and "set Dose to" in shown and "dowise tell ward.db 3 " in shown
    page = ward.json(*ASK, "-n", "2")
    assert [*page] == ["decisions"] and [x["id"] for x in page["decisions"]] == [6, 7]
    assert [x["id"] for x in ward.json(*ASK, "-n", "1")["decisions"]] == [8]
    result = ward.run(*ASK, "-n", "0")
    assert result.exit_code == 2 and "0 is not in the range" in result.stderr


def test_a_request_is_answered_once(ward):
    assert [ward.json(*ASK, "--request-id", "r")["id"] for _ in range(2)] == [3, 3]
    refused = ward.fails("ask", "ward.db", "-c", "Age=0", "--request-id", "r")
    assert "the request 'r' was made before, as decision 3, with another context" in refused
    refused = ward.fails(*ASK, "--request-id", "r", "-n", "2")
    assert "as decision 3, for 1 at once, now for 2: use a new" in refused


def test_what_may_be_chosen(ward):
    dose = ("--allow", "do(Dose=none)", "--allow", "do(Dose=low)")
    page = ward.json(*ASK, *dose)
    assert page["probabilities"][0] == page["probabilities"][3] == 0
    page = ward.json(*ASK, *dose, "--forbid", "do(Dose=low)")
    assert page["text"] == "do(Dose=none)"
    refused = ward.fails(*ASK, "--allow", "do(Dose=low)", "--forbid", "do(Dose=low)")
    assert "no arm left" in refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ask", "ward.db"), "the context has no value for Age"),
        (("ask", "ward.db", "-c", "Age"), "'Age' is not NAME=VALUE, such as -c C=1"),
        (("ask", "ward.db", "-c", "Age="), "the context has no value for Age"),
        (("ask", "ward.db", "-c", "Agee=1"), "did you mean 'Age'"),
        (("ask", "ward.db", "-c", "Age=2"), "Age has no value '2'"),
        (("ask", "ward.db", "-c", "Age=1", "-c", "Age=0"), "Age is given twice"),
        ((*ASK, "--allow", "Dose=low"), "an intervention reads do(X=1, …)"),
        ((*ASK, "--forbid", "do(Frailty=1)"), "Frailty can't be set"),
        ((*ASK, "--name", "word"), "has no experiment 'word' (did you mean 'ward'?)"),
        ((*ASK, "--request-id", " "), "must be a text"),
        ((*ASK, "--actor", ""), "--actor "),
    ],
)
def test_questions_that_are_refused_change_nothing(ward, arguments, message):
    before = events()
    assert message in ward.fails(*arguments)
    assert events() == before


# -- tell -------------------------------------------------------------------------------------


def test_telling_in_pieces(ward):
    shown = ward.well("tell", "ward.db", "2", "Frailty=1", "--actor", "ann")
    assert shown.startswith("Decision 2, do(Dose=") and "pending: Frailty=1\n" in shown
    assert "\n  dowise tell ward.db 2 Recovery=…\n" in shown
    again = ward.well("tell", "ward.db", "2", "Frailty=1")
    assert again.startswith("Nothing new: decision 2")
    page = ward.json("tell", "ward.db", "2", "Recovery=0")
    assert page["status"] == "done" and page["changed"] and page["open"] == []
    assert page["values"] == {"Frailty": "1", "Recovery": "0"} and page["head"].startswith("6:")
    assert not ward.json("tell", "ward.db", "2", "Recovery=0")["changed"]
    kind, says, actor = events()[-2]
    assert (kind, says["values"], actor) == ("told", {"Frailty": "1"}, "ann")


def test_a_value_that_is_missing_for_good(ward):
    shown = ward.well("tell", "ward.db", "2", "Frailty=", "Recovery=1")
    assert "done: Frailty=missing, Recovery=1" in shown and "Still" not in shown


def test_something_else_was_done(ward):
    shown = ward.well("tell", "ward.db", "2", "Recovery=1", "--played", "do(Dose=low)")
    assert "do(Dose=low), done" in shown and "Nothing is learned from it" in shown
    page = ward.json("amend", "ward.db", "2", "--played", "do(Dose=low)", "--unrelated",
                     "--reason", "they were out of stock")  # fmt: skip
    assert page["played"] == "do(Dose=low)" and page["changed"]
    assert "Nothing is learned" not in ward.well("tell", "ward.db", "2", "Frailty=1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tell", "ward.db", "2"), "nothing was told; pass what was seen"),
        (("tell", "ward.db", "2", "Recovery"), "'Recovery' is not NAME=VALUE, such as Y=1"),
        (("tell", "ward.db", "2", "Length", "of", "stay=1"), "'Length of stay=1'"),
        (("tell", "ward.db", "2", "Recover=1"), "did you mean 'Recovery'"),
        (("tell", "ward.db", "2", "Recovery=5"), "Recovery has no value '5'"),
        (("tell", "ward.db", "2", "Recovery=1", "Recovery=1"), "Recovery is given twice"),
        (("tell", "ward.db", "1", "Recovery=0"), "Recovery is recorded as 1, not 0; amend it"),
        (("tell", "ward.db", "3", "Recovery=0"), "no decision 3 in ward: there are 1 to 2"),
        (("tell", "ward.db", "0", "Recovery=0"), "there is no decision 0 in ward"),
        (("tell", "ward.db", "one", "Recovery=0"), "not a decision: 'one'"),
        (("tell", "ward.db", "1.0", "Recovery=0"), "not a decision: '1.0'"),
        (("tell", "ward.db", "9" * 30, "Recovery=0"), "not a decision"),
        (("tell", "ward.db", "2", "Recovery=0", "--unrelated"), "needs the arm that was played"),
        (("tell", "ward.db", "2", "--played", "do(X=0)"), "unknown variable 'X'"),
        (("amend", "ward.db", "1", "Recovery=0"), "a reason is required to amend"),
        (("amend", "ward.db", "1", "--reason", "x"), "no correction was passed"),
        (("amend", "ward.db", "2", "Recovery=0", "--reason", "x"), "has not been told"),
        (("withdraw", "ward.db", "2"), "a reason is required to withdraw"),
        (("withdraw", "ward.db", "1", "--reason", "x"), "has its outcome"),
        (("withdraw", "ward.db", "7", "--reason", "x"), "there is no decision 7"),
        (("erase", "ward.db", "1"), "a reason is required to erase"),
        (("erase", "ward.db", "7", "--reason", "x"), "there is no decision 7"),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(ward, arguments, message):
    before = events()
    assert message in ward.fails(*arguments)
    assert events() == before


def test_names_and_values_with_odd_signs(desk):
    (desk.folder / "odd.toml").write_text(
        'graph = \'"a = b" -> "the end"\'\nreward = "the end"\n'
        '[domains]\n"a = b" = ["x, y", "z=1"]\n"the end" = ["not so good", "= good"]\n'
    )
    desk.json("new", "odd.db", "odd.toml", "--seed", "1")
    arm = 'do("a = b"="z=1")'
    shown = desk.well("ask", "odd.db", "--allow", arm)
    assert "set a = b to z=1" in shown and "dowise tell odd.db 1 'the end=…'\n" in shown
    page = desk.json("tell", "odd.db", "1", 'the end="= good"', '"a = b"=z=1')
    assert page["values"] == {"the end": "= good"} and page["text"] == arm


# -- amend, withdraw, erase -------------------------------------------------------------------


def test_an_amendment(ward):
    shown = ward.well("amend", "ward.db", "1", "Recovery=0", "--reason", "typing error")
    assert "Recovery=0" in shown
    kind, says, _ = events()[-1]
    assert kind == "amended" and says["before"] == {"Recovery": "1"}
    assert says["reason"] == "typing error"
    assert not ward.json("amend", "ward.db", "1", "Recovery=0", "--reason", "again")["changed"]
    page = ward.json("amend", "ward.db", "1", "Age=0", "--reason", "wrong file")
    assert page["context"] == {"Age": "0"}
    shown = ward.well("tell", "ward.db", "1", "Recovery=1").replace("\n  ", " ")
    again = "Recovery=1 was told before and amended to 0 since; `dowise amend` changes it again."
    assert shown.startswith("Nothing new: decision 1") and again in shown
    assert "told before" not in ward.well("tell", "ward.db", "1", "Recovery=0")
    again = "Age=1 was told before and amended to 0 since"
    assert again in ward.well("tell", "ward.db", "1", "Age=1").replace("\n  ", " ")


def test_an_amended_context_is_shown_by_whoever_looks(ward):
    shown = ward.well("amend", "ward.db", "1", "Age=0", "--reason", "wrong file")
    assert "\n  Age changed from 1 to 0\n" in shown
    assert "Age changed" not in ward.well("amend", "ward.db", "1", "Recovery=0", "--reason", "typo")
    shown = ward.well("explain", "ward.db", "1")
    assert "in the context Age=1." in shown.replace("\n  ", " ")
    assert "Its context was amended since: Age changed from 1 to 0." in shown
    assert "Its context" not in ward.well("explain", "ward.db", "2")


def test_a_withdrawal(ward):
    assert "withdrawn" in ward.well("withdraw", "ward.db", "2", "--reason", "moved away")
    page = ward.json("withdraw", "ward.db", "2", "--reason", "moved away")
    assert page["status"] == "withdrawn" and not page["changed"]
    assert "was withdrawn" in ward.fails("tell", "ward.db", "2", "Recovery=1")


def test_an_erasure(ward):
    erase = ("erase", "ward.db", "1", "--reason", "asked to be forgotten")
    assert "was erased" in ward.well(*erase, "--yes")
    page = ward.json("erase", "ward.db", "1", "--reason", "once more")
    assert page["id"] == 1 and page["status"] == "erased" and not page["changed"]
    assert page["head"].startswith("5:") and [kind for kind, *_ in events()][-1] == "erased"
    assert "already erased" in ward.well("erase", "ward.db", "1", "--reason", "once more")
    refused = ward.fails("tell", "ward.db", "1", "Recovery=1")
    assert "decision 1 was erased, so it can't be told" in refused
    with Experiment.open("ward.db") as experiment:
        assert experiment.audit().ok


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_nothing_is_erased_unseen_where_nobody_can_be_asked(ward, more):
    before = events()
    refused = ward.fails("erase", "ward.db", "2", "--reason", "asked to be forgotten", *more)
    assert "Erase decision 2, do(Dose=" in refused and "pass --yes" in refused
    assert events() == before


def test_an_audit_after_an_erasure_does_not_say_that_every_decision_follows(ward):
    assert "every decision follows from what was known." in ward.well("audit", "ward.db")
    ward.well(*ASK)
    ward.well("erase", "ward.db", "1", "--reason", "asked to be forgotten", "--yes")
    shown = " ".join(ward.well("audit", "ward.db").split())
    assert "every decision that can be derived again here follows from what was known." in shown
    assert " 1 decision can't be derived again, because something that was known" in shown


def test_an_erasure_is_asked_about_on_a_terminal(ward, monkeypatch):
    monkeypatch.setattr(store, "is_terminal", lambda: True)
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


# -- what can happen to a store ---------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ASK,
        ("tell", "ward.db", "1", "Recovery=1"),
        ("amend", "ward.db", "1", "Recovery=1", "--reason", "x"),
        ("withdraw", "ward.db", "1", "--reason", "x"),
        ("revise", "ward.db", "--policy", "ts", "--reason", "x"),
        ("erase", "ward.db", "1", "--reason", "x"),
        ("import", "ward.db", "ward.toml"),
    ],
)
def test_a_store_that_is_not_there_is_never_made(desk, arguments):
    assert "ward.db" in desk.fails(*arguments)
    assert [path.name for path in desk.folder.iterdir()] == ["ward.toml"]
    Path("ward.db").write_bytes(b"")
    desk.fails(*arguments)
    Path("ward.db").write_text("no store at all, but a text that is long enough")
    desk.fails(*arguments)
    assert Path("ward.db").read_text().startswith("no store at all")


def test_a_damaged_store(ward):
    whole = Path("ward.db").read_bytes()
    Path("ward.db").write_bytes(whole[: len(whole) // 2])
    ward.fails(*ASK)
    Path("ward.db").write_bytes(whole)
    with sqlite3.connect("ward.db") as base:
        base.execute("update events set body = replace(body, '\"1\"', '\"0\"') where number = 4")
    base.close()
    assert "event 4 of ward does not follow" in ward.fails(*ASK)
    with sqlite3.connect("ward.db") as base:
        base.execute("update events set body = 'nothing' where number = 2")
    base.close()
    assert "event 2 of ward" in ward.fails("tell", "ward.db", "2", "Recovery=1")


def test_a_copy_without_the_newest_events(ward):
    with Experiment.create("late.db", "late", "ward.toml"):
        shutil.copy("late.db", "early.db")
    refused = ward.fails("status", "early.db")
    assert "in Python); or was it copied without its -wal file" in refused


def test_a_stop_is_no_error(ward, monkeypatch):
    def stop(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Experiment, "ask_many", stop)
    result = ward.run(*ASK)
    assert result.exit_code == 130 and result.stderr == "\nStopped.\n" and result.stdout == ""


def test_a_clock_that_is_behind(ward, monkeypatch):
    from datetime import UTC, datetime

    from dowise.experiment import event as event_module

    monkeypatch.setattr(event_module, "now", lambda: datetime(2020, 1, 1, tzinfo=UTC))
    assert "--accept-clock" in ward.fails("tell", "ward.db", "2", "Recovery=1")
    assert ward.json("tell", "ward.db", "2", "Recovery=1", "--accept-clock")["changed"]


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_telling_loads_neither_numba_nor_tables(ward):
    ward.well(*ASK)
    for words in (
        ["tell", "ward.db", "2", "Recovery=1"],
        ["amend", "ward.db", "2", "Recovery=0", "--reason", "x"],
        ["withdraw", "ward.db", "3", "--reason", "x"],
    ):
        status, shown, error = run_python(
            "import sys; from dowise.cli.main import main\n"
            f"try: main({words!r})\n"
            "except SystemExit: pass\n"
            "heavy = {'numba', 'llvmlite', 'scipy', 'pandas', 'pyarrow', 'networkx'}\n"
            "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
        )
        assert status == 0 and "ecision " in shown, error


@pytest.mark.usefixtures("ward")
def test_a_missing_extra_is_one_line():
    status, shown, error = run_python(
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from dowise.cli.main import main\n"
        f"main({list(ASK)!r})"
    )
    assert status == 2 and shown == "" and len(error.splitlines()) == 1
    assert "needs sqlalchemy, which is not installed: pip install 'dowise[live]'" in error


LONG = """\
name = "stay"
graph = '"Pain relief" -> Mobility; Mobility -> Stay; Physiotherapy -> Stay'
reward = "Stay"
non_manipulable = ["Mobility"]
[domains]
"Pain relief" = ["paracetamol", "opioid infusion", "nerve block"]
Physiotherapy = ["daily", "twice a day"]
"""


def test_long_names_are_legible_on_a_narrow_terminal(desk):
    (desk.folder / "stay.toml").write_text(LONG)
    shown = desk.well("arms", "stay.toml")
    first = "do(Pain relief=paracetamol, Physiotherapy=daily)"
    words = "set Pain relief to paracetamol and Physiotherapy to daily"
    assert f"\n    1  {first}\n  {words}\n    2  do(" in shown
    pages = [shown, desk.well("new", "s.db", "stay.toml", "--seed", "1")]
    assert f"\n  arms      {first}\n            do(Pain" in pages[-1]
    pages.append(desk.well("ask", "s.db", "--allow", first))
    pages.append(desk.well("ask", "s.db", "-n", "2", "--allow", first))
    assert f"  2  {first}         1.00\n  {words}\n" in pages[-1]
    pages += [desk.well("explain", "s.db", "1"), desk.well("status", "s.db", "--no-evidence")]
    for page in pages[-2:]:
        assert f"\n  {first}\n    " in page
    for line in "\n".join(pages).splitlines():
        assert len(line) <= 80 and line == line.rstrip()


def test_what_does_not_count_is_told_to_programs_too(desk):
    desk.begin("--no-learn-restricted")
    desk.well("ask", "ward.db", "-c", "Age=1")
    page = desk.json("tell", "ward.db", "1", "Recovery=1")
    assert page["notes"] == [
        "Recovery does not count yet: it depends on Frailty, which was not told."
    ]
    (lacking,) = desk.json("status", "ward.db")["incomplete"]
    assert lacking["id"] == 1 and "Frailty" in lacking["open"]
    shown = one_line(desk.well("status", "ward.db"))
    assert "1 decision with an outcome that does not count before more is told" in shown
    assert desk.json("tell", "ward.db", "1", "Frailty=1")["notes"] == []
    assert desk.json("status", "ward.db")["incomplete"] == []
    desk.well("ask", "ward.db", "-c", "Age=1", "--allow", "do(Dose=low)")
    shown = one_line(desk.well("tell", "ward.db", "2", "Frailty=1", "Recovery=1"))
    assert "Nothing is learned from it: some arms were not allowed" in shown
