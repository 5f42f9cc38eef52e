"""Variable elimination: order, cost, and the tables of numbers or symbols.

The order is greedy min-fill, and the cost is known before any work. `Plans` chooses an order for
every intervention set of a problem:

- arms of one intervention set share one elimination, in which the set's variables stay as axes
  (unless only few of the set's values are arms: then each arm has its own);
- context variables are not axes: the context selects which rows of the factors are read;
- a variable without a path to the reward under an arm is left out, because it would sum to 1,
  unless it is requested (`followed`): its value is evidence about other arms.

`Numbers` carries a plan out on tables of numbers. `Algebra` does the same steps on values of a
circuit under construction, which writes down the circuit for any numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np

from dowise._core.types import AnyArray, IntArray
from dowise.graph.adjacency import bits
from dowise.model.circuit import ONE, Builder, TooLargeError
from dowise.model.factors import FactorLayout
from dowise.problem import Problem


class Step(NamedTuple):
    """Sum over a variable of the product of all factors that have it."""

    variable: int
    scope: frozenset[int]
    """Variables of these factors."""
    factors: int


class Elimination(NamedTuple):
    """Steps in order, and the scopes of the factors that remain to be multiplied at the end."""

    steps: tuple[Step, ...]
    remaining: tuple[frozenset[int], ...]

    @property
    def order(self) -> tuple[int, ...]:
        """Variables in the order of elimination."""
        return tuple(step.variable for step in self.steps)

    def multiplications(self, sizes: Sequence[int]) -> float:
        """Return the number of multiplications if variable v has sizes[v] values."""
        cost = sum(_cells(step.scope, sizes) * max(1, step.factors - 1) for step in self.steps)
        return cost + _cells(frozenset().union(*self.remaining), sizes) * (len(self.remaining) - 1)

    def cells(self, sizes: Sequence[int]) -> float:
        """Return the number of entries of all intermediate tables and the last one."""
        last = _cells(frozenset().union(*self.remaining), sizes)
        return sum(_cells(step.scope, sizes) for step in self.steps) + last


def elimination(
    scopes: Iterable[frozenset[int]], eliminated: Iterable[int], sizes: Sequence[int]
) -> Elimination:
    """Choose the order in which to sum variables out of a product of factors with these scopes.

    The next variable is the one whose neighbours lack the fewest edges among each other; ties go to
    the smallest table, then to the lowest number. Other variables stay as axes.

    >>> plan = elimination([frozenset({0, 1}), frozenset({1, 2})], [1], [2, 2, 2])
    >>> plan.order, plan.multiplications([2, 2, 2])
    ((1,), 8.0)
    """
    factors = list(scopes)
    neighbours: dict[int, set[int]] = {}
    for scope in factors:
        for v in scope:
            neighbours.setdefault(v, set()).update(scope - {v})
    remaining = set(eliminated)
    steps: list[Step] = []
    while remaining:
        v = min(remaining, key=lambda v: (_fill(v, neighbours), _table(v, neighbours, sizes), v))
        remaining.remove(v)
        bucket = [scope for scope in factors if v in scope]
        joined = frozenset().union(*bucket)
        steps.append(Step(v, joined, len(bucket)))
        factors = [scope for scope in factors if v not in scope] + [joined - {v}]
        around = neighbours.pop(v)
        for u in around:
            neighbours[u] |= around - {u}
            neighbours[u].discard(v)
    return Elimination(tuple(steps), tuple(factors))


def _cells(scope: Iterable[int], sizes: Sequence[int]) -> float:
    return prod((float(sizes[u]) for u in scope), start=1.0)


def _fill(v: int, neighbours: dict[int, set[int]]) -> int:
    return sum(b not in neighbours[a] for a, b in combinations(neighbours[v], 2))


def _table(v: int, neighbours: dict[int, set[int]], sizes: Sequence[int]) -> int:
    return sizes[v] * prod(sizes[u] for u in neighbours[v])


@dataclass(frozen=True)
class EliminationPlan:
    """Elimination of the rewards of one intervention set, and its cost."""

    arms: tuple[int, ...]
    """Positions of the set's arms."""
    factors: tuple[int, ...]
    order: tuple[int, ...]
    multiplications: float
    largest: frozenset[int]
    """Variables of the largest intermediate table."""
    together: bool
    """True if all values of the set are done at once, its variables staying as axes.

    Otherwise one arm at a time, which is cheaper if few of the values are arms.
    """


