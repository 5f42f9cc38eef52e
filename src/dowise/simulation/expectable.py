"""Where regret can be expected: in worlds that are drawn from what a belief begins with."""

from __future__ import annotations

from dowise.environments import OneWorld, Worlds
from dowise.environments.sources import ChordalWorlds
from dowise.errors import DowiseError
from dowise.problem import Problem

__all__ = ["check_expectable", "is_expectable"]


def is_expectable(worlds: Worlds) -> bool:
    """Whether the worlds are drawn from the prior of a belief of their problem."""
    return _why_not(worlds) is None


def check_expectable(label: str, worlds: Worlds) -> None:
    """Raise where expected regret would not have the mean of the regret, and say why."""
    why = _why_not(worlds)
    if why is not None:
        raise DowiseError(
            f"{label}: expected=True needs worlds that are drawn from a belief's prior, {why}"
        )


def _why_not(worlds: Worlds) -> str | None:
    if isinstance(worlds, OneWorld):
        return "and this is one with numbers of its own: give its problem, or leave expected out"
    if worlds.manner.strong:
        return "and strong ones are drawn otherwise: leave strong or expected out"
    return (
        None
        if isinstance(worlds, ChordalWorlds)
        else _why_not_of(worlds.problem, worlds.manner.edges)
    )


def _why_not_of(problem: Problem, edges: str) -> str | None:
    """Of random worlds of a problem with these edges."""
    if problem.hidden or problem.possible.bidirected_edges:
        return (
            "and where causes are hidden they are not: CPTs of hidden variables are drawn, but "
            "factors believed in (docs/hidden.md); leave expected out"
        )
    if problem.edge_priors and edges == "all":
        doubtful = ", ".join(problem.edge_priors)
        return f"and these have all doubtful edges ({doubtful}): draw them too, edges='prior'"
    return None
