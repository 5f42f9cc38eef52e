"""Whether past records can be read under a new problem: by label, nothing lost unseen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from dowise.errors import DowiseError
from dowise.experiment.columns import unpack
from dowise.experiment.facts import Facts
from dowise.problem import Problem

__all__ = ["check_readable"]

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
        shown = ", ".join(map(str, ids[:_SHOWN])) + (", …" if len(ids) > _SHOWN else "")
        raise DowiseError(
            f"{name}={label} is in {len(ids)} decisions ({shown}), but the new domain of {name} is "
            f"{', '.join(problem.domains[name])}: keep the label"
        )
    for number in facts.imports:
        try:
            unpack(columns(number), problem)
        except DowiseError as error:
            raise DowiseError(f"the records of event {number}: {error}") from None
