"""Tables of past records, checked and encoded: a pandas or pyarrow table, or columns by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, suggestion
from dowise.graph.bits import mask_of
from dowise.problem.intervention import Intervention
from dowise.problem.record import Record, refuse_contradiction
from dowise.problem.roles import refuse_hidden
from dowise.problem.values import MISSING, label_of, text_of

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["RecordBatch", "parse_frame"]

Integers = NDArray[np.int64]
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class RecordBatch:
    """Many records at once: a row for each variable, in the order of names, a column for each."""

    problem: Problem
    codes: Integers
    """The position of each value in its domain, or MISSING."""
    was_set: NDArray[np.bool_]
    """Whether the arm set the variable."""

    @classmethod
    def of(cls, record: Record) -> RecordBatch:
        """One record as a batch."""
        return cls(record.problem, record.codes[:, None], record.fixed[:, None] != MISSING)

    def by_set(self) -> tuple[list[int], Integers]:
        """The distinct sets of variables that were set, as bits, and which one each record has."""
        packed = np.ascontiguousarray(np.packbits(self.was_set, axis=0).T)
        words = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, which = np.unique(words, return_index=True, return_inverse=True)
        sets = [mask_of(np.flatnonzero(self.was_set[:, i]).tolist()) for i in first]
        return sets, which.astype(np.int64)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"<RecordBatch of {len(self):,} records>"


def parse_frame(problem: Problem, frame: Any, arm: Intervention | None) -> RecordBatch:
    """The records of a table; without a column `arm` all are of this one, or of do()."""
    columns = _columns(frame)
    has_arms = "arm" in columns and "arm" not in problem.graph
    size = _checked_size(problem, columns, has_arms)
    codes = np.full((len(problem.graph), size), MISSING, dtype=np.int64)
    for v, name in enumerate(problem.graph.variables):
        if name in columns:
            codes[v] = _codes_of(problem, name, columns[name])
    was_set = np.zeros(codes.shape, dtype=bool)
    if has_arms:
        if arm is not None:
            raise DowiseError("the table has a column 'arm': leave the argument arm out")
        kinds, arms = _arms_of(problem, columns["arm"])
    else:
        kinds, arms = np.zeros(size, dtype=np.int64), [arm or Intervention()]
    for kind, played in enumerate(arms):
        if played:
            _put_settings(problem, played, np.flatnonzero(kinds == kind), codes, was_set)
    return RecordBatch(problem, codes, was_set)


def _checked_size(problem: Problem, columns: Mapping[str, Any], has_arms: bool) -> int:
    """The number of rows, once the columns are known to fit."""
    sizes = {len(column) for column in columns.values()} or {0}
    if len(sizes) > 1:
        raise DowiseError(f"the table has columns of different lengths: {sorted(sizes)}")
    for name in columns:
        if name not in problem.graph and not (has_arms and name == "arm"):
            refuse_hidden(name, problem.hidden, "the table has a column of a hidden variable: ")
            known = (*problem.graph.variables, "arm")
            raise DowiseError(
                f"the table has a column {name!r}, which is no variable of the problem"
                f"{suggestion(name, known)}: rename or drop it"
            )
    return sizes.pop()


def _codes_of(problem: Problem, name: str, column: Any) -> Integers:
    domain = problem.domains[name]
    kinds, values = _distinct(name, column)
    labels = [
        _in_row(kinds, i, partial(label_of, name, value, domain)) for i, value in enumerate(values)
    ]
    places = [MISSING if x is None else domain.index(x) for x in labels]
    codes: Integers = np.array([*places, MISSING], dtype=np.int64)[kinds]
    return codes


def _arms_of(problem: Problem, column: Any) -> tuple[Integers, list[Intervention]]:
    """Which of the distinct arms each row has."""
    kinds, texts = _distinct("arm", column)
    if (kinds == MISSING).any():
        row = int(np.flatnonzero(kinds == MISSING)[0])
        raise DowiseError(f"row {row} of the table has no arm: write do() where nothing was set")
    arms = [
        _in_row(kinds, i, partial(problem.intervention, str(text))) for i, text in enumerate(texts)
    ]
    return kinds, arms


def _put_settings(
    problem: Problem,
    arm: Intervention,
    rows: Integers,
    codes: Integers,
    was_set: NDArray[np.bool_],
) -> None:
    """Fill in what an arm set in its rows; what was seen must not contradict it."""
    for name in arm:
        v, place = problem.positions[name], problem.fixed(arm)[problem.positions[name]]
        against = rows[(codes[v, rows] != MISSING) & (codes[v, rows] != place)]
        if len(against):
            seen = problem.domains[name][codes[v, against[0]]]
            refuse_contradiction(arm, name, seen, f"row {against[0]} of the table: ")
        codes[v, rows] = place
        was_set[v, rows] = True


def _in_row(kinds: Integers, kind: int, read: Callable[[], Result]) -> Result:
    """Read a value; an error names the first row that has it, counted from 0."""
    try:
        return read()
    except DowiseError as error:
        row = int(np.flatnonzero(kinds == kind)[0])
        raise DowiseError(f"row {row} of the table: {error}") from None


def _columns(frame: Any) -> dict[str, Any]:
    """The columns of a pandas or pyarrow table, or of a mapping from name to values."""
    if hasattr(frame, "column_names"):
        names = list(frame.column_names)
    elif hasattr(frame, "columns"):
        names = list(frame.columns)
    elif isinstance(frame, Mapping):
        names = list(frame)
    else:
        raise DowiseError(
            f"a {type(frame).__name__} is no table: give a pandas DataFrame, a pyarrow Table or a "
            "mapping from column to values"
        )
    for name, times in Counter(map(str, names)).items():
        if times > 1:
            raise DowiseError(f"the table has the column {name!r} {times} times: keep one")
    columns = {str(name): frame[name] for name in names}
    for name, column in columns.items():
        if isinstance(column, str) or not hasattr(column, "__len__"):
            raise DowiseError(f"column {name!r} must be a list of values, not {column!r}")
    return columns


def _distinct(name: str, column: Any) -> tuple[Integers, list[object]]:
    """(kinds, values): column[i] is values[kinds[i]], and missing where kinds[i] is −1."""
    try:
        if hasattr(column, "dictionary_encode"):  # pyarrow
            encoded = column.dictionary_encode()
            encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
            kinds = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
            return kinds.astype(np.int64), encoded.dictionary.to_pylist()
        if hasattr(column, "factorize"):  # pandas
            kinds, values = column.factorize()
            return kinds.astype(np.int64), list(values)
        places: dict[object, int] = {}
        kinds = np.array([places.setdefault(x, len(places)) for x in column], dtype=np.int64)
    except (TypeError, NotImplementedError, AttributeError):  # lists, structs and the like
        raise DowiseError(f"column {name!r} has values that can't be labels") from None
    values = list(places)
    missing = [kind for kind, value in enumerate(values) if text_of(value) is None]
    return np.where(np.isin(kinds, missing), MISSING, kinds), values
