"""Layout of the factors of a problem in one flat array.

A factor is the conditional distribution of a variable given its scope: its CPT if nothing is
hidden. With hidden common causes a variable may have several, one for each component that some
intervention leaves it (`FactorOrder` of `dowise.graph.transforms`). Factors are stored one after
the other, in the order of the variables. A table is in C order, the variable itself last, so that a
row, the distribution at given values of the scope, is contiguous.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import prod

import numpy as np

from dowise._core.types import AnyArray, FloatArray, IntArray
from dowise.errors import DowiseError
from dowise.graph.adjacency import bits, mask_of
from dowise.graph.transforms import FactorKey, FactorOrder
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING

Codes = tuple[int, ...]
"""Context as the codes of its values, variables in the order of names."""

MAX_ENTRIES = 50_000_000  # 400 MB of counts
NONE = -1  # number of a factor that does not exist


def offsets_in_blocks(sizes: IntArray) -> IntArray:
    """Return the position of each entry in its block, for blocks of these sizes in a row.

    >>> offsets_in_blocks(np.array([2, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    offsets: IntArray = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return offsets


class TableLayout:
    """Positions of the entries of tables in a flat array; variable v has sizes[v] values."""

    def __init__(self, families: Iterable[tuple[int, ...]], sizes: IntArray) -> None:
        self.families = tuple(families)
        """Axes of every table: the scope, then the variable itself."""
        self.sizes = sizes
        """Number of values of each variable."""
        self.shapes = tuple(tuple(int(sizes[v]) for v in family) for family in self.families)
        self.cells = tuple(prod(shape) for shape in self.shapes)
        """Number of entries of every table."""

    @cached_property
    def starts(self) -> IntArray:
        """Table t is entries[starts[t] : starts[t + 1]]."""
        return np.concatenate([[0], np.cumsum(self.cells)]).astype(np.int64)

    @property
    def entries(self) -> int:
        """Number of entries of all tables."""
        return sum(self.cells)

    @cached_property
    def targets(self) -> IntArray:
        """Variable of every table."""
        return np.array([family[-1] for family in self.families], dtype=np.int64)

    @cached_property
    def strides(self) -> IntArray:
        """strides[t, v]: distance that one step in the value of v moves within table t."""
        strides = np.zeros((len(self.families), len(self.sizes)), dtype=np.int64)
        for t, (family, shape) in enumerate(zip(self.families, self.shapes, strict=True)):
            step = 1
            for v, size in zip(reversed(family), reversed(shape), strict=True):
                strides[t, v] = step
                step *= size
        return strides

    @cached_property
    def row_starts(self) -> IntArray:
        """First entry of every row."""
        steps = self.sizes[self.targets].tolist()
        bounds = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), steps, strict=True)
        rows = [np.arange(*bound) for bound in bounds]
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)

    @cached_property
    def row_sizes(self) -> IntArray:
        """Number of entries of every row."""
        return self.sizes[self.targets][self.row_tables]

    @cached_property
    def row_tables(self) -> IntArray:
        """Table of every row."""
        rows = np.diff(self.starts) // self.sizes[self.targets]
        return np.repeat(np.arange(len(self.families)), rows)

    def table(self, flat: AnyArray, t: int) -> AnyArray:
        """Return a table as a view of the flat array, whose last axis is that of entries."""
        entries = flat[..., self.starts[t] : self.starts[t + 1]]
        return entries.reshape(*flat.shape[:-1], *self.shapes[t])

    def normalised(self, flat: FloatArray) -> FloatArray:
        """Divide every row by its sum."""
        sums = np.add.reduceat(flat, self.row_starts)
        normalised: FloatArray = flat / np.repeat(sums, self.row_sizes)
        return normalised


