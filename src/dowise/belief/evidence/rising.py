"""Soft edges, which nobody drew, that the records have made likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dowise.belief.belief import Belief

__all__ = ["LIKELY", "risen"]

LIKELY = 0.25
"""A soft edge that is now likelier than this, and than before, is drawn as suspected."""


def risen(belief: Belief) -> list[str]:
    """The soft edges to draw."""
    problem, chances = belief.problem, belief.edges()
    drawn = {*problem.graph.edge_texts}
    return [
        text
        for text, now in chances.items()
        if text not in drawn and now > max(LIKELY, problem.edge_priors[text])
    ]
