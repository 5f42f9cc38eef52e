"""Where every entry of every CPT stands in one flat array.

The CPT of a variable has one axis for each parent, in the order of names, and a last one for the
variable itself. All CPTs lie one behind the other, in the order of the variables, each in C order;
so a row, the distribution of a variable given its parents, is a run of neighbours.
"""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem import Intervention, Problem

__all__ = ["Tables"]

MAX_ENTRIES = 50_000_000  # 400 MB of counts


class Tables:
    """The layout of a problem's CPTs: variables are numbered in the order of their names."""

    def __init__(self, problem: Problem) -> None:
        graph = problem.graph
        self.variables = graph.variables
        self.number = {name: i for i, name in enumerate(self.variables)}
        self.sizes = np.array([len(problem.domains[name]) for name in self.variables])
        """The number of values of each variable."""
        self.families = tuple(
            (*(self.number[parent] for parent in graph.parents(name)), i)
            for i, name in enumerate(self.variables)
        )
        """Parents and the variable itself: the axes of its CPT."""
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
        """CPT i is entries[starts[i] : starts[i + 1]]."""
        self._problem = problem
        self._fixed: dict[Intervention, NDArray[np.int64]] = {}

    @property
    def entries(self) -> int:
        """The number of entries of all CPTs."""
        return int(self.starts[-1])

    @cached_property
    def strides(self) -> NDArray[np.int64]:
        """strides[i, v]: how far one step in the value of v moves within CPT i."""
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
    def row_sizes(self) -> NDArray[np.int64]:
        """The number of entries of every row."""
        return np.diff(np.append(self.row_starts, self.entries))

    def fixed(self, arm: Intervention) -> NDArray[np.int64]:
        """For each variable the position of the value that the arm sets, MISSING where none."""
        if arm not in self._fixed:
            self._fixed[arm] = np.array(
                [self._problem.code(name, arm.get(name)) for name in self.variables]
            )
        return self._fixed[arm]

    def view(self, flat: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        """The CPT of one variable as a view of the flat array, in its own shape."""
        i = self.number[name]
        return flat[self.starts[i] : self.starts[i + 1]].reshape(self.shapes[i])

    def normalised(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every row divided by its sum."""
        sums = np.add.reduceat(flat, self.row_starts)
        normalised: NDArray[np.float64] = flat / np.repeat(sums, self.row_sizes)
        return normalised
