"""Estimators compiled to one arithmetic circuit over counts, many bootstrap samples at a time.

An input is how many records of one arm have certain values; an operation is a sum of products or a
quotient. Quotients of counts are the conditionals of the formulas; sums are done by eliminating one
variable after the other, so no table is larger than it must be. Equal operations are done once.

A conditional whose condition never occurred is undefined. That makes an estimate undefined, unless
the conditional is multiplied by 0. To tell, every lane is computed twice, with undefined quotients
taken as 0 and as 1: the estimate is defined where the two agree. (For sums of products that is
exact. Where undefined parts stand above and below a bar the two could agree by chance.)
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import product as all_values
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.identification.estimators import Estimator, estimators
from dowise.identification.formula import Expression, Product, Quotient, Sum, Term
from dowise.problem import Intervention, Problem

__all__ = ["Circuit", "Marginals", "compile_circuit"]

Integers = NDArray[np.int64]

MAX_SLOTS = 20_000  # of all estimators together, but for the direct ones
MAX_SLOTS_OF_ONE = 4_000
MAX_ESTIMATORS = 32  # of one arm
_log = logging.getLogger("dowise")

SUM, QUOTIENT = 0, 1


@dataclass(frozen=True)
class Marginals:
    """Tables of counts of one arm's records: table k starts at slot `firsts[k]`, has `sizes[k]`
    slots, and counts a record with these codes of all variables at firsts[k] + strides[k] · codes.
    """

    firsts: Integers
    sizes: Integers
    strides: Integers


@dataclass(frozen=True)
class Circuit:
    """What `kernels.run_circuit` runs on numbered values, called slots."""

    slots: int
    constants: tuple[tuple[int, float], ...]
    """Slots that hold a number."""
    marginals: tuple[Marginals, ...]
    """Of each arm."""
    kinds: Integers
    """Of each operation: SUM or QUOTIENT."""
    outputs: Integers
    starts: Integers
    lefts: Integers
    rights: Integers
    """Operation i works on the pairs lefts[starts[i] : starts[i + 1]], rights[…]."""
    results: Integers
    """The slots of all estimates, arm after arm, the direct one of each arm first."""
    offsets: Integers
    """Those of arm i are results[offsets[i] : offsets[i + 1]]."""


def compile_circuit(problem: Problem) -> Circuit:
    """All estimators of all arms, as far as they fit.

    The direct ones always do. Then every arm gets its next one in turn, until there is no room.
    """
    found, builder = estimators(problem), _Builder(problem)
    small = {
        names: [way for way in others if builder.is_small(way)]
        for names, (_, *others) in found.items()
    }
    slots: list[dict[int, None]] = []
    waiting: list[Iterator[tuple[Expression, dict[str, int]]]] = []
    for arm in problem.arms:
        settings = {name: problem.code(name, label) for name, label in arm.items()}
        slots.append({builder.mean(found[arm.variables][0].formula, settings): None})
        waiting.append(_instances(problem, small[arm.variables], settings))
    used = _fill(builder, slots, waiting) + len(problem.arms)
    total = sum(_count(problem, way) for arm in problem.arms for way in found[arm.variables])
    if used < total:
        _log.warning(
            "%d of %d estimators are left out: too many, or too large to compute",
            total - used, total,
        )  # fmt: skip
    return builder.finish(slots)


def _fill(
    builder: _Builder,
    slots: Sequence[dict[int, None]],
    waiting: Sequence[Iterator[tuple[Expression, dict[str, int]]]],
) -> int:
    """Give every arm its next estimator in turn; how many there was room for."""
    used = 0
    for _ in range(1, MAX_ESTIMATORS):
        for own, instances in zip(slots, waiting, strict=True):
            for formula, fixed in instances:
                slot = builder.mean_if_room(formula, fixed)
                if slot is None:
                    return used
                used += 1
                if slot not in own:  # else it computes the same as another one
                    own[slot] = None
                    break
    return used


def _instances(
    problem: Problem, ways: Iterable[Estimator], settings: dict[str, int]
) -> Iterator[tuple[Expression, dict[str, int]]]:
    """Each formula with its arm's values, once for every value of what is free."""
    for way in ways:
        sizes = [len(problem.domains[name]) for name in way.any_value]
        for values in all_values(*map(range, sizes)):
            yield way.formula, settings | dict(zip(way.any_value, values, strict=True))


def _count(problem: Problem, way: Estimator) -> int:
    return prod(len(problem.domains[name]) for name in way.any_value)


class _TooLargeError(Exception):
    """A formula that would take more slots than there are."""


@dataclass(frozen=True)
class _Table:
    """For each combination of values of the axes, a slot."""

    axes: tuple[str, ...]
    slots: Integers


