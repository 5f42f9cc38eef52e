"""Edges that a graph lacks, and the factors that each of them would change.

An alternative is the graph with one additional edge: an arrow u -> v, u being any variable that is
not a descendant of v, or a hidden cause u <-> v. Both graphs are factorised in one order of
variables that fits both: u comes before v. There the factors of v differ, and those of later
variables that hidden causes join to v; all others are equal and carry no evidence. Edges into the
context are never alternatives, because the context is determined by enrolment.

The graph is `problem.possible`, which includes doubtful edges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from dowise._core.types import IntArray
from dowise.errors import DowiseError
from dowise.graph.adjacency import Adjacency, bits, closure
from dowise.graph.edges import EdgeName
from dowise.graph.transforms import factor_order, predecessors, tied_within, with_parents
from dowise.model.factors import MAX_ENTRIES, NONE, TableLayout
from dowise.problem import Problem


class SideTable(NamedTuple):
    """Table of a factor on one side: its component as bits, and its axes, the variable last."""

    component: int
    family: tuple[int, ...]


@dataclass(frozen=True)
class Alternative:
    """Graph with one additional edge, and an order of variables that fits both graphs."""

    edge: EdgeName
    without: Adjacency
    """Edges among relevant variables, without this one."""
    having: Adjacency
    before: tuple[int, ...]
    """For each variable, the bit set of itself and its predecessors."""
    changed: tuple[int, ...]
    """Variables whose factors differ."""

    @property
    def text(self) -> str:
        """Edge as text: "A -> B" or "A <-> B"."""
        return str(self.edge)

    def tables(self, v: int, cut: int) -> tuple[SideTable, SideTable]:
        """Return the factor of v without the edge and with it, if `cut` is set."""
        within = self.before[v] & ~cut
        return _table(self.without, v, within), _table(self.having, v, within)


def _table(edges: Adjacency, v: int, within: int) -> SideTable:
    component = closure(1 << v, edges.siblings, within=within)
    return SideTable(component, (*bits(with_parents(edges, component) & ~(1 << v)), v))


@lru_cache(maxsize=32)
def alternatives_of(problem: Problem) -> tuple[Alternative, ...]:
    """Return every edge that the graph lacks and that may change a factor some reward needs."""
    edges, (context, useful) = problem.possible.adjacency, _parts(problem)
    return tuple(
        _alternative(edge, u, v, edges, context, useful) for edge, u, v in _lacking(problem)
    )


def count_alternatives(problem: Problem) -> int:
    """Return the number of alternatives without building them (a minute for 150 variables)."""
    return len(_lacking(problem))


def _parts(problem: Problem) -> tuple[int, int]:
    """Return the context, and the ancestors of the reward and the context, as bits."""
    graph = problem.possible
    context = graph.mask(problem.context)
    useful = closure(context | 1 << problem.reward_position, graph.adjacency.parents)
    return context, useful


def _lacking(problem: Problem) -> list[tuple[EdgeName, int, int]]:
    """Return the missing edges, each with the positions of its ends."""
    graph, names = problem.possible, problem.possible.variables
    edges, present = graph.adjacency, set(graph.edge_texts)
    context, useful = _parts(problem)
    missing = [
        (EdgeName.from_ends(names[u], "->", names[v]), u, v)
        for v in bits(useful & ~context)
        for u in bits((1 << len(graph)) - 1 & ~closure(1 << v, edges.children))
    ]
    missing += [
        (EdgeName.from_ends(names[u], "<->", names[v]), u, v)
        for u, v in combinations(bits(useful), 2)
        if not context >> u & context >> v & 1
    ]
    return [edge for edge in missing if str(edge[0]) not in present]


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
    def add(masks: tuple[int, ...], i: int, member: int) -> tuple[int, ...]:
        return tuple(m | 1 << member if w == i else m for w, m in enumerate(masks))

    if edge.is_bidirected:
        return replace(edges, siblings=add(add(edges.siblings, u, v), v, u))
    return replace(edges, parents=add(edges.parents, v, u), children=add(edges.children, u, v))


class Contrasts:
    """Tables of all alternatives of a problem, under each of some intervention sets.

    A *contrast* is an alternative and a variable whose factors it changes. It has tables on two
    sides, without the edge and with it, one for each component that some set leaves the variable.
    """

    def __init__(self, problem: Problem, sets: tuple[int, ...]) -> None:
        self.alternatives = alternatives_of(problem)
        self.sets = sets
        self.places = {cut: p for p, cut in enumerate(sets)}
        """Position of each set in `tables`."""
        pairs = [(a, v) for a, x in enumerate(self.alternatives) for v in x.changed]
        self.owners = np.array([a for a, _ in pairs], dtype=np.int64)
        """Alternative of every contrast."""
        self.variables = np.array([v for _, v in pairs], dtype=np.int64)
        self.tables = np.full((len(sets), len(pairs), 2), NONE, dtype=np.int64)
        """tables[p, contrast]: tables under a set, without the edge and with it.

        NONE if the variable itself is set.
        """
        numbers: dict[tuple[int, int, int], int] = {}
        families: list[tuple[int, ...]] = []
        for (p, cut), (i, (a, v)) in product(enumerate(sets), enumerate(pairs)):
            if cut >> v & 1:
                continue
            for side, table in enumerate(self.alternatives[a].tables(v, cut)):
                number = numbers.setdefault((i, side, table.component), len(families))
                families += [table.family] * (number == len(families))
                self.tables[p, i, side] = number
        sizes = np.array([len(domain) for domain in problem.domains.values()])
        self.layout = TableLayout(families, sizes)
        if self.layout.entries > MAX_ENTRIES:
            raise DowiseError(self._size_message(problem), code="too-large")

    @cached_property
    def axes(self) -> tuple[IntArray, IntArray, IntArray]:
        """(first, axes, steps): table t has the axes and steps [first[t] : first[t + 1]]."""
        families, strides = self.layout.families, self.layout.strides
        first = np.cumsum([0, *map(len, families)])
        axes = np.array([v for family in families for v in family], dtype=np.int64)
        return first, axes, strides[np.repeat(np.arange(len(families)), np.diff(first)), axes]

    def _size_message(self, problem: Problem) -> str:
        cells = self.layout.cells
        v = problem.graph.variables[self.layout.families[cells.index(max(cells))][-1]]
        return (
            f"the tables of all {len(self.alternatives)} alternatives to the graph have "
            f"{self.layout.entries:.1e} entries, and the limit is {MAX_ENTRIES:.0e}; the widest "
            f"are those of {v}: turn evidence off, remove causes of {v}, or make domains smaller"
        )
