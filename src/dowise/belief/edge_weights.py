"""Probabilities of the sets of open edges, and exact means over them.

A set of edges is a pattern for every component and an alternative for each of its districts
(`dowise.model.edge_structures`). `EdgeOptions` lists them as arrays, `EdgeWeights` turns their
weights into probabilities of versions and edges, `edge_sets` enumerates or samples whole sets, and
`lanes_of` what exact means need.

For an exact mean the circuit runs once for each set of edges, as a lane. It uses one entry of each
variable's factors, so it is linear in the rows of a variable. If only one variable of a component,
or of a district given the pattern, has several versions, its rows are averaged before the circuit
runs; only sets of edges that change several variables together need lanes. Components are
independent, so their numbers of lanes multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.rng import draw_key, generator
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise.model.circuit import Circuit
from dowise.model.edge_structures import Component, District, Structures, Subset, TableVersion
from dowise.model.reward_circuit import Reading

if TYPE_CHECKING:
    from dowise.belief.posterior import Posterior

MAX_LANES = 1024  # of an exact mean

_mixture_kernels = lazy_kernels("dowise.belief.mixture_kernels")


class EdgeOptions(NamedTuple):
    """Patterns and alternatives of all components that leave something open.

    Component c has the patterns from components[c] on, pattern p the districts from patterns[p] on,
    district d the alternatives from first[d] on, and alternative a the versions from
    alternatives[a] on, each up to where the next one begins.
    """

    components: IntArray
    patterns: IntArray
    districts: IntArray
    """Districts of all patterns, pattern after pattern."""
    pattern_priors: FloatArray
    """Logarithms of the prior probabilities."""
    first: IntArray
    alternatives: IntArray
    versions: IntArray
    variables: IntArray
    """Variables of these versions."""
    alternative_priors: FloatArray
    """Logarithms of the prior probabilities."""


class Weights(NamedTuple):
    """Probabilities of the patterns of each component and the alternatives of each district."""

    patterns: FloatArray
    alternatives: FloatArray


class EdgeWeights:
    """Options that doubtful edges leave, and probabilities of versions and edges."""

    def __init__(self, structures: Structures) -> None:
        self.structures = structures
        self.components: list[Component] = [c for c in structures.components if _is_open(c)]
        patterns = [pattern for component in self.components for pattern in component.patterns]
        numbers: dict[District, int] = {}
        inside = [
            [numbers.setdefault(d, len(numbers)) for d in own if self._open(d)]
            for _, own in patterns
        ]
        self.districts = tuple(numbers)
        alternatives = [choice for district in numbers for choice in district.alternatives]
        versions = [self._open_versions(own) for _, own in alternatives]
        flat = [m for own in versions for m in own]
        self.options = EdgeOptions(
            components=_ends(len(c.patterns) for c in self.components),
            patterns=_ends(map(len, inside)),
            districts=np.array([d for own in inside for d in own], dtype=np.int64),
            pattern_priors=_logs(p for c in self.components for p in c.priors),
            first=_ends(len(d.alternatives) for d in numbers),
            alternatives=_ends(map(len, versions)),
            versions=np.array(flat, dtype=np.int64),
            variables=np.array([structures.versions[m].variable for m in flat], dtype=np.int64),
            alternative_priors=_logs(p for d in numbers for p in d.priors),
        )
        self.edges = tuple(edge for edge in structures.edges if edge.text in structures.relevant)
        """Edges that make a difference."""
        self._in_pattern = self._which_hold(there for there, _ in patterns)
        self._in_alternative = self._which_hold(into for into, _ in alternatives)
        self._untold = self._priors_of_untold()

    def _open_versions(self, versions: Iterable[TableVersion]) -> list[int]:
        """Return the numbers of these versions, for variables that have several."""
        structures = self.structures
        return [structures.numbers[x] for x in versions if structures.is_open(x.variable)]

    def _open(self, district: District) -> bool:
        return any(self._open_versions(own) for _, own in district.alternatives)

    def _which_hold(self, subsets: Iterable[Subset]) -> BoolArray:
        held = [[edge in subset for edge in self.edges] for subset in subsets]
        return np.array(held, dtype=bool).reshape(len(held), len(self.edges))

    def _priors_of_untold(self) -> FloatArray:
        """Return (patterns, edges): prior of an arrow under patterns without evidence about it.

        It is 0 if the alternatives of a district tell of the arrow, and for hidden causes, which
        are part of the pattern.
        """
        rows = []
        for component in self.components:
            for _, districts in component.patterns:
                told = {
                    edge
                    for district in districts
                    if self._open(district)
                    for into, _ in district.alternatives
                    for edge in into
                }
                own = [e for e in self.edges if e.leads_into(component.variables)]
                rows.append([e.prior * (e in own and e not in told) for e in self.edges])
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.edges))

    def empty(self) -> Weights:
        """Return weights that are not computed yet."""
        options = self.options
        return Weights(
            np.empty(len(options.pattern_priors)), np.empty(len(options.alternative_priors))
        )

    def alternative_chances(self, weights: Weights) -> FloatArray:
        """Return the probability that a district exists and has each alternative."""
        options = self.options
        pattern = np.repeat(weights.patterns, np.diff(options.patterns))
        district = np.bincount(options.districts, pattern, minlength=len(self.districts))
        chances: FloatArray = weights.alternatives * np.repeat(district, np.diff(options.first))
        return chances

    def version_chances(self, weights: Weights) -> FloatArray:
        """Return the probability of each version of each variable."""
        structures, options = self.structures, self.options
        each = np.repeat(self.alternative_chances(weights), np.diff(options.alternatives))
        chances = np.bincount(options.versions, each, minlength=len(structures.versions))
        several = np.diff(structures.first)
        return np.where(np.repeat(several == 1, several), 1.0, chances)

    def edge_chances(self, weights: Weights) -> dict[str, float]:
        """Return the probability of each edge that makes a difference."""
        chances = weights.patterns @ (self._in_pattern + self._untold)
        chances = chances + self.alternative_chances(weights) @ self._in_alternative
        texts = (edge.text for edge in self.edges)
        return dict(zip(texts, np.minimum(chances, 1.0).tolist(), strict=True))


def _is_open(component: Component) -> bool:
    """Return True if more than one structure of the component is possible."""
    if len(component.patterns) > 1:
        return True
    return any(len(d.alternatives) > 1 for _, districts in component.patterns for d in districts)


def _ends(sizes: Iterable[int]) -> IntArray:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _logs(chances: Iterable[float]) -> FloatArray:
    return np.log(np.array([*chances], dtype=np.float64))


Versions = dict[int, int]
"""Version of each variable that has several."""


def edge_sets(posterior: Posterior, most: int) -> tuple[IntArray, FloatArray]:
    """Return the versions of all variables in each set of edges, (sets, variables), and chances.

    All sets if there are at most `most`; otherwise `most` are sampled, always the same ones for the
    same posterior, and weighted by how often they occurred.
    """
    structures, weights = posterior.shared.structures, posterior.weights()
    first = structures.first[:-1]
    if _count(posterior) <= most:
        each = [_joined(parts) for parts in product(*_components(posterior, weights))]
        versions = np.tile(first, (len(each), 1))
        for row, (_, own) in zip(versions, each, strict=True):
            row[list(own)] = list(own.values())
        return versions, np.array([chance for chance, _ in each])
    drawn = np.tile(first[:, None], (1, most))
    options, key = posterior.shared.edge_weights.options, draw_key(generator(0))
    _mixture_kernels.choose(key, len(posterior.counts), options, weights, 0, most, drawn)
    kinds, counts = np.unique(drawn, axis=1, return_counts=True)
    return np.ascontiguousarray(kinds.T), counts / most


def _count(posterior: Posterior) -> int:
    """Return the number of sets that differ in some table."""
    options = posterior.shared.edge_weights.options
    sizes = np.diff(options.first)[options.districts]
    each = [
        prod(sizes[options.patterns[p] : options.patterns[p + 1]].tolist())
        for p in range(len(options.pattern_priors))
    ]
    ends = options.components
    return prod(sum(each[ends[c] : ends[c + 1]]) for c in range(len(ends) - 1))


def _components(posterior: Posterior, weights: Weights) -> list[list[tuple[float, Versions]]]:
    options = posterior.shared.edge_weights.options
    return [
        [
            (float(weights.patterns[p]) * chance, versions)
            for p in range(options.components[c], options.components[c + 1])
            for chance, versions in _pattern(posterior, weights, p)
        ]
        for c in range(len(options.components) - 1)
    ]


def _pattern(posterior: Posterior, weights: Weights, p: int) -> Iterator[tuple[float, Versions]]:
    """Yield the combinations of alternatives of a pattern's districts."""
    options, parts = posterior.shared.edge_weights.options, []
    for d in options.districts[options.patterns[p] : options.patterns[p + 1]].tolist():
        own = []
        for a in range(options.first[d], options.first[d + 1]):
            span = slice(options.alternatives[a], options.alternatives[a + 1])
            pairs = zip(options.variables[span], options.versions[span], strict=True)
            versions = {int(v): int(m) for v, m in pairs}
            own.append((float(weights.alternatives[a]), versions))
        parts.append(own)
    yield from (_joined(combination) for combination in product(*parts))


