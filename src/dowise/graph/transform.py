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

from collections.abc import Iterable
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
    return _without(graph, known, replace(edges, siblings=tuple(siblings)))


def project(graph: CausalGraph, hidden: str | Iterable[str]) -> CausalGraph:
    """The latent projection (Verma) of the graph onto the variables that are not hidden.

    Removing n joins its parents to its children, its children to each other and its siblings to
    its children, the latter two by bidirected edges; a self-edge vanishes. The order of removal
    does not matter.
    """
    edges = graph.adjacency
    gone = graph.mask(hidden)
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
    return _without(graph, gone, Adjacency(tuple(parents), tuple(children), tuple(siblings)))


def _without(graph: CausalGraph, gone: int, edges: Adjacency) -> CausalGraph:
    """The variables that are not gone, and the edges among them."""
    keep = ~gone & (1 << len(graph)) - 1
    return CausalGraph.from_adjacency(graph.names(keep), edges.restrict(keep))
