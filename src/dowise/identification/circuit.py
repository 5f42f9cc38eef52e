"""Estimators compiled to one arithmetic circuit over counts, many bootstrap samples at a time.

An input is the number of records of one arm with certain values. The conditionals of the formulas
are quotients of counts; sums are computed by variable elimination, which keeps the tables small
(`dowise.model.elimination`).

A conditional whose condition never occurred is undefined. That makes an estimate undefined, unless
the conditional is multiplied by 0. Therefore every lane is computed twice, with undefined quotients
set to 0 and to 1: the estimate is defined if the two agree. (For sums of products this is exact. If
both parts of a quotient are undefined, the two may agree by chance.)
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
from dowise.identification.formula import (
    Expression,
    Product,
    Quotient,
    Sum,
    Term,
    factors_of,
)
from dowise.identification.identify import Estimator, estimators
from dowise.model.circuit import ZERO, Builder, Circuit, TooLargeError
from dowise.model.elimination import Algebra, AxisTable, elimination
from dowise.problem import Intervention, Problem

MAX_VALUES = 20_000  # in all estimators together, except the direct ones
MAX_CELLS = 4_000  # in the tables of one estimator
MAX_ESTIMATORS = 32  # per arm
_log = logging.getLogger("dowise")


class Marginals(NamedTuple):
    """Tables of counts of one arm's records.

    Table k has sizes[k] slots from firsts[k] on, and counts a record with these codes of
    `Estimates.variables` at firsts[k] + strides[k] · codes.
    """

    firsts: IntArray
    sizes: IntArray
    strides: IntArray


@dataclass(frozen=True, eq=False)
class Estimates:
    """Circuit of all estimators of all arms."""

    circuit: Circuit
    """Circuit whose results are the estimates, arm after arm, the direct one first."""
    offsets: IntArray
    """Estimates of arm i are results[offsets[i] : offsets[i + 1]]."""
    marginals: tuple[Marginals, ...]
    """Tables of counts of each arm."""
    variables: IntArray
    """Positions of the variables that some estimator uses."""


@lru_cache(maxsize=32)
def compile_estimators(problem: Problem) -> Estimates:
    """Compile the estimators of all arms, once per problem.

    The direct ones always fit. Then every arm gets its next one in turn, up to `MAX_VALUES`.
    """
    by_set, compiler = estimators(problem), _Compiler(problem)
    small = {
        names: [estimator for estimator in indirect if compiler.is_small(estimator)]
        for names, (_, *indirect) in by_set.items()
    }
    values: list[dict[int, None]] = []
    waiting: list[Iterator[tuple[Expression, dict[int, int]]]] = []
    for arm in problem.arms:
        fixed = problem.fixed(arm)
        settings = {problem.positions[name]: int(fixed[problem.positions[name]]) for name in arm}
        values.append({compiler.mean(by_set[arm.variables][0].formula, settings): None})
        waiting.append(_instances(problem, small[arm.variables], settings))
    compiler.builder.limit = max(MAX_VALUES, compiler.builder.count)
    used = _fill(compiler, values, waiting) + len(problem.arms)
    total = sum(
        prod(len(problem.domains[name]) for name in estimator.any_value)
        for arm in problem.arms
        for estimator in by_set[arm.variables]
    )
    if used < total:
        _log.warning(
            "%d of %d estimators are left out: too many, or too large to compute",
            total - used,
            total,
        )
    return compiler.finish(values)


def _fill(
    compiler: _Compiler,
    values: Sequence[dict[int, None]],
    waiting: Sequence[Iterator[tuple[Expression, dict[int, int]]]],
) -> int:
    """Add the next estimator of every arm in turn, and return the number of those that fit."""
    used = 0
    for _ in range(1, MAX_ESTIMATORS):
        for of_arm, instances in zip(values, waiting, strict=True):
            for formula, fixed in instances:
                try:
                    value = compiler.mean(formula, fixed)
                except TooLargeError:  # `finish` drops the incomplete estimator
                    return used
                used += 1
                if value not in of_arm:  # otherwise it equals another estimator
                    of_arm[value] = None
                    break
    return used


def _instances(
    problem: Problem, formulas: Iterable[Estimator], settings: dict[int, int]
) -> Iterator[tuple[Expression, dict[int, int]]]:
    """Yield each formula with the arm's values, for every value of the free variables."""
    for estimator in formulas:
        free = [problem.positions[name] for name in estimator.any_value]
        sizes = [len(problem.domains[name]) for name in estimator.any_value]
        for codes in all_values(*map(range, sizes)):
            yield estimator.formula, settings | dict(zip(free, codes, strict=True))


