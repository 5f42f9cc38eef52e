"""The distribution of the reward under every arm, from the factors' entries: as a circuit, for any
number of draws, or once, at given numbers.

P(Y = y | do(x), c) is a polynomial in the entries: by the truncated factorisation (section 4, and
docs/hidden.md where causes are hidden) a sum of products of one entry of each variable's factor.
Variable elimination by the problem's plans (`dowise.model.plans`) evaluates it. Done on symbols
instead of numbers, it turns it into a circuit (`dowise.model.circuit`), built once per problem:

- equal intermediate results of different sets are computed once;
- rows that no arm can reach are no inputs, so they are never drawn;
- the probability of the reward's first value is one minus the others, and so left out, unless it is
  asked for: where the others come close to 1 their rest has no digits left.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.model.circuit import Builder, Circuit
from dowise.model.factors import Factors
from dowise.model.plans import Plan, Plans
from dowise.model.tables import Algebra, Arithmetic, Numbers, Table

__all__ = ["reward_circuit", "reward_distributions"]

Codes = tuple[int, ...]
Integers = NDArray[np.int64]
EntriesOf = Callable[[int], NDArray[Any]]
"""The entries of a factor in one context: an axis for each other variable of its scope, then it."""


def reward_circuit(plans: Plans, keep: bool = False) -> Circuit:
    """The circuit of these plans, however many multiplications they are; `keep`: `Builder.finish`.

    Its blocks are rows of the factors, by number. results[arm, y − 1] is P(Y = y | do(arm), c)
    for all values y but the first; where the plans are `whole` the first is there too,
    results[arm, y].
    """
    builder = Builder()
    inputs = _Inputs(plans.factors, plans.context, builder)
    results = _of_arms(plans, Algebra(builder, plans.sizes), inputs.of)
    circuit = builder.finish(results, keep)
    return circuit._replace(blocks=np.concatenate(inputs.rows)[circuit.blocks])


def reward_distributions(
    plans: Plans, entries: NDArray[np.float64], codes: Codes
) -> NDArray[np.float64]:
    """P(Y = y | do(arm), c) at these entries of all factors, by plans that are `whole`.

    One set of numbers takes far less room than the circuit for any.
    """
    factors, where = plans.factors, dict(zip(sorted(plans.context), codes, strict=True))

    def entries_of(f: int) -> NDArray[np.float64]:
        place = tuple(where.get(u, slice(None)) for u in factors.families[f])
        return np.asarray(factors.table(entries, f)[place])

    return _of_arms(plans, Numbers(), entries_of)


def _of_arms(plans: Plans, algebra: Arithmetic, entries_of: EntriesOf) -> NDArray[Any]:
    """The rewards of all arms, on symbols or on numbers: (arms, values of Y)."""
    problem, parts, order = plans.problem, [], list[int]()
    for names, plan in plans.of.items():
        settings = np.array([problem.fixed(problem.arms[i]) for i in plan.arms])
        codes = {problem.positions[name]: settings[:, problem.positions[name]] for name in names}
        found = _of_set(plans, plan, codes, algebra, entries_of)
        parts.append(np.broadcast_to(found, (len(plan.arms), found.shape[-1])))
        order += plan.arms
    return np.concatenate(parts)[np.argsort(order)]


def _of_set(
    plans: Plans, plan: Plan, settings: dict[int, Integers], algebra: Arithmetic, entries: EntriesOf
) -> NDArray[Any]:
    """The same for the arms of one set; settings[v] has the code of v in each of them."""

    def eliminated(fixed: dict[int, int]) -> Table:
        tables = [_factor(plans, f, fixed, entries(f)) for f in plan.factors]
        return algebra.product(algebra.eliminated(tables, plan.order))

    if not plan.together:
        each = [{v: int(codes[i]) for v, codes in settings.items()} for i in range(len(plan.arms))]
        return np.stack([eliminated(fixed).values for fixed in each])
    table = eliminated({})
    axes = [v for v in table.axes if v != plans.reward]
    values = np.moveaxis(table.values, table.axes.index(plans.reward), -1)
    return np.asarray(values[tuple(settings[v] for v in axes)])


def _factor(plans: Plans, f: int, fixed: dict[int, int], entries: NDArray[Any]) -> Table:
    """A factor at the fixed values."""
    axes = [u for u in plans.factors.families[f] if u not in plans.context]
    values = entries[tuple(fixed.get(u, slice(None)) for u in axes)]
    if axes[-1] == plans.reward:
        values = values[..., plans.first :]
    return Table.of([u for u in axes if u not in fixed], values)


class _Inputs:
    """The inputs of a circuit under construction: the rows of factors that some arm needs."""

    def __init__(self, factors: Factors, context: frozenset[int], builder: Builder) -> None:
        self._factors, self._context, self._builder = factors, context, builder
        self._known: dict[int, Integers] = {}
        self.rows: list[Integers] = []
        """The numbers of the rows, which are the blocks of inputs, in the order of blocks."""

    def of(self, f: int) -> Integers:
        """The values of a factor's entries, context variables at their first value.

        No others are made: of a factor that nobody needs none, and of one that hangs on the context
        only what one context reads.
        """
        if f not in self._known:
            factors = self._factors
            *scope, _ = factors.families[f]
            *shape, size = factors.shapes[f]
            first = np.searchsorted(factors.row_starts, factors.starts[f])
            every = first + np.arange(prod(shape)).reshape(shape)
            in_context = tuple(0 if u in self._context else slice(None) for u in scope)
            rows = np.asarray(every[in_context])
            values = self._builder.input_blocks(np.full(rows.size, size))
            self._known[f] = values.reshape(*rows.shape, size)
            self.rows.append(rows.ravel())
        return self._known[f]
