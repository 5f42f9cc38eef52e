"""Records and evidence of a monitor: saved, loaded, recomputed; atomic updates."""

import json
import time

import numpy as np
import pytest
from support.errors import raises_code
from support.evidence_twin import CHAIN, evidence_of, random_problem, random_records

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.belief.monitor import Monitor


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
    with raises_code("too-large"):
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
