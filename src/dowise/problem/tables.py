"""Tables of past records: pandas, pyarrow, mappings, CSV and Parquet, read and checked in one way.

A table has one row per record and one column per variable. A column `arm` has the arms as text;
without it all records are of do(). Every source becomes a `Table`: columns coded by their distinct
values, so that each value is interpreted once, however often it occurs. A problem with the table as
a whole, such as an unknown column, is an error. Problems with rows are found for all rows together:
first the arm, then the values in the order of names. Only the first `MOST_BAD` bad rows are
explained; all of them are counted.

An export of an experiment has one row per decision and starts with the columns `EXPORT_COLUMNS`. A
variable with such a name has "_" appended there, and so on for variables with that name, so that no
two columns have the same name. When an export is read, its own columns are skipped except the arm.

>>> [export_name(name) for name in ("Dose", "status", "status_")]
['Dose', 'status_', 'status__']
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise._core.files import read_file, require_file
from dowise._core.types import Int32Array, IntArray
from dowise.errors import DowiseError, import_extra, join_names, suggestion
from dowise.problem.domains import MISSING, label_of, refuse_hidden, text_of
from dowise.problem.intervention import Intervention
from dowise.problem.record import RecordBatch, refuse_contradiction

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

Track = Callable[[str, int, int], None]
"""Progress callback: (what, done, total)."""

EXPORT_COLUMNS = ("id", "asked_at", "status", "arm", "probability", "probabilities", "allowed")
MOST_BAD = 1000
"""Number of bad rows that are explained; others are only counted."""

_EXPORT_KEYS = {"asked_at", "probabilities"}  # a table with both is an export
_MISSING_TEXTS = ("na", "nan", "n/a", "null")
_INDEX_NAMES = ("", "Unnamed: 0")  # names of the index of pandas in a file, and when read again
_CHUNK = 20_000  # rows that are in memory as text at a time

_UNREADABLE = -2  # like MISSING: the code of a value that is not a label
# First problem of a row, other than the index of a variable.
_ARM, _DEVIATION, _NOTHING, _GOOD = -1, -2, -3, np.iinfo(np.int32).max


class Sources(NamedTuple):
    """Columns of a table by what they hold."""

    variables: dict[str, str]
    """Column of each variable that has one."""
    arm: str | None
    """Column of the arms, if any."""
    is_export: bool = False
    """True if the table is the export of an experiment."""

    @property
    def read(self) -> set[str | None]:
        """Columns that are read; for an export also those that tell which rows count."""
        export = {"asked_at", "probability", "probabilities"} if self.is_export else set()
        return {*self.variables.values(), self.arm, *export}


def export_name(variable: str) -> str:
    """Return the name of a variable's column in an export."""
    return f"{variable}_" if variable.rstrip("_") in EXPORT_COLUMNS else variable


