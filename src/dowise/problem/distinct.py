"""Columns by their distinct values, so that what a value means is found out once for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem.values import MISSING, text_of

__all__ = ["CodedColumn", "coded", "columns_of", "is_missing"]


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column whose value in row i is `values[kinds[i]]`, and missing where kinds[i] is −1."""

    kinds: NDArray[np.integer[Any]]
    values: Sequence[object]

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, row: int) -> object:
        kind = self.kinds[row]
        return None if kind == MISSING else self.values[kind]


def columns_of(frame: Any) -> dict[str, Any]:
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


def coded(name: str, column: Any) -> CodedColumn:
    """A column of any kind by its distinct values."""
    if isinstance(column, CodedColumn):
        return column
    try:
        if hasattr(column, "dictionary_encode"):  # pyarrow
            encoded = column.dictionary_encode()
            encoded = encoded.combine_chunks() if hasattr(encoded, "combine_chunks") else encoded
            kinds = encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
            return CodedColumn(kinds, encoded.dictionary.to_pylist())
        if hasattr(column, "factorize"):  # pandas
            kinds, values = column.factorize()
            return CodedColumn(kinds, list(values))
        places: dict[object, int] = {}
        kinds = np.array([places.setdefault(x, len(places)) for x in column], dtype=np.int64)
        missing = [kind for kind, value in enumerate(places) if is_missing(value)]
    except (TypeError, NotImplementedError, AttributeError):  # lists, structs and the like
        raise DowiseError(f"column {name!r} has values that can't be labels") from None
    return CodedColumn(np.where(np.isin(kinds, missing), MISSING, kinds), list(places))


def is_missing(value: object) -> bool:
    """Whether a value stands for nothing: None, NaN and their like."""
    try:
        return text_of(value) is None
    except DowiseError:  # no value at all, which is for the row to say
        return False
