"""Evidence that is kept: saved, read back, damaged, and what must not change on the way."""

import json
import time
from math import inf

import numpy as np
import pytest
from support.errors import raises_code
from support.evidence_twin import CHAIN, random_problem, random_records, told

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem
from dowise.belief.monitor import Monitor


def largest(page, number):
    page["evidence"]["mixed"]["largest"] = dict.fromkeys(
        page["evidence"]["mixed"]["largest"], number
    )


def steps(page, given):
    page["evidence"]["mixed"]["steps"] = given


@pytest.mark.parametrize("retracted", [False, True])
def test_what_is_saved_is_read_back_to_the_last_bit(tmp_path, retracted):
    problem, rng = load_problem("task2"), np.random.default_rng(5)
    belief = Belief(problem, evidence=True)
    records = random_records(problem, rng, 100)
    for record in records:
        belief.learn(record)
    if retracted:
        belief.retract(records[3])
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", problem)
    assert told(again) == told(belief)
    for record in records[:20]:
        belief.learn(record)
        again.learn(record)
    assert told(again) == told(belief)
    twin = again.copy()
    twin.learn(records[0])
    assert told(again) == told(belief) != told(twin)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda page: page["records"][0].update(count=0), "a record was seen 0 times"),
        (lambda page: page["records"][0].pop("values"), "not a record"),
        (lambda page: page.update(records=3), "not a record"),
        (lambda page: page["records"][0]["values"].update(X="7"), "'7'"),
        (lambda page: page.pop("evidence"), "its evidence does not fit"),
        (lambda page: page["evidence"]["mixed"].update(largest={}), "its evidence does not fit"),
        (lambda page: page["evidence"]["strict"].update(steps=[[1]]), "its evidence does not fit"),
        (lambda page: page["records"][0].update(count=10**9 + 1), "seen 1000000001 times"),
        (lambda page: page["records"][0].update(count=10**30), "seen 1000"),
        (lambda page: [r.update(count=10**8) for r in page["records"]], "2.0e.08 records"),
        (lambda page: page["records"][0].update(count=2), "not those of its records"),
        (lambda page: page["records"].pop(), "not those of its records"),
        (lambda page: page.update(records=[]), "not those of its records"),
        (lambda page: page["records"][0].update(count=10**8 - 20), "not those of its records"),
        (lambda page: page.pop("records"), "it has evidence without records"),
        (lambda page: largest(page, 10**30), "its evidence does not fit"),
        (lambda page: largest(page, inf), "its evidence does not fit"),
        (lambda page: largest(page, -1), "its evidence does not fit"),
        (lambda page: largest(page, 0), "its evidence does not fit"),
        (lambda page: steps(page, [[1, inf]]), "its evidence does not fit"),
        (lambda page: steps(page, [[1, float("nan")]]), "its evidence does not fit"),
        (lambda page: steps(page, [[41, 0.1]]), "its evidence does not fit"),
        (lambda page: steps(page, [[0, 0.1]]), "its evidence does not fit"),
        (lambda page: steps(page, [[2, 0.1], [1, 0.2]]), "its evidence does not fit"),
        (lambda page: steps(page, [[1, 0.2], [2, 0.1]]), "its evidence does not fit"),
        (lambda page: steps(page, [[1, 10**400]]), "its evidence does not fit"),
        (lambda page: page["factors"]["Z"].update(counts=[10**9 + 1, 0]), "Z was seen 1.0e.09"),
        (lambda page: page.update(unused={"Z": {"X": 10**30}}), "unused has Z 1000"),
        (lambda page: page["factors"]["X"].update(counts=[19, 21]), "not those of its records"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, message):
    belief = Belief(CHAIN, evidence=True)
    belief.update_many({"X": [0, 1] * 20, "Z": [0, 1] * 20, "Y": [0, 1] * 20})
    page = json.loads(json.dumps(belief.as_dict()))
    assert len(page["evidence"]["mixed"]["steps"]) > 1 and len(page["records"]) == 2
    change(page)
    (tmp_path / "belief.json").write_text(json.dumps(page))
    with pytest.raises(DowiseError, match=message) as error:
        Belief.load(tmp_path / "belief.json", CHAIN)
    assert "the belief is damaged: " in str(error.value)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_worked_out_from_counts_is_what_records_add_up_to(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    records = random_records(problem, rng, 60, missing=0.1)
    one = Monitor(problem)
    for record in records * 5:
        one.learn(record)
    other = Monitor.from_records(one.records.copy())
    for monitor in (one, other):
        monitor.mark_recomputed()
    for name in ("totals", "largest", "scored"):
        np.testing.assert_array_equal(getattr(one._counts, name), getattr(other._counts, name))
    assert one.steps == other.steps and other.arrived == 300
    one.learn(records[0])
    other.learn(records[0])
    np.testing.assert_array_equal(one._counts.totals, other._counts.totals)


def test_many_records_are_read_in_a_moment(tmp_path):
    belief, half = Belief(CHAIN, evidence=True), 50_000
    belief.update_many({"X": [0, 1] * half, "Z": [0, 1] * half, "Y": [0, 1] * half})
    belief.save(tmp_path / "belief.json")
    start = time.perf_counter()
    again = Belief.load(tmp_path / "belief.json", CHAIN)
    assert time.perf_counter() - start < 5
    assert told(again) == told(belief)


def test_a_posterior_that_has_learned_before_keeps_no_evidence():
    trained = Belief(CHAIN)
    trained.update({}, {"X": 0, "Y": 1, "Z": 0})
    with raises_code("missing-records"):
        Belief(CHAIN, posterior=trained.posterior, evidence=True)


@pytest.mark.parametrize("how", ["update", "update_many", "learn"])
def test_what_there_is_no_room_for_changes_nothing(monkeypatch, how):
    problem = Problem(CausalGraph.parse(f"A -> X -> Y; B{how} -> X"), "Y")
    belief, seen = Belief(problem, evidence=True), {"X": 0, "Y": 1, f"B{how}": 0}
    belief.update({}, {"A": 1} | seen)
    before = json.dumps(belief.as_dict())
    monkeypatch.setattr("dowise.model.missing_edges.MAX_ENTRIES", 3)
    columns = {"arm": ["do(A=0)"]} | {name: [x] for name, x in seen.items()}  # no arm sets A
    given = {
        "update": ({"A": 0}, seen),
        "learn": (problem.record({"A": 0}, seen),),
        "update_many": (columns,),
    }[how]
    with pytest.raises(DowiseError, match="entries"):
        getattr(belief, how)(*given)
    assert json.dumps(belief.as_dict()) == before
    assert belief.evidence().records == 1


def test_a_retraction_that_either_side_refuses_changes_neither():
    belief, other = Belief(CHAIN, evidence=True), CHAIN.record({}, {"X": 1, "Y": 1, "Z": 0})
    record = CHAIN.record({}, {"X": 0, "Y": 1, "Z": 0})
    belief.learn(record)
    belief.posterior.learn(other)  # of which the monitor knows nothing
    belief.monitor.learn(other)
    belief.monitor.learn(other)  # and here one that the posterior does not know
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
