"""Where the worlds of a race come from: one small class for each kind of source.

A source has a `label` (None where nothing has a name), a `spec` that tells it from others in a
manifest, and `draw`, which makes the world of a trial out of that trial's random numbers.

>>> resolve_worlds("task1").label, resolve_worlds("chordal-15-0.2").size
('task1', 15)
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.rng import Random, generator
from dowise.environments.environment import Environment, World, world_defect
from dowise.environments.random_worlds import (
    DEFAULT_OPTIONS,
    MAX_SIZE,
    EdgeSampling,
    RandomProblem,
    WorldOptions,
    check_graph_shape,
    random_problem,
    sample_world,
    sample_worlds,
)
from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.problem import Problem, load_problem
from dowise.problem.problem_file import problem_text

MAX_CONTEXTS = 1024  # whose means tell a world of somebody else's apart


@dataclass(frozen=True, eq=False)
class SampledWorlds:
    """One problem, with CPTs drawn afresh for every trial."""

    problem: Problem
    options: WorldOptions = DEFAULT_OPTIONS

    @property
    def label(self) -> str | None:
        """The problem's name."""
        return self.problem.name

    def spec(self) -> dict[str, Any]:
        """The text of the problem file, and how worlds are drawn."""
        return {"problem": problem_text(self.problem), **self.options.spec()}

    def draw(self, rng: np.random.Generator) -> Environment:
        """Doubtful edges first, if they are drawn, then the rows, hidden causes included."""
        return sample_world(self.problem, rng, self.options)

    def draw_many(self, rngs: Sequence[np.random.Generator]) -> list[Environment]:
        """The same for several trials at once."""
        return sample_worlds(self.problem, rngs, self.options)


@dataclass(frozen=True)
class ChordalWorlds:
    """A random chordal graph with roles and CPTs of its own for every trial."""

    name: str
    size: int
    density: float
    options: WorldOptions = DEFAULT_OPTIONS

    def __post_init__(self) -> None:
        check_graph_shape(self.size, self.density, 3, MAX_SIZE)

    @property
    def label(self) -> str:
        """The name as it was given."""
        return self.name

    def spec(self) -> dict[str, Any]:
        """The name, and how worlds are drawn."""
        return {"random": self.name, **self.options.spec()}

    def draw_problem(self, rng: np.random.Generator) -> RandomProblem:
        """The graph and the roles, which are drawn first."""
        return random_problem(self.size, self.density, rng)

    def draw(self, rng: np.random.Generator) -> Environment:
        """Graph and roles, then the CPTs, all from the same stream."""
        return sample_world(self.draw_problem(rng).problem, rng, self.options)


@dataclass(frozen=True, eq=False)
class FixedWorld:
    """A world that is there already, played as it is in every trial."""

    world: World

    @property
    def label(self) -> str | None:
        """The name of the world's problem."""
        return self.world.problem.name

    def spec(self) -> dict[str, Any]:
        """Its class, its problem, and a digest of its numbers.

        The numbers of an `Environment` are its CPTs and its graph, hidden variables included, to
        the last bit. Of a world of somebody else's only `means` can be asked: the digest is that
        of the means in all contexts, or in the first 1,024 where there are more. So two such
        worlds whose means agree are told apart by their class alone; simulations add a digest of
        its sources.
        """
        kind = type(self.world)
        found = {
            "world": f"{kind.__module__}:{kind.__qualname__}",
            "problem": problem_text(self.world.problem),
        }
        if isinstance(self.world, Environment):
            return found | {"cpts": _digest_of_cpts(self.world)}
        return found | {"means": _digest_of_means(self.world)}

    def draw(self, _rng: np.random.Generator) -> World:
        """The world itself: nothing is left to be drawn."""
        return self.world

    def __reduce__(self) -> tuple[Any, ...]:
        # To other processes an Environment travels as what it is made of, which is far less.
        if type(self.world) is Environment:
            return _remade, (self.world.problem, self.world.cpts, self.world.graph)
        return FixedWorld, (self.world,)


Worlds = SampledWorlds | ChordalWorlds | FixedWorld


