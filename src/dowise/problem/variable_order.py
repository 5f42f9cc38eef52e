"""The one order of a problem's variables, and which of them share hidden causes along it.

Context first, then the ancestors of reward and context, then the rest, which no reward needs. Under
an intervention on X the factor of v is decided by its *component*: the c-component of v among the
variables before it that X leaves alone, T(v, X). Two interventions share the factor of v if and
only if they leave it the same component, so a factor's key is (v, T); docs/hidden.md has the proof.
A hidden cause of variables that no reward needs joins nothing.
"""

from __future__ import annotations

from dowise.graph import CausalGraph
from dowise.graph.adjacency import Adjacency, closure
from dowise.graph.transforms import factor_order, predecessors, tied_within, with_parents
from dowise.problem.problem import Problem

Key = tuple[int, int]
"""A variable and its component, a set of variables that holds itself, as bits."""


class Order:
    """The order of a problem's variables; sets of variables are bits, by position."""

    def __init__(self, problem: Problem) -> None:
        self.graph: CausalGraph = problem.possible
        """Every edge that may be there."""
        edges = self.graph.adjacency
        everything = (1 << len(self.graph)) - 1
        self.context = self.graph.mask(problem.context)
        self.useful = closure(self.context | 1 << problem.reward_position, edges.parents)
        """The ancestors of reward and context."""
        self.edges: Adjacency = tied_within(edges, self.useful)
        """A hidden cause of variables that no reward needs is left out."""
        self.variables = factor_order(self.edges, (self.context, self.useful, everything))
        self.before = predecessors(self.variables, len(self.graph))
        """Of each variable: itself and all that come before it."""

    def key(self, v: int, cut: int) -> Key:
        """Of the factor of v where the variables of `cut` are set."""
        return v, closure(1 << v, self.edges.siblings, within=self.before[v] & ~cut)

    def scope(self, key: Key) -> int:
        """What the factor's variable is conditioned on: its component, and all parents of that."""
        v, component = key
        return with_parents(self.edges, component) & ~(1 << v)
