"""The edges that a graph lacks, and which factors each of them would change.

An alternative is the graph with one edge more: an arrow u -> v, u being any variable that does not
follow from v, or a hidden cause u <-> v. Both sides, the graph and the alternative, are written in
one order of variables, which is right for both: u comes before v. There the factors of v differ,
and those of later variables that hidden causes join to v; all others are the same and say nothing.
The context is never judged, because it comes by enrolment.

The graph is `problem.possible`: doubtful edges are in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.graph.adjacency import Adjacency, bits, closure
from dowise.graph.edges import EdgeName
from dowise.graph.transforms import factor_order, predecessors, tied_within, with_parents
from dowise.model.factors import MAX_ENTRIES, NONE, Layout
from dowise.problem import Problem

Integers = NDArray[np.int64]


class Table(NamedTuple):
    """Of a factor: its component as bits, and the axes of its table, the variable last."""

    component: int
    family: tuple[int, ...]


@dataclass(frozen=True)
class Alternative:
    """A graph with one edge more, in an order that suits both."""

    edge: EdgeName
    without: Adjacency
    """The edges that count, this one left out."""
    having: Adjacency
    before: tuple[int, ...]
    """Of each variable: itself and all that come before it."""
    changed: tuple[int, ...]
    """The variables whose factors differ."""

    @property
    def text(self) -> str:
        """The edge, as "A -> B" or "A <-> B"."""
        return str(self.edge)

    def tables(self, v: int, cut: int) -> tuple[Table, Table]:
        """The factor of v where the variables of `cut` are set: without the edge, and with it."""
        within = self.before[v] & ~cut
        return _table(self.without, v, within), _table(self.having, v, within)


def _table(edges: Adjacency, v: int, within: int) -> Table:
    component = closure(1 << v, edges.siblings, within=within)
    return Table(component, (*bits(with_parents(edges, component) & ~(1 << v)), v))


@lru_cache(maxsize=32)
def alternatives_of(problem: Problem) -> tuple[Alternative, ...]:
    """Every edge that the graph lacks and that may change a factor which some reward needs."""
    edges, (context, useful) = problem.possible.adjacency, _parts(problem)
    return tuple(
        _alternative(edge, u, v, edges, context, useful) for edge, u, v in _lacking(problem)
    )


def count_alternatives(problem: Problem) -> int:
    """How many there are, without making them, which takes a minute for 150 variables."""
    return len(_lacking(problem))


def _parts(problem: Problem) -> tuple[int, int]:
    """The context, and all that the reward or the context depends on."""
    graph = problem.possible
    context = graph.mask(problem.context)
    useful = closure(context | 1 << problem.reward_position, graph.adjacency.parents)
    return context, useful


def _lacking(problem: Problem) -> list[tuple[EdgeName, int, int]]:
    """The edges themselves, each with the places of its ends."""
    graph, names = problem.possible, problem.possible.variables
    edges, there = graph.adjacency, set(graph.edge_texts)
    context, useful = _parts(problem)
    found = [
        (EdgeName.from_ends(names[u], "->", names[v]), u, v)
        for v in bits(useful & ~context)
        for u in bits((1 << len(graph)) - 1 & ~closure(1 << v, edges.children))
    ]
    found += [
        (EdgeName.from_ends(names[u], "<->", names[v]), u, v)
        for u, v in combinations(bits(useful), 2)
        if not context >> u & context >> v & 1
    ]
    return [one for one in found if str(one[0]) not in there]


def _alternative(
    edge: EdgeName, u: int, v: int, edges: Adjacency, context: int, useful: int
) -> Alternative:
    wide = _with_edge(edge, u, v, edges)
    useful = closure(useful, wide.parents)
    without, having = tied_within(edges, useful), tied_within(wide, useful)
    size = len(edges.parents)
    before = predecessors(factor_order(having, (context, useful, (1 << size) - 1)), size)
    ends = 1 << v | (1 << u if edge.is_bidirected else 0)
    changed = tuple(
        w
        for w in bits(useful & ~context)
        if not ends & ~closure(1 << w, having.siblings, within=before[w])
    )
    return Alternative(edge, without, having, tuple(before), changed)


def _with_edge(edge: EdgeName, u: int, v: int, edges: Adjacency) -> Adjacency:
    def joined(masks: tuple[int, ...], here: int, there: int) -> tuple[int, ...]:
        return tuple(m | 1 << there if w == here else m for w, m in enumerate(masks))

    if edge.is_bidirected:
        return replace(edges, siblings=joined(joined(edges.siblings, u, v), v, u))
    return replace(
        edges, parents=joined(edges.parents, v, u), children=joined(edges.children, u, v)
    )


class Contrasts:
    """Where all alternatives of a problem count, under each of some intervention sets.

    A *contrast* is an alternative and a variable whose factors it changes. It has tables on two
    sides, without the edge and with it, one for each component that some set leaves the variable.
    """

    def __init__(self, problem: Problem, sets: tuple[int, ...]) -> None:
        self.alternatives = alternatives_of(problem)
        self.sets = sets
        self.places = {cut: p for p, cut in enumerate(sets)}
        """The place of each set in `tables`."""
        pairs = [(a, v) for a, one in enumerate(self.alternatives) for v in one.changed]
        self.owners = np.array([a for a, _ in pairs], dtype=np.int64)
        """The alternative of every contrast."""
        self.variables = np.array([v for _, v in pairs], dtype=np.int64)
        self.tables = np.full((len(sets), len(pairs), 2), NONE, dtype=np.int64)
        """tables[p, contrast]: those under a set, without the edge and with it; NONE where the set
        has the variable itself."""
        numbers: dict[tuple[int, int, int], int] = {}
        families: list[tuple[int, ...]] = []
        for (p, cut), (i, (a, v)) in product(enumerate(sets), enumerate(pairs)):
            if cut >> v & 1:
                continue
            for side, table in enumerate(self.alternatives[a].tables(v, cut)):
                known = numbers.setdefault((i, side, table.component), len(families))
                families += [table.family] * (known == len(families))
                self.tables[p, i, side] = known
        sizes = np.array([len(domain) for domain in problem.domains.values()])
        self.layout = Layout(families, sizes)
        if self.layout.entries > MAX_ENTRIES:
            raise DowiseError(self._too_many(problem))

    @cached_property
    def axes(self) -> tuple[Integers, Integers, Integers]:
        """(first, axes, steps): those of table t are [first[t] : first[t + 1]]."""
        families, strides = self.layout.families, self.layout.strides
        first = np.cumsum([0, *map(len, families)])
        axes = np.array([v for family in families for v in family], dtype=np.int64)
        return first, axes, strides[np.repeat(np.arange(len(families)), np.diff(first)), axes]

    def _too_many(self, problem: Problem) -> str:
        cells = self.layout.cells
        v = problem.graph.variables[self.layout.families[cells.index(max(cells))][-1]]
        return (
            f"the tables of all {len(self.alternatives)} alternatives to the graph have "
            f"{self.layout.entries:.1e} entries, and the limit is {MAX_ENTRIES:.0e}; the widest "
            f"are those of {v}: leave evidence out, draw fewer causes of {v}, or shrink domains"
        )