def sources_of(problem: Problem, names: Iterable[str]) -> Sources:
    """Map columns to variables; an unknown column is an error.

    In an export a variable may also have its own name, if there is no column with "_".
    """
    names = list(names)
    is_export = {*names} >= _EXPORT_KEYS
    variables: dict[str, str] = {}
    if is_export:
        exported = {name: export_name(name) for name in problem.graph.variables}
        variables = {name: column for name, column in exported.items() if column in {*names}}
    taken = set(variables.values())
    arm, unknown = None, list[str]()
    for name in names:
        if name in taken:
            continue
        if name in problem.graph and name not in variables:
            variables[name] = name
        elif name == "arm":
            arm = name
        elif not (is_export and name in EXPORT_COLUMNS):
            unknown.append(name)
    if unknown:
        for name in unknown:
            refuse_hidden(name, problem.hidden, "the table has a column of a hidden variable: ")
        candidates = (*problem.graph.variables, "arm")
        columns = join_names(f"{name!r}{suggestion(name, candidates)}" for name in unknown)
        text = f"columns {columns}, which are not variables of the problem: rename or drop them"
        if len(unknown) == 1:
            text = (
                f"a column {unknown[0]!r}, which is not a variable of the problem"
                f"{suggestion(unknown[0], candidates)}: rename or drop it"
            )
        raise DowiseError(f"the table has {text}", code="unknown-variable")
    return Sources(variables, arm, is_export)


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """Column whose value in row i is `values[codes[i]]`, or missing if codes[i] is −1."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[object]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> object:
        code = self.codes[row]
        return None if code == MISSING else self.values[code]


class WrongLine(NamedTuple):
    """Row of a CSV file whose number of values is not the number of columns."""

    line: int
    values: int
    columns: int

    @property
    def why(self) -> str:
        """Reason why the row is bad."""
        return f"has {self.values} values, but there are {self.columns} columns"


class Table(dict[str, CodedColumn]):
    """Columns by name, coded. Columns that are not read have missing values only."""

    size: int
    lines: IntArray | None = None
    """Line of the file at which each row ends, counted from 1; None without a text file."""
    wrong: Sequence[WrongLine] = ()
    """Rows of the file that are not in the table because their length is wrong."""

    @classmethod
    def from_frame(cls, problem: Problem, frame: Any) -> Table:
        """Read a pandas or pyarrow table, or a mapping from column to values."""
        if hasattr(frame, "column_names"):
            names = list(frame.column_names)
        elif hasattr(frame, "columns"):
            names = list(frame.columns)
        elif isinstance(frame, Mapping):
            names = list(frame)
        else:
            raise DowiseError(
                f"a {type(frame).__name__} is not a table: pass a pandas DataFrame, a pyarrow "
                "Table or a mapping from column to values",
                code="invalid-type",
            )
        for name, times in Counter(map(str, names)).items():
            if times > 1:
                raise DowiseError(
                    f"the table has the column {name!r} {times} times: keep one",
                    code="duplicate-name",
                )
        columns = {str(name): frame[name] for name in names}
        for name, column in columns.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise DowiseError(
                    f"column {name!r} must be a list of values, not {column!r}", code="invalid-type"
                )
        read = sources_of(problem, columns).read
        sizes = {len(column) for column in columns.values()} or {0}
        if len(sizes) > 1:
            raise DowiseError(
                f"the table has columns of different lengths: {sorted(sizes)}",
                code="inconsistent-table",
            )
        table = cls()
        table.size = sizes.pop()
        for name, column in columns.items():
            table[name] = _coded(name, column) if name in read else _unread(table.size)
        return table


def _unread(size: int) -> CodedColumn:
    return CodedColumn(np.broadcast_to(np.int32(MISSING), size), ())


def _coded(name: str, column: Any) -> CodedColumn:
    """Code a column of any type by its distinct values."""
    if isinstance(column, CodedColumn):
        return column
    try:
        if hasattr(column, "dictionary_encode"):  # pyarrow
            encoded = column.dictionary_encode()
            encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
            codes = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
            return CodedColumn(codes, encoded.dictionary.to_pylist())
        if hasattr(column, "factorize"):  # pandas
            codes, values = column.factorize()
            return CodedColumn(codes, list(values))
        distinct: dict[object, int] = {}
        codes = np.array([distinct.setdefault(x, len(distinct)) for x in column], dtype=np.int64)
        missing = [code for code, value in enumerate(distinct) if _is_missing(value)]
    except (TypeError, NotImplementedError, AttributeError):  # lists, structs and the like
        raise DowiseError(
            f"column {name!r} has values that can't be labels", code="invalid-type"
        ) from None
    return CodedColumn(np.where(np.isin(codes, missing), MISSING, codes), list(distinct))


def _is_missing(value: object) -> bool:
    try:
        return text_of(value) is None
    except DowiseError:  # not a value at all, which the check of its row reports
        return False


# -- checking the rows of a table ---------------------------------------------------------------


class BadRow(NamedTuple):
    """Row that is not a record: its index from 0, the reason, and its line in a text file.

    As text, the first row is row 1.
    """

    row: int
    why: str
    line: int | None = None

    def said(self, place: str) -> str:
        """Return the reason in a sentence that starts with a place, such as "row 3 of 8"."""
        return f"{place} {self.why}" if self.why.startswith("has ") else f"{place}: {self.why}"

    def __str__(self) -> str:
        return self.said(f"row {self.row + 1}" if self.line is None else f"line {self.line}")


@dataclass(frozen=True, eq=False)
class CheckedRecords:
    """Content of a table: the good rows as records, and the bad ones with their reasons."""

    batch: RecordBatch
    """Good rows, in their order."""
    rows: IntArray
    """Index of each good row in the table, from 0."""
    bad: tuple[BadRow, ...] = ()
    """First bad rows, at most MOST_BAD."""
    bad_count: int = 0
    """Number of bad rows."""
    asked_at: frozenset[str] = frozenset()
    """Times at which the decisions of these records were asked for, if the table is an export."""

    @property
    def size(self) -> int:
        """Number of rows, good and bad."""
        return len(self.batch) + self.bad_count

    def __repr__(self) -> str:
        return f"<CheckedRecords: {len(self.batch):,} good rows, {self.bad_count:,} bad>"


def parse_frame(problem: Problem, frame: Any, arm: Intervention | None) -> RecordBatch:
    """Return the records of a table. Raises `DowiseError` for the first bad row."""
    checked = check_rows(problem, frame, arm, most=1)
    for bad in checked.bad:
        where = f"row {bad.row + 1} of {checked.size:,}" if bad.line is None else f"line {bad.line}"
        raise DowiseError(bad.said(where), code="bad-rows")
    return checked.batch


def check_rows(
    problem: Problem, frame: Any, arm: Intervention | None, most: int = MOST_BAD
) -> CheckedRecords:
    """Check the rows of a table.

    Parameters
    ----------
    problem : Problem
        Problem whose variables the columns are.
    frame : Table, pandas.DataFrame, pyarrow.Table or mapping of str to list
        The table.
    arm : Intervention or None
        Arm of all rows if there is no column `arm`; None for do().
    most : int
        Number of bad rows to explain.

    Raises
    ------
    DowiseError
        If something is wrong with the table as a whole.
    """
    table = frame if isinstance(frame, Table) else Table.from_frame(problem, frame)
    sources = sources_of(problem, table)
    if sources.arm is not None and arm is not None:
        raise DowiseError(
            "the table has a column 'arm': leave out the argument arm", code="duplicate-name"
        )
    check = _RowCheck(problem, table.size)
    for name, column in sources.variables.items():
        check.read_values(name, table[column])
    if sources.arm is None:
        same = CodedColumn(np.zeros(table.size, dtype=np.int64), [arm or Intervention()])
        check.play(same, [arm or Intervention()])
    else:
        check.read_arms(table[sources.arm])
    asked_at = frozenset[str]()
    if sources.is_export:
        check.exclude_deviations(table)
        asked_at = frozenset(map(str, table["asked_at"].values))
    return check.result(table, most, asked_at)


@dataclass
class _RowCheck:
    """State of a table's check."""

    problem: Problem
    size: int
    unreadable: dict[str, CodedColumn] = field(default_factory=dict)
    """Columns with unreadable values, by variable."""
    arms: CodedColumn | None = None
    played: list[Intervention | None] = field(default_factory=list)
    """Distinct arms, or None for unreadable ones."""

    def __post_init__(self) -> None:
        shape = len(self.problem.graph), self.size
        self.codes = np.full(shape, MISSING, dtype=np.int64)
        self.was_set = np.zeros(shape, dtype=bool)
        self.first = np.full(self.size, _GOOD, dtype=np.int32)
        """First problem of each row: _ARM, …, or the index of a variable."""

    def read_values(self, name: str, column: CodedColumn) -> None:
        """Translate a column into the codes of its variable."""
        table = np.array([*(self._code(name, value) for value in column.values), MISSING])
        codes = self.codes[self.problem.positions[name]]
        np.take(table, column.codes, out=codes, mode="wrap")  # −1 is the last entry
        if (table == _UNREADABLE).any():
            self.unreadable[name] = column

    def _code(self, name: str, value: object) -> int:
        try:
            text = text_of(value)
        except DowiseError:
            return _UNREADABLE
        code = MISSING if text is None else self.problem.find_code(name, text)
        return _UNREADABLE if code is None else code

    def read_arms(self, column: CodedColumn) -> None:
        """Parse each distinct arm, and apply them."""
        played: list[Intervention | None] = []
        for value in column.values:
            try:
                played.append(None if _is_missing(value) else self.problem.intervention(str(value)))
            except DowiseError:
                played.append(None)
        self.play(column, played)

    def play(self, column: CodedColumn, played: list[Intervention | None]) -> None:
        """Fill in the values that the arms set, and find observed values that contradict them."""
        self.arms, self.played = column, played
        unread = np.array([*(arm is None for arm in played), True])
        if unread[:-1].any() or (column.codes == MISSING).any():
            self.first[np.take(unread, column.codes, mode="wrap")] = _ARM
        nothing = np.full(len(self.problem.graph), MISSING)
        fixed = np.array([self.problem.fixed(arm) if arm else nothing for arm in (*played, None)])
        for v, name in enumerate(self.problem.graph.variables):
            faulty = np.zeros(0, dtype=bool)
            codes = self.codes[v]
            if name in self.unreadable:
                faulty = codes == _UNREADABLE
            if (fixed[:, v] != MISSING).any():
                set_codes = np.take(fixed[:, v], column.codes, mode="wrap")
                self.was_set[v] = set_codes != MISSING
                unseen = codes == MISSING
                faulty = (self.was_set[v] & ~unseen & (codes != set_codes)) | (codes == _UNREADABLE)
                np.copyto(codes, set_codes, where=unseen)
            if faulty.any():
                self.first[faulty & (self.first == _GOOD)] = v

    def exclude_deviations(self, table: Table) -> None:
        """In an export, skip decisions without outcomes and mark deviations as bad.

        If another arm was played than was decided on, this may be because of the unit, and an
        export does not tell.
        """
        if "probability" in table:
            is_decided = table["probabilities"].codes != MISSING
            self.first[is_decided & (table["probability"].codes == MISSING)] = _DEVIATION
        others = np.ones(len(self.problem.graph), dtype=bool)
        others[self.problem.context_positions] = False
        has_outcome = ((self.codes != MISSING) & ~self.was_set)[others].any(axis=0)
        self.first[~has_outcome] = _NOTHING

    def result(self, table: Table, most: int, asked_at: frozenset[str]) -> CheckedRecords:
        """Return the good rows, and the first bad ones with their reasons."""
        batch = RecordBatch(self.problem, self.codes, self.was_set)
        good = self.first == _GOOD
        rows, bad = np.arange(self.size), np.zeros(0, dtype=np.int64)
        if not good.all():
            rows, bad = np.flatnonzero(good), np.flatnonzero(~good & (self.first != _NOTHING))
            batch = batch.take(rows)
        explained = [BadRow(row, self._why(row)) for row in bad[:most].tolist()]
        if table.lines is not None:
            # Rows are counted over the whole file, rows of a wrong length included.
            wrong = np.array([row.line for row in table.wrong], dtype=np.int64)
            index = np.arange(self.size) + np.searchsorted(wrong, table.lines)
            lines = table.lines
            explained = [BadRow(int(index[i]), why, int(lines[i])) for i, why, _ in explained]
            before = np.searchsorted(lines, wrong[:most]).tolist()
            explained += [
                BadRow(before[i] + i, row.why, row.line) for i, row in enumerate(table.wrong[:most])
            ]
            explained = sorted(explained)[:most]
            rows = index[rows]
        bad_count = len(bad) + len(table.wrong)
        return CheckedRecords(batch, rows, tuple(explained), bad_count, asked_at)

    def _why(self, row: int) -> str:
        """Return the first problem of a bad row."""
        assert self.arms is not None
        arm, v = self.arms[row], int(self.first[row])
        if v == _DEVIATION:
            return "another arm was played than was decided on, perhaps because of the unit"
        try:
            if v == _ARM:
                if _is_missing(arm):
                    return "has no arm: write do() if nothing was set"
                self.problem.intervention(str(arm))
            name = self.problem.graph.variables[v]
            if self.codes[v, row] == _UNREADABLE:
                label_of(name, self.unreadable[name][row], self.problem.domains[name])
            played = self.played[self.arms.codes[row]]
            assert played is not None
            refuse_contradiction(played, name, self.problem.domains[name][self.codes[v, row]])
        except DowiseError as error:
            return str(error)
        raise AssertionError("a bad row has a reason")


