"""Random worlds: the CPTs are drawn, and the hidden causes behind bidirected edges with them.

>>> from dowise.graph import CausalGraph
>>> problem = Problem(CausalGraph.parse("X -> Y; Z ?-> Y; X <-> Y"), reward="Y")
>>> world = sample_world(problem, np.random.default_rng(1), WorldOptions(edges="prior"))
>>> print(world.graph)  # without Z -> Y, and with a hidden cause of X and Y
"U(X,Y)" -> X; "U(X,Y)" -> Y; X -> Y; Z
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, Literal

import numpy as np

from dowise._core.rng import Random, generator
from dowise._core.validation import check_flag, check_integer
from dowise.environments.cpts import cpts_from_prior, random_cpts
from dowise.environments.environment import Environment, Tables
from dowise.environments.hidden_context import ContextReversal, context_reversal
from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.problem import Problem

EdgeSampling = Literal["all", "prior"]

STRONG_VALUES = 3
STRONG_CONCENTRATION = 0.2
_NOT_GIVEN = ("0", "1")  # the domain of a hidden variable of which nothing was said


@dataclass(frozen=True)
class WorldOptions:
    """How random worlds are drawn.

    The hidden causes of bidirected edges have `hidden_values` values. In `strong` worlds hidden
    causes matter more: they have three at least, those of the problem's own too unless it gives
    them a domain other than 0 and 1, and every row of every CPT comes from Dirichlet(.2) instead of
    Dirichlet(1). `edges` says which of the doubtful edges a world has: "all" that are drawn, or
    each, soft ones too, with its "prior".
    """

    hidden_values: int = 2
    strong: bool = False
    edges: EdgeSampling = "all"

    def __post_init__(self) -> None:
        check_integer("hidden_values", self.hidden_values, 2)
        check_flag("strong", self.strong)
        if self.edges not in ("all", "prior"):
            raise DowiseError(
                f"edges={self.edges!r}: say 'all' for worlds with every edge that is drawn, or "
                "'prior' to draw each doubtful one with its prior"
            )

    def spec(self) -> dict[str, Any]:
        """For a manifest."""
        return asdict(self)

    def size(self, labels: tuple[str, ...] | None = None) -> int:
        """How many values a hidden cause has; `labels` is its domain where the problem has one."""
        told = self.hidden_values if labels is None else len(labels)
        return max(told, STRONG_VALUES) if self.strong and labels in (None, _NOT_GIVEN) else told

    @property
    def concentration(self) -> float:
        """That of the Dirichlet distribution of every row."""
        return STRONG_CONCENTRATION if self.strong else 1.0


DEFAULT_OPTIONS = WorldOptions()


def sample_world(
    problem: Problem,
    rng: np.random.Generator,
    options: WorldOptions = DEFAULT_OPTIONS,
    prior: Any = None,
) -> Environment:
    """A world with random CPTs, its hidden causes among them; those of a prior where one is given.

    A prior is what `Belief` takes, a number or a mapping; the caller has checked it. Unless given,
    it is the problem's. What it does not name comes as the options says.
    """
    if prior is None and problem.prior != 1.0:
        prior = problem.prior
    drawn = problem.drawn if options.edges == "all" else _with_some_edges(problem, rng)
    plan = _planned(problem, drawn, options)
    if prior is None:
        return plan.worlds(problem, random_cpts(plan.shapes, [rng], options.concentration))[0]
    tables = cpts_from_prior(problem, plan.graph, plan.sizes, prior, rng, options.concentration)
    return plan.worlds(problem, {name: table[None] for name, table in tables.items()})[0]


def sample_worlds(
    problem: Problem, rngs: Sequence[np.random.Generator], options: WorldOptions = DEFAULT_OPTIONS
) -> list[Environment]:
    """What `sample_world` makes of each of these: all at once, where the CPTs are all they draw."""
    if options.edges != "all" or problem.prior != 1.0:
        return [sample_world(problem, rng, options) for rng in rngs]
    plan = _planned(problem, problem.drawn, options)
    return plan.worlds(problem, random_cpts(plan.shapes, rngs, options.concentration))


@dataclass(frozen=True, eq=False)
class _Plan:
    """What worlds of one graph have in common: all but their numbers."""

    graph: CausalGraph
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    reversal: ContextReversal

    def worlds(self, problem: Problem, tables: Tables) -> list[Environment]:
        """With these CPTs, whose first axis are the worlds."""
        return Environment.from_tables(problem, self.graph, tables, self.reversal)


@lru_cache(maxsize=16)
def _planned(problem: Problem, drawn: CausalGraph, options: WorldOptions) -> _Plan:
    """Refuses what is too large, before it is drawn."""
    graph = _with_hidden_causes(drawn)
    hidden = {name: options.size() for name in graph if name not in problem.drawn}
    hidden |= {name: options.size(labels) for name, labels in problem.hidden_domains.items()}
    sizes = {name: len(labels) for name, labels in problem.domains.items()} | hidden
    shapes = {name: tuple(sizes[axis] for axis in (*graph.parents(name), name)) for name in graph}
    return _Plan(graph, sizes, shapes, context_reversal(problem, graph, hidden))


def _with_some_edges(problem: Problem, rng: np.random.Generator) -> CausalGraph:
    """The graph as drawn with those of the doubtful edges, soft ones included, that are there."""
    priors = problem.edge_priors
    everything = problem.drawn.with_edges(priors)
    coins = rng.random(len(priors))
    lacking = [
        edge for (edge, prior), coin in zip(priors.items(), coins, strict=True) if coin >= prior
    ]
    return everything.without(lacking)


def _with_hidden_causes(graph: CausalGraph) -> CausalGraph:
    """The DAG, without marks, in which each bidirected edge is a hidden variable of two children.

    What is there is there, so a world knows no doubt.
    """
    if not graph.bidirected_edges and not graph.marks:
        return graph
    edges = list(graph.directed_edges)
    for one, other in graph.bidirected_edges:
        cause = f"U({one},{other})"
        while cause in graph:
            cause += "'"
        edges += [(cause, one), (cause, other)]
    return CausalGraph(edges, variables={*graph, *(end for edge in edges for end in edge)})


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
    check_graph_shape(size, density, 1, 1000)
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
    check_graph_shape(size, density, 3, MAX_SIZE)
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


def check_graph_shape(size: int, density: float, smallest: int, largest: int) -> None:
    """Raise unless there are graphs of this size and density."""
    check_integer("size", size, smallest, largest)
    number = isinstance(density, Real) and not isinstance(density, bool | np.bool_)
    if not number or not 0 <= density <= 1:
        raise DowiseError(f"density={density!r} must be a number from 0 to 1")