def _joined(parts: tuple[tuple[float, Versions], ...]) -> tuple[float, Versions]:
    versions: Versions = {}
    for _, own in parts:
        versions |= own
    return prod(chance for chance, _ in parts), versions


Shares = Mapping[int, float]
"""Versions of one variable with the share of each."""
Lane = tuple[float, dict[int, Shares]]
"""Probability of a lane, and the shares of each variable that has several versions."""


def lanes_of(edge_weights: EdgeWeights, weights: Weights, read: Iterable[int]) -> list[Lane] | None:
    """Return the lanes of all sets of edges, for a circuit that reads these variables.

    Returns None if there are more than MAX_LANES.
    """
    structures = edge_weights.structures
    several = {v for v in read if structures.first[v + 1] - structures.first[v] > 1}
    parts = [
        _component_lanes(edge_weights, weights, c, several)
        for c in range(len(edge_weights.components))
    ]
    if any(part is None for part in parts) or prod(len(p) for p in parts if p) > MAX_LANES:
        return None
    return [
        _means_joined(combination) for combination in product(*(part for part in parts if part))
    ]


def _component_lanes(
    edge_weights: EdgeWeights, weights: Weights, c: int, several: set[int]
) -> list[Lane] | None:
    options, lanes = edge_weights.options, list[Lane]()
    for p in range(options.components[c], options.components[c + 1]):
        inside = options.districts[options.patterns[p] : options.patterns[p + 1]]
        parts = [_district_lanes(edge_weights, weights, int(d), several) for d in inside]
        if prod(map(len, parts)) + len(lanes) > MAX_LANES:
            return None
        for combination in product(*parts):
            chance, shares = _means_joined(combination)
            lanes.append((float(weights.patterns[p]) * chance, shares))
    if len({v for _, shares in lanes for v in shares}) <= 1:
        return [_averaged(lanes)]
    return lanes


