"""Problems with additional doubtful edges."""

from __future__ import annotations

from collections.abc import Iterable

from dowise.graph.edges import DOUBTFUL_PRIOR
from dowise.problem.problem import Problem


def with_doubtful(problem: Problem, edges: Iterable[str]) -> Problem:
    """Return the problem with these additional edges, each with probability .5.

    Recorded variables, values, arms and the probabilities of all other edges are unchanged.
    """
    edges = tuple(edges)
    graph = problem.possible.with_edges(edges)
    certain = dict.fromkeys(graph.edge_texts, 1.0)
    make, (options,) = problem.__reduce__()
    doubtful: Problem = make(
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
    return doubtful
