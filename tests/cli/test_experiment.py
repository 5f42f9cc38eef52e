"""`dowise new`, `dowise revise` and `dowise import`."""

import json
import re
from pathlib import Path

import pandas
import pytest
from rich.console import Console
from support.cli_runner import WARD

from dowise.cli import console as console_module
from dowise.experiment import Experiment

RECORDS = "arm,Age,Frailty,Dose,Recovery\ndo(),1,0,low,1\ndo(Dose=high),0,1,,0\ndo(),0,,none,1\n"
BAD_RECORDS = RECORDS + "do(),5,0,low,1\ndo(Dose=low),1,0,high,1\ndo(),1,0\n"


def imports():
    with Experiment.open("ward.db") as experiment:
        return [event.payload for event in experiment.events() if event.kind == "imported"]


def test_new_creates_an_experiment_and_describes_it(cli):
    output = cli.run_ok("new", "ward.db", "ward.toml", "--seed", "7")
    assert all(len(line) <= 80 and line == line.rstrip() for line in output.splitlines())
    for part in (
        "ward is in ward.db",
        "arms      do(), do(Dose=none), do(Dose=low), do(Dose=high)",
        "policy    commit-kg",
        "\n  dowise ask ward.db -c Age=…\n",
    ):
        assert part in output
    with Experiment.open("ward.db") as experiment:
        assert f"head      {experiment.head}" in output


def test_new_prints_json(cli):
    document = cli.create("--policy", "ids", "--option", "samples=50", "--option", "prior=2")
    assert (document["store"], document["name"], document["policy"]) == ("ward.db", "ward", "ids")
    assert document["arms"] == [{}, {"Dose": "none"}, {"Dose": "low"}, {"Dose": "high"}]
    assert document["options"]["samples"] == 50 and document["options"]["prior"] == 2
    assert re.fullmatch("1:[0-9a-f]{64}", document["head"]) and document["imported"] == 0
    assert document["advice"]["edges"] == ["Age -> Frailty", "Dose <-> Recovery"]


def test_an_experiment_has_the_name_of_the_problem_or_its_file(cli):
    assert cli.run_json("new", "a.db", "task1")["name"] == "task1"
    cli.write("plain.toml", 'graph = "X -> Y"\nreward = "Y"\n')
    assert cli.run_json("new", "a.db", "plain.toml")["name"] == "plain"
    output = cli.run_ok("new", "a.db", "plain.toml", "--name", "ward 7")
    assert "ward 7 is in a.db" in output and "\n  dowise ask a.db --name 'ward 7'\n" in output
    assert cli.run_json("ask", "a.db", "--name", "plain")["id"] == 1
    assert "plain, task1, ward 7" in cli.error("ask", "a.db")


def test_a_url_names_the_same_store(cli):
    cli.create()
    assert "dowise tell ward.db 1" in cli.run_ok("ask", "sqlite:///ward.db", "-c", "Age=1")


def test_new_accepts_seeds_and_priors(cli):
    cli.write("prior.toml", "Frailty = [3, 1]\n")
    first = cli.run_json("new", "a.db", "ward.toml", "--prior", "0.5", "--no-learn-restricted")
    assert first["options"]["prior"] == 0.5
    second = cli.run_json("new", "b.db", "ward.toml", "--prior", "prior.toml", "--policy", "ts")
    assert second["policy"] == "ts" and second["options"]["prior"] == {"Frailty": [3, 1]}
    with Experiment.open("a.db") as experiment:
        (event,) = experiment.events()
        assert event.payload["learn_restricted"] is False
    for store in ("c.db", "d.db"):
        cli.run_json("new", store, "ward.toml", "--seed", "3")
    first, second = (
        cli.run_json("ask", store, "-c", "Age=1", "-n", "9") for store in ("c.db", "d.db")
    )
    assert first == second


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("--policy idss", "unknown-policy"),
        ("--option flor=3", "unknown-option"),
        ("--policy ids --option samples=some", "invalid-number"),
        ("--prior 1 --option prior=2", "duplicate-name"),
        ("--prior none.toml", "file-not-found"),
        ("--data none.csv", "file-not-found"),
        ("--policy-module nowhere", "unknown-module"),
    ],
)
def test_new_creates_nothing_after_an_error(cli, words, code):
    assert cli.error_code("new", "a.db", "ward.toml", *words.split()) == code
    assert [path.name for path in cli.folder.iterdir()] == ["ward.toml"]


def test_labels_that_are_numbers_but_count_by_their_order_are_pointed_out(cli):
    cli.write(
        "stay.toml",
        'graph = "Drug -> Days"\nreward = "Days"\nminimise = true\n[domains]\nDays = [1, 2, 30]\n',
    )
    output = cli.run_text("new", "stay.db", "stay.toml")
    assert "minimise Days (1 counts as 0, 2 counts as 0.5, 30 counts as 1)" in output
    assert "The labels of Days are numbers, but only their order counts" in output
    with Path("stay.toml").open("a") as file:
        file.write('[reward_values]\n"1" = 1\n"2" = 2\n"30" = 9\n')
    output = cli.run_text("new", "values.db", "stay.toml")
    assert "30 counts as 9" in output and "The labels" not in output
    assert "The labels" not in cli.run_text("new", "ward.db", "ward.toml")  # 0 and 1


