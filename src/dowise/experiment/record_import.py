"""Import of past records, and their readability after a revision.

An import is refused if a row is bad, unless bad rows are skipped explicitly, and if the same table
was imported before.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from dowise._core.validation import check_flag
from dowise.belief.belief import warn_of_no_reward
from dowise.errors import ConflictError, DowiseError, DowiseWarning
from dowise.experiment.case import Case
from dowise.experiment.record_columns import MAX_NAMED, digest, list_some, pack, unpack
from dowise.experiment.state import ExperimentState
from dowise.problem import Problem
from dowise.problem.arms import find_forbidden
from dowise.problem.problem import ArmLike
from dowise.problem.record import check_same_problem
from dowise.problem.tables import CheckedRecords


class BadRowsError(DowiseError):
    """Some rows of a table are not records; `checked` describes them."""

    code = "bad-rows"

    def __init__(self, checked: CheckedRecords) -> None:
        self.checked = checked
        listed = "; ".join(map(str, checked.bad[:MAX_NAMED]))
        if checked.bad_count > MAX_NAMED:
            listed += f"; and {checked.bad_count - MAX_NAMED:,} more"
        super().__init__(f"{self.summary}: {listed}. Correct them, or skip them (`skip_bad`)")

    @property
    def summary(self) -> str:
        """Number of bad rows and of all rows, and the consequence."""
        bad, size = self.checked.bad_count, self.checked.size
        return f"{bad:,} of {size:,} rows can't be read, so nothing was imported"


def import_payload(
    checked: CheckedRecords, source: str | None, skip_bad: bool
) -> dict[str, Any] | None:
    """Return the payload of an `imported` event; None if the table is empty."""
    if source is not None and not isinstance(source, str):
        raise DowiseError(
            f"source={source!r} must be a text: where the records are from", code="invalid-type"
        )
    if checked.bad_count and not check_flag("skip_bad", skip_bad):
        raise BadRowsError(checked)
    if not len(checked.batch):
        return None
    warn_of_no_reward(checked.batch, stacklevel=4)
    columns = pack(checked.batch)
    return {
        "records": len(checked.batch),
        "skipped": checked.bad_count,
        "source": source,
        "digest": digest(columns),
        "columns": columns,
    }


def as_checked_records(problem: Problem, frame: Any, arm: ArmLike | None) -> CheckedRecords:
    """Validate the rows of a table; `frame` may also be a result of `Problem.checked_records`."""
    if not isinstance(frame, CheckedRecords):
        return problem.checked_records(frame, arm)
    if arm is not None:
        raise DowiseError(
            "these records were read with their arms: leave the argument arm out",
            code="unused-option",
        )
    check_same_problem(frame.batch, problem)
    return frame


def refuse_repetition(
    state: ExperimentState, payload: dict[str, Any], checked: CheckedRecords, again: bool
) -> None:
    """Raise if the same records were imported before, unless `again`."""
    if check_flag("again", again):
        return
    times = {case.asked_at for case in state.cases.values() if case.asked_at}
    if times & checked.asked_at:
        raise ConflictError(
            "this is an export of the same experiment, which has these records already: use "
            "`again` to count them once more"
        )
    number = state.import_digests.get(payload["digest"])
    if number is not None:
        raise ConflictError(
            f"these records were imported before, by event {number}: use `again` to count them "
            "once more"
        )


def check_readable(
    state: ExperimentState, problem: Problem, read_import: Callable[[int], dict[str, Any]]
) -> None:
    """Raise if a record has a label that the problem's domains lack.

    `read_import` returns the columns of an `imported` event.
    """
    lost: dict[tuple[str, str], list[int]] = defaultdict(list)
    for case in state.cases.values():
        for name, label in case.known.items():
            if label is not None and label not in problem.domains.get(name, (label,)):
                lost[name, label].append(case.id)
    for (name, label), ids in lost.items():
        raise DowiseError(
            f"{name}={label} is in {len(ids)} decisions ({list_some(ids)}), but the new domain of "
            f"{name} is {', '.join(problem.domains[name])}: keep the label",
            code="unknown-value",
        )
    for number in state.imports:
        try:
            unpack(read_import(number), problem)
        except DowiseError as error:
            raise DowiseError(f"the records of event {number}: {error}", code=error.code) from None


def warn_of_forbidden(pending: Iterable[Case], problem: Problem) -> None:
    """Warn about pending decisions on arms that are forbidden now."""
    for note in forbidden_note(pending, problem):
        warnings.warn(note, DowiseWarning, stacklevel=3)


def forbidden_note(pending: Iterable[Case], problem: Problem) -> list[str]:
    """Return a note about pending decisions on arms that are forbidden now, if there are any."""
    ids = [case.id for case in pending if find_forbidden(case.asked, problem.forbidden) is not None]
    if not ids:
        return []
    subject = "decision is" if len(ids) == 1 else "decisions are"
    return [
        f"{len(ids)} pending {subject} on arms that are forbidden from here on ({list_some(ids)}): "
        "withdraw what was not carried out; what was can still be told"
    ]
