"""Graphviz' DOT language: an edge with two heads (`dir=both`) is bidirected.

The attributes `doubtful=true` and `certain=true` mark an edge.

>>> graph = parse_dot('''digraph { Z -> {X Y}; X -> Y -> W; X -> W [dir=both] }''')
>>> print(graph)
X -> Y; Y -> W; Z -> X; Z -> Y; W <-> X
>>> print(parse_dot("digraph { Z -> Y [doubtful=true]; edge [dir=both]; X -> Y [certain=true] }"))
Z ?-> Y; X <-> Y!
>>> parse_dot(to_dot(graph)) == graph
True
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dowise.errors import DowiseError, InputSyntaxError, suggestion
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import EdgeName, bare_text, mark_of, quoted
from dowise.graph.formats.grammar import Arrow, GraphSketch, isolated, parse_with, syntax_error_at

_A_NAME = "a name (in quotes, unless it is a plain word or number)"
_WORDS = {
    "STRICT": "",
    "GRAPH": "",
    "DIGRAPH": "'digraph'",
    "SUBGRAPH": "'subgraph'",
    "NODE": "",
    "EDGE": "",
    **dict.fromkeys(("BARE", "NUMERAL", "QUOTED", "HTML"), _A_NAME),
    "LINE": "",
    "$END": "the end",
}
_ARROWS = {"forward": "->", "back": "<-", "both": "<->"}
_BARE = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_KEYWORDS = {"strict", "graph", "digraph", "subgraph", "node", "edge"}


class DotChain(NamedTuple):
    """Nodes and groups joined by arrows; a single node or group is a chain of length one."""

    ends: list[Any]  # a name, or the list of statements of a group
    attributes: dict[str, str]


class DotDefaults(NamedTuple):
    """Attributes for the edges that follow."""

    attributes: dict[str, str]


def parse_dot(text: str) -> CausalGraph:
    """Parse a digraph. Ports and all attributes except `dir` and marks of edges are ignored."""
    from lark import Transformer

    class DotReader(Transformer[Any, Any]):
        def id(self, children: list[Any]) -> str:
            if children[0].type == "HTML":
                return str(children[0][1:-1])
            return "".join(bare_text(str(piece)) for piece in children)

        def node(self, children: list[Any]) -> str:
            return str(children[0])  # the rest is the port

        def group(self, children: list[Any]) -> list[Any]:
            return list(children[-1])

        def edge(self, children: list[Any]) -> None:
            if children[0].type == "LINE":
                raise _undirected("an edge '--'", children[0])

        def attribute(self, children: list[Any]) -> tuple[str, str]:
            return children[0], children[1]

        def attributes(self, children: list[Any]) -> dict[str, str]:
            return dict(children)

        def chain(self, children: list[Any]) -> DotChain:
            ends = [child for child in children if isinstance(child, str | list)]
            return DotChain(ends, _merged(children))

        def defaults(self, children: list[Any]) -> DotDefaults | None:
            return DotDefaults(_merged(children)) if children[0].type == "EDGE" else None

        def setting(self, children: list[Any]) -> None:  # noqa: ARG002 - only affects the drawing
            return None

        def body(self, children: list[Any]) -> list[Any]:
            return [child for child in children if child is not None]

        def kind(self, children: list[Any]) -> None:
            if children[0].type == "GRAPH":
                raise _undirected("a 'graph'", children[0])

        def start(self, children: list[Any]) -> list[Any]:
            return list(children[-1])

    sketch = GraphSketch()
    _add_statements(parse_with("dot", text, DotReader(), _WORDS, "DOT"), sketch, {})
    return sketch.graph()


def to_dot(graph: CausalGraph) -> str:
    """Return directed edges, bidirected ones (dashed) and isolated variables as a digraph."""
    lines = [_line(edge, graph) for edge in graph.edges]
    lines += [f"    {_name(name)};" for name in isolated(graph)]
    return "\n".join(["digraph {", *lines, "}"]) + "\n"


def _line(edge: EdgeName, graph: CausalGraph) -> str:
    mark = graph.marks.get(str(edge))
    style = "dotted" if mark == "?" else "dashed" if edge.is_bidirected else ""
    attributes = ["dir=both"] if edge.is_bidirected else []
    attributes += [f"style={style}"] if style else []
    attributes += ["doubtful=true" if mark == "?" else "certain=true"] if mark else []
    suffix = f" [{', '.join(attributes)}]" if attributes else ""
    return f"    {_name(edge.left)} -> {_name(edge.right)}{suffix};"


def _add_statements(
    statements: list[Any], sketch: GraphSketch, defaults: dict[str, str]
) -> list[str]:
    """Add the statements of a block to the sketch and return the names they mention.

    `defaults` are edge attributes, inherited from the outer block and changed by `edge [...]`.
    """
    mentioned: list[str] = []
    for statement in statements:
        attributes = _with_defaults(defaults, statement.attributes)
        if isinstance(statement, DotDefaults):
            defaults = attributes
            continue
        groups = [
            [end] if isinstance(end, str) else _add_statements(end, sketch, defaults)
            for end in statement.ends
        ]
        mentioned += (name for group in groups for name in group)
        between = len(groups) - 1
        sketch.chain(groups, [_arrow(attributes, groups)] * between if between else [])
    return list(dict.fromkeys(mentioned))


def _with_defaults(defaults: dict[str, str], attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes of an edge; its mark, if any, replaces a default mark."""
    marks = ("doubtful", "certain")
    if any(key in attributes for key in marks):
        defaults = {key: value for key, value in defaults.items() if key not in marks}
    return defaults | attributes


def _arrow(attributes: dict[str, str], groups: list[list[str]]) -> Arrow:
    where = " -> ".join(group[0] if len(group) == 1 else "{...}" for group in groups)
    direction = attributes.get("dir", "forward")
    if direction in _ARROWS:
        return Arrow(_ARROWS[direction], mark_of(attributes, f"DOT: the edge {where}"))
    raise DowiseError(
        f"DOT: the edge {where} has dir={direction}{suggestion(direction, _ARROWS)}, but causes "
        "need a direction: use dir=forward, dir=back, or dir=both for a bidirected edge",
        code="undirected-edge",
    )


def _undirected(subject: str, token: Any) -> InputSyntaxError:
    message = f"{subject} has no direction, but causes need one: write 'digraph' and '->'"
    return syntax_error_at(token, "DOT", message, code="undirected-edge")


def _merged(children: list[Any]) -> dict[str, str]:
    """Merge the attributes of all brackets; later ones win."""
    return {k: v for child in children if isinstance(child, dict) for k, v in child.items()}


def _name(name: str) -> str:
    # Graphviz keeps the doubled backslash of a quoted name. Here it is read as a single one,
    # because otherwise a name that ends in a backslash could not be written.
    bare = _BARE.fullmatch(name) and name.lower() not in _KEYWORDS
    return name if bare else quoted(name)
