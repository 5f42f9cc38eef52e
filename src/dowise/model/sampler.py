"""Entries of all factors, let run as a world: what follows under an arm, variable by variable.

Under an arm every variable has one factor, whose scope comes before it in the problem's order. So
any numbers for the factors, drawn or averaged, say how an outcome is drawn, hidden causes or not
(docs/hidden.md): `outcome`. Compiled loops want one table a variable, whatever the arm (`Sampler`).
Where a variable has several factors, these are put into one table with an axis more, a *switch*
that the arm sets.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise._core.kernels import lazy_kernels
from dowise.errors import DowiseError
from dowise.model.factors import NONE, Factors
from dowise.model.model import Codes, model_of
from dowise.problem import Problem

Integers = NDArray[np.int64]


class Mechanism(NamedTuple):
    """True numbers, ready to be sampled: variables are numbered, causes come before effects."""

    entries: NDArray[np.float64]
    """All factors, flat: one row for each context that occurs, or one for all of them."""
    order: Integers
    starts: Integers
    strides: Integers
    sizes: Integers
    context: Integers
    """Where the context variables stand among all."""
    fixed: Integers
    """For each arm the codes that it sets, negative where it sets nothing."""
    observed: Integers
    """Where the observed variables stand among all, in the order of the problem's variables."""


class TrialScript(NamedTuple):
    """All of a trial that does not depend on what is played."""

    mechanism: Mechanism
    contexts: Integers
    """The number of each round's context."""
    known: Integers
    """The codes of each context."""
    uniforms: NDArray[np.float64]
    """What drives the outcome of each round."""


Floats = NDArray[np.float64]

MAX_CELLS = 2**22  # of all tables with their switches

_kernels = lazy_kernels("dowise.model.kernels")


def outcome(
    problem: Problem, entries: Floats, arm: int, codes: Codes, source: np.random.Generator
) -> Integers:
    """What is seen after an arm in a context, by their positions: all variables, as positions."""
    factors, played = model_of(problem).factors, problem.arms[arm]
    drawn: Integers = problem.fixed(played).copy()
    drawn[problem.context_positions] = codes
    under = factors.under_arms[factors.place(played)]  # of what is set it is not read
    order = np.array(factors.order.variables)
    _kernels.sample_record(
        entries, drawn, order, factors.starts[under], factors.strides[under], factors.sizes,
        source.random(len(drawn)),
    )  # fmt: skip
    return drawn


class Sampler:
    """A problem's factors as tables of one world, for compiled loops, whatever the numbers."""

    def __init__(self, problem: Problem, factors: Factors) -> None:
        self.problem = problem
        self._of_variable: list[list[int]] = [[] for _ in factors.variables]
        for f, v in enumerate(factors.targets.tolist()):
            self._of_variable[v].append(f)
        self._switched = [v for v, own in enumerate(self._of_variable) if len(own) > 1]
        self._do_first(factors)
        self._check_size(factors)
        parts = [_cells(factors, own) for own in self._of_variable]
        switches = [np.full(len(self._of_variable[v]), factors.entries) for v in self._switched]
        for one in switches:
            one[0] += 1  # the entry 1 behind all others; the rest point to a 0
        self._places: Integers = np.concatenate([part.ravel() for part in (*parts, *switches)])
        self.mechanism = self._mechanism(factors, [*parts, *switches])
        """All but the entries."""

    def _do_first(self, factors: Factors) -> None:
        """A world that runs by itself has every switch at its first place."""
        alone = factors.under_arms[0]
        for v in self._switched:
            self._of_variable[v].sort(key=lambda f: f != alone[v])

    def _check_size(self, factors: Factors) -> None:
        cells = [_size(factors, own) for own in self._of_variable]
        if sum(cells) > MAX_CELLS:
            name = factors.variables[cells.index(max(cells))]
            raise DowiseError(
                f"no world can be played through: the factors of {name} under all arms together "
                f"have {max(cells):.1e} entries, and the limit is {MAX_CELLS:,}; draw fewer "
                "bidirected edges, or make domains smaller"
            )

    def _mechanism(self, factors: Factors, parts: list[Integers]) -> Mechanism:
        problem, count = self.problem, len(factors.variables)
        switch = {v: count + i for i, v in enumerate(self._switched)}
        strides = np.zeros((len(parts), len(parts)), dtype=np.int64)
        for v, own in enumerate(self._of_variable):
            axes = _axes(factors, own)
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

    def _set_by(self, factors: Factors, arm: int) -> list[int]:
        """What an arm sets, the switches among it."""
        own = self.problem.arms[arm]
        under = factors.under_arms[factors.place(own)].tolist()
        switches = [
            0 if under[v] == NONE else self._of_variable[v].index(under[v]) for v in self._switched
        ]
        return [*self.problem.fixed(own).tolist(), *switches]

    def at(self, entries: Floats) -> Mechanism:
        """The world of these entries of all factors."""
        if self._switched:
            entries = np.concatenate([entries, [0.0, 1.0]])[self._places]
        return self.mechanism._replace(entries=entries[None])

    def contexts(self, world: Mechanism, rounds: int, source: np.random.Generator) -> Integers:
        """What is seen before the choice in so many rounds: (rounds, context variables)."""
        found = np.empty((rounds, len(world.context)), dtype=np.int64)
        if len(world.context):
            _kernels.sample_contexts(world, source.random((rounds, len(world.order))), found)
        return found


def _axes(factors: Factors, own: list[int]) -> list[int]:
    """All that some factor of a variable is conditioned on, then the variable."""
    v = int(factors.targets[own[0]])
    return [*sorted({u for f in own for u in factors.families[f]} - {v}), v]


def _size(factors: Factors, own: list[int]) -> int:
    return len(own) * int(np.prod(factors.sizes[_axes(factors, own)].astype(float)))


def _cells(factors: Factors, own: list[int]) -> Integers:
    """Which entry stands in each cell of a variable's table; the first axis is its switch."""
    axes = _axes(factors, own)
    shape = [int(factors.sizes[u]) for u in axes]
    cells = np.empty((len(own), *shape), dtype=np.int64)
    for i, f in enumerate(own):
        steps = np.ix_(
            *(np.arange(n) * factors.strides[f, u] for u, n in zip(axes, shape, strict=True))
        )
        cells[i] = factors.starts[f] + sum(steps)
    return cells if len(own) > 1 else cells[0]


@lru_cache(maxsize=32)
def sampler_of(problem: Problem) -> Sampler:
    """That of a problem, built once."""
    return Sampler(problem, model_of(problem).factors)
