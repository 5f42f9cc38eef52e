"""Edges that a graph lacks, and the factors that each of them would change.

An alternative is the graph with one additional edge: an arrow u -> v, u being any variable that is
not a descendant of v, or a hidden cause u <-> v. Both graphs are factorised in one order of
variables that fits both: u comes before v. There the factors of v differ, and those of later
variables that hidden causes join to v; all others are equal and carry no evidence. Edges into the
context are never alternatives, because the context is determined by enrolment.

The graph is `problem.possible`, which includes doubtful and soft edges. Soft edges follow an order.
Of the arrows against it, those from variables that can be set are alternatives, too: without them,
v does not depend on whether u is set, and to which value (`Reversal`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise.errors import DowiseError
from dowise.graph.adjacency import Adjacency, bits, closure
from dowise.graph.edges import EdgeName
from dowise.graph.transforms import (
    FactorOrder,
    factor_order,
    predecessors,
    tied_within,
    with_parents,
)
from dowise.model.factors import MAX_ENTRIES, NONE, TableLayout
from dowise.problem import Problem


class SideTable(NamedTuple):
    """Table of a factor on one side: its component as bits, and its axes, the variable last."""

    component: int
    family: tuple[int, ...]


class Feature(NamedTuple):
    """Part of a row that may shift the outcome: a component, as bits, and values of variables."""

    component: int
    variables: tuple[int, ...]


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
    ends: tuple[int, int]
    """Positions of the edge's ends."""

    @property
    def text(self) -> str:
        """Edge as text: "A -> B" or "A <-> B"."""
        return str(self.edge)

    def tables(self, v: int, cut: int) -> tuple[SideTable, SideTable]:
        """Return the factor of v without the edge and with it, if `cut` is set."""
        within = self.before[v] & ~cut
        return _table(self.without, v, within), _table(self.having, v, within)

    def is_informative(self, sets: Iterable[int]) -> bool:
        """Return True if records under some of these intervention sets can tell about the edge.

        For that some row without the edge must be several rows with it: because they differ in
        another variable, or in what was set.
        """
        cells = defaultdict(set)
        for v in self.changed:
            for cut in sets:
                if not cut >> v & 1:
                    null, wide = self.tables(v, cut)
                    cells[v, null].add(wide)
        return any(
            len(wides) > 1 or len(wide.family) > len(null.family)
            for (_, null), wides in cells.items()
            for wide in wides
        )

    def features(self, v: int, cut: int) -> Iterator[Feature]:
        """Yield the features of rows with the edge: outcomes shift alike in rows that share one.

        For an arrow that is the value of its start. For a hidden cause, these are the value of each
        variable that only the larger table depends on, and the component, which differs by what was
        set; each with the value of the other end if the smaller table depends on that, because a
        hidden cause shifts the rows of its other end in opposite directions.
        """
        null, wide = self.tables(v, cut)
        extra = sorted({*wide.family} - {*null.family})
        if not self.edge.is_bidirected:
            yield from (Feature(0, (u,)) for u in extra)
            return
        ends = tuple(u for u in self.ends if u != v and u in null.family)
        yield from (Feature(0, (u, *ends)) for u in extra)
        yield Feature(wide.component, ends)


def _table(edges: Adjacency, v: int, within: int) -> SideTable:
    component = closure(1 << v, edges.siblings, within=within)
    return SideTable(component, (*bits(with_parents(edges, component) & ~(1 << v)), v))


class Reversal(Alternative):
    """Arrow u -> v against the order, in which v is before u.

    Without it v has the same distribution whatever u is set to, or if it is not set.
    """

    def tables(self, v: int, cut: int) -> tuple[SideTable, SideTable]:
        """Return the factor of v, and the factor that also depends on what u was set to."""
        null, u = _table(self.without, v, self.before[v] & ~cut), self.ends[0]
        return null, SideTable(null.component, (u, *null.family)) if cut >> u & 1 else null

    def features(self, v: int, cut: int) -> Iterator[Feature]:  # noqa: ARG002
        """Yield what u was set to."""
        u = self.ends[0]
        yield Feature(0, (u,)) if cut >> u & 1 else Feature(1 << u, ())


@lru_cache(maxsize=32)
def alternatives_of(problem: Problem) -> tuple[Alternative, ...]:
    """Return every edge that the graph lacks and that may change a factor some reward needs."""
    edges, (context, useful) = problem.possible.adjacency, _parts(problem)
    along = [_alternative(edge, u, v, edges, context, useful) for edge, u, v in _lacking(problem)]
    order = FactorOrder(problem.possible, problem.context, problem.reward, problem.order)
    before = tuple(order.before)
    against = [
        Reversal(edge, order.edges, order.edges, before, (v,), (u, v))
        for edge, u, v in _against_order(problem, order)
    ]
    return (*along, *against)


