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
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, suggestion
from dowise.frozen import Frozen
from dowise.graph.adjacency import Adjacency
from dowise.graph.bits import bits, closure, mask_of
from dowise.graph.validation import Edge, check_names, check_pairs, refuse_cycle, refuse_loops

if TYPE_CHECKING:
    import networkx

__all__ = ["DEFAULT_MAX_SETS", "CausalGraph", "Edge"]

DEFAULT_MAX_SETS = 100_000


class CausalGraph(Frozen):
    """An acyclic directed mixed graph over named variables; immutable and hashable.

    `variables` may be left out: then they are the ends of the edges. Where it is given, an edge
    must not name anything else. `adjacency` has the edges as bit sets, for algorithms.
    """

    __slots__ = ("_position", "adjacency", "variables")

    variables: tuple[str, ...]
    adjacency: Adjacency

    def __init__(
        self,
        directed: Iterable[Edge] = (),
        bidirected: Iterable[Edge] = (),
        variables: Iterable[str] | None = None,
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
        refuse_cycle(self.variables, self.adjacency)
        self._freeze()

    @classmethod
    def from_adjacency(cls, variables: tuple[str, ...], adjacency: Adjacency) -> CausalGraph:
        """For algorithms: a graph from sorted variables and edges that are known to be right.

        Nothing is checked; the ordinary constructor does that.
        """
        graph = object.__new__(cls)
        graph.variables = variables
        graph.adjacency = adjacency
        graph._position = {name: i for i, name in enumerate(variables)}
        graph._freeze()
        return graph

    # -- what is in it ------------------------------------------------------------------------

    @property
    def directed_edges(self) -> tuple[Edge, ...]:
        """(cause, effect) pairs, sorted."""
        return tuple(
            (cause, self.variables[j])
            for cause, mask in zip(self.variables, self.adjacency.children, strict=True)
            for j in bits(mask)
        )

    @property
    def bidirected_edges(self) -> tuple[Edge, ...]:
        """Pairs with a hidden common cause, each once, in the order of names, sorted."""
        return tuple(
            (name, self.variables[j])
            for i, name in enumerate(self.variables)
            for j in bits(self.adjacency.siblings[i])
            if i < j
        )

    def parents(self, name: str) -> tuple[str, ...]:
        """The direct causes of one variable, sorted by name."""
        return self.names(self.adjacency.parents[self._index(name)])

    def children(self, name: str) -> tuple[str, ...]:
        """The direct effects of one variable, sorted by name."""
        return self.names(self.adjacency.children[self._index(name)])

    def siblings(self, name: str) -> tuple[str, ...]:
        """The variables that share a hidden cause with this one, sorted by name."""
        return self.names(self.adjacency.siblings[self._index(name)])

    def ancestors(self, names: str | Iterable[str]) -> frozenset[str]:
        """An(names): the names and everything with a directed path into one of them."""
        return frozenset(self.names(closure(self.mask(names), self.adjacency.parents)))

    def descendants(self, names: str | Iterable[str]) -> frozenset[str]:
        """De(names): the names and everything that they have a directed path to."""
        return frozenset(self.names(closure(self.mask(names), self.adjacency.children)))

    def c_component(self, name: str) -> frozenset[str]:
        """CC(name): everything joined to it by a path of bidirected edges, itself included."""
        return frozenset(self.names(closure(1 << self._index(name), self.adjacency.siblings)))

    def topological_order(self) -> tuple[str, ...]:
        """Causes before effects; among equals the order of names."""
        return tuple(self.variables[i] for i in self.adjacency.topological_order())

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CausalGraph):
            return NotImplemented
        return self.variables == other.variables and self.adjacency == other.adjacency

    def __hash__(self) -> int:
        return hash((self.variables, self.adjacency))

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"CausalGraph.parse({self.to_text()!r})" if self.variables else "CausalGraph()"

    def __reduce__(self) -> tuple[Any, ...]:
        return CausalGraph, (self.directed_edges, self.bidirected_edges, self.variables)

    # -- graphs made from it ------------------------------------------------------------------

    def subgraph(self, names: Iterable[str]) -> CausalGraph:
        """G[names]: these variables and the edges among them."""
        keep = self.mask(names)
        return CausalGraph.from_adjacency(self.names(keep), self.adjacency.restrict(keep))

    def cut(self, names: str | Iterable[str]) -> CausalGraph:
        """G with every edge into these variables removed, bidirected ones included: do(names)."""
        return CausalGraph.from_adjacency(self.variables, self.adjacency.cut(self.mask(names)))

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
    def read(cls, path: str | Path) -> CausalGraph:
        """From a file, by its ending: .txt, .dot, .gv, .gml, .dagitty, .bif."""
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

    # -- names and bit sets, for algorithms ---------------------------------------------------

    def mask(self, names: str | Iterable[str]) -> int:
        """The set of these names, bit i for `variables[i]`; a str is one name."""
        names = (names,) if isinstance(names, str) else names
        return mask_of(self._index(name) for name in names)

    def names(self, mask: int) -> tuple[str, ...]:
        """The names in a set, sorted."""
        return tuple(self.variables[i] for i in bits(mask))

    def _index(self, name: str) -> int:
        try:
            return self._position[name]
        except (KeyError, TypeError):
            raise DowiseError(
                f"unknown variable {name!r}{suggestion(str(name), self.variables)}"
            ) from None
