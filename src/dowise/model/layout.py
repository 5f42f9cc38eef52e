"""Tables of probabilities, one behind the other in one flat array.

A table is the conditional distribution of a variable: one axis for each variable of its scope, in
the order of names, and a last one for the variable itself. It lies in C order, so that a row, the
distribution at given values of the scope, is a run of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAX_ENTRIES", "Layout"]

MAX_ENTRIES = 50_000_000  # 400 MB of counts

Integers = NDArray[np.int64]


class Layout:
    """Where the entries of tables of these families stand, variable v having sizes[v] values."""

    def __init__(self, families: Iterable[tuple[int, ...]], sizes: Integers) -> None:
        self.families = tuple(families)
        """The scope and the variable itself: the axes of every table."""
        self.sizes = sizes
        """The number of values of each variable."""
        self.shapes = tuple(tuple(int(sizes[v]) for v in family) for family in self.families)
        self.cells = tuple(prod(shape) for shape in self.shapes)
        """The number of entries of every table."""

    @cached_property
    def starts(self) -> Integers:
        """Table t is entries[starts[t] : starts[t + 1]]."""
        return np.concatenate([[0], np.cumsum(self.cells)]).astype(np.int64)

    @property
    def entries(self) -> int:
        """The number of entries of all tables."""
        return sum(self.cells)

    @cached_property
    def targets(self) -> Integers:
        """The variable of every table."""
        return np.array([family[-1] for family in self.families], dtype=np.int64)

    @cached_property
    def strides(self) -> Integers:
        """strides[t, v]: how far one step in the value of v moves within table t."""
        strides = np.zeros((len(self.families), len(self.sizes)), dtype=np.int64)
        for t, (family, shape) in enumerate(zip(self.families, self.shapes, strict=True)):
            step = 1
            for v, size in zip(reversed(family), reversed(shape), strict=True):
                strides[t, v] = step
                step *= size
        return strides

    @cached_property
    def row_starts(self) -> Integers:
        """The first entry of every row."""
        steps = self.sizes[self.targets].tolist()
        bounds = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), steps, strict=True)
        rows = [np.arange(*bound) for bound in bounds]
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)

    @cached_property
    def row_sizes(self) -> Integers:
        """The number of entries of every row."""
        return self.sizes[self.targets][self.row_tables]

    @cached_property
    def row_tables(self) -> Integers:
        """The table of every row."""
        rows = np.diff(self.starts) // self.sizes[self.targets]
        return np.repeat(np.arange(len(self.families)), rows)

    def table(self, flat: NDArray[Any], t: int) -> NDArray[Any]:
        """A table as a view of the flat array, in its own shape, behind any axes before entries."""
        own = flat[..., self.starts[t] : self.starts[t + 1]]
        return own.reshape(*flat.shape[:-1], *self.shapes[t])

    def normalised(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every row divided by its sum."""
        sums = np.add.reduceat(flat, self.row_starts)
        normalised: NDArray[np.float64] = flat / np.repeat(sums, self.row_sizes)
        return normalised
