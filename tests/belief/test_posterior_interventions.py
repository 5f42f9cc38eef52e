"""Counts and evidence of records whose interventions set context or non-manipulable variables."""

import json

import numpy as np
from support.errors import raises_code

from dowise import Belief, CausalGraph, Problem
from dowise.belief import Posterior
from dowise.problem.record import RecordBatch, past_record

TIED = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; Z -> Y; C <-> Y!"), "Y", "C", "Z")
PLAIN = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; Z -> Y"), "Y", "C", "Z")
VALUES = {"C": 1, "X": 0, "Z": 1, "Y": 1}


def counted(problem, settings):
    """Return the entries in which a record counts, by factor, and the unused values."""
    belief, record = Belief(problem), past_record(problem, settings, VALUES)
    belief.learn(record)
    posterior, factors = belief.posterior, belief.posterior.model.factors
    tables = {name: factors.view(posterior.counts, name) for name in factors.names}
    entries = {name: np.argwhere(table).tolist() for name, table in tables.items() if table.any()}
    many = Posterior(problem)
    many.learn_many(RecordBatch.from_record(record))
    np.testing.assert_array_equal(many.counts, posterior.counts)
    np.testing.assert_array_equal(many.unused, posterior.unused)
    unused = belief.unused
    belief.retract(record)
    assert not posterior.counts.any() and not posterior.unused.any()
    return entries, unused


def test_without_hidden_causes_all_variables_count_that_were_not_set():
    entries = {"C": [[1]], "X": [[1, 0]], "Z": [[1]], "Y": [[1, 0, 1, 1]]}
    for settings in ({}, {"C": 1}, {"Z": 1}, {"C": 1, "Z": 1}, {"C": 1, "X": 0, "Z": 1}):
        expected = {name: entry for name, entry in entries.items() if name not in settings}
        assert counted(PLAIN, settings) == (expected, {})


def test_a_reward_confounded_with_the_context_is_not_learned_from_a_context_that_was_set():
    """P(y | do(c), x, z) is not P(y | c, x, z), and no arm has this factor."""
    factors = {"C": [[1]], "X": [[1, 0]], "Z": [[1]], "Y | C": [[1, 0, 1, 1]]}
    assert counted(TIED, {}) == (factors, {})
    assert counted(TIED, {"C": 1}) == (
        {name: factors[name] for name in "XZ"},
        {"Y": {"no arm needs what it tells": 1}},
    )
    assert counted(TIED, {"Z": 1}) == ({n: e for n, e in factors.items() if n != "Z"}, {})


def test_records_of_any_intervention_are_saved_and_loaded(tmp_path):
    belief = Belief(PLAIN, evidence=True)
    for settings in ({"C": 1}, {"Z": 1}, {"X": 0}, {"C": 1, "Z": 1}):
        belief.learn(past_record(PLAIN, settings, VALUES))
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", PLAIN)
    assert again.as_dict() == belief.as_dict()
    assert again.evidence().as_dict() == belief.evidence().as_dict()
    data = json.loads((tmp_path / "belief.json").read_text("utf-8"))
    data["records"][1]["set"] = ["Y"]
    (tmp_path / "bad.json").write_text(json.dumps(data), "utf-8")
    with raises_code("damaged-file", "bad.json", "Y"):
        Belief.load(tmp_path / "bad.json", PLAIN)


def test_a_context_that_was_set_is_no_evidence_about_its_hidden_causes():
    """Under do(C) graphs with and without C <-> Y have the same distribution of Y."""
    observed, was_set = Belief(PLAIN, evidence=True), Belief(PLAIN, evidence=True)
    for _ in range(5):
        observed.learn(past_record(PLAIN, {}, VALUES))
        was_set.learn(past_record(PLAIN, {"C": 1}, VALUES))
    logs = [
        {item["edge"]: item["log_e_value"] for item in belief.evidence().as_dict()["alternatives"]}
        for belief in (observed, was_set)
    ]
    assert all(-0.1 < logs[1][edge] <= 0 for edge in ("C <-> Y", "C <-> X"))  # a cost of betting
    assert logs[0].keys() == logs[1].keys()
