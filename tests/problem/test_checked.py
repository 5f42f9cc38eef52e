"""Tables checked row by row: every bad row with its reason, every good one as a record."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import examples

from dowise import CausalGraph, DowiseError, Problem
from dowise.problem import tables as checked_module
from dowise.problem.record import RecordBatch
from dowise.problem.tables import MOST_BAD, BadRow

WARD = Problem(
    CausalGraph.parse("Age -> Dose -> Recovery; Age -> Recovery; Diet -> Dose"), "Recovery", "Age",
    domains={"Dose": ["low", "high"], "Age": ["False", "True"]},
    reward_values={"bad": -10, "fair": 0, "good": 30},
)  # fmt: skip

ARMS = ("do()", "do(Dose=low)", "do(Dose=high, Diet=1)", "do(Diet=0)", None, float("nan"), "",
        "Dose=low", "do(Age=True)", "do(Dose=most)", "do(Does=low)", "do(Recovery=good)",
        3)  # fmt: skip
VALUES = {
    "Age": (True, 0, "True", None, "old", 2.5), "Dose": ("low", "high", None, "hihg", np.int64(1)),
    "Diet": (0, 1.0, "1", "0", None, float("nan"), 7), "Recovery": ("good", "bad", None, "so-so"),
}  # fmt: skip


def plain_check(problem, frame):
    """The slow twin: row by row through `problem.record`."""
    records, bad = [], []
    for row in range(len(next(iter(frame.values())))):
        values = {name: frame[name][row] for name in sorted(frame)}
        arm = values.pop("arm", "do()")
        try:
            if arm is None or arm != arm:
                raise DowiseError("has no arm: write do() if nothing was set")
            records.append((row, problem.record(str(arm), values)))
        except DowiseError as error:
            bad.append(BadRow(row, str(error)))
    return records, tuple(bad)


def assert_as_plain(frame, table):
    records, bad = plain_check(WARD, frame)
    checked = WARD.checked_records(table)
    assert checked.bad == bad and checked.bad_count == len(bad)
    assert checked.rows.tolist() == [row for row, _ in records]
    assert checked.size == len(records) + len(bad)
    for i, (_, record) in enumerate(records):
        one = RecordBatch.from_record(record)
        assert checked.batch.codes[:, [i]].tolist() == one.codes.tolist()
        assert checked.batch.was_set[:, [i]].tolist() == one.was_set.tolist()
    if not bad:
        np.testing.assert_array_equal(WARD.records(table).codes, checked.batch.codes)
        return
    with pytest.raises(DowiseError) as error:
        WARD.records(table)
    assert str(error.value) == bad[0].said(f"row {bad[0].row + 1} of {checked.size}")


@st.composite
def tables(draw):
    names = draw(st.sets(st.sampled_from(["arm", *VALUES]), min_size=1))
    size = draw(st.integers(0, 12))
    cells = {
        name: st.sampled_from((ARMS if name == "arm" else VALUES[name])[: draw(st.integers(2, 13))])
        for name in sorted(names)
    }
    return {name: [draw(cell) for _ in range(size)] for name, cell in cells.items()}


@given(tables())
@examples(150)
def test_the_same_rows_are_bad_for_the_same_reasons_as_one_by_one(frame):
    assert_as_plain(frame, frame)
    text = {
        name: [None if x is None or x != x else str(x) for x in column]
        for name, column in frame.items()
    }
    assert_as_plain(text, text)
    assert_as_plain(text, pa.table({name: pa.array(text[name], pa.string()) for name in text}))
    assert_as_plain(text, pd.DataFrame(text, dtype=object))


def test_by_hand():
    frame = {
        "arm": ["do(Dose=low)", None, "do(Dose=low)", "do(Age=True)", "do()", "do(Dose=lo)"],
        "Dose": ["low", "low", "high", "low", "low", "none"],
        "Recovery": ["good", "good", "good", "good", "goood", "none"],
    }
    checked = WARD.checked_records(frame)
    assert [str(row) for row in checked.bad] == [
        "row 2 has no arm: write do() if nothing was set",
        "row 3: do(Dose=low) set Dose=low, but the outcome has Dose=high",
        "row 4: Age can't be set: it is context",
        "row 5: Recovery has no value 'goood' (did you mean 'good'?): its values are bad, fair, "
        "good",
        "row 6: Dose has no value 'lo' (did you mean 'low'?): its values are low, high",
    ]
    assert checked.rows.tolist() == [0] and checked.bad_count == 5 and len(checked.batch) == 1
    assert "1 good rows, 5 bad" in repr(checked)
    given_arm = WARD.checked_records({"Dose": ["low", "high"]}, "do(Dose=low)")
    assert [row.row for row in given_arm.bad] == [1] and given_arm.batch.was_set.sum() == 1


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"Does": ["low"]}, "a column 'Does', which is not a variable.*did you mean 'Dose'"),
        ({"Dose": ["low"], "Age": []}, "columns of different lengths"),
        ({"Dose": [["low"]]}, "values that can't be labels"),
        ([1], "is not a table"),
    ],
)
def test_what_is_wrong_with_the_whole_table_stays_an_error(frame, message):
    with pytest.raises(DowiseError, match=message):
        WARD.checked_records(frame)


def test_only_the_first_bad_rows_are_explained_and_all_are_counted():
    size = 200_000
    frame = {"Diet": [f"{i + 0.5}" for i in range(size)], "Dose": ["low", None] * (size // 2)}
    with patch.object(checked_module, "label_of", side_effect=checked_module.label_of) as explain:
        checked = WARD.checked_records(frame)
    assert explain.call_count == MOST_BAD  # 200,000 reasons would take many seconds
    assert checked.bad_count == size and checked.rows.tolist() == []
    assert len(checked.bad) == MOST_BAD
    assert [row.row for row in checked.bad[:2]] == [0, 1] and checked.bad[-1].row == MOST_BAD - 1


def test_an_empty_table_has_nothing_bad():
    for frame in ({}, {"Dose": []}, {"arm": [], "Dose": []}):
        checked = WARD.checked_records(frame)
        assert checked.size == 0 and checked.bad == () and len(checked.batch) == 0
