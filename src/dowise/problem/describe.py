"""A problem as a document, plain dicts and lists that JSON can hold; and its doubts in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dowise.problem.prior import plain_prior
from dowise.problem.problem import Problem

__all__ = ["costs_in_words", "describe_arms", "describe_problems", "doubts_in_words"]


def describe_arms(problem: Problem) -> dict[str, Any]:
    """The problem, its intervention sets and its arms, both in canonical order.

    >>> from dowise.problem import load_problem
    >>> page = describe_arms(load_problem("task1"))
    >>> page["roles"], page["intervention_sets"], page["arms"]
    ({'X': 'manipulable', 'Y': 'reward', 'Z': 'non_manipulable'}, [[], ['X']], [{}, {'X': '0'}, \
{'X': '1'}])
    """
    roles = {name: problem.role(name) for name in problem.graph}
    return {
        "name": problem.name,
        "description": problem.description,
        "graph": problem.drawn.to_text(),
        "reward": problem.reward,
        "minimise": problem.minimise,
        "reward_values": dict(problem.reward_values),
        "roles": dict(sorted({**roles, **dict.fromkeys(problem.hidden, "hidden")}.items())),
        "domains": {
            name: list(labels)
            for name, labels in sorted({**problem.domains, **problem.hidden_domains}.items())
        },
        "hidden": list(problem.hidden),
        "edge_priors": dict(problem.edge_priors),
        "soft": problem.soft,
        "prior": plain_prior(problem.prior),
        "forbidden": [dict(assignment) for assignment in problem.forbidden],
        "costs": dict(problem.costs),
        "kind": problem.arms_kind,
        "intervention_sets": [sorted(names) for names in problem.intervention_sets],
        "arms": [dict(arm) for arm in problem.arms],
        "arm_costs": problem.payoff.costs.tolist(),
    }


def doubts_in_words(problem: Problem) -> list[str]:
    """How likely the edges that are not certain are to be there, a line for each number.

    >>> from dowise.graph import CausalGraph
    >>> graph = CausalGraph.parse("Z ?-> X -> Y; X <-> Y")
    >>> for line in doubts_in_words(Problem(graph, "Y", soft=0.1)): print(line)
    X <-> Y with probability 0.9
    Z -> X with probability 0.5
    3 more, not drawn, each with probability 0.1 (soft)
    """
    drawn = set(problem.graph.edge_texts)
    by_prior: dict[float, list[str]] = {}
    for edge, prior in problem.edge_priors.items():
        if edge in drawn:
            by_prior.setdefault(prior, []).append(edge)
    lines = [
        f"{', '.join(edges)} with probability {prior:g}"
        for prior, edges in sorted(by_prior.items(), reverse=True)
    ]
    more = len(problem.edge_priors) - sum(map(len, by_prior.values()))
    if more:
        those = "1 more, not drawn," if more == 1 else f"{more} more, not drawn, each"
        lines += [f"{those} with probability {problem.soft:g} (soft)"]
    return lines


def costs_in_words(problem: Problem) -> tuple[str, ...]:
    """What variables and arms cost, each with its number.

    >>> costs_in_words(Problem("Z -> X -> Y", "Y", costs={"X": 0.1, "Z": 2}))
    ('X 0.1', 'Z 2')
    """
    return tuple(f"{text} {cost:g}" for text, cost in problem.costs.items())


def describe_problems(problems: Iterable[tuple[str, Problem]]) -> dict[str, Any]:
    """What each of some problems, under these names, is about, and how many arms it has."""
    return {
        "problems": [
            {"name": name, "description": problem.description, "arms": len(problem.arms)}
            for name, problem in problems
        ]
    }
