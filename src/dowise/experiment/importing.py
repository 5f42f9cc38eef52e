"""Bringing past records in: all rows good, or the bad ones skipped by word; never twice unseen."""

from __future__ import annotations

from typing import Any

from dowise.belief.unused import warn_of_no_reward
from dowise.checks import true_or_false
from dowise.errors import ConflictError, DowiseError
from dowise.experiment.columns import digest, pack
from dowise.experiment.facts import Facts
from dowise.problem import Problem
from dowise.problem.problem import ArmLike
from dowise.problem.record import check_same_problem
from dowise.problem.tables import CheckedRecords

__all__ = ["BadRowsError", "checked_import", "checked_rows", "refuse_twice"]

_SHOWN = 5  # bad rows in an error


class BadRowsError(DowiseError):
    """Some rows of a table are no records; `found` has all that is known of them."""

    def __init__(self, found: CheckedRecords) -> None:
        self.found = found
        shown = "; ".join(str(bad) for bad in found.bad[:_SHOWN])
        more = f"; and {found.bad_count - _SHOWN:,} more" if found.bad_count > _SHOWN else ""
        super().__init__(
            f"{self.summary}: {shown}{more}. Mend them, or leave them out (`skip_bad`)"
        )

    @property
    def summary(self) -> str:
        """How many of how many rows, and what became of it."""
        return (
            f"{self.found.bad_count:,} of {self.found.size:,} rows can't be read, so nothing was "
            "imported"
        )


def checked_import(
    found: CheckedRecords, source: str | None, skip_bad: bool
) -> dict[str, Any] | None:
    """What an `imported` event says of a table, or None where there is nothing in it."""
    if source is not None and not isinstance(source, str):
        raise DowiseError(f"source={source!r}: say by a text where the records are from")
    if found.bad_count and not true_or_false("skip_bad", skip_bad):
        raise BadRowsError(found)
    if not len(found.batch):
        return None
    warn_of_no_reward(found.batch, stacklevel=4)
    columns = pack(found.batch)
    return {
        "records": len(found.batch),
        "skipped": found.bad_count,
        "source": source,
        "digest": digest(columns),
        "columns": columns,
    }


def checked_rows(problem: Problem, frame: Any, arm: ArmLike | None) -> CheckedRecords:
    """The rows of a table; `frame` may also be what `Problem.checked_records` made of one."""
    if not isinstance(frame, CheckedRecords):
        return problem.checked_records(frame, arm)
    if arm is not None:
        raise DowiseError("these records were read with their arms: leave the argument arm out")
    check_same_problem(frame.batch, problem)
    return frame


def refuse_twice(facts: Facts, page: dict[str, Any], found: CheckedRecords, again: bool) -> None:
    """Raise where the same records are here already, unless that is meant."""
    if true_or_false("again", again):
        return
    own = {case.asked_at for case in facts.cases.values() if case.asked_at}
    if own & found.asked_at:
        raise ConflictError(
            "this is an export of this very experiment, which knows these records: to count them "
            "once more, say so (`again`)"
        )
    before = facts.import_digests.get(page["digest"])
    if before is not None:
        raise ConflictError(
            f"these records were imported before, by event {before}: to count them once more, say "
            "so (`again`)"
        )
