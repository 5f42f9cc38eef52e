"""The causal graph: what causes what (directed edges) and what shares a hidden cause (bidirected).

A graph never changes. Its variables stand in the order of their names, so two graphs with the same
variables and edges are equal, hash alike and print alike, however they were written down.

>>> graph = CausalGraph.parse("Z -> X -> Y; Z -> Y")
>>> graph.parents("Y"), sorted(graph.ancestors("X"))
(('X', 'Z'), ['X', 'Z'])
>>> graph.project("Z")                                  # Z can't be set: it becomes a hidden cause
CausalGraph.parse('X -> Y; X <-> Y')
>>> [sorted(s) for s in graph.project("Z").pomis("Y")]  # so both do() and do(X=x) can be best
[[], ['X']]
>>> dict(CausalGraph.parse("Z ?-> X -> Y; X <-> Y; Z <-> Y!").edge_priors)   # what is not certain
{'X <-> Y': 0.9, 'Z -> X': 0.5}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dowise.graph.adjacency import Adjacency
from dowise.graph.edges import EdgeName, Mark, as_texts, known_edge, marks_of, texts_of
from dowise.graph.relations import Relations
from dowise.graph.validation import Edge, check_names, check_pairs, refuse_cycle, refuse_loops

if TYPE_CHECKING:
    import networkx

__all__ = ["DEFAULT_MAX_SETS", "CausalGraph", "Edge"]

DEFAULT_MAX_SETS = 100_000


class CausalGraph(Relations):
    """An acyclic directed mixed graph over named variables; immutable and hashable.

    `variables` may be left out: then they are the ends of the edges. Where it is given, an edge
    must not name anything else. `doubtful` and `certain` name edges by their texts, "A -> B" or
    "A <-> B": without them an arrow is certain and a bidirected edge is there with prior .9.
    `adjacency` has the edges as bit sets, for algorithms; it knows nothing of these marks.
    """

    __slots__ = ()

    def __init__(
        self,
        directed: Iterable[Edge] = (),
        bidirected: Iterable[Edge] = (),
        variables: Iterable[str] | None = None,
        doubtful: str | Iterable[str] = (),
        certain: str | Iterable[str] = (),
    ) -> None:
        directed, bidirected = check_pairs(directed), check_pairs(bidirected)
        ends = [end for edge in (*directed, *bidirected) for end in edge]
        variables = (variables,) if isinstance(variables, str) else variables
        names = ends if variables is None else list(variables)
        check_names(names, once=variables is not None)
        self.variables = tuple(sorted(set(names)))
        self._position = place = {name: i for i, name in enumerate(self.variables)}
        for end in ends:
            self._index(end)
        refuse_loops(directed, bidirected)
        self.adjacency = Adjacency.of(
            len(self.variables),
            ((place[cause], place[effect]) for cause, effect in directed),
            ((place[one], place[other]) for one, other in bidirected),
        )
        marks = marks_of(texts_of(directed, bidirected), doubtful, certain)
        self.marks = MappingProxyType(marks)
        refuse_cycle(self.variables, self.adjacency, marks)
        self._freeze()

    @classmethod
    def from_adjacency(
        cls,
        variables: tuple[str, ...],
        adjacency: Adjacency,
        marks: Mapping[str, Mark] = MappingProxyType({}),
    ) -> CausalGraph:
        """For algorithms: a graph from sorted variables and edges that are known to be right.

        Nothing is checked; the ordinary constructor does that. Marks of other edges are dropped.
        """
        graph = object.__new__(cls)
        graph.variables = variables
        graph.adjacency = adjacency
        graph._position = {name: i for i, name in enumerate(variables)}
        there = graph.edge_texts if marks else ()
        kept = {edge: mark for edge, mark in marks.items() if edge in there}
        graph.marks = MappingProxyType(kept)
        graph._freeze()
        return graph

    # -- as a value --------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CausalGraph):
            return NotImplemented
        return self.has_edges_of(other) and self.marks == other.marks

    def __hash__(self) -> int:
        return hash((self.variables, self.adjacency, tuple(self.marks.items())))

    def has_edges_of(self, other: CausalGraph) -> bool:
        """Whether both have the same variables and edges, whatever their marks."""
        return self.variables == other.variables and self.adjacency == other.adjacency

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"CausalGraph.parse({self.to_text()!r})" if self.variables else "CausalGraph()"

    def __reduce__(self) -> tuple[Any, ...]:
        edges = self.directed_edges, self.bidirected_edges
        return CausalGraph, (*edges, self.variables, *self._marked())

    # -- graphs made from it ------------------------------------------------------------------

    def subgraph(self, names: Iterable[str]) -> CausalGraph:
        """G[names]: these variables and the edges among them."""
        keep = self.mask(names)
        left = self.adjacency.restrict(keep)
        return CausalGraph.from_adjacency(self.names(keep), left, self.marks)

    def cut(self, names: str | Iterable[str]) -> CausalGraph:
        """G with every edge into these variables removed, bidirected ones included: do(names)."""
        left = self.adjacency.cut(self.mask(names))
        return CausalGraph.from_adjacency(self.variables, left, self.marks)

    def without(self, edges: str | Iterable[str]) -> CausalGraph:
        """G without these edges, which are given by their texts."""
        texts = self.edge_texts
        gone = {known_edge(edge, texts) for edge in as_texts(edges)}
        return self._with_these(text for text in texts if text not in gone)

    def with_edges(self, edges: str | Iterable[str]) -> CausalGraph:
        """G and these edges, which are given by their texts; those that are new have no mark."""
        return self._with_these((*self.edge_texts, *as_texts(edges)))

    def condition(self, context: str | Iterable[str]) -> CausalGraph:
        """The graph of the other variables once the context is known; see `graph.transform`."""
        from dowise.graph.transform import condition

        return condition(self, context)

    def project(self, hidden: str | Iterable[str]) -> CausalGraph:
        """The latent projection that hides these variables; see `graph.transform`."""
        from dowise.graph.transform import project

        return project(self, hidden)

    # -- where to intervene -------------------------------------------------------------------

    def muct(self, reward: str) -> frozenset[str]:
        """MUCT(G, Y), the minimal UC-territory of the reward (Definition 1)."""
        from dowise.graph.pomis import muct

        return muct(self, reward)

    def interventional_border(self, reward: str) -> frozenset[str]:
        """IB(G, Y), the parents of the territory outside it (Definition 2)."""
        from dowise.graph.pomis import interventional_border

        return interventional_border(self, reward)

    def pomis(
        self, reward: str, max_sets: int | None = DEFAULT_MAX_SETS
    ) -> tuple[frozenset[str], ...]:
        """Every possibly optimal minimal intervention set (Lemma 1), by size, then by names.

        More than `max_sets` of them is an error, so that a large graph can't fill the memory;
        None lifts the limit.
        """
        from dowise.graph.pomis import pomis

        return pomis(self, reward, max_sets)

    def iter_pomis(self, reward: str) -> Iterator[frozenset[str]]:
        """The same sets one by one as they are found, each once, in no particular order."""
        from dowise.graph.pomis import iter_pomis

        return iter_pomis(self, reward)

    # -- in and out ---------------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str) -> CausalGraph:
        """Read the text form: `A -> B -> C; A <-> D`, one statement a line or between ; or ,"""
        from dowise.graph.formats.text import parse_text

        return parse_text(text)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any]) -> CausalGraph:
        """From a DiGraph (all edges directed) or a MultiDiGraph as `to_networkx` makes it."""
        from dowise.graph.formats.exchange import from_networkx

        return from_networkx(graph)

    @classmethod
    def from_dot(cls, text: str) -> CausalGraph:
        """From Graphviz' DOT language; an edge with `dir=both` is bidirected."""
        from dowise.graph.formats.dot import parse_dot

        return parse_dot(text)

    @classmethod
    def from_dagitty(cls, text: str) -> CausalGraph:
        """From dagitty's model code; variables tagged `latent` are projected out."""
        from dowise.graph.formats.dagitty import parse_dagitty

        return parse_dagitty(text).graph

    @classmethod
    def from_gml(cls, text: str) -> CausalGraph:
        """From GML, with the marks of bidirected edges that `to_gml` writes."""
        from dowise.graph.formats.exchange import parse_gml

        return parse_gml(text)

    @classmethod
    def from_pgmpy(cls, model: Any) -> CausalGraph:
        """From a DAG, an ADMG or a Bayesian network of pgmpy; its latents are projected out."""
        from dowise.graph.formats.libraries import from_pgmpy

        return from_pgmpy(model).projected

    @classmethod
    def from_dowhy(cls, model: Any) -> CausalGraph:
        """From a CausalModel or a causal graph of DoWhy; what is unobserved is projected out."""
        from dowise.graph.formats.libraries import from_dowhy

        return from_dowhy(model).projected

    @classmethod
    def read(cls, path: str | Path) -> CausalGraph:
        """From a file, by its ending (.dot, .gv, .gml, .dagitty, .bif) or else its content."""
        from dowise.graph.formats import read_structure

        return read_structure(path).graph

    def to_text(self) -> str:
        """The text form, which `parse` reads back."""
        from dowise.graph.formats.text import to_text

        return to_text(self)

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """A MultiDiGraph whose edge keys are "directed" and "bidirected"."""
        from dowise.graph.formats.exchange import to_networkx

        return to_networkx(self)

    def to_dot(self) -> str:
        """Graphviz' DOT language."""
        from dowise.graph.formats.dot import to_dot

        return to_dot(self)

    def to_dagitty(self) -> str:
        """dagitty's model code."""
        from dowise.graph.formats.dagitty import to_dagitty

        return to_dagitty(self)

    def to_gml(self) -> str:
        """GML."""
        from dowise.graph.formats.exchange import to_gml

        return to_gml(self)

    def to_pgmpy(self, hidden: str | Iterable[str] = ()) -> Any:
        """A DAG of pgmpy; `hidden` variables and one for each bidirected edge are its latents."""
        from dowise.graph.formats.libraries import to_pgmpy

        return to_pgmpy(self, hidden)

    def to_dowhy(self, hidden: str | Iterable[str] = ()) -> networkx.DiGraph[str]:
        """The graph for a CausalModel of DoWhy; unobserved variables as in `to_pgmpy`."""
        from dowise.graph.formats.libraries import to_dowhy

        return to_dowhy(self, hidden)

    def _marked(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The edges marked as doubtful, and those marked as certain."""
        doubtful, certain = (
            tuple(edge for edge, given in self.marks.items() if given == mark) for mark in "?!"
        )
        return doubtful, certain

    def _with_these(self, edges: Iterable[str]) -> CausalGraph:
        """The graph of these edges instead of its own, with its own marks where they are left."""
        named = [EdgeName.parse(edge) for edge in edges]
        plain = CausalGraph(
            [(edge.one, edge.other) for edge in named if not edge.is_bidirected],
            [(edge.one, edge.other) for edge in named if edge.is_bidirected],
            self.variables,
        )
        return CausalGraph.from_adjacency(plain.variables, plain.adjacency, self.marks)
