"""Causal graphs, their transformations, and intervention sets."""

from dowise.graph.causal_graph import CausalGraph

__all__ = ["CausalGraph"]
