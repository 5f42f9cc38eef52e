"""Random worlds and random problems.

The CPTs of a world are drawn, and with them the hidden causes behind bidirected edges.

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
from dowise.problem.domains import DEFAULT_DOMAIN

EdgeSampling = Literal["all", "prior"]

STRONG_VALUES = 3
STRONG_CONCENTRATION = 0.2


@dataclass(frozen=True)
class WorldOptions:
    """Options of random worlds.

    Parameters
    ----------
    hidden_values : int
        Number of values of the hidden causes behind bidirected edges.
    strong : bool
        Make hidden causes matter more: they have at least three values (unless the problem gives
        them a domain other than 0 and 1), and rows come from Dirichlet(0.2), not Dirichlet(1).
    edges : {"all", "prior"}
        Doubtful edges of a world: "all" that the graph shows, or each one, soft ones included, with
        its prior probability.

    Raises
    ------
    DowiseError
        If a value is invalid ("invalid-number", "invalid-type", "unknown-value").

    Examples
    --------
    >>> WorldOptions(strong=True).concentration
    0.2
    """

    hidden_values: int = 2
    strong: bool = False
    edges: EdgeSampling = "all"

    def __post_init__(self) -> None:
        check_integer("hidden_values", self.hidden_values, 2)
        check_flag("strong", self.strong)
        if self.edges not in ("all", "prior"):
            raise DowiseError(
                f"edges={self.edges!r} must be 'all' (every edge of the graph) or 'prior' (each "
                "doubtful edge with its prior)",
                code="unknown-value",
            )

    def spec(self) -> dict[str, Any]:
        """Return the options as JSON, for the digest of a run."""
        return asdict(self)

    def size(self, labels: tuple[str, ...] | None = None) -> int:
        """Return the number of values of a hidden cause; `labels` is its domain, if it has one."""
        size = self.hidden_values if labels is None else len(labels)
        return (
            max(size, STRONG_VALUES) if self.strong and labels in (None, DEFAULT_DOMAIN) else size
        )

    @property
    def concentration(self) -> float:
        """Concentration of the Dirichlet distribution of every row."""
        return STRONG_CONCENTRATION if self.strong else 1.0


DEFAULT_OPTIONS = WorldOptions()


def sample_world(
    problem: Problem,
    rng: np.random.Generator,
    options: WorldOptions = DEFAULT_OPTIONS,
    prior: Any = None,
) -> Environment:
    """Draw a world with random CPTs, hidden causes included.

    `prior` is a valid prior of `Belief`, but not the path of a file, and defaults to the problem's.
    Rows that it does not name are drawn by the options.
    """
    if prior is None and problem.prior not in (1.0, "pooled"):
        prior = problem.prior
    drawn = problem.drawn if options.edges == "all" else _with_some_edges(problem, rng)
    plan = _plan(problem, drawn, options)
    if prior is None:
        return plan.worlds(problem, random_cpts(plan.shapes, [rng], options.concentration))[0]
    tables = cpts_from_prior(problem, plan.graph, plan.sizes, prior, rng, options.concentration)
    return plan.worlds(problem, {name: table[None] for name, table in tables.items()})[0]


def sample_worlds(
    problem: Problem, rngs: Sequence[np.random.Generator], options: WorldOptions = DEFAULT_OPTIONS
) -> list[Environment]:
    """Draw a world from each generator, as `sample_world` does, together if only CPTs are drawn."""
    if options.edges != "all" or problem.prior not in (1.0, "pooled"):
        return [sample_world(problem, rng, options) for rng in rngs]
    plan = _plan(problem, problem.drawn, options)
    return plan.worlds(problem, random_cpts(plan.shapes, rngs, options.concentration))


@dataclass(frozen=True, eq=False)
class _WorldPlan:
    """Parts that worlds of one graph share: all but their CPTs."""

    graph: CausalGraph
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    reversal: ContextReversal

    def worlds(self, problem: Problem, tables: Tables) -> list[Environment]:
        """Create worlds from CPTs; the first axis of each has the worlds."""
        return Environment.from_tables(problem, self.graph, tables, self.reversal)


@lru_cache(maxsize=16)
def _plan(problem: Problem, drawn: CausalGraph, options: WorldOptions) -> _WorldPlan:
    """Prepare worlds of a graph; raises if they are too large, before anything is drawn."""
    graph = _with_hidden_causes(drawn)
    hidden = {name: options.size() for name in graph if name not in problem.drawn}
    hidden |= {name: options.size(labels) for name, labels in problem.hidden_domains.items()}
    sizes = {name: len(labels) for name, labels in problem.domains.items()} | hidden
    shapes = {name: tuple(sizes[axis] for axis in (*graph.parents(name), name)) for name in graph}
    return _WorldPlan(graph, sizes, shapes, context_reversal(problem, graph, hidden))


def _with_some_edges(problem: Problem, rng: np.random.Generator) -> CausalGraph:
    """Draw which of the doubtful edges, soft ones included, a world has."""
    priors = problem.edge_priors
    coins = rng.random(len(priors))
    absent = [
        edge for (edge, prior), coin in zip(priors.items(), coins, strict=True) if coin >= prior
    ]
    return problem.drawn.with_edges(priors).without(absent)


def _with_hidden_causes(graph: CausalGraph) -> CausalGraph:
    """Replace each bidirected edge by a hidden variable with two children, and drop the marks."""
    if not graph.bidirected_edges and not graph.marks:
        return graph
    edges = list(graph.directed_edges)
    for left, right in graph.bidirected_edges:
        cause = f"U({left},{right})"
        while cause in graph:
            cause += "'"
        edges += [(cause, left), (cause, right)]
    return CausalGraph(edges, variables={*graph, *(end for edge in edges for end in edge)})


NON_MANIPULABLE_SHARE = 0.15
MAX_CONTEXT = 2
MIN_ARMS, MAX_ARMS = 2, 64
MAX_SIZE = 60  # larger problems rarely have at most 64 arms
_MAX_ATTEMPTS = 300


@dataclass(frozen=True)
class RandomProblem:
    """A random problem, with the numbers of instances that were rejected before it.

    Attributes
    ----------
    problem : Problem
    too_few : int
        Instances with a single arm, where there is nothing to decide.
    too_many : int
        Instances with more than 64 arms.

    Examples
    --------
    >>> random_problem(10, 0.2, rng=0).redrawn
    0
    """

    problem: Problem
    too_few: int
    too_many: int

    @property
    def redrawn(self) -> int:
        """Number of instances that were rejected."""
        return self.too_few + self.too_many


def random_chordal_graph(size: int, density: float, rng: Random) -> CausalGraph:
    """Draw a connected chordal DAG without unshielded colliders.

    Parameters
    ----------
    size : int
        Number of variables, up to 1000.
    density : float
        Probability of each parent before the graph is made chordal.
    rng : int or numpy.random.Generator

    Returns
    -------
    CausalGraph
        The names of the variables are in the order σ of the paper.

    Raises
    ------
    DowiseError
        If the size or the density is out of range ("invalid-number").

    Examples
    --------
    >>> random_chordal_graph(3, 0.5, rng=0).variables
    ('V01', 'V02', 'V03')
    """
    check_graph_shape(size, density, 1, 1000)
    source = generator(rng)
    parents: list[set[int]] = [set()]
    for n in range(1, size):  # n vertices come before this one
        count = max(1, int(source.binomial(n, density)))
        parents.append(set(source.choice(n, count, replace=False).tolist()))
    for earlier in reversed(parents):
        for vertex in earlier:
            parents[vertex] |= {parent for parent in earlier if parent < vertex}
    names = [f"V{i + 1:0{max(2, len(str(size)))}}" for i in range(size)]
    edges = [(names[p], names[n]) for n, earlier in enumerate(parents) for p in earlier]
    return CausalGraph(edges, variables=names)


def random_problem(size: int, density: float, rng: Random) -> RandomProblem:
    """Draw a random problem with 2 to 64 arms and binary variables.

    Parameters
    ----------
    size : int
        Number of variables, from 3 to 60.
    density : float
        Density of the chordal graph.
    rng : int or numpy.random.Generator

    Returns
    -------
    RandomProblem
        The problem, and how many others were rejected before it.

    Raises
    ------
    DowiseError
        If the size or the density is out of range ("invalid-number"), or no problem with a
        suitable number of arms was found ("no-arms").

    Examples
    --------
    >>> random_problem(10, 0.2, rng=0).problem.reward
    'V10'
    """
    check_graph_shape(size, density, 3, MAX_SIZE)
    source = generator(rng)
    too_few = too_many = 0
    while too_few + too_many < _MAX_ATTEMPTS:
        graph = random_chordal_graph(size, density, source)
        *names, reward = graph.variables
        count = max(1, round(NON_MANIPULABLE_SHARE * size))
        fixed = {names[i] for i in source.choice(len(names), count, replace=False)}
        context = _context(graph, names, fixed)
        arms = _count_arms(graph.condition(context).project(fixed), reward)
        if arms < MIN_ARMS:
            too_few += 1
        elif arms > MAX_ARMS:
            too_many += 1
        else:
            name = f"chordal-{size}-{density:g}"
            problem = Problem(graph, reward, context, fixed, name=name)
            return RandomProblem(problem, too_few, too_many)
    raise DowiseError(
        f"none of {_MAX_ATTEMPTS:,} random graphs with size={size} and density={density:g} has "
        f"{MIN_ARMS} to {MAX_ARMS} arms ({too_few:,} have fewer, {too_many:,} have more): choose "
        f"{'a smaller' if too_many > too_few else 'a larger'} size or density",
        code="no-arms",
    )


def _context(graph: CausalGraph, names: list[str], fixed: set[str]) -> list[str]:
    """Return the first manipulable variables along σ whose parents are all context."""
    context: list[str] = []
    for name in names:
        if name not in fixed and {*graph.parents(name)} <= {*context}:
            context.append(name)
    return context[:MAX_CONTEXT]


def _count_arms(projected: CausalGraph, reward: str) -> int:
    """Count the arms with binary variables, until there are too many."""
    arms = 0
    for names in projected.iter_pomis(reward):
        arms += 2 ** len(names)
        if arms > MAX_ARMS:
            break
    return arms


def check_graph_shape(size: int, density: float, smallest: int, largest: int) -> None:
    """Raise an error if there are no graphs of this size and density."""
    check_integer("size", size, smallest, largest)
    is_number = isinstance(density, Real) and not isinstance(density, bool | np.bool_)
    if not is_number or not 0 <= density <= 1:
        raise DowiseError(
            f"density={density!r} must be a number from 0 to 1", code="invalid-number"
        )
