"""Random worlds: the CPTs are drawn, and the hidden causes behind bidirected edges with them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dowise.environments.arc_reversal import reversal_of
from dowise.environments.cpts import random_cpts
from dowise.environments.environment import Environment
from dowise.graph import CausalGraph
from dowise.problem import Problem

__all__ = ["draw_world"]


def draw_world(problem: Problem, rng: np.random.Generator, hidden_values: int = 2) -> Environment:
    """A world with rows from Dirichlet(1); hidden causes have `hidden_values` values each."""
    graph = _with_hidden_causes(problem.graph)
    hidden = {name: hidden_values for name in graph if name not in problem.graph}
    reversal_of(problem, graph, hidden)  # refuses what is too large before it is drawn
    sizes = {name: len(labels) for name, labels in problem.domains.items()} | hidden
    return Environment(problem, random_cpts(graph, sizes, rng), graph)


@lru_cache(maxsize=32)
def _with_hidden_causes(graph: CausalGraph) -> CausalGraph:
    """The DAG in which each bidirected edge is a hidden variable with two children."""
    if not graph.bidirected_edges:
        return graph
    edges = list(graph.directed_edges)
    for one, other in graph.bidirected_edges:
        cause = f"U({one},{other})"
        while cause in graph:
            cause += "'"
        edges += [(cause, one), (cause, other)]
    return CausalGraph(edges, variables={*graph, *(end for edge in edges for end in edge)})
