"""The distribution of the reward under every arm, from the factors' entries: as a circuit, for any
number of draws, or once, at given numbers.

P(Y = y | do(x), c) is a polynomial in the entries: by the truncated factorisation (section 4, and
docs/hidden.md where causes are hidden) a sum of products of one entry of each variable's factor.
Variable elimination by the problem's plans (`dowise.model.elimination`) evaluates it. Done on symbols
instead of numbers, it turns it into a circuit (`dowise.model.circuit`), built once per problem:

- equal intermediate results of different sets are computed once;
- rows that no arm can reach are no inputs, so they are never drawn;
- the probability of the reward's first value is one minus the others, and so left out, unless it is
  asked for: where the others come close to 1 their rest has no digits left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import inf, prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.model.circuit import Builder, Circuit
from dowise.model.edge_structures import Structures
from dowise.model.elimination import Algebra, Arithmetic, EliminationPlan, Numbers, Plans, Table
from dowise.model.factors import Factors
from dowise.problem import Problem
from dowise.problem.problem import remade

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
    plans: Plans,
    plan: EliminationPlan,
    settings: dict[int, Integers],
    algebra: Arithmetic,
    entries: EntriesOf,
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


class Reading(NamedTuple):
    """Version m has the reads from reads[m] to reads[m + 1].

    Read r is the row of sizes[r] entries from entries[r] on, and feeds the blocks of inputs that
    start at the slots from targets[r] to targets[r + 1].
    """

    variables: Integers
    """Those that the circuit has rows of."""
    reads: Integers
    entries: Integers
    """In the context whose values are all the first."""
    sizes: Integers
    targets: Integers
    slots: Integers
    blocks: Integers
    """Of these slots: the number of the block in the circuit."""
    shifts: Integers
    """shifts[r, i]: how far a step of the i-th context variable moves the row."""


def reading_of(structures: Structures, circuit: Circuit, context: Integers) -> Reading:
    """Of all versions; the context variables are given by their positions."""
    factors, tables = structures.factors, structures.tables
    own = factors.row_tables[circuit.blocks]  # the factor of each block
    codes = _codes(factors.strides[own], factors.row_starts[circuit.blocks] - factors.starts[own])
    reads, entries, shifts, targets, blocks = [0], [], [], [0], []
    for m, version in enumerate(structures.versions):
        mine = np.flatnonzero(factors.targets[own] == version.variable)
        table = structures.table_of[m, own[mine]]
        where = tables.starts[table] + (tables.strides[table] * codes[mine]).sum(axis=1)
        distinct, first, which = np.unique(where, return_index=True, return_inverse=True)
        entries.append(distinct)
        shifts.append(tables.strides[table[first]][:, context])
        reads.append(reads[-1] + len(distinct))
        blocks.append(mine[np.argsort(which.ravel(), kind="stable")])
        targets += (
            targets[-1] + np.cumsum(np.bincount(which.ravel(), minlength=len(distinct)))
        ).tolist()
    fed = np.concatenate(blocks)
    ends = np.array(targets)
    return Reading(
        variables=np.unique(factors.targets[own]),
        reads=np.array(reads),
        entries=np.concatenate(entries),
        sizes=circuit.block_sizes[fed[ends[:-1]]],
        targets=ends,
        slots=circuit.block_slots[fed],
        blocks=fed,
        shifts=np.concatenate(shifts),
    )


def _codes(strides: Integers, offsets: Integers) -> Integers:
    """The values of all variables at these places in tables of these strides; 0 for the others."""
    codes = np.zeros_like(strides)
    left = offsets.copy()
    order = np.argsort(-strides, axis=1, kind="stable")
    rows = np.arange(len(strides))
    for column in order.T:
        step = strides[rows, column]
        codes[rows, column] = np.where(step > 0, left // np.maximum(step, 1), 0)
        left -= codes[rows, column] * step
    return codes


_BYTES = 100  # that building a program takes for each multiplication, measured with `water`
_MOST = 1e9  # the largest program that may be asked for
_TOLD = 3  # of each kind
_EFFORT = 20_000  # pairs of variables in all that is tried: about a second
_ARMS = 50  # take as long as a variable
_FEWEST = 4


@dataclass(frozen=True)
class Remedy:
    """These variables in this role, and so many multiplications are left."""

    role: Literal["hidden", "context"]
    names: tuple[str, ...]
    multiplications: float

    def applied(self, problem: Problem) -> Problem:
        """The problem with the variables in this role."""
        _, (options,) = problem.__reduce__()
        others = [name for name in problem.non_manipulable if name not in self.names]
        roles: dict[str, Any] = {"non_manipulable": others}
        roles[self.role] = (*getattr(problem, self.role), *self.names)
        return remade({**options, **roles})


def remedies(plans: Plans) -> list[Remedy]:
    """The changes of one variable's role after which the program is small enough, cheapest first.

    Variables that some arm sets keep their role: that they can be set is the point.
    """
    problem = plans.problem
    size = len(problem.graph) + len(problem.arms) // _ARMS
    tries = max(_FEWEST, _EFFORT // size**2)
    found = [_tried(problem, remedy) for remedy in islice(_candidates(plans), tries)]
    fitting = (x for x in found if x.multiplications <= problem.max_program)
    return sorted(fitting, key=lambda x: (len(x.names), x.multiplications, x.names))


def _candidates(plans: Plans) -> Iterator[Remedy]:
    problem = plans.problem
    dearest = max(plans.of.values(), key=lambda plan: plan.multiplications)
    is_set = frozenset().union(*problem.intervention_sets) | {problem.reward}
    for v in sorted(dearest.largest, key=lambda v: (-plans.sizes[v], v)):
        name = plans.factors.variables[v]
        if name not in is_set:
            yield Remedy("hidden", (name,), inf)
        causes = problem.graph.ancestors([name])
        if not causes & is_set:
            yield Remedy("context", tuple(sorted(causes - {*problem.context})), inf)


def _tried(problem: Problem, remedy: Remedy) -> Remedy:
    """The same with what is left to be multiplied; infinite where the roles don't fit together."""
    try:
        changed = remedy.applied(problem)
        cost = Plans(changed, Factors(changed)).multiplications
    except DowiseError:
        cost = inf
    return Remedy(remedy.role, remedy.names, cost)


