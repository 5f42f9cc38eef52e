"""Forward sampling of outcomes from the entries of all factors.

Under an arm every variable has one factor, whose scope precedes it in the problem's order. So any
entries of the factors, drawn or averaged, define a distribution of outcomes, with or without hidden
causes (docs/hidden.md): see `sample_outcome`. Compiled loops need one table per variable for all
arms (`Sampler`). If a variable has several factors, they form one table with an additional axis, a
*switch* that the arm sets.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.types import FloatArray, IntArray
from dowise.errors import DowiseError
from dowise.model.factors import NONE, Codes, FactorLayout
from dowise.model.model import model_of
from dowise.problem import Problem


class Mechanism(NamedTuple):
    """Tables of a world, for kernels: variables are numbered, causes precede effects."""

    entries: FloatArray
    """Flat entries of all tables: one row per context, or one for all contexts."""
    order: IntArray
    starts: IntArray
    strides: IntArray
    sizes: IntArray
    context: IntArray
    """Positions of the context variables among all variables."""
    fixed: IntArray
    """fixed[arm]: the codes that an arm sets, negative for other variables."""
    observed: IntArray
    """Positions of the problem's variables among all variables."""


class TrialScript(NamedTuple):
    """Part of a trial that does not depend on the arms played."""

    mechanism: Mechanism
    contexts: IntArray
    """Number of each round's context."""
    context_codes: IntArray
    """Codes of each context."""
    uniforms: FloatArray
    """Random numbers of each round's outcome."""


MAX_CELLS = 2**22  # entries of all tables with their switches

_kernels = lazy_kernels("dowise.model.kernels")


def sample_outcome(
    problem: Problem, entries: FloatArray, arm: int, codes: Codes, source: np.random.Generator
) -> IntArray:
    """Draw the codes of all variables under an arm, given by its position, in a context."""
    factors, played = model_of(problem).factors, problem.arms[arm]
    drawn: IntArray = problem.fixed(played).copy()
    drawn[problem.context_positions] = codes
    under = factors.under_arms[factors.place(played)]  # not read for variables that are set
    order = np.array(factors.order.variables)
    _kernels.sample_record(
        entries,
        drawn,
        order,
        factors.starts[under],
        factors.strides[under],
        factors.sizes,
        source.random(len(drawn)),
    )
    return drawn


class Sampler:
    """Factors of a problem as tables for compiled loops, independent of their entries."""

    def __init__(self, problem: Problem, factors: FactorLayout) -> None:
        self.problem = problem
        self._of_variable: list[list[int]] = [[] for _ in factors.variables]
        for f, v in enumerate(factors.targets.tolist()):
            self._of_variable[v].append(f)
        self._switched = [v for v, fs in enumerate(self._of_variable) if len(fs) > 1]
        under_do = factors.under_arms[0]
        for v in self._switched:  # a switch at 0 selects the factor of the variable under do()
            self._of_variable[v].sort(key=lambda f: f != under_do[v])
        self._check_size(factors)
        parts = [_cells(factors, fs) for fs in self._of_variable]
        switches = [np.full(len(self._of_variable[v]), factors.entries) for v in self._switched]
        for switch in switches:
            switch[0] += 1  # points to the 1 after all entries; the others to the 0 there
        self._places: IntArray = np.concatenate([part.ravel() for part in (*parts, *switches)])
        self.mechanism = self._mechanism(factors, [*parts, *switches])
        """Mechanism without entries."""

    def _check_size(self, factors: FactorLayout) -> None:
        cells = [
            len(fs) * prod(float(factors.sizes[u]) for u in _axes(factors, fs))
            for fs in self._of_variable
        ]
        if sum(cells) > MAX_CELLS:
            name = factors.variables[cells.index(max(cells))]
            raise DowiseError(
                f"the factors of {name} under all arms together have {max(cells):.1e} entries, and "
                f"the limit for simulated worlds is {MAX_CELLS:,}: remove bidirected edges, or "
                "make domains smaller",
                code="too-large",
            )

    def _mechanism(self, factors: FactorLayout, parts: list[IntArray]) -> Mechanism:
        problem, count = self.problem, len(factors.variables)
        switch = {v: count + i for i, v in enumerate(self._switched)}
        strides = np.zeros((len(parts), len(parts)), dtype=np.int64)
        for v, fs in enumerate(self._of_variable):
            axes = _axes(factors, fs)
            if v in switch:
                axes = [switch[v], *axes]
            step = 1
            for axis, size in zip(reversed(axes), reversed(parts[v].shape), strict=True):
                strides[v, axis] = step
                step *= size
        strides[count:, count:] = np.eye(len(switch), dtype=np.int64)
        return Mechanism(
            entries=np.empty((0, len(self._places))),
            order=np.array([*switch.values(), *factors.order.variables], dtype=np.int64),
            starts=np.cumsum([0, *(part.size for part in parts)], dtype=np.int64),
            strides=strides,
            sizes=np.array([*factors.sizes, *(len(self._of_variable[v]) for v in switch)]),
            context=np.array(problem.context_positions, dtype=np.int64),
            fixed=np.array([self._set_by(factors, arm) for arm in range(len(problem.arms))]),
            observed=np.arange(count),
        )

    def _set_by(self, factors: FactorLayout, arm: int) -> list[int]:
        """Return the codes that an arm sets, including the switches."""
        intervention = self.problem.arms[arm]
        under = factors.under_arms[factors.place(intervention)].tolist()
        switches = [
            0 if under[v] == NONE else self._of_variable[v].index(under[v]) for v in self._switched
        ]
        return [*self.problem.fixed(intervention).tolist(), *switches]

    def at(self, entries: FloatArray) -> Mechanism:
        """Return the mechanism with these entries of all factors."""
        if self._switched:
            entries = np.concatenate([entries, [0.0, 1.0]])[self._places]
        return self.mechanism._replace(entries=entries[None])

    def contexts(self, world: Mechanism, rounds: int, source: np.random.Generator) -> IntArray:
        """Draw the contexts of rounds: (rounds, context variables)."""
        contexts = np.empty((rounds, len(world.context)), dtype=np.int64)
        if len(world.context):
            _kernels.sample_contexts(world, source.random((rounds, len(world.order))), contexts)
        return contexts


def _axes(factors: FactorLayout, fs: list[int]) -> list[int]:
    """Return the variables on which some factor of a variable is conditioned, then itself."""
    v = int(factors.targets[fs[0]])
    return [*sorted({u for f in fs for u in factors.families[f]} - {v}), v]


def _cells(factors: FactorLayout, fs: list[int]) -> IntArray:
    """Return the entry in each cell of a variable's table; the first axis is its switch."""
    axes = _axes(factors, fs)
    shape = [int(factors.sizes[u]) for u in axes]
    cells = np.empty((len(fs), *shape), dtype=np.int64)
    for i, f in enumerate(fs):
        steps = np.ix_(
            *(np.arange(n) * factors.strides[f, u] for u, n in zip(axes, shape, strict=True))
        )
        cells[i] = factors.starts[f] + sum(steps)
    return cells if len(fs) > 1 else cells[0]


@lru_cache(maxsize=32)
def sampler_of(problem: Problem) -> Sampler:
    """Return the sampler of a problem, built once."""
    return Sampler(problem, model_of(problem).factors)
