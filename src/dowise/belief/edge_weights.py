"""Probabilities of the sets of open edges, and exact means over them.

A set of edges is a pattern for every component and an alternative for each of its districts
(`dowise.model.edge_structures`). `EdgeOptions` lists them as arrays, `EdgeWeights` turns their
weights into probabilities of versions and edges, `edge_sets` enumerates or samples whole sets, and
`lanes_of` enumerates the sets that exact means distinguish.

For an exact mean the circuit runs once for each set of edges, as a lane. Each of its monomials has
one entry of each variable's factors, so it is linear in the rows of a variable. If only one
variable of a component, or of a district given the pattern, has several versions, its rows are
averaged before the circuit runs; only sets of edges that change several variables together need
lanes. Components are independent, so their numbers of lanes multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.rng import draw_key, generator
from dowise._core.types import BoolArray, FloatArray, IntArray, UInt64Array
from dowise.model.circuit import Circuit
from dowise.model.edge_structures import Component, District, Structures, Subset, TableVersion
from dowise.model.factors import offsets_in_blocks
from dowise.model.reward_circuit import Reading

if TYPE_CHECKING:
    from dowise.belief.posterior import Posterior

MAX_LANES = 1024  # of an exact mean

_mixture_kernels = lazy_kernels("dowise.belief.mixture_kernels")


class EdgeOptions(NamedTuple):
    """Patterns and alternatives of all components that leave something open.

    Component c has the patterns components[c] to components[c + 1], pattern p the districts
    patterns[p] to patterns[p + 1], district d the alternatives first[d] to first[d + 1], and
    alternative a the versions alternatives[a] to alternatives[a + 1].
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
        districts = [
            [numbers.setdefault(d, len(numbers)) for d in of_pattern if self._is_open(d)]
            for _, of_pattern in patterns
        ]
        self.districts = tuple(numbers)
        alternatives = [choice for district in numbers for choice in district.alternatives]
        versions = [self._open_versions(chosen) for _, chosen in alternatives]
        flat = [m for of_alternative in versions for m in of_alternative]
        self.options = EdgeOptions(
            components=_ends(len(c.patterns) for c in self.components),
            patterns=_ends(map(len, districts)),
            districts=np.array([d for of_pattern in districts for d in of_pattern], dtype=np.int64),
            pattern_priors=_logs(p for c in self.components for p in c.priors),
            first=_ends(len(d.alternatives) for d in numbers),
            alternatives=_ends(map(len, versions)),
            versions=np.array(flat, dtype=np.int64),
            variables=np.array([structures.versions[m].variable for m in flat], dtype=np.int64),
            alternative_priors=_logs(p for d in numbers for p in d.priors),
        )
        self.edges = tuple(edge for edge in structures.edges if edge.text in structures.relevant)
        """Edges that make a difference."""
        self._in_pattern = self._contains(subset for subset, _ in patterns)
        self._in_alternative = self._contains(subset for subset, _ in alternatives)
        self._undetermined = self._priors_of_undetermined()

    def _open_versions(self, versions: Iterable[TableVersion]) -> list[int]:
        """Return the numbers of these versions, for variables that have several."""
        structures = self.structures
        return [structures.numbers[x] for x in versions if structures.is_open(x.variable)]

    def _is_open(self, district: District) -> bool:
        return any(self._open_versions(versions) for _, versions in district.alternatives)

    def _contains(self, subsets: Iterable[Subset]) -> BoolArray:
        """Return a mask (subsets, edges) of the edges in each subset."""
        rows = [[edge in subset for edge in self.edges] for subset in subsets]
        return np.array(rows, dtype=bool).reshape(len(rows), len(self.edges))

    def _priors_of_undetermined(self) -> FloatArray:
        """Return (patterns, edges): the prior of an arrow under patterns that leave it open.

        It is 0 if the alternatives of a district determine the arrow, and for hidden causes, which
        are part of the pattern.
        """
        rows = []
        for component in self.components:
            arrows = [e for e in self.edges if e.leads_into(component.variables)]
            for _, districts in component.patterns:
                determined = {
                    edge
                    for district in districts
                    if self._is_open(district)
                    for subset, _ in district.alternatives
                    for edge in subset
                }
                rows.append([e.prior * (e in arrows and e not in determined) for e in self.edges])
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.edges))

    def empty(self) -> Weights:
        """Return uninitialised weights, for `weigh` to fill."""
        options = self.options
        return Weights(
            np.empty(len(options.pattern_priors)), np.empty(len(options.alternative_priors))
        )

    def alternative_chances(self, weights: Weights) -> FloatArray:
        """Return the probability of each alternative: that its district exists and has it."""
        options = self.options
        pattern = np.repeat(weights.patterns, np.diff(options.patterns))
        district = np.bincount(options.districts, pattern, minlength=len(self.districts))
        chances: FloatArray = weights.alternatives * np.repeat(district, np.diff(options.first))
        return chances

    def version_chances(self, weights: Weights) -> FloatArray:
        """Return the probability of each version of each variable."""
        structures, options = self.structures, self.options
        repeated = np.repeat(self.alternative_chances(weights), np.diff(options.alternatives))
        chances = np.bincount(options.versions, repeated, minlength=len(structures.versions))
        versions = np.diff(structures.first)
        return np.where(np.repeat(versions == 1, versions), 1.0, chances)

    def edge_chances(self, weights: Weights) -> dict[str, float]:
        """Return the probability of each edge that makes a difference."""
        chances = weights.patterns @ (self._in_pattern + self._undetermined)
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


Shares = Mapping[int, float]
"""Versions of one variable with the share of each."""
Lane = tuple[float, dict[int, Shares]]
"""Probability of a lane, and the shares of each variable that has several versions."""


