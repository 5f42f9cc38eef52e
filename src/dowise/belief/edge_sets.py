"""Sets of doubtful edges one by one, where there are few; else some that are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise.belief.mixture import Mixture
from dowise.belief.options import Weights
from dowise.compiling import kernels_of
from dowise.randomness import generator, key_of

__all__ = ["edge_sets"]

_draws = kernels_of("dowise.belief.mixture_draws")

Versions = dict[int, int]
"""Of each variable that has several versions, which one."""


def edge_sets(mixture: Mixture, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The version of every variable in each set of edges, (sets, variables), and the chances.

    All sets where there are at most so many; else so many are drawn, always the same for the same
    posterior, and each counts as often as it came.
    """
    structures, weights = mixture.shared.structures, mixture.weights()
    first = structures.first[:-1]
    if _count(mixture) <= most:
        each = [_joined(parts) for parts in product(*_components(mixture, weights))]
        versions = np.tile(first, (len(each), 1))
        for row, (_, own) in zip(versions, each, strict=True):
            row[list(own)] = list(own.values())
        return versions, np.array([chance for chance, _ in each])
    drawn = np.tile(first[:, None], (1, most))
    options, key = mixture.shared.choices.options, key_of(generator(0))
    _draws.choose(key, len(mixture.counts), options, weights, 0, most, drawn)
    kinds, counts = np.unique(drawn, axis=1, return_counts=True)
    return np.ascontiguousarray(kinds.T), counts / most


def _count(mixture: Mixture) -> int:
    """How many sets there are that differ in some table."""
    options = mixture.shared.choices.options
    sizes = np.diff(options.first)[options.districts]
    each = [
        prod(sizes[options.patterns[p] : options.patterns[p + 1]].tolist())
        for p in range(len(options.pattern_priors))
    ]
    ends = options.components
    return prod(sum(each[ends[c] : ends[c + 1]]) for c in range(len(ends) - 1))


def _components(mixture: Mixture, weights: Weights) -> list[list[tuple[float, Versions]]]:
    options = mixture.shared.choices.options
    return [
        [
            (float(weights.patterns[p]) * chance, versions)
            for p in range(options.components[c], options.components[c + 1])
            for chance, versions in _pattern(mixture, weights, p)
        ]
        for c in range(len(options.components) - 1)
    ]


def _pattern(mixture: Mixture, weights: Weights, p: int) -> Iterator[tuple[float, Versions]]:
    """What the districts of a pattern may be."""
    options, parts = mixture.shared.choices.options, []
    for d in options.districts[options.patterns[p] : options.patterns[p + 1]].tolist():
        own = []
        for a in range(options.first[d], options.first[d + 1]):
            span = slice(options.alternatives[a], options.alternatives[a + 1])
            pairs = zip(options.variables[span], options.versions[span], strict=True)
            versions = {int(v): int(m) for v, m in pairs}
            own.append((float(weights.alternatives[a]), versions))
        parts.append(own)
    yield from (_joined(one) for one in product(*parts))


def _joined(parts: tuple[tuple[float, Versions], ...]) -> tuple[float, Versions]:
    versions: Versions = {}
    for _, own in parts:
        versions |= own
    return prod(chance for chance, _ in parts), versions
