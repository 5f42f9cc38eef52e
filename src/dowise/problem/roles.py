"""The role of each variable of a problem, checked: every name is known and has one role.

>>> from dowise.graph import CausalGraph
>>> graph = CausalGraph.parse("C -> X -> Y; U -> X; U -> Y; Z -> Y")
>>> roles_of(graph, "Y", context="C", manipulable="X", hidden="U")
Roles(reward='Y', context=('C',), non_manipulable=('Z',), hidden=('U',))
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dowise.errors import DowiseError, suggestion
from dowise.graph import CausalGraph

__all__ = ["Names", "Roles", "known_variable", "names_of", "refuse_hidden", "roles_of"]

Names = str | Iterable[str] | None

_WHEN = {  # why two of them exclude each other
    "context": "context is seen before the choice",
    "non-manipulable": "non-manipulable after",
    "manipulable": "manipulable variables are set by it",
    "hidden": "hidden variables are never seen or set",
}


@dataclass(frozen=True)
class Roles:
    """Who is what, names sorted; all others can be set."""

    reward: str
    context: tuple[str, ...]
    non_manipulable: tuple[str, ...]
    hidden: tuple[str, ...]


def roles_of(
    graph: CausalGraph,
    reward: str,
    context: Names = (),
    non_manipulable: Names = (),
    manipulable: Names = None,
    hidden: Names = (),
) -> Roles:
    """The roles, once they are known to fit together; `manipulable` makes the rest immovable."""
    known_variable(graph, reward, "reward")
    given = {
        "context": _names(graph, reward, "context", context),
        "non-manipulable": _names(graph, reward, "non-manipulable", non_manipulable),
        "manipulable": _names(graph, reward, "manipulable", manipulable),
        "hidden": _names(graph, reward, "hidden", hidden),
    }
    for late in sorted({*given["context"]} & graph.descendants(reward)):
        raise DowiseError(
            f"{late} can't be context: it is an effect of the reward {reward}, so it is not seen "
            "before the choice; take it out of the context, or turn the arrow"
        )
    if manipulable is not None and given["non-manipulable"]:
        raise DowiseError(
            "give either manipulable or non_manipulable, not both: each says what the other is"
        )
    kinds = list(given)
    for i, one in enumerate(kinds):
        for other in kinds[i + 1 :]:
            for shared in sorted({*given[one]} & {*given[other]}):
                raise DowiseError(
                    f"{shared} can't be both {one} and {other}: {_WHEN[one]}, {_WHEN[other]}; "
                    "keep it in one of the two"
                )
    if manipulable is not None:
        spoken_for = {reward, *given["context"], *given["hidden"], *given["manipulable"]}
        given["non-manipulable"] = tuple(name for name in graph if name not in spoken_for)
    return Roles(reward, given["context"], given["non-manipulable"], given["hidden"])


def known_variable(graph: CausalGraph, name: str, role: str, hidden: Container[object] = ()) -> str:
    """The name, which must be in the graph; `role` says what it should be."""
    if isinstance(name, str) and name in graph:
        return name
    refuse_hidden(name, hidden)
    raise DowiseError(
        f"unknown {role} {name!r}{suggestion(str(name), graph.variables)}: "
        f"the graph's variables are {', '.join(graph.variables)}"
    )


def refuse_hidden(name: object, hidden: Container[object], where: str = "") -> None:
    """A hidden variable has no values that anybody could know or set."""
    if isinstance(name, str) and name in hidden:
        raise DowiseError(
            f"{where}{name} is declared hidden, so it is never recorded or set: "
            f"drop it here, or take {name!r} out of hidden"
        )


def names_of(what: str, names: object) -> list[Any]:
    """One name, or several in a list; None is none."""
    if names is None or isinstance(names, str):
        return [] if names is None else [names]
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        raise DowiseError(f"{what}={names!r}: give a name, or a list of names")
    return list(names)


def _names(graph: CausalGraph, reward: str, role: str, given: Names) -> tuple[str, ...]:
    names = names_of(role.replace("-", "_"), given)
    for name in names:
        known_variable(graph, name, f"{role} variable")
        if name == reward:
            raise DowiseError(f"{name} can't be both reward and {role}: give it one role")
    return tuple(sorted(set(names)))