def resolve_worlds(
    given: str | Path | Problem | World | Worlds, options: WorldOptions | None = None
) -> Worlds:
    """The source that a name, a path, a problem or a world stands for.

    `options` is how worlds are drawn where they are drawn, and an error where they are not.
    """
    if isinstance(given, SampledWorlds | ChordalWorlds):
        return given if options is None else replace(given, options=options)
    if isinstance(given, str | Path | Problem):
        return random_worlds(given, options or DEFAULT_OPTIONS)
    if not isinstance(given, FixedWorld) and not hasattr(given, "problem"):
        raise DowiseError(
            f"{given!r} is no problem: give a name, a path, a Problem, or a world that passes "
            "check_environment"
        )
    one = given if isinstance(given, FixedWorld) else FixedWorld(given)
    lack = world_defect(one.world)
    if lack is not None:
        raise DowiseError(
            f"{given!r} is no world: it needs {lack}; dowise.check_environment says what else"
        )
    if options is not None:
        raise DowiseError(
            f"{one.world!r} is a world with numbers of its own, so strong and edges don't apply: "
            "give its problem, whose worlds are drawn, or leave them out"
        )
    return one


def random_worlds(
    given: str | Path | Problem, options: WorldOptions = DEFAULT_OPTIONS
) -> SampledWorlds | ChordalWorlds:
    """The source of random worlds for a problem, its file, or a name; the one place where a name
    such as "chordal-15-0.2" is told from others."""
    if isinstance(given, Problem):
        return SampledWorlds(given, options)
    name = str(given)
    if not name.startswith("chordal") or os.path.lexists(name):
        return SampledWorlds(load_problem(given), options)
    match = re.fullmatch(r"chordal-(\d{1,4})-(\d*\.?\d+)", name)
    if match is None:
        raise DowiseError(
            f"{name!r}: a random world is called chordal-SIZE-DENSITY, such as chordal-15-0.2"
        )
    return ChordalWorlds(name, int(match[1]), float(match[2]), options)


def _remade(
    problem: Problem, cpts: dict[str, NDArray[np.float64]], graph: CausalGraph
) -> FixedWorld:
    return FixedWorld(Environment(problem, cpts, graph))


def _digest_of_cpts(world: Environment) -> str:
    digest = sha256(world.graph.to_text().encode())
    for name, table in sorted(world.cpts.items()):
        digest.update(f"\n{name} {table.shape}\n".encode())
        digest.update(np.ascontiguousarray(table, dtype="<f8").tobytes())
    return digest.hexdigest()


def _digest_of_means(world: World) -> str:
    problem, digest = world.problem, sha256()
    domains = [problem.domains[name] for name in problem.context]
    for labels in islice(product(*domains), MAX_CONTEXTS):
        try:
            means = world.means(dict(zip(problem.context, labels, strict=True)))
        except DowiseError:  # a context that can't occur
            digest.update(b"none")
        else:
            digest.update(np.ascontiguousarray(means, dtype="<f8").tobytes())
    return digest.hexdigest()


def make_environment(
    problem: str | Problem,
    seed: Random,
    hidden_values: int = 2,
    strong: bool = False,
    edges: EdgeSampling = "all",
) -> Environment:
    """A world for a problem, or the built-in one of that name.

    CPT rows come from the problem's prior, Dirichlet(1) where it has none.

    Each bidirected edge A <-> B becomes a hidden cause of its own, `U(A,B)`, with `hidden_values`
    values; what the problem calls hidden is there with its domain. With `strong` hidden causes
    matter more: they have three values at least, unless the problem gives a domain other than 0 and
    1, and all rows that no prior tells of come from Dirichlet(.2). The world has all edges that are
    drawn, doubtful or not; `edges="prior"` draws every doubtful one, soft ones included, with its
    prior.
    "chordal-15-0.2" is a world on a random chordal graph with 15 variables and density
    0.2 (`dowise.environments.random_problem`): graph, roles and CPTs all come from the seed.
    """
    rng = generator(seed)
    if not isinstance(problem, str | Path | Problem):
        raise DowiseError(f"give a Problem or the name of one, not {problem!r}")
    return random_worlds(problem, WorldOptions(hidden_values, strong, edges)).draw(rng)
