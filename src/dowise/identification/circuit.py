"""Estimators compiled to one arithmetic circuit over counts, many bootstrap samples at a time.

An input is how many records of one arm have certain values. Quotients of counts are the
conditionals of the formulas; sums are done by eliminating one variable after the other, so no table
is larger than it must be (`dowise.model.elimination`).

A conditional whose condition never occurred is undefined. That makes an estimate undefined, unless
the conditional is multiplied by 0. To tell, every lane is computed twice, with undefined quotients
taken as 0 and as 1: the estimate is defined where the two agree. (For sums of products that is
exact. Where undefined parts stand above and below a bar the two could agree by chance.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import product as all_values
from math import prod
from typing import NamedTuple

import numpy as np

from dowise._core.types import IntArray
from dowise.identification.formula import Expression, Product, Quotient, Sum, Term
from dowise.identification.identify import Estimator, estimators
from dowise.model.circuit import ZERO, Builder, Circuit, TooLargeError
from dowise.model.elimination import Algebra, AxisTable, elimination
from dowise.problem import Intervention, Problem

__all__ = ["Estimates", "Marginals", "compile_estimators"]


MAX_VALUES = 20_000  # of all estimators together, but for the direct ones
MAX_CELLS_OF_ONE = 4_000
MAX_ESTIMATORS = 32  # of one arm
_log = logging.getLogger("dowise")


class Marginals(NamedTuple):
    """Tables of counts of one arm's records: table k starts at slot `firsts[k]`, has `sizes[k]`
    slots, and counts a record with these codes of `Estimates.variables` at
    firsts[k] + strides[k] · codes.
    """

    firsts: IntArray
    sizes: IntArray
    strides: IntArray


@dataclass(frozen=True, eq=False)
class Estimates:
    """The circuit of all estimators of all arms."""

    circuit: Circuit
    """Its results are the estimates, arm after arm, the direct one of each arm first."""
    offsets: IntArray
    """Those of arm i are results[offsets[i] : offsets[i + 1]]."""
    marginals: tuple[Marginals, ...]
    """Of each arm."""
    variables: IntArray
    """The positions of the variables that some estimator looks at."""


@lru_cache(maxsize=32)
def compile_estimators(problem: Problem) -> Estimates:
    """All estimators of all arms, as far as they fit; built once for all policies of a problem.

    The direct ones always do. Then every arm gets its next one in turn, until there is no room.
    """
    found, compiler = estimators(problem), _Compiler(problem)
    small = {
        names: [way for way in others if compiler.is_small(way)]
        for names, (_, *others) in found.items()
    }
    values: list[dict[int, None]] = []
    waiting: list[Iterator[tuple[Expression, dict[int, int]]]] = []
    for arm in problem.arms:
        fixed = problem.fixed(arm)
        settings = {problem.positions[name]: int(fixed[problem.positions[name]]) for name in arm}
        values.append({compiler.mean(found[arm.variables][0].formula, settings): None})
        waiting.append(_instances(problem, small[arm.variables], settings))
    compiler.builder.limit = max(MAX_VALUES, compiler.builder.count)
    used = _fill(compiler, values, waiting) + len(problem.arms)
    total = sum(_count(problem, way) for arm in problem.arms for way in found[arm.variables])
    if used < total:
        _log.warning(
            "%d of %d estimators are left out: too many, or too large to compute",
            total - used, total,
        )  # fmt: skip
    return compiler.finish(values)


def _fill(
    compiler: _Compiler,
    values: Sequence[dict[int, None]],
    waiting: Sequence[Iterator[tuple[Expression, dict[int, int]]]],
) -> int:
    """Give every arm its next estimator in turn; how many there was room for."""
    used = 0
    for _ in range(1, MAX_ESTIMATORS):
        for own, instances in zip(values, waiting, strict=True):
            for formula, fixed in instances:
                try:
                    value = compiler.mean(formula, fixed)
                except TooLargeError:  # what was begun is needed by nobody, and so dropped
                    return used
                used += 1
                if value not in own:  # else it computes the same as another one
                    own[value] = None
                    break
    return used


def _instances(
    problem: Problem, ways: Iterable[Estimator], settings: dict[int, int]
) -> Iterator[tuple[Expression, dict[int, int]]]:
    """Each formula with its arm's values, once for every value of what is free."""
    for way in ways:
        free = [problem.positions[name] for name in way.any_value]
        sizes = [len(problem.domains[name]) for name in way.any_value]
        for codes in all_values(*map(range, sizes)):
            yield way.formula, settings | dict(zip(free, codes, strict=True))


def _count(problem: Problem, way: Estimator) -> int:
    return prod(len(problem.domains[name]) for name in way.any_value)


