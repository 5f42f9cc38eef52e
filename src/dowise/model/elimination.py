"""In which order to sum variables out: greedy min-fill, with the cost known before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.graph.adjacency import bits
from dowise.model.circuit import ONE, Builder, TooLargeError
from dowise.model.factors import Factors
from dowise.problem import Problem


class Step(NamedTuple):
    """One variable is summed out of the product of all factors that have it."""

    variable: int
    scope: frozenset[int]
    """All variables of these factors."""
    factors: int


class Elimination(NamedTuple):
    """The steps in their order, and the scopes of what is left to be multiplied at the end."""

    steps: tuple[Step, ...]
    rest: tuple[frozenset[int], ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The variables in the order in which they go."""
        return tuple(step.variable for step in self.steps)

    def multiplications(self, sizes: Sequence[int]) -> float:
        """What it takes where variable v has sizes[v] values."""
        cost = sum(_cells(step.scope, sizes) * max(1, step.factors - 1) for step in self.steps)
        return cost + _cells(frozenset().union(*self.rest), sizes) * (len(self.rest) - 1)

    def cells(self, sizes: Sequence[int]) -> float:
        """The entries of all tables on the way, the last one included."""
        last = _cells(frozenset().union(*self.rest), sizes)
        return sum(_cells(step.scope, sizes) for step in self.steps) + last


def elimination(
    scopes: Iterable[frozenset[int]], eliminated: Iterable[int], sizes: Sequence[int]
) -> Elimination:
    """How to sum these variables out of the product of factors of these scopes.

    Next comes the variable whose neighbours lack the fewest edges among each other; then the one
    with the smallest table, then the lowest number. Variables not eliminated stay as axes.

    >>> found = elimination([frozenset({0, 1}), frozenset({1, 2})], [1], [2, 2, 2])
    >>> found.order, found.multiplications([2, 2, 2])
    ((1,), 8.0)
    """
    factors = list(scopes)
    neighbours: dict[int, set[int]] = {}
    for scope in factors:
        for v in scope:
            neighbours.setdefault(v, set()).update(scope - {v})
    left = set(eliminated)
    steps: list[Step] = []
    while left:
        v = min(left, key=lambda v: (_fill(v, neighbours), _table(v, neighbours, sizes), v))
        left.remove(v)
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
    """How the rewards of one intervention set are eliminated, and what it costs.

    `together`: for all its values at once, the set's variables staying as axes; otherwise for one
    arm at a time, which pays where few of them are arms.
    """

    arms: tuple[int, ...]
    """The positions of the set's arms."""
    factors: tuple[int, ...]
    order: tuple[int, ...]
    multiplications: float
    largest: frozenset[int]
    """The variables of the largest table on the way."""
    together: bool


class Plans:
    """The plan of every intervention set, all values of the reward but the first; with `whole` all.

    Variable v has sizes[v] values in the tables. The variables of `followed` are in every plan
    whose set leaves them be.
    """

    def __init__(
        self,
        problem: Problem,
        factors: Factors,
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
        """The cheapest plan of each set."""
        arms: dict[frozenset[str], list[int]] = {}
        for i, arm in enumerate(self.problem.arms):
            arms.setdefault(arm.variables, []).append(i)
        return {names: self._cheapest(names, tuple(own)) for names, own in arms.items()}

    @property
    def multiplications(self) -> float:
        """Of all arms together, at one set of entries."""
        return sum(plan.multiplications for plan in self.of.values())

    def cells(self, variables: frozenset[int]) -> float:
        """The entries of a table with these axes."""
        return prod((float(self.sizes[v]) for v in variables), start=1.0)

    def _cheapest(self, intervened: frozenset[str], arms: tuple[int, ...]) -> EliminationPlan:
        together = self._plan(intervened, arms, together=True)
        if len(arms) == prod(len(self.problem.domains[name]) for name in intervened):
            return together
        apart = self._plan(intervened, arms, together=False)
        return min(together, apart, key=lambda plan: plan.multiplications)

    def _plan(
        self, intervened: frozenset[str], arms: tuple[int, ...], together: bool
    ) -> EliminationPlan:
        """Which factors matter for this set, in what order their variables go, and the cost."""
        families, cut = self.factors.families, self.problem.graph.mask(intervened)
        under = self.factors.under(cut)
        relevant: dict[int, int] = {}
        waiting = [self.reward, *self.followed]
        while waiting:
            v = waiting.pop()
            if v not in relevant and not cut >> v & 1 and v not in self.context:
                relevant[v] = int(under[v])
                waiting += families[relevant[v]]
        fixed = self.context if together else self.context | set(bits(cut))
        factors = tuple(relevant[v] for v in sorted(relevant))
        scopes = [frozenset(families[f]) - fixed for f in factors]
        found = elimination(scopes, sorted(relevant.keys() - {self.reward}), self.sizes)
        times = 1 if together else len(arms)
        tables = [*(step.scope for step in found.steps), frozenset().union(*found.rest)]
        largest = max(tables, key=self.cells)
        cost = times * found.multiplications(self.sizes)
        return EliminationPlan(arms, factors, found.order, cost, largest, together)


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
