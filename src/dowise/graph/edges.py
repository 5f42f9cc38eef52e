"""Edge names, their marks and prior probabilities, and the validation of a graph's edges.

Every edge has one text, however it was written: "A -> B", or "A <-> B" with sorted names. Names
that are not plain words are in double quotes. The *mark* of an edge is "?" for doubtful, "!" for
certain, or empty: then a directed edge is certain, and a bidirected edge has the prior 0.9, because
hidden common causes are seldom known for certain.

>>> print(EdgeName.parse("B <- A"), EdgeName.parse('"body mass" <-> A'), sep="; ")
A -> B; A <-> "body mass"
>>> prior_of("A <-> B"), prior_of("A <-> B", "?"), prior_of("A <-> B", "!"), prior_of("A -> B")
(0.9, 0.5, 1.0, 1.0)
>>> as_text("X1"), as_text("body mass"), bare_text('"body mass"')
('X1', '"body mass"', 'body mass')
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from dowise.errors import DowiseError, InputSyntaxError, suggestion
from dowise.graph.adjacency import Adjacency

_BARE = re.compile(r"\w+(?:[.\-:']\w+)*'*")


def as_text(name: str) -> str:
    """Return a name as it is written in the text form of a graph, quoted if necessary."""
    return name if _BARE.fullmatch(name) else quoted(name)


def bare_text(text: str) -> str:
    """Return the content of a double-quoted string with escapes resolved, or the text itself."""
    if not text.startswith('"'):
        return text
    return re.sub(r'\\(["\\n])', lambda m: "\n" if m[1] == "n" else m[1], text[1:-1])


def quoted(text: str) -> str:
    """Return the text in double quotes. Inverse of `bare_text`."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


Mark = Literal["", "?", "!"]

HIDDEN_CAUSE_PRIOR = 0.9
"""Prior of a bidirected edge without a mark."""
DOUBTFUL_PRIOR = 0.5
"""Prior of an edge marked as doubtful."""

_NAME = r'"(?:[^"\\]|\\.)*"|.+?'
_EDGE = re.compile(rf"\s*({_NAME})\s*(<->|->|<-)\s*({_NAME})\s*", re.DOTALL)


class EdgeName(NamedTuple):
    """Name of an edge: a directed edge, or a bidirected one with sorted ends. `str` is its text.

    `from_ends` and `parse` put the ends in order.
    """

    left: str
    arrow: Literal["->", "<->"]
    right: str

    @classmethod
    def from_ends(cls, left: str, arrow: str, right: str) -> EdgeName:
        """Build from two names and "->", "<-" or "<->" between them."""
        if arrow == "<->":
            return cls(min(left, right), "<->", max(left, right))
        return cls(right, "->", left) if arrow == "<-" else cls(left, "->", right)

    @classmethod
    def parse(cls, text: str) -> EdgeName:
        """Parse `A -> B`, `B <- A` or `B <-> A`."""
        match = _EDGE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputSyntaxError(
                f"an edge reads 'A -> B' or 'A <-> B', not {text!r}; names with spaces go in "
                "double quotes"
            )
        left, arrow, right = match.groups()
        return cls.from_ends(bare_text(left), arrow, bare_text(right))

    @property
    def is_bidirected(self) -> bool:
        """True for a bidirected edge: a hidden common cause."""
        return self.arrow == "<->"

    def __str__(self) -> str:
        return f"{as_text(self.left)} {self.arrow} {as_text(self.right)}"


def edge_texts_of(
    directed: Iterable[tuple[str, str]], bidirected: Iterable[tuple[str, str]]
) -> list[str]:
    """Return the texts of edges that are specified by their ends."""
    texts = [str(EdgeName.from_ends(cause, "->", effect)) for cause, effect in directed]
    return texts + [str(EdgeName.from_ends(left, "<->", right)) for left, right in bidirected]


def as_texts(edges: str | Iterable[str]) -> Iterable[str]:
    """Return the texts of edges; a str is a single edge."""
    return (edges,) if isinstance(edges, str) else edges


def known_edge(text: str, edges: Iterable[str]) -> str:
    """Return the canonical text of an edge. Raises `DowiseError` if it is not in `edges`."""
    edge, edges = str(EdgeName.parse(text)), list(edges)
    if edge not in edges:
        raise DowiseError(
            f"the graph has no edge {edge!r}{suggestion(edge, edges)}", code="unknown-edge"
        )
    return edge