def count_alternatives(problem: Problem) -> int:
    """Return the number of alternatives without building them (a minute for 150 variables)."""
    order = FactorOrder(problem.possible, problem.context, problem.reward, problem.order)
    return len(_lacking(problem)) + len(_against_order(problem, order))


def _against_order(problem: Problem, order: FactorOrder) -> list[tuple[EdgeName, int, int]]:
    """Return the arrows from settable variables that only the order of soft edges excludes."""
    graph, names = problem.possible, problem.possible.variables
    drawn, possible = problem.graph.adjacency.children, graph.adjacency.children
    later = {v: closure(1 << v, possible) & ~closure(1 << v, drawn) for v in bits(order.useful)}
    return [
        (EdgeName.from_ends(names[u], "->", names[v]), u, v)
        for u in bits(graph.mask(problem.manipulable))
        for v in bits(order.useful & ~order.context)
        if later[v] >> u & 1
    ]


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
    return Alternative(edge, without, having, tuple(before), changed, (u, v))


def _with_edge(edge: EdgeName, u: int, v: int, edges: Adjacency) -> Adjacency:
    def add(masks: tuple[int, ...], i: int, member: int) -> tuple[int, ...]:
        return tuple(m | 1 << member if w == i else m for w, m in enumerate(masks))

    if edge.is_bidirected:
        return replace(edges, siblings=add(add(edges.siblings, u, v), v, u))
    return replace(edges, parents=add(edges.parents, v, u), children=add(edges.children, u, v))


