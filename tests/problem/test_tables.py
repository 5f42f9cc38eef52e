"""Files of records: what is read, which line it stands in, and what is wrong with it."""

import csv
import io
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.strategies import examples

from dowise import CausalGraph, DowiseError, Problem
from dowise.problem import tables as csv_table
from dowise.problem.tables import parse_csv, read_records, read_table

PROBLEM = Problem(
    CausalGraph.parse("X -> Y; Z -> X; Z -> Y"), "Y", non_manipulable="Z",
    domains={"Z": ["NA", "1.0", "a\nb", "c"]},
)  # fmt: skip


def plain_csv(problem, text):
    """The slow twin: rows of cells as they mean, their lines, and the rows of another length."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    header, cells, lines, wrong = [], [], [], []
    for row in rows:
        if not header:
            header = [name.strip() for name in row] if any(cell.strip() for cell in row) else []
        elif row and len(row) != len(header):
            wrong.append((rows.line_num, len(row), len(header)))
        elif row:
            lines.append(rows.line_num)
            pairs = zip(header, map(str.strip, row), strict=True)
            cells.append([plain_cell(problem, name, cell) for name, cell in pairs])
    return header, cells, lines, wrong


def plain_cell(problem, name, cell):
    if name in problem.domains and cell not in problem.domains[name]:
        if cell.lower() in ("na", "nan", "n/a", "null"):
            return None
        whole, point, rest = cell.partition(".")
        if point and whole.lstrip("-").isdecimal() and not rest.strip("0") and whole[1:2] != "-":
            return str(int(whole))
    return cell or None


PIECES = ["0", "1", "NA", "1.0", "0.", "-1.0", "x", '"', '""', ",", ",", "\n", "\n", "\r\n",
          "\r", " ", "\t", "\x0b", "\u2028", "\x85", "\ufeff", '"a\nb"', '" 1"', '"1,0"', "do()",
          "é"]  # fmt: skip


@given(
    st.sampled_from(["X,Y", "X", "arm,Z,Y", "\n \nY , Z", '"X","Y"']),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.integers(1, 4),
)
@examples(400)
@example("X,Y", "\n", '"0\n1",1\r"\r\n",0\n', 1)
@example("X,Y", "\n", '0,1\n"0,1', 1)
def test_a_file_is_read_as_cell_by_cell(header, end, body, chunk):
    text = header + end + body
    try:
        names, cells, lines, wrong = plain_csv(PROBLEM, text)
    except csv.Error:
        with pytest.raises(DowiseError, match="is not valid CSV"):
            parse_csv(PROBLEM, text, keep_going=True)
        return
    with patch.object(csv_table, "_CHUNK", chunk):
        table = parse_csv(PROBLEM, text, keep_going=True)
    assert list(table) == names and table.lines.tolist() == lines and table.wrong == wrong
    found = [[column[i] for column in table.values()] for i in range(len(lines))]
    assert found == cells
    if wrong:
        with pytest.raises(DowiseError, match=f"^line {wrong[0][0]} has {wrong[0][1]} values"):
            parse_csv(PROBLEM, text)
    else:
        assert parse_csv(PROBLEM, text).lines.tolist() == lines


def test_bad_rows_have_their_lines_and_rows(tmp_path):
    path = tmp_path / "records.csv"
    text = 'arm,X,Z,Y\n\ndo(),0,c,1\ndo(),0\ndo(X=1),,"a\nb",2\n\ndo(X=1),0,,1\n,,,\n,\ndo(),,,0\n'
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    checked = read_records(path, PROBLEM)
    assert [(row.row, row.line) for row in checked.bad] == [(1, 4), (2, 6), (3, 8), (4, 9), (5, 10)]
    assert [str(row) for row in checked.bad] == [
        "line 4 has 2 values, but there are 4 columns",
        "line 6: Y has no value '2': its values are 0, 1",
        "line 8: do(X=1) set X=1, but the outcome has X=0",
        "line 9 has no arm: write do() if nothing was set",
        "line 10 has 2 values, but there are 4 columns",
    ]
    assert checked.rows.tolist() == [0, 6] and checked.bad_count == 5 and checked.size == 7
    assert checked.batch.codes.tolist() == [[0, -1], [1, 0], [3, -1]]
    with pytest.raises(DowiseError, match="records.csv: line 4 has 2 values"):
        read_table(path, PROBLEM)


def test_more_wrong_lines_than_are_listed(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("X,Y\n" + "0\n0,1\n0,2\n" * 2000)
    checked = read_records(path, PROBLEM)
    assert checked.bad_count == 4000 and len(checked.bad) == 1000 and len(checked.batch) == 2000
    assert [row.row for row in checked.bad[:4]] == [0, 2, 3, 5]
    assert [row.line for row in checked.bad[:4]] == [2, 4, 5, 7]
    assert checked.bad[-1].row == 1499 and checked.rows[:3].tolist() == [1, 4, 7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X,W\n0,1\n", "records.csv: the table has a column 'W', which is not a variable"),
        ('X,Y\n0,1\n"0"1,1\n', "records.csv: line 3 is not valid CSV"),
        ('X,Y\n"0,1\n', "is not valid CSV"),
        ("", "the file is empty"),
        (" , \n", "the table has no column names"),
        ("X;Y\n0;1\n", "separated by semicolons"),
        ("X,X\n0,1\n", "two columns are named 'X'"),
    ],
)
def test_a_file_that_is_no_table_is_an_error(tmp_path, text, message):
    (tmp_path / "records.csv").write_text(text)
    with pytest.raises(DowiseError, match=message):
        read_records(tmp_path / "records.csv", PROBLEM)


def test_bytes_that_are_no_text_are_named(tmp_path):
    (tmp_path / "records.csv").write_bytes(b"X,Y\n0,\xff\n")
    with pytest.raises(DowiseError, match="records.csv: byte 7 is not UTF-8"):
        read_records(tmp_path / "records.csv", PROBLEM)


def test_parquet_has_rows_without_lines(tmp_path):
    frame = pd.DataFrame({"X": [0, 1, 5], "Y": [1, None, 0]})
    frame.to_parquet(tmp_path / "records.parquet")
    checked = read_records(tmp_path / "records.parquet", PROBLEM)
    assert [str(row) for row in checked.bad] == ["row 3: X has no value '5': its values are 0, 1"]
    assert checked.batch.codes.tolist() == [[0, 1], [1, -1], [-1, -1]]
    frame.assign(W=1).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(DowiseError, match="other.parquet: the table has a column 'W'"):
        read_records(tmp_path / "other.parquet", PROBLEM)


def test_an_export_is_read_and_its_own_columns_take_no_memory(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text(
        "id,asked_at,status,arm,probability,probabilities,allowed,X,Z,Y\n"
        '1,2026-01-01T00:00:00Z,done,do(X=1),0.5,"0.5 0.5",,1,c,1\n'
        '2,2026-01-02T00:00:00Z,pending,do(),0.5,"0.5 0.5",,,,\n'
    )
    checked = read_records(path, PROBLEM)
    assert checked.bad == () and checked.batch.codes.tolist() == [[1], [1], [3]]
    assert checked.batch.was_set.tolist() == [[True], [False], [False]]
    assert checked.rows.tolist() == [0]  # nothing was told of the other one
    assert checked.asked_at == {"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}
    assert read_table(path, PROBLEM)["status"].values == ()


def test_whoever_waits_is_told_how_far_it_is(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("X,Y\n" + "0,1\n" * 50_000)
    said = []
    read_records(path, PROBLEM, track=lambda *what: said.append(what))
    assert len(said) >= 2 and {what for what, _, _ in said} == {"reading"}
    done = [done for _, done, _ in said]
    assert done == sorted(done) and done[-1] == said[0][2] == path.stat().st_size


@pytest.mark.slow
def test_a_hundred_thousand_rows_are_judged_as_one_by_one(tmp_path):
    rng = np.random.default_rng(0)
    size = 100_000
    cells = {
        "arm": rng.choice(["do()", "do(X=0)", "do(X=1)", "do(Z=c)", ""], size,
                          p=[0.4, 0.3, 0.28, 0.01, 0.01]),
        "X": rng.choice(["0", "1", "", "2"], size, p=[0.3, 0.3, 0.39, 0.01]),
        "Y": rng.choice(["0", "1.0", "NA", "yes"], size, p=[0.3, 0.3, 0.395, 0.005]),
    }  # fmt: skip
    path = tmp_path / "records.csv"
    pd.DataFrame(cells).to_csv(path, index=False)
    good, bad = [], []
    for row in range(size):
        arm, x, y = (cells[name][row] for name in ("arm", "X", "Y"))
        values = {"X": x or None, "Y": {"1.0": "1", "NA": None}.get(y, y)}
        try:
            if not arm:
                raise DowiseError("has no arm: write do() if nothing was set")
            good.append(PROBLEM.record(str(arm), values).codes)
        except DowiseError as error:
            bad.append((row, str(error), row + 2))
    checked = read_records(path, PROBLEM)
    assert 15_000 < len(bad) == checked.bad_count and list(checked.bad) == bad[:1000]
    assert checked.rows.tolist() == sorted({*range(size)} - {row for row, _, _ in bad})
    np.testing.assert_array_equal(checked.batch.codes, np.array(good).T)
