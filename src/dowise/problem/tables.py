"""Files of past records: CSV or Parquet, one row a record, one column a variable.

A column `arm` holds what was set, as text; without it all records are of do(). What the values mean
is checked where they are learned (`Problem.records`), or row by row (`read_records`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise.errors import DowiseError, import_extra
from dowise.files import existing_file, read_file
from dowise.problem.checked import MOST_BAD, BadRow, CheckedRecords
from dowise.problem.csv_table import CsvTable, Track, parse_csv

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["naming_the_file", "read_records", "read_table"]


def read_table(path: str | Path, problem: Problem) -> Any:
    """A table that `Belief.update_many` takes, from a .parquet file, or a CSV file of any name."""
    path = existing_file(path)
    if _is_parquet(path):
        return _read_parquet(path)
    return read_file(path, partial(parse_csv, problem))


def read_records(path: str | Path, problem: Problem, track: Track | None = None) -> CheckedRecords:
    """The good rows of a CSV or Parquet file, and what is wrong with the bad ones.

    Rows are counted from 0 over good and bad ones; those of a CSV file have their lines, counted
    from 1. What can't be read as a table at all is an error. `track` is told (what, done, total) as
    a CSV file is read, in bytes.
    """
    path = existing_file(path)
    if _is_parquet(path):
        table = _read_parquet(path)
        with naming_the_file(path, table):
            return problem.checked_records(table)
    csv = read_file(path, partial(parse_csv, problem, keep_going=True, track=track))
    with naming_the_file(path, csv):
        return _with_lines(problem.checked_records(csv), csv)


def _with_lines(checked: CheckedRecords, table: CsvTable) -> CheckedRecords:
    """The rows of the file, those of a wrong length among them."""
    wrong = np.array([one.line for one in table.wrong], dtype=np.int64)
    # A row comes after all wrong ones of earlier lines, a wrong one after all rows of earlier ones.
    rows = np.arange(len(table.lines)) + np.searchsorted(wrong, table.lines)
    bad = [BadRow(int(rows[i]), why, int(table.lines[i])) for i, why, _ in checked.bad]
    before = np.searchsorted(table.lines, wrong).tolist()
    bad += [
        BadRow(before[i] + i, one.why, one.line) for i, one in enumerate(table.wrong[:MOST_BAD])
    ]
    return CheckedRecords(
        checked.batch,
        rows[checked.rows],
        tuple(sorted(bad)[:MOST_BAD]),
        checked.bad_count + len(wrong),
        checked.asked_at,
    )


@contextmanager
def naming_the_file(path: str | Path, table: Any) -> Iterator[None]:
    """Errors in what a table says name its file, and the line of a CSV file."""

    def with_line(found: re.Match[str]) -> str:
        return f"line {table.lines[int(found[1]) - 1]}"

    try:
        yield
    except DowiseError as error:
        message = str(error)
        if isinstance(table, CsvTable):
            message = re.sub(r"^row (\d+) of [\d,]+", with_line, message)
        raise DowiseError(f"{path}: {message}") from None


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _read_parquet(path: Path) -> Any:
    parquet = import_extra("pyarrow.parquet", "simulate", f"reading {path.name}")
    try:
        return parquet.read_table(path)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise DowiseError(f"{path}: can't be read ({reason})") from None
    except ValueError:  # pyarrow's word for what is wrong inside is of this kind, and long
        raise DowiseError(
            f"{path}: this is no Parquet file, or a damaged one: write it again, or as CSV"
        ) from None
