"""What is seen after an arm, variable by variable, and how likely it is under draws.

By the truncated factorisation (section 4, and docs/hidden.md where causes are hidden) the
probability of all that is seen after an arm is a product of one entry of each variable's factor.
`Outcomes` lists, for every arm, the variables that can tell anything about which arm is best, in an
order with causes before effects, and where the entries of their factors stand:

- A row that no arm's reward reads is independent of which arm is best. It stands at its posterior
  mean, for the drawn one would seem to tell something.
- A variable all of whose rows are of that kind is there only where the row of another one depends
  on its value; else it would sum to 1. What can't be told by such rows: which doubtful edges are
  there. So the rows of variables at which edges are doubtful are all drawn.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Dirichlet, Mixture
from dowise.belief.dirichlet import Key
from dowise.belief.row_draws import RowDraws
from dowise.belief.shared import MAX_CONTEXTS
from dowise.model import Codes
from dowise.model.model import Model

__all__ = ["Outcomes", "Paths", "outcomes_of"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Paths(NamedTuple):
    """Arm a has the steps from first[a] to first[a + 1], one a variable.

    At step s the value x of the l-th variable has the entry bases[s] + Σ strides[s, k]·codes[k]
    + x, k < l being the steps before it and codes[k] the values there.
    """

    first: Integers
    bases: Integers
    sizes: Integers
    strides: Integers


class Outcomes:
    """The steps of all arms, and the rows that they read, in any context."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._context = frozenset(model.problem.context_positions.tolist())
        self._starts: dict[int, int] = {}
        self._rows: list[Integers] = []
        self._informative = self._informative_rows()
        self.paths = self._paths()
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.int64)
        sizes = model.factors.row_sizes[rows]
        starts = np.cumsum(sizes) - sizes
        told = self._informative[rows]
        self.told_starts: Integers = starts[told]
        """The first entry of every row that is drawn, among the entries here."""
        self.told_sizes: Integers = sizes[told]
        self.entries = int(sizes.sum())
        first, steps = self.paths.first.tolist(), self.paths.sizes.tolist()
        bounds = pairwise(first)
        self._counts = np.array([prod(map(float, steps[a:b])) for a, b in bounds])
        self._rows_here = rows
        self._starts_here, self._sizes_here = starts, sizes
        self._places: dict[Codes, Integers] = {}
        self._drawn = np.repeat(told, sizes)
        self._row_draws = RowDraws(model, rows[told]) if told.any() else None

    def count(self, arms: Integers) -> float:
        """How many outcomes these arms have together."""
        return float(self._counts[arms].sum())

    @property
    def longest(self) -> int:
        """So many steps has the arm that has most, or one more than none."""
        return int(self.paths.strides.shape[1])

    def draw(
        self, posterior: Dirichlet | Mixture, key: Key, codes: Codes, samples: int
    ) -> NDArray[np.float32]:
        """The entries of all rows here under draws, in a context: (entries, samples)."""
        if self._row_draws is not None and self._drawn.all():
            return self._row_draws.draw(posterior, key, codes, samples)
        values = np.empty((self.entries, samples), dtype=np.float32)
        values[:] = self.means(posterior, codes)[:, None]
        if self._row_draws is not None:
            values[self._drawn] = self._row_draws.draw(posterior, key, codes, samples)
        return values

    def means(self, posterior: Dirichlet | Mixture, codes: Codes) -> Floats:
        """The posterior means of all entries here, in a context."""
        places = self._places.get(codes)
        if places is None:
            first = self.model.first_entries(self._rows_here, codes)
            within = np.arange(self.entries) - np.repeat(self._starts_here, self._sizes_here)
            if len(self._places) >= MAX_CONTEXTS:
                self._places.clear()
            places = self._places[codes] = np.repeat(first, self._sizes_here) + within
        if isinstance(posterior, Mixture):
            found: Floats = posterior.mean_entries()[places]
            return found
        parameters = posterior.prior[places] + posterior.counts[places]
        sums = np.add.reduceat(parameters, self._starts_here)
        means: Floats = parameters / np.repeat(sums, self._sizes_here)
        return means

    def _informative_rows(self) -> NDArray[np.bool_]:
        """Those that some arm's reward reads, or whose variable's edges are doubtful."""
        factors = self.model.factors
        found = np.zeros(len(factors.row_starts), dtype=bool)
        found[self.model.circuit.blocks] = True
        if self.model.problem.edge_priors:
            structures = self.model.structures
            is_open = np.array([structures.is_open(v) for v in range(len(factors.sizes))])
            found |= is_open[factors.targets[factors.row_tables]]
        return found

    def _paths(self) -> Paths:
        problem, factors = self.model.problem, self.model.factors
        first, bases, sizes, strides = [0], list[int](), list[int](), list[dict[int, int]]()
        for arm in problem.arms:
            fixed, cut = problem.fixed(arm), problem.graph.mask(arm)
            under = factors.under(cut)
            variables = self._variables(cut, under)
            level = {v: k for k, v in enumerate(variables)}
            for v in variables:
                steps = self._strides(int(under[v]))
                held = sum(fixed[u] * step for u, step in steps.items() if cut >> u & 1)
                bases.append(self._start(int(under[v])) + int(held))
                sizes.append(int(factors.sizes[v]))
                strides.append({level[u]: s for u, s in steps.items() if u in level and u != v})
            first.append(len(bases))
        most = max(np.diff(first).tolist(), default=0)
        table = np.zeros((len(bases), max(most, 1)), dtype=np.int64)
        for s, steps in enumerate(strides):
            for k, step in steps.items():
                table[s, k] = step
        return Paths(np.array(first), np.array(bases, np.int64), np.array(sizes, np.int64), table)

    def _variables(self, cut: int, under: Integers) -> list[int]:
        """Those that tell something where these are set, and those that their rows depend on."""
        factors = self.model.factors
        is_telling = np.zeros(len(factors.families), dtype=bool)
        is_telling[factors.row_tables[self._informative]] = True
        found = set[int]()
        waiting = [
            v
            for v in range(len(under))
            if not cut >> v & 1 and v not in self._context and is_telling[under[v]]
        ]
        while waiting:
            v = waiting.pop()
            if v not in found and not cut >> v & 1 and v not in self._context:
                found.add(v)
                waiting += factors.families[int(under[v])]
        return [v for v in factors.order.variables if v in found]

    def _strides(self, f: int) -> dict[int, int]:
        """How far a step of each variable of a factor moves among the entries here."""
        factors, step, found = self.model.factors, 1, dict[int, int]()
        for u in reversed([u for u in factors.families[f] if u not in self._context]):
            found[u] = step
            step *= int(factors.sizes[u])
        return found

    def _start(self, f: int) -> int:
        """The first entry of a factor here; its rows in the context of all first values."""
        if f not in self._starts:
            factors = self.model.factors
            *scope, _ = factors.families[f]
            *shape, _ = factors.shapes[f]
            every = np.searchsorted(factors.row_starts, factors.starts[f]) + np.arange(prod(shape))
            here = tuple(0 if u in self._context else slice(None) for u in scope)
            self._starts[f] = sum(int(factors.row_sizes[rows].sum()) for rows in self._rows)
            self._rows.append(np.asarray(every.reshape(shape)[here]).ravel())
        return self._starts[f]


@lru_cache(maxsize=32)
def outcomes_of(model: Model) -> Outcomes:
    """Of a model, built once."""
    return Outcomes(model)