class FactorLayout(TableLayout):
    """Layout of the factors of a problem; variables are numbered in the order of their names.

    Parameters
    ----------
    problem : Problem
        The problem whose factors are laid out.

    Raises
    ------
    DowiseError
        If the tables have more than `MAX_ENTRIES` entries.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> factors = FactorLayout(load_problem("task1"))
    >>> factors.names, factors.shapes
    (('X', 'Y', 'Z'), ((2, 2), (2, 2, 2), (2,)))
    """

    def __init__(self, problem: Problem) -> None:
        self.graph = problem.possible
        self.variables = self.graph.variables
        self.positions = problem.positions
        sizes = np.array([len(problem.domains[name]) for name in self.variables])
        self.order = FactorOrder(problem.possible, problem.context, problem.reward, problem.order)
        self.sets = tuple(
            dict.fromkeys([0, *(self.graph.mask(names) for names in problem.intervention_sets)])
        )
        """The empty set and the intervention sets of the arms, as bits: the places of records."""
        self.keys: tuple[FactorKey, ...] = self._keys()
        """Key of every factor that exists under some arm or under do()."""
        self.numbers = {key: f for f, key in enumerate(self.keys)}
        """Number of the factor of each key."""
        self.is_plain = all(component == 1 << v for v, component in self.keys)
        """True if every factor is a CPT: then factor v is that of variable v."""
        families = ((*bits(self.order.scope(key)), key[0]) for key in self.keys)
        super().__init__(families, sizes)
        if self.entries > MAX_ENTRIES:
            raise DowiseError(self._size_message(), code="too-large")

    def _keys(self) -> tuple[FactorKey, ...]:
        variables = range(len(self.variables))
        if not any(self.order.edges.siblings):
            return tuple((v, 1 << v) for v in variables)
        keys = {self.order.key(v, cut) for cut in self.sets for v in variables if not cut >> v & 1}
        return tuple(sorted(keys, key=lambda key: (key[0], key[1].bit_count(), key[1])))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every factor: `Y` for a CPT, `Y | X` if its component also has X."""
        return tuple(
            " | ".join(
                [self.variables[v]]
                + [", ".join(self.variables[u] for u in bits(component & ~(1 << v)))]
                * (component != 1 << v)
            )
            for v, component in self.keys
        )

    def under(self, cut: int) -> IntArray:
        """Return the factor of each variable if the variables of `cut` are set.

        It is NONE if the variable is set itself, or if no arm needs the factor.
        """
        return np.array(
            [
                NONE if cut >> v & 1 else self.numbers.get(self.order.key(v, cut), NONE)
                for v in range(len(self.variables))
            ]
        )

    # -- places of records -------------------------------------------------------------------

    def place(self, names: Iterable[str]) -> int:
        """Return the place of an intervention on these variables, NONE if no arm sets them."""
        return 0 if self.is_plain else self._place_of.get(frozenset(names), NONE)

    @cached_property
    def _place_of(self) -> dict[frozenset[str], int]:
        return {frozenset(self.graph.names(cut)): p for p, cut in enumerate(self.sets)}

    @cached_property
    def under_arms(self) -> IntArray:
        """under_arms[place]: `under` of a place. If the factors are plain, there is one place."""
        return self.under_sets(self.sets[:1] if self.is_plain else self.sets)

    def under_sets(self, sets: Iterable[int]) -> IntArray:
        """Return `under` of each of these sets."""
        return np.array([self.under(cut) for cut in sets])

    def entries_of(self, record: Record) -> IntArray:
        """Return the entries that a record counts in.

        A record counts in a factor if the variable and its whole scope were observed and the arm
        did not set the variable.
        """
        under = self.under(mask_of(np.flatnonzero(record.fixed != MISSING).tolist()))
        entries = [
            self.starts[f] + self.strides[f] @ record.codes
            for f in under[under != NONE]
            if (record.codes[list(self.families[f])] != MISSING).all()
        ]
        return np.array(entries, dtype=np.int64)

    @cached_property
    def uniform(self) -> FloatArray:
        """Entries that make every row uniform."""
        return np.concatenate([np.full(prod(s), 1 / s[-1]) for s in self.shapes])

    def view(self, flat: AnyArray, name: str) -> AnyArray:
        """Return the factor of this name as a view of the flat array."""
        return self.table(flat, self.positions[name] if self.is_plain else self.names.index(name))

    def _size_message(self) -> str:
        largest = max(self.cells)
        f = self.cells.index(largest)
        name, axes = self.variables[self.keys[f][0]], len(self.families[f]) - 1
        if self.is_plain:
            return (
                f"the CPTs have {self.entries:.1e} entries, and the limit is {MAX_ENTRIES:.0e}: "
                f"that of {name} with its {axes} parents alone has {largest:.1e}; remove parents "
                "or make domains smaller"
            )
        joined = ", ".join(self.variables[u] for u in bits(self.keys[f][1]))
        return (
            f"the factors have {self.entries:.1e} entries, and the limit is {MAX_ENTRIES:.0e}: "
            f"that of {name} alone has {largest:.1e}, because hidden causes join {joined} and all "
            f"their parents ({axes} variables); remove bidirected edges among these, or make "
            "domains smaller"
        )
