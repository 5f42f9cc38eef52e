"""Files of past records: CSV or Parquet, one row a record, one column a variable.

An empty cell is a missing value. A column `arm` holds what was set, as text; without it all records
are of do(). What the values mean is checked where they are learned (`Problem.records`).
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from dowise.errors import DowiseError, import_extra
from dowise.files import existing_file, read_file

__all__ = ["read_table"]


def read_table(path: str | Path) -> Any:
    """A table that `Belief.update_many` takes, from a .parquet file, or a CSV file of any name."""
    path = existing_file(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        parquet = import_extra("pyarrow.parquet", "simulate", f"reading {path.name}")
        try:
            return parquet.read_table(path)
        except (OSError, ValueError) as error:  # pyarrow's own errors are of these kinds
            reason = str(error).partition("\n")[0]
            raise DowiseError(f"{path}: can't be read as Parquet ({reason})") from None
    return read_file(path, _parse_csv)


def _parse_csv(text: str) -> dict[str, list[str | None]]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(rows)]
        for name in header:
            if header.count(name) > 1:
                raise DowiseError(f"two columns are called {name!r}: keep one")
        columns: dict[str, list[str | None]] = {name: [] for name in header}
        for row in rows:
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                raise DowiseError(
                    f"line {rows.line_num} has {len(row)} values, but there are {len(header)} "
                    "columns"
                )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value.strip() or None)
    except csv.Error as error:
        raise DowiseError(f"line {rows.line_num} is no CSV: {error}") from None
    return columns
