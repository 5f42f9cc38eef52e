"""The reward program: the mean reward of every arm as one straight-line arithmetic circuit.

P(Y = y | do(x), c) is a polynomial in the CPT entries: by the truncated factorisation (section 4)
a sum of products of one entry of each variable's CPT. Variable elimination, done on symbols instead
of numbers, turns it into a circuit of operations

    out = left₁·right₁ + left₂·right₂ + …

on numbered values. The program is data: one compiled kernel runs any of them, over any number of
posterior draws. Built once per problem:

- arms of one intervention set share one elimination, in which the set's variables stay as axes
  (unless only a few of the set's values are arms: then each has its own);
- equal intermediate results of different sets are computed once;
- context variables are no axes: the context selects which rows of the CPTs are the inputs;
- a variable without a way to the reward under an arm plays no part in it (it would sum to 1), and
  rows that no arm can reach are no inputs, so they are never drawn;
- the probability of the reward's first value is one minus the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise.belief.elimination import elimination_order
from dowise.belief.tables import Tables
from dowise.errors import DowiseError
from dowise.problem import Problem

__all__ = ["Program", "compile_program"]

Integers = NDArray[np.int64]

# Ten times what `insurance` needs, which is built in half a second and takes a twelfth of a second
# for 1000 draws (docs/performance.md); both grow in proportion.
MAX_MULTIPLICATIONS = 2_000_000


@dataclass(frozen=True)
class Program:
    """A circuit over numbered values, called slots.

    Slot 0 is the constant 1. The next ones are the inputs, row after row: entry k of row r is slot
    `row_slots[r] + k`. Operation i computes slot `outputs[i]` from the pairs
    `lefts[starts[i]:starts[i+1]]`, `rights[…]`. Slots of operations are used again as soon as their
    value is no longer needed.
    """

    slots: int
    row_slots: Integers
    row_sizes: Integers
    row_variables: Integers
    row_entries: Integers
    """The flat entry where each row starts if every context variable has its first value."""
    outputs: Integers
    starts: Integers
    lefts: Integers
    rights: Integers
    results: Integers
    """results[arm, y - 1]: the slot with P(Y = y | do(arm), c), for y = 1, 2, …"""

    @property
    def multiplications(self) -> int:
        """The multiplications that one draw takes."""
        return len(self.lefts)


def compile_program(problem: Problem, tables: Tables) -> Program:
    """Build the program, or say why it can't be built: confounding, or a circuit too large."""
    _refuse_confounding(problem)
    builder = _Builder(problem, tables)
    arms_of: dict[frozenset[str], list[int]] = {}
    for i, arm in enumerate(problem.arms):
        arms_of.setdefault(arm.variables, []).append(i)
    plans = {
        names: builder.cheapest_plan(names, len(numbers)) for names, numbers in arms_of.items()
    }
    cost = sum(plan.multiplications for plan in plans.values())
    if cost > MAX_MULTIPLICATIONS:
        raise DowiseError(
            f"the rewards of this problem take about {cost:.1e} multiplications a draw "
            f"(the limit is {MAX_MULTIPLICATIONS:.0e}): its variables are too entangled. Make "
            "domains smaller, condition on more context, or cut edges that hardly matter"
        )
    results = np.zeros((len(problem.arms), len(problem.domains[problem.reward]) - 1), np.int64)
    place = {name: {x: i for i, x in enumerate(problem.domains[name])} for name in problem.graph}
    for names, plan in plans.items():
        values = {
            tables.number[name]: [place[name][problem.arms[i][name]] for i in arms_of[names]]
            for name in names
        }
        results[arms_of[names]] = builder.slots_of(plan, values, len(arms_of[names]))
    return builder.finish(results)


@dataclass(frozen=True)
class _Table:
    """A factor: for each assignment of its axes (variables in rising order), a value's number."""

    axes: tuple[int, ...]
    slots: Integers

    def key(self) -> tuple[tuple[int, ...], bytes]:
        return self.axes, self.slots.tobytes()


@dataclass(frozen=True)
class _Plan:
    """How the rewards of one intervention set are eliminated, and what it costs.

    `together`: for all its values at once, the set's variables staying as axes; otherwise for one
    arm at a time, which pays where few of them are arms.
    """

    relevant: tuple[int, ...]
    order: tuple[int, ...]
    multiplications: float
    together: bool