class Plans:
    """Plans of all intervention sets, for all values of the reward but the first.

    With `whole` the first value is included. Variable v has sizes[v] values in the tables. The
    variables of `followed` are in every plan whose set does not set them.
    """

    def __init__(
        self,
        problem: Problem,
        factors: FactorLayout,
        whole: bool = False,
        followed: frozenset[int] = frozenset(),
    ) -> None:
        self.problem, self.followed = problem, followed
        self.factors = factors
        self.reward = problem.reward_position
        self.context = frozenset(problem.context_positions.tolist())
        self.first = 0 if whole else 1  # of the reward's values
        self.sizes = factors.sizes.tolist()
        self.sizes[self.reward] -= self.first

    @cached_property
    def of(self) -> dict[frozenset[str], EliminationPlan]:
        """Cheapest plan of each set."""
        arms: dict[frozenset[str], list[int]] = {}
        for i, arm in enumerate(self.problem.arms):
            arms.setdefault(arm.variables, []).append(i)
        return {names: self._cheapest(names, tuple(i)) for names, i in arms.items()}

    @property
    def multiplications(self) -> float:
        """Number of multiplications for all arms at one set of entries."""
        return sum(plan.multiplications for plan in self.of.values())

    def cells(self, variables: frozenset[int]) -> float:
        """Return the number of entries of a table with these axes."""
        return _cells(variables, self.sizes)

    def _cheapest(self, intervened: frozenset[str], arms: tuple[int, ...]) -> EliminationPlan:
        together = self._plan(intervened, arms, together=True)
        if len(arms) == prod(len(self.problem.domains[name]) for name in intervened):
            return together
        apart = self._plan(intervened, arms, together=False)
        return min(together, apart, key=lambda plan: plan.multiplications)

    def _plan(
        self, intervened: frozenset[str], arms: tuple[int, ...], together: bool
    ) -> EliminationPlan:
        """Choose the factors that matter for this set, the order of elimination, and its cost."""
        families, cut = self.factors.families, self.problem.graph.mask(intervened)
        under = self.factors.under(cut)
        relevant: dict[int, int] = {}
        stack = [self.reward, *self.followed]
        while stack:
            v = stack.pop()
            if v not in relevant and not cut >> v & 1 and v not in self.context:
                relevant[v] = int(under[v])
                stack += families[relevant[v]]
        fixed = self.context if together else self.context | set(bits(cut))
        factors = tuple(relevant[v] for v in sorted(relevant))
        scopes = [frozenset(families[f]) - fixed for f in factors]
        chosen = elimination(scopes, sorted(relevant.keys() - {self.reward}), self.sizes)
        times = 1 if together else len(arms)
        tables = [*(step.scope for step in chosen.steps), frozenset().union(*chosen.remaining)]
        largest = max(tables, key=self.cells)
        cost = times * chosen.multiplications(self.sizes)
        return EliminationPlan(arms, factors, chosen.order, cost, largest, together)


class AxisTable(NamedTuple):
    """Table over variables in ascending order, of numbers or of values of a circuit."""

    axes: tuple[int, ...]
    values: AnyArray

    @classmethod
    def of(cls, axes: Sequence[int], values: AnyArray) -> AxisTable:
        """Return the table of values whose axes are in any order."""
        order = np.argsort(axes)
        return cls(tuple(axes[i] for i in order), values.transpose(order).copy())


_UNIT = AxisTable((), np.array(ONE))  # ONE is both the number 1 and the value of 1


