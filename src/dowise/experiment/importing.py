"""Bringing past records in: all rows good, or the bad ones skipped by word; never twice unseen."""

from __future__ import annotations

from typing import Any

from dowise.checks import true_or_false
from dowise.errors import DowiseError
from dowise.experiment.columns import digest, pack
from dowise.experiment.facts import Facts
from dowise.problem import Problem
from dowise.problem.problem import ArmLike

__all__ = ["checked_import", "refuse_twice"]

_SHOWN = 5  # bad rows in an error


def checked_import(
    problem: Problem, frame: Any, arm: ArmLike | None, source: str | None, skip_bad: bool
) -> dict[str, Any] | None:
    """What an `imported` event says of a table, or None where there is nothing in it."""
    found = problem.checked_records(frame, arm)
    if found.bad and not true_or_false("skip_bad", skip_bad):
        shown = "; ".join(str(bad) for bad in found.bad[:_SHOWN])
        more = f"; and {len(found.bad) - _SHOWN} more" if len(found.bad) > _SHOWN else ""
        raise DowiseError(
            f"{len(found.bad)} of the table's rows can't be read, so nothing was imported: {shown}"
            f"{more}. Mend them, or leave them out with skip_bad (--skip-bad)"
        )
    if not len(found.batch):
        return None
    columns = pack(found.batch)
    return {
        "records": len(found.batch),
        "skipped": len(found.bad),
        "source": source,
        "digest": digest(columns),
        "columns": columns,
    }


def refuse_twice(facts: Facts, page: dict[str, Any], again: bool) -> None:
    """Raise where the same records were imported before, unless that is meant."""
    before = facts.import_digests.get(page["digest"])
    if before is not None and not true_or_false("again", again):
        raise DowiseError(
            f"these records were imported before, by event {before}: to count them once more, say "
            "again=True (--again)"
        )
