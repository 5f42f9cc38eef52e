"""Tables of past records: pandas, pyarrow, mappings, CSV and Parquet, read and checked in one way.

A table has one row per record and one column per variable. A column `arm` has the arms as text;
without it all records are of do(). Every source becomes a `RecordTable`, whose columns are coded by
their distinct values, so that each value is interpreted once, however often it occurs. A problem
with the table as a whole, such as an unknown column, is an error. Bad rows are found for all rows
together and listed with their reasons; only the first `MAX_EXPLAINED` of them get a reason, and all
are counted.

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
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import pluralize
from dowise._core.files import read_file, require_file
from dowise._core.types import BoolArray, Int32Array, IntArray, ShowProgress
from dowise.errors import DowiseError, import_extra, join_names, suggestion
from dowise.problem.domains import MISSING, refuse_hidden, text_of
from dowise.problem.intervention import Intervention
from dowise.problem.record import RecordBatch

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

EXPORT_COLUMNS = ("id", "asked_at", "status", "arm", "probability", "probabilities", "allowed")
MAX_EXPLAINED = 1000
"""Number of bad rows that get a reason; others are only counted."""

_EXPORT_KEYS = {"asked_at", "probabilities"}  # a table with both is an export
_MISSING_TEXTS = ("na", "nan", "n/a", "null")
_INDEX_NAMES = ("", "Unnamed: 0")  # names of the index of pandas in a file, and when read again
_CHUNK = 20_000  # rows that are in memory as text at a time
_UNREADABLE = -2  # like MISSING: the code of a value that is not a label


class Sources(NamedTuple):
    """Columns of a table by what they hold."""

    variables: dict[str, str]
    """Column of each variable that has one."""
    arm: str | None
    """Column of the arms, if any."""
    export: tuple[str, ...] = ()
    """For an export of an experiment: columns that tell which rows count."""

    @property
    def columns(self) -> set[str | None]:
        """Columns that are read; others are skipped."""
        return {*self.variables.values(), self.arm, *self.export}


def export_name(variable: str) -> str:
    """Return the name of a variable's column in an export."""
    return f"{variable}_" if variable.rstrip("_") in EXPORT_COLUMNS else variable


def sources_of(problem: Problem, columns: Iterable[str]) -> Sources:
    """Map columns to variables; an unknown column or a repeated name is an error.

    In an export a variable may also have its own name, if there is no column with "_".
    """
    names = list(columns)
    for name, count in Counter(names).items():
        if count > 1:
            raise DowiseError(f"two columns are named {name!r}: keep one", code="duplicate-name")
        if name in _INDEX_NAMES and name not in problem.graph:
            raise DowiseError(
                f"the table has a column {name!r}, such as the index that pandas writes: drop it, "
                "or write the file with to_csv(path, index=False)",
                code="unknown-variable",
            )
    is_export = {*names} >= _EXPORT_KEYS
    variables: dict[str, str] = {}
    if is_export:
        exported = {name: export_name(name) for name in problem.graph.variables}
        variables = {name: column for name, column in exported.items() if column in names}
    own_columns = EXPORT_COLUMNS if is_export else ("arm",)
    unknown = list[str]()
    for name in names:
        if name in variables.values():
            continue
        if name in problem.graph and name not in variables:
            variables[name] = name
        elif name not in own_columns:
            unknown.append(name)
    if unknown:
        _refuse_columns(problem, unknown)
    arm = "arm" if "arm" in names and "arm" not in variables.values() else None
    export = tuple(name for name in ("asked_at", "probability", "probabilities") if name in names)
    return Sources(variables, arm, export if is_export else ())


def _refuse_columns(problem: Problem, unknown: list[str]) -> None:
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


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """Column whose value in row i is `values[codes[i]]`, or missing if codes[i] is −1."""

    codes: NDArray[np.integer[Any]]
    values: Sequence[object]

    @classmethod
    def from_values(cls, name: str, column: Any) -> CodedColumn:
        """Code a column of any type by its distinct values."""
        try:
            if hasattr(column, "dictionary_encode"):  # pyarrow
                encoded = column.dictionary_encode()
                if hasattr(encoded, "combine_chunks"):
                    encoded = encoded.combine_chunks()
                codes = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
                return cls(codes, encoded.dictionary.to_pylist())
            if hasattr(column, "factorize"):  # pandas
                codes, values = column.factorize()
                return cls(codes, list(values))
            distinct: dict[object, int] = {}
            codes = np.array([distinct.setdefault(x, len(distinct)) for x in column], np.int64)
            missing = [code for code, value in enumerate(distinct) if _is_missing(value)]
        except (TypeError, NotImplementedError, AttributeError):  # lists, structs and the like
            raise DowiseError(
                f"column {name!r} has values that can't be labels: use numbers, texts or booleans",
                code="invalid-type",
            ) from None
        return cls(np.where(np.isin(codes, missing), MISSING, codes), list(distinct))

    def __getitem__(self, row: int) -> object:
        code = self.codes[row]
        return None if code == MISSING else self.values[code]

    def translate(self, table: NDArray[Any]) -> NDArray[Any]:
        """Return table[code] of every row; the last entry of `table` is for missing values."""
        return np.take(table, self.codes, mode="wrap")  # −1 is the last entry


