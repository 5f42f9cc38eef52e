"""Export of all decisions of an experiment, as a table and to CSV or Parquet files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dowise._core.files import write_bytes
from dowise.errors import DowiseError, import_extra
from dowise.experiment.event import Event, as_text
from dowise.experiment.state import ExperimentState
from dowise.problem.tables import EXPORT_COLUMNS, export_name


def export_table(state: ExperimentState, asked: Iterable[Event]) -> dict[str, list[Any]]:
    """Return all decisions by column: texts, except `id` and `probability`; None if empty.

    `arm` is the arm that was played. If it is not the one that was chosen, there is no probability.
    `probabilities` has those of all arms, `allowed` the arms to choose from if some were not
    allowed, both as JSON. There is a column for each variable of the problem, and for each earlier
    variable that has values.
    """
    variables = state.config.problem.graph.variables
    recorded = {name for case in state.cases.values() for name in case.known}
    names = [*variables, *sorted(recorded.difference(variables))]
    table: dict[str, list[Any]] = {name: [] for name in EXPORT_COLUMNS}
    table |= {export_name(name): [] for name in names}
    by_id = {event.payload["decision"]: event for event in asked if not event.is_erased}
    for case in state.cases.values():
        known = case.known
        row: dict[str, Any] = {"id": case.id, "status": case.status}
        event = by_id.get(case.id)
        if event is not None and case.status != "erased":
            row |= {"asked_at": case.asked_at, "arm": str(case.arm), **_probabilities(state, event)}
            if case.played is not None:
                row["probability"] = None
        for column in EXPORT_COLUMNS:
            table[column].append(row.get(column))
        for name in names:
            table[export_name(name)].append(known.get(name))
    return table


def write_table(table: dict[str, list[Any]], path: str | Path) -> int:
    """Write the table to a .csv or .parquet file, and return the number of rows."""
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".pq"):
        content = _to_parquet(table)
    elif suffix == ".csv":
        content = _to_csv(table)
    else:
        raise DowiseError(
            f"{path}: the name must end in .csv or .parquet", code="unsupported-format"
        )
    _check_overwrite(Path(path), suffix == ".csv")
    write_bytes(path, content)
    return len(table["id"])


def _check_overwrite(path: Path, is_csv: bool) -> None:
    """Raise if something other than an earlier export would be overwritten."""
    if not path.is_file() or not path.stat().st_size:
        return
    if is_csv:
        with path.open("rb") as file:
            columns = file.readline(1000).decode(errors="replace").split(",")
    else:
        parquet = import_extra("pyarrow.parquet", "simulate", "writing Parquet")
        try:
            columns = parquet.read_schema(path).names
        except (OSError, ValueError):
            columns = []
    if columns[: len(EXPORT_COLUMNS)] != list(EXPORT_COLUMNS):
        raise DowiseError(
            f"{path} exists and is not an export of an experiment: choose another file, or remove "
            "that one first",
            code="conflict",
        )


def _probabilities(state: ExperimentState, event: Event) -> dict[str, Any]:
    payload, problem = event.payload, state.config_at(event.number).problem
    texts = [str(arm) for arm in problem.arms]
    probabilities = payload["probabilities"]
    row: dict[str, Any] = {}
    if probabilities is not None:
        row["probabilities"] = as_text(dict(zip(texts, probabilities, strict=True)))
        row["probability"] = probabilities[problem.arm_index(payload["arm"])]
    if payload["allowed"] is not None:
        row["allowed"] = as_text([texts[i] for i in payload["allowed"]])
    return row


def _to_csv(table: dict[str, list[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))  # which writes None as an empty field
    return text.getvalue().encode()


def _to_parquet(table: dict[str, list[Any]]) -> bytes:
    pyarrow = import_extra("pyarrow", "simulate", "writing Parquet")
    parquet = import_extra("pyarrow.parquet", "simulate", "writing Parquet")
    types = {"id": pyarrow.int64(), "probability": pyarrow.float64()}
    columns = {
        name: pyarrow.array(values, type=types.get(name, pyarrow.string()))
        for name, values in table.items()
    }
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()
