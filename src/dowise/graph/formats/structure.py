"""What a file of structure says: a causal graph, and whatever else its format can hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from dowise.errors import DowiseError
from dowise.graph.causal_graph import CausalGraph, Edge
from dowise.graph.edges import EdgeName, Mark

__all__ = ["Arrow", "Sketch", "Structure", "isolated"]


@dataclass(frozen=True)
class Structure:
    """A causal graph with the labels of its variables and their roles, where the file has them."""

    graph: CausalGraph
    domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The labels of each variable; only BIF has them."""
    exposures: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    latent: tuple[str, ...] = ()
    """The hidden variables, no longer in the graph; like the roles above, only dagitty has them."""


class Arrow(NamedTuple):
    """What joins two neighbours of a chain: ->, <- or <->, and its mark."""

    shape: str
    mark: Mark = ""


class Sketch:
    """A graph as a reader comes across it, chain by chain."""

    def __init__(self) -> None:
        self.directed: list[Edge] = []
        self.bidirected: list[Edge] = []
        self.marked: dict[Mark, list[str]] = {"?": [], "!": []}
        self._marks: dict[str, Mark] = {}
        self.names: dict[str, None] = {}

    def chain(self, groups: Sequence[Sequence[str]], arrows: Iterable[Arrow]) -> None:
        """Join each group to the next, every variable of the one to every variable of the other."""
        self.names.update((name, None) for group in groups for name in group)
        for lefts, (shape, mark), rights in zip(groups, arrows, groups[1:], strict=False):
            for left, right in product(lefts, rights):
                edge = EdgeName.of(left, shape, right)
                ends = self.bidirected if edge.is_bidirected else self.directed
                ends.append((edge.one, edge.other))
                self._refuse_another(edge, mark)
                if mark:
                    self.marked[mark].append(str(edge))

    def _refuse_another(self, edge: EdgeName, mark: Mark) -> None:
        """An edge may be drawn twice, but not once with a mark and once without."""
        before = self._marks.setdefault(str(edge), mark)
        if before != mark and not (before and mark):  # of two marks, the graph itself will tell
            how = "doubtful" if "?" in (before, mark) else "certain"
            raise DowiseError(f"{edge} is drawn twice, as {how} and without a mark: keep one")

    def graph(self) -> CausalGraph:
        """The finished graph."""
        if not self.names:
            raise DowiseError("the graph is empty: it names no variable")
        edges = self.directed, self.bidirected
        return CausalGraph(*edges, self.names, self.marked["?"], self.marked["!"])


def isolated(graph: CausalGraph) -> list[str]:
    """The variables that no edge names, which a writer must list by themselves."""
    joined = {end for edge in (*graph.directed_edges, *graph.bidirected_edges) for end in edge}
    return [name for name in graph.variables if name not in joined]
