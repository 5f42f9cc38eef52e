"""Random worlds: the CPTs are drawn, and the hidden causes behind bidirected edges with them.

>>> world = make_environment("task1", seed=7)
>>> world.play("do(X=1)", None, rng=0)
{'X': '1', 'Y': '0', 'Z': '1'}
>>> world.regret("do(X=0)") >= 0
True
"""

from __future__ import annotations

import os
import re

from dowise.belief.randomness import Random, generator
from dowise.environments.chordal import random_problem
from dowise.environments.cpts import random_cpts
from dowise.environments.environment import Environment
from dowise.environments.layout import layout_of
from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.problem import Problem, load_problem

__all__ = ["make_environment"]


def make_environment(problem: str | Problem, seed: Random, hidden_values: int = 2) -> Environment:
    """A world for a problem, or the built-in one of that name, with rows from Dirichlet(1).

    Each bidirected edge A <-> B becomes a hidden cause of its own, `U(A,B)`, with `hidden_values`
    values. "chordal-15-0.2" is a world on a random chordal graph with 15 variables and density
    0.2 (`dowise.environments.random_problem`): graph, roles and CPTs all come from the seed.
    """
    source = generator(seed)
    if isinstance(problem, str):
        made = _random_chordal(problem, seed=source) or load_problem(problem)
    else:
        made = problem
    if not isinstance(made, Problem):
        raise DowiseError(f"give a Problem or the name of one, not {problem!r}")
    if isinstance(hidden_values, bool) or not isinstance(hidden_values, int) or hidden_values < 2:
        raise DowiseError(f"hidden_values={hidden_values!r} must be a whole number of at least 2")
    graph = _with_hidden_causes(made.graph)
    hidden = {name: hidden_values for name in graph if name not in made.graph}
    layout_of(made, graph, hidden)  # refuses what is too large before it is drawn
    sizes = {name: len(labels) for name, labels in made.domains.items()} | hidden
    return Environment(made, random_cpts(graph, sizes, source), graph)


def _with_hidden_causes(graph: CausalGraph) -> CausalGraph:
    """The DAG in which each bidirected edge is a hidden variable with two children."""
    edges = list(graph.directed_edges)
    for one, other in graph.bidirected_edges:
        cause = f"U({one},{other})"
        while cause in graph:
            cause += "'"
        edges += [(cause, one), (cause, other)]
    return CausalGraph(edges, variables={*graph, *(end for edge in edges for end in edge)})


def _random_chordal(name: str, seed: Random) -> Problem | None:
    """The random problem that a name such as "chordal-15-0.2" asks for; None for other names."""
    if not name.startswith("chordal") or os.path.lexists(name):
        return None
    match = re.fullmatch(r"chordal-(\d{1,4})-(\d*\.?\d+)", name)
    if match is None:
        raise DowiseError(
            f"{name!r}: a random world is called chordal-SIZE-DENSITY, such as chordal-15-0.2"
        )
    return random_problem(int(match[1]), float(match[2]), seed).problem
