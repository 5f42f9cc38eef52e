"""`dowise import`, and `dowise new --data`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.cli_runner import one_line

from dowise.cli import console as console_module
from dowise.cli.main import main
from dowise.experiment import Experiment

GOOD = "arm,Age,Frailty,Dose,Recovery\ndo(),1,0,low,1\ndo(Dose=high),0,1,,0\ndo(),0,,none,1\n"
BAD = GOOD + "do(),5,0,low,1\ndo(Dose=low),1,0,high,1\ndo(),1,0\n"


def imported():
    with Experiment.open("ward.db") as experiment:
        return [event.payload for event in experiment.events() if event.kind == "imported"]


def test_an_import_for_people_and_for_programs(desk):
    desk.begin()
    Path("past.csv").write_text(GOOD)
    assert "3 records imported from past.csv" in desk.well("import", "ward.db", "past.csv")
    (says,) = imported()
    assert says["records"] == 3 and says["source"] == "past.csv" and says["skipped"] == 0
    refused = desk.fails("import", "ward.db", "past.csv")
    assert "imported before, by event 2" in refused and "--again" in refused
    page = desk.json("import", "ward.db", "past.csv", "--again")
    assert page["imported"] == 3 and page["bad"] == [] and page["head"].startswith("3:")
    with Experiment.open("ward.db") as experiment:
        assert experiment.status().imported == 6


def test_parquet(desk):
    pandas = pytest.importorskip("pandas")
    desk.begin()
    pandas.DataFrame({"Age": [1, 0], "Recovery": [1, None]}).to_parquet("past.parquet")
    assert desk.json("import", "ward.db", "past.parquet")["imported"] == 2
    pandas.DataFrame({"Age": [1, 7]}).to_parquet("bad.parquet")
    result = desk.run("import", "ward.db", "bad.parquet")
    assert result.exit_code == 2 and "\n  row 2: Age has no value '7'" in result.stderr


def test_bad_rows_are_listed_with_their_lines(desk):
    desk.begin()
    Path("past.csv").write_text(BAD)
    result = desk.run("import", "ward.db", "past.csv")
    assert result.exit_code == 2 and result.stdout == ""
    first, *rows = result.stderr.splitlines()
    assert "past.csv: 3 of 6 rows can't be read, so nothing was imported" in first
    assert "--skip-bad" in first and len(rows) == 3
    assert rows[0].startswith("  line 5: Age has no value '5'")
    assert rows[1].startswith("  line 6: do(Dose=low) set Dose=low") and "line 7" in rows[2]
    result = desk.run("import", "ward.db", "past.csv", "--json")
    page = json.loads(result.stdout)
    assert result.exit_code == 2 and page["imported"] == 0 and page["bad_count"] == 3
    assert [(row["row"], row["line"]) for row in page["bad"]] == [(3, 5), (4, 6), (5, 7)]
    assert len(result.stderr.splitlines()) == 1 and page["error"] in result.stderr
    assert imported() == []


def test_bad_rows_may_be_left_out(desk):
    desk.begin()
    Path("past.csv").write_text(BAD)
    shown = desk.well("import", "ward.db", "past.csv", "--skip-bad")
    assert "3 records imported" in shown and "3 bad rows left out\n  line 5: Age" in shown
    assert imported()[0]["skipped"] == 3
    Path("none.csv").write_text("Age,Recovery\n5,1\n")
    shown = desk.well("import", "ward.db", "none.csv", "--skip-bad")
    assert "none.csv has no good rows" in shown and len(imported()) == 1
    page = desk.json("import", "ward.db", "none.csv", "--skip-bad")
    assert page["imported"] == 0 and page["bad_count"] == 1 and not page["changed"]


def test_twenty_bad_rows_are_listed_and_the_others_counted(desk):
    desk.begin()
    Path("past.csv").write_text("Age,Recovery\n" + "5,1\n" * 1300)
    result = desk.run("import", "ward.db", "past.csv")
    first, *rows = result.stderr.splitlines()
    assert "1,300 of 1,300 rows" in first and len(rows) == 21
    assert rows[-1] == "  … and 1,280 more"
    page = json.loads(desk.run("import", "ward.db", "past.csv", "--json").stdout)
    assert page["bad_count"] == 1300 and len(page["bad"]) >= 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Age,Recover\n1,1\n", "did you mean 'Recovery'"),
        ("", "the file is empty"),
        ("Age;Recovery\n1;1\n", "semicolons"),
    ],
)
def test_what_is_no_table_is_refused_whole(desk, text, message):
    desk.begin()
    Path("past.csv").write_text(text)
    assert message in desk.fails("import", "ward.db", "past.csv", "--skip-bad")
    assert "there is no such file" in desk.fails("import", "ward.db", "nowhere.csv")


def test_an_experiment_may_begin_with_records(desk):
    Path("past.csv").write_text(GOOD)
    shown = desk.well("new", "ward.db", "ward.toml", "--data", "past.csv")
    assert "3 records to start with" in shown
    assert imported()[0]["source"] == "past.csv"
    page = desk.json("new", "ward.db", "ward.toml", "--name", "two", "--data", "past.csv")
    assert page["imported"] == 3 and page["head"].startswith("2:")


def test_bad_rows_leave_neither_an_experiment_nor_a_file(desk):
    Path("past.csv").write_text(BAD)
    new = ("new", "ward.db", "ward.toml", "--data", "past.csv")
    for more in ((), ("--json",)):
        result = desk.run(*new, *more)
        assert result.exit_code == 2 and "3 of 6 rows can't be read" in result.stderr
        assert {path.name for path in desk.folder.iterdir()} == {"past.csv", "ward.toml"}
    desk.json("new", "ward.db", "task1")
    assert desk.run(*new).exit_code == 2
    with Experiment.open("ward.db") as experiment:
        assert experiment.name == "task1" and not experiment.is_one_of_many
    page = desk.json(*new, "--skip-bad")
    assert page["imported"] == 3 and page["bad_count"] == 3
    shown = desk.well(*new, "--skip-bad", "--name", "again")
    assert "3 records to start with\n\n3 bad rows left out\n" in shown


def test_records_whose_rewards_do_not_count_are_told_of(desk):
    Path("past.csv").write_text("Age,Dose,Recovery\n1,low,1\n0,low,0\n")
    said = "Recovery is NOT USED in any of 2 records: Frailty was not seen, so nothing is known"
    assert desk.begin("--data", "past.csv")["notes"][0] == f"{said} of the arms."
    again = ("new", "other.db", "ward.toml", "--data", "past.csv")
    assert said in one_line(desk.well(*again))
    Path("some.csv").write_text("Age,Dose,Frailty,Recovery\n1,low,1,1\n1,low,,1\n,,,\n")
    notes = desk.json("import", "ward.db", "some.csv")["notes"]
    assert notes[0].startswith("1 record left out: the outcome has no value for Age: ")
    assert notes[1] == "Recovery is not used in 3 records: Frailty was not seen."


def test_a_bar_is_shown_on_a_terminal_only(desk, monkeypatch):
    from rich.console import Console

    desk.begin()
    Path("past.csv").write_text(GOOD)
    assert desk.run("import", "ward.db", "past.csv").stderr == ""
    screens = []

    def terminal():
        screens.append(Console(force_terminal=True, record=True, stderr=True))
        return screens[-1]

    monkeypatch.setattr(console_module, "make_error_console", terminal)
    result = desk.run("import", "ward.db", "past.csv", "--again")
    assert result.exit_code == 0 and "reading" in result.stderr and screens


@pytest.mark.filterwarnings("always::dowise.errors.DowiseWarning")
def test_a_file_without_any_reward_is_said_to_be(tmp_path):
    problem, past, store = (str(tmp_path / name) for name in ("w.toml", "past.csv", "w.db"))
    Path(problem).write_text('graph = "C -> X -> Y; C -> Y"\nreward = "Y"\ncontext = "C"\n')
    Path(past).write_text("arm,C,Y\ndo(X=1),0,\ndo(X=0),1,\n")
    made = CliRunner().invoke(main, ["new", store, problem, "--data", past])
    assert made.exit_code == 0
    assert "Note: 2 records, none with a value of the reward" in made.stderr
    brought = CliRunner().invoke(main, ["import", store, past, "--again", "--json"])
    assert "nothing about Y; its values belong in a column" in brought.stderr
    assert json.loads(brought.stdout)["imported"] == 2
    checked = CliRunner().invoke(main, ["check", problem, past])
    assert "None of 2 records could be used for Y" in checked.stdout and not checked.stderr
