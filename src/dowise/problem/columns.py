"""The columns of tables: which one holds which variable, and the names that an export adds.

An export has a row for each decision. Its own columns come first; a variable that is called like
one of them has "_" behind its name there, and so has a variable that is called like that, so that
no two columns have one name. Read back, the export's own columns are skipped, but for the arm.

>>> [export_name(name) for name in ("Dose", "status", "status_")]
['Dose', 'status_', 'status__']
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from dowise.errors import DowiseError, listed, suggestion
from dowise.problem.roles import refuse_hidden

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["EXPORT_COLUMNS", "Sources", "export_name", "sources_of"]

EXPORT_COLUMNS = ("id", "asked_at", "status", "arm", "probability", "probabilities", "allowed")
_MARKS = {"asked_at", "probabilities"}  # a table with both is an export


class Sources(NamedTuple):
    """Where a table has what."""

    variables: dict[str, str]
    """The column of each variable that has one."""
    arm: str | None
    """The column of the arms, if there is one."""
    is_export: bool = False
    """Whether the table is the export of an experiment."""

    @property
    def read(self) -> set[str | None]:
        """The columns that are looked at; of an export also those that say what a row is worth."""
        own = {"asked_at", "probability", "probabilities"} if self.is_export else set()
        return {*self.variables.values(), self.arm, *own}


def export_name(variable: str) -> str:
    """What the column of a variable is called in an export."""
    return f"{variable}_" if variable.rstrip("_") in EXPORT_COLUMNS else variable


def sources_of(problem: Problem, names: Iterable[str]) -> Sources:
    """Which column is what; a column that is nothing is an error.

    In an export a variable may also stand under its own name, where there is no column with "_".
    """
    names = list(names)
    there = set(names)
    is_export = there >= _MARKS
    variables: dict[str, str] = {}
    if is_export:
        exported = {name: export_name(name) for name in problem.graph.variables}
        variables = {name: column for name, column in exported.items() if column in there}
    taken = set(variables.values())
    arm, strange = None, list[str]()
    for name in names:
        if name in taken:
            continue
        if name in problem.graph and name not in variables:
            variables[name] = name
        elif name == "arm":
            arm = name
        elif not (is_export and name in EXPORT_COLUMNS):
            strange.append(name)
    if strange:
        _refuse(problem, strange)
    return Sources(variables, arm, is_export)


def _refuse(problem: Problem, strange: list[str]) -> None:
    """Columns that are nothing, all of them, so that one need not find them one by one."""
    for name in strange:
        refuse_hidden(name, problem.hidden, "the table has a column of a hidden variable: ")
    known = (*problem.graph.variables, "arm")
    if len(strange) > 1:
        shown = listed(f"{name!r}{suggestion(name, known)}" for name in strange)
        raise DowiseError(
            f"the table has columns {shown}, which are no variables of the problem: rename or drop "
            "them"
        )
    raise DowiseError(
        f"the table has a column {strange[0]!r}, which is no variable of the problem"
        f"{suggestion(strange[0], known)}: rename or drop it"
    )