class Arithmetic:
    """Products of tables, and sums of such products over one variable after the other."""

    def eliminated(self, tables: Iterable[AxisTable], order: Iterable[int]) -> list[AxisTable]:
        """Sum variables out, one after the other, and return the remaining tables."""
        factors = list(tables)
        for v in order:
            bucket = sorted((t for t in factors if v in t.axes), key=lambda t: t.values.size)
            factors = [t for t in factors if v not in t.axes]
            factors.append(self.summed(v, bucket))
        return factors

    def product(self, tables: Sequence[AxisTable]) -> AxisTable:
        """Return the product of all tables, 1 if there are none."""
        result = tables[0] if tables else _UNIT
        for table in tables[1:]:
            result = self._combined(result, table, None)
        return result

    def summed(self, v: int, tables: Sequence[AxisTable]) -> AxisTable:
        """Return Σ_v of the product: all but the last table are multiplied first."""
        if len(tables) == 1:
            return self._combined(tables[0], _UNIT, v)
        return self._combined(self.product(tables[:-1]), tables[-1], v)

    def _combined(self, left: AxisTable, right: AxisTable, summed: int | None) -> AxisTable:
        """Return the product of two tables, summed over a variable unless it is None."""
        raise NotImplementedError


class Numbers(Arithmetic):
    """Arithmetic on tables of numbers."""

    def _combined(self, left: AxisTable, right: AxisTable, summed: int | None) -> AxisTable:
        axes = tuple(sorted({*left.axes, *right.axes}))
        labels = {v: i for i, v in enumerate(axes)}  # einsum has at most 52
        result = tuple(v for v in axes if v != summed)
        of_left, of_right, of_result = (
            [labels[v] for v in axes] for axes in (left.axes, right.axes, result)
        )
        return AxisTable(result, np.einsum(left.values, of_left, right.values, of_right, of_result))


class Algebra(Arithmetic):
    """Arithmetic on tables of values of a circuit; variable v has sizes[v] values."""

    def __init__(self, builder: Builder, sizes: Sequence[int]) -> None:
        self.builder = builder
        self.sizes = sizes
        self._products: dict[object, AxisTable] = {}

    def quotient(self, top: AxisTable, bottom: AxisTable) -> AxisTable:
        """Return the quotient of two tables, element by element."""
        return self._joined(top, bottom, self.builder.quotients)

    def _combined(self, left: AxisTable, right: AxisTable, summed: int | None) -> AxisTable:
        key = (left.axes, left.values.tobytes(), right.axes, right.values.tobytes(), summed)
        if key not in self._products:
            if summed is None:
                self._products[key] = self._joined(left, right, self.builder.products)
            else:
                axes = tuple(v for v in sorted({*left.axes, *right.axes}) if v != summed)
                shape = self._shape((*axes, summed))
                rows = (prod(shape[:-1]), shape[-1])
                lefts, rights = (
                    _spread(table, (*axes, summed), shape).reshape(rows) for table in (left, right)
                )
                values = self.builder.sums(lefts, rights).reshape(shape[:-1])
                self._products[key] = AxisTable(axes, values)
        return self._products[key]

    def _joined(
        self, left: AxisTable, right: AxisTable, join: Callable[[IntArray, IntArray], IntArray]
    ) -> AxisTable:
        axes = tuple(sorted({*left.axes, *right.axes}))
        shape = self._shape(axes)
        return AxisTable(axes, join(_spread(left, axes, shape), _spread(right, axes, shape)))

    def _shape(self, axes: Iterable[int]) -> tuple[int, ...]:
        """Return the shape of a table; raises `TooLargeError` beyond the limit of the builder."""
        shape = tuple(self.sizes[v] for v in axes)
        if prod(shape) > self.builder.limit:
            raise TooLargeError
        return shape


def _spread(table: AxisTable, axes: Sequence[int], shape: Sequence[int]) -> IntArray:
    """Broadcast a table to more axes, in any order."""
    order = [table.axes.index(v) for v in axes if v in table.axes]
    index = tuple(slice(None) if v in table.axes else None for v in axes)
    return np.broadcast_to(table.values.transpose(order)[index], tuple(shape))