def too_large(plans: Plans) -> str:
    """That the program of a problem is too large, and what helps, in words."""
    cost, limit = plans.multiplications, plans.problem.max_program
    found = remedies(plans)
    ways = [*_in_words(found, "hidden", "and record no longer")]
    ways += [*_in_words(found, "context", "where it is seen before the choice")]
    if not ways:
        ways = ["make domains smaller, cut edges that hardly matter"]
    if cost <= _MOST:
        more = f"{_rounded_up(cost):,}".replace(",", "_")
        ways = [f"raise it, max_program = {more} ({_bytes(cost)} while it is built)", *ways]
    return (
        f"the rewards of this problem take about {cost:.2g} multiplications a draw, and "
        f"max_program is {limit:,}: {'; or '.join(ways)}; or take a policy that learns from "
        "rewards alone, such as ucb, which needs none of this"
    )


def too_large_at_once(plans: Plans, cells: float) -> str:
    """That even one world's means can't be computed, in words."""
    return (
        f"the means of all arms take about {plans.multiplications:.2g} multiplications and a table "
        f"of {cells:.2g} numbers in each world, too much for a race: name fewer arms, make domains "
        "smaller or cut edges that hardly matter"
    )


def _in_words(found: Iterable[Remedy], role: str, what: str) -> Iterator[str]:
    """What more of this role would do, and alternatives to that."""
    own = [remedy.names for remedy in found if remedy.role == role][:_TOLD]
    if own:
        lists = " or ".join(json.dumps(list(names), ensure_ascii=False) for names in own)
        yield f"add to {role}, {what}, {lists}"


def _rounded_up(cost: float) -> int:
    """Two digits, and not less."""
    digit: int = 10 ** max(0, len(str(int(cost))) - 2)
    return (int(cost) // digit + 1) * digit


def _bytes(cost: float) -> str:
    size = _BYTES * cost
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
