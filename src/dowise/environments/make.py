"""A random world in one call.

>>> world = make_environment("task1", seed=7)
>>> world.play("do(X=1)", None, rng=0)
{'X': '1', 'Y': '0', 'Z': '1'}
>>> world.regret("do(X=0)") >= 0
True
"""

from __future__ import annotations

from pathlib import Path

from dowise.environments.draw import EdgesOfWorlds, Manner
from dowise.environments.environment import Environment
from dowise.environments.sources import random_worlds
from dowise.errors import DowiseError
from dowise.problem import Problem
from dowise.randomness import Random, generator

__all__ = ["make_environment"]


def make_environment(
    problem: str | Problem,
    seed: Random,
    hidden_values: int = 2,
    strong: bool = False,
    edges: EdgesOfWorlds = "all",
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
    return random_worlds(problem, Manner(hidden_values, strong, edges)).draw(rng)