REASON = ("--reason", "an arrow may be missing")


def test_revise_changes_problem_options_and_prior(cli):
    cli.create("--policy", "ids")
    cli.run_ok("ask", "ward.db", "-c", "Age=1")
    cli.write("soft.toml", WARD.replace("context", "soft = 0.1\ncontext"))
    document = cli.run_json("revise", "ward.db", "--problem", "soft.toml", *REASON)
    assert document["changed"] and document["head"].startswith("3:") and document["policy"] == "ids"
    assert not cli.run_json("revise", "ward.db", "--problem", "soft.toml", *REASON)["changed"]
    assert "Nothing changes" in cli.run_ok("revise", "ward.db", "--policy", "ids", *REASON)
    output = cli.run_ok("revise", "ward.db", "--policy", "ts", *REASON)
    assert "policy    ts" in output and output.endswith("There are no past records yet.\n")
    document = cli.run_json("revise", "ward.db", "--option", "propensity_samples=10", *REASON)
    assert document["policy"] == "ts" and document["options"]["propensity_samples"] == 10
    document = cli.run_json("revise", "ward.db", "--prior", "2", "--no-learn-restricted", *REASON)
    assert document["options"] == {**document["options"], "prior": 2.0, "propensity_samples": 10}
    with Experiment.open("ward.db") as experiment:
        payload = experiment.events()[-1].payload
        assert payload["learn_restricted"] is False and payload["reason"] == REASON[1]
        assert experiment.problem.soft == 0.1


def test_revise_reports_which_past_records_count(cli):
    cli.write("past.csv", "Age,Frailty,Dose,Recovery\n1,0,low,1\n0,1,low,0\n")
    cli.create("--data", "past.csv")
    cli.run_ok("ask", "ward.db", "-c", "Age=1", "--allow", "do(Dose=low)")
    cli.run_ok("tell", "ward.db", "1", "Frailty=1", "Recovery=1")
    output = cli.run_ok("revise", "ward.db", "--policy", "ts", *REASON)
    assert "All 3 past records (1 decision and 2 imported) count." in output
    usage = cli.run_json("revise", "ward.db", "--no-learn-restricted", *REASON)["past_records"]
    ((reason, number),) = usage["left_out"].items()
    assert (usage["used"], number) == (2, 1) and "learn_restricted" in reason
    assert (usage["decisions"], usage["imported"], usage["unused"]) == (1, 2, {})
    cli.write(
        "sex.toml",
        WARD.replace('["Age"]', '["Age", "Sex"]').replace('h = "', 'h = "Sex -> Recovery; '),
    )
    output = cli.run_ok("revise", "ward.db", "--problem", "sex.toml", *REASON)
    assert "NONE of 3 past records (1 decision and 2 imported) counts" in output
    assert "\n  2: the outcome has no value for Sex" in output


def test_revise_warns_if_the_reward_is_no_longer_used(cli):
    cli.create()
    cli.run_ok("ask", "ward.db", "-c", "Age=1")
    cli.run_ok("tell", "ward.db", "1", "Frailty=1", "Recovery=1")
    cli.write("sleep.toml", WARD.replace('graph = "', 'graph = "Sleep -> Recovery; '))
    output = cli.run_text("revise", "ward.db", "--problem", "sleep.toml", *REASON)
    assert "Recovery is NOT USED in any of 1 record: Sleep was not seen" in output
    usage = cli.run_json("revise", "ward.db", "--policy", "ts", *REASON)["past_records"]
    assert usage["used"] == 1 and usage["unused"] == {"Recovery": {"Sleep was not seen": 1}}


def test_revise_keeps_values_that_were_recorded(cli):
    cli.create()
    cli.run_ok("ask", "ward.db", "-c", "Age=1")
    cli.run_ok("tell", "ward.db", "1", "Frailty=1")
    cli.write("other.toml", WARD + 'Frailty = ["no", "yes"]\n')
    message = cli.error("revise", "ward.db", "--problem", "other.toml", *REASON)
    assert "Frailty=1 is in 1 decision" in message


def test_import_adds_records_once(cli):
    cli.create()
    cli.write("past.csv", RECORDS)
    assert "3 records imported from past.csv" in cli.run_ok("import", "ward.db", "past.csv")
    (payload,) = imports()
    assert (payload["records"], payload["source"], payload["skipped"]) == (3, "past.csv", 0)
    message = cli.error("import", "ward.db", "past.csv")
    assert "imported before, by event 2" in message and "--again" in message
    document = cli.run_json("import", "ward.db", "past.csv", "--again")
    assert document["imported"] == 3 and document["bad"] == [] and document["head"].startswith("3:")
    assert cli.run_json("status", "ward.db")["imported"] == 6


