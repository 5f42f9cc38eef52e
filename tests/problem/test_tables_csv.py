"""Files of records: cells, lines, and errors of CSV and Parquet files."""

import csv
import io
from unittest.mock import patch

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import examples

from dowise import Problem
from dowise.problem import tables
from dowise.problem.tables import parse_csv, read_records, read_table

PROBLEM = Problem(
    "X -> Y; Z -> X; Z -> Y",
    "Y",
    non_manipulable="Z",
    domains={"Z": ["NA", "1.0", "a\nb", "c"]},
)


def parse_cell_by_cell(problem, text):
    """Slow twin of `parse_csv`: header, cells of each row, lines, and rows of a wrong length."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    header, cells, lines, wrong = [], [], [], {}
    for row in rows:
        if not header:
            header = [name.strip() for name in row] if any(cell.strip() for cell in row) else []
        elif row:
            if len(row) != len(header):
                wrong[len(lines)] = f"has {len(row)} values, but there are {len(header)} columns"
                row = [""] * len(header)
            lines.append(rows.line_num)
            pairs = zip(header, map(str.strip, row), strict=True)
            cells.append([parse_cell(problem, name, cell) for name, cell in pairs])
    return header, cells, lines, wrong


def parse_cell(problem, name, cell):
    if name in problem.domains and cell not in problem.domains[name]:
        if cell.lower() in ("na", "nan", "n/a", "null"):
            return None
        whole, point, digits = cell.partition(".")
        if point and whole.lstrip("-").isdecimal() and not digits.strip("0") and whole[1:2] != "-":
            return str(int(whole))
    return cell or None


PIECES = [
    "0",
    "1",
    "NA",
    "1.0",
    "0.",
    "-1.0",
    "x",
    '"',
    '""',
    ",",
    ",",
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "\x0b",
    "\u2028",
    "\x85",
    "\ufeff",
    '"a\nb"',
    '" 1"',
    '"1,0"',
    "do()",
    "é",
]


@given(
    st.sampled_from(["X,Y", "X", "arm,Z,Y", "\n \nY , Z", '"X","Y"']),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.sampled_from(PIECES), max_size=25).map("".join),
    st.integers(1, 4),
)
@examples(400)
@example("X,Y", "\n", '"0\n1",1\r"\r\n",0\n', 1)
@example("X,Y", "\n", '0,1\n"0,1', 1)
def test_cells_agree_with_parsing_one_by_one(header, end, body, chunk):
    text = header + end + body
    try:
        names, cells, lines, wrong = parse_cell_by_cell(PROBLEM, text)
    except csv.Error:
        with raises_code("syntax-error", "is not valid CSV"):
            parse_csv(PROBLEM, text)
        return
    with patch.object(tables, "_CHUNK", chunk):
        table = parse_csv(PROBLEM, text)
    assert list(table.columns) == names and table.size == len(lines)
    assert list(table.lines) == lines and table.wrong_lengths == wrong
    columns = table.columns.values()
    assert [[column[i] for column in columns] for i in range(len(lines))] == cells


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
    with raises_code("bad-rows", "records.csv: line 4 has 2 values"):
        read_table(path, PROBLEM)


@pytest.mark.parametrize(
    ("content", "code", "mentioned"),
    [
        ('X,Y\n0,1\n"0"1,1\n', "syntax-error", "records.csv: line 3"),
        (" , \n", "missing-value", "column names"),
        (",X\n0,1\n", "unknown-variable", "index=False"),
        (b"X,Y\n0,\xff\n", "invalid-encoding", "records.csv: byte 7"),
    ],
)
def test_invalid_files_are_refused(tmp_path, content, code, mentioned):
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "records.csv").write_bytes(content)
    with raises_code(code, mentioned):
        read_records(tmp_path / "records.csv", PROBLEM)


def test_parquet_has_rows_without_lines(tmp_path):
    frame = pd.DataFrame({"X": [0, 1, 5], "Y": [1, None, 0]})
    frame.to_parquet(tmp_path / "records.parquet")
    checked = read_records(tmp_path / "records.parquet", PROBLEM)
    assert [str(row) for row in checked.bad] == ["row 3: X has no value '5': its values are 0, 1"]
    assert checked.batch.codes.tolist() == [[0, 1], [1, -1], [-1, -1]]
    frame.assign(W=1).to_parquet(tmp_path / "other.parquet")
    for read in (read_table, read_records):
        with raises_code("unknown-variable", "other.parquet: the table has a column 'W'"):
            read(tmp_path / "other.parquet", PROBLEM)


def test_an_export_is_read_without_decisions_that_have_no_outcome(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text(
        "id,asked_at,status,arm,probability,probabilities,allowed,X,Z,Y\n"
        '1,2026-01-01T00:00:00Z,done,do(X=1),0.5,"0.5 0.5",,1,c,1\n'
        '2,2026-01-02T00:00:00Z,pending,do(),0.5,"0.5 0.5",,,,\n'
        '3,2026-01-03T00:00:00Z,done,do(X=1),,"0.5 0.5",,1,c,1\n'
    )
    checked = read_records(path, PROBLEM)
    assert checked.batch.codes.tolist() == [[1], [1], [3]]
    assert checked.batch.was_set.tolist() == [[True], [False], [False]]
    assert checked.rows.tolist() == [0]
    assert [row.row for row in checked.bad] == [2] and "another arm" in checked.bad[0].why
    assert checked.asked_at == {f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)}
    assert "status" not in read_table(path, PROBLEM).columns  # columns not read take no memory


def test_reading_reports_its_progress(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("X,Y\n" + "0,1\n" * 50_000)
    reports = []
    read_records(path, PROBLEM, track=lambda *report: reports.append(report))
    labels, positions, totals = zip(*reports, strict=True)
    assert len(reports) >= 2 and {*labels} == {"reading"} and {*totals} == {path.stat().st_size}
    assert list(positions) == sorted(positions) and positions[-1] == path.stat().st_size
