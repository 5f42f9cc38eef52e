"""Sets of doubtful edges that may be present, and the factors of each variable under them.

Let s be a set of doubtful edges, and G_s the graph with these alone of the doubtful ones. All sets
share the order of the full graph. The key (v, T) of the full graph becomes (v, T_s): T_s is the
c-component of v within T in G_s, and its table is the smaller one over T_s and the parents of T_s
in G_s. So the circuit of the full graph serves every s; only where its rows are read differs.

What v's tables are depends on little of s: on the bidirected edges inside the c-component of v
among its predecessors in G_s, and on the arrows into that. A *version* of a variable is one such
choice with its tables. Versions are put together in three steps, so that a few edges in each place
do not multiply to many sets of edges:

- a *component* is a c-component of the full graph: components are independent of each other;
- a *pattern* says which doubtful bidirected edges of a component are there, and thereby splits it
  into districts, the c-components that are left;
- a *district* has *alternatives*: which of the doubtful arrows into it are there. Given the
  pattern, districts are independent of each other.

Where there would be too many patterns or alternatives, the likeliest a priori are kept, weighted so
that every edge keeps its prior; `kept` is the prior probability that the truth is among them.
docs/hidden.md has the proof.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import log, prod
from typing import TypeVar

import numpy as np

from dowise._core.types import IntArray
from dowise.errors import DowiseError
from dowise.graph.adjacency import Adjacency, bits, closure
from dowise.graph.edges import EdgeName
from dowise.graph.transforms import with_parents
from dowise.model.factors import MAX_ENTRIES, NONE, FactorLayout, TableLayout

Element = TypeVar("Element")
_EVEN = 1e-9  # log odds below which presence and absence are equally likely
_MIN_COST = 1.0
_MAX_SWEEPS = 1000


def likeliest_subsets(
    probabilities: Mapping[Element, float], most: int
) -> list[tuple[frozenset[Element], float]]:
    """Return at most `most` subsets, roughly the likeliest, each with its probability.

    Every subset differs from the likeliest one by some flipped elements. Subsets come in the order
    of the cost of these: the log odds of each, but at least 1, so that few flips come before many.
    A subset whose most expensive flip is the i-th leads to those in which the (i+1)-th is flipped
    too, or instead of it. A subset comes together with the one in which all elements with even odds
    are flipped, which is equally likely.

    >>> [(sorted(s), round(p, 3)) for s, p in likeliest_subsets({"a": 0.9, "b": 0.5}, 4)]
    [(['a'], 0.45), (['a', 'b'], 0.45), ([], 0.05), (['b'], 0.05)]
    """
    odds = {x: log(p) - log(1 - p) for x, p in probabilities.items()}
    even = frozenset(x for x in odds if abs(odds[x]) < _EVEN)
    usual = frozenset(x for x in odds if odds[x] > 0 and x not in even)
    things = sorted(odds, key=lambda x: abs(odds[x]))
    costs = [max(abs(odds[x]), _MIN_COST) for x in things]
    subsets: dict[frozenset[Element], float] = {}
    queue: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    while queue and len(subsets) < most:
        cost, turned = heapq.heappop(queue)
        subset = usual ^ frozenset(things[i] for i in turned)
        for member in (subset, subset ^ even):
            chances = (p if x in member else 1 - p for x, p in probabilities.items())
            subsets[member] = prod(chances)
        last = turned[-1] if turned else -1
        if last + 1 < len(things):
            more = round(cost + costs[last + 1], 9)
            heapq.heappush(queue, (more, (*turned, last + 1)))
            if turned:
                heapq.heappush(queue, (round(more - costs[last], 9), (*turned[:-1], last + 1)))
    return list(subsets.items())[:most]


def fitted(
    subsets: Sequence[tuple[frozenset[Element], float]], probabilities: Mapping[Element, float]
) -> list[float]:
    """Return weights of some subsets under which every element keeps its probability.

    By iterative proportional fitting: of all weights with these margins they are the closest to the
    probabilities of the subsets (Csiszár 1975), and equal to them if all subsets are present.
    """
    weights = np.array([p for _, p in subsets], dtype=np.float64)
    weights /= weights.sum()
    if len(subsets) == 2 ** len(probabilities):
        return [float(w) for w in weights]
    there = {x: np.array([x in subset for subset, _ in subsets]) for x in probabilities}
    open_things = [x for x, held in there.items() if held.any() and not held.all()]
    for _ in range(_MAX_SWEEPS):
        off = 0.0
        for x in open_things:
            share = float(weights[there[x]].sum())
            off = max(off, abs(share - probabilities[x]))
            weights = np.where(
                there[x],
                weights * (probabilities[x] / share),
                weights * ((1 - probabilities[x]) / (1 - share)),
            )
        if off < 1e-13:
            break
    return [float(w) for w in weights / weights.sum()]


MAX_PATTERNS = 128  # per component
MAX_ALTERNATIVES = 512  # per district of one variable
MAX_JOINED = 64  # per district of several variables

Subset = frozenset["DoubtfulEdge"]
"""Doubtful edges that are present."""


@dataclass(frozen=True)
class DoubtfulEdge:
    """Arrow from `left` to `right`, or hidden cause of both, with its prior probability."""

    text: str
    left: int
    right: int
    is_arrow: bool
    prior: float

    def joins(self, variables: int) -> bool:
        """Return True if it is a hidden cause of two of these variables."""
        return not self.is_arrow and bool(variables >> self.left & variables >> self.right & 1)

    def leads_into(self, variables: int) -> bool:
        """Return True if it is an arrow into one of these variables."""
        return self.is_arrow and bool(variables >> self.right & 1)


@dataclass(frozen=True)
class TableVersion:
    """Factors of one variable: for each key (v, T) of the full graph, T_s and the table's axes."""

    variable: int
    tables: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True)
