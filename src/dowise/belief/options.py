"""Which edges are there: what a mixture chooses among, as arrays, and how likely each choice is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.model.structures import Component, District, Structures, Subset, Version

__all__ = ["Choices", "Options", "Weights"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Options(NamedTuple):
    """Components that leave something open: component c has the patterns from components[c] on,
    pattern p the districts from patterns[p] on, district d the alternatives from first[d] on, and
    alternative a the versions from alternatives[a] on, each up to where the next one begins."""

    components: Integers
    patterns: Integers
    districts: Integers
    """Of all patterns, one pattern's behind the other's."""
    pattern_priors: Floats
    """Logarithms."""
    first: Integers
    alternatives: Integers
    versions: Integers
    variables: Integers
    """Of these versions."""
    alternative_priors: Floats
    """Logarithms."""


class Weights(NamedTuple):
    """How likely each pattern of a component and each alternative of a district are."""

    patterns: Floats
    alternatives: Floats


class Choices:
    """The options that doubtful edges leave, and what their weights say of versions and edges."""

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
        self.options = Options(
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
        """Those that make a difference."""
        self._in_pattern = self._which_hold(there for there, _ in patterns)
        self._in_alternative = self._which_hold(into for into, _ in alternatives)
        self._untold = self._priors_of_untold()

    def _open_versions(self, versions: Iterable[Version]) -> list[int]:
        """Those of variables that have several: of others there is nothing to choose."""
        structures = self.structures
        return [structures.numbers[x] for x in versions if structures.is_open(x.variable)]

    def _open(self, district: District) -> bool:
        return any(self._open_versions(own) for _, own in district.alternatives)

    def _which_hold(self, subsets: Iterable[Subset]) -> NDArray[np.bool_]:
        held = [[edge in subset for edge in self.edges] for subset in subsets]
        return np.array(held, dtype=bool).reshape(len(held), len(self.edges))

    def _priors_of_untold(self) -> Floats:
        """(patterns, edges): the prior of an arrow under patterns in which no district tells of it.

        0 elsewhere: where a district tells, its alternatives do; a hidden cause is the pattern's.
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

    def room(self) -> Weights:
        """Weights that are still to be worked out."""
        options = self.options
        return Weights(
            np.empty(len(options.pattern_priors)), np.empty(len(options.alternative_priors))
        )

    def alternative_chances(self, weights: Weights) -> Floats:
        """How likely it is that a district is there and has this alternative."""
        options = self.options
        pattern = np.repeat(weights.patterns, np.diff(options.patterns))
        district = np.bincount(options.districts, pattern, minlength=len(self.districts))
        chances: Floats = weights.alternatives * np.repeat(district, np.diff(options.first))
        return chances

    def version_chances(self, weights: Weights) -> Floats:
        """How likely each version of each variable is."""
        structures, options = self.structures, self.options
        each = np.repeat(self.alternative_chances(weights), np.diff(options.alternatives))
        chances = np.bincount(options.versions, each, minlength=len(structures.versions))
        several = np.diff(structures.first)
        return np.where(np.repeat(several == 1, several), 1.0, chances)

    def edge_chances(self, weights: Weights) -> dict[str, float]:
        """How likely each edge that makes a difference is."""
        chances = weights.patterns @ (self._in_pattern + self._untold)
        chances = chances + self.alternative_chances(weights) @ self._in_alternative
        texts = (edge.text for edge in self.edges)
        return dict(zip(texts, np.minimum(chances, 1.0).tolist(), strict=True))


def _is_open(component: Component) -> bool:
    """Whether more than one structure of it may be true."""
    if len(component.patterns) > 1:
        return True
    return any(len(d.alternatives) > 1 for _, districts in component.patterns for d in districts)


def _ends(sizes: Iterable[int]) -> Integers:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _logs(chances: Iterable[float]) -> Floats:
    return np.log(np.array([*chances], dtype=np.float64))