# -- files --------------------------------------------------------------------------------------


def read_table(path: str | Path, problem: Problem) -> Any:
    """Read a table that `Belief.update_many` accepts from a .parquet file or a CSV file.

    Parameters
    ----------
    path : str or Path
        File. Any name that does not end in .parquet or .pq is read as CSV.
    problem : Problem
        Problem whose variables the columns are.

    Raises
    ------
    DowiseError
        If the file can't be read, or a row of a CSV file has a wrong number of values.
    """
    path = require_file(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    return read_file(path, partial(parse_csv, problem))


def read_records(path: str | Path, problem: Problem, track: Track | None = None) -> CheckedRecords:
    """Read the good rows of a CSV or Parquet file, and the reasons why others are bad.

    Parameters
    ----------
    path : str or Path
        File of records.
    problem : Problem
        Problem whose variables the columns are.
    track : callable, optional
        Called with (what, done, total), in bytes, while a CSV file is read.

    Returns
    -------
    CheckedRecords
        Rows are counted from 0 over good and bad ones; bad rows of a CSV file have their line,
        counted from 1.

    Raises
    ------
    DowiseError
        If the file can't be read as a table.
    """
    path = require_file(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        table = _read_parquet(path)
    else:
        table = read_file(path, partial(parse_csv, problem, keep_going=True, track=track))
    with naming_the_file(path):
        return problem.checked_records(table)


@contextmanager
def naming_the_file(path: str | Path) -> Iterator[None]:
    """Prefix errors about the content of a table with the name of its file."""
    try:
        yield
    except DowiseError as error:
        raise DowiseError(f"{path}: {error}", code=error.code) from None


def _read_parquet(path: Path) -> Any:
    parquet = import_extra("pyarrow.parquet", "simulate", f"reading {path.name}")
    try:
        return parquet.read_table(path)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise DowiseError(f"{path}: can't be read ({reason})", code="unreadable-file") from None
    except ValueError:  # what pyarrow raises for invalid content, with a long message
        raise DowiseError(
            f"{path}: not a Parquet file, or a damaged one: write it again, or as CSV",
            code="damaged-file",
        ) from None


class _TextCodes(dict[str, int]):
    """Code of each distinct text, in the order of appearance."""

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self)
        return code


def parse_csv(
    problem: Problem, text: str, keep_going: bool = False, track: Track | None = None
) -> Table:
    """Parse a CSV file, column by column into distinct values: a million rows in a second or two.

    A row is a line, or several lines if a quoted cell has line breaks; empty lines are skipped.
    Blanks around a cell are ignored, and an empty cell is a missing value. NA, NaN, N/A and null
    are missing values as well, and 1.0 is 1, unless the variable has such labels: this is how
    pandas writes whole numbers with missing values. With `keep_going`, rows of a wrong length are
    listed in `Table.wrong` instead of raising `DowiseError`.
    """
    content = text.encode()  # not StringIO, which takes four bytes per character
    with io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            parser = _CsvParser(_header(rows, problem), problem, keep_going)
            while parser.read_chunk(rows):
                if track is not None:
                    track("reading", file.buffer.tell(), len(content))
        except csv.Error as error:
            raise DowiseError(
                f"line {rows.line_num} is not valid CSV: {error}", code="syntax-error"
            ) from None
    return parser.table(problem)


class _CsvParser:
    """Columns of a CSV file while it is read."""

    def __init__(self, header: list[str], problem: Problem, keep_going: bool) -> None:
        self.header, self.keep_going = header, keep_going
        sources = sources_of(problem, header)
        self.texts = {name: _TextCodes() for name in header if name in sources.read}
        self.codes: dict[str, list[Int32Array]] = {name: [] for name in self.texts}
        self.variables = {column: name for name, column in sources.variables.items()}
        self.lines: list[IntArray] = []
        self.wrong: list[WrongLine] = []

    def read_chunk(self, rows: Any) -> bool:
        """Read some more rows; return False at the end."""
        cells: list[str] = []
        lines: list[int] = []
        width, before = len(self.header), rows.line_num
        for row in islice(rows, _CHUNK):
            if len(row) == width:
                cells.extend(row)  # keeping the rows would keep the garbage collector busy
                lines.append(rows.line_num)
            elif row:  # empty lines are skipped
                self.wrong.append(WrongLine(rows.line_num, len(row), width))
                if not self.keep_going:
                    raise DowiseError(f"line {rows.line_num} {self.wrong[-1].why}", code="bad-rows")
        self.lines.append(np.array(lines, dtype=np.int64))
        for i, name in enumerate(self.header):
            if name in self.texts:
                codes = map(self.texts[name].__getitem__, cells[i::width])
                self.codes[name].append(np.fromiter(codes, np.int32, len(lines)))
        return bool(rows.line_num > before)

    def table(self, problem: Problem) -> Table:
        """Return everything that was read."""
        table = Table()
        table.lines, table.wrong = np.concatenate(self.lines), self.wrong
        table.size = len(table.lines)
        for name in self.header:
            if name not in self.texts:
                table[name] = _unread(table.size)
                continue
            variable = self.variables.get(name)
            domain = None if variable is None else frozenset(problem.domains[variable])
            values = [_cell_value(text, domain) for text in self.texts[name]]
            codes = [MISSING if value is None else i for i, value in enumerate(values)]
            translation = np.array(codes, dtype=np.int32)
            table[name] = CodedColumn(translation[np.concatenate(self.codes[name])], values)
        return table


def _header(rows: Iterator[list[str]], problem: Problem) -> list[str]:
    top = next((row for row in rows if any(map(str.strip, row))), None)
    if top is None:
        raise DowiseError("the table has no column names", code="missing-value")
    header = [name.strip() for name in top]
    for name in header:
        if header.count(name) > 1:
            raise DowiseError(f"two columns are named {name!r}: keep one", code="duplicate-name")
        if name in _INDEX_NAMES and name not in problem.graph:
            raise DowiseError(
                f"the table has a column {name!r}, such as the index that pandas writes: drop it, "
                "or write the file with to_csv(path, index=False)",
                code="unknown-variable",
            )
    (first, *more) = header
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if not more and mark in first and first not in problem.graph:
            raise DowiseError(
                f"the columns are separated by {word}: separate them by commas",
                code="unsupported-format",
            )
    return header


def _cell_value(text: str, domain: frozenset[str] | None) -> str | None:
    """Return the value of a cell, None if it is missing. `domain` is None for an arm."""
    text = text.strip()
    if not text or domain is None or text in domain:
        return text or None
    if text.lower() in _MISSING_TEXTS:
        return None
    if re.fullmatch(r"-?\d+\.0*", text):
        return str(int(text.partition(".")[0]))
    return text
