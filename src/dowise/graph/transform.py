"""Two ways to take variables out of a causal graph, which must not be confused.

*Conditioning* is for what is known before the choice: a context fixed at its value stops being a
cause that varies. *Projection* is for what can't be set: it goes on varying, unseen by the choice,
so whatever it drives together stays tied by a bidirected edge.

Task 2 of the paper tells them apart. With C known, setting X1 or X2 can be best; were C projected
out, doing nothing would wrongly look possible as well:

>>> from dowise.graph import CausalGraph
>>> task2 = CausalGraph.parse("C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y")
>>> [sorted(s) for s in task2.condition("C").project("Z").pomis("Y")]
[['X1'], ['X2']]
>>> [sorted(s) for s in task2.project(["C", "Z"]).pomis("Y")]
[[], ['X1'], ['X2']]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dowise.errors import DowiseError
from dowise.graph.adjacency import Adjacency
from dowise.graph.bits import bits, closure
from dowise.graph.causal_graph import CausalGraph

__all__ = ["condition", "project"]


def condition(graph: CausalGraph, context: str | Iterable[str]) -> CausalGraph:
    """The graph of the other variables once the context is known.

    The context must be closed under ancestors (section 2), so fixing it removes it. Where the
    graph has bidirected edges, knowing a context variable opens the colliders in it: the variables
    that touch one c-component of G[C] become pairwise bidirected.
    """
    edges = graph.adjacency
    known = graph.mask(context)
    missing = closure(known, edges.parents) & ~known
    if missing:
        absent = next(bits(missing))
        seen = next(bits(closure(1 << absent, edges.children) & known))
        raise DowiseError(
            f"context must be closed under ancestors: {graph.variables[absent]} is a cause of "
            f"{graph.variables[seen]} but is not context; add {graph.variables[absent]!r} to the "
            f"context, or take {graph.variables[seen]!r} out of it"
        )

    return _transformed(graph, known, lambda edges: _opened(edges, known))


def project(graph: CausalGraph, hidden: str | Iterable[str]) -> CausalGraph:
    """The latent projection (Verma) of the graph onto the variables that are not hidden.

    Removing n joins its parents to its children, its children to each other and its siblings to
    its children, the latter two by bidirected edges; a self-edge vanishes. The order of removal
    does not matter. Edges that this makes carry no mark.
    """
    gone = graph.mask(hidden)
    return _transformed(graph, gone, lambda edges: _projected(edges, gone))


def _opened(edges: Adjacency, known: int) -> Adjacency:
    """With the siblings of each c-component of what is known tied to each other."""
    siblings = list(edges.siblings)
    unvisited = known
    while unvisited:
        component = closure(unvisited & -unvisited, edges.siblings, within=known)
        unvisited &= ~component
        touching = 0
        for i in bits(component):
            touching |= edges.siblings[i] & ~known
        for i in bits(touching):
            siblings[i] |= touching & ~(1 << i)
    return replace(edges, siblings=tuple(siblings))


def _projected(edges: Adjacency, gone: int) -> Adjacency:
    """With the edges that stand for paths through what is gone."""
    parents, children, siblings = list(edges.parents), list(edges.children), list(edges.siblings)
    for n in bits(gone):
        for i in bits(parents[n]):
            children[i] = (children[i] | children[n]) & ~(1 << n)
        confounded = children[n] | siblings[n]
        for i in bits(children[n]):
            parents[i] = (parents[i] | parents[n]) & ~(1 << n)
            siblings[i] = (siblings[i] | confounded) & ~(1 << i)
        for i in bits(siblings[n]):
            siblings[i] = (siblings[i] | children[n]) & ~(1 << i) & ~(1 << n)
    return Adjacency(tuple(parents), tuple(children), tuple(siblings))


def _transformed(
    graph: CausalGraph, gone: int, change: Callable[[Adjacency], Adjacency]
) -> CausalGraph:
    """The changed edges among the variables that are not gone.

    Edges keep their marks, but one that the change makes without any doubtful edge is not doubtful.
    """
    keep = ~gone & (1 << len(graph)) - 1
    names = graph.names(keep)
    marks = dict(graph.marks)
    doubtful = [edge for edge, mark in marks.items() if mark == "?"]
    if doubtful:
        sure = change(graph.without(doubtful).adjacency).restrict(keep)
        for edge in CausalGraph.from_adjacency(names, sure).edge_texts:
            if marks.get(edge) == "?":
                del marks[edge]
    return CausalGraph.from_adjacency(names, change(graph.adjacency).restrict(keep), marks)
