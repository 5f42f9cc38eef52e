"""CSV files, read column by column into distinct values: a million rows in a second or two.

A row is a line, or several where a quoted cell has line ends in it; empty lines are nothing. Blanks
around a cell don't count, and an empty cell is a missing value. NA, NaN, N/A and null are missing
values as well, and 1.0 is 1, where a variable has no such labels: so pandas writes whole numbers of
which some are missing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem.columns import sources_of
from dowise.problem.distinct import CodedColumn
from dowise.problem.values import MISSING

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["CsvTable", "Track", "WrongLine", "parse_csv"]

Track = Callable[[str, int, int], None]
"""Told (what, done, total) while something goes on."""

_MISSING = ("na", "nan", "n/a", "null")
_INDEX = ("", "Unnamed: 0")  # what pandas calls its index in a file, and on reading it back
_CHUNK = 20_000  # rows that are in memory as texts at a time


class WrongLine(NamedTuple):
    """A row that does not have a value for each column."""

    line: int
    values: int
    columns: int

    @property
    def why(self) -> str:
        """What is wrong with it."""
        return f"has {self.values} values, but there are {self.columns} columns"


class CsvTable(dict[str, CodedColumn]):
    """Columns by name; those that are not read have missing values only."""

    lines: NDArray[np.int64]
    """The line of the file that each row ends in, counted from 1."""
    wrong: list[WrongLine]
    """The rows that are not in the table."""


class _Kinds(dict[str, int]):
    """A number for each distinct text, in the order in which they come."""

    def __missing__(self, text: str) -> int:
        kind = self[text] = len(self)
        return kind


def parse_csv(
    problem: Problem, text: str, keep_going: bool = False, track: Track | None = None
) -> CsvTable:
    """The table in a text; `keep_going` lists rows of a wrong length instead of raising."""
    content = text.encode()  # not StringIO, which takes four bytes for each character
    with io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            header = _header(rows, problem)
            reading = _Reading(header, problem, keep_going)
            while reading.read(rows):
                if track is not None:
                    track("reading", file.buffer.tell(), len(content))
        except csv.Error as error:
            raise DowiseError(f"line {rows.line_num} is no CSV: {error}") from None
    return reading.table(problem)


class _Reading:
    """A file while it is read."""

    def __init__(self, header: list[str], problem: Problem, keep_going: bool) -> None:
        self.header, self.keep_going = header, keep_going
        sources = sources_of(problem, header)
        self.texts = {name: _Kinds() for name in header if name in sources.read}
        self.kinds: dict[str, list[NDArray[np.int32]]] = {name: [] for name in self.texts}
        self.labels = {column: name for name, column in sources.variables.items()}
        self.lines: list[NDArray[np.int64]] = []
        self.wrong: list[WrongLine] = []

    def read(self, rows: Any) -> bool:
        """Read some rows more; False at the end."""
        cells: list[str] = []
        lines: list[int] = []
        width, before = len(self.header), rows.line_num
        for row in islice(rows, _CHUNK):
            if len(row) == width:
                cells.extend(row)  # rows that are kept would keep the garbage collector busy
                lines.append(rows.line_num)
            elif row:  # an empty line is nothing
                self.wrong.append(WrongLine(rows.line_num, len(row), width))
                if not self.keep_going:
                    raise DowiseError(f"line {rows.line_num} {self.wrong[-1].why}")
        self.lines.append(np.array(lines, dtype=np.int64))
        for i, name in enumerate(self.header):
            if name in self.texts:
                kinds = map(self.texts[name].__getitem__, cells[i::width])
                self.kinds[name].append(np.fromiter(kinds, np.int32, len(lines)))
        return bool(rows.line_num > before)

    def table(self, problem: Problem) -> CsvTable:
        """All that was read."""
        table = CsvTable()
        table.lines, table.wrong = np.concatenate(self.lines), self.wrong
        unread = CodedColumn(np.broadcast_to(np.int32(MISSING), len(table.lines)), ())
        for name in self.header:
            table[name] = unread
            if name in self.texts:
                domain = (
                    frozenset(problem.domains[self.labels[name]]) if name in self.labels else None
                )
                values = [_value(text, domain) for text in self.texts[name]]
                # −1 wherever a text stands for nothing
                known = [MISSING if value is None else i for i, value in enumerate(values)]
                kinds = np.array(known, dtype=np.int32)[np.concatenate(self.kinds[name])]
                table[name] = CodedColumn(kinds, values)
        return table


def _header(rows: Iterator[list[str]], problem: Problem) -> list[str]:
    top = next((row for row in rows if any(map(str.strip, row))), None)
    if top is None:
        raise DowiseError("there are no names of columns")
    header = [name.strip() for name in top]
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
    return header


def _value(text: str, domain: frozenset[str] | None) -> str | None:
    """What a cell means: None where it is missing; `domain` is None where it is an arm."""
    text = text.strip()
    if not text or domain is None or text in domain:
        return text or None
    if text.lower() in _MISSING:
        return None
    if re.fullmatch(r"-?\d+\.0*", text):
        return str(int(text.partition(".")[0]))
    return text