def _is_missing(value: object) -> bool:
    try:
        return text_of(value) is None
    except DowiseError:  # not a value at all, which the check of its row reports
        return False


@dataclass(frozen=True, eq=False)
class RecordTable:
    """Coded columns of a table of records, and what they hold."""

    size: int
    """Number of rows."""
    sources: Sources
    columns: Mapping[str, CodedColumn]
    """Columns by their names, without those that are skipped."""
    lines: Sequence[int] | None = None
    """Line of the text file at which each row ends, counted from 1."""
    wrong_lengths: Mapping[int, str] = field(default_factory=dict)
    """Rows of the file that do not have one value per column, with the reason for `BadRow`."""

    @classmethod
    def from_frame(cls, problem: Problem, frame: Any) -> RecordTable:
        """Read a pandas or pyarrow table, or a mapping from column to values."""
        names = getattr(frame, "column_names", getattr(frame, "columns", None))
        if names is None:
            if not isinstance(frame, Mapping):
                raise DowiseError(
                    f"a {type(frame).__name__} is not a table: pass a pandas DataFrame, a pyarrow "
                    "Table or a mapping from column to values",
                    code="invalid-type",
                )
            names = frame
        names = list(names)
        sources = sources_of(problem, map(str, names))
        columns = {str(name): frame[name] for name in names}
        rows: dict[int, str] = {}  # a column of each length
        for name, column in columns.items():
            if isinstance(column, str) or not hasattr(column, "__len__"):
                raise DowiseError(
                    f"column {name!r} must be a list of values, not {column!r}", code="invalid-type"
                )
            rows.setdefault(len(column), name)
        if len(rows) > 1:
            (size, name), (other_size, other) = islice(rows.items(), 2)
            raise DowiseError(
                f"column {name} has {pluralize(size, 'row')}, {other} has {other_size:,}: "
                "make them equally long",
                code="inconsistent-table",
            )
        coded = {
            name: CodedColumn.from_values(name, column)
            for name, column in columns.items()
            if name in sources.columns
        }
        return cls(next(iter(rows), 0), sources, coded)


# -- checking the rows of a table ---------------------------------------------------------------


class BadRow(NamedTuple):
    """Row that is not a record: its index from 0, the reason, and its line in a text file.

    As text, the first row is row 1.
    """

    row: int
    why: str
    line: int | None = None

    def message(self, place: str) -> str:
        """Return the reason in a sentence that starts with a place, such as "row 3 of 8"."""
        return f"{place} {self.why}" if self.why.startswith("has ") else f"{place}: {self.why}"

    def __str__(self) -> str:
        return self.message(f"row {self.row + 1}" if self.line is None else f"line {self.line}")


@dataclass(frozen=True, eq=False)
class CheckedRecords:
    """Content of a table: the good rows as records, and the bad ones with their reasons."""

    batch: RecordBatch
    """Good rows, in their order."""
    rows: IntArray
    """Index of each good row in the table, from 0."""
    bad: tuple[BadRow, ...] = ()
    """First bad rows, at most MAX_EXPLAINED."""
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
    checked = check_rows(problem, frame, arm, max_explained=1)
    for bad in checked.bad:
        place = f"row {bad.row + 1} of {checked.size:,}" if bad.line is None else f"line {bad.line}"
        raise DowiseError(bad.message(place), code="bad-rows")
    return checked.batch


