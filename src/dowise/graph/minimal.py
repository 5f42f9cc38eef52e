"""Minimal intervention sets: those of which no part could be left out without any effect.

A set X is minimal for the reward Y if each of its variables still has a way to Y once the arrows
into X are cut: X lies in An(Y) of that graph (Lee & Bareinboim 2018). What has none is blocked by
others of X, or no cause of Y at all, and setting it changes nothing. Every POMIS is minimal, and
every subset of a minimal set is, because a way that avoids the whole avoids the part.

>>> from dowise.graph import CausalGraph
>>> chain = CausalGraph.parse("Z -> X -> Y")
>>> is_minimal(chain, "Y", "Z"), is_minimal(chain, "Y", "X"), is_minimal(chain, "Y", ["X", "Z"])
(True, True, False)
"""

from __future__ import annotations

from collections.abc import Iterable

from dowise.graph.bits import closure
from dowise.graph.causal_graph import CausalGraph

__all__ = ["is_minimal"]


def is_minimal(graph: CausalGraph, reward: str, names: str | Iterable[str]) -> bool:
    """Whether these variables lie in An(Y) once the arrows into them are cut."""
    chosen = graph.mask(names)
    parents = [0 if chosen >> i & 1 else mask for i, mask in enumerate(graph.adjacency.parents)]
    return not chosen & ~closure(graph.mask(reward), parents)
