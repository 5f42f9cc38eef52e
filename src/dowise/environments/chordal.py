"""Random chordal graphs and the problems on them, as in section 7 and the appendix.

The graph is drawn along an order σ of the vertices. The n-th gets max{1, Bin(n − 1, ρ)} parents
among those before it, uniformly; the first has none. Then vertices are eliminated in the reverse of
σ, which marries the parents of each: the graph becomes chordal, and without unshielded colliders.
Names follow σ, so σ is the order of names.

What the paper leaves open we fix: the reward is the last vertex of σ; round(0.15 · size) of the
others, at least one, can't be set; and up to two are context, the first along σ that can be set
and whose parents are all context.

>>> drawn = random_problem(10, 0.1, rng=0)
>>> drawn.problem.context, drawn.problem.non_manipulable, drawn.redrawn
(('V01', 'V02'), ('V07', 'V09'), 0)
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from dowise.checks import whole_number
from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.problem import Problem
from dowise.randomness import Random, generator

__all__ = ["RandomProblem", "check_shape", "random_chordal_graph", "random_problem"]

SHARE_OUT_OF_REACH = 0.15
MAX_CONTEXT = 2
MIN_ARMS, MAX_ARMS = 2, 64
MAX_SIZE = 60  # of a problem; larger ones hardly ever have so few arms
_ATTEMPTS = 300


@dataclass(frozen=True)
class RandomProblem:
    """A random problem, and how many were thrown away before it."""

    problem: Problem
    too_few: int
    """Instances with one arm only, where there is nothing to decide."""
    too_many: int
    """Instances with more than 64 arms."""

    @property
    def redrawn(self) -> int:
        """All instances that were thrown away."""
        return self.too_few + self.too_many


def random_chordal_graph(size: int, density: float, rng: Random) -> CausalGraph:
    """A connected chordal DAG without unshielded colliders; σ is the order of its names."""
    check_shape(size, density, 1, 1000)
    source = generator(rng)
    parents: list[set[int]] = [set()]
    for n in range(1, size):  # n vertices come before this one
        count = max(1, int(source.binomial(n, density)))
        parents.append(set(source.choice(n, count, replace=False).tolist()))
    for earlier in reversed(parents):
        for vertex in earlier:
            parents[vertex] |= {other for other in earlier if other < vertex}
    names = [f"V{i + 1:0{max(2, len(str(size)))}}" for i in range(size)]
    edges = [(names[p], names[n]) for n, earlier in enumerate(parents) for p in earlier]
    return CausalGraph(edges, variables=names)


def random_problem(size: int, density: float, rng: Random) -> RandomProblem:
    """A random problem with 2 to 64 arms, all variables binary; others are redrawn and counted."""
    check_shape(size, density, 3, MAX_SIZE)
    source = generator(rng)
    too_few = too_many = 0
    while too_few + too_many < _ATTEMPTS:
        graph = random_chordal_graph(size, density, source)
        *others, reward = graph.variables
        count = max(1, round(SHARE_OUT_OF_REACH * size))
        fixed = {others[i] for i in source.choice(len(others), count, replace=False)}
        context = _first_known(graph, others, fixed)
        arms = _count_arms(graph.condition(context).project(fixed), reward)
        if arms < MIN_ARMS:
            too_few += 1
        elif arms > MAX_ARMS:
            too_many += 1
        else:
            named = f"chordal-{size}-{density:g}"
            problem = Problem(graph, reward, context, fixed, name=named)
            return RandomProblem(problem, too_few, too_many)
    raise DowiseError(
        f"none of {_ATTEMPTS:,} random graphs with size={size} and density={density:g} has "
        f"{MIN_ARMS} to {MAX_ARMS} arms ({too_few:,} have fewer, {too_many:,} have more): choose "
        f"{'a smaller' if too_many > too_few else 'a larger'} size or density"
    )


def _first_known(graph: CausalGraph, others: list[str], fixed: set[str]) -> list[str]:
    """The context: along σ, the first that can be set and whose parents are all context."""
    context: list[str] = []
    for name in others:
        if name not in fixed and {*graph.parents(name)} <= {*context}:
            context.append(name)
    return context[:MAX_CONTEXT]


def _count_arms(projected: CausalGraph, reward: str) -> int:
    """The number of arms with binary variables, counted up to where it is too large."""
    arms = 0
    for names in projected.iter_pomis(reward):
        arms += 2 ** len(names)
        if arms > MAX_ARMS:
            break
    return arms


def check_shape(size: int, density: float, smallest: int, largest: int) -> None:
    """Raise unless there are graphs of this size and density."""
    whole_number("size", size, smallest, largest)
    number = isinstance(density, Real) and not isinstance(density, bool | np.bool_)
    if not number or not 0 <= density <= 1:
        raise DowiseError(f"density={density!r} must be a number from 0 to 1")
