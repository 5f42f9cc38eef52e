"""Causal graphs: directed edges for causes, bidirected edges for hidden common causes.

A graph is immutable. Its variables are sorted by name, so two graphs with the same variables and
edges are equal, have the same hash and print the same text, however they were written.

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

from dowise._core.frozen import Frozen
from dowise.errors import DowiseError, join_names, suggestion
from dowise.graph.adjacency import Adjacency, bits, closure, mask_of
from dowise.graph.edges import (
    Edge,
    EdgeName,
    Mark,
    as_texts,
    check_acyclic,
    check_names,
    check_no_loops,
    check_pairs,
    edge_texts_of,
    known_edge,
    marks_of,
    prior_of,
)

if TYPE_CHECKING:
    import networkx

DEFAULT_MAX_SETS = 100_000


class CausalGraph(Frozen):
    """Acyclic directed mixed graph over named variables. Immutable and hashable.

    Parameters
    ----------
    directed : iterable of (str, str)
        Directed edges as (cause, effect).
    bidirected : iterable of (str, str)
        Pairs of variables that share a hidden cause.
    variables : iterable of str, optional
        Names of the variables. If omitted, they are the ends of the edges. If passed, every edge
        must be between variables of this list.
    doubtful : str or iterable of str
        Edges that exist with prior 0.5, as text: "A -> B" or "A <-> B".
    certain : str or iterable of str
        Edges that exist for certain. Directed edges are certain by default; bidirected edges have
        the prior 0.9 by default.

    Attributes
    ----------
    variables : tuple of str
        Names, sorted.
    adjacency : Adjacency
        Edges as bit sets, for algorithms. It does not contain the marks.
    marks : mapping of str to {"?", "!"}
        Marks of doubtful ("?") and certain ("!") edges by edge text.

    Raises
    ------
    DowiseError
        If a name is invalid, an edge has an unknown end, or the directed edges have a cycle.

    Examples
    --------
    >>> CausalGraph([("Z", "X"), ("X", "Y")], bidirected=[("X", "Y")], certain="X <-> Y")
    CausalGraph.parse('X -> Y; Z -> X; X <-> Y!')
    """

    __slots__ = ("_position", "adjacency", "marks", "variables")

    variables: tuple[str, ...]
    adjacency: Adjacency
    marks: Mapping[str, Mark]
    _position: Mapping[str, int]

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
        check_names(names, unique=variables is not None)
        self.variables = tuple(sorted(set(names)))
        self._position = index = {name: i for i, name in enumerate(self.variables)}
        for end in ends:
            self._index(end)
        check_no_loops(directed, bidirected)
        self.adjacency = Adjacency.from_edges(
            len(self.variables),
            ((index[cause], index[effect]) for cause, effect in directed),
            ((index[left], index[right]) for left, right in bidirected),
        )
        marks = marks_of(edge_texts_of(directed, bidirected), doubtful, certain)
        self.marks = MappingProxyType(marks)
        check_acyclic(self.variables, self.adjacency, marks)
        self._freeze()

    @classmethod
    def from_adjacency(
        cls,
        variables: tuple[str, ...],
        adjacency: Adjacency,
        marks: Mapping[str, Mark] = MappingProxyType({}),
    ) -> CausalGraph:
        """Build a graph from sorted variables and valid edges, without any checks.

        This is for algorithms; use the constructor for user input.

        Parameters
        ----------
        variables : tuple of str
            Names, sorted.
        adjacency : Adjacency
            Edges as bit sets.
        marks : mapping of str to {"?", "!"}
            Marks by edge text. Marks of edges that are not in the graph are dropped.

        Returns
        -------
        CausalGraph
            Graph with these variables, edges and marks.

        Examples
        --------
        >>> from dowise.graph.adjacency import Adjacency
        >>> CausalGraph.from_adjacency(("X", "Y"), Adjacency.from_edges(2, directed=[(0, 1)]))
        CausalGraph.parse('X -> Y')
        """
        graph = object.__new__(cls)
        graph.variables = variables
        graph.adjacency = adjacency
        graph._position = {name: i for i, name in enumerate(variables)}
        texts = graph.edge_texts if marks else ()
        graph.marks = MappingProxyType(
            {edge: mark for edge, mark in marks.items() if edge in texts}
        )
        graph._freeze()
        return graph

    # -- equality and text ----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CausalGraph):
            return NotImplemented
        return self.has_edges_of(other) and self.marks == other.marks

    def __hash__(self) -> int:
        return hash((self.variables, self.adjacency, tuple(self.marks.items())))

    def has_edges_of(self, other: CausalGraph) -> bool:
        """Return True if both graphs have the same variables and edges, whatever their marks.

        Parameters
        ----------
        other : CausalGraph
            Graph to compare with.

        Returns
        -------
        bool
            True if only the marks may differ.

        Examples
        --------
        >>> certain, plain = CausalGraph.parse("X <-> Y!"), CausalGraph.parse("X <-> Y")
        >>> certain.has_edges_of(plain), certain == plain
        (True, False)
        """
        return self.variables == other.variables and self.adjacency == other.adjacency

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"CausalGraph.parse({self.to_text()!r})" if self.variables else "CausalGraph()"

    def __reduce__(self) -> tuple[Any, ...]:
        doubtful = tuple(edge for edge, mark in self.marks.items() if mark == "?")
        certain = tuple(edge for edge, mark in self.marks.items() if mark == "!")
        edges = self.directed_edges, self.bidirected_edges
        return CausalGraph, (*edges, self.variables, doubtful, certain)

    # -- edges ----------------------------------------------------------------------------------

    @property
    def directed_edges(self) -> tuple[Edge, ...]:
        """Directed edges as (cause, effect), sorted."""
        return tuple(
            (cause, self.variables[j])
            for cause, mask in zip(self.variables, self.adjacency.children, strict=True)
            for j in bits(mask)
        )

    @property
    def bidirected_edges(self) -> tuple[Edge, ...]:
        """Pairs of variables with a hidden common cause, each pair and the list sorted."""
        return tuple(
            (name, self.variables[j])
            for i, name in enumerate(self.variables)
            for j in bits(self.adjacency.siblings[i])
            if i < j
        )

    @property
    def edges(self) -> tuple[EdgeName, ...]:
        """Directed edges, then bidirected ones, each part sorted. `str(edge)` is its text."""
        return (
            *(EdgeName(cause, "->", effect) for cause, effect in self.directed_edges),
            *(EdgeName(left, "<->", right) for left, right in self.bidirected_edges),
        )

    @property
    def edge_texts(self) -> tuple[str, ...]:
        """Edges as text, sorted: "A -> B", or "A <-> B" with sorted names."""
        return tuple(sorted(map(str, self.edges)))

    @property
    def edge_priors(self) -> Mapping[str, float]:
        """Prior probability of each edge that is not certain, by edge text, sorted."""
        priors = {edge: prior_of(edge, self.marks.get(edge, "")) for edge in self.edge_texts}
        return MappingProxyType({edge: prior for edge, prior in priors.items() if prior < 1})

    @property
    def doubtful_edges(self) -> tuple[str, ...]:
        """Edges that are not certain: those marked "?", and "<->" without a mark. Sorted."""
        return tuple(self.edge_priors)

    # -- relations between variables ------------------------------------------------------------

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the direct causes of a variable, sorted by name.

        Parameters
        ----------
        name : str
            Name of a variable.

        Returns
        -------
        tuple of str
            Names of the direct causes.

        Raises
        ------
        DowiseError
            If the variable is unknown.

        Examples
        --------
        >>> CausalGraph.parse("Z -> X -> Y; Z -> Y").parents("Y")
        ('X', 'Z')
        """
        return self.names(self.adjacency.parents[self._index(name)])

    def children(self, name: str) -> tuple[str, ...]:
        """Return the direct effects of a variable, sorted by name.

        Parameters
        ----------
        name : str
            Name of a variable.

        Returns
        -------
        tuple of str
            Names of the direct effects.

        Raises
        ------
        DowiseError
            If the variable is unknown.

        Examples
        --------
        >>> CausalGraph.parse("Z -> X -> Y; Z -> Y").children("Z")
        ('X', 'Y')
        """
        return self.names(self.adjacency.children[self._index(name)])

    def siblings(self, name: str) -> tuple[str, ...]:
        """Return the variables that share a hidden cause with a variable, sorted by name.

        Parameters
        ----------
        name : str
            Name of a variable.

        Returns
        -------
        tuple of str
            Names of the variables that a bidirected edge joins to it.

        Raises
        ------
        DowiseError
            If the variable is unknown.

        Examples
        --------
        >>> CausalGraph.parse("X -> Y; X <-> Y; X <-> W").siblings("X")
        ('W', 'Y')
        """
        return self.names(self.adjacency.siblings[self._index(name)])

    def ancestors(self, names: str | Iterable[str]) -> frozenset[str]:
        """Return An(names): the names and all variables with a directed path into one of them.

        Parameters
        ----------
        names : str or iterable of str
            Names of variables; a str is a single name.

        Returns
        -------
        frozenset of str
            Names of the ancestors, `names` included.

        Raises
        ------
        DowiseError
            If a variable is unknown.

        Examples
        --------
        >>> sorted(CausalGraph.parse("Z -> X -> Y").ancestors("X"))
        ['X', 'Z']
        """
        return frozenset(self.names(closure(self.mask(names), self.adjacency.parents)))

    def descendants(self, names: str | Iterable[str]) -> frozenset[str]:
        """Return De(names): the names and all variables that one of them has a directed path to.

        Parameters
        ----------
        names : str or iterable of str
            Names of variables; a str is a single name.

        Returns
        -------
        frozenset of str
            Names of the descendants, `names` included.

        Raises
        ------
        DowiseError
            If a variable is unknown.

        Examples
        --------
        >>> sorted(CausalGraph.parse("Z -> X -> Y").descendants("X"))
        ['X', 'Y']
        """
        return frozenset(self.names(closure(self.mask(names), self.adjacency.children)))

    def c_component(self, name: str) -> frozenset[str]:
        """Return CC(name): all variables joined to it by bidirected edges, itself included.

        Parameters
        ----------
        name : str
            Name of a variable.

        Returns
        -------
        frozenset of str
            Names of the variables that paths of bidirected edges lead to.

        Raises
        ------
        DowiseError
            If the variable is unknown.

        Examples
        --------
        >>> sorted(CausalGraph.parse("W <-> X <-> Y; Z -> X").c_component("W"))
        ['W', 'X', 'Y']
        """
        return frozenset(self.names(closure(1 << self._index(name), self.adjacency.siblings)))

    def topological_order(self) -> tuple[str, ...]:
        """Return the variables with causes before effects; ties are broken by name.

        Returns
        -------
        tuple of str
            All variables of the graph.

        Examples
        --------
        >>> CausalGraph.parse("Z -> X -> Y; W -> Y").topological_order()
        ('W', 'Z', 'X', 'Y')
        """
        return tuple(self.variables[i] for i in self.adjacency.topological_order())

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    # -- names and bit sets, for algorithms -----------------------------------------------------

    def mask(self, names: str | Iterable[str]) -> int:
        """Return the bit set of these names: bit i is `variables[i]`.

        Parameters
        ----------
        names : str or iterable of str
            Names of variables; a str is a single name.

        Returns
        -------
        int
            Bit set of the names.

        Raises
        ------
        DowiseError
            If a variable is unknown.

        Examples
        --------
        >>> CausalGraph.parse("X -> Y -> Z").mask(["X", "Z"])
        5
        """
        names = (names,) if isinstance(names, str) else names
        return mask_of(self._index(name) for name in names)

    def names(self, mask: int) -> tuple[str, ...]:
        """Return the names in a bit set, sorted. Inverse of `mask`.

        Parameters
        ----------
        mask : int
            Bit set; bit i is `variables[i]`.

        Returns
        -------
        tuple of str
            Names whose bits are set.

        Examples
        --------
        >>> CausalGraph.parse("X -> Y -> Z").names(5)
        ('X', 'Z')
        """
        return tuple(self.variables[i] for i in bits(mask))

    def _index(self, name: str) -> int:
        try:
            return self._position[name]
        except (KeyError, TypeError):
            raise DowiseError(
                f"unknown variable {name!r}{suggestion(str(name), self.variables)}: "
                f"the graph's variables are {join_names(self.variables)}",
                code="unknown-variable",
            ) from None

    # -- derived graphs -------------------------------------------------------------------------

    def subgraph(self, names: Iterable[str]) -> CausalGraph:
        """Return G[names]: these variables and the edges among them.

        Parameters
        ----------
        names : str or iterable of str
            Names of the variables to keep; a str is a single name.

        Returns
        -------
        CausalGraph
            Graph over these variables; its edges keep their marks.

        Raises
        ------
        DowiseError
            If a variable is unknown.

        Examples
        --------
        >>> CausalGraph.parse("Z -> X -> Y; Z <-> Y").subgraph(["X", "Y"])
        CausalGraph.parse('X -> Y')
        """
        keep = self.mask(names)
        return CausalGraph.from_adjacency(
            self.names(keep), self.adjacency.restrict(keep), self.marks
        )

    def cut(self, names: str | Iterable[str]) -> CausalGraph:
        """Return the graph of do(names): every edge into these variables is removed.

        Bidirected edges at these variables are removed as well.

        Parameters
        ----------
        names : str or iterable of str
            Names of variables; a str is a single name.

        Returns
        -------
        CausalGraph
            Graph over the same variables; the other edges keep their marks.

        Raises
        ------
        DowiseError
            If a variable is unknown.

        Examples
        --------
        >>> CausalGraph.parse("Z -> X -> Y; X <-> Y").cut("X")
        CausalGraph.parse('X -> Y; Z')
        """
        adjacency = self.adjacency.cut(self.mask(names))
        return CausalGraph.from_adjacency(self.variables, adjacency, self.marks)

    def without(self, edges: str | Iterable[str]) -> CausalGraph:
        """Return the graph without these edges, which are passed as text.

        Parameters
        ----------
        edges : str or iterable of str
            Edges such as "A -> B" or "A <-> B"; a str is a single edge.

        Returns
        -------
        CausalGraph
            Graph over the same variables; the other edges keep their marks.

        Raises
        ------
        InputSyntaxError
            If a text is not an edge.
        DowiseError
            If the graph does not have one of the edges.

        Examples
        --------
        >>> CausalGraph.parse("Z -> X -> Y; X <-> Y").without(["Z -> X", "Y <-> X"])
        CausalGraph.parse('X -> Y; Z')
        """
        texts = self.edge_texts
        removed = {known_edge(edge, texts) for edge in as_texts(edges)}
        return self._with_exactly(text for text in texts if text not in removed)

    def with_edges(self, edges: str | Iterable[str]) -> CausalGraph:
        """Return the graph with these edges, passed as text, added. New edges have no mark.

        Parameters
        ----------
        edges : str or iterable of str
            Edges such as "A -> B" or "A <-> B"; a str is a single edge.

        Returns
        -------
        CausalGraph
            Graph over the same variables; edges that it already has keep their marks.

        Raises
        ------
        InputSyntaxError
            If a text is not an edge.
        DowiseError
            If a variable is unknown, an edge joins a variable to itself, or there would be a
            directed cycle.

        Examples
        --------
        >>> CausalGraph.parse("Z ?-> X -> Y").with_edges("X <-> Y")
        CausalGraph.parse('X -> Y; Z ?-> X; X <-> Y')
        """
        return self._with_exactly((*self.edge_texts, *as_texts(edges)))

    def _with_exactly(self, edges: Iterable[str]) -> CausalGraph:
        """Return the graph with these edges only; edges that it already has keep their marks."""
        parsed = [EdgeName.parse(edge) for edge in edges]
        plain = CausalGraph(
            [(edge.left, edge.right) for edge in parsed if not edge.is_bidirected],
            [(edge.left, edge.right) for edge in parsed if edge.is_bidirected],
            self.variables,
        )
        return CausalGraph.from_adjacency(plain.variables, plain.adjacency, self.marks)

    def condition(self, context: str | Iterable[str]) -> CausalGraph:
        """Return the graph of the other variables once the context is known.

        Parameters
        ----------
        context : str or iterable of str
            Names of the context variables, closed under ancestors.

        Returns
        -------
        CausalGraph
            Graph without the context; see `dowise.graph.transforms.condition`.

        Raises
        ------
        DowiseError
            If a variable is unknown, or a cause of a context variable is not in the context.

        Examples
        --------
        >>> CausalGraph.parse("C -> X -> Y; C -> Y").condition("C")
        CausalGraph.parse('X -> Y')
        """
        from dowise.graph.transforms import condition

        return condition(self, context)

    def project(self, hidden: str | Iterable[str]) -> CausalGraph:
        """Return the latent projection that hides these variables.

        Parameters
        ----------
        hidden : str or iterable of str
            Names of the variables to hide.

        Returns
        -------
        CausalGraph
            Graph over the other variables; see `dowise.graph.transforms.project`.

        Raises
        ------
        DowiseError
            If a variable is unknown.

        Examples
        --------
        >>> CausalGraph.parse("U -> X -> Y; U -> Y").project("U")
        CausalGraph.parse('X -> Y; X <-> Y')
        """
        from dowise.graph.transforms import project

        return project(self, hidden)

    # -- where to intervene ---------------------------------------------------------------------

    def muct(self, reward: str) -> frozenset[str]:
        """Return MUCT(G, Y), the minimal UC-territory of the reward (Definition 1).

        Parameters
        ----------
        reward : str
            Name of the reward variable.

        Returns
        -------
        frozenset of str
            Names of the variables in the territory, the reward included.

        Raises
        ------
        DowiseError
            If the variable is unknown.

        Examples
        --------
        >>> sorted(CausalGraph.parse("Z -> X -> Y; X <-> Y").muct("Y"))
        ['X', 'Y']
        """
        from dowise.graph.pomis import muct

        return muct(self, reward)

    def interventional_border(self, reward: str) -> frozenset[str]:
        """Return IB(G, Y), the parents of the territory outside it (Definition 2).

        Parameters
        ----------
        reward : str
            Name of the reward variable.

        Returns
        -------
        frozenset of str
            Names of the variables in the border of `muct`.

        Raises
        ------
        DowiseError
            If the variable is unknown.

        Examples
        --------
        >>> sorted(CausalGraph.parse("Z -> X -> Y; X <-> Y").interventional_border("Y"))
        ['Z']
        """
        from dowise.graph.pomis import interventional_border

        return interventional_border(self, reward)

    def pomis(
        self, reward: str, max_sets: int | None = DEFAULT_MAX_SETS
    ) -> tuple[frozenset[str], ...]:
        """Return every possibly optimal minimal intervention set (Lemma 1).

        Parameters
        ----------
        reward : str
            Name of the reward variable.
        max_sets : int or None
            Largest number of sets, so that a large graph can't fill the memory. None removes the
            limit.

        Returns
        -------
        tuple of frozenset of str
            Intervention sets, ordered by size and then by names.

        Raises
        ------
        DowiseError
            If the variable is unknown, `max_sets` is below 1, or there are more than `max_sets`
            sets.

        Examples
        --------
        >>> [sorted(s) for s in CausalGraph.parse("X -> W -> Y; X <-> Y").pomis("Y")]
        [[], ['W']]
        """
        from dowise.graph.pomis import pomis

        return pomis(self, reward, max_sets)

    def iter_pomis(self, reward: str) -> Iterator[frozenset[str]]:
        """Yield the sets of `pomis` one by one as they are found, each once, in no fixed order.

        Parameters
        ----------
        reward : str
            Name of the reward variable.

        Yields
        ------
        frozenset of str
            An intervention set.

        Raises
        ------
        DowiseError
            If the variable is unknown.

        Examples
        --------
        >>> graph = CausalGraph.parse("X -> W -> Y; X <-> Y")
        >>> sorted(sorted(names) for names in graph.iter_pomis("Y"))
        [[], ['W']]
        """
        from dowise.graph.pomis import iter_pomis

        return iter_pomis(self, reward)

    # -- readers and writers --------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str) -> CausalGraph:
        """Read the text form: statements such as `A -> B -> C` or `A <-> D`.

        Parameters
        ----------
        text : str
            Statements separated by new lines, ";" or ",". `?->` and `<?>` mark doubtful edges,
            `A <-> B!` a certain one; a lone name is an isolated variable; `#` starts a comment.

        Returns
        -------
        CausalGraph
            Graph that the text describes.

        Raises
        ------
        InputSyntaxError
            If the text can't be parsed. The message has the line and the column.
        DowiseError
            If the graph is invalid, for example because it has a directed cycle.

        Examples
        --------
        >>> CausalGraph.parse("Z -> X -> Y; X <-> Y").bidirected_edges
        (('X', 'Y'),)
        """
        from dowise.graph.formats.text import parse_text

        return parse_text(text)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any]) -> CausalGraph:
        """Convert a DiGraph (all edges directed) or a MultiDiGraph as `to_networkx` makes it.

        Parameters
        ----------
        graph : networkx.DiGraph or networkx.MultiDiGraph
            Graph to convert. Its nodes become text: the node 1 is the variable "1".

        Returns
        -------
        CausalGraph
            Graph with the same edges.

        Raises
        ------
        DowiseError
            If the argument is not a directed graph, two nodes have the same text, or the edges have
            a cycle.

        Examples
        --------
        >>> import networkx
        >>> CausalGraph.from_networkx(networkx.DiGraph([("Z", "X"), ("X", "Y")]))
        CausalGraph.parse('X -> Y; Z -> X')
        """
        from dowise.graph.formats.gml import from_networkx

        return from_networkx(graph)

    @classmethod
    def from_dot(cls, text: str) -> CausalGraph:
        """Read Graphviz' DOT language; an edge with `dir=both` is bidirected.

        Parameters
        ----------
        text : str
            A digraph. The attributes `doubtful=true` and `certain=true` mark an edge.

        Returns
        -------
        CausalGraph
            Graph that the text describes.

        Raises
        ------
        InputSyntaxError
            If the text can't be parsed, or an edge has no direction.
        DowiseError
            If the graph is invalid, for example because it has a directed cycle.

        Examples
        --------
        >>> CausalGraph.from_dot("digraph { Z -> X -> Y; X -> Y [dir=both] }")
        CausalGraph.parse('X -> Y; Z -> X; X <-> Y')
        """
        from dowise.graph.formats.dot import parse_dot

        return parse_dot(text)

    @classmethod
    def from_dagitty(cls, text: str) -> CausalGraph:
        """Read dagitty's model code; variables tagged `latent` are projected out.

        Parameters
        ----------
        text : str
            A `dag { ... }`. The tags `[doubtful]` and `[certain]` mark an edge.

        Returns
        -------
        CausalGraph
            Graph over the variables that are not latent.

        Raises
        ------
        InputSyntaxError
            If the text can't be parsed, or an edge does not determine a cause.
        DowiseError
            If the graph is invalid, or a variable is tagged `adjusted` or `selected`.

        Examples
        --------
        >>> CausalGraph.from_dagitty("dag { U [latent] U -> {X Y} X -> Y }")
        CausalGraph.parse('X -> Y; X <-> Y')
        """
        from dowise.graph.formats.dagitty import parse_dagitty

        return parse_dagitty(text).graph

    @classmethod
    def from_gml(cls, text: str) -> CausalGraph:
        """Read GML, with the marks of bidirected edges that `to_gml` writes.

        Parameters
        ----------
        text : str
            A directed graph. A variable is named by its node's label, or else by its id.

        Returns
        -------
        CausalGraph
            Graph that the text describes.

        Raises
        ------
        InputSyntaxError
            If the text can't be parsed.
        DowiseError
            If the graph is undirected, or the edges have a cycle.

        Examples
        --------
        >>> CausalGraph.from_gml('''graph [
        ...     directed 1
        ...     node [ id 0 label "X" ]
        ...     node [ id 1 label "Y" ]
        ...     edge [ source 0 target 1 ]
        ... ]''')
        CausalGraph.parse('X -> Y')
        """
        from dowise.graph.formats.gml import parse_gml

        return parse_gml(text)

    @classmethod
    def read(cls, path: str | Path) -> CausalGraph:
        """Read a file, by its ending (.dot, .gv, .gml, .dagitty, .bif) or else by its content.

        Parameters
        ----------
        path : str or Path
            Path of the file. A .gz at the end is unpacked.

        Returns
        -------
        CausalGraph
            Graph in the file.

        Raises
        ------
        DowiseError
            If the file does not exist or its format is not recognised.
        InputSyntaxError
            If the file can't be parsed.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "graph.dot")
        ...     _ = path.write_text("digraph { Z -> X -> Y }")
        ...     CausalGraph.read(path)
        CausalGraph.parse('X -> Y; Z -> X')
        """
        from dowise.graph.formats import read_structure

        return read_structure(path).graph

    def to_text(self) -> str:
        """Return the text form. Inverse of `parse`.

        Returns
        -------
        str
            Statements separated by "; ".

        Examples
        --------
        >>> CausalGraph.parse("Z ?-> X -> Y; Y <-> X!").to_text()
        'X -> Y; Z ?-> X; X <-> Y!'
        """
        from dowise.graph.formats.text import to_text

        return to_text(self)

    def to_networkx(self) -> networkx.MultiDiGraph[str]:
        """Return a MultiDiGraph whose edge keys are "directed" and "bidirected".

        Returns
        -------
        networkx.MultiDiGraph
            A bidirected edge is stored once, in the order of names. `doubtful` or `certain` is True
            if an edge has that mark, and absent otherwise.

        Examples
        --------
        >>> sorted(CausalGraph.parse("X -> Y; X <-> Y").to_networkx().edges(keys=True))
        [('X', 'Y', 'bidirected'), ('X', 'Y', 'directed')]
        """
        from dowise.graph.formats.gml import to_networkx

        return to_networkx(self)

    def to_dot(self) -> str:
        """Return the graph in Graphviz' DOT language.

        Returns
        -------
        str
            Digraph with bidirected edges dashed. `from_dot` reads it.

        Examples
        --------
        >>> print(CausalGraph.parse("X -> Y; X <-> Y").to_dot(), end="")
        digraph {
            X -> Y;
            X -> Y [dir=both, style=dashed];
        }
        """
        from dowise.graph.formats.dot import to_dot

        return to_dot(self)

    def to_dagitty(self) -> str:
        """Return the graph as dagitty's model code.

        Returns
        -------
        str
            A `dag { ... }`. `from_dagitty` reads it.

        Examples
        --------
        >>> print(CausalGraph.parse("X -> Y; X <-> Y").to_dagitty(), end="")
        dag {
        X -> Y
        X <-> Y
        }
        """
        from dowise.graph.formats.dagitty import to_dagitty

        return to_dagitty(self)

    def to_gml(self) -> str:
        """Return the graph as GML.

        Returns
        -------
        str
            GML with the edge keys of `to_networkx`. `from_gml` reads it.

        Examples
        --------
        >>> graph = CausalGraph.parse("X -> Y; X <-> Y")
        >>> CausalGraph.from_gml(graph.to_gml()) == graph
        True
        """
        from dowise.graph.formats.gml import to_gml

        return to_gml(self)
