"""Which rows of which version's tables feed a circuit of the full graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.model.circuit import Circuit
from dowise.model.structures import Structures

__all__ = ["Reading", "reading_of"]

Integers = NDArray[np.int64]


class Reading(NamedTuple):
    """Version m has the reads from reads[m] to reads[m + 1].

    Read r is the row of sizes[r] entries from entries[r] on, and feeds the blocks of inputs that
    start at the slots from targets[r] to targets[r + 1].
    """

    variables: Integers
    """Those that the circuit has rows of."""
    reads: Integers
    entries: Integers
    """In the context whose values are all the first."""
    sizes: Integers
    targets: Integers
    slots: Integers
    blocks: Integers
    """Of these slots: the number of the block in the circuit."""
    shifts: Integers
    """shifts[r, i]: how far a step of the i-th context variable moves the row."""


def reading_of(structures: Structures, circuit: Circuit, context: Integers) -> Reading:
    """Of all versions; the context variables are given by their positions."""
    factors, tables = structures.factors, structures.tables
    own = factors.row_tables[circuit.blocks]  # the factor of each block
    codes = _codes(factors.strides[own], factors.row_starts[circuit.blocks] - factors.starts[own])
    reads, entries, shifts, targets, blocks = [0], [], [], [0], []
    for m, version in enumerate(structures.versions):
        mine = np.flatnonzero(factors.targets[own] == version.variable)
        table = structures.table_of[m, own[mine]]
        where = tables.starts[table] + (tables.strides[table] * codes[mine]).sum(axis=1)
        distinct, first, which = np.unique(where, return_index=True, return_inverse=True)
        entries.append(distinct)
        shifts.append(tables.strides[table[first]][:, context])
        reads.append(reads[-1] + len(distinct))
        blocks.append(mine[np.argsort(which.ravel(), kind="stable")])
        targets += (
            targets[-1] + np.cumsum(np.bincount(which.ravel(), minlength=len(distinct)))
        ).tolist()
    fed = np.concatenate(blocks)
    ends = np.array(targets)
    return Reading(
        variables=np.unique(factors.targets[own]),
        reads=np.array(reads),
        entries=np.concatenate(entries),
        sizes=circuit.block_sizes[fed[ends[:-1]]],
        targets=ends,
        slots=circuit.block_slots[fed],
        blocks=fed,
        shifts=np.concatenate(shifts),
    )


def _codes(strides: Integers, offsets: Integers) -> Integers:
    """The values of all variables at these places in tables of these strides; 0 for the others."""
    codes = np.zeros_like(strides)
    left = offsets.copy()
    order = np.argsort(-strides, axis=1, kind="stable")
    rows = np.arange(len(strides))
    for column in order.T:
        step = strides[rows, column]
        codes[rows, column] = np.where(step > 0, left // np.maximum(step, 1), 0)
        left -= codes[rows, column] * step
    return codes
