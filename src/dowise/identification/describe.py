"""The formulas of a problem as a document: plain dicts and lists that JSON can hold."""

from __future__ import annotations

from typing import Any

from dowise.identification.estimators import Estimator, estimators
from dowise.problem import Problem
from dowise.problem.formulas import formulas, notation_of

__all__ = ["describe_formulas"]


def describe_formulas(problem: Problem) -> dict[str, Any]:
    """For each arm its reward in factors, and every way to estimate it.

    Then the symbol for any value of each variable, and all doubtful edges.
    """
    ways = estimators(problem)
    return {
        "formulas": [
            {
                "arm": dict(formula.arm),
                "text": str(formula),
                "latex": formula.latex(),
                "seen": formula.is_seen,
                "estimators": [_describe(way) for way in ways[formula.arm.variables]],
            }
            for formula in formulas(problem)
        ],
        "symbols": dict(notation_of(problem).symbols),
        "doubtful_edges": list(problem.edge_priors),
    }


def _describe(way: Estimator) -> dict[str, Any]:
    return {
        "text": str(way),
        "latex": way.latex(),
        "direct": way.is_direct,
        "any": list(way.any_value),
    }
