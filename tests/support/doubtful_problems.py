"""Problems with additional doubtful edges."""

from __future__ import annotations

from collections.abc import Iterable

from dowise.graph.edges import DOUBTFUL_PRIOR
from dowise.problem.problem import Problem


def with_doubtful(problem: Problem, edges: Iterable[str]) -> Problem:
    """The problem with these edges as well, each there with probability .5.

    Everything else stays as it is: the variables that are recorded, their values, the arms, and how
    likely all other edges are, soft ones included.
    """
    edges = tuple(edges)
    graph = problem.possible.with_edges(edges)
    certain = dict.fromkeys(graph.edge_texts, 1.0)
    make, (options,) = problem.__reduce__()
    wider: Problem = make(
        options
        | {
            "graph": graph,
            "hidden": (),
            "domains": dict(problem.domains),
            "arms": problem.arms,
            "edge_prior": certain | {**problem.edge_priors, **dict.fromkeys(edges, DOUBTFUL_PRIOR)},
            "soft": None,
        }
    )
    return wider
