"""The formulas of a problem as a document: plain dicts and lists that JSON can hold."""

from __future__ import annotations

from typing import Any

from dowise.identification.estimators import Estimator, estimators
from dowise.problem import Problem
from dowise.problem.formulas import formulas

__all__ = ["describe_formulas"]


def describe_formulas(problem: Problem) -> dict[str, Any]:
    """For each arm the truncated factorisation, and every way to estimate its reward."""
    ways = estimators(problem)
    return {
        "formulas": [
            {
                "arm": dict(formula.arm),
                "factorises": formula.obstacle is None,
                "text": str(formula),
                "latex": formula.latex(),
                "estimators": [_describe(way) for way in ways[formula.arm.variables]],
            }
            for formula in formulas(problem)
        ]
    }


def _describe(way: Estimator) -> dict[str, Any]:
    return {
        "text": str(way),
        "latex": way.latex(),
        "direct": way.is_direct,
        "any": list(way.any_value),
    }
