"""`dowise status`, `explain`, `export`, `evaluate` and `audit`, which change nothing."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from support.cli_runner import WARD

from dowise.experiment import Experiment


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store with twelve decisions: ten done, one restricted and pending, one withdrawn."""
    folder = tmp_path_factory.mktemp("store")
    (folder / "ward.toml").write_text(WARD)
    path = folder / "ward.db"
    with Experiment.create(path, "ward", folder / "ward.toml", policy="ts", seed=8) as experiment:
        for number in range(1, 11):
            decision = experiment.ask({"Age": number % 2})
            dose = {} if decision.arm else {"Dose": "low"}
            outcome = {"Frailty": number % 2, "Recovery": number % 3 % 2}
            experiment.tell(number, outcome | dose)
        experiment.ask({"Age": 1}, forbid=["do(Dose=high)"])
        experiment.ask({"Age": 1})
        experiment.withdraw(12, reason="left")
    return path


def read(statement):
    with closing(sqlite3.connect("ward.db")) as connection:
        return connection.execute(statement).fetchall()


def write(statement, *values):
    """Change the store without the program."""
    with closing(sqlite3.connect("ward.db")) as connection, connection:
        connection.execute(statement, values)


@pytest.fixture
def ward(cli, store):
    """Yield a command line in a folder with the store, which must have the same head afterwards."""
    shutil.copy(store, "ward.db")
    before = read("select count(*), max(hash) from events")
    yield cli
    assert read("select count(*), max(hash) from events") == before


def test_status_shows_arms_counts_and_uncertainty(ward):
    output = ward.run_text("status", "ward.db", "--tolerance", "0.001")
    assert output.startswith("ward 12 decisions (10 with an outcome, 1 pending, 1 withdrawn)")
    for part in (
        "Age=0 (42 % of decisions)",
        "90 % interval",
        "P(best)",
        "plays",
        "tie for the best",
        "If you stop now, expect to lose",
        "Go on: if you stop",
        "decision 11, do(Dose=",
        "not told: Frailty, Recovery",
        "In 1 decision some arms were not allowed",
        "biased",
        "No alarm at level 0.05",
    ):
        assert part in output, part


def test_status_prints_json(ward):
    document = ward.run_json("status", "ward.db", "--tolerance", "9")
    assert document["name"] == "ward" and document["policy"] == "ts" and document["stop"] is True
    assert document["decisions"]["restricted"] == 1 and document["alarms"] == []
    assert [context["context"] for context in document["contexts"]] == [{"Age": "0"}, {"Age": "1"}]
    with Experiment.open("ward.db") as experiment:
        status = experiment.status()
    assert document["expected_regret_of_stopping"] == status.stopping
    arms = document["contexts"][1]["arms"]
    assert [arm["arm"] for arm in arms] == [str(arm) for arm in status.problem.arms]
    assert sum(arm["best"] for arm in arms) == pytest.approx(1)
    assert [arm["plays"] for arm in arms] == status.contexts[1].plays.tolist()


def test_status_names_all_arms_that_tie(cli):
    cli.create()
    for context in cli.run_json("status", "ward.db")["contexts"]:
        assert context["leaders"] == [arm["arm"] for arm in context["arms"]]
        assert context["leader"] in context["leaders"]
    cli.run_json("ask", "ward.db", "-c", "Age=1", "--allow", "do(Dose=low)")
    cli.run_json("tell", "ward.db", "1", "Frailty=0", "Recovery=1")
    (context,) = cli.run_json("status", "ward.db", "-c", "Age=1")["contexts"]
    assert context["leaders"] == [context["leader"]] == ["do(Dose=low)"]


@pytest.mark.slow
def test_status_shows_the_value_of_more_rounds(ward):
    output = ward.run_text("status", "ward.db", "--rounds", "100")
    assert "100 more rounds are expected to gain " in output
    document = ward.run_json("status", "ward.db", "--rounds", "100")["continuing"]
    with Experiment.open("ward.db") as experiment:
        assert document == experiment.value_of_continuing(100).as_dict()
    assert "continuing" not in ward.run_json("status", "ward.db")
    assert ward.error_code("status", "ward.db", "--rounds", "9999999") == "invalid-number"


def test_status_may_be_limited_to_one_context(ward):
    document = ward.run_json("status", "ward.db", "-c", "Age=1", "--no-evidence")
    assert [context["context"] for context in document["contexts"]] == [{"Age": "1"}]
    assert document["alarms"] is None and document["notes"] == [] and "advice" not in document