class _Builder:
    def __init__(self, problem: Problem, tables: Tables) -> None:
        self.problem = problem
        self.tables = tables
        self.reward = tables.number[problem.reward]
        self.context = frozenset(tables.number[name] for name in problem.context)
        # Value numbers while building: 0 is the constant, then all entries, then operations.
        self.next = 1 + tables.entries
        self.operations: list[tuple[Integers, Integers]] = []
        self.known: dict[object, _Table] = {}

    def cheapest_plan(self, intervened: frozenset[str], arms: int) -> _Plan:
        together = self._plan(intervened, 1, together=True)
        if arms == prod(len(self.problem.domains[name]) for name in intervened):
            return together
        return min(
            together, self._plan(intervened, arms, together=False), key=lambda p: p.multiplications
        )

    def _plan(self, intervened: frozenset[str], times: int, together: bool) -> _Plan:
        """Which CPTs matter for this set, in what order to sum their variables out, the cost."""
        tables, cut = self.tables, {self.tables.number[name] for name in intervened}
        relevant: set[int] = set()
        waiting = [self.reward]
        while waiting:
            v = waiting.pop()
            if v not in relevant and v not in cut and v not in self.context:
                relevant.add(v)
                waiting += tables.families[v]
        fixed = self.context if together else self.context | cut
        scopes = [frozenset(tables.families[v]) - fixed for v in sorted(relevant)]
        sizes = tables.sizes.copy()
        sizes[self.reward] -= 1  # the first value of the reward is left out
        order, cost = elimination_order(scopes, sorted(relevant - {self.reward}), sizes.tolist())
        return _Plan(tuple(sorted(relevant)), order, times * cost, together)

    def slots_of(self, plan: _Plan, values: dict[int, list[int]], arms: int) -> Integers:
        """The value numbers of P(Y = y | do(x)) for each arm and y = 1, 2, …

        `values` has for each variable of the set its value in each of the arms.
        """
        if not plan.together:
            each = [{v: column[i] for v, column in values.items()} for i in range(arms)]
            return np.stack([self._eliminate(plan, fixed).slots for fixed in each])
        table = self._eliminate(plan, {})
        return np.asarray(table.slots[tuple(values[v] for v in table.axes[:-1])])

    def _eliminate(self, plan: _Plan, fixed: dict[int, int]) -> _Table:
        """The table of P(Y = y | do(x)) over the variables left, the reward as the last axis."""
        factors = [self._cpt(v, fixed) for v in plan.relevant]
        for v in plan.order:
            bucket = sorted((f for f in factors if v in f.axes), key=lambda f: f.slots.size)
            factors = [f for f in factors if v not in f.axes]
            product = bucket[0]
            for other in bucket[1:-1]:
                product = self._combine(product, other, None)
            one = _Table((), np.zeros((), dtype=np.int64))
            factors.append(self._combine(product, bucket[-1] if bucket[1:] else one, v))
        result = factors[0]
        for other in factors[1:]:
            result = self._combine(result, other, None)
        axes = [v for v in result.axes if v != self.reward] + [self.reward]
        order = [result.axes.index(v) for v in axes]
        return _Table(tuple(axes), result.slots.transpose(order))

    def _cpt(self, v: int, fixed: dict[int, int]) -> _Table:
        """The CPT of a variable at the fixed values, context variables at their first."""
        family, shape = self.tables.families[v], self.tables.shapes[v]
        slots = 1 + self.tables.starts[v] + np.arange(prod(shape)).reshape(shape)
        held = dict.fromkeys(self.context, 0) | fixed
        slots = slots[tuple(held.get(u, slice(None)) for u in family)]
        axes = [u for u in family if u not in held]
        if v == self.reward:
            slots = slots[..., 1:]
        order = np.argsort(axes)
        return _Table(tuple(axes[i] for i in order), np.ascontiguousarray(slots.transpose(order)))

    def _combine(self, one: _Table, other: _Table, summed: int | None) -> _Table:
        """The product of two tables, summed over a variable unless it is None."""
        key = (one.key(), other.key(), summed)
        if key not in self.known:
            axes = sorted({*one.axes, *other.axes})
            axes = [v for v in axes if v != summed] + ([] if summed is None else [summed])
            shape = [self._size(v) for v in axes]
            lefts, rights = (_spread(table, axes, shape) for table in (one, other))
            terms = 1 if summed is None else shape[-1]
            kept = axes if summed is None else axes[:-1]
            count = prod(self._size(v) for v in kept)
            self.operations.append((lefts.reshape(count, terms), rights.reshape(count, terms)))
            numbers = self.next + np.arange(count, dtype=np.int64)
            self.next += count
            self.known[key] = _Table(tuple(kept), numbers.reshape([self._size(v) for v in kept]))
        return self.known[key]

    def _size(self, v: int) -> int:
        return int(self.tables.sizes[v]) - (v == self.reward)

    def finish(self, results: Integers) -> Program:
        """Drop what no result needs, then number what is left."""
        first = 1 + self.tables.entries
        terms = [lefts.shape[1] for lefts, _ in self.operations for _ in range(len(lefts))]
        starts = np.concatenate([[0], np.cumsum(terms)]).astype(np.int64)
        lefts, rights = (
            np.concatenate([pair[side].ravel() for pair in self.operations] or [results[:0, 0]])
            for side in (0, 1)
        )
        needed = np.zeros(self.next, dtype=bool)
        needed[results] = True
        for i in range(len(terms) - 1, -1, -1):
            if needed[first + i]:
                run = slice(starts[i], starts[i + 1])
                needed[lefts[run]] = needed[rights[run]] = True
        live = np.flatnonzero(needed[first:])
        return self._number(live, starts, lefts, rights, needed, results)

    def _number(
        self,
        live: Integers,
        starts: Integers,
        lefts: Integers,
        rights: Integers,
        needed: NDArray[np.bool_],
        results: Integers,
    ) -> Program:
        tables, first = self.tables, 1 + self.tables.entries
        slot_of = np.zeros(self.next, dtype=np.int64)
        row_starts = tables.row_starts
        row_sizes = tables.row_sizes
        row_variables = np.repeat(
            np.arange(len(tables.sizes)), np.diff(tables.starts) // tables.sizes
        )
        drawn = np.flatnonzero(np.add.reduceat(needed[1:first], row_starts))
        row_slots = 1 + np.concatenate([[0], np.cumsum(row_sizes[drawn])]).astype(np.int64)
        for row, slot in zip(drawn, row_slots, strict=False):
            entries = np.arange(row_starts[row], row_starts[row] + row_sizes[row])
            slot_of[1 + entries] = slot + np.arange(row_sizes[row])
        slots = _assign_slots(
            slot_of, int(row_slots[-1]), first, live, starts, lefts, rights, results
        )
        runs = [np.arange(starts[i], starts[i + 1]) for i in live]
        pairs = np.concatenate(runs) if runs else np.zeros(0, dtype=np.int64)
        return Program(
            slots=slots,
            row_slots=row_slots[:-1],
            row_sizes=row_sizes[drawn],
            row_variables=row_variables[drawn],
            row_entries=row_starts[drawn],
            outputs=slot_of[first + live],
            starts=np.concatenate([[0], np.cumsum(np.diff(starts)[live])]).astype(np.int64),
            lefts=slot_of[lefts[pairs]],
            rights=slot_of[rights[pairs]],
            results=slot_of[results],
        )


