"""One row a decision, with its propensities: CSV or Parquet, for whoever analyses it elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dowise.errors import DowiseError, import_extra
from dowise.experiment.event import Event, as_text
from dowise.experiment.facts import Facts
from dowise.files import write_bytes
from dowise.problem.tables import EXPORT_COLUMNS, export_name

__all__ = ["columns_of", "write_table"]


def columns_of(facts: Facts, asked: Iterable[Event]) -> dict[str, list[Any]]:
    """The columns of the table, by name: texts, but for `id` and `probability`; None is empty.

    `arm` is what was played. Where that is not what was decided on there is no probability.
    `probabilities` has those of all arms by their texts, `allowed` the arms to choose from where
    some were not allowed, both as JSON.
    """
    names = _variables(facts)
    table: dict[str, list[Any]] = {name: [] for name in EXPORT_COLUMNS}
    table |= {export_name(name): [] for name in names}
    by_id = {event.says["decision"]: event for event in asked if not event.is_erased}
    for case in facts.cases.values():
        known = case.known
        row: dict[str, Any] = {"id": case.id, "status": case.status}
        event = by_id.get(case.id)
        if event is not None and case.status != "erased":
            row |= {"asked_at": case.asked_at, "arm": str(case.arm), **_chances(facts, event)}
            if case.played is not None:
                row["probability"] = None
        for column in EXPORT_COLUMNS:
            table[column].append(row.get(column))
        for name in names:
            table[export_name(name)].append(known.get(name))
    return table


def write_table(table: dict[str, list[Any]], path: str | Path) -> int:
    """Write the table, by the ending of the path; the number of its rows."""
    ending = Path(path).suffix.lower()
    if ending in (".parquet", ".pq"):
        content = _parquet(table)
    elif ending == ".csv":
        content = _csv(table)
    else:
        raise DowiseError(f"{path}: the name must end in .csv or .parquet")
    _spare_others(Path(path), ending == ".csv")
    write_bytes(path, content)
    return len(table["id"])


def _spare_others(path: Path, is_csv: bool) -> None:
    """Raise where something else than an earlier export would be overwritten."""
    if not path.is_file() or not path.stat().st_size:
        return
    begins = list(EXPORT_COLUMNS)
    if is_csv:
        with path.open("rb") as file:
            found = file.readline(1000).decode(errors="replace").split(",")[: len(begins)]
    else:
        parquet = import_extra("pyarrow.parquet", "simulate", "writing Parquet")
        try:
            found = parquet.read_schema(path).names[: len(begins)]
        except (OSError, ValueError):
            found = []
    if found != begins:
        raise DowiseError(
            f"{path} is there already, and is no export of an experiment: name another file, or "
            "remove that one first"
        )


def _variables(facts: Facts) -> list[str]:
    """Those of the problem, and those that it once had and that something is known of."""
    seen = {name for case in facts.cases.values() for name in case.known}
    own = facts.plan.problem.graph.variables
    return [*own, *sorted(seen - {*own})]


def _chances(facts: Facts, event: Event) -> dict[str, Any]:
    says, arms = event.says, facts.plan_at(event.number).problem.arms
    texts = [str(arm) for arm in arms]
    chances = says["probabilities"]
    row: dict[str, Any] = {}
    if chances is not None:
        row["probabilities"] = as_text(dict(zip(texts, chances, strict=True)))
        own = facts.plan_at(event.number).problem.arm_index(says["arm"])
        row["probability"] = chances[own]
    if says["allowed"] is not None:
        row["allowed"] = as_text([texts[i] for i in says["allowed"]])
    return row


def _csv(table: dict[str, list[Any]]) -> bytes:
    page = io.StringIO(newline="")
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(_rows(table))
    return page.getvalue().encode()


def _rows(table: dict[str, list[Any]]) -> Iterator[list[Any]]:
    for row in zip(*table.values(), strict=True):
        yield ["" if value is None else value for value in row]


def _parquet(table: dict[str, list[Any]]) -> bytes:
    pyarrow = import_extra("pyarrow", "simulate", "writing Parquet")
    parquet = import_extra("pyarrow.parquet", "simulate", "writing Parquet")
    kinds = {"id": pyarrow.int64(), "probability": pyarrow.float64()}
    columns = {
        name: pyarrow.array(values, type=kinds.get(name, pyarrow.string()))
        for name, values in table.items()
    }
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()