class Contrasts:
    """Tables of all alternatives of a problem, under each of some intervention sets.

    A *contrast* is an alternative that records can tell about, and a variable whose factors it
    changes. A record falls into a row of the factor without the edge, the *stratum*, and into one
    of the factor with it, the *cell*, which has *features*. There is a table of strata and of cells
    for each component that some set leaves the variable. Tables of a contrast are next to each
    other.
    """

    def __init__(self, problem: Problem, sets: tuple[int, ...]) -> None:
        self.alternatives = alternatives_of(problem)
        self.sets = sets
        self.places = {cut: p for p, cut in enumerate(sets)}
        """Position of each set in `tables`."""
        informative = np.array([x.is_informative(sets) for x in self.alternatives], dtype=bool)
        pairs = [
            (a, v)
            for a, alternative in enumerate(self.alternatives)
            for v in alternative.changed
            if informative[a]
        ]
        self.owners = np.array([a for a, _ in pairs], dtype=np.int64)
        """Alternative of every contrast."""
        self.variables = np.array([v for _, v in pairs], dtype=np.int64)
        self.later = np.zeros((len(problem.graph), len(pairs)), dtype=bool)
        """later[u, contrast]: True if u comes after the contrast's variable in its order."""
        numbers: tuple[dict[object, int], ...] = ({}, {}, {})
        families: tuple[list[tuple[int, ...]], ...] = ([], [], [])
        bounds = [[0, 0, 0]]
        rows: dict[tuple[int, int], list[int]] = {}
        for i, (a, v) in enumerate(pairs):
            alternative = self.alternatives[a]
            self.later[:, i] = [not alternative.before[v] >> u & 1 for u in range(len(self.later))]
            for p, cut in enumerate(sets):
                if cut >> v & 1:
                    continue
                null, wide = alternative.tables(v, cut)
                keys: list[tuple[int, object, tuple[int, ...]]] = [
                    (0, null, null.family),
                    (1, wide, wide.family),
                    *((2, x, (*x.variables, v)) for x in alternative.features(v, cut)),
                ]
                row = rows[p, i] = []
                for kind, key, family in keys:
                    number = numbers[kind].setdefault((i, key), len(families[kind]))
                    families[kind].extend([family] * (number == len(families[kind])))
                    row.append(number)
            bounds.append([len(numbered) for numbered in families])
        self.tables = np.full(
            (len(sets), len(pairs), max(map(len, rows.values()), default=2)), NONE, dtype=np.int64
        )
        """tables[p, contrast]: under a set, the tables of strata, of cells, and of each feature.

        NONE if the variable itself is set, and where there are fewer features.
        """
        for (p, i), row in rows.items():
            self.tables[p, i, : len(row)] = row
        sizes = np.array([len(domain) for domain in problem.domains.values()])
        self.layouts = [TableLayout(tables, sizes) for tables in families]
        """Layouts of the tables of strata, of cells, and of features."""
        self.sizes = sizes[self.variables] if pairs else np.zeros(0, dtype=np.int64)
        """Number of values of every contrast's variable."""
        self.first = np.array(
            [layout.starts[b] for layout, b in zip(self.layouts, np.transpose(bounds), strict=True)]
        )
        """first[kind, contrast]: first entry of a contrast's tables of one kind."""
        strata, _, features = np.diff(self.first) // self.sizes
        self.rows = strata
        """Number of strata of every contrast."""
        self.feature_rows = features
        """Number of features of every contrast."""
        self.shares = self._shares(informative)
        """Share of every alternative in the mean of e-values; 0 if no record can tell about it."""
        self._lay_out_pairs(problem, rows)

    def _lay_out_pairs(self, problem: Problem, rows: Mapping[tuple[int, int], list[int]]) -> None:
        """Lay out the pairs of a stratum and a feature: those that some set makes possible.

        `rows[p, contrast]` are the tables under a set. Raise if all tables together are too large.
        """
        strata, _, features = self.layouts
        found = [set[int]() for _ in strata.families]
        contrasts = np.zeros(len(found), dtype=np.int64)
        for (_, i), (stratum, _, *tables) in rows.items():
            found[stratum].update(tables)
            contrasts[stratum] = i
        sizes, counts = self.sizes[contrasts].tolist(), self.feature_rows[contrasts]
        widths = [  # one more, which stays 0, for all impossible pairs
            1 + sum(features.cells[table] // size for table in tables)
            for tables, size in zip(found, sizes, strict=True)
        ]
        pairs = [
            cells // size * width
            for cells, size, width in zip(strata.cells, sizes, widths, strict=True)
        ]
        entries = sum(layout.entries for layout in self.layouts) + sum(pairs) + int(counts.sum())
        if entries > MAX_ENTRIES:
            raise DowiseError(self._size_message(problem, entries), code="too-large")
        self.pair_count = sum(pairs)
        """Number of pairs of a stratum and a feature."""
        first_pairs, first_slots = np.cumsum([0, *pairs]), np.cumsum([0, *counts])
        self.pairs = np.column_stack([first_pairs[:-1], widths, first_slots[:-1]]).astype(np.int64)
        """pairs[table of strata]: the first pair, the number of pairs of a row, the first slot."""
        self.slots = np.zeros(first_slots[-1], dtype=np.int32)
        """slots[first slot + feature]: position of a feature's pair in those of a row; 0 if it is
        impossible."""
        for stratum, (i, size) in enumerate(zip(contrasts.tolist(), sizes, strict=True)):
            width = 1
            for table in sorted(found[stratum]):
                first = first_slots[stratum] + (features.starts[table] - self.first[2, i]) // size
                length = features.cells[table] // size
                self.slots[first : first + length] = np.arange(width, width + length)
                width += length

    def _shares(self, informative: BoolArray) -> FloatArray:
        """Return equal shares for all pairs of variables, divided among the edges of a pair."""
        pairs = [frozenset(alternative.ends) for alternative in self.alternatives]
        times = Counter(pair for pair, tells in zip(pairs, informative, strict=True) if tells)
        shares = [
            1 / (len(times) * times[pair]) if tells else 0.0
            for pair, tells in zip(pairs, informative, strict=True)
        ]
        return np.array(shares, dtype=np.float64)

    def _size_message(self, problem: Problem, entries: int) -> str:
        layout = self.layouts[1]
        v = problem.graph.variables[layout.families[layout.cells.index(max(layout.cells))][-1]]
        return (
            f"the tables of all {len(self.alternatives)} alternatives to the graph have "
            f"{entries:.1e} entries, and the limit is {MAX_ENTRIES:.0e}; the widest "
            f"are those of {v}: turn evidence off, remove causes of {v}, or make domains smaller"
        )


def table_axes(layout: TableLayout) -> tuple[IntArray, IntArray, IntArray]:
    """Return (first, axes, steps): table t has the axes and steps [first[t] : first[t + 1]]."""
    families, strides = layout.families, layout.strides
    first = np.cumsum([0, *map(len, families)])
    axes = np.array([v for family in families for v in family], dtype=np.int64)
    return first, axes, strides[np.repeat(np.arange(len(families)), np.diff(first)), axes]