def edge_sets(posterior: Posterior, max_sets: int) -> tuple[IntArray, FloatArray]:
    """Return the versions of all variables in each set of edges, (sets, variables), and chances.

    All sets if there are at most `max_sets`; otherwise `max_sets` samples, always the same ones for
    the same posterior, weighted by how often they occurred.
    """
    edge_weights, weights = posterior.shared.edge_weights, posterior.weights()
    first = edge_weights.structures.first[:-1]
    lanes = lanes_of(edge_weights, weights, range(len(first)), max_sets, merges=False)
    if lanes is None:
        versions, counts = sample_edge_sets(posterior, weights, max_sets)
        return versions, counts / max_sets
    versions = np.tile(first, (len(lanes), 1))
    for row, (_, shares) in zip(versions, lanes, strict=True):
        for v, share in shares.items():
            (row[v],) = share
    return versions, np.array([chance for chance, _ in lanes])


def sample_edge_sets(
    posterior: Posterior, weights: Weights, samples: int
) -> tuple[IntArray, IntArray]:
    """Sample sets of edges, always the same ones for the same weights.

    Returns the versions of all variables in each distinct set, (sets, variables), and how often it
    occurred.
    """
    drawn = draw_versions(posterior, weights, draw_key(generator(0)), samples)
    sets, counts = np.unique(drawn, axis=1, return_counts=True)
    return np.ascontiguousarray(sets.T), counts


def draw_versions(
    posterior: Posterior, weights: Weights, key: UInt64Array, samples: int
) -> IntArray:
    """Draw sets of edges: the version of every variable, (variables, samples)."""
    shared = posterior.shared
    versions = np.tile(shared.structures.first[:-1, None], (1, samples))
    streams = len(posterior.counts)
    _mixture_kernels.choose(
        key, streams, shared.edge_weights.options, weights, 0, samples, versions
    )
    return versions


def lanes_of(
    edge_weights: EdgeWeights,
    weights: Weights,
    variables: Iterable[int],
    max_lanes: int = MAX_LANES,
    merges: bool = True,
) -> list[Lane] | None:
    """Return the lanes of all sets of edges, for a circuit that reads these variables.

    With `merges`, sets that change a single variable are one lane. Returns None if there are more
    than `max_lanes` lanes.
    """
    first = edge_weights.structures.first
    several = {v for v in variables if first[v + 1] - first[v] > 1}
    components = []
    for c in range(len(edge_weights.components)):
        lanes = _component_lanes(edge_weights, weights, c, several, max_lanes, merges)
        if lanes is None:
            return None
        components.append(lanes)
    if prod(map(len, components)) > max_lanes:
        return None
    return [_joined(combination) for combination in product(*components)]


def _component_lanes(
    edge_weights: EdgeWeights,
    weights: Weights,
    c: int,
    several: set[int],
    max_lanes: int,
    merges: bool,
) -> list[Lane] | None:
    options, lanes = edge_weights.options, list[Lane]()
    for p in range(options.components[c], options.components[c + 1]):
        districts = options.districts[options.patterns[p] : options.patterns[p + 1]].tolist()
        parts = [_district_lanes(edge_weights, weights, d, several, merges) for d in districts]
        if prod(map(len, parts)) + len(lanes) > max_lanes:
            return None
        for combination in product(*parts):
            chance, shares = _joined(combination)
            lanes.append((float(weights.patterns[p]) * chance, shares))
    if merges and len({v for _, shares in lanes for v in shares}) <= 1:
        return [_merged(lanes)]
    return lanes


def _district_lanes(
    edge_weights: EdgeWeights, weights: Weights, d: int, several: set[int], merges: bool
) -> list[Lane]:
    options, lanes = edge_weights.options, list[Lane]()
    for a in range(options.first[d], options.first[d + 1]):
        span = slice(options.alternatives[a], options.alternatives[a + 1])
        pairs = zip(options.variables[span].tolist(), options.versions[span].tolist(), strict=True)
        shares: dict[int, Shares] = {v: {m: 1.0} for v, m in pairs if v in several}
        lanes.append((float(weights.alternatives[a]), shares))
    if merges and len(lanes[0][1]) <= 1:
        return [_merged(lanes)]
    return lanes


def _merged(lanes: list[Lane]) -> Lane:
    """Merge lanes that differ in one variable at most."""
    total = sum(chance for chance, _ in lanes)
    merged: dict[int, dict[int, float]] = {}
    for chance, shares in lanes:
        for v, of_lane in shares.items():
            of_variable = merged.setdefault(v, {})
            for m, share in of_lane.items():
                of_variable[m] = of_variable.get(m, 0.0) + share * chance / total
    return total, dict(merged)


def _joined(lanes: Iterable[Lane]) -> Lane:
    """Join independent lanes of different variables."""
    chance, shares = 1.0, dict[int, Shares]()
    for lane_chance, of_lane in lanes:
        chance *= lane_chance
        shares |= of_lane
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
    offsets = offsets_in_blocks(sizes)
    inputs = np.repeat(reading.slots - len(circuit.constants), sizes) + offsets
    values = means[np.repeat(np.repeat(reading.entries, repeats), sizes) + offsets]
    ends = np.concatenate([[0], np.cumsum(sizes)])[reading.targets[reading.reads]]
    rows = np.zeros((int(circuit.block_sizes.sum()), len(lanes)))
    for lane, (_, shares) in enumerate(lanes):
        for v in reading.variables.tolist():
            for m, share in (shares.get(v) or {int(first[v]): 1.0}).items():
                span = slice(ends[m], ends[m + 1])
                rows[inputs[span], lane] += share * values[span]
    return rows