def check_rows(
    problem: Problem, frame: Any, arm: Intervention | None, max_explained: int = MAX_EXPLAINED
) -> CheckedRecords:
    """Check the rows of a table.

    Parameters
    ----------
    problem : Problem
        Problem whose variables the columns are.
    frame : RecordTable, pandas.DataFrame, pyarrow.Table or mapping of str to list
        The table.
    arm : Intervention or None
        Arm of all rows if there is no column `arm`; None for do().
    max_explained : int
        Number of bad rows that get a reason.

    Raises
    ------
    DowiseError
        If something is wrong with the table as a whole.
    """
    table = frame if isinstance(frame, RecordTable) else RecordTable.from_frame(problem, frame)
    arms = CodedColumn(np.zeros(table.size, dtype=np.int64), [arm or Intervention()])
    if table.sources.arm is not None:
        if arm is not None:
            raise DowiseError(
                "the table has a column 'arm': leave out the argument arm", code="duplicate-name"
            )
        arms = table.columns[table.sources.arm]
    export = {name: table.columns[name] for name in table.sources.export}
    batch, is_bad = _read_cells(problem, table, arms)
    is_skipped, deviates = _read_export(export, batch)
    is_bad = (is_bad | deviates) & ~is_skipped
    wrong = list(table.wrong_lengths)
    is_bad[wrong], is_skipped[wrong] = True, False
    bad = np.flatnonzero(is_bad)
    rows = np.flatnonzero(~(is_bad | is_skipped))
    explained = []
    for row in bad[:max_explained].tolist():
        if row in table.wrong_lengths:
            reason = table.wrong_lengths[row]
        elif deviates[row]:
            reason = (
                "another arm was played than was decided on: remove the row, because it may bias "
                "what is learned"
            )
        else:
            reason = _explain_row(problem, table, arms, row)
        explained.append(BadRow(row, reason, None if table.lines is None else table.lines[row]))
    asked_at = export["asked_at"].values if export else ()
    return CheckedRecords(
        batch if len(rows) == table.size else batch.take(rows),
        rows,
        tuple(explained),
        len(bad),
        frozenset(str(time) for time in asked_at if time is not None),
    )


def _read_cells(
    problem: Problem, table: RecordTable, arms: CodedColumn
) -> tuple[RecordBatch, BoolArray]:
    """Return all rows as records, and a mask of those with an unreadable or contradictory value."""
    shape = len(problem.graph), table.size
    codes = np.full(shape, MISSING, dtype=np.int64)
    was_set, is_bad = np.zeros(shape, dtype=bool), np.zeros(table.size, dtype=bool)
    for name, source in table.sources.variables.items():
        v, column = problem.positions[name], table.columns[source]
        labels = np.array([*(_code(problem, name, value) for value in column.values), MISSING])
        codes[v] = column.translate(labels)
        if _UNREADABLE in labels:
            is_bad |= codes[v] == _UNREADABLE
    played = [_parse_arm(problem, value) for value in arms.values]
    is_unknown = np.array([*(arm is None for arm in played), True])
    if is_unknown[:-1].any() or (arms.codes == MISSING).any():
        is_bad |= arms.translate(is_unknown)
    nothing = np.full(len(problem.graph), MISSING)
    fixed = np.array([nothing if arm is None else problem.fixed(arm) for arm in (*played, None)])
    for v in np.flatnonzero((fixed != MISSING).any(axis=0)).tolist():
        set_codes = arms.translate(fixed[:, v])
        was_set[v] = set_codes != MISSING
        is_missing = codes[v] == MISSING
        is_bad |= was_set[v] & ~is_missing & (codes[v] != set_codes)
        np.copyto(codes[v], set_codes, where=is_missing)
    return RecordBatch(problem, codes, was_set), is_bad


def _code(problem: Problem, name: str, value: object) -> int:
    try:
        text = text_of(value)
    except DowiseError:
        return _UNREADABLE
    code = MISSING if text is None else problem.find_code(name, text)
    return _UNREADABLE if code is None else code


def _parse_arm(problem: Problem, value: object) -> Intervention | None:
    try:
        return None if _is_missing(value) else problem.intervention(str(value))
    except DowiseError:
        return None


def _read_export(
    export: Mapping[str, CodedColumn], batch: RecordBatch
) -> tuple[BoolArray, BoolArray]:
    """Return masks of the rows of an export without an outcome, and of deviations.

    If another arm was played than was decided on, this may be because of the unit, and an export
    does not tell. Such a decision has no probability.
    """
    is_skipped, deviates = np.zeros(len(batch), dtype=bool), np.zeros(len(batch), dtype=bool)
    if export:
        if "probability" in export:
            is_decided = export["probabilities"].codes != MISSING
            deviates = is_decided & (export["probability"].codes == MISSING)
        is_outcome = (batch.codes != MISSING) & ~batch.was_set
        is_outcome[batch.problem.context_positions] = False
        is_skipped = ~is_outcome.any(axis=0)
    return is_skipped, deviates


