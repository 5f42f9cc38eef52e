"""From what was seen to counts: outcomes and tables of past records, checked and encoded.

An encoded record holds for each variable the position of its value in the domain, or −1 where the
value is missing. A family (a variable and its parents) counts where all of it was seen and the arm
did not set the variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dowise.belief.tables import Tables
from dowise.errors import DowiseError, suggestion
from dowise.problem import Intervention, Problem
from dowise.problem.values import MISSING, as_mapping, label_of, text_of

__all__ = ["encode_frame", "encode_outcome", "entries_seen"]

Codes = NDArray[np.int64]
Result = TypeVar("Result")


def encode_outcome(problem: Problem, arm: Intervention, outcome: Mapping[str, object]) -> list[int]:
    """One record: what was seen, with the values that the arm set."""
    outcome = as_mapping(outcome, "an outcome")
    for name in outcome:
        if name not in problem.domains:
            raise DowiseError(
                f"the outcome names {name!r}, which is no variable of the problem"
                f"{suggestion(str(name), problem.graph.variables)}"
            )
    codes: list[int] = []
    for name in problem.domains:
        code = problem.code(name, outcome.get(name))
        if name in arm:
            was_set = problem.code(name, arm[name])
            if code not in (MISSING, was_set):
                _refuse_contradiction(arm, name, problem.domains[name][code])
            code = was_set
        codes.append(code)
    return codes


def encode_frame(
    problem: Problem, frame: Any, arm: Intervention | None
) -> tuple[Codes, NDArray[np.bool_]]:
    """A table of records: codes and, for the same cells, whether the arm set the variable.

    Both arrays have a row for each variable and a column for each record.
    """
    columns = _columns(frame)
    arm_column = "arm" in columns and "arm" not in problem.graph
    sizes = {len(column) for column in columns.values()} or {0}
    if len(sizes) > 1:
        raise DowiseError(f"the table has columns of different lengths: {sorted(sizes)}")
    size = sizes.pop()
    for name in columns:
        if name not in problem.graph and not (arm_column and name == "arm"):
            known = (*problem.graph.variables, "arm")
            raise DowiseError(
                f"the table has a column {name!r}, which is no variable of the problem"
                f"{suggestion(name, known)}: rename or drop it"
            )
    codes = np.full((len(problem.graph), size), MISSING, dtype=np.int64)
    was_set = np.zeros(codes.shape, dtype=bool)
    for v, name in enumerate(problem.graph.variables):
        if name in columns:
            domain = problem.domains[name]
            kinds, values = _distinct(name, columns[name])
            labels = [
                _in_row(kinds, i, partial(label_of, name, value, domain))
                for i, value in enumerate(values)
            ]
            places = [MISSING if x is None else domain.index(x) for x in labels]
            codes[v] = np.array([*places, MISSING], dtype=np.int64)[kinds]
    if arm_column:
        if arm is not None:
            raise DowiseError("the table has a column 'arm': leave the argument arm out")
        kinds, texts = _distinct("arm", columns["arm"])
        if (kinds == MISSING).any():
            row = int(np.flatnonzero(kinds == MISSING)[0])
            raise DowiseError(
                f"row {row} of the table has no arm: write do() where nothing was set"
            )
        arms = [
            _in_row(kinds, i, partial(problem.intervention, str(text)))
            for i, text in enumerate(texts)
        ]
    else:
        kinds, arms = np.zeros(size, dtype=np.int64), [arm or Intervention()]
    for kind, played in enumerate(arms):
        if not played:
            continue
        rows = np.flatnonzero(kinds == kind)
        for name, label in played.items():
            v, place = problem.graph.variables.index(name), problem.domains[name].index(label)
            against = rows[(codes[v, rows] != MISSING) & (codes[v, rows] != place)]
            if len(against):
                seen = problem.domains[name][codes[v, against[0]]]
                _refuse_contradiction(played, name, seen, f"row {against[0]} of the table: ")
            codes[v, rows] = place
            was_set[v, rows] = True
    return codes, was_set


def entries_seen(tables: Tables, codes: Codes, was_set: NDArray[np.bool_]) -> Codes:
    """The flat CPT entries that the records count in, once for each time."""
    seen = []
    for v, family in enumerate(tables.families):
        entries = np.full(codes.shape[1], tables.starts[v])
        complete = ~was_set[v]
        for u in family:
            entries += codes[u] * tables.strides[v, u]
            complete &= codes[u] != MISSING
        seen.append(entries[complete])
    return np.concatenate(seen)


def _refuse_contradiction(arm: Intervention, name: str, label: str, where: str = "") -> None:
    raise DowiseError(f"{where}{arm} set {name}={arm[name]}, but the outcome has {name}={label}")


def _in_row(kinds: Codes, kind: int, read: Callable[[], Result]) -> Result:
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


def _distinct(name: str, column: Any) -> tuple[Codes, list[object]]:
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
