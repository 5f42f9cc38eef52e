"""What counts where something was set that is no arm, by hand: in context, and beyond reach."""

import json

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem
from dowise.belief import Posterior
from dowise.problem.record import RecordBatch, past_record

TIED = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; Z -> Y; C <-> Y!"), "Y", "C", "Z")
PLAIN = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; Z -> Y"), "Y", "C", "Z")
SEEN = {"C": 1, "X": 0, "Z": 1, "Y": 1}


def counted(problem, settings, seen=None):
    """The entries that a record counts in, by factor, and what could not be used."""
    belief = Belief(problem)
    record = past_record(problem, settings, SEEN if seen is None else seen)
    belief.learn(record)
    posterior, factors = belief.posterior, belief.posterior.model.factors
    tables = {name: factors.view(posterior.counts, name) for name in factors.names}
    found = {name: np.argwhere(table).tolist() for name, table in tables.items() if table.any()}
    many = Posterior(problem)
    many.learn_many(RecordBatch.from_record(record))
    np.testing.assert_array_equal(many.counts, posterior.counts)
    np.testing.assert_array_equal(many.unused, posterior.unused)
    unused = belief.unused
    belief.retract(record)
    assert not posterior.counts.any() and not posterior.unused.any()
    return found, unused


def test_where_nothing_is_hidden_all_but_what_was_set_counts():
    whole = {"C": [[1]], "X": [[1, 0]], "Z": [[1]], "Y": [[1, 0, 1, 1]]}
    for settings in ({}, {"C": 1}, {"Z": 1}, {"C": 1, "Z": 1}, {"C": 1, "X": 0, "Z": 1}):
        found, unused = counted(PLAIN, settings)
        assert found == {name: where for name, where in whole.items() if name not in settings}
        assert unused == {}


def test_a_hidden_cause_ties_the_reward_to_a_context_that_was_seen_not_to_one_that_was_set():
    """P(y | do(c), x, z) is not P(y | c, x, z): no arm has it, and nothing is learned of Y."""
    found, unused = counted(TIED, {})
    assert found == {"C": [[1]], "X": [[1, 0]], "Z": [[1]], "Y | C": [[1, 0, 1, 1]]}
    assert unused == {}
    found, unused = counted(TIED, {"C": 1})
    assert found == {"X": [[1, 0]], "Z": [[1]]}
    assert unused == {"Y": {"no arm needs what it tells": 1}}
    found, unused = counted(TIED, {"Z": 1})  # which can't be set any more
    assert found == {"C": [[1]], "X": [[1, 0]], "Y | C": [[1, 0, 1, 1]]} and unused == {}


def test_a_belief_with_evidence_keeps_such_records_and_reads_them_back(tmp_path):
    belief = Belief(PLAIN, evidence=True)
    for settings in ({"C": 1}, {"Z": 1}, {"X": 0}, {"C": 1, "Z": 1}):
        belief.learn(past_record(PLAIN, settings, SEEN))
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", PLAIN)
    assert again.as_dict() == belief.as_dict()
    assert again.evidence().as_dict() == belief.evidence().as_dict()
    page = json.loads((tmp_path / "belief.json").read_text("utf-8"))
    page["records"][1]["set"] = ["Y"]
    (tmp_path / "bad.json").write_text(json.dumps(page), "utf-8")
    with pytest.raises(DowiseError, match="damaged: a record does not fit: Y is the reward"):
        Belief.load(tmp_path / "bad.json", PLAIN)


def test_evidence_about_a_tie_to_the_context_needs_one_that_was_seen():
    """Under do(C) the graph with C <-> Y says of Y what the one without it says."""
    seen, was_set = Belief(PLAIN, evidence=True), Belief(PLAIN, evidence=True)
    for _ in range(5):
        seen.learn(past_record(PLAIN, {}, SEEN))
        was_set.learn(past_record(PLAIN, {"C": 1}, SEEN))
    pages = [belief.evidence().as_dict()["alternatives"] for belief in (seen, was_set)]
    factors = [{one["edge"]: one["log_bayes_factor"] for one in page} for page in pages]
    assert factors[1]["C <-> Y"] == 0.0 == factors[1]["C <-> X"]
    assert factors[0].keys() == factors[1].keys()
