"""Sets of doubtful edges that may be present, and the factors of each variable under them.

Let s be a set of doubtful edges, and G_s the graph with these alone of the doubtful ones. All sets
share the order of the full graph. The key (v, T) of the full graph becomes (v, T_s): T_s is the
c-component of v within T in G_s, and its table is the smaller one over T_s and the parents of T_s
in G_s. So the circuit of the full graph serves every s; only where its rows are read differs.

The tables of v depend on few edges of s: on the bidirected edges inside the c-component of v among
its predecessors in G_s, and on the arrows into that component. A *version* of a variable is one
such choice with its tables. Versions are combined in three steps, so that a few edges in each
component do not multiply to many sets of edges:

- a *component* is a c-component of the full graph: components are independent of each other;
- a *pattern* is the set of doubtful bidirected edges of a component that are present. It splits the
  component into *districts*, its c-components under this pattern;
- a district has *alternatives*: the sets of doubtful arrows into it that may be present. Given the
  pattern, districts are independent of each other.

Where doubtful hidden causes hold a district together, each of its alternatives comes twice, with
half of the prior each, and once if both are equal. The *wide* tables of v are those above, over T_s
and all parents of T_s. The *narrow* ones leave out the parents of variables that only doubtful
hidden causes join to v: they are over T_s and the parents of v, or of the part of T_s that certain
hidden causes join to v. If a hidden cause is strong and the parents of X hardly move X, the rows of
Y in X <-> Y are alike, which is no evidence against the cause. Wide tables alone would count it as
such; with narrow ones, records under do() lower the odds of the edge by a factor of 2 at most.

If there would be too many patterns or alternatives, the likeliest a priori are kept, weighted so
that every edge keeps its prior; `kept` is the prior probability that the truth is among them.
docs/hidden.md has the proof.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    probabilities: Mapping[Element, float], limit: int
) -> list[tuple[frozenset[Element], float]]:
    """Return at most `limit` subsets, roughly the likeliest, each with its probability.

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
    elements = sorted(odds, key=lambda x: abs(odds[x]))
    costs = [max(abs(odds[x]), _MIN_COST) for x in elements]
    subsets: dict[frozenset[Element], float] = {}
    queue: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    while queue and len(subsets) < limit:
        cost, flipped = heapq.heappop(queue)
        subset = usual ^ frozenset(elements[i] for i in flipped)
        for member in (subset, subset ^ even):
            chances = (p if x in member else 1 - p for x, p in probabilities.items())
            subsets[member] = prod(chances)
        last = flipped[-1] if flipped else -1
        if last + 1 < len(elements):
            longer = round(cost + costs[last + 1], 9)
            heapq.heappush(queue, (longer, (*flipped, last + 1)))
            if flipped:
                heapq.heappush(queue, (round(longer - costs[last], 9), (*flipped[:-1], last + 1)))
    return list(subsets.items())[:limit]


def fit_weights(
    subsets: Sequence[tuple[frozenset[Element], float]], probabilities: Mapping[Element, float]
) -> list[float]:
    """Return weights of some subsets under which every element keeps its probability.

    Iterative proportional fitting finds, among all weights with these margins, the ones closest to
    the probabilities of the subsets (Csiszár 1975). They are equal if all subsets are present.
    """
    weights = np.array([p for _, p in subsets], dtype=np.float64)
    weights /= weights.sum()
    if len(subsets) == 2 ** len(probabilities):
        return [float(w) for w in weights]
    masks = {x: np.array([x in subset for subset, _ in subsets]) for x in probabilities}
    adjustable = [x for x, mask in masks.items() if mask.any() and not mask.all()]
    for _ in range(_MAX_SWEEPS):
        error = 0.0
        for x in adjustable:
            share = float(weights[masks[x]].sum())
            error = max(error, abs(share - probabilities[x]))
            weights = np.where(
                masks[x],
                weights * (probabilities[x] / share),
                weights * ((1 - probabilities[x]) / (1 - share)),
            )
        if error < 1e-13:
            break
    return [float(w) for w in weights / weights.sum()]


