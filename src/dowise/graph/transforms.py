"""Conditioning and latent projection of causal graphs, and the order of their factors.

*Conditioning* is for variables that are known before the choice: a context fixed at its value is no
longer a cause that varies. *Projection* is for variables that can't be set: they go on varying, not
visible to the choice, so the variables that they drive together stay joined by a bidirected edge.

Task 2 of the paper shows the difference. With C known, setting X1 or X2 can be optimal; if C were
projected out, doing nothing would wrongly look possible as well:

>>> from dowise.graph import CausalGraph
>>> task2 = CausalGraph.parse("C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y")
>>> [sorted(s) for s in task2.condition("C").project("Z").pomis("Y")]
[['X1'], ['X2']]
>>> [sorted(s) for s in task2.project(["C", "Z"]).pomis("Y")]
[[], ['X1'], ['X2']]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dowise.errors import DowiseError
from dowise.graph.adjacency import Adjacency, bits, closure
from dowise.graph.causal_graph import CausalGraph


def condition(graph: CausalGraph, context: str | Iterable[str]) -> CausalGraph:
    """Return the graph of the other variables once the context is known.

    The context must be closed under ancestors (section 2), so fixing it removes it. If the
    graph has bidirected edges, knowing a context variable opens the colliders in it: the variables
    that touch one c-component of G[C] become pairwise bidirected.
    """
    edges = graph.adjacency
    fixed = graph.mask(context)
    missing = closure(fixed, edges.parents) & ~fixed
    if missing:
        i = next(bits(missing))
        cause = graph.variables[i]
        effect = graph.variables[next(bits(closure(1 << i, edges.children) & fixed))]
        raise DowiseError(
            f"context must be closed under ancestors: {cause} is a cause of {effect} but is not "
            f"context; add {cause!r} to the context, or take {effect!r} out of it",
            code="invalid-context",
        )
    return _remove(graph, fixed, lambda edges: _open_colliders(edges, fixed))


def project(graph: CausalGraph, hidden: str | Iterable[str]) -> CausalGraph:
    """Return the latent projection (Verma) onto the variables that are not hidden.

    Removing n joins its parents to its children, its children to each other and its siblings to
    its children, the latter two by bidirected edges; a self-edge vanishes. The order of removal
    does not matter. New edges carry no mark.
    """
    removed = graph.mask(hidden)
    return _remove(graph, removed, lambda edges: _bypass(edges, removed))


def _open_colliders(edges: Adjacency, fixed: int) -> Adjacency:
    """Return the edges with the siblings of each c-component of `fixed` joined to each other."""
    siblings = list(edges.siblings)
    unvisited = fixed
    while unvisited:
        component = closure(unvisited & -unvisited, edges.siblings, within=fixed)
        unvisited &= ~component
        touching = 0
        for i in bits(component):
            touching |= edges.siblings[i] & ~fixed
        for i in bits(touching):
            siblings[i] |= touching & ~(1 << i)
    return replace(edges, siblings=tuple(siblings))


def _bypass(edges: Adjacency, removed: int) -> Adjacency:
    """Return the edges with those that represent paths through `removed`."""
    parents, children, siblings = list(edges.parents), list(edges.children), list(edges.siblings)
    for n in bits(removed):
        for i in bits(parents[n]):
            children[i] = (children[i] | children[n]) & ~(1 << n)
        confounded = children[n] | siblings[n]
        for i in bits(children[n]):
            parents[i] = (parents[i] | parents[n]) & ~(1 << n)
            siblings[i] = (siblings[i] | confounded) & ~(1 << i)
        for i in bits(siblings[n]):
            siblings[i] = (siblings[i] | children[n]) & ~(1 << i) & ~(1 << n)
    return Adjacency(tuple(parents), tuple(children), tuple(siblings))


def _remove(
    graph: CausalGraph, removed: int, change: Callable[[Adjacency], Adjacency]
) -> CausalGraph:
    """Return the changed edges among the variables that are not removed.

    Edges keep their marks, except that an edge which the change makes without any doubtful edge is
    not doubtful.
    """
    keep = ~removed & (1 << len(graph)) - 1
    names = graph.names(keep)
    marks = dict(graph.marks)
    doubtful = [edge for edge, mark in marks.items() if mark == "?"]
    if doubtful:
        certain = change(graph.without(doubtful).adjacency).restrict(keep)
        for edge in CausalGraph.from_adjacency(names, certain).edge_texts:
            if marks.get(edge) == "?":
                del marks[edge]
    return CausalGraph.from_adjacency(names, change(graph.adjacency).restrict(keep), marks)


FactorKey = tuple[int, int]
"""A variable and its component, the bit set of variables that determines its factor."""
Rank = tuple[int, ...]
"""Keys of a variable that decide which of several comes first in an order."""


class FactorOrder:
    """Order of the variables of a problem, and the factors along it; sets of variables are bits.

    Context comes first, then the ancestors of reward and context, then the rest, which no reward
    needs; or the order is given. Under an intervention on X the factor of v is determined by its
    *component* T(v, X): the c-component of v among the variables before it that X leaves alone. Two
    interventions share the factor of v if and only if they leave it the same component, so the key
    of a factor is (v, T); docs/hidden.md has the proof. A hidden cause of variables that no reward
    needs joins nothing.
    """

    def __init__(
        self,
        graph: CausalGraph,
        context: Iterable[str],
        reward: str,
        order: Iterable[str] | None = None,
        ranks: Sequence[Rank] | None = None,
    ) -> None:
        self.graph = graph
        """Graph with every edge that may exist."""
        self.context = graph.mask(context)
        self.useful = closure(self.context | graph.mask(reward), graph.adjacency.parents)
        """Ancestors of reward and context."""
        self.edges = tied_within(graph.adjacency, self.useful)
        if order is None:
            pools = self.context, self.useful, (1 << len(graph)) - 1
            self.variables = factor_order(self.edges, pools, ranks)
        else:
            positions = {name: v for v, name in enumerate(graph.variables)}
            self.variables = [positions[name] for name in order]
        self.before = predecessors(self.variables, len(graph))
        """For each variable, itself and its predecessors."""

    def key(self, v: int, cut: int) -> FactorKey:
        """Return the key of the factor of v if the variables of `cut` are set."""
        return v, closure(1 << v, self.edges.siblings, within=self.before[v] & ~cut)

    def scope(self, key: FactorKey) -> int:
        """Return the variables on which a factor is conditioned: component and parents."""
        v, component = key
        return with_parents(self.edges, component) & ~(1 << v)


def factor_order(
    edges: Adjacency,
    pools: Iterable[int],
    ranks: Sequence[Rank] | None = None,
    by_scope: bool = True,
) -> list[int]:
    """Return the one order of variables in which all factors are written, pool by pool.

    Each pool must have all its parents in itself or in earlier pools. Causes come before effects.
    Among the variables that are ready, the one whose factor has the smallest scope comes first: the
    variables of its c-component among those already placed, and their parents. That keeps tables
    small if there are hidden common causes. Ties go to the smallest rank, then to the first name;
    without `by_scope` ranks alone decide.

    >>> chain = Adjacency.from_edges(4, [(3, 2), (2, 0), (1, 0)], bidirected=[(0, 1)])
    >>> factor_order(chain, [0b1000, 0b0111])
    [3, 1, 2, 0]
    """
    order: list[int] = []
    placed = 0
    for pool in pools:
        while remaining := pool & ~placed:
            ready = [v for v in bits(remaining) if not edges.parents[v] & ~placed]
            keys: dict[int, Rank] = {v: ranks[v] if ranks else () for v in ready}
            if by_scope:
                for v in ready:
                    component = closure(1 << v, edges.siblings, within=placed | 1 << v)
                    keys[v] = with_parents(edges, component).bit_count(), *keys[v]
            v = min(ready, key=lambda v: (keys[v], v))
            order.append(v)
            placed |= 1 << v
    return order


def predecessors(order: Iterable[int], size: int) -> list[int]:
    """Return, for each of `size` variables, the bit set of itself and its predecessors."""
    before, placed = [0] * size, 0
    for v in order:
        placed |= 1 << v
        before[v] = placed
    return before


def tied_within(edges: Adjacency, variables: int) -> Adjacency:
    """Return the edges with bidirected ones only among `variables`."""
    siblings = (
        mask & variables if variables >> v & 1 else 0 for v, mask in enumerate(edges.siblings)
    )
    return replace(edges, siblings=tuple(siblings))


def with_parents(edges: Adjacency, variables: int) -> int:
    """Return a set of variables together with all their parents."""
    result = variables
    for v in bits(variables):
        result |= edges.parents[v]
    return result