class _Builder:
    """Gives slots to constants, counts and operations, each once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sizes = {name: len(labels) for name, labels in problem.domains.items()}
        self.arms = {arm: i for i, arm in enumerate(problem.arms)}
        self.slots = 0
        self.limit = sys.maxsize
        self.constants: dict[float, int] = {}
        self.marginals: dict[tuple[int, tuple[str, ...]], int] = {}
        self.operations: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        self.zero, self.one = self._constant(0.0), self._constant(1.0)

    def mean(self, formula: Expression, fixed: Mapping[str, int]) -> int:
        """The slot of the mean reward, Σ_y worth(y) P(y), scaled to [0, 1]."""
        pairs = []
        for y, worth in enumerate(self.problem.scaled_rewards):
            if worth > 0:
                table = self._table(formula, {**fixed, self.problem.reward: y})
                pairs.append((self._constant(worth), int(table.slots)))
        return self._sum(pairs)

    def is_small(self, way: Estimator) -> bool:
        """Whether an estimator's tables take no more slots than one may, by an estimate."""
        fixed = way.settings | {*way.any_value, way.reward}
        return self._size(way.formula, fixed)[1] <= MAX_SLOTS_OF_ONE

    def mean_if_room(self, formula: Expression, fixed: Mapping[str, int]) -> int | None:
        """The slot of the mean reward, or None and nothing changed where there is no room."""
        made: tuple[dict[Any, int], ...] = (self.constants, self.marginals, self.operations)
        slots, counts = self.slots, [len(kind) for kind in made]
        self.limit = MAX_SLOTS
        try:
            return self.mean(formula, fixed)
        except _TooLargeError:
            self.slots = slots
            for kind, count in zip(made, counts, strict=True):
                while len(kind) > count:
                    kind.popitem()
            return None

    def _new(self, size: int = 1) -> int:
        if self.slots + size > self.limit:
            raise _TooLargeError
        self.slots += size
        return self.slots - size

    def _constant(self, value: float) -> int:
        if value not in self.constants:
            self.constants[value] = self._new()
        return self.constants[value]

    def _sum(self, pairs: Iterable[tuple[int, int]]) -> int:
        kept = sorted((min(pair), max(pair)) for pair in pairs if self.zero not in pair)
        if not kept:
            return self.zero
        if len(kept) == 1 and self.one in kept[0]:
            return sum(kept[0]) - self.one
        return self._operation(SUM, tuple(kept))

    def _quotient(self, top: int, bottom: int) -> int:
        return self._operation(QUOTIENT, ((top, bottom),))

    def _operation(self, kind: int, pairs: tuple[tuple[int, int], ...]) -> int:
        if (kind, pairs) not in self.operations:
            self.operations[kind, pairs] = self._new()
        return self.operations[kind, pairs]

    def _count(self, arm: int | None, values: Mapping[str, int]) -> int:
        """How many records of an arm have these values; 0 of what is no arm."""
        if arm is None:
            return self.zero
        names = tuple(sorted(values))
        if (arm, names) not in self.marginals:
            size = prod(self.sizes[name] for name in names)
            self.marginals[arm, names] = self._new(size)
        place = 0
        for name in names:
            place = place * self.sizes[name] + values[name]
        return self.marginals[arm, names] + place

    # -- tables -----------------------------------------------------------------------------------

    def _table(self, formula: Expression, fixed: Mapping[str, int]) -> _Table:
        if isinstance(formula, Term):
            return self._term(formula, fixed)
        if isinstance(formula, Quotient):
            top, bottom = self._table(formula.top, fixed), self._table(formula.bottom, fixed)
            return self._combined(top, bottom, self._quotient)
        if isinstance(formula, Product):
            tables = [self._table(factor, fixed) for factor in formula.factors]
            return self._multiplied(tables)
        inner = {name: code for name, code in fixed.items() if name not in formula.bound}
        body = formula.body
        factors = body.factors if isinstance(body, Product) else (body,)
        tables = [self._table(factor, inner) for factor in factors]
        waiting = set(formula.bound)
        while waiting:
            name = min(waiting, key=lambda x: (self._cost(x, tables), x))
            waiting.remove(name)
            holders = [table for table in tables if name in table.axes]
            tables = [table for table in tables if name not in table.axes]
            tables.append(self._summed_out(name, holders))
        return self._multiplied(tables)

    def _term(self, term: Term, fixed: Mapping[str, int]) -> _Table:
        axes = tuple(sorted(term.free - fixed.keys()))
        shape = self._shape(axes)
        slots = np.empty(shape, dtype=np.int64)
        for values in np.ndindex(shape):
            known = {**fixed, **dict(zip(axes, values, strict=True))}
            arm = self._arm(term.experiment, known)
            given = {name: known[name] for name in term.given}
            event = given | {name: known[name] for name in term.variables}
            slots[values] = self._quotient(self._count(arm, event), self._count(arm, given))
        return _Table(axes, slots)

    def _size(self, formula: Expression, fixed: Set[str]) -> tuple[frozenset[str], int]:
        """The axes of a formula's table, and about how many slots all tables on the way take."""
        if isinstance(formula, Term):
            axes = formula.free - fixed
            return axes, self._cells(axes)
        if isinstance(formula, Sum):
            fixed = fixed - formula.bound
            body = formula.body
            parts = body.factors if isinstance(body, Product) else (body,)
        elif isinstance(formula, Quotient):
            parts = (formula.top, formula.bottom)
        else:
            parts = formula.factors
        sized = [self._size(part, fixed) for part in parts]
        slots, scopes = sum(size for _, size in sized), [axes for axes, _ in sized]
        waiting = set(formula.bound) if isinstance(formula, Sum) else set()
        while waiting:
            joined = {x: frozenset().union(*(s for s in scopes if x in s)) for x in waiting}
            name = min(waiting, key=lambda x: (self._cells(joined[x]), x))
            waiting.remove(name)
            slots += self._cells(joined[name])
            scopes = [s for s in scopes if name not in s] + [joined[name] - {name}]
        axes = frozenset().union(*scopes)
        return axes, slots + self._cells(axes)

    def _cells(self, axes: Iterable[str]) -> int:
        return prod(self.sizes[name] for name in axes)

    def _shape(self, axes: Iterable[str]) -> tuple[int, ...]:
        """The shape of a table, if there is room for so many slots."""
        shape = tuple(self.sizes[name] for name in axes)
        if prod(shape) > self.limit - self.slots:
            raise _TooLargeError
        return shape

    def _arm(self, experiment: frozenset[str], known: Mapping[str, int]) -> int | None:
        domains = self.problem.domains
        labels = {name: domains[name][known[name]] for name in experiment}
        return self.arms.get(Intervention(labels))

    def _cost(self, name: str, tables: list[_Table]) -> int:
        axes = {axis for table in tables if name in table.axes for axis in table.axes}
        return self._cells(axes)

    def _multiplied(self, tables: list[_Table]) -> _Table:
        result = _Table((), np.array(self.one))
        for table in tables:
            result = self._combined(result, table, self._product)
        return result

    def _product(self, one: int, other: int) -> int:
        return self._sum([(one, other)])

    def _combined(self, one: _Table, other: _Table, join: Callable[[int, int], int]) -> _Table:
        axes = tuple(sorted({*one.axes, *other.axes}))
        left, right = self._aligned(one, axes), self._aligned(other, axes)
        slots = np.empty(left.shape, dtype=np.int64)
        for place in np.ndindex(left.shape):
            slots[place] = join(int(left[place]), int(right[place]))
        return _Table(axes, slots)

    def _aligned(self, table: _Table, axes: tuple[str, ...]) -> Integers:
        shape = self._shape(axes)
        index = tuple(slice(None) if name in table.axes else None for name in axes)
        return np.broadcast_to(table.slots[index], shape)

    def _summed_out(self, name: str, tables: list[_Table]) -> _Table:
        """Σ_name of the product: all but the last are multiplied first."""
        first, last = self._multiplied(tables[:-1]), tables[-1]
        axes = tuple(sorted({*first.axes, *last.axes}))
        left, right = self._aligned(first, axes), self._aligned(last, axes)
        place = axes.index(name)
        left, right = np.moveaxis(left, place, -1), np.moveaxis(right, place, -1)
        slots = np.empty(left.shape[:-1], dtype=np.int64)
        for at in np.ndindex(slots.shape):
            slots[at] = self._sum(zip(left[at].tolist(), right[at].tolist(), strict=True))
        return _Table((*axes[:place], *axes[place + 1 :]), slots)

    # -- the end ----------------------------------------------------------------------------------

    def finish(self, slots: Sequence[Iterable[int]]) -> Circuit:
        """Everything in arrays; operations are in an order in which they can be done."""
        results = [slot for own in slots for slot in own]
        pairs = np.array([pair for _, operands in self.operations for pair in operands]).T
        counts = [len(operands) for _, operands in self.operations]
        return Circuit(
            slots=self.slots,
            constants=tuple((slot, value) for value, slot in self.constants.items()),
            marginals=tuple(map(self._marginals_of, range(len(self.arms)))),
            kinds=np.array([kind for kind, _ in self.operations]),
            outputs=np.array(list(self.operations.values())),
            starts=np.concatenate([[0], np.cumsum(counts)]),
            lefts=np.ascontiguousarray(pairs[0]),
            rights=np.ascontiguousarray(pairs[1]),
            results=np.array(results),
            offsets=np.concatenate([[0], np.cumsum([len(list(own)) for own in slots])]),
        )

    def _marginals_of(self, arm: int) -> Marginals:
        variables = self.problem.graph.variables
        mine = {names: first for (i, names), first in self.marginals.items() if i == arm}
        sizes = np.ones(len(mine), dtype=np.int64)
        strides = np.zeros((len(mine), len(variables)), dtype=np.int64)
        for k, names in enumerate(mine):
            for name in reversed(names):
                strides[k, variables.index(name)] = sizes[k]
                sizes[k] *= self.sizes[name]
        return Marginals(np.array(list(mine.values()), dtype=np.int64), sizes, strides)
