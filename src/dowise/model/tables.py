"""Variable elimination, on numbers and on symbols.

On symbols the entries of tables are values of a circuit under construction: the same steps that
multiply and sum tables of numbers, done once, write down the circuit that does it for any numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.model.circuit import ONE, Builder, TooLargeError

__all__ = ["Algebra", "Arithmetic", "Numbers", "Table"]

Integers = NDArray[np.int64]


class Table(NamedTuple):
    """For each assignment of its axes (variables in rising order), a number, or a value of the
    circuit."""

    axes: tuple[int, ...]
    values: NDArray[Any]

    @classmethod
    def of(cls, axes: Sequence[int], values: NDArray[Any]) -> Table:
        """With axes in any order."""
        order = np.argsort(axes)
        return cls(tuple(axes[i] for i in order), values.transpose(order).copy())


_UNIT = Table((), np.array(ONE))  # by its number and as a number


class Arithmetic:
    """Products of tables, and sums of such products over one variable after the other."""

    def eliminated(self, tables: Iterable[Table], order: Iterable[int]) -> list[Table]:
        """What is left of the factors after these variables were summed out, one by one."""
        factors = list(tables)
        for v in order:
            bucket = sorted((t for t in factors if v in t.axes), key=lambda t: t.values.size)
            factors = [t for t in factors if v not in t.axes]
            factors.append(self.summed(v, bucket))
        return factors

    def product(self, tables: Sequence[Table]) -> Table:
        """The product of all; without any, 1."""
        result = tables[0] if tables else _UNIT
        for other in tables[1:]:
            result = self._combined(result, other, None)
        return result

    def summed(self, v: int, tables: Sequence[Table]) -> Table:
        """Σ_v of the product: all but the last are multiplied first."""
        if len(tables) == 1:
            return self._combined(tables[0], _UNIT, v)
        return self._combined(self.product(tables[:-1]), tables[-1], v)

    def _combined(self, one: Table, other: Table, summed: int | None) -> Table:
        """The product of two tables, summed over a variable unless it is None."""
        raise NotImplementedError


class Numbers(Arithmetic):
    """Of numbers."""

    def _combined(self, one: Table, other: Table, summed: int | None) -> Table:
        axes = tuple(sorted({*one.axes, *other.axes}))
        place = {v: i for i, v in enumerate(axes)}  # einsum knows no more than 52 names
        kept = tuple(v for v in axes if v != summed)
        ones, others, left = ([place[v] for v in x] for x in (one.axes, other.axes, kept))
        return Table(kept, np.einsum(one.values, ones, other.values, others, left))


class Algebra(Arithmetic):
    """Of values of a circuit, quotients too; variable v has sizes[v] values."""

    def __init__(self, builder: Builder, sizes: Sequence[int]) -> None:
        self.builder = builder
        self.sizes = sizes
        self._known: dict[object, Table] = {}

    def quotient(self, top: Table, bottom: Table) -> Table:
        """Element by element."""
        return self._joined(top, bottom, self.builder.quotients)

    def _combined(self, one: Table, other: Table, summed: int | None) -> Table:
        key = (one.axes, one.values.tobytes(), other.axes, other.values.tobytes(), summed)
        if key not in self._known:
            if summed is None:
                self._known[key] = self._joined(one, other, self.builder.products)
            else:
                kept = tuple(v for v in sorted({*one.axes, *other.axes}) if v != summed)
                shape = self._shape((*kept, summed))
                rows = (prod(shape[:-1]), shape[-1])
                lefts, rights = (
                    _spread(t, (*kept, summed), shape).reshape(rows) for t in (one, other)
                )
                values = self.builder.sums(lefts, rights).reshape(shape[:-1])
                self._known[key] = Table(kept, values)
        return self._known[key]

    def _joined(
        self, one: Table, other: Table, join: Callable[[Integers, Integers], Integers]
    ) -> Table:
        axes = tuple(sorted({*one.axes, *other.axes}))
        shape = self._shape(axes)
        return Table(axes, join(_spread(one, axes, shape), _spread(other, axes, shape)))

    def _shape(self, axes: Iterable[int]) -> tuple[int, ...]:
        """The shape of a table, if there is room for so many values."""
        shape = tuple(self.sizes[v] for v in axes)
        if prod(shape) > self.builder.limit:
            raise TooLargeError
        return shape


def _spread(table: Table, axes: Sequence[int], shape: Sequence[int]) -> Integers:
    """The table over more axes, in any order, repeated along those that it does not have."""
    order = [table.axes.index(v) for v in axes if v in table.axes]
    index = tuple(slice(None) if v in table.axes else None for v in axes)
    return np.broadcast_to(table.values.transpose(order)[index], tuple(shape))
