"""Creating experiments with past records, and the names of the package."""

import subprocess
import sys

import pytest
from support.errors import raises_code

import dowise
from dowise import Experiment, load_problem
from dowise.experiment import journal
from dowise.experiment.record_import import BadRowsError

GOOD = {"C": [0, 1], "Z": [0, 1], "X1": [1, 1], "X2": [0, 1], "Y": [1, None]}
BAD = {**GOOD, "Y": [1, 7]}


@pytest.fixture
def task2():
    return load_problem("task2")


def test_create_with_records(task2, tmp_path):
    path = tmp_path / "a.db"
    with Experiment.create(path, "a", task2, records=GOOD, source="past", actor="ann") as a:
        assert [(e.kind, e.actor) for e in a.events()] == [("created", "ann"), ("imported", "ann")]
        assert a.events()[1].payload["source"] == "past" and a.status().imported == 2
        assert a.store == str(path) and not a.is_one_of_many and a.policy == "commit-kg"
        assert a.belief.times_learned()["Z"] == 2


def test_create_with_bad_records_creates_nothing(task2, tmp_path):
    path = tmp_path / "a.db"
    with raises_code("bad-rows", "1 of 2 rows", error=BadRowsError) as refused:
        Experiment.create(path, "a", task2, records=BAD)
    assert refused.value.checked.bad[0].row == 1 and not path.exists()
    with Experiment.create(path, "a", task2, records=BAD, skip_bad=True) as a:
        assert a.events()[1].payload["skipped"] == 1
    with Experiment.create(path, "b", task2, records={"Y": []}) as b:
        assert b.head.number == 1 and b.is_one_of_many


def test_an_interrupted_create_leaves_no_experiment(task2, tmp_path, monkeypatch):
    write = journal.Transaction.append

    def crash(transaction, kind, payload):
        if kind == "imported":
            raise KeyboardInterrupt
        return write(transaction, kind, payload)

    monkeypatch.setattr(journal.Transaction, "append", crash)
    with pytest.raises(KeyboardInterrupt):
        Experiment.create(tmp_path / "a.db", "a", task2, records=GOOD)
    with raises_code("not-found"):
        Experiment.open(tmp_path / "a.db")


def test_checked_records_are_imported(task2, tmp_path):
    with Experiment.create(tmp_path / "a.db", "a", task2) as a:
        assert a.import_records(task2.checked_records(GOOD)) == 2
        with raises_code("unused-option", "arm"):
            a.import_records(task2.checked_records(GOOD), arm="do()")
        with raises_code("wrong-problem"):
            a.import_records(load_problem("task1").checked_records({"Y": [1]}))
        with pytest.raises(BadRowsError):
            a.import_records(task2.checked_records(BAD))
        assert a.head.number == 2


def test_a_case_is_a_copy(task2, tmp_path):
    with Experiment.create(tmp_path / "a.db", "a", task2) as a:
        decision = a.ask({"C": 1})
        a.case(decision.id).values["Y"] = "1"  # a copy
        assert a.case(1).values == {} and a.case(1).asked == decision.arm
        with raises_code("unknown-decision"):
            a.case(2)


def test_public_names_are_loaded_on_first_use():
    assert dowise.Experiment is Experiment
    assert callable(dowise.check_storage)
    assert {"Experiment", "check_storage"} <= {*dowise.experiment.__all__}
    assert all(getattr(dowise.experiment, name) for name in dowise.experiment.__all__)
    code = (
        "import sys, dowise.experiment\n"
        "assert dir(dowise.experiment) == sorted(dowise.experiment.__all__)\n"
        "sys.exit(', '.join({'numpy', 'sqlalchemy', 'numba'} & set(sys.modules)) or None)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    with pytest.raises(AttributeError, match="has no attribute 'Experimint'"):
        _ = dowise.experiment.Experimint
