"""Tables of records: columns, rows and reasons, against checking row by row."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import examples

from dowise import DowiseError, Problem
from dowise.problem.record import RecordBatch
from dowise.problem.tables import EXPORT_COLUMNS, MAX_EXPLAINED, BadRow, export_name, sources_of

WARD = Problem(
    "Age -> Dose -> Recovery; Age -> Recovery; Diet -> Dose",
    "Recovery",
    "Age",
    domains={"Dose": ["low", "high"], "Age": ["False", "True"]},
    reward_values={"bad": -10, "fair": 0, "good": 30},
)
ODD_NAMES = Problem("status -> arm -> status_ -> Y; id_", "Y", "status")
PLAIN = Problem("X -> Y; Z -> Y", "Y")

ARMS = (
    "do()",
    "do(Dose=low)",
    "do(Dose=high, Diet=1)",
    "do(Diet=0)",
    None,
    float("nan"),
    "",
    "Dose=low",
    "do(Age=True)",
    "do(Dose=most)",
    "do(Does=low)",
    "do(Recovery=good)",
    3,
)
VALUES = {
    "Age": (True, 0, "True", None, "old", 2.5),
    "Dose": ("low", "high", None, "hihg", np.int64(1)),
    "Diet": (0, 1.0, "1", "0", None, float("nan"), 7),
    "Recovery": ("good", "bad", None, "so-so"),
}


def check_row_by_row(problem, frame):
    """Slow twin of `checked_records`: (row, record) of good rows, and the bad rows."""
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


def assert_same_as_row_by_row(frame, table):
    records, bad = check_row_by_row(WARD, frame)
    checked = WARD.checked_records(table)
    assert checked.bad == bad and checked.bad_count == len(bad)
    assert checked.rows.tolist() == [row for row, _ in records]
    assert checked.size == len(records) + len(bad)
    for i, (_, record) in enumerate(records):
        single = RecordBatch.from_record(record)
        assert checked.batch.codes[:, [i]].tolist() == single.codes.tolist()
        assert checked.batch.was_set[:, [i]].tolist() == single.was_set.tolist()
    if not bad:
        np.testing.assert_array_equal(WARD.records(table).codes, checked.batch.codes)
        return
    with raises_code("bad-rows", bad[0].message(f"row {bad[0].row + 1} of {checked.size}")):
        WARD.records(table)


@st.composite
def frames(draw):
    names = draw(st.sets(st.sampled_from(["arm", *VALUES]), min_size=1))
    size = draw(st.integers(0, 12))
    cells = {
        name: st.sampled_from((ARMS if name == "arm" else VALUES[name])[: draw(st.integers(2, 13))])
        for name in sorted(names)
    }
    return {name: [draw(cell) for _ in range(size)] for name, cell in cells.items()}


@given(frames())
@examples(150)
def test_tables_are_checked_like_single_records(frame):
    assert_same_as_row_by_row(frame, frame)
    text = {
        name: [None if x is None or x != x else str(x) for x in column]
        for name, column in frame.items()
    }
    assert_same_as_row_by_row(text, text)
    arrow = pa.table({name: pa.array(text[name], pa.string()) for name in text})
    assert_same_as_row_by_row(text, arrow)
    assert_same_as_row_by_row(text, pd.DataFrame(text, dtype=object))


def test_bad_rows_have_their_reasons():
    frame = {
        "arm": ["do(Dose=low)", None, "do(Dose=low)", "do(Age=True)", "do()"],
        "Dose": ["low", "low", "high", "low", "low"],
        "Recovery": ["good", "good", "good", "good", "goood"],
    }
    checked = WARD.checked_records(frame)
    assert [str(row) for row in checked.bad] == [
        "row 2 has no arm: write do() if nothing was set",
        "row 3: do(Dose=low) set Dose=low, but the outcome has Dose=high",
        "row 4: Age can't be set: it is context",
        "row 5: Recovery has no value 'goood' (did you mean 'good'?): its values are bad, fair, "
        "good",
    ]
    assert checked.rows.tolist() == [0] and checked.bad_count == 4 and len(checked.batch) == 1
    assert "1 good rows, 4 bad" in repr(checked)


def test_an_argument_arm_replaces_the_column():
    checked = WARD.checked_records({"Dose": ["low", "high"]}, "do(Dose=low)")
    assert [row.row for row in checked.bad] == [1] and checked.batch.was_set.sum() == 1
    with raises_code("duplicate-name", "'arm'"):
        WARD.records({"arm": ["do()"]}, "do(Dose=low)")


@pytest.mark.parametrize(
    ("frame", "code", "mentioned"),
    [
        ({"Does": [1], "Agee": [1]}, "unknown-variable", "did you mean 'Age'"),
        ({"Dose": ["low"], "Age": []}, "inconsistent-table", "column Dose has 1 row, Age has 0: "),
        ({"Dose": "low"}, "invalid-type", "'Dose'"),
        (pd.DataFrame([[0, 1]], columns=["Diet", "Diet"]), "duplicate-name", "'Diet'"),
        (pd.DataFrame({"Unnamed: 0": [1]}), "unknown-variable", "index=False"),
    ],
)
def test_invalid_tables_are_refused(frame, code, mentioned):
    with raises_code(code, mentioned):
        WARD.checked_records(frame)


def test_only_the_first_bad_rows_are_explained():
    size = 200_000
    frame = {"Diet": [f"{i + 0.5}" for i in range(size)], "Dose": ["low", None] * (size // 2)}
    with patch.object(Problem, "record", autospec=True, side_effect=Problem.record) as record:
        checked = WARD.checked_records(frame)
    assert record.call_count == MAX_EXPLAINED  # 200,000 reasons would take many seconds
    assert checked.bad_count == size and checked.rows.tolist() == []
    assert [row.row for row in checked.bad] == list(range(MAX_EXPLAINED))


@pytest.mark.parametrize("frame", [{}, {"Dose": []}, {"arm": [], "Dose": []}])
def test_an_empty_table_has_no_bad_rows(frame):
    checked = WARD.checked_records(frame)
    assert checked.size == 0 and checked.bad == () and len(checked.batch) == 0


# -- exports ------------------------------------------------------------------------------------


def test_columns_of_an_export_have_distinct_names():
    names = [f"{name}{'_' * i}" for name in EXPORT_COLUMNS for i in range(3)] + ["X", "_", "ID"]
    exported = [export_name(name) for name in names]
    assert len({*exported, *EXPORT_COLUMNS}) == len(exported) + len(EXPORT_COLUMNS)
    assert export_name("X") == "X" and export_name("ID") == "ID" and export_name("_") == "_"


@pytest.mark.parametrize("problem", [ODD_NAMES, PLAIN])
def test_columns_of_an_export_are_mapped_back(problem):
    variables = problem.graph.variables
    sources = sources_of(problem, [*EXPORT_COLUMNS, *map(export_name, variables)])
    assert sources.variables == {name: export_name(name) for name in variables}
    assert sources.arm == "arm"


def test_values_of_an_export_are_those_of_the_variables():
    frame = {name: ["?"] for name in EXPORT_COLUMNS} | {
        "arm": ["do(arm=1)"],
        "status_": [1],
        "arm_": [None],
        "status__": [0],
        "Y": [1],
        "id__": [None],
        "status": ["told"],
    }
    batch = ODD_NAMES.records(frame)
    assert dict(zip(ODD_NAMES.graph.variables, batch.codes[:, 0].tolist(), strict=True)) == {
        "Y": 1,
        "arm": 1,
        "id_": -1,
        "status": 1,
        "status_": 0,
    }
    assert batch.was_set[:, 0].tolist() == [name == "arm" for name in ODD_NAMES.graph.variables]


def test_other_tables_have_variables_under_their_own_names():
    assert sources_of(ODD_NAMES, ["status", "status_", "arm", "Y"]).arm is None
    sources = sources_of(ODD_NAMES, ["status", "arm"])
    assert sources.variables == {"status": "status", "arm": "arm"}
    for name in {*EXPORT_COLUMNS} - {"arm"}:
        with raises_code("unknown-variable", f"'{name}'"):
            sources_of(PLAIN, ["X", name])
    with raises_code("unknown-variable", "'W'"):
        sources_of(PLAIN, [*EXPORT_COLUMNS, "X", "W"])
