"""Records: outcomes parsed once, records of earlier problems, and batches."""

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Problem, load_problem
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, equal_columns, past_record

WARD = Problem(
    "Age -> Dose -> Recovery; Age -> Recovery; Sun -> Recovery; Mood -> Dose",
    "Recovery",
    "Age",
    "Sun",
    domains={"Dose": ["low", "high"], "Age": ["False", "True"]},
    hidden="Mood",
)


def test_a_record_has_codes_of_arm_and_outcome():
    record = WARD.record({"Dose": "high"}, {"Age": True, "Sun": 0, "Recovery": 1}, number=3)
    assert record.arm == WARD.intervention("do(Dose=high)") and record.number == 3
    assert record.codes.tolist() == [1, 1, 1, 0]
    assert record.fixed.tolist() == [MISSING, 1, MISSING, MISSING]
    assert record.context == (1,) and record.reward == 1 and record.missing == ()
    assert record.labels == {"Age": "True", "Dose": "high", "Recovery": "1", "Sun": "0"}


@pytest.mark.parametrize("value", [None, float("nan"), np.nan])
def test_values_that_were_not_observed_are_missing(value):
    record = WARD.record("do(Dose=low)", {"Age": "False", "Sun": 1, "Recovery": value})
    assert record.missing == ("Recovery",) and record.reward == MISSING


@pytest.mark.parametrize(
    ("arm", "outcome", "code", "mentioned"),
    [
        ("do(Dose=low)", {3: "good"}, "unknown-variable", "names 3"),
        ("do(Dose=low)", [1], "invalid-type", "a list"),
        ("do(Dose=low)", None, "invalid-type", "None"),
    ],
)
def test_invalid_outcomes_are_refused(arm, outcome, code, mentioned):
    with raises_code(code, mentioned):
        WARD.record(arm, outcome)


# -- records of earlier versions of a problem ---------------------------------------------------


def test_a_past_record_may_set_any_variable_but_the_reward():
    record = past_record(WARD, {"Age": True, "Sun": 1}, {"Dose": "high", "Recovery": 0}, number=4)
    assert str(record.arm) == "do(Age=True, Sun=1)" and record.number == 4
    assert record.codes.tolist() == [1, 1, 0, 1]
    assert record.fixed.tolist() == [1, MISSING, MISSING, 1]
    assert record.context == (1,) and record.problem is WARD
    with raises_code("not-manipulable", "Sun"):
        WARD.record("do(Sun=1)", {})


def test_a_past_record_of_an_arm_equals_the_record():
    outcome = {"Age": "False", "Sun": None, "Recovery": 1}
    past = past_record(WARD, {"Dose": "high"}, outcome, 2)
    record = WARD.record("do(Dose=high)", outcome, 2)
    assert record.as_dict() == past.as_dict() and record.arm == past.arm
    np.testing.assert_array_equal(record.codes, past.codes)
    np.testing.assert_array_equal(record.fixed, past.fixed)


@pytest.mark.parametrize(
    ("settings", "labels", "code", "mentioned"),
    [
        ({"Recovery": 1}, {}, "not-manipulable", "Recovery is the reward"),
        ({"Dosis": 1}, {}, "unknown-variable", "did you mean 'Dose'"),
        ({"Sun": None}, {}, "missing-value", "Sun"),
        ({"Sun": 1}, {"Sun": 0}, "contradictory-record", "Sun=0"),
    ],
)
def test_invalid_past_records_are_refused(settings, labels, code, mentioned):
    with raises_code(code, mentioned):
        past_record(WARD, settings, labels)


# -- batches ------------------------------------------------------------------------------------


def test_a_batch_of_one_equals_the_record():
    problem = load_problem("task2")
    record = problem.record("do(X1=0)", {"C": 1, "Z": 0, "X2": 1})
    batch = RecordBatch.from_record(record)
    table = problem.records({"C": [1], "Z": [0], "X2": [1], "Y": [None], "arm": ["do(X1=0)"]})
    np.testing.assert_array_equal(batch.codes, table.codes)
    np.testing.assert_array_equal(batch.was_set, table.was_set)
    assert len(batch) == len(table) == 1


def test_a_batch_yields_its_records():
    records = [
        past_record(WARD, {"Age": True}, {"Recovery": 1}, 5),
        past_record(WARD, {}, {"Dose": "low"}, 6),
        past_record(WARD, {"Sun": 0, "Dose": "high"}, {"Age": False}, 9),
        past_record(WARD, {"Age": True}, {}, 11),
    ]
    fixed = np.array([record.fixed for record in records]).T
    batch = RecordBatch(WARD, np.array([r.codes for r in records]).T, fixed != MISSING)
    arms, inverse = batch.arms()
    assert [arms[k] for k in inverse] == [record.arm for record in records] and len(arms) == 3
    for record, copied in zip(records, batch.each(np.array([5, 6, 9, 11])), strict=True):
        assert record.as_dict() == copied.as_dict() and record.arm == copied.arm
        np.testing.assert_array_equal(record.fixed, copied.fixed)
    part = list(batch.take(np.array([True, False, True, False])).each())
    assert [record.labels for record in part] == [records[0].labels, records[2].labels]
    assert [record.number for record in part] == [None, None]
    assert len(batch.take(np.array([3, 0]))) == 2


def test_equal_columns_of_more_values_than_an_integer_holds():
    """Forty rows of up to nine values would need 127 bits."""
    rng = np.random.default_rng(0)
    distinct = rng.integers(-1, 9, size=(40, 30))
    distinct[0] += 1
    columns = rng.integers(30, size=500)
    first, inverse = equal_columns(list(distinct[:, columns]))
    assert len(first) == len(set(columns.tolist()))
    np.testing.assert_array_equal(distinct[:, columns][:, first][:, inverse], distinct[:, columns])
    assert [int(np.flatnonzero(inverse == k)[0]) for k in range(len(first))] == first.tolist()
