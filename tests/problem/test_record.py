"""Records and payoffs: outcomes parsed once, values in the user's units and in [0, 1]."""

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem, load_problem
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch

WARD = Problem(
    CausalGraph.parse("Age -> Dose -> Recovery; Age -> Recovery"), "Recovery", "Age",
    domains={"Dose": ["low", "high"], "Age": ["False", "True"]},
    reward_values={"bad": -10, "fair": 0, "good": 30},
)  # fmt: skip


def test_a_record_by_hand():
    record = WARD.record({"Dose": "high"}, {"Age": True, "Recovery": "fair"}, number=3)
    assert record.arm == WARD.intervention("do(Dose=high)")
    assert record.codes.tolist() == [1, 1, 1] and record.fixed.tolist() == [MISSING, 1, MISSING]
    assert record.context == (1,) and record.reward == 1 and record.number == 3
    assert record.labels == {"Age": "True", "Dose": "high", "Recovery": "fair"}
    assert record.missing == ()


@pytest.mark.parametrize("value", [None, float("nan"), np.nan])
def test_what_was_not_seen_is_missing(value):
    record = WARD.record("do(Dose=low)", {"Age": "False", "Recovery": value})
    assert record.missing == ("Recovery",) and record.reward == MISSING
    record.need([0, 1], "it is there")
    with pytest.raises(DowiseError, match="no value for Recovery: we want to know"):
        record.need([0, 1, 2], "we want to know")


@pytest.mark.parametrize(
    ("arm", "outcome", "message"),
    [
        ("do(Dose=low)", {"Dose": "high"}, "do.Dose=low. set Dose=low, but the outcome has Dose=h"),
        ("do(Dose=low)", {"Recovry": "good"}, "names 'Recovry'.*did you mean 'Recovery'"),
        ("do(Dose=low)", {3: "good"}, "names 3, which is not a variable"),
        ("do(Dose=low)", {"Recovery": 1}, "Recovery has no value '1'"),
        ("do(Age=True)", {}, "Age can't be set: it is context"),
        ("do(Dose=low)", [1], "must map variables to values"),
    ],
)
def test_a_bad_outcome_is_named(arm, outcome, message):
    with pytest.raises(DowiseError, match=message):
        WARD.record(arm, outcome)


def test_a_batch_of_one_is_the_record():
    problem = load_problem("task2")
    record = problem.record("do(X1=0)", {"C": 1, "Z": 0, "X2": 1})
    batch = RecordBatch.from_record(record)
    table = problem.records({"C": [1], "Z": [0], "X2": [1], "Y": [None], "arm": ["do(X1=0)"]})
    np.testing.assert_array_equal(batch.codes, table.codes)
    np.testing.assert_array_equal(batch.was_set, table.was_set)
    assert len(batch) == len(table) == 1


def test_the_payoff():
    payoff = WARD.payoff
    assert payoff.values.tolist() == [-10, 0, 30] and payoff.scaled.tolist() == [0, 0.25, 1]
    assert payoff.worst == -10 and payoff.span == 40 and payoff.unscale(0.25) == 0
    assert not payoff.is_plain and load_problem("task1").payoff.is_plain
    with pytest.raises(ValueError, match="read-only"):
        payoff.scaled[0] = 1