def marks_of(
    edges: Iterable[str], doubtful: str | Iterable[str], certain: str | Iterable[str]
) -> dict[str, Mark]:
    """Return the marks by edge text, sorted. A directed edge needs no mark to be certain."""
    marks: dict[str, Mark] = {}
    edges = list(edges)
    marked: tuple[tuple[Mark, str | Iterable[str]], ...] = (("?", doubtful), ("!", certain))
    for mark, texts in marked:
        for text in as_texts(texts):
            edge = known_edge(text, edges)
            if marks.setdefault(edge, mark) != mark:
                raise DowiseError(
                    f"{edge} can't be both doubtful and certain: keep one mark",
                    code="contradictory-edge",
                )
    return {
        edge: mark
        for edge, mark in sorted(marks.items())
        if mark == "?" or EdgeName.parse(edge).is_bidirected
    }


def mark_of(attributes: Mapping[str, object], where: str) -> Mark:
    """Return the mark in the attributes `doubtful` and `certain` of an edge in a file."""
    doubtful, certain = (is_true(attributes.get(key)) for key in ("doubtful", "certain"))
    if doubtful and certain:
        raise DowiseError(
            f"{where} can't be both doubtful and certain: keep one mark", code="contradictory-edge"
        )
    return "?" if doubtful else "!" if certain else ""


def prior_of(text: str, mark: Mark = "") -> float:
    """Return the prior probability that an edge exists."""
    if mark:
        return DOUBTFUL_PRIOR if mark == "?" else 1.0
    return HIDDEN_CAUSE_PRIOR if EdgeName.parse(text).is_bidirected else 1.0


def is_true(value: object) -> bool:
    """Return True if an attribute of an edge is set, whether as text, number or bool."""
    return value.lower() in ("1", "true", "yes") if isinstance(value, str) else bool(value)


Edge = tuple[str, str]


def check_pairs(edges: Iterable[Edge]) -> list[Edge]:
    """Return the edges as a list. Raises `DowiseError` unless each is a pair of names."""
    if isinstance(edges, str):
        raise DowiseError(
            f"edges must be pairs of names, not {edges!r}: use CausalGraph.parse for text",
            code="invalid-type",
        )
    pairs = list(edges)
    for edge in pairs:
        if isinstance(edge, str) or len(edge) != 2:
            raise DowiseError(
                f"an edge must be a pair of names such as ('X', 'Y'), not {edge!r}",
                code="invalid-type",
            )
    return pairs


def check_names(names: Iterable[str], unique: bool) -> None:
    """Raise `DowiseError` for an invalid name, or for a repeated one if they must be `unique`."""
    names = list(names)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise DowiseError(
                f"a variable's name must be a non-empty text, not {name!r}", code="invalid-type"
            )
    for name, count in Counter(names).items():
        if unique and count > 1:
            raise DowiseError(
                f"the variable {name!r} is listed twice: name each variable once",
                code="duplicate-name",
            )


def check_no_loops(directed: Iterable[Edge], bidirected: Iterable[Edge]) -> None:
    """Raise `DowiseError` if an edge joins a variable to itself."""
    for cause, effect in directed:
        if cause == effect:
            raise DowiseError(
                f"{cause} -> {effect}: a variable can't be its own cause", code="cyclic-graph"
            )
    for left, right in bidirected:
        if left == right:
            raise DowiseError(
                f"{left} <-> {right}: a hidden common cause needs two different variables",
                code="invalid-edge",
            )


def check_acyclic(
    variables: Sequence[str], adjacency: Adjacency, doubtful: Container[str] = ()
) -> None:
    """Raise `DowiseError` if there is a directed cycle, counting `doubtful` edges as present."""
    cycle = [variables[i] for i in adjacency.cycle()]
    if not cycle:
        return
    message = (
        f"the graph has a cycle, {' -> '.join(cycle)}: causes must be "
        "acyclic, so remove or reverse one of these edges"
    )
    if any(edge in doubtful for edge in edge_texts_of(pairwise(cycle), ())):
        message += (
            "; the graph with all doubtful edges must be acyclic, so two doubtful edges can't "
            "express an unknown direction"
        )
    raise DowiseError(message, code="cyclic-graph")
