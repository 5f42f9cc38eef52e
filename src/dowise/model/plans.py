"""How the rewards of all arms are eliminated, and what that costs, before anything is built.

- Arms of one intervention set share one elimination, in which the set's variables stay as axes
  (unless only a few of the set's values are arms: then each has its own);
- context variables are no axes: the context selects which rows of the factors are read;
- a variable without a way to the reward under an arm plays no part in it: it would sum to 1. Unless
  it is asked for: what is seen under an arm teaches about others, whether its own reward needs it
  or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from dowise.graph.adjacency import bits
from dowise.model.elimination import elimination
from dowise.model.factors import Factors
from dowise.problem import Problem

__all__ = ["Plan", "Plans"]


@dataclass(frozen=True)
class Plan:
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
    def of(self) -> dict[frozenset[str], Plan]:
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

    def _cheapest(self, intervened: frozenset[str], arms: tuple[int, ...]) -> Plan:
        together = self._plan(intervened, arms, together=True)
        if len(arms) == prod(len(self.problem.domains[name]) for name in intervened):
            return together
        apart = self._plan(intervened, arms, together=False)
        return min(together, apart, key=lambda plan: plan.multiplications)

    def _plan(self, intervened: frozenset[str], arms: tuple[int, ...], together: bool) -> Plan:
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
        return Plan(arms, factors, found.order, cost, largest, together)
