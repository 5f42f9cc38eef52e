"""A problem as a document: plain dicts and lists that JSON can hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dowise.problem.problem import Problem

__all__ = ["describe_arms", "describe_problems"]


def describe_arms(problem: Problem) -> dict[str, Any]:
    """The intervention sets and the arms, both in canonical order.

    >>> from dowise.problem import load_problem
    >>> describe_arms(load_problem("task1"))
    {'intervention_sets': [[], ['X']], 'arms': [{}, {'X': '0'}, {'X': '1'}]}
    """
    return {
        "intervention_sets": [sorted(names) for names in problem.intervention_sets],
        "arms": [dict(arm) for arm in problem.arms],
    }


def describe_problems(problems: Iterable[tuple[str, Problem]]) -> dict[str, Any]:
    """What each of some problems, under these names, is about, and how many arms it has."""
    return {
        "problems": [
            {"name": name, "description": problem.description, "arms": len(problem.arms)}
            for name, problem in problems
        ]
    }
