"""What can be asked of a causal graph: its edges, how sure they are, and who is kin to whom.

`CausalGraph` is made of this and of what can be made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from dowise.errors import DowiseError, listed, suggestion
from dowise.frozen import Frozen
from dowise.graph.adjacency import Adjacency
from dowise.graph.bits import bits, closure, mask_of
from dowise.graph.edges import EdgeName, Mark, prior_of
from dowise.graph.validation import Edge

__all__ = ["Relations"]


class Relations(Frozen):
    """Named variables, the edges among them, and their marks."""

    __slots__ = ("_position", "adjacency", "marks", "variables")

    variables: tuple[str, ...]
    adjacency: Adjacency
    marks: Mapping[str, Mark]
    """"?" (doubtful) or "!" (certain) for the edges that carry one, by their texts."""
    _position: Mapping[str, int]

    # -- edges --------------------------------------------------------------------------------

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

    @property
    def edges(self) -> tuple[EdgeName, ...]:
        """Directed edges, then bidirected ones, each part sorted; `str` of one is its text."""
        return (
            *(EdgeName(cause, "->", effect) for cause, effect in self.directed_edges),
            *(EdgeName(one, "<->", other) for one, other in self.bidirected_edges),
        )

    @property
    def edge_texts(self) -> tuple[str, ...]:
        """All edges as texts, sorted: "A -> B", or "A <-> B" with sorted names."""
        return tuple(sorted(map(str, self.edges)))

    @property
    def edge_priors(self) -> Mapping[str, float]:
        """How likely the edges that are not certain are to be there, by their texts, sorted."""
        priors = {edge: prior_of(edge, self.marks.get(edge, "")) for edge in self.edge_texts}
        return MappingProxyType({edge: prior for edge, prior in priors.items() if prior < 1})

    @property
    def doubtful_edges(self) -> tuple[str, ...]:
        """The edges that are not certain: those marked "?", and "<->" without a mark; sorted."""
        return tuple(self.edge_priors)

    # -- variables ----------------------------------------------------------------------------

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
                f"unknown variable {name!r}{suggestion(str(name), self.variables)}: "
                f"the graph's variables are {listed(self.variables)}"
            ) from None
