"""Records of what was set under another version of a problem, and batches of them."""

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Problem
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, equal_columns, past_record

WARD = Problem(
    CausalGraph.parse("Age -> Dose -> Recovery; Age -> Recovery; Sun -> Recovery; Mood -> Dose"),
    "Recovery", "Age", "Sun", domains={"Dose": ["low", "high"], "Age": ["False", "True"]},
    hidden="Mood",
)  # fmt: skip


def test_any_variable_but_the_reward_may_have_been_set():
    record = past_record(WARD, {"Age": True, "Sun": 1}, {"Dose": "high", "Recovery": 0}, number=4)
    assert str(record.arm) == "do(Age=True, Sun=1)" and record.number == 4
    assert record.codes.tolist() == [1, 1, 0, 1]
    assert record.fixed.tolist() == [1, MISSING, MISSING, 1]
    assert record.context == (1,) and record.problem is WARD
    with pytest.raises(DowiseError, match="can't be set"):
        WARD.record("do(Sun=1)", {})


def test_of_an_arm_it_is_the_record_itself():
    seen = {"Age": "False", "Sun": None, "Recovery": 1}
    one, other = WARD.record("do(Dose=high)", seen, 2), past_record(WARD, {"Dose": "high"}, seen, 2)
    assert one.as_dict() == other.as_dict() and one.arm == other.arm
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.fixed, other.fixed)


@pytest.mark.parametrize(
    ("settings", "labels", "message"),
    [
        ({"Recovery": 1}, {}, "Recovery is the reward and can't have been set"),
        ({"Mood": 1}, {}, "can't have been set: Mood is declared hidden"),
        ({"Dosis": 1}, {}, "'Dosis' was set, which is not a variable .*did you mean 'Dose'"),
        ({"Dose": "huge"}, {}, "Dose has no value 'huge'"),
        ({"Sun": None}, {}, "the value of Sun is missing"),
        ({"Sun": 1}, {"Sun": 0}, "set Sun=1, but the outcome has Sun=0"),
        ({"Sun": 1}, {"Rain": 0}, "names 'Rain', which is not a variable"),
    ],
)
def test_what_makes_no_sense_is_named(settings, labels, message):
    with pytest.raises(DowiseError, match=message):
        past_record(WARD, settings, labels)


def test_a_batch_gives_its_records_back():
    rows = [
        past_record(WARD, {"Age": True}, {"Recovery": 1}, 5),
        past_record(WARD, {}, {"Dose": "low"}, 6),
        past_record(WARD, {"Sun": 0, "Dose": "high"}, {"Age": False}, 9),
        past_record(WARD, {"Age": True}, {}, 11),
    ]
    batch = RecordBatch(
        WARD, np.array([r.codes for r in rows]).T, np.array([r.fixed for r in rows]).T != MISSING
    )
    arms, which = batch.arms()
    assert [arms[k] for k in which] == [row.arm for row in rows] and len(arms) == 3
    numbers = np.array([5, 6, 9, 11])
    for own, found in zip(rows, batch.each(numbers), strict=True):
        assert own.as_dict() == found.as_dict() and own.arm == found.arm
        np.testing.assert_array_equal(own.fixed, found.fixed)
    some = batch.take(np.array([True, False, True, False]))
    assert [r.as_dict()["values"] for r in some.each()] == [rows[0].labels, rows[2].labels]
    assert [r.number for r in some.each()] == [None, None]
    assert len(batch.take(np.array([3, 0]))) == 2


def test_equal_columns_also_where_one_number_does_not_hold_all():
    """Forty rows of up to nine values would need 127 bits."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(-1, 9, size=(40, 30))
    kinds[0] += 1
    pick = rng.integers(30, size=500)
    first, which = equal_columns(list(kinds[:, pick]))
    assert len(first) == len(set(pick.tolist()))
    np.testing.assert_array_equal(kinds[:, pick][:, first][:, which], kinds[:, pick])
    assert [int(np.flatnonzero(which == k)[0]) for k in range(len(first))] == first.tolist()
