"""`dowise status`, `explain`, `export`, `evaluate`, `audit`: read-only commands."""

import json
import shutil
import sqlite3

import pytest
from support.cli_runner import WARD, one_line

from dowise.experiment import Experiment


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A store with twelve decisions by ts: ten done, one restricted and pending, one withdrawn."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "ward.toml").write_text(WARD)
    path = folder / "ward.db"
    with Experiment.create(path, "ward", folder / "ward.toml", policy="ts", seed=8) as experiment:
        for number in range(1, 11):
            asked = experiment.ask({"Age": number % 2})
            dose = {} if asked.arm else {"Dose": "low"}
            seen = {"Frailty": number % 2, "Recovery": number % 3 % 2}
            experiment.tell(number, seen | dose)
        experiment.ask({"Age": 1}, forbid=["do(Dose=high)"])
        experiment.ask({"Age": 1})
        experiment.withdraw(12, reason="left")
    return path


@pytest.fixture
def ward(desk, begun):
    shutil.copy(begun, desk.folder / "ward.db")
    return desk


@pytest.fixture(autouse=True)
def nothing_changes(ward):
    """Whatever a command does, the journal has the same head afterwards."""

    def rows():
        with sqlite3.connect("ward.db") as connection:
            found = connection.execute("select count(*), max(hash) from events").fetchall()
        connection.close()
        return found

    before = rows()
    yield
    assert ward.folder.exists() and rows() == before


def change(statement, *values):
    """Somebody changes the file behind the program's back."""
    connection = sqlite3.connect("ward.db")
    with connection:
        connection.execute(statement, values)
    connection.close()


# -- status -----------------------------------------------------------------------------------


def test_status_for_people(ward):
    shown = one_line(ward.well("status", "ward.db", "--tolerance", "0.001"))
    assert shown.startswith("ward 12 decisions (10 with an outcome, 1 pending, 1 withdrawn)")
    for part in (
        "Age=0 (42% of decisions)", "Age=1 (58% of decisions)", "90 % interval", "P(best)", "plays",
        "tie for the best", "If you stop now, expect to lose", "Go on: if you stop",
        "decision 11, do(Dose=", "for ", "not told: Frailty, Recovery",
        "1 decision made among fewer than all arms", "biased", "No alarm at level 0.05",
    ):  # fmt: skip
        assert part in shown, part


def test_status_for_programs(ward):
    page = ward.json("status", "ward.db", "--tolerance", "9")
    assert page["name"] == "ward" and page["policy"] == "ts" and page["stop"] is True
    assert page["decisions"]["restricted"] == 1 and page["alarms"] == []
    assert [one["context"] for one in page["contexts"]] == [{"Age": "0"}, {"Age": "1"}]
    with Experiment.open("ward.db") as experiment:
        status = experiment.status()
    assert page["expected_regret_of_stopping"] == status.stopping
    arms = page["contexts"][1]["arms"]
    assert [arm["arm"] for arm in arms] == [str(arm) for arm in status.problem.arms]
    assert sum(arm["best"] for arm in arms) == pytest.approx(1)
    assert [arm["plays"] for arm in arms] == status.contexts[1].plays.tolist()


@pytest.mark.slow
def test_what_more_rounds_are_worth(ward):
    shown = one_line(ward.well("status", "ward.db", "--rounds", "100"))
    assert "100 more rounds are expected to gain " in shown
    page = ward.json("status", "ward.db", "--rounds", "100")["continuing"]
    with Experiment.open("ward.db") as experiment:
        assert page == experiment.value_of_continuing(100).as_dict()
    assert "continuing" not in ward.json("status", "ward.db")
    refused = ward.run("status", "ward.db", "--rounds", "0")
    assert refused.exit_code == 2 and "'--rounds'" in refused.stderr
    assert "at most 1,000,000" in ward.fails("status", "ward.db", "--rounds", "9999999")


def test_one_context_and_no_evidence(ward):
    page = ward.json("status", "ward.db", "-c", "Age=1", "--no-evidence")
    assert [one["context"] for one in page["contexts"]] == [{"Age": "1"}]
    assert page["alarms"] is None and page["notes"] == [] and "advice" not in page
    assert "Age" in ward.fails("status", "ward.db", "-c", "Age=old")
    assert "NAME=VALUE" in ward.fails("status", "ward.db", "-c", "Age")


def test_the_picture_of_a_status(ward):
    shown = ward.well("status", "ward.db", "--figure", "ward.svg", "--tolerance", "0.1")
    assert shown.endswith("Drawn in ward.svg\n")
    assert "tolerance" in (ward.folder / "ward.svg").read_text()
    assert "ending" in ward.fails("status", "ward.db", "--figure", "ward.txt")


def test_a_store_that_is_not_there_is_not_made(ward):
    ward.fails("status", "nothing.db")
    assert not (ward.folder / "nothing.db").exists()


# -- explain ----------------------------------------------------------------------------------