def test_import_reads_parquet(cli):
    cli.create()
    pandas.DataFrame({"Age": [1, 0], "Recovery": [1, None]}).to_parquet("past.parquet")
    assert cli.run_json("import", "ward.db", "past.parquet")["imported"] == 2
    pandas.DataFrame({"Age": [1, 7]}).to_parquet("bad.parquet")
    result = cli.run("import", "ward.db", "bad.parquet")
    assert result.exit_code == 2 and "\n  row 2: Age has no value '7'" in result.stderr


def test_import_lists_bad_rows_and_imports_nothing(cli):
    cli.create()
    cli.write("past.csv", BAD_RECORDS)
    result = cli.run("import", "ward.db", "past.csv")
    message, *rows = result.stderr.splitlines()
    assert result.exit_code == 2 and result.stdout == "" and "--skip-bad" in message
    assert [row[:8] for row in rows] == ["  line 5", "  line 6", "  line 7"]
    result = cli.run("import", "ward.db", "past.csv", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 2 and document["imported"] == 0 and document["bad_count"] == 3
    assert [(row["row"], row["line"]) for row in document["bad"]] == [(3, 5), (4, 6), (5, 7)]
    assert len(result.stderr.splitlines()) == 1 and document["error"] in result.stderr
    assert imports() == []


def test_import_lists_twenty_bad_rows_and_counts_the_others(cli):
    cli.create()
    cli.write("past.csv", "Age,Recovery\n" + "5,1\n" * 1300)
    result = cli.run("import", "ward.db", "past.csv")
    message, *rows = result.stderr.splitlines()
    assert "1,300 of 1,300 rows" in message and len(rows) == 21
    assert rows[-1] == "  … and 1,280 more"
    document = json.loads(cli.run("import", "ward.db", "past.csv", "--json").stdout)
    assert document["bad_count"] == 1300 and len(document["bad"]) >= 1000


def test_import_may_skip_bad_rows(cli):
    cli.create()
    cli.write("past.csv", BAD_RECORDS)
    output = cli.run_ok("import", "ward.db", "past.csv", "--skip-bad")
    assert "3 records imported" in output and "3 bad rows left out\n  line 5: Age" in output
    assert imports()[0]["skipped"] == 3
    cli.write("none.csv", "Age,Recovery\n5,1\n")
    output = cli.run_ok("import", "ward.db", "none.csv", "--skip-bad")
    assert "none.csv has no good rows" in output and len(imports()) == 1
    document = cli.run_json("import", "ward.db", "none.csv", "--skip-bad")
    assert document["imported"] == 0 and document["bad_count"] == 1 and not document["changed"]


def test_new_imports_records(cli):
    cli.write("past.csv", RECORDS)
    assert "3 records to start with" in cli.run_ok(
        "new", "ward.db", "ward.toml", "--data", "past.csv"
    )
    assert imports()[0]["source"] == "past.csv"
    document = cli.run_json("new", "ward.db", "ward.toml", "--name", "two", "--data", "past.csv")
    assert document["imported"] == 3 and document["head"].startswith("2:")


def test_new_with_bad_rows_creates_nothing(cli):
    cli.write("past.csv", BAD_RECORDS)
    new = ("new", "ward.db", "ward.toml", "--data", "past.csv")
    for options in ((), ("--json",)):
        result = cli.run(*new, *options)
        assert result.exit_code == 2 and "3 of 6 rows can't be read" in result.stderr
        assert {path.name for path in cli.folder.iterdir()} == {"past.csv", "ward.toml"}
    cli.run_json("new", "ward.db", "task1")
    assert cli.run(*new).exit_code == 2
    with Experiment.open("ward.db") as experiment:
        assert experiment.name == "task1" and not experiment.is_one_of_many
    document = cli.run_json(*new, "--skip-bad")
    assert document["imported"] == 3 and document["bad_count"] == 3
    output = cli.run_ok(*new, "--skip-bad", "--name", "again")
    assert "3 records to start with\n\n3 bad rows left out\n" in output


def test_records_that_are_not_used_are_reported(cli):
    cli.write("past.csv", "Age,Dose,Recovery\n1,low,1\n0,low,0\n")
    warning = "Recovery is NOT USED by the graph in any of 2 records: Frailty was not seen"
    assert cli.create("--data", "past.csv")["notes"][0].startswith(warning)
    assert warning in cli.run_text("new", "other.db", "ward.toml", "--data", "past.csv")
    cli.write("some.csv", "Age,Dose,Frailty,Recovery\n1,low,1,1\n1,low,,1\n,,,\n")
    notes = cli.run_json("import", "ward.db", "some.csv")["notes"]
    assert notes[0].startswith("1 record left out: the outcome has no value for Age: ")
    assert notes[1] == "Recovery is not used by the graph in 3 records: Frailty was not seen."
    assert notes[2] == "4 rewards count for each arm by itself, without the graph."


def test_import_shows_progress_on_a_terminal_only(cli, monkeypatch):
    cli.create()
    cli.write("past.csv", RECORDS)
    assert cli.run("import", "ward.db", "past.csv").stderr == ""
    monkeypatch.setattr(
        console_module,
        "make_error_console",
        lambda: Console(force_terminal=True, record=True, stderr=True),
    )
    result = cli.run("import", "ward.db", "past.csv", "--again")
    assert result.exit_code == 0 and "reading" in result.stderr
