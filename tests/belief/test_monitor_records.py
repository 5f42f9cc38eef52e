"""Records and evidence of a monitor: saved, loaded, damaged, recomputed; atomic updates."""

import json
import time
from math import inf

import numpy as np
import pytest
from support.errors import raises_code
from support.evidence_twin import CHAIN, evidence_of, random_problem, random_records

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem
from dowise.belief.monitor import Monitor


def largest(data, number):
    data["evidence"]["mixed"]["largest"] = dict.fromkeys(
        data["evidence"]["mixed"]["largest"], number
    )


def steps(data, values):
    data["evidence"]["mixed"]["steps"] = values


@pytest.mark.parametrize("retracted", [False, True])
def test_saving_and_loading_is_exact(tmp_path, retracted):
    problem, rng = load_problem("task2"), np.random.default_rng(5)
    belief = Belief(problem, evidence=True)
    records = random_records(problem, rng, 100)
    for record in records:
        belief.learn(record)
    if retracted:
        belief.retract(records[3])
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", problem)
    assert evidence_of(again) == evidence_of(belief)
    for record in records[:20]:
        belief.learn(record)
        again.learn(record)
    assert evidence_of(again) == evidence_of(belief)
    copied = again.copy()
    copied.learn(records[0])
    assert evidence_of(again) == evidence_of(belief) != evidence_of(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["records"][0].update(count=0), "a record was seen 0 times"),
        (lambda data: data["records"][0].pop("values"), "not a record"),
        (lambda data: data.update(records=3), "not a record"),
        (lambda data: data["records"][0]["values"].update(X="7"), "'7'"),
        (lambda data: data.pop("evidence"), "its evidence does not fit"),
        (lambda data: data["evidence"]["mixed"].update(largest={}), "its evidence does not fit"),
        (lambda data: data["evidence"]["strict"].update(steps=[[1]]), "its evidence does not fit"),
        (lambda data: data["records"][0].update(count=10**9 + 1), "seen 1000000001 times"),
        (lambda data: data["records"][0].update(count=10**30), "seen 1000"),
        (lambda data: [r.update(count=10**8) for r in data["records"]], "2.0e.08 records"),
        (lambda data: data["records"][0].update(count=2), "not those of its records"),
        (lambda data: data["records"].pop(), "not those of its records"),
        (lambda data: data.update(records=[]), "not those of its records"),
        (lambda data: data["records"][0].update(count=10**8 - 20), "not those of its records"),
        (lambda data: data.pop("records"), "it has evidence without records"),
        (lambda data: largest(data, 10**30), "its evidence does not fit"),
        (lambda data: largest(data, inf), "its evidence does not fit"),
        (lambda data: largest(data, -1), "its evidence does not fit"),
        (lambda data: largest(data, 0), "its evidence does not fit"),
        (lambda data: steps(data, [[1, inf]]), "its evidence does not fit"),
        (lambda data: steps(data, [[1, float("nan")]]), "its evidence does not fit"),
        (lambda data: steps(data, [[41, 0.1]]), "its evidence does not fit"),
        (lambda data: steps(data, [[0, 0.1]]), "its evidence does not fit"),
        (lambda data: steps(data, [[2, 0.1], [1, 0.2]]), "its evidence does not fit"),
        (lambda data: steps(data, [[1, 0.2], [2, 0.1]]), "its evidence does not fit"),
        (lambda data: steps(data, [[1, 10**400]]), "its evidence does not fit"),
        (lambda data: data["factors"]["Z"].update(counts=[10**9 + 1, 0]), "Z was seen 1.0e.09"),
        (lambda data: data.update(unused={"Z": {"X": 10**30}}), "unused has Z 1000"),
        (lambda data: data["factors"]["X"].update(counts=[19, 21]), "not those of its records"),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, message):
    belief = Belief(CHAIN, evidence=True)
    belief.update_many({"X": [0, 1] * 20, "Z": [0, 1] * 20, "Y": [0, 1] * 20})
    data = json.loads(json.dumps(belief.as_dict()))
    assert len(data["evidence"]["mixed"]["steps"]) > 1 and len(data["records"]) == 2
    change(data)
    (tmp_path / "belief.json").write_text(json.dumps(data))
    with pytest.raises(DowiseError, match=message) as error:
        Belief.load(tmp_path / "belief.json", CHAIN)
    assert "the belief is damaged: " in str(error.value)