class District:
    """Variables joined by hidden causes, and the alternatives of arrows into them."""

    alternatives: tuple[tuple[Subset, tuple[TableVersion, ...]], ...]
    priors: tuple[float, ...]
    """Prior probability of each alternative."""
    kept: float
    """Prior probability that the true alternative was not left out."""


@dataclass(frozen=True)
class Component:
    """Patterns of a c-component: bidirected edges, and the districts that they make."""

    variables: int
    patterns: tuple[tuple[Subset, tuple[District, ...]], ...]
    priors: tuple[float, ...]
    """Prior probability of each pattern."""
    kept: float
    """Prior probability that nothing true of the component was left out."""


class Structures:
    """Versions of all variables that doubtful edges allow."""

    def __init__(self, factors: FactorLayout, priors: Mapping[str, float]) -> None:
        self.factors = factors
        self.order = factors.order
        self.scored = self.order.useful & ~self.order.context
        """Variables that carry evidence about edges: not the context, which comes by enrolment."""
        self.edges = tuple(self._edge(text, prior) for text, prior in priors.items())
        self.cut: dict[str, tuple[int, int]] = {}
        """Where there are too many edges: names of variables -> (number of sets, number kept)."""
        self._districts: dict[tuple[int, Subset], District] = {}
        self.components = tuple(self._component(c) for c in self._joined())
        by_variable: dict[int, dict[TableVersion, None]] = {
            v: {} for v in range(len(factors.variables))
        }
        for version in self._all_versions():
            by_variable[version.variable][version] = None
        for v, known in by_variable.items():
            if not known:  # not scored: as if every edge were present
                known[self._version(v, self.order.edges)] = None
        self.versions = tuple(chain.from_iterable(by_variable.values()))
        """Versions of all variables, those of one variable next to each other."""
        self.numbers = {version: m for m, version in enumerate(self.versions)}
        self.first = np.cumsum([0, *(len(known) for known in by_variable.values())])
        """versions[first[v] : first[v + 1]] are the versions of variable v."""
        self._lay_out()

    def is_open(self, v: int) -> bool:
        """Return True if a variable has several versions."""
        return bool(self.first[v + 1] - self.first[v] > 1)

    @property
    def is_settled(self) -> bool:
        """True if no doubtful edge makes a difference."""
        return len(self.versions) == len(self.factors.variables)

    @cached_property
    def kept(self) -> float:
        """Prior probability that the true set of edges was not left out."""
        return prod(component.kept for component in self.components)

    @cached_property
    def relevant(self) -> frozenset[str]:
        """Edges that make a difference to some factor."""
        relevant = set[str]()
        for component in self.components:
            patterns = [
                (there, frozenset(v for d in districts for _, own in d.alternatives for v in own))
                for there, districts in component.patterns
            ]
            relevant |= _edges_that_matter(patterns)
            for district in {d for _, districts in component.patterns for d in districts}:
                relevant |= _edges_that_matter(district.alternatives)
        return frozenset(relevant)

    # -- components, patterns and districts --------------------------------------------------------

    def _edge(self, text: str, prior: float) -> DoubtfulEdge:
        name, positions = EdgeName.parse(text), self.factors.positions
        left, right = positions[name.left], positions[name.right]
        return DoubtfulEdge(text, left, right, not name.is_bidirected, prior)

    def _joined(self) -> Iterable[int]:
        left = self.order.useful
        while left:
            joined = closure(left & -left, self.order.edges.siblings, within=left)
            left &= ~joined
            if joined & self.scored:
                yield joined

    def _component(self, variables: int) -> Component:
        joining = {e: e.prior for e in self.edges if e.joins(variables)}
        subsets = self._likeliest(joining, MAX_PATTERNS, variables)
        patterns = [(there, self._split(variables, there)) for there, _ in subsets]
        pairs = zip(subsets, patterns, strict=True)
        kept = sum(prior * prod(d.kept for d in own) for (_, prior), (_, own) in pairs)
        return Component(variables, tuple(patterns), tuple(fitted(subsets, joining)), kept)

    def _split(self, variables: int, there: Subset) -> tuple[District, ...]:
        edges = self._without(e for e in self.edges if e.joins(variables) and e not in there)
        districts, left = list[District](), variables
        while left:
            joined = closure(left & -left, edges.siblings, within=left)
            left &= ~joined
            if joined & self.scored:
                inside = frozenset(e for e in there if e.joins(joined))
                districts.append(self._district(joined, inside))
        return tuple(districts)

    def _district(self, variables: int, there: Subset) -> District:
        if (variables, there) not in self._districts:
            arrows = {e: e.prior for e in self.edges if e.leads_into(variables)}
            most = MAX_JOINED if variables.bit_count() > 1 else MAX_ALTERNATIVES
            subsets = self._likeliest(arrows, most, variables)
            alternatives = []
            for into, _ in subsets:
                edges = self._without(e for e in self.edges if e not in there and e not in into)
                own = (self._version(v, edges) for v in bits(variables & self.scored))
                alternatives.append((into, tuple(own)))
            self._districts[variables, there] = District(
                tuple(alternatives), tuple(fitted(subsets, arrows)), sum(p for _, p in subsets)
            )
        return self._districts[variables, there]

    def _likeliest(
        self, priors: Mapping[DoubtfulEdge, float], most: int, variables: int
    ) -> list[tuple[Subset, float]]:
        subsets = likeliest_subsets(priors, most)
        if len(subsets) < 2 ** len(priors):
            names = ", ".join(self.factors.variables[v] for v in bits(variables))
            self.cut[names] = max((2 ** len(priors), most), self.cut.get(names, (0, 0)))
        return subsets

    def _version(self, v: int, edges: Adjacency) -> TableVersion:
        """Return the version of a variable in a graph with these edges."""
        tables = []
        for u, component in self.factors.keys:
            if u == v:
                joined = closure(1 << v, edges.siblings, within=component)
                tables.append((joined, (*bits(with_parents(edges, joined) & ~(1 << v)), v)))
        return TableVersion(v, tuple(tables))

    def _all_versions(self) -> Iterable[TableVersion]:
        for district in self._districts.values():
            for _, versions in district.alternatives:
                yield from versions

    def _without(self, edges: Iterable[DoubtfulEdge]) -> Adjacency:
        parents, siblings = list(self.order.edges.parents), list(self.order.edges.siblings)
        for edge in edges:
            if edge.is_arrow:
                parents[edge.right] &= ~(1 << edge.left)
            else:
                siblings[edge.left] &= ~(1 << edge.right)
                siblings[edge.right] &= ~(1 << edge.left)
        return replace(self.order.edges, parents=tuple(parents), siblings=tuple(siblings))

    # -- layout ------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Number the tables of all versions, and lay out their entries."""
        factors = self.factors
        self.table_of = np.full((len(self.versions), len(factors.keys)), NONE, dtype=np.int64)
        """table_of[version, factor]: the table that replaces a factor of the full graph."""
        families: list[tuple[int, ...]] = []
        for m, version in enumerate(self.versions):
            own = np.flatnonzero(factors.targets == version.variable)
            known: dict[int, int] = {}
            for f, (joined, family) in zip(own, version.tables, strict=True):
                if joined not in known:
                    known[joined] = len(families)
                    families.append(family)
                self.table_of[m, f] = known[joined]
        self.tables = TableLayout(families, factors.sizes)
        """Tables of all versions; a table replaces one or more factors of the full graph."""
        if self.tables.entries > MAX_ENTRIES:
            raise DowiseError(self._size_message(), code="too-large")

    def tables_under(self, sets: Iterable[int]) -> IntArray:
        """Return tables[p, version], the table that counts under the p-th intervention set.

        It is NONE if the variable is set, or if no arm needs the factor.
        """
        variables = np.array([version.variable for version in self.versions])
        tables = []
        for cut in sets:
            factor = self.factors.under(cut)[variables]
            table = self.table_of[np.arange(len(variables)), factor]
            tables.append(np.where(factor == NONE, NONE, table))
        return np.array(tables)

    def _size_message(self) -> str:
        cells = self.tables.cells
        v = int(self.tables.targets[cells.index(max(cells))])
        return (
            f"the tables of all sets of doubtful edges have {self.tables.entries:.1e} entries, and "
            f"the limit is {MAX_ENTRIES:.0e}; the widest are those of {self.factors.variables[v]}. "
            "Make some edges certain, or domains smaller"
        )


def _edges_that_matter(choices: Iterable[tuple[Subset, object]]) -> set[str]:
    """Return the edges whose presence changes the tables, or may do so as far as is known."""
    made = dict(choices)
    texts = set()
    for edge in frozenset().union(*made):
        alone = [s - {edge} for s in made if edge in s and s - {edge} in made]
        if not alone or any(made[s] != made[s | {edge}] for s in alone):
            texts.add(edge.text)
    return texts
