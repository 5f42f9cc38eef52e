"""Records and evidence of a monitor: saved, loaded, replayed; atomic updates."""

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


def test_a_withdrawn_alarm_is_saved(tmp_path):
    belief = Belief(CHAIN, evidence=True)
    for z in [0, 1] * 15:
        belief.update({"X": 0}, {"Z": z, "Y": z})
    for _ in range(15):
        belief.retract(CHAIN.record({"X": 0}, {"Z": 0, "Y": 0}))
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", CHAIN)
    assert again.evidence().withdrawn == belief.evidence().withdrawn is not None


def test_files_of_earlier_versions_are_replayed_in_their_order(tmp_path):
    """They have each distinct record with its count, and the history of earlier e-values."""
    belief, sorted_belief = Belief(CHAIN, evidence=True), Belief(CHAIN, evidence=True)
    for z, y in [(0, 0), (1, 1), (0, 0), (1, 0)] * 10:
        belief.update({"X": 0}, {"Z": z, "Y": y})
    data = belief.as_dict()
    data["evidence"] = {
        "recomputed": False,
        "mixed": {"steps": [[17, 0.3]], "largest": {}},
        "strict": {"steps": [], "largest": {}},
    }
    (tmp_path / "belief.json").write_text(json.dumps(data))
    again = Belief.load(tmp_path / "belief.json", CHAIN).evidence()
    for (z, y), times in {(0, 0): 20, (1, 1): 10, (1, 0): 10}.items():
        for _ in range(times):
            sorted_belief.update({"X": 0}, {"Z": z, "Y": y})
    expected = sorted_belief.evidence()
    assert again.recomputed and not expected.recomputed
    np.testing.assert_array_equal(again.log_e_values, expected.log_e_values)
    assert "they count in its order" in str(again)


@pytest.mark.parametrize(
    "change",
    [
        lambda evidence: evidence.update(order="AAAA"),
        lambda evidence: evidence.update(order=7),
        lambda evidence: evidence.update(order="eJwDAAAAAAE="),  # of no records
        lambda evidence: evidence.update(recomputed=1),
        lambda evidence: evidence.update(withdrawn=[[2, 1]]),
        lambda evidence: evidence.update(withdrawn=3),
        lambda evidence: evidence.clear(),
    ],
)
def test_damaged_orders_are_refused(tmp_path, change):
    belief = Belief(CHAIN, evidence=True)
    for z in (0, 1, 0):
        belief.update({"X": 0}, {"Z": z, "Y": z})
    data = belief.as_dict()
    change(data["evidence"])
    (tmp_path / "belief.json").write_text(json.dumps(data))
    with raises_code("damaged-file"):
        Belief.load(tmp_path / "belief.json", CHAIN)


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


@pytest.mark.parametrize("seed", range(4))
def test_intervention_sets_beyond_those_of_arms_count_from_the_start(seed):
    """Figures do not depend on which set came first, nor on sets whose records were retracted."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    records = random_records(problem, rng, 40)
    belief, other = Belief(problem, evidence=True), Belief(problem, evidence=True)
    for record in records:
        belief.learn(record)
        belief.evidence()
        other.learn(record)
    settings = {name: problem.domains[name][0] for name in problem.manipulable}
    extra = problem.record(settings, {})
    other.learn(extra)
    other.evidence()
    other.retract(extra)
    assert evidence_of(belief) == evidence_of(other)


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


def test_a_monitor_without_records_has_an_empty_order():
    belief = Belief(CHAIN, evidence=True)
    again = Belief.from_dict(json.loads(json.dumps(belief.as_dict())), CHAIN)
    assert evidence_of(again) == evidence_of(belief)
    assert len(Monitor(CHAIN).arrivals) == 0
