"""Whether past records can be read under a new problem: by label, nothing lost unseen."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dowise.errors import DowiseError, DowiseWarning
from dowise.experiment.case import Case
from dowise.experiment.columns import unpack
from dowise.experiment.facts import Facts
from dowise.problem import Problem
from dowise.problem.arms import forbidden_in

__all__ = ["check_readable", "warn_of_forbidden"]

_SHOWN = 5  # decisions in an error


def check_readable(
    facts: Facts, problem: Problem, columns: Callable[[int], dict[str, Any]]
) -> None:
    """Raise where a record has a label that the problem's domains no longer have."""
    lost: dict[tuple[str, str], list[int]] = defaultdict(list)
    for case in facts.cases.values():
        for name, label in case.known.items():
            if label is not None and label not in problem.domains.get(name, (label,)):
                lost[name, label].append(case.id)
    for (name, label), ids in lost.items():
        raise DowiseError(
            f"{name}={label} is in {len(ids)} decisions ({_shown(ids)}), but the new domain of "
            f"{name} is {', '.join(problem.domains[name])}: keep the label"
        )
    for number in facts.imports:
        try:
            unpack(columns(number), problem)
        except DowiseError as error:
            raise DowiseError(f"the records of event {number}: {error}") from None


def warn_of_forbidden(pending: Iterable[Case], problem: Problem) -> None:
    """Say which decisions are still to be carried out, or told of, on arms that are forbidden."""
    ids = [case.id for case in pending if forbidden_in(case.asked, problem.forbidden) is not None]
    if ids:
        what = "decision is" if len(ids) == 1 else "decisions are"
        warnings.warn(
            f"{len(ids)} pending {what} on arms that are forbidden from here on ({_shown(ids)}): "
            "withdraw what was not carried out; what was can still be told",
            DowiseWarning,
            stacklevel=3,
        )


def _shown(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:_SHOWN])) + (", …" if len(ids) > _SHOWN else "")
