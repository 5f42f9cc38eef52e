"""Sources of worlds for simulations, one class per kind.

A source has a `label` (None if nothing has a name), a `spec` that identifies it in the digest of a
run, and `draw`, which returns the world of a trial given the random generator of that trial.

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

from dowise._core.rng import Random, generator
from dowise._core.types import FloatArray
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

MAX_CONTEXTS = 1024  # whose means are part of the digest of a custom world


@dataclass(frozen=True, eq=False)
class SampledWorlds:
    """Worlds of one problem, with new random CPTs for every trial.

    Parameters
    ----------
    problem : Problem
    options : WorldOptions

    Examples
    --------
    >>> import numpy as np
    >>> from dowise import load_problem
    >>> SampledWorlds(load_problem("task1")).draw(np.random.default_rng(0)).problem.name
    'task1'
    """

    problem: Problem
    options: WorldOptions = DEFAULT_OPTIONS

    @property
    def label(self) -> str | None:
        """Name of the problem."""
        return self.problem.name

    def spec(self) -> dict[str, Any]:
        """Return the text of the problem file, and the options."""
        return {"problem": problem_text(self.problem), **self.options.spec()}

    def draw(self, rng: np.random.Generator) -> Environment:
        """Draw doubtful edges first, if the options say so, then the CPTs."""
        return sample_world(self.problem, rng, self.options)

    def draw_many(self, rngs: Sequence[np.random.Generator]) -> list[Environment]:
        """Draw the worlds of several trials, the same as with `draw` for each."""
        return sample_worlds(self.problem, rngs, self.options)


@dataclass(frozen=True)
class ChordalWorlds:
    """A new random chordal graph, roles and CPTs for every trial.

    Parameters
    ----------
    name : str
        Such as "chordal-15-0.2".
    size : int
    density : float
    options : WorldOptions

    Raises
    ------
    DowiseError
        If the size or the density is out of range ("invalid-number").

    Examples
    --------
    >>> resolve_worlds("chordal-15-0.2").density
    0.2
    """

    name: str
    size: int
    density: float
    options: WorldOptions = DEFAULT_OPTIONS

    def __post_init__(self) -> None:
        check_graph_shape(self.size, self.density, 3, MAX_SIZE)

    @property
    def label(self) -> str:
        """Name of the worlds."""
        return self.name

    def spec(self) -> dict[str, Any]:
        """Return the name and the options."""
        return {"random": self.name, **self.options.spec()}

    def draw_problem(self, rng: np.random.Generator) -> RandomProblem:
        """Draw the graph and the roles, which come before the CPTs."""
        return random_problem(self.size, self.density, rng)

    def draw(self, rng: np.random.Generator) -> Environment:
        """Draw graph and roles, then the CPTs, from the same generator."""
        return sample_world(self.draw_problem(rng).problem, rng, self.options)


@dataclass(frozen=True, eq=False)
class FixedWorld:
    """An existing world, played in every trial.

    Parameters
    ----------
    world : World

    Examples
    --------
    >>> from dowise.environments import front_door_world
    >>> FixedWorld(front_door_world()).label
    'front-door'
    """

    world: World

    @property
    def label(self) -> str | None:
        """Name of the world's problem."""
        return self.world.problem.name

    def spec(self) -> dict[str, Any]:
        """Return the class of the world, its problem, and a digest of its numbers.

        The numbers of an `Environment` are its CPTs and its graph, hidden variables included, to
        the last bit. A custom world has only `means`: their digest is over all contexts, or the
        first 1,024 of them. So two custom worlds with equal means differ by their class only;
        simulations add a digest of its sources.
        """
        kind = type(self.world)
        spec = {
            "world": f"{kind.__module__}:{kind.__qualname__}",
            "problem": problem_text(self.world.problem),
        }
        if isinstance(self.world, Environment):
            return spec | {"cpts": _digest_of_cpts(self.world)}
        return spec | {"means": _digest_of_means(self.world)}

    def draw(self, _rng: np.random.Generator) -> World:
        """Return the world: nothing is drawn."""
        return self.world

    def __reduce__(self) -> tuple[Any, ...]:
        # An Environment is pickled as its parts, which are much smaller.
        if type(self.world) is Environment:
            return _fixed_world, (self.world.problem, self.world.cpts, self.world.graph)
        return FixedWorld, (self.world,)


