"""Export of decisions with their propensities, and importing it again."""

import csv
import json

import pyarrow.parquet
import pytest
from support.errors import raises_code
from support.played_experiments import create_experiment, played_experiment

from dowise.graph import CausalGraph
from dowise.problem import Problem
from dowise.problem.tables import read_table

COLUMNS = ["id", "asked_at", "status", "arm", "probability", "probabilities", "allowed"]


def exported(experiment, path):
    experiment.export(path)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_decision_has_a_row(tmp_path):
    experiment = create_experiment("task2", policy="ts")
    experiment.ask({"C": 1})
    experiment.tell(1, {"Z": 0, "Y": 1})
    experiment.ask({"C": 0}, allowed=["do(X1=0)", "do(X2=1)"])
    experiment.tell(2, {"Z": None})
    experiment.ask({"C": 0})
    experiment.withdraw(3, reason="left")
    experiment.ask({"C": 1}, allowed=["do(X1=0)"])
    experiment.tell(4, {"Y": 0}, played="do(X1=1)")
    experiment.ask({"C": 1})
    experiment.erase(5, reason="asked for")
    assert experiment.export(tmp_path / "ward.csv") == 5
    rows = exported(experiment, tmp_path / "ward.csv")
    assert [*rows[0]] == [*COLUMNS, "C", "X1", "X2", "Y", "Z"]
    assert [row["status"] for row in rows] == ["done", "pending", "withdrawn", "done", "erased"]
    first, second, _, fourth, last = rows
    cases = experiment.records()
    assert first["arm"] == str(cases[0].arm) and first["Y"] == "1" and first["allowed"] == ""
    probabilities = json.loads(first["probabilities"])
    assert sum(probabilities.values()) == pytest.approx(1)
    assert float(first["probability"]) == probabilities[first["arm"]]
    assert first["asked_at"] == cases[0].asked_at
    assert json.loads(second["allowed"]) == ["do(X1=0)", "do(X2=1)"]
    assert second["Z"] == "" and second["Y"] == "" and second["C"] == "0"
    assert fourth["arm"] == str(cases[3].played) and fourth["probability"] == ""
    assert {**last, "id": "", "status": ""} == dict.fromkeys(last, "") and last["id"] == "5"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_importing_an_export_gives_the_same_counts(tmp_path, ending):
    experiment, path = played_experiment("task2", 25), tmp_path / f"ward.{ending}"
    experiment.ask({"C": 1})
    experiment.tell(26, {"Z": 1})
    experiment.export(path)
    again = create_experiment("task2")
    again.import_records(read_table(path, again.problem))
    assert (again.belief.posterior.counts == experiment.belief.posterior.counts).all()
    assert again.belief.times_learned() == experiment.belief.times_learned()


def test_variables_with_names_of_columns_get_a_suffix(tmp_path):
    problem = Problem(CausalGraph.parse("status -> Y; id -> Y"), "Y", non_manipulable="id")
    experiment = create_experiment(problem)
    for reward in (0, 1):
        decision = experiment.ask()
        experiment.tell(decision.id, {"id": 1, "Y": reward})
    path = tmp_path / "ward.csv"
    rows = exported(experiment, path)
    assert [*rows[0]][len(COLUMNS) :] == ["Y", "id_", "status_"]
    assert rows[0]["status"] == "done" and rows[0]["id"] == "1" and rows[0]["id_"] == "1"
    again = create_experiment(problem)
    again.import_records(read_table(path, problem))
    assert (again.belief.posterior.counts == experiment.belief.posterior.counts).all()


def test_earlier_variables_are_exported_after_a_revision(tmp_path):
    experiment = played_experiment("task2", 3)
    narrow = Problem(CausalGraph.parse("C -> X2 -> Y; C -> Y"), "Y", context="C")
    experiment.revise(problem=narrow, reason="simpler")
    experiment.ask({"C": 1})
    rows = exported(experiment, tmp_path / "ward.csv")
    assert [*rows[0]][len(COLUMNS) :] == ["C", "X2", "Y", "X1", "Z"]
    assert rows[0]["Z"] in ("0", "1") and rows[3]["Z"] == ""
    assert len(json.loads(rows[0]["probabilities"])) == 4  # the arms at that time
    assert {*json.loads(rows[3]["probabilities"])} == {str(arm) for arm in narrow.arms}


def test_types_of_parquet_columns(tmp_path):
    experiment = played_experiment("task1", 2)
    experiment.ask()
    experiment.export(tmp_path / "ward.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "ward.parquet")
    assert {name: str(table.schema.field(name).type) for name in ("id", "probability", "Y")} == {
        "id": "int64", "probability": "double", "Y": "string",
    }  # fmt: skip
    assert table["Y"].to_pylist()[2] is None
    assert experiment.frame()["id"].tolist() == [1, 2, 3]


def test_other_file_formats_are_refused(tmp_path):
    with raises_code("unsupported-format"):
        create_experiment().export(tmp_path / "ward.xlsx")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_only_exports_are_overwritten(tmp_path, ending):
    path = tmp_path / f"past.{ending}"
    path.write_text("Age,Recovery\n1,0\n")
    experiment = played_experiment(rounds=20)
    with raises_code("conflict"):
        experiment.export(path)
    assert path.read_text() == "Age,Recovery\n1,0\n"
    path.write_text("")
    assert experiment.export(path) == 20
    experiment.ask({"C": 1})
    assert experiment.export(path) == 21
