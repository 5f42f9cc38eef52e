"""Circuit from the entries of the factors to the distribution of the reward under every arm.

P(Y = y | do(x), c) is a polynomial in the entries: by the truncated factorisation (section 4, and
docs/hidden.md where causes are hidden) a sum of products of one entry of each variable's factor.
Variable elimination (`dowise.model.elimination`) evaluates it, on numbers for a single set of
entries, or on symbols, which gives a circuit (`dowise.model.circuit`) for any number of draws. It
is built once per problem:

- equal intermediate results of different intervention sets are computed once;
- rows that no arm can reach are not inputs, so they are never drawn;
- the probability of the reward's first value is one minus the others, and left out unless it is
  requested: where the others come close to 1, the difference has no digits left.

With doubtful edges, a `Reading` maps the entries of each version to inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from dowise._core.types import AnyArray, FloatArray, IntArray
from dowise.model.circuit import Builder, Circuit
from dowise.model.edge_structures import Structures
from dowise.model.elimination import Algebra, Arithmetic, AxisTable, EliminationPlan, Numbers, Plans
from dowise.model.factors import Codes, FactorLayout

MAX_PROGRAM = 1e9  # largest value of `max_program` that is suggested
MAX_NAMES = 10  # of the variables of a table, in messages
_BYTES_PER_MULTIPLICATION = 100  # while a circuit is built, measured with `water`
EntriesOf = Callable[[int], AnyArray]
"""Entries of a factor in one context: the axes are the rest of its scope, then the variable."""


def reward_circuit(plans: Plans, keep: bool = False) -> Circuit:
    """Build the circuit of these plans, of any size; `keep` is passed to `Builder.finish`.

    Its blocks are rows of the factors, by number. results[arm, y − 1] is P(Y = y | do(arm), c)
    for all values y but the first; if the plans are `whole`, it is results[arm, y] for all values.
    """
    builder = Builder()
    inputs = _Inputs(plans.factors, plans.context, builder)
    results = _of_arms(plans, Algebra(builder, plans.sizes), inputs.of)
    circuit = builder.finish(results, keep)
    return circuit._replace(blocks=np.concatenate(inputs.rows)[circuit.blocks])


def reward_distributions(plans: Plans, entries: FloatArray, codes: Codes) -> FloatArray:
    """Return P(Y = y | do(arm), c) at these entries of all factors, by plans that are `whole`.

    It takes far less memory than the circuit.
    """
    factors, context = plans.factors, dict(zip(sorted(plans.context), codes, strict=True))

    def entries_of(f: int) -> FloatArray:
        index = tuple(context.get(u, slice(None)) for u in factors.families[f])
        return np.asarray(factors.table(entries, f)[index])

    return _of_arms(plans, Numbers(), entries_of)


def _of_arms(plans: Plans, algebra: Arithmetic, entries_of: EntriesOf) -> AnyArray:
    """Return the reward distributions of all arms, as symbols or numbers: (arms, values of Y)."""
    problem, parts, order = plans.problem, [], list[int]()
    for names, plan in plans.of.items():
        settings = np.array([problem.fixed(problem.arms[i]) for i in plan.arms])
        codes = {problem.positions[name]: settings[:, problem.positions[name]] for name in names}
        part = _of_set(plans, plan, codes, algebra, entries_of)
        parts.append(np.broadcast_to(part, (len(plan.arms), part.shape[-1])))
        order += plan.arms
    return np.concatenate(parts)[np.argsort(order)]


def _of_set(
    plans: Plans,
    plan: EliminationPlan,
    settings: dict[int, IntArray],
    algebra: Arithmetic,
    entries: EntriesOf,
) -> AnyArray:
    """Return the reward distributions of the arms of one set; settings[v] has the codes of v."""

    def eliminated(fixed: dict[int, int]) -> AxisTable:
        tables = [_factor(plans, f, fixed, entries(f)) for f in plan.factors]
        return algebra.product(algebra.eliminated(tables, plan.order))

    if not plan.together:
        arms = range(len(plan.arms))
        fixed = [{v: int(codes[i]) for v, codes in settings.items()} for i in arms]
        return np.stack([eliminated(codes).values for codes in fixed])
    table = eliminated({})
    axes = [v for v in table.axes if v != plans.reward]
    values = np.moveaxis(table.values, table.axes.index(plans.reward), -1)
    return np.asarray(values[tuple(settings[v] for v in axes)])


def _factor(plans: Plans, f: int, fixed: dict[int, int], entries: AnyArray) -> AxisTable:
    axes = [u for u in plans.factors.families[f] if u not in plans.context]
    values = entries[tuple(fixed.get(u, slice(None)) for u in axes)]
    if axes[-1] == plans.reward:
        values = values[..., plans.first :]
    return AxisTable.of([u for u in axes if u not in fixed], values)


class _Inputs:
    """Inputs of a circuit under construction: the rows of factors that some arm needs."""

    def __init__(self, factors: FactorLayout, context: frozenset[int], builder: Builder) -> None:
        self._factors, self._context, self._builder = factors, context, builder
        self._symbols: dict[int, IntArray] = {}
        self.rows: list[IntArray] = []
        """Numbers of the rows, each a block of inputs, in the order of blocks."""

    def of(self, f: int) -> IntArray:
        """Return the symbols of a factor's entries, with context variables at their first value.

        Inputs are created when they are first requested, for one context only.
        """
        if f not in self._symbols:
            factors = self._factors
            *scope, _ = factors.families[f]
            *shape, size = factors.shapes[f]
            first = np.searchsorted(factors.row_starts, factors.starts[f])
            every = first + np.arange(prod(shape)).reshape(shape)
            in_context = tuple(0 if u in self._context else slice(None) for u in scope)
            rows = np.asarray(every[in_context])
            values = self._builder.input_blocks(np.full(rows.size, size))
            self._symbols[f] = values.reshape(*rows.shape, size)
            self.rows.append(rows.ravel())
        return self._symbols[f]


class Reading(NamedTuple):
    """Entries that the inputs of a circuit are read from, for each version of each variable.

    Version m has the reads from reads[m] to reads[m + 1]. Read r is the row of sizes[r] entries
    from entries[r] on, and feeds the blocks of inputs that start at the slots from targets[r] to
    targets[r + 1].
    """

    variables: IntArray
    """Variables whose rows the circuit reads."""
    reads: IntArray
    entries: IntArray
    """First entries of the rows, in the first context."""
    sizes: IntArray
    targets: IntArray
    slots: IntArray
    blocks: IntArray
    """Numbers of these blocks in the circuit."""
    shifts: IntArray
    """shifts[r, i]: distance that one step of the i-th context variable moves the row."""


def reading_of(structures: Structures, circuit: Circuit, context: IntArray) -> Reading:
    """Return the reading of a circuit for all versions; `context` holds positions of variables."""
    factors, tables = structures.factors, structures.tables
    of_block = factors.row_tables[circuit.blocks]  # the factor of each block
    offsets = factors.row_starts[circuit.blocks] - factors.starts[of_block]
    codes = _codes(factors.strides[of_block], offsets)
    reads, entries, shifts, targets, blocks = [0], [], [], [0], []
    for m, version in enumerate(structures.versions):
        of_version = np.flatnonzero(factors.targets[of_block] == version.variable)
        table = structures.table_of[m, of_block[of_version]]
        first_entries = tables.starts[table] + (tables.strides[table] * codes[of_version]).sum(
            axis=1
        )
        distinct, first, read = np.unique(first_entries, return_index=True, return_inverse=True)
        entries.append(distinct)
        shifts.append(tables.strides[table[first]][:, context])
        reads.append(reads[-1] + len(distinct))
        blocks.append(of_version[np.argsort(read.ravel(), kind="stable")])
        counts = np.bincount(read.ravel(), minlength=len(distinct))
        targets += (targets[-1] + np.cumsum(counts)).tolist()
    fed = np.concatenate(blocks)
    ends = np.array(targets)
    return Reading(
        variables=np.unique(factors.targets[of_block]),
        reads=np.array(reads),
        entries=np.concatenate(entries),
        sizes=circuit.block_sizes[fed[ends[:-1]]],
        targets=ends,
        slots=circuit.block_slots[fed],
        blocks=fed,
        shifts=np.concatenate(shifts),
    )


def _codes(strides: IntArray, offsets: IntArray) -> IntArray:
    """Return the codes of all variables at offsets in tables of these strides, 0 if absent."""
    codes = np.zeros_like(strides)
    remaining = offsets.copy()
    order = np.argsort(-strides, axis=1, kind="stable")
    rows = np.arange(len(strides))
    for column in order.T:
        step = strides[rows, column]
        codes[rows, column] = np.where(step > 0, remaining // np.maximum(step, 1), 0)
        remaining -= codes[rows, column] * step
    return codes


def size_message(plans: Plans) -> str:
    """Return the error message for a reward circuit beyond `max_program`."""
    cost, limit = plans.multiplications, plans.problem.max_program
    raised = ""
    if cost <= MAX_PROGRAM:
        digit = 10 ** max(0, len(str(int(cost))) - 2)  # rounded up to two digits
        enough = f"{(int(cost) // digit + 1) * digit:,}".replace(",", "_")
        size = _BYTES_PER_MULTIPLICATION * cost
        memory = f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
        raised = f"set max_program = {enough} ({memory} while it is built), "
    return (
        f"the rewards of this problem take about {cost:.2g} multiplications per draw, more than "
        f"max_program = {limit:,}; {_largest_table(plans)}. To go on, {raised}hide variables, make "
        "domains smaller, remove edges that hardly matter, or use a policy that learns from "
        "rewards alone, such as ucb"
    )


def means_size_message(plans: Plans) -> str:
    """Return the error message for a problem whose means take too long in a single world."""
    return (
        f"the means of all arms take about {plans.multiplications:.2g} multiplications in each "
        f"world, too many for a simulation; {_largest_table(plans)}. Name fewer arms, make domains "
        "smaller or remove edges that hardly matter"
    )


def _largest_table(plans: Plans) -> str:
    largest = max((plan.largest for plan in plans.of.values()), key=plans.cells)
    names = sorted(plans.factors.variables[v] for v in largest)
    listed = ", ".join(names[:MAX_NAMES]) + f" and {len(names) - MAX_NAMES} more" * (
        len(names) > MAX_NAMES
    )
    return f"the largest table has {plans.cells(largest):.2g} entries, over {listed}"
