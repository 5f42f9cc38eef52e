"""Files of past records: CSV or Parquet, one row a record, one column a variable.

An empty cell is a missing value. A column `arm` holds what was set, as text; without it all records
are of do(). What the values mean is checked where they are learned (`Problem.records`). In a CSV
file NA, NaN, N/A and null are missing values as well, and 1.0 is 1, where a variable has no such
labels: so pandas writes whole numbers of which some are missing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, import_extra
from dowise.files import existing_file, read_file

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["naming_the_file", "read_table"]

_MISSING = ("na", "nan", "n/a", "null")
_INDEX = ("", "Unnamed: 0")  # what pandas calls its index in a file, and on reading it back


class CsvTable(dict[str, list[str | None]]):
    """Columns by name."""

    lines: list[int]
    """The line of the file that each record ends in, counted from 1."""


def read_table(path: str | Path, problem: Problem) -> Any:
    """A table that `Belief.update_many` takes, from a .parquet file, or a CSV file of any name."""
    path = existing_file(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        parquet = import_extra("pyarrow.parquet", "simulate", f"reading {path.name}")
        try:
            return parquet.read_table(path)
        except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
            reason = str(error).partition("\n")[0]
            raise DowiseError(f"{path}: can't be read as Parquet ({reason})") from None
    return read_file(path, partial(_parse_csv, problem))


@contextmanager
def naming_the_file(path: str | Path, table: Any) -> Iterator[None]:
    """Errors in what a table says name its file, and the line of a CSV file."""

    def with_line(found: re.Match[str]) -> str:
        row = int(found[1])
        return f"row {row} (line {table.lines[row]} of the file)"

    try:
        yield
    except DowiseError as error:
        message = str(error)
        if isinstance(table, CsvTable):
            message = re.sub(r"^row (\d+) of the table", with_line, message)
        raise DowiseError(f"{path}: {message}") from None


def _parse_csv(problem: Problem, text: str) -> CsvTable:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    table = CsvTable()
    table.lines = []
    try:
        top = next((row for row in rows if any(map(str.strip, row))), None)
        if top is None:
            raise DowiseError("there are no names of columns")
        header = [name.strip() for name in top]
        _check_header(header, problem)
        table.update({name: [] for name in header})
        for row in rows:
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                raise DowiseError(
                    f"line {rows.line_num} has {len(row)} values, but there are {len(header)} "
                    "columns"
                )
            for column, value in zip(table.values(), row, strict=True):
                column.append(value.strip() or None)
            table.lines.append(rows.line_num)
    except csv.Error as error:
        raise DowiseError(f"line {rows.line_num} is no CSV: {error}") from None
    for name, column in table.items():
        if name in problem.domains:
            table[name] = _plain(column, problem.domains[name])
    return table


def _check_header(header: list[str], problem: Problem) -> None:
    for name in header:
        if header.count(name) > 1:
            raise DowiseError(f"two columns are called {name!r}: keep one")
        if name in _INDEX and name not in problem.graph:
            raise DowiseError(
                f"there is a column {name!r}, such as the index that pandas writes: drop it, or "
                "write the file with to_csv(path, index=False)"
            )
    (first, *more) = header
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if not more and mark in first and first not in problem.graph:
            raise DowiseError(f"the columns are separated by {word}: write them with commas")


def _plain(column: list[str | None], domain: tuple[str, ...]) -> list[str | None]:
    """What cells mean whose texts are no labels."""
    meaning: dict[str | None, str | None] = {None: None}
    for text in {*column} - {None}:
        assert text is not None
        meaning[text] = text
        if text not in domain and text.lower() in _MISSING:
            meaning[text] = None
        elif text not in domain and re.fullmatch(r"-?\d+\.0*", text):
            meaning[text] = str(int(text.partition(".")[0]))
    return [meaning[text] for text in column]
