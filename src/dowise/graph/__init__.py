"""What causes what: causal graphs, their transformations, and where to intervene."""

from dowise.graph.causal_graph import CausalGraph

__all__ = ["CausalGraph"]
