"""Edges by their texts, and how sure somebody is of them before any data.

An edge has one text, however it was spelt: "A -> B", or "A <-> B" with its names sorted. Its *mark*
is "?" for doubtful, "!" for certain, or nothing: then an arrow is certain, and a bidirected edge is
there with probability .9, because hidden common causes are seldom known for sure.

>>> print(EdgeName.parse("B <- A"), EdgeName.parse('"body mass" <-> A'), sep="; ")
A -> B; A <-> "body mass"
>>> prior_of("A <-> B"), prior_of("A <-> B", "?"), prior_of("A <-> B", "!"), prior_of("A -> B")
(0.9, 0.5, 1.0, 1.0)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from dowise.errors import DowiseError, InputSyntaxError, suggestion
from dowise.graph.names import as_text, bare_text

__all__ = [
    "DOUBTFUL_PRIOR", "HIDDEN_CAUSE_PRIOR", "EdgeName", "Mark", "as_texts", "known_edge",
    "mark_of", "marks_of", "prior_of", "says_yes", "texts_of",
]  # fmt: skip

Mark = Literal["", "?", "!"]

HIDDEN_CAUSE_PRIOR = 0.9
"""The prior of a bidirected edge without a mark."""
DOUBTFUL_PRIOR = 0.5
"""The prior of an edge that is marked as doubtful."""

_NAME = r'"(?:[^"\\]|\\.)*"|.+?'
_EDGE = re.compile(rf"\s*({_NAME})\s*(<->|->|<-)\s*({_NAME})\s*", re.DOTALL)


class EdgeName(NamedTuple):
    """Which edge is meant: an arrow, or a bidirected edge with its ends sorted. `str` is its text.

    `of` and `parse` put the ends in order.
    """

    one: str
    arrow: Literal["->", "<->"]
    other: str

    @classmethod
    def of(cls, one: str, arrow: str, other: str) -> EdgeName:
        """From two names and "->", "<-" or "<->" between them."""
        if arrow == "<->":
            return cls(min(one, other), "<->", max(one, other))
        return cls(other, "->", one) if arrow == "<-" else cls(one, "->", other)

    @classmethod
    def parse(cls, text: str) -> EdgeName:
        """From a text in any spelling: `A -> B`, `B <- A`, `B <-> A`."""
        match = _EDGE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InputSyntaxError(
                f"an edge reads 'A -> B' or 'A <-> B', not {text!r}; names with spaces go in "
                "double quotes"
            )
        one, arrow, other = match.groups()
        return cls.of(bare_text(one), arrow, bare_text(other))

    @property
    def is_bidirected(self) -> bool:
        """Whether it stands for a hidden common cause."""
        return self.arrow == "<->"

    def __str__(self) -> str:
        return f"{as_text(self.one)} {self.arrow} {as_text(self.other)}"


def texts_of(
    directed: Iterable[tuple[str, str]], bidirected: Iterable[tuple[str, str]]
) -> list[str]:
    """The texts of edges that are given by their ends."""
    texts = [str(EdgeName.of(cause, "->", effect)) for cause, effect in directed]
    return texts + [str(EdgeName.of(one, "<->", other)) for one, other in bidirected]


def as_texts(edges: str | Iterable[str]) -> Iterable[str]:
    """A str is one edge."""
    return (edges,) if isinstance(edges, str) else edges


def known_edge(text: str, known: Iterable[str]) -> str:
    """The text by which a graph with the edges `known` knows this one; else an error."""
    edge, known = str(EdgeName.parse(text)), list(known)
    if edge not in known:
        raise DowiseError(f"the graph has no edge {edge!r}{suggestion(edge, known)}")
    return edge


def marks_of(
    known: Iterable[str], doubtful: str | Iterable[str], certain: str | Iterable[str]
) -> dict[str, Mark]:
    """The marks by edge, sorted; an arrow is certain without one."""
    marks: dict[str, Mark] = {}
    known = list(known)
    given: tuple[tuple[Mark, str | Iterable[str]], ...] = (("?", doubtful), ("!", certain))
    for mark, edges in given:
        for text in as_texts(edges):
            edge = known_edge(text, known)
            if marks.setdefault(edge, mark) != mark:
                raise DowiseError(f"{edge} can't be both doubtful and certain: keep one mark")
    return {
        edge: mark
        for edge, mark in sorted(marks.items())
        if mark == "?" or EdgeName.parse(edge).is_bidirected
    }


def mark_of(attributes: Mapping[str, object], where: str) -> Mark:
    """The mark in the attributes `doubtful` and `certain` of an edge, as files have them."""
    doubtful, certain = (says_yes(attributes.get(key)) for key in ("doubtful", "certain"))
    if doubtful and certain:
        raise DowiseError(f"{where} can't be both doubtful and certain: keep one mark")
    return "?" if doubtful else "!" if certain else ""


def prior_of(text: str, mark: Mark = "") -> float:
    """The probability beforehand that this edge is there."""
    if mark:
        return DOUBTFUL_PRIOR if mark == "?" else 1.0
    return HIDDEN_CAUSE_PRIOR if EdgeName.parse(text).is_bidirected else 1.0


def says_yes(value: object) -> bool:
    """Whether the attribute of an edge, of whatever kind, is set."""
    return value.lower() in ("1", "true", "yes") if isinstance(value, str) else bool(value)