def test_explain(ward):
    shown = one_line(ward.well("explain", "ward.db", "11", "--figure", "then.png"))
    assert shown.startswith("Decision 11 was asked for at 20")
    for part in (
        "in the context Age=1", "Known then: the outcomes of 10 decisions; 0 pending.",
        "3 of 4 arms were allowed.", "The policy ts chose do(", "The arms, by what was known then",
        "not allowed", "cost: expected loss of one play", "Drawn in then.png",
    ):  # fmt: skip
        assert part in shown, part
    assert (ward.folder / "then.png").exists()
    page = ward.json("explain", "ward.db", "11")
    assert page["id"] == 11 and page["known"]["records"] == 10
    assert [arm["allowed"] for arm in page["arms"]].count(False) == 1


def test_a_decision_that_is_not_there(ward):
    assert "there are 1 to 12" in ward.fails("explain", "ward.db", "13")
    assert "not a decision" in ward.fails("explain", "ward.db", "first")


def test_index_policies_show_what_they_reckon_with(ward):
    with Experiment.create("ward.db", "other", "ward.toml", policy="ucb", seed=1) as experiment:
        experiment.ask({"Age": 1})
    shown = one_line(ward.well("explain", "ward.db", "1", "--name", "other"))
    assert "counts" in shown and "index" in shown and "figures of the policy" in shown
    assert "bits" not in shown
    change("delete from events where experiment = 'other'")


# -- export and evaluate ----------------------------------------------------------------------


def test_export(ward):
    assert ward.well("export", "ward.db", "out.csv") == "12 decisions in out.csv\n"
    lines = (ward.folder / "out.csv").read_text().splitlines()
    assert len(lines) == 13 and lines[0].startswith("id,asked_at,status,arm,probability,")
    assert ward.json("export", "ward.db", "out.parquet") == {"file": "out.parquet", "rows": 12}
    assert "must end in" in ward.fails("export", "ward.db", "out.txt")


def test_evaluate(ward):
    shown = one_line(ward.well("evaluate", "ward.db", "random"))
    assert shown.startswith("random on 10 decisions")
    assert "doubly robust" in shown and "2 decisions left out (" in shown
    # On a handful of decisions how little is known comes first, then the estimate.
    assert shown.index("% interval") < shown.index("estimate")
    assert shown.index("Few decisions are informative") < shown.index("would have had a mean")
    page = ward.json("evaluate", "ward.db", "ids", "--option", "samples=50", "--level", "0.8")
    assert page["decisions"] == 10 and page["level"] == 0.8
    assert page["left_out"] == {"pending": 1, "withdrawn": 1}
    assert page["dr"]["low"] <= page["dr"]["high"]
    always = ward.json("evaluate", "ward.db", "do(Dose=low)")
    assert always["target"] == "do(Dose=low)"
    assert "did you mean" in ward.fails("evaluate", "ward.db", "randon")
    assert "sample" in ward.fails("evaluate", "ward.db", "ids", "--option", "sample=5")


# -- audit ------------------------------------------------------------------------------------


def test_an_audit_that_finds_nothing(ward):
    page = ward.json("audit", "ward.db")
    assert page["ok"] is True and page["finding"] is None
    assert page["events"] == 24 and page["head"].startswith("24:")
    again = ward.json("audit", "ward.db", "--head", page["head"])
    assert again["ok"] and again["notes"] == []
    shown = one_line(ward.well("audit", "ward.db"))
    assert shown.startswith("The journal is intact: 24 events") and page["head"] in shown
    assert "without a head that was kept elsewhere, events cut off" in shown


def audited(ward, *more):
    result = ward.run("audit", "ward.db", "--json", *more)
    assert result.exit_code == 1 and result.stderr == "", result.output
    return json.loads(result.stdout)


def test_an_event_that_was_changed_is_named(ward):
    change("update events set body = replace(body, '\"Recovery\":\"1\"', '\"Recovery\":\"0\"') "
           "where number = 3")  # fmt: skip
    page = audited(ward)
    assert page["ok"] is False and page["finding"]["event"] == 3
    assert "hash" in page["finding"]["why"]
    result = ward.run("audit", "ward.db")
    assert result.exit_code == 1 and one_line(result.stdout).startswith("Found at event 3: ")
    assert "audit" in ward.fails("status", "ward.db")


def test_a_tail_that_was_cut_off_is_found_with_a_head(ward):
    head = ward.json("audit", "ward.db")["head"]
    connection = sqlite3.connect("ward.db")
    last = connection.execute("select * from events where number = 24").fetchall()
    connection.close()
    change("delete from events where number = 24")
    assert ward.json("audit", "ward.db")["ok"]
    page = audited(ward, "--head", head)
    assert page["finding"]["event"] == 24 and "24 events" in page["finding"]["why"]
    marks = ", ".join("?" * len(last[0]))
    change(f"insert into events values ({marks})", *last[0])


def test_a_head_that_is_none(ward):
    assert "NUMBER:HASH" in ward.fails("audit", "ward.db", "--head", "24")