def _assign_slots(
    slot_of: Integers,
    slots: int,
    first: int,
    live: Integers,
    starts: Integers,
    lefts: Integers,
    rights: Integers,
    results: Integers,
) -> int:
    """Give every live operation a slot, reusing those whose value is used up; how many there are.

    An output never shares a slot with an operand of its own operation: the kernel writes before it
    has read everything.
    """
    # Plain lists: one number at a time, they are several times faster than arrays.
    bounds, left, right = starts.tolist(), lefts.tolist(), rights.tolist()
    operands = {
        i: {*left[bounds[i] : bounds[i + 1]], *right[bounds[i] : bounds[i + 1]]}
        for i in live.tolist()
    }
    last_use = {x: i for i, used in operands.items() for x in used if x >= first}
    for x in results.ravel().tolist():
        last_use[x] = -1  # never free
    assigned: dict[int, int] = {}
    free: list[int] = []
    for i, used in operands.items():
        if free:
            assigned[first + i] = free.pop()
        else:
            assigned[first + i] = slots
            slots += 1
        free += [assigned[x] for x in sorted(used) if last_use.get(x) == i]
    slot_of[list(assigned)] = list(assigned.values())
    return slots


def _spread(table: _Table, axes: Sequence[int], shape: Iterable[int]) -> Integers:
    """The table over more axes, repeated along those that it does not have."""
    order = [table.axes.index(v) for v in axes if v in table.axes]
    aligned = table.slots.transpose(order)
    for i, v in enumerate(axes):
        if v not in table.axes:
            aligned = np.expand_dims(aligned, i)
    return np.broadcast_to(aligned, tuple(shape))


def _refuse_confounding(problem: Problem) -> None:
    for one, other in problem.graph.bidirected_edges:
        raise DowiseError(
            f"{one} <-> {other} share a hidden cause, but this posterior needs every common cause "
            "to be observed: a CPT must be the mechanism of its variable. Add the common cause as "
            "a variable, if it can be observed"
        )