Worlds = SampledWorlds | ChordalWorlds | FixedWorld


def resolve_worlds(
    source: str | Path | Problem | World | Worlds, options: WorldOptions | None = None
) -> Worlds:
    """Return the source of worlds for a name, a path, a problem or a world.

    Parameters
    ----------
    source : str, Path, Problem, World or Worlds
        Name of a built-in problem, a name such as "chordal-15-0.2", path of a problem file, or an
        object.
    options : WorldOptions, optional
        Options of random worlds. An error for a world, whose numbers are fixed.

    Returns
    -------
    SampledWorlds, ChordalWorlds or FixedWorld

    Raises
    ------
    DowiseError
        If `source` is not a problem or a world ("invalid-type"), a world with `options`
        ("unused-option"), or an invalid name ("unknown-problem").

    Examples
    --------
    >>> resolve_worlds("task1").label
    'task1'
    """
    if isinstance(source, SampledWorlds | ChordalWorlds):
        return source if options is None else replace(source, options=options)
    if isinstance(source, str | Path | Problem):
        return random_worlds(source, options or DEFAULT_OPTIONS)
    if not isinstance(source, FixedWorld) and not hasattr(source, "problem"):
        raise DowiseError(
            f"{source!r} is not a problem: pass a name, a path, a Problem, or a world that passes "
            "check_environment",
            code="invalid-type",
        )
    fixed = source if isinstance(source, FixedWorld) else FixedWorld(source)
    defect = world_defect(fixed.world)
    if defect is not None:
        raise DowiseError(
            f"{source!r} is not a world: it needs {defect} (see dowise.check_environment)",
            code="invalid-type",
        )
    if options is not None:
        raise DowiseError(
            f"{fixed.world!r} is a world with fixed numbers, so strong and edges have no effect: "
            "pass its problem to draw worlds, or omit them",
            code="unused-option",
        )
    return fixed


def random_worlds(
    source: str | Path | Problem, options: WorldOptions = DEFAULT_OPTIONS
) -> SampledWorlds | ChordalWorlds:
    """Return the source of random worlds for a problem, its file, or a name."""
    if isinstance(source, Problem):
        return SampledWorlds(source, options)
    name = str(source)
    if not name.startswith("chordal") or os.path.lexists(name):
        return SampledWorlds(load_problem(source), options)
    match = re.fullmatch(r"chordal-(\d{1,4})-(\d*\.?\d+)", name)
    if match is None:
        raise DowiseError(
            f"unknown random world {name!r} (expected chordal-SIZE-DENSITY, such as "
            "chordal-15-0.2)",
            code="unknown-problem",
        )
    return ChordalWorlds(name, int(match[1]), float(match[2]), options)


def _fixed_world(problem: Problem, cpts: dict[str, FloatArray], graph: CausalGraph) -> FixedWorld:
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
    """Create a world with random CPTs for a problem.

    Rows of CPTs are drawn from the problem's prior, by default Dirichlet(1). Each bidirected edge
    A <-> B becomes a hidden cause `U(A,B)`; hidden variables of the problem keep their domains.

    Parameters
    ----------
    problem : str or Problem
        A problem, its file, or the name of a built-in problem. "chordal-15-0.2" draws a random
        chordal graph with 15 variables and density 0.2, with roles (see `random_problem`).
    seed : int or numpy.random.Generator
        Source of everything random.
    hidden_values : int
        Number of values of the hidden causes of bidirected edges.
    strong : bool
        Make hidden causes matter more: at least three values, unless the problem gives a domain
        other than 0 and 1, and Dirichlet(0.2) for rows without a prior.
    edges : {"all", "prior"}
        "all" keeps every edge of the graph, doubtful or not; "prior" draws each doubtful edge, soft
        ones included, with its prior.

    Returns
    -------
    Environment

    Raises
    ------
    DowiseError
        If an argument is invalid ("invalid-type", "invalid-number", "unknown-value") or there is no
        such problem ("unknown-problem").

    Examples
    --------
    >>> world = make_environment("task1", seed=7)
    >>> world.best_arm() in world.problem.arms
    True
    """
    rng = generator(seed)
    if not isinstance(problem, str | Path | Problem):
        raise DowiseError(
            f"expected a Problem or the name of one, not {problem!r}", code="invalid-type"
        )
    return random_worlds(problem, WorldOptions(hidden_values, strong, edges)).draw(rng)
