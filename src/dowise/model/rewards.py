"""The reward circuit: the distribution of the reward under every arm, from the factors' entries.

P(Y = y | do(x), c) is a polynomial in the entries: by the truncated factorisation (section 4, and
docs/hidden.md where causes are hidden) a sum of products of one entry of each variable's factor.
Variable elimination, done on symbols instead of numbers, turns it into a circuit
(`dowise.model.circuit`). Built once per problem:

- arms of one intervention set share one elimination, in which the set's variables stay as axes
  (unless only a few of the set's values are arms: then each has its own);
- equal intermediate results of different sets are computed once;
- context variables are no axes: the context selects which rows of the factors are the inputs;
- a variable without a way to the reward under an arm plays no part in it (it would sum to 1), and
  rows that no arm can reach are no inputs, so they are never drawn;
- the probability of the reward's first value is one minus the others, and so left out, unless it is
  asked for: where the others come close to 1 their rest has no digits left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.graph.bits import bits
from dowise.model.circuit import Builder, Circuit
from dowise.model.elimination import elimination
from dowise.model.factors import Factors
from dowise.model.tables import Algebra, Table
from dowise.problem import Problem

__all__ = ["reward_circuit"]

Integers = NDArray[np.int64]


def reward_circuit(problem: Problem, factors: Factors, whole: bool = False) -> Circuit:
    """The circuit, or why it can't be built: too many multiplications.

    Its blocks are rows of the factors, by number. results[arm, y − 1] is P(Y = y | do(arm), c)
    for all values y but the first; with `whole` the first is there too, results[arm, y].
    """
    rewards = _Rewards(problem, factors, whole)
    arms_of: dict[frozenset[str], list[int]] = {}
    for i, arm in enumerate(problem.arms):
        arms_of.setdefault(arm.variables, []).append(i)
    plans = {names: rewards.cheapest(names, len(own)) for names, own in arms_of.items()}
    cost = sum(plan.multiplications for plan in plans.values())
    if cost > problem.max_program:
        raise DowiseError(
            f"the rewards of this problem take about {cost:.1e} multiplications a draw "
            f"(max_program is {problem.max_program:,}): its variables are too entangled. Make "
            "domains smaller, condition on more context, or cut edges that hardly matter"
        )
    results = np.zeros((len(problem.arms), rewards.sizes[problem.reward_position]), np.int64)
    for names, plan in plans.items():
        own = arms_of[names]
        settings = np.array([problem.fixed(problem.arms[i]) for i in own])
        values = {problem.positions[name]: settings[:, problem.positions[name]] for name in names}
        results[own] = rewards.values_of(plan, values, len(own))
    circuit = rewards.builder.finish(results)
    return circuit._replace(blocks=np.concatenate(rewards.rows)[circuit.blocks])


@dataclass(frozen=True)
class _Plan:
    """How the rewards of one intervention set are eliminated, and what it costs.

    `together`: for all its values at once, the set's variables staying as axes; otherwise for one
    arm at a time, which pays where few of them are arms.
    """

    factors: tuple[int, ...]
    order: tuple[int, ...]
    multiplications: float
    together: bool


class _Rewards:
    """The circuit under construction."""

    def __init__(self, problem: Problem, factors: Factors, whole: bool) -> None:
        self.problem = problem
        self.factors = factors
        self.reward = problem.reward_position
        self.context = frozenset(problem.context_positions.tolist())
        self.first = 0 if whole else 1  # of the reward's values
        self.sizes = factors.sizes.tolist()
        self.sizes[self.reward] -= self.first
        self.builder = Builder()
        self.algebra = Algebra(self.builder, self.sizes)
        self.inputs: dict[int, Integers] = {}
        """The values of the entries of each factor that some arm needs."""
        self.rows: list[Integers] = []
        """The numbers of their rows, which are the blocks of inputs, in the order of blocks."""

    def cheapest(self, intervened: frozenset[str], arms: int) -> _Plan:
        together = self._plan(intervened, 1, together=True)
        if arms == prod(len(self.problem.domains[name]) for name in intervened):
            return together
        apart = self._plan(intervened, arms, together=False)
        return min(together, apart, key=lambda plan: plan.multiplications)

    def _plan(self, intervened: frozenset[str], times: int, together: bool) -> _Plan:
        """Which factors matter for this set, in what order their variables go, and the cost."""
        families, cut = self.factors.families, self.problem.graph.mask(intervened)
        under = self.factors.under(cut)
        relevant: dict[int, int] = {}
        waiting = [self.reward]
        while waiting:
            v = waiting.pop()
            if v not in relevant and not cut >> v & 1 and v not in self.context:
                relevant[v] = int(under[v])
                waiting += families[relevant[v]]
        fixed = self.context if together else self.context | set(bits(cut))
        factors = tuple(relevant[v] for v in sorted(relevant))
        scopes = [frozenset(families[f]) - fixed for f in factors]
        found = elimination(scopes, sorted(relevant.keys() - {self.reward}), self.sizes)
        cost = times * found.multiplications(self.sizes)
        return _Plan(factors, found.order, cost, together)

    def values_of(self, plan: _Plan, settings: dict[int, Integers], arms: int) -> Integers:
        """The values of P(Y = y | do(x)) for each arm and y.

        `settings` has for each variable of the set its code in each of the arms.
        """
        if not plan.together:
            each = [{v: int(codes[i]) for v, codes in settings.items()} for i in range(arms)]
            return np.stack([self._eliminated(plan, fixed).values for fixed in each])
        table = self._eliminated(plan, {})
        axes = [v for v in table.axes if v != self.reward]
        values = np.moveaxis(table.values, table.axes.index(self.reward), -1)
        return np.asarray(values[tuple(settings[v] for v in axes)])

    def _eliminated(self, plan: _Plan, fixed: dict[int, int]) -> Table:
        """The table of P(Y = y | do(x)) over the reward and the set's variables."""
        tables = [self._factor(f, fixed) for f in plan.factors]
        return self.algebra.product(self.algebra.eliminated(tables, plan.order))

    def _factor(self, f: int, fixed: dict[int, int]) -> Table:
        """A factor at the fixed values, context variables at their first."""
        axes = [u for u in self.factors.families[f] if u not in self.context]
        values = self._inputs_of(f)[tuple(fixed.get(u, slice(None)) for u in axes)]
        if axes[-1] == self.reward:
            values = values[..., self.first :]
        return Table.of([u for u in axes if u not in fixed], values)

    def _inputs_of(self, f: int) -> Integers:
        """The values of a factor's entries, context variables at their first value.

        No others are made: of a factor that nobody needs none, and of one that hangs on the context
        only what one context reads.
        """
        if f not in self.inputs:
            *scope, _ = self.factors.families[f]
            *shape, size = self.factors.shapes[f]
            first = np.searchsorted(self.factors.row_starts, self.factors.starts[f])
            every = first + np.arange(prod(shape)).reshape(shape)
            rows = np.asarray(every[tuple(0 if u in self.context else slice(None) for u in scope)])
            values = self.builder.input_blocks(np.full(rows.size, size))
            self.inputs[f] = values.reshape(*rows.shape, size)
            self.rows.append(rows.ravel())
        return self.inputs[f]
