"""Exact means over sets of doubtful edges: the circuit is run once for each, as a lane of its own.

The circuit takes one entry of each variable's factors, so it is linear in the rows of a variable.
Where only one variable of a component, or of a district once the pattern is given, has several
versions, its rows are averaged before the circuit runs; only sets of edges that change several
variables together need lanes. Components are independent, so their lanes multiply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise.belief.options import Choices, Weights
from dowise.model.circuit import Circuit
from dowise.model.reading import Reading

__all__ = ["MAX_LANES", "Lane", "lanes_of", "mean_inputs"]

MAX_LANES = 1024

Floats = NDArray[np.float64]
Shares = Mapping[int, float]
"""Versions of one variable, and the share of each."""
Lane = tuple[float, dict[int, Shares]]
"""How likely it is, and the shares of each variable that has several versions."""


def lanes_of(choices: Choices, weights: Weights, read: Iterable[int]) -> list[Lane] | None:
    """The lanes of all sets of edges, for a circuit that reads these variables.

    None where there are more than MAX_LANES.
    """
    structures = choices.structures
    several = {v for v in read if structures.first[v + 1] - structures.first[v] > 1}
    parts = [_component_lanes(choices, weights, c, several) for c in range(len(choices.components))]
    if any(part is None for part in parts) or prod(len(p) for p in parts if p) > MAX_LANES:
        return None
    return [_joined(combination) for combination in product(*(part for part in parts if part))]


def _component_lanes(
    choices: Choices, weights: Weights, c: int, several: set[int]
) -> list[Lane] | None:
    options, lanes = choices.options, list[Lane]()
    for p in range(options.components[c], options.components[c + 1]):
        inside = options.districts[options.patterns[p] : options.patterns[p + 1]]
        parts = [_district_lanes(choices, weights, int(d), several) for d in inside]
        if prod(map(len, parts)) + len(lanes) > MAX_LANES:
            return None
        for combination in product(*parts):
            chance, shares = _joined(combination)
            lanes.append((float(weights.patterns[p]) * chance, shares))
    if len({v for _, shares in lanes for v in shares}) <= 1:
        return [_averaged(lanes)]
    return lanes


def _district_lanes(choices: Choices, weights: Weights, d: int, several: set[int]) -> list[Lane]:
    options, lanes = choices.options, list[Lane]()
    for a in range(options.first[d], options.first[d + 1]):
        span = slice(options.alternatives[a], options.alternatives[a + 1])
        pairs = zip(options.variables[span].tolist(), options.versions[span].tolist(), strict=True)
        shares: dict[int, Shares] = {v: {m: 1.0} for v, m in pairs if v in several}
        lanes.append((float(weights.alternatives[a]), shares))
    if len(lanes[0][1]) <= 1:
        return [_averaged(lanes)]
    return lanes


def _averaged(lanes: list[Lane]) -> Lane:
    """One lane for lanes that differ in one variable, or in none."""
    total = sum(chance for chance, _ in lanes)
    shares: dict[int, dict[int, float]] = {}
    for chance, own in lanes:
        for v, parts in own.items():
            mine = shares.setdefault(v, {})
            for m, share in parts.items():
                mine[m] = mine.get(m, 0.0) + share * chance / total
    return total, dict(shares)


def _joined(lanes: Iterable[Lane]) -> Lane:
    chance, shares = 1.0, dict[int, Shares]()
    for share, own in lanes:
        chance *= share
        shares |= own
    return chance, shares


def mean_inputs(
    lanes: list[Lane], means: Floats, reading: Reading, circuit: Circuit, first: NDArray[np.int64]
) -> Floats:
    """The mean of every input of the circuit under each lane: (inputs, lanes).

    `means` are those of all versions' entries; versions first[v] to first[v + 1] are those of v.
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
