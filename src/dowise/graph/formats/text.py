"""Text form of causal graphs, meant to be typed by hand.

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
from dowise.graph.edges import EdgeName, Mark, as_text, bare_text, quoted
from dowise.graph.formats.grammar import Arrow, GraphSketch, isolated, parse_with, syntax_error_at

_WORDS = {
    **dict.fromkeys(("NAME", "QUOTED"), "a variable name"),
    "ARROW": "an arrow (->, <-, <->, or a doubtful ?->, <-?, <?>)",
    "CERTAIN": "",
    "_SEPARATOR": "a new line, ';' or ','",
    "$END": "the end",
}
_SEVERAL_WORDS = re.compile(r"\w[\w.\-:']*(?:[ \t]+\w[\w.\-:']*)+")
_SIGNS = frozenset('-=<>?!;,"')  # characters of arrows, marks, quotes and separators
_DOUBTFUL = {"->": "?->", "<-": "<-?", "<->": "<?>"}
_ARROWS = {
    **{shape: Arrow(shape) for shape in _DOUBTFUL},
    **{text: Arrow(shape, "?") for shape, text in _DOUBTFUL.items()},
}


class TextVariable(NamedTuple):
    """A name, and the token of the '!' after it, if any."""

    name: str
    certain: Any


def parse_text(text: str) -> CausalGraph:
    """Parse statements such as `A -> B <- C`, `A <-> D` or a lone name."""
    from lark import Transformer

    class TextReader(Transformer[Any, Any]):
        def variable(self, children: list[Any]) -> TextVariable:
            return TextVariable(bare_text(str(children[0])), children[1] if children[1:] else None)

        def arrow(self, children: list[Any]) -> Arrow:
            return _ARROWS[str(children[0])]

        def statement(self, children: list[Any]) -> list[Any]:
            return children

        def start(self, children: list[Any]) -> list[list[Any]]:
            return children

    try:
        statements = parse_with("text", text, TextReader(), _WORDS, "graph")
    except InputSyntaxError as error:
        raise _with_hint(text, error) from None
    if not statements:
        raise InputSyntaxError(
            "the graph is empty: write statements such as 'X -> Y; Z -> Y'",
            1,
            1,
            code="empty-graph",
        )
    sketch = GraphSketch()
    for statement in statements:
        variables, arrows = statement[::2], statement[1::2]
        _refuse_mark(None, variables[0])
        marked = [_apply_mark(*pair) for pair in zip(arrows, variables[1:], strict=True)]
        sketch.chain([[variable.name] for variable in variables], marked)
    return sketch.graph()


def _with_hint(text: str, error: InputSyntaxError) -> InputSyntaxError:
    """Add a hint to a syntax error: on quotes inside a name, or on the spelling of arrows."""
    if not isinstance(text, str) or error.line is None or error.column is None:
        return error
    line = text.split("\n")[error.line - 1]
    for words in _SEVERAL_WORDS.finditer(line):
        if words.start() < error.column - 1 < words.end():
            hint = f"a name with a space goes in double quotes: {quoted(words[0])}"
            return InputSyntaxError(f"{error}; {hint}", error.line, error.column, code=error.code)
    sign = line[error.column - 1 : error.column]
    if not sign.isprintable() or not sign.strip() or sign.isalnum() or sign in _SIGNS:
        return error
    hint = f"a name with {sign} in it goes in double quotes"
    if sign in "→⇒⟶":
        hint = "an arrow is written ->"
    return InputSyntaxError(f"{error}; {hint}", error.line, error.column, code=error.code)


def to_text(graph: CausalGraph) -> str:
    """Return directed edges, bidirected ones and isolated variables as text."""
    statements = [_statement(edge, graph.marks.get(str(edge), "")) for edge in graph.edges]
    return "; ".join(statements + [as_text(name) for name in isolated(graph)])


def _statement(edge: EdgeName, mark: Mark) -> str:
    arrow = _DOUBTFUL[edge.arrow] if mark == "?" else edge.arrow
    return f"{as_text(edge.left)} {arrow} {as_text(edge.right)}{'!' if mark == '!' else ''}"


def _apply_mark(arrow: Arrow, variable: TextVariable) -> Arrow:
    """Return the arrow into a variable, marked as certain if a '!' follows the variable."""
    if variable.certain is None:
        return arrow
    if arrow != Arrow("<->"):
        _refuse_mark(arrow, variable)
    return Arrow("<->", "!")


def _refuse_mark(arrow: Arrow | None, variable: TextVariable) -> None:
    """Raise `InputSyntaxError` for a '!' that does not belong to a plain '<->'."""
    token = variable.certain
    if token is None:
        return
    reason = {
        None: "it must follow the second name",
        "": "a directed edge is certain without it",
        "?": "this edge is marked as doubtful: keep one mark",
    }[arrow and arrow.mark]
    raise syntax_error_at(
        token,
        "graph",
        f"'!' after {variable.name}: it marks a '<->' as certain, as in 'A <-> B!', and {reason}",
    )