def _explain_row(problem: Problem, table: RecordTable, arms: CodedColumn, row: int) -> str:
    """Return the first error of a bad row: of the arm, or of a value in the order of names."""
    if _is_missing(arms[row]):
        return "has no arm: write do() if nothing was set"
    sources = sorted(table.sources.variables.items())
    values = {name: table.columns[source][row] for name, source in sources}
    try:
        problem.record(str(arms[row]), values)
    except DowiseError as error:
        return str(error)
    raise AssertionError("a bad row has a reason")


# -- files --------------------------------------------------------------------------------------


def read_table(
    path: str | Path, problem: Problem, track: ShowProgress | None = None
) -> RecordTable:
    """Read a table that `Belief.update_many` accepts from a .parquet file or a CSV file.

    Parameters
    ----------
    path : str or Path
        File. Any name that does not end in .parquet or .pq is read as CSV.
    problem : Problem
        Problem whose variables the columns are.
    track : callable, optional
        Called with (label, done, total), in bytes, while a CSV file is read.

    Raises
    ------
    DowiseError
        If the file can't be read as a table, or a row of a CSV file has a wrong number of values.
    """
    table = _read_file(path, problem, track)
    for row, reason in table.wrong_lengths.items():
        assert table.lines is not None
        raise DowiseError(f"{path}: line {table.lines[row]} {reason}", code="bad-rows")
    return table


def read_records(
    path: str | Path, problem: Problem, track: ShowProgress | None = None
) -> CheckedRecords:
    """Read the good rows of a CSV or Parquet file, and the reasons why others are bad.

    Parameters
    ----------
    path, problem, track
        See `read_table`.

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
    return problem.checked_records(_read_file(path, problem, track))


def _read_file(path: str | Path, problem: Problem, track: ShowProgress | None) -> RecordTable:
    path = require_file(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        frame = _read_parquet(path)
        with prefix_errors(path):
            return RecordTable.from_frame(problem, frame)
    return read_file(path, partial(parse_csv, problem, track=track))


@contextmanager
def prefix_errors(path: str | Path) -> Iterator[None]:
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


def parse_csv(problem: Problem, text: str, track: ShowProgress | None = None) -> RecordTable:
    """Parse a CSV file, column by column into distinct values: a million rows in a second or two.

    A row is a line, or several lines if a quoted cell has line breaks; empty lines are skipped.
    Blanks around a cell are ignored, and an empty cell is a missing value. NA, NaN, N/A and null
    are missing values as well, and 1.0 is 1, unless the variable has such labels: this is how
    pandas writes whole numbers with missing values. The cells of a row of a wrong length are
    missing, and `wrong_lengths` has its number of values.
    """
    content = text.encode()  # not StringIO, which takes four bytes per character
    with io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            header = _read_header(rows, problem)
            sources = sources_of(problem, header)
            texts = {name: _TextCodes() for name in header if name in sources.columns}
            codes: dict[str, list[Int32Array]] = {name: [] for name in texts}
            wrong_lengths: dict[int, str] = {}
            width, lines, line = len(header), array("q"), -1
            while rows.line_num > line:
                first, line = len(lines), rows.line_num
                cells: list[str] = []
                for row in islice(rows, _CHUNK):
                    if len(row) == width:
                        cells.extend(row)  # keeping rows would keep the garbage collector busy
                    elif row:
                        cells.extend([""] * width)
                        wrong_lengths[len(lines)] = (
                            f"has {len(row)} values, but there are {width} columns"
                        )
                    else:
                        continue
                    lines.append(rows.line_num)
                for i, name in enumerate(header):
                    if name in texts:
                        chunk = map(texts[name].__getitem__, cells[i::width])
                        codes[name].append(np.fromiter(chunk, np.int32, len(lines) - first))
                if track is not None:
                    track("reading", file.buffer.tell(), len(content))
        except csv.Error as error:
            raise DowiseError(
                f"line {rows.line_num} is not valid CSV: {error}", code="syntax-error"
            ) from None
    variables = {column: name for name, column in sources.variables.items()}
    columns = {}
    for name, codes_of_text in texts.items():
        domain = frozenset(problem.domains[variables[name]]) if name in variables else None
        values = [_cell_value(text, domain) for text in codes_of_text]
        translation = np.array(
            [MISSING if x is None else i for i, x in enumerate(values)], np.int32
        )
        columns[name] = CodedColumn(translation[np.concatenate(codes[name])], values)
    return RecordTable(len(lines), sources, columns, lines, wrong_lengths)


def _read_header(rows: Iterator[list[str]], problem: Problem) -> list[str]:
    header = [name.strip() for name in next((row for row in rows if any(map(str.strip, row))), [])]
    if not header:
        raise DowiseError(
            "the table has no column names: write the variables' names in the first row",
            code="missing-value",
        )
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and mark in header[0] and header[0] not in problem.graph:
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
