"""Importing exports of the same and of another experiment."""

import pytest
from support.errors import raises_code
from support.experiments import new_experiment, play_experiment

from dowise.experiment.record_import import BadRowsError
from dowise.problem.tables import read_records


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_experiment_refuses_its_own_export(tmp_path, ending):
    experiment, path = play_experiment(), tmp_path / f"ward.{ending}"
    experiment.export(path)
    before = experiment.head
    with raises_code("conflict", "`again`"):
        experiment.import_records(read_records(path, experiment.problem))
    assert experiment.head == before
    assert experiment.import_records(read_records(path, experiment.problem), again=True) == 6


def test_importing_an_export_elsewhere_gives_the_same_counts(tmp_path):
    experiment, other, path = play_experiment(), new_experiment(), tmp_path / "ward.csv"
    experiment.erase(1, "asked for")
    experiment.export(path)
    assert other.import_records(read_records(path, other.problem)) == 5
    assert (other.belief.posterior.counts == experiment.belief.posterior.counts).all()


@pytest.mark.parametrize("unrelated", [False, True])
def test_rows_of_an_export_with_another_arm_are_bad(tmp_path, unrelated):
    experiment, other, path = new_experiment(), new_experiment(), tmp_path / "ward.csv"
    for arm in ("do(X=1)", "do(X=0)"):
        number = experiment.ask({"C": 0}, allowed=["do(X=1)"]).id
        seen = {"Z": 1, "Y": 1, "W": 0}
        experiment.tell(number, seen, played=arm, unrelated=unrelated and arm == "do(X=0)")
    experiment.export(path)
    with raises_code("bad-rows", "1 of 2 rows", "line 3", error=BadRowsError):
        other.import_records(read_records(path, other.problem))
    assert other.import_records(read_records(path, other.problem), skip_bad=True) == 1
