"""Passes through a circuit, forward and backward: what each entry contributes, and is visited.

The circuit (`Model.trace`) is P(Y = y | do(a), c) through all variables that are seen, a polynomial
with one entry of each factor in a monomial. One pass forward gives all its values; one backward,
from the results of an arm, the derivatives by every input (reverse accumulation: an operation hands
what it receives to its operands, each times the other one). Started with the worth of every value y
it gives ∂μ_a/∂θ. Started with ones it gives ∂Σ_y P(Y = y)/∂θ_{x|u} = P(scope of X is u | do(a), c),
the same for every x: how likely arm a is to visit the row, 0 where it sets X.

Lanes are innermost, as in `dowise.model.kernels`: contexts, and sets of edges, side by side.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dowise.compiling import kernel
from dowise.model.circuit import Circuit
from dowise.model.model import model_of
from dowise.problem import Problem

__all__ = ["Trace", "fill_means", "forward", "pass_back", "trace_of"]


class Trace(NamedTuple):
    """A circuit that keeps all its values, for kernels; operation i has slot first + i."""

    slots: int
    first: int
    constants: Any
    block_slots: Any
    block_sizes: Any
    starts: Any
    lefts: Any
    rights: Any
    results: Any
    """results[arm, y], all values of the reward."""
    cones: Any
    """The operations that an arm's results hang on, last one first, arm behind arm."""
    cone_starts: Any


@lru_cache(maxsize=32)
def trace_of(problem: Problem) -> Trace:
    """The trace of a problem, built once."""
    circuit: Circuit = model_of(problem).trace
    operations = circuit.operations
    first = len(circuit.constants) + int(circuit.block_sizes.sum())
    cones = [
        _cone(first, operations.starts, operations.lefts, operations.rights, own)
        for own in circuit.results
    ]
    return Trace(
        circuit.slots, first, circuit.constants, circuit.block_slots, circuit.block_sizes,
        operations.starts, operations.lefts, operations.rights, circuit.results,
        np.concatenate(cones), np.cumsum([0, *map(len, cones)]),
    )  # fmt: skip


@kernel()
def _cone(first, starts, lefts, rights, results):
    """The operations that these results hang on, last one first."""
    needed = np.zeros(len(starts) - 1, dtype=np.bool_)
    for y in range(len(results)):
        if results[y] >= first:
            needed[results[y] - first] = True
    found = np.empty(len(needed), dtype=np.int64)
    count = 0
    for i in range(len(needed) - 1, -1, -1):
        if needed[i]:
            found[count] = i
            count += 1
            for k in range(starts[i], starts[i + 1]):
                if lefts[k] >= first:
                    needed[lefts[k] - first] = True
                if rights[k] >= first:
                    needed[rights[k] - first] = True
    return found[:count].copy()


@njit
def fill_means(values, totals, prior, counts, rows, trace):
    """Set constants and inputs: the mean entries of the rows that each lane reads.

    rows[lane, block] is where a row starts; totals[block, lane] comes back with its sum.
    """
    lanes = len(rows)
    for i in range(len(trace.constants)):
        for lane in range(lanes):
            values[i, lane] = trace.constants[i]
    for r in range(len(trace.block_slots)):
        slot, size = trace.block_slots[r], trace.block_sizes[r]
        for lane in range(lanes):
            entry, total = rows[lane, r], 0.0
            for k in range(size):
                total += prior[entry + k] + counts[entry + k]
            totals[r, lane] = total
            for k in range(size):
                values[slot + k, lane] = (prior[entry + k] + counts[entry + k]) / total


@njit
def forward(values, trace):
    """Run every operation on all lanes."""
    lanes = values.shape[1]
    for i in range(len(trace.starts) - 1):
        out = trace.first + i
        for lane in range(lanes):
            values[out, lane] = 0.0
        for k in range(trace.starts[i], trace.starts[i + 1]):
            a, b = trace.lefts[k], trace.rights[k]
            for lane in range(lanes):
                values[out, lane] += values[a, lane] * values[b, lane]


@njit
def pass_back(values, adjoints, seeds, arm, trace):
    """The derivatives of Σ_y seeds[y]·P(Y = y | do(arm)) by every input, in its row of `adjoints`.

    Of all operations `adjoints` must be 0, and is 0 again afterwards.
    """
    lanes = values.shape[1]
    for slot in range(trace.first):
        for lane in range(lanes):
            adjoints[slot, lane] = 0.0
    for y in range(len(seeds)):
        for lane in range(lanes):
            adjoints[trace.results[arm, y], lane] += seeds[y]
    for q in range(trace.cone_starts[arm], trace.cone_starts[arm + 1]):
        i = trace.cones[q]
        out = trace.first + i
        for k in range(trace.starts[i], trace.starts[i + 1]):
            a, b = trace.lefts[k], trace.rights[k]
            for lane in range(lanes):
                adjoints[a, lane] += adjoints[out, lane] * values[b, lane]
            for lane in range(lanes):
                adjoints[b, lane] += adjoints[out, lane] * values[a, lane]
        for lane in range(lanes):
            adjoints[out, lane] = 0.0