class _Compiler:
    """Compiler of formulas to values of one circuit; variables are identified by positions."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sizes = [len(labels) for labels in problem.domains.values()]
        self.arms = {arm: i for i, arm in enumerate(problem.arms)}
        self.builder = Builder()
        self.algebra = Algebra(self.builder, self.sizes)
        self.counts: dict[tuple[int, tuple[int, ...]], tuple[int, IntArray]] = {}
        """Tables of counts, by arm and axes: number of the block, and its values."""

    def mean(self, formula: Expression, fixed: Mapping[int, int]) -> int:
        """Add the mean reward Σ_y worth(y) P(y), scaled to [0, 1], and return its value."""
        worth, parts = [], []
        for y, scaled in enumerate(self.problem.payoff.scaled.tolist()):
            if scaled > 0:
                table = self._table(formula, {**fixed, self.problem.reward_position: y})
                worth.append(self.builder.constant(scaled))
                parts.append(int(table.values))
        return int(self.builder.sums([worth], [parts])[0])

    def is_small(self, estimator: Estimator) -> bool:
        """Return True if the tables of an estimator have at most `MAX_CELLS` values, roughly."""
        fixed = self._positions(estimator.settings | {*estimator.any_value, estimator.reward})
        return self._size(estimator.formula, fixed)[1] <= MAX_CELLS

    def _positions(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset(self.problem.positions[name] for name in names)

    # -- tables ------------------------------------------------------------------------------------

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
        tables = [self._table(part, inner) for part in factors_of(formula.body)]
        order = elimination([frozenset(t.axes) for t in tables], bound, self.sizes).order
        return self.algebra.product(self.algebra.eliminated(tables, order))

    def _term(self, term: Term, fixed: Mapping[int, int]) -> AxisTable:
        """Return the table of P_experiment(variables | given), a quotient of counts."""
        problem, positions = self.problem, self.problem.positions
        axes = tuple(sorted(self._positions(term.free) - fixed.keys()))
        condition = self._positions(term.given)
        event = self._positions(term.variables | term.given)
        shape = tuple(self.sizes[v] for v in axes)
        tops, bottoms = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        experiment = [v for v in axes if problem.graph.variables[v] in term.experiment]
        free = tuple(v for v in axes if v not in experiment)
        for arm_codes in all_values(*(range(self.sizes[v]) for v in experiment)):
            codes = {**fixed, **dict(zip(experiment, arm_codes, strict=True))}
            settings = {
                name: problem.domains[name][codes[positions[name]]] for name in term.experiment
            }
            arm = self.arms.get(Intervention(settings))
            cells = tuple(codes[v] if v in experiment else slice(None) for v in axes)
            tops[cells] = self._counts(arm, event, codes, free)
            bottoms[cells] = self._counts(arm, condition, codes, free)
        return AxisTable(axes, self.builder.quotients(tops, bottoms))

    def _counts(
        self, arm: int | None, event: Iterable[int], codes: Mapping[int, int], free: Sequence[int]
    ) -> IntArray:
        """Return the numbers of an arm's records with these codes, over the free axes."""
        if arm is None:
            return np.array(ZERO)
        axes = tuple(sorted(event))
        if (arm, axes) not in self.counts:
            shape = tuple(self.sizes[v] for v in axes)
            block = self.builder.inputs(prod(shape)).reshape(shape)
            self.counts[arm, axes] = len(self.counts), block
        block = self.counts[arm, axes][1][tuple(codes.get(v, slice(None)) for v in axes)]
        return np.asarray(block[tuple(slice(None) if v in axes else None for v in free)])

    def _size(self, formula: Expression, fixed: Set[int]) -> tuple[frozenset[int], float]:
        """Return the axes of a formula's table, and roughly the size of all intermediate tables."""
        if isinstance(formula, Term):
            axes = self._positions(formula.free) - fixed
            return axes, prod(self.sizes[v] for v in axes)
        bound: frozenset[int] = frozenset()
        parts: tuple[Expression, ...]
        if isinstance(formula, Sum):
            bound, parts = self._positions(formula.bound), factors_of(formula.body)
        elif isinstance(formula, Quotient):
            parts = (formula.top, formula.bottom)
        else:
            parts = formula.factors
        sized = [self._size(part, fixed - bound) for part in parts]
        plan = elimination([axes for axes, _ in sized], bound, self.sizes)
        axes = frozenset().union(*plan.remaining)
        return axes, sum(size for _, size in sized) + plan.cells(self.sizes)

    # -- result ------------------------------------------------------------------------------------

    def finish(self, values: Sequence[Iterable[int]]) -> Estimates:
        """Return the circuit and its inputs, over the variables that some estimator uses."""
        circuit = self.builder.finish([value for of_arm in values for value in of_arm])
        slots = dict(zip(circuit.blocks.tolist(), circuit.block_slots.tolist(), strict=True))
        tables = {key: slots[block] for key, (block, _) in self.counts.items() if block in slots}
        variables = np.array(sorted({v for _, axes in tables for v in axes}), dtype=np.int64)
        return Estimates(
            circuit,
            np.concatenate([[0], np.cumsum([len(list(of_arm)) for of_arm in values])]),
            tuple(self._marginals_of(i, tables, variables) for i in range(len(self.arms))),
            variables,
        )

    def _marginals_of(
        self, arm: int, tables: Mapping[tuple[int, tuple[int, ...]], int], variables: IntArray
    ) -> Marginals:
        firsts = {axes: first for (i, axes), first in tables.items() if i == arm}
        sizes = np.ones(len(firsts), dtype=np.int64)
        strides = np.zeros((len(firsts), len(variables)), dtype=np.int64)
        for k, axes in enumerate(firsts):
            for v in reversed(axes):
                strides[k, np.searchsorted(variables, v)] = sizes[k]
                sizes[k] *= self.sizes[v]
        return Marginals(np.array(list(firsts.values()), dtype=np.int64), sizes, strides)
