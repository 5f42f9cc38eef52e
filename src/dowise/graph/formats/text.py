"""The text form of a causal graph, the one that people type.

>>> print(parse_text('''
...     Z -> X -> Y   # a chain
...     Y <- Z; X <-> Y, "body mass"
... '''))
X -> Y; Z -> X; Z -> Y; X <-> Y; "body mass"

`?` marks an edge as doubtful, and `!` a bidirected one as certain:

>>> print(parse_text("Z ?-> X <?> Y; Z <-> Y!"))
Z ?-> X; X <?> Y; Y <-> Z!
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dowise.errors import InputSyntaxError
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import EdgeName, Mark
from dowise.graph.formats.grammar import parse_with
from dowise.graph.formats.structure import Arrow, Sketch, isolated
from dowise.graph.names import as_text, bare_text, quoted

__all__ = ["parse_text", "to_text"]

_WORDS = {
    **dict.fromkeys(("NAME", "QUOTED"), "a variable name"),
    "ARROW": "an arrow (->, <-, <->; ?->, <-?, <?> where in doubt)",
    "CERTAIN": "",
    "_SEPARATOR": "a new line, ';' or ','",
    "$END": "the end",
}
_WORDS_IN_A_ROW = re.compile(r"\w[\w.\-:']*(?:[ \t]+\w[\w.\-:']*)+")
_SIGNS = frozenset('-=<>?!;,"')  # what arrows, marks, quotes and ends are made of
_DOUBTFUL = {"->": "?->", "<-": "<-?", "<->": "<?>"}
_ARROWS = {
    **{shape: Arrow(shape) for shape in _DOUBTFUL},
    **{text: Arrow(shape, "?") for shape, text in _DOUBTFUL.items()},
}


class _Variable(NamedTuple):
    """A name, and the '!' behind it if there is one."""

    name: str
    certain: Any


def parse_text(text: str) -> CausalGraph:
    """Read statements such as `A -> B <- C`, `A <-> D` or a lone name."""
    from lark import Transformer

    class Reader(Transformer[Any, Any]):
        def variable(self, children: list[Any]) -> _Variable:
            return _Variable(bare_text(str(children[0])), children[1] if children[1:] else None)

        def arrow(self, children: list[Any]) -> Arrow:
            return _ARROWS[str(children[0])]

        def statement(self, children: list[Any]) -> list[Any]:
            return children

        def start(self, children: list[Any]) -> list[list[Any]]:
            return children

    try:
        statements = parse_with("text", text, Reader(), _WORDS, "graph")
    except InputSyntaxError as error:
        raise _with_quotes(text, error) from None
    if not statements:
        raise InputSyntaxError(
            "the graph is empty: write statements such as 'X -> Y; Z -> Y'", 1, 1
        )
    sketch = Sketch()
    for statement in statements:
        variables, arrows = statement[::2], statement[1::2]
        _refuse_mark(None, variables[0])
        marked = [_certain(*pair) for pair in zip(arrows, variables[1:], strict=True)]
        sketch.chain([[variable.name] for variable in variables], marked)
    return sketch.graph()


def _with_quotes(text: str, error: InputSyntaxError) -> InputSyntaxError:
    """The error, with a word on quotes where it is inside of what looks like one name."""
    if not isinstance(text, str) or error.line is None or error.column is None:
        return error
    line = text.split("\n")[error.line - 1]
    for words in _WORDS_IN_A_ROW.finditer(line):
        if words.start() < error.column - 1 < words.end():
            hint = f"a name with a space goes in double quotes: {quoted(words[0])}"
            return InputSyntaxError(f"{error}; {hint}", error.line, error.column)
    found = line[error.column - 1 : error.column]
    if not found.isprintable() or not found.strip() or found.isalnum() or found in _SIGNS:
        return error
    hint = f"a name with {found} in it goes in double quotes"
    if found in "→⇒⟶":
        hint = "an arrow is written ->"
    return InputSyntaxError(f"{error}; {hint}", error.line, error.column)


def to_text(graph: CausalGraph) -> str:
    """Directed edges, then bidirected ones, then the variables without any."""
    statements = [_statement(edge, graph.marks.get(str(edge), "")) for edge in graph.edges]
    return "; ".join(statements + [as_text(name) for name in isolated(graph)])


def _statement(edge: EdgeName, mark: Mark) -> str:
    arrow = _DOUBTFUL[edge.arrow] if mark == "?" else edge.arrow
    return f"{as_text(edge.one)} {arrow} {as_text(edge.other)}{'!' if mark == '!' else ''}"


def _certain(arrow: Arrow, variable: _Variable) -> Arrow:
    """The arrow into a variable, certain if a '!' stands behind that."""
    if variable.certain is None:
        return arrow
    if arrow != Arrow("<->"):
        _refuse_mark(arrow, variable)
    return Arrow("<->", "!")


def _refuse_mark(arrow: Arrow | None, variable: _Variable) -> None:
    """A '!' that belongs to no plain '<->'."""
    token = variable.certain
    if token is None:
        return
    why = {
        None: "it stands behind the second name of one",
        "": "an arrow is certain without it",
        "?": "this edge is marked as doubtful: keep one mark",
    }[arrow and arrow.mark]
    raise InputSyntaxError(
        f"graph, line {token.line}, column {token.column}: '!' behind {variable.name}: it marks a "
        f"'<->' as certain, as in 'A <-> B!', and {why}",
        token.line,
        token.column,
    )
