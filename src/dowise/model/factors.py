"""Where every entry of every factor stands in one flat array.

A factor is the conditional distribution of a variable given its scope: where nothing is hidden, its
CPT. It has one axis for each variable of the scope, in the order of names, and a last one for the
variable itself. All factors lie one behind the other, in the order of the variables, each in C
order; so a row, the distribution of a variable at given values of its scope, is a run of
neighbours.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem import Problem
from dowise.problem.frame import RecordBatch
from dowise.problem.values import MISSING

__all__ = ["Factors"]

MAX_ENTRIES = 50_000_000  # 400 MB of counts


class Factors:
    """The factors of a problem; variables are numbered in the order of their names."""

    def __init__(self, problem: Problem) -> None:
        self.graph = graph = problem.graph
        self.variables = graph.variables
        self.positions = problem.positions
        self.sizes = np.array([len(problem.domains[name]) for name in self.variables])
        """The number of values of each variable."""
        self.families = tuple(
            (*(self.positions[parent] for parent in graph.parents(name)), i)
            for i, name in enumerate(self.variables)
        )
        """The scope and the variable itself: the axes of its factor."""
        self.shapes = tuple(tuple(int(self.sizes[v]) for v in family) for family in self.families)
        cells = [prod(shape) for shape in self.shapes]
        if sum(cells) > MAX_ENTRIES:
            widest = cells.index(max(cells))
            raise DowiseError(
                f"the CPTs have {sum(cells):.1e} entries, and the limit is {MAX_ENTRIES:.0e}: that "
                f"of {self.variables[widest]} with its {len(self.families[widest]) - 1} parents "
                f"alone has {cells[widest]:.1e}; give it fewer parents or smaller domains"
            )
        self.starts = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
        """Factor i is entries[starts[i] : starts[i + 1]]."""

    @property
    def entries(self) -> int:
        """The number of entries of all factors."""
        return int(self.starts[-1])

    @cached_property
    def strides(self) -> NDArray[np.int64]:
        """strides[i, v]: how far one step in the value of v moves within factor i."""
        strides = np.zeros((len(self.variables), len(self.variables)), dtype=np.int64)
        for i, (family, shape) in enumerate(zip(self.families, self.shapes, strict=True)):
            step = 1
            for v, size in zip(reversed(family), reversed(shape), strict=True):
                strides[i, v] = step
                step *= size
        return strides

    @cached_property
    def row_starts(self) -> NDArray[np.int64]:
        """The first entry of every row."""
        rows = [
            np.arange(self.starts[i], self.starts[i + 1], self.sizes[i])
            for i in range(len(self.variables))
        ]
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)

    @cached_property
    def row_variables(self) -> NDArray[np.int64]:
        """The variable of every row."""
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.starts) // self.sizes)

    @cached_property
    def row_sizes(self) -> NDArray[np.int64]:
        """The number of entries of every row."""
        return np.diff(np.append(self.row_starts, self.entries))

    def entries_of(self, records: RecordBatch) -> NDArray[np.int64]:
        """The entries that these records count in, once for each time.

        A factor counts where the variable and all of its scope were seen and the arm did not set
        the variable.
        """
        codes, seen = records.codes, []
        for v, family in enumerate(self.families):
            entries = np.full(len(records), self.starts[v])
            complete = ~records.was_set[v]
            for u in family:
                entries += codes[u] * self.strides[v, u]
                complete &= codes[u] != MISSING
            seen.append(entries[complete])
        return np.concatenate(seen)

    def view(self, flat: NDArray[Any], name: str) -> NDArray[Any]:
        """The factor of one variable as a view of the flat array, in its own shape."""
        i = self.positions[name]
        return flat[self.starts[i] : self.starts[i + 1]].reshape(self.shapes[i])

    def normalised(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every row divided by its sum."""
        sums = np.add.reduceat(flat, self.row_starts)
        normalised: NDArray[np.float64] = flat / np.repeat(sums, self.row_sizes)
        return normalised
