"""Where every entry of every factor stands in one flat array.

A factor is the conditional distribution of a variable given its scope: where nothing is hidden, its
CPT. With hidden common causes a variable may have several, one for each component that some
intervention leaves it (`FactorOrder` of `dowise.graph.transforms`), in the order of the variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.graph.adjacency import bits, mask_of
from dowise.graph.transforms import FactorKey, FactorOrder
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING

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


NONE = -1  # the number of a factor that is not there


class Factors(Layout):
    """The factors of a problem; variables are numbered in the order of their names."""

    def __init__(self, problem: Problem) -> None:
        self.graph = problem.possible
        self.variables = self.graph.variables
        self.positions = problem.positions
        sizes = np.array([len(problem.domains[name]) for name in self.variables])
        self.order = FactorOrder(problem.possible, problem.context, problem.reward)
        self.sets = tuple(
            dict.fromkeys([0, *(self.graph.mask(names) for names in problem.intervention_sets)])
        )
        """Doing nothing, and what the arms set: the places that records count in."""
        self.keys: tuple[FactorKey, ...] = self._keys()
        """Of every factor; those that some arm, or doing nothing, has."""
        self.numbers = {key: f for f, key in enumerate(self.keys)}
        """The number of each key."""
        self.is_plain = all(component == 1 << v for v, component in self.keys)
        """Whether every factor is a CPT: then factor v is that of variable v."""
        families = ((*bits(self.order.scope(key)), key[0]) for key in self.keys)
        super().__init__(families, sizes)
        if self.entries > MAX_ENTRIES:
            raise DowiseError(self._too_many())

    def _keys(self) -> tuple[FactorKey, ...]:
        variables = range(len(self.variables))
        if not any(self.order.edges.siblings):
            return tuple((v, 1 << v) for v in variables)
        found = {self.order.key(v, cut) for cut in self.sets for v in variables if not cut >> v & 1}
        return tuple(sorted(found, key=lambda key: (key[0], key[1].bit_count(), key[1])))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of every factor: `Y` for a CPT, or `Y | X` where X is in its component besides Y."""
        return tuple(
            " | ".join(
                [self.variables[v]]
                + [", ".join(self.variables[u] for u in bits(component & ~(1 << v)))]
                * (component != 1 << v)
            )
            for v, component in self.keys
        )

    def under(self, cut: int) -> Integers:
        """For each variable the number of its factor where these are set, NONE where it has none.

        It has none if it is set itself, or if no arm needs that factor.
        """
        return np.array(
            [
                NONE if cut >> v & 1 else self.numbers.get(self.order.key(v, cut), NONE)
                for v in range(len(self.variables))
            ]
        )

    # -- where records count -------------------------------------------------------------------

    def place(self, names: Iterable[str]) -> int:
        """The place of an intervention on these variables; NONE where it is not that of an arm."""
        return 0 if self.is_plain else self._place_of.get(frozenset(names), NONE)

    @cached_property
    def _place_of(self) -> dict[frozenset[str], int]:
        return {frozenset(self.graph.names(cut)): p for p, cut in enumerate(self.sets)}

    @cached_property
    def under_arms(self) -> Integers:
        """under_arms[place]: what `under` gives for it. In a plain graph one place does for all."""
        return self.under_sets(self.sets[:1] if self.is_plain else self.sets)

    def under_sets(self, sets: Iterable[int]) -> Integers:
        """What `under` gives for each of these sets."""
        return np.array([self.under(cut) for cut in sets])

    def entries_of(self, record: Record) -> Integers:
        """The entries that a record counts in.

        A factor counts where the variable and all of its scope were seen and the arm did not set
        the variable.
        """
        under = self.under(mask_of(np.flatnonzero(record.fixed != MISSING).tolist()))
        found = [
            self.starts[f] + self.strides[f] @ record.codes
            for f in under[under != NONE]
            if (record.codes[list(self.families[f])] != MISSING).all()
        ]
        return np.array(found, dtype=np.int64)

    @cached_property
    def uniform(self) -> NDArray[np.float64]:
        """All rows with equal entries."""
        return np.concatenate([np.full(prod(s), 1 / s[-1]) for s in self.shapes])

    def view(self, flat: NDArray[Any], name: str) -> NDArray[Any]:
        """The factor of this name as a view of the flat array, in its own shape."""
        return self.table(flat, self.positions[name] if self.is_plain else self.names.index(name))

    def _too_many(self) -> str:
        most = max(self.cells)
        f = self.cells.index(most)
        name, axes = self.variables[self.keys[f][0]], len(self.families[f]) - 1
        if self.is_plain:
            return (
                f"the CPTs have {self.entries:.1e} entries, and the limit is {MAX_ENTRIES:.0e}: "
                f"that of {name} with its {axes} parents alone has {most:.1e}; give it fewer "
                "parents or smaller domains"
            )
        joined = ", ".join(self.variables[u] for u in bits(self.keys[f][1]))
        return (
            f"the factors have {self.entries:.1e} entries, and the limit is {MAX_ENTRIES:.0e}: "
            f"that of {name} alone has {most:.1e}, because hidden causes join {joined} and all "
            f"their parents ({axes} variables); draw fewer bidirected edges among these, or make "
            "domains smaller"
        )
