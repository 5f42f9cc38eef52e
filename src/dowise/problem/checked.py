"""Tables of past records, checked row by row: what is good, and what is wrong with the rest.

What is wrong with the table as a whole, such as a column that nobody knows, is an error. What is
wrong with a row is found for all rows at once, by distinct values: first its arm, then its values
in the order of names. Only the first bad rows are explained, since nobody reads a million reasons;
all of them are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem.columns import sources_of
from dowise.problem.distinct import CodedColumn, coded, columns_of, is_missing
from dowise.problem.frame import RecordBatch
from dowise.problem.intervention import Intervention
from dowise.problem.record import refuse_contradiction
from dowise.problem.values import MISSING, label_of, text_of

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["MOST_BAD", "BadRow", "CheckedRecords", "check_rows", "parse_frame"]

Integers = NDArray[np.int64]

MOST_BAD = 1000  # bad rows that are explained; more are only counted

_UNREADABLE = -2  # beside MISSING: the code of a value that is no label
# Beside positions, what is wrong first in a row: its arm, a deviation, no value, nothing at all.
_ARM, _INSTEAD, _NOTHING, _GOOD = -1, -2, -3, np.iinfo(np.int32).max


class BadRow(NamedTuple):
    """A row that is no record: which one, from 0, why, and the line of the file if it has lines.

    In words the first row is row 1.
    """

    row: int
    why: str
    line: int | None = None

    def said(self, place: str) -> str:
        """The reason in a sentence that begins with a place, such as "row 3 of 8"."""
        return f"{place} {self.why}" if self.why.startswith("has ") else f"{place}: {self.why}"

    def __str__(self) -> str:
        return self.said(f"row {self.row + 1}" if self.line is None else f"line {self.line}")


@dataclass(frozen=True, eq=False)
class CheckedRecords:
    """What a table holds: the good rows as records, and the bad ones with their reasons."""

    batch: RecordBatch
    """The good rows, in their order."""
    rows: Integers
    """Which row of the table each of them is, from 0."""
    bad: tuple[BadRow, ...] = ()
    """The first bad rows, at most MOST_BAD of them."""
    bad_count: int = 0
    """How many bad rows there are in all."""
    asked_at: frozenset[str] = frozenset()
    """When the decisions of these records were asked for, where the table is an export."""

    @property
    def size(self) -> int:
        """How many rows there are, good and bad."""
        return len(self.batch) + self.bad_count

    def __repr__(self) -> str:
        return f"<CheckedRecords: {len(self.batch):,} good rows, {self.bad_count:,} bad>"


def parse_frame(problem: Problem, frame: Any, arm: Intervention | None) -> RecordBatch:
    """The records of a table, whose first bad row is an error."""
    checked = check_rows(problem, frame, arm, most=1)
    for first in checked.bad:
        raise DowiseError(first.said(f"row {first.row + 1} of {checked.size:,}"))
    return checked.batch


def check_rows(
    problem: Problem, frame: Any, arm: Intervention | None, most: int = MOST_BAD
) -> CheckedRecords:
    """The records of a table; without a column `arm` all are of this one, or of do()."""
    columns = columns_of(frame)
    sources = sources_of(problem, columns)
    if sources.arm is not None and arm is not None:
        raise DowiseError("the table has a column 'arm': leave the argument arm out")
    check = _Check(problem, _checked_size(columns))
    for name, column in sources.variables.items():
        check.read_values(name, coded(name, columns[column]))
    if sources.arm is None:
        only = CodedColumn(np.zeros(check.size, dtype=np.int64), [arm or Intervention()])
        check.play(only, [arm or Intervention()])
    else:
        check.read_arms(coded("arm", columns[sources.arm]))
    if not sources.is_export:
        return check.result(most)
    check.leave_out_deviations({name: coded(name, columns[name]) for name in columns})
    asked = coded("asked_at", columns["asked_at"]).values
    return replace(check.result(most), asked_at=frozenset(map(str, asked)))


@dataclass
class _Check:
    """A table while it is checked."""

    problem: Problem
    size: int
    values: dict[str, CodedColumn] = field(default_factory=dict)
    """The columns in which something can't be read."""
    arms: CodedColumn | None = None
    played: list[Intervention | None] = field(default_factory=list)
    """What the distinct arms are, or None where they can't be read."""

    def __post_init__(self) -> None:
        shape = len(self.problem.graph), self.size
        self.codes = np.full(shape, MISSING, dtype=np.int64)
        self.was_set = np.zeros(shape, dtype=bool)
        self.first = np.full(self.size, _GOOD, dtype=np.int32)
        """For each row what is wrong first: _ARM, or the position of a variable."""

    def read_values(self, name: str, column: CodedColumn) -> None:
        """Put what a column says to the codes of its variable."""
        read = [_code(self.problem, name, value) for value in column.values]
        table = np.array([*read, MISSING], dtype=np.int64)
        codes = self.codes[self.problem.positions[name]]
        np.take(table, column.kinds, out=codes, mode="wrap")  # −1 is the last one
        if (table == _UNREADABLE).any():
            self.values[name] = column

    def read_arms(self, column: CodedColumn) -> None:
        """Read each distinct arm, and play them."""
        played: list[Intervention | None] = []
        for value in column.values:
            try:
                played.append(None if is_missing(value) else self.problem.intervention(str(value)))
            except DowiseError:
                played.append(None)
        self.play(column, played)

    def play(self, column: CodedColumn, played: list[Intervention | None]) -> None:
        """Fill in what the arms set; what was seen must not contradict them."""
        self.arms, self.played = column, played
        unread = np.array([*(arm is None for arm in played), True])
        if unread[:-1].any() or (column.kinds == MISSING).any():
            self.first[np.take(unread, column.kinds, mode="wrap")] = _ARM
        nothing = np.full(len(self.problem.graph), MISSING)
        fixed = np.array([self.problem.fixed(arm) if arm else nothing for arm in (*played, None)])
        for v, name in enumerate(self.problem.graph.variables):
            faulty = np.zeros(0, dtype=bool)
            codes = self.codes[v]
            if name in self.values:
                faulty = codes == _UNREADABLE
            if (fixed[:, v] != MISSING).any():
                place = np.take(fixed[:, v], column.kinds, mode="wrap")
                self.was_set[v] = place != MISSING
                unseen = codes == MISSING
                faulty = (self.was_set[v] & ~unseen & (codes != place)) | (codes == _UNREADABLE)
                np.copyto(codes, place, where=unseen)
            if faulty.any():
                self.first[faulty & (self.first == _GOOD)] = v

    def leave_out_deviations(self, columns: Mapping[str, CodedColumn]) -> None:
        """In an export: decisions that tell nothing are no rows, and deviations are bad ones.

        Who played another arm than was decided on perhaps did so because of the unit, and an export
        does not say.
        """
        known = columns["probabilities"].kinds != MISSING
        if "probability" in columns:
            self.first[known & (columns["probability"].kinds == MISSING)] = _INSTEAD
        others = np.ones(len(self.problem.graph), dtype=bool)
        others[self.problem.context_positions] = False
        told = ((self.codes != MISSING) & ~self.was_set)[others].any(axis=0)
        self.first[~told] = _NOTHING

    def result(self, most: int) -> CheckedRecords:
        """The good rows, and the first bad ones with their reasons."""
        batch = RecordBatch(self.problem, self.codes, self.was_set)
        good = self.first == _GOOD
        if good.all():
            return CheckedRecords(batch, np.arange(self.size))
        rows, bad = np.flatnonzero(good), np.flatnonzero(~good & (self.first != _NOTHING))
        explained = tuple(BadRow(row, self._why(row)) for row in bad[:most].tolist())
        return CheckedRecords(batch.take(rows), rows, explained, len(bad))

    def _why(self, row: int) -> str:
        """What is wrong first in a bad row."""
        assert self.arms is not None
        arm, v = self.arms[row], int(self.first[row])
        if v == _INSTEAD:
            return "another arm was played than was decided on, perhaps because of the unit"
        try:
            if v == _ARM:
                if is_missing(arm):
                    return "has no arm: write do() where nothing was set"
                self.problem.intervention(str(arm))
            name = self.problem.graph.variables[v]
            if self.codes[v, row] == _UNREADABLE:
                label_of(name, self.values[name][row], self.problem.domains[name])
            played = self.played[self.arms.kinds[row]]
            assert played is not None
            refuse_contradiction(played, name, self.problem.domains[name][self.codes[v, row]])
        except DowiseError as error:
            return str(error)
        raise AssertionError("a bad row has a reason")


def _code(problem: Problem, name: str, value: object) -> int:
    """The position of a value in the variable's domain, MISSING, or _UNREADABLE."""
    try:
        text = text_of(value)
    except DowiseError:
        return _UNREADABLE
    code = MISSING if text is None else problem.find_code(name, text)
    return _UNREADABLE if code is None else code


def _checked_size(columns: Mapping[str, Any]) -> int:
    """The number of rows, which all columns must have."""
    sizes = {len(column) for column in columns.values()} or {0}
    if len(sizes) > 1:
        raise DowiseError(f"the table has columns of different lengths: {sorted(sizes)}")
    return sizes.pop()