@pytest.mark.parametrize("seed", range(10))
def test_evidence_from_counts_equals_evidence_from_records(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    records = random_records(problem, rng, 60, missing=0.1)
    learned = Monitor(problem)
    for record in records * 5:
        learned.learn(record)
    counted = Monitor.from_records(learned.records.copy())
    for monitor in (learned, counted):
        monitor.mark_recomputed()
    for name in ("totals", "largest", "scored"):
        np.testing.assert_array_equal(
            getattr(learned._counts, name), getattr(counted._counts, name)
        )
    assert learned.steps == counted.steps and counted.arrived == 300
    for monitor in (learned, counted):
        monitor.learn(records[0])
    np.testing.assert_array_equal(learned._counts.totals, counted._counts.totals)


def test_loading_100_000_records_takes_seconds(tmp_path):
    belief, half = Belief(CHAIN, evidence=True), 50_000
    belief.update_many({"X": [0, 1] * half, "Z": [0, 1] * half, "Y": [0, 1] * half})
    belief.save(tmp_path / "belief.json")
    start = time.perf_counter()
    again = Belief.load(tmp_path / "belief.json", CHAIN)
    assert time.perf_counter() - start < 5
    assert evidence_of(again) == evidence_of(belief)


def test_evidence_needs_a_posterior_without_records():
    trained = Belief(CHAIN)
    trained.update({}, {"X": 0, "Y": 1, "Z": 0})
    with raises_code("missing-records"):
        Belief(CHAIN, posterior=trained.posterior, evidence=True)


@pytest.mark.parametrize("method", ["update", "update_many", "learn"])
def test_records_that_need_too_large_tables_change_nothing(monkeypatch, method):
    problem = Problem(CausalGraph.parse(f"A -> X -> Y; B{method} -> X"), "Y")  # not cached
    belief, outcome = Belief(problem, evidence=True), {"X": 0, "Y": 1, f"B{method}": 0}
    belief.update({}, {"A": 1} | outcome)
    before = json.dumps(belief.as_dict())
    monkeypatch.setattr("dowise.model.missing_edges.MAX_ENTRIES", 3)
    columns = {"arm": ["do(A=0)"]} | {name: [x] for name, x in outcome.items()}  # no arm sets A
    arguments = {
        "update": ({"A": 0}, outcome),
        "learn": (problem.record({"A": 0}, outcome),),
        "update_many": (columns,),
    }[method]
    with pytest.raises(DowiseError, match="entries"):
        getattr(belief, method)(*arguments)
    assert json.dumps(belief.as_dict()) == before
    assert belief.evidence().records == 1


def test_a_retraction_that_posterior_or_monitor_refuses_changes_neither():
    belief, other = Belief(CHAIN, evidence=True), CHAIN.record({}, {"X": 1, "Y": 1, "Z": 0})
    record = CHAIN.record({}, {"X": 0, "Y": 1, "Z": 0})
    belief.learn(record)
    belief.posterior.learn(other)
    belief.monitor.learn(other)
    belief.monitor.learn(other)  # once more than the posterior
    belief.retract(other)
    before = json.dumps(belief.as_dict())
    with raises_code("not-learned"):
        belief.retract(other)
    assert json.dumps(belief.as_dict()) == before
    belief.monitor.retract(other)
    belief.posterior.learn(other)
    before = json.dumps(belief.as_dict())
    with raises_code("not-learned"):
        belief.retract(other)
    assert json.dumps(belief.as_dict()) == before