def _district_lanes(
    edge_weights: EdgeWeights, weights: Weights, d: int, several: set[int]
) -> list[Lane]:
    options, lanes = edge_weights.options, list[Lane]()
    for a in range(options.first[d], options.first[d + 1]):
        span = slice(options.alternatives[a], options.alternatives[a + 1])
        pairs = zip(options.variables[span].tolist(), options.versions[span].tolist(), strict=True)
        shares: dict[int, Shares] = {v: {m: 1.0} for v, m in pairs if v in several}
        lanes.append((float(weights.alternatives[a]), shares))
    if len(lanes[0][1]) <= 1:
        return [_averaged(lanes)]
    return lanes


def _averaged(lanes: list[Lane]) -> Lane:
    """Merge lanes that differ in one variable at most."""
    total = sum(chance for chance, _ in lanes)
    shares: dict[int, dict[int, float]] = {}
    for chance, own in lanes:
        for v, parts in own.items():
            mine = shares.setdefault(v, {})
            for m, share in parts.items():
                mine[m] = mine.get(m, 0.0) + share * chance / total
    return total, dict(shares)


def _means_joined(lanes: Iterable[Lane]) -> Lane:
    chance, shares = 1.0, dict[int, Shares]()
    for share, own in lanes:
        chance *= share
        shares |= own
    return chance, shares


def mean_inputs(
    lanes: list[Lane], means: FloatArray, reading: Reading, circuit: Circuit, first: IntArray
) -> FloatArray:
    """Return the mean of every input of the circuit under each lane: (inputs, lanes).

    `means` are the mean entries of all versions; variable v has the versions first[v] to
    first[v + 1].
    """
    repeats = np.diff(reading.targets)
    sizes = np.repeat(reading.sizes, repeats)  # of each slot
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    inputs = np.repeat(reading.slots - len(circuit.constants), sizes) + within
    values = means[np.repeat(np.repeat(reading.entries, repeats), sizes) + within]
    ends = np.concatenate([[0], np.cumsum(sizes)])[reading.targets[reading.reads]]
    rows = np.zeros((int(circuit.block_sizes.sum()), len(lanes)))
    for lane, (_, shares) in enumerate(lanes):
        for v in reading.variables.tolist():
            for m, share in (shares.get(v) or {int(first[v]): 1.0}).items():
                own = slice(ends[m], ends[m + 1])
                rows[inputs[own], lane] += share * values[own]
    return rows