MAX_PATTERNS = 128  # per component
MAX_ALTERNATIVES = 512  # per district of one variable
MAX_JOINED = 64  # per district of several variables, wide and narrow ones together

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
    """Arrows that are present, with wide tables or with narrow ones."""
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
    """Versions of all variables that doubtful edges allow.

    Without `has_narrow`, all tables are wide.
    """

    def __init__(
        self, factors: FactorLayout, priors: Mapping[str, float], has_narrow: bool = True
    ) -> None:
        self.factors, self.has_narrow = factors, has_narrow
        self.order = factors.order
        self.scored = self.order.useful & ~self.order.context
        """Variables that carry evidence about edges: not the context, which comes by enrolment."""
        self.edges = tuple(self._edge(text, prior) for text, prior in priors.items())
        self._certain = self._without(self.edges)
        self.cut: dict[str, tuple[int, int]] = {}
        """Components with too many sets of edges: names -> (number of sets, number kept)."""
        self._districts: dict[tuple[int, Subset], District] = {}
        c_components = self._c_components(self.order.useful, self.order.edges)
        self.components = tuple(map(self._component, c_components))
        by_variable: dict[int, dict[TableVersion, None]] = {
            v: {} for v in range(len(factors.variables))
        }
        for district in self._districts.values():
            for version in chain.from_iterable(versions for _, versions in district.alternatives):
                by_variable[version.variable][version] = None
        for v, versions in by_variable.items():
            if not versions:  # not scored: as if every edge were present
                versions[self._version(v, self.order.edges, self.order.edges)] = None
        self.versions = tuple(chain.from_iterable(by_variable.values()))
        """Versions of all variables, those of one variable next to each other."""
        self.numbers = {version: m for m, version in enumerate(self.versions)}
        self.first = np.cumsum([0, *(len(versions) for versions in by_variable.values())])
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
                (
                    present,
                    frozenset(v for d in districts for _, vs in d.alternatives for v in vs),
                )
                for present, districts in component.patterns
            ]
            relevant |= _edges_that_matter(patterns)
            for district in {d for _, districts in component.patterns for d in districts}:
                tables: dict[Subset, tuple[TableVersion, ...]] = {}
                for into, versions in district.alternatives:
                    tables[into] = (*tables.get(into, ()), *versions)
                relevant |= _edges_that_matter(tables.items())
        return frozenset(relevant)

    # -- components, patterns and districts --------------------------------------------------------

    def _edge(self, text: str, prior: float) -> DoubtfulEdge:
        name, positions = EdgeName.parse(text), self.factors.positions
        left, right = positions[name.left], positions[name.right]
        return DoubtfulEdge(text, left, right, not name.is_bidirected, prior)

    def _c_components(self, variables: int, edges: Adjacency) -> Iterator[int]:
        """Yield the c-components among these variables that carry evidence about edges."""
        while variables:
            joined = closure(variables & -variables, edges.siblings, within=variables)
            variables &= ~joined
            if joined & self.scored:
                yield joined

    def _component(self, variables: int) -> Component:
        joining = {e: e.prior for e in self.edges if e.joins(variables)}
        subsets = self._likeliest(joining, MAX_PATTERNS, variables)
        patterns = [(present, self._split(variables, present)) for present, _ in subsets]
        priors = [prior for _, prior in subsets]
        kept = sum(
            prior * prod(district.kept for district in districts)
            for prior, (_, districts) in zip(priors, patterns, strict=True)
        )
        return Component(variables, tuple(patterns), tuple(fit_weights(subsets, joining)), kept)

    def _split(self, variables: int, present: Subset) -> tuple[District, ...]:
        edges = self._without(e for e in self.edges if e.joins(variables) and e not in present)
        return tuple(
            self._district(joined, frozenset(e for e in present if e.joins(joined)))
            for joined in self._c_components(variables, edges)
        )

    def _district(self, variables: int, present: Subset) -> District:
        if (variables, present) not in self._districts:
            arrows = {e: e.prior for e in self.edges if e.leads_into(variables)}
            limit = MAX_JOINED if variables.bit_count() > 1 else MAX_ALTERNATIVES
            subsets = list[tuple[Subset, float]]()
            tables = list[list[tuple[TableVersion, ...]]]()
            for into, prior in likeliest_subsets(arrows, limit):
                of_subset = self._tables(variables, present, into)
                if sum(map(len, tables)) + len(of_subset) > limit:
                    break
                subsets.append((into, prior))
                tables.append(of_subset)
            self._note_cut(variables, len(subsets), len(arrows))
            weights = fit_weights(subsets, arrows)
            pairs = list(zip(subsets, tables, strict=True))
            self._districts[variables, present] = District(
                tuple((into, versions) for (into, _), both in pairs for versions in both),
                tuple(w / len(both) for w, both in zip(weights, tables, strict=True) for _ in both),
                sum(prior for _, prior in subsets),
            )
        return self._districts[variables, present]

    def _tables(
        self, variables: int, present: Subset, into: Subset
    ) -> list[tuple[TableVersion, ...]]:
        """Return the wide tables of a district with these edges, and the narrow ones if others."""
        edges = self._without(e for e in self.edges if e not in present and e not in into)
        scored = [*bits(variables & self.scored)]
        wide = tuple(self._version(v, edges, edges) for v in scored)
        if not (present and self.has_narrow):
            return [wide]
        narrow = tuple(self._version(v, edges, self._certain) for v in scored)
        return [wide] if narrow == wide else [wide, narrow]

    def _likeliest(
        self, priors: Mapping[DoubtfulEdge, float], limit: int, variables: int
    ) -> list[tuple[Subset, float]]:
        subsets = likeliest_subsets(priors, limit)
        self._note_cut(variables, len(subsets), len(priors))
        return subsets

    def _note_cut(self, variables: int, kept: int, doubtful: int) -> None:
        """Note that these variables have fewer sets of edges than are possible."""
        if kept < 2**doubtful:
            names = ", ".join(self.factors.variables[v] for v in bits(variables))
            self.cut[names] = max((2**doubtful, kept), self.cut.get(names, (0, 0)))

    def _version(self, v: int, edges: Adjacency, joining: Adjacency) -> TableVersion:
        """Return the version of a variable in a graph with these edges.

        The tables depend on the parents of the variables that hidden causes of `joining` join to v.
        """
        tables = []
        for u, component in self.factors.keys:
            if u == v:
                joined = closure(1 << v, edges.siblings, within=component)
                core = closure(1 << v, joining.siblings, within=component)
                family = joined | with_parents(edges, core)
                tables.append((joined, (*bits(family & ~(1 << v)), v)))
        return TableVersion(v, tuple(tables))

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
            factors_of_variable = np.flatnonzero(factors.targets == version.variable)
            numbers: dict[int, int] = {}
            for f, (joined, family) in zip(factors_of_variable, version.tables, strict=True):
                if joined not in numbers:
                    numbers[joined] = len(families)
                    families.append(family)
                self.table_of[m, f] = numbers[joined]
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
    """Return the edges whose presence changes the tables, or may change those not computed."""
    tables = dict(choices)
    texts = set()
    for edge in frozenset().union(*tables):
        without = [s - {edge} for s in tables if edge in s and s - {edge} in tables]
        if not without or any(tables[s] != tables[s | {edge}] for s in without):
            texts.add(edge.text)
    return texts
