"""What a causal graph must obey, with a plain word for everything that is wrong with one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import pairwise

from dowise.errors import DowiseError
from dowise.graph.adjacency import Adjacency
from dowise.graph.edges import texts_of

__all__ = ["check_names", "check_pairs", "refuse_cycle", "refuse_loops"]

Edge = tuple[str, str]


def check_pairs(edges: Iterable[Edge]) -> list[Edge]:
    """The edges, each of which must be two names."""
    if isinstance(edges, str):
        raise DowiseError(f"{edges!r} is a text: CausalGraph.parse reads it")
    pairs = list(edges)
    for edge in pairs:
        if isinstance(edge, str) or len(edge) != 2:
            raise DowiseError(f"an edge is a pair of names such as ('X', 'Y'), not {edge!r}")
    return pairs


def check_names(names: Iterable[str], once: bool) -> None:
    """Refuse what is no name, and if each may occur `once` only, a name that comes again."""
    names = list(names)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise DowiseError(f"a variable's name must be a non-empty text, not {name!r}")
    seen: set[str] = set()
    for name in names if once else ():
        if name in seen:
            raise DowiseError(f"the variable {name!r} is listed twice: name each variable once")
        seen.add(name)


def refuse_loops(directed: Iterable[Edge], bidirected: Iterable[Edge]) -> None:
    """Refuse an edge from a variable to itself."""
    for cause, effect in directed:
        if cause == effect:
            raise DowiseError(f"{cause} -> {effect}: a variable can't be its own cause")
    for one, other in bidirected:
        if one == other:
            raise DowiseError(
                f"{one} <-> {other}: a hidden common cause needs two different variables"
            )


def refuse_cycle(
    variables: Sequence[str], adjacency: Adjacency, doubtful: Container[str] = ()
) -> None:
    """Refuse a directed cycle, naming one; `doubtful` edges count as if they were there."""
    cycle = [variables[i] for i in adjacency.cycle()]
    if not cycle:
        return
    message = (
        f"the graph has a cycle, {' -> '.join(cycle)}: causes can't go "
        "round in a circle, so remove or turn one of these edges"
    )
    if any(edge in doubtful for edge in texts_of(pairwise(cycle), ())):
        message += (
            "; all doubtful edges together must be acyclic, so an arrow whose direction is unknown "
            "can't be said by two doubtful ones"
        )
    raise DowiseError(message)