class _Compiler:
    """Writes formulas as values of one circuit; variables are known by their positions."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sizes = [len(labels) for labels in problem.domains.values()]
        self.arms = {arm: i for i, arm in enumerate(problem.arms)}
        self.builder = Builder()
        self.algebra = Algebra(self.builder, self.sizes)
        self.counts: dict[tuple[int, tuple[int, ...]], tuple[int, IntArray]] = {}
        """The tables of counts, by arm and axes: the number of the block, and its values."""

    def mean(self, formula: Expression, fixed: Mapping[int, int]) -> int:
        """The value of the mean reward, Σ_y worth(y) P(y), scaled to [0, 1]."""
        worth, parts = [], []
        for y, scaled in enumerate(self.problem.payoff.scaled.tolist()):
            if scaled > 0:
                table = self._table(formula, {**fixed, self.problem.reward_position: y})
                worth.append(self.builder.constant(scaled))
                parts.append(int(table.values))
        return int(self.builder.sums([worth], [parts])[0])

    def is_small(self, way: Estimator) -> bool:
        """Whether an estimator's tables take no more values than one may, by an estimate."""
        fixed = self._positions(way.settings | {*way.any_value, way.reward})
        return self._size(way.formula, fixed)[1] <= MAX_CELLS_OF_ONE

    def _positions(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset(self.problem.positions[name] for name in names)

    # -- tables -----------------------------------------------------------------------------------

    def _table(self, formula: Expression, fixed: Mapping[int, int]) -> AxisTable:
        if isinstance(formula, Term):
            return self._term(formula, fixed)
        if isinstance(formula, Quotient):
            top, bottom = self._table(formula.top, fixed), self._table(formula.bottom, fixed)
            return self.algebra.quotient(top, bottom)
        if isinstance(formula, Product):
            return self.algebra.product([self._table(part, fixed) for part in formula.factors])
        bound = self._positions(formula.bound)
        inner = {v: code for v, code in fixed.items() if v not in bound}
        tables = [self._table(part, inner) for part in _factors(formula.body)]
        order = elimination([frozenset(t.axes) for t in tables], bound, self.sizes).order
        return self.algebra.product(self.algebra.eliminated(tables, order))

    def _term(self, term: Term, fixed: Mapping[int, int]) -> AxisTable:
        """P_experiment(variables | given): a quotient of counts."""
        positions = self.problem.positions
        axes = tuple(sorted(self._positions(term.free) - fixed.keys()))
        given, event = self._positions(term.given), self._positions(term.variables | term.given)
        shape = tuple(self.sizes[v] for v in axes)
        tops, bottoms = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        chosen = [v for v in axes if self.problem.graph.variables[v] in term.experiment]
        for codes in all_values(*(range(self.sizes[v]) for v in chosen)):
            known = {**fixed, **dict(zip(chosen, codes, strict=True))}
            arm = self._arm({name: known[positions[name]] for name in term.experiment})
            here = tuple(known[v] if v in chosen else slice(None) for v in axes)
            left = tuple(v for v in axes if v not in chosen)
            tops[here] = self._counts(arm, event, known, left)
            bottoms[here] = self._counts(arm, given, known, left)
        return AxisTable(axes, self.builder.quotients(tops, bottoms))

    def _counts(
        self, arm: int | None, event: Iterable[int], known: Mapping[int, int], left: Sequence[int]
    ) -> IntArray:
        """How many records of an arm have the known values and each of those left; 0 of no arm."""
        if arm is None:
            return np.array(ZERO)
        axes = tuple(sorted(event))
        if (arm, axes) not in self.counts:
            shape = tuple(self.sizes[v] for v in axes)
            block = self.builder.inputs(prod(shape)).reshape(shape)
            self.counts[arm, axes] = len(self.counts), block
        block = self.counts[arm, axes][1][tuple(known.get(v, slice(None)) for v in axes)]
        return np.asarray(block[tuple(slice(None) if v in axes else None for v in left)])

    def _arm(self, settings: Mapping[str, int]) -> int | None:
        domains = self.problem.domains
        return self.arms.get(Intervention({x: domains[x][code] for x, code in settings.items()}))

    def _size(self, formula: Expression, fixed: Set[int]) -> tuple[frozenset[int], float]:
        """The axes of a formula's table, and about how many values all tables on the way take."""
        if isinstance(formula, Term):
            axes = self._positions(formula.free) - fixed
            return axes, prod(self.sizes[v] for v in axes)
        bound: frozenset[int] = frozenset()
        parts: tuple[Expression, ...]
        if isinstance(formula, Sum):
            bound, parts = self._positions(formula.bound), _factors(formula.body)
        elif isinstance(formula, Quotient):
            parts = (formula.top, formula.bottom)
        else:
            parts = formula.factors
        sized = [self._size(part, fixed - bound) for part in parts]
        found = elimination([axes for axes, _ in sized], bound, self.sizes)
        axes = frozenset().union(*found.rest)
        return axes, sum(size for _, size in sized) + found.cells(self.sizes)

    # -- the end ----------------------------------------------------------------------------------

    def finish(self, values: Sequence[Iterable[int]]) -> Estimates:
        """Everything in arrays; only variables that some estimator looks at are counted by."""
        circuit = self.builder.finish([value for own in values for value in own])
        slots = dict(zip(circuit.blocks.tolist(), circuit.block_slots.tolist(), strict=True))
        kept = {key: slots[block] for key, (block, _) in self.counts.items() if block in slots}
        variables = np.array(sorted({v for _, axes in kept for v in axes}), dtype=np.int64)
        return Estimates(
            circuit,
            np.concatenate([[0], np.cumsum([len(list(own)) for own in values])]),
            tuple(self._marginals_of(i, kept, variables) for i in range(len(self.arms))),
            variables,
        )

    def _marginals_of(
        self, arm: int, kept: Mapping[tuple[int, tuple[int, ...]], int], variables: IntArray
    ) -> Marginals:
        mine = {axes: first for (i, axes), first in kept.items() if i == arm}
        sizes = np.ones(len(mine), dtype=np.int64)
        strides = np.zeros((len(mine), len(variables)), dtype=np.int64)
        for k, axes in enumerate(mine):
            for v in reversed(axes):
                strides[k, np.searchsorted(variables, v)] = sizes[k]
                sizes[k] *= self.sizes[v]
        return Marginals(np.array(list(mine.values()), dtype=np.int64), sizes, strides)


def _factors(body: Expression) -> tuple[Expression, ...]:
    return body.factors if isinstance(body, Product) else (body,)