def test_status_draws_a_figure(ward):
    output = ward.run_ok("status", "ward.db", "--figure", "ward.svg", "--tolerance", "0.1")
    assert output.endswith("Drawn in ward.svg\n")
    assert "tolerance" in (ward.folder / "ward.svg").read_text()
    assert ward.error_code("status", "ward.db", "--figure", "ward.txt") == "unsupported-format"


def test_explain_shows_reason_and_figures_of_a_decision(ward):
    output = ward.run_text("explain", "ward.db", "11", "--figure", "then.png")
    assert output.startswith("Decision 11 was made at 20")
    for part in (
        "in the context Age=1",
        "Known at that time: the outcomes of 10 decisions; 0 decisions were pending.",
        "3 of 4 arms were allowed.",
        "The policy ts chose do(",
        "not allowed",
        "cost: expected loss of one play",
        "Drawn in then.png",
    ):
        assert part in output, part
    assert (ward.folder / "then.png").exists()
    document = ward.run_json("explain", "ward.db", "11")
    assert document["id"] == 11 and document["known"]["records"] == 10
    assert [arm["allowed"] for arm in document["arms"]].count(False) == 1


def test_explain_shows_the_figures_of_index_policies(cli):
    cli.create("--policy", "ucb")
    cli.run_ok("ask", "ward.db", "-c", "Age=1")
    output = cli.run_text("explain", "ward.db", "1")
    assert "counts" in output and "index" in output and "figures of the policy" in output
    assert "bits" not in output


def test_export_writes_a_row_per_decision(ward):
    assert ward.run_ok("export", "ward.db", "out.csv") == "12 decisions in out.csv\n"
    lines = (ward.folder / "out.csv").read_text().splitlines()
    assert len(lines) == 13 and lines[0].startswith("id,asked_at,status,arm,probability,")
    assert ward.run_json("export", "ward.db", "out.parquet") == {"file": "out.parquet", "rows": 12}


def test_evaluate_estimates_the_rewards_of_another_policy(ward):
    output = ward.run_text("evaluate", "ward.db", "random")
    assert output.startswith("random on 10 decisions")
    assert "doubly robust" in output and "2 decisions left out (" in output
    # With few decisions the uncertainty comes first, then the estimate.
    assert output.index("% interval") < output.index("estimate")
    assert output.index("The decisions tell little about") < output.index("would have had a mean")
    document = ward.run_json(
        "evaluate", "ward.db", "ids", "--option", "samples=50", "--level", "0.8"
    )
    assert document["decisions"] == 10 and document["level"] == 0.8
    assert document["left_out"] == {"pending": 1, "withdrawn": 1}
    assert document["dr"]["low"] <= document["dr"]["high"]
    assert ward.run_json("evaluate", "ward.db", "do(Dose=low)")["target"] == "do(Dose=low)"
    words = ("evaluate", "ward.db", "ids", "--option", "sample=5")
    assert ward.error_code(*words) == "unknown-option"


def test_audit_reports_an_intact_journal(ward):
    document = ward.run_json("audit", "ward.db")
    assert document["ok"] is True and document["finding"] is None
    assert document["events"] == 24 and document["head"].startswith("24:")
    again = ward.run_json("audit", "ward.db", "--head", document["head"])
    assert again["ok"] and again["notes"] == []
    output = ward.run_text("audit", "ward.db")
    assert output.startswith("The journal is intact: 24 events") and document["head"] in output
    assert "without a head that was kept elsewhere, events cut off" in output


def failed_audit(cli, *options):
    result = cli.run("audit", "ward.db", "--json", *options)
    document = json.loads(result.stdout)
    assert result.exit_code == 1 and result.stderr == "" and document["ok"] is False
    return document["finding"]


def test_audit_names_an_event_that_was_changed(ward):
    write(
        'update events set body = replace(body, \'"Recovery":"1"\', \'"Recovery":"0"\') '
        "where number = 3"
    )
    finding = failed_audit(ward)
    assert finding["event"] == 3 and "hash" in finding["why"]
    result = ward.run("audit", "ward.db")
    assert result.exit_code == 1 and result.stdout.startswith(
        "The journal has an error at event 3: "
    )
    assert "audit" in ward.error("status", "ward.db")


def test_audit_with_a_head_finds_a_cut_tail(ward):
    head = ward.run_json("audit", "ward.db")["head"]
    (last,) = read("select * from events where number = 24")
    write("delete from events where number = 24")
    assert ward.run_json("audit", "ward.db")["ok"]
    finding = failed_audit(ward, "--head", head)
    assert finding["event"] == 24 and "24 events" in finding["why"]
    write(f"insert into events values ({', '.join('?' * len(last))})", *last)
