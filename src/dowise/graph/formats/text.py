"""The text form of a causal graph, the one that people type.

>>> print(parse_text('''
...     Z -> X -> Y   # a chain
...     Y <- Z; X <-> Y, "body mass"
... '''))
X -> Y; Z -> X; Z -> Y; X <-> Y; "body mass"
"""

from __future__ import annotations

import re
from typing import Any

from dowise.errors import InputSyntaxError
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.formats.grammar import bare_text, parse_with, quoted
from dowise.graph.formats.structure import Sketch, isolated

__all__ = ["parse_text", "to_text"]

_WORDS = {
    **dict.fromkeys(("NAME", "QUOTED"), "a variable name"),
    **dict.fromkeys(("RIGHT", "LEFT", "BOTH"), "an arrow (->, <-, <->)"),
    "_SEPARATOR": "a new line, ';' or ','",
    "$END": "the end",
}
_BARE = re.compile(r"\w+(?:[.\-:']\w+)*'*")


def parse_text(text: str) -> CausalGraph:
    """Read statements such as `A -> B <- C`, `A <-> D` or a lone name."""
    from lark import Transformer

    class Reader(Transformer[Any, Any]):
        def variable(self, children: list[Any]) -> str:
            return bare_text(str(children[0]))

        def arrow(self, children: list[Any]) -> str:
            return str(children[0])

        def statement(self, children: list[Any]) -> list[str]:
            return children

        def start(self, children: list[Any]) -> list[list[str]]:
            return children

    statements = parse_with("text", text, Reader(), _WORDS, "graph")
    if not statements:
        raise InputSyntaxError(
            "the graph is empty: write statements such as 'X -> Y; Z -> Y'", 1, 1
        )
    sketch = Sketch()
    for statement in statements:
        sketch.chain([[name] for name in statement[::2]], statement[1::2])
    return sketch.graph()


def to_text(graph: CausalGraph) -> str:
    """Directed edges, then bidirected ones, then the variables without any."""
    statements = [f"{_name(a)} -> {_name(b)}" for a, b in graph.directed_edges]
    statements += [f"{_name(a)} <-> {_name(b)}" for a, b in graph.bidirected_edges]
    statements += [_name(name) for name in isolated(graph)]
    return "; ".join(statements)


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else quoted(name)
