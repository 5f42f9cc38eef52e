"""dagitty's model code, with exposures, outcomes and latent variables.

A latent variable is projected out: its children become joined by bidirected edges. The tags
`[doubtful]` and `[certain]` mark an edge.

>>> structure = parse_dagitty('''dag {
...     X [exposure, pos="0,1"]
...     Y [outcome]
...     U [latent]
...     U -> {X Y}
...     X -> Y
... }''')
>>> print(structure.graph, structure.exposures, structure.outcomes, structure.latent)
X -> Y; X <-> Y ('X',) ('Y',) ('U',)
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from dowise.errors import DowiseError, InputSyntaxError
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import bare_text, is_true, mark_of, quoted
from dowise.graph.formats.grammar import (
    Arrow,
    GraphSketch,
    Structure,
    isolated,
    parse_with,
    syntax_error_at,
)

_WORDS = {
    "KIND": "'dag'",
    "GRAPH": "",
    "BARE": "a variable name",
    "QUOTED": "a variable name",
    "ARROW": "an arrow (->, <-, <->)",
    "$END": "the end",
}
_ROLES = {  # dagitty's words and their abbreviations
    **dict.fromkeys(("exposure", "e", "source"), "exposure"),
    **dict.fromkeys(("outcome", "o", "target"), "outcome"),
    **dict.fromkeys(("latent", "l", "unobserved", "u"), "latent"),
    **dict.fromkeys(("adjusted", "adjustednode", "a"), "adjusted"),
    **dict.fromkeys(("selected", "selectednode", "s"), "selected"),
}
_REFUSED = {
    "adjusted": "dowise derives adjustment sets from the graph: remove the tag, and if {0} is "
    'known before each choice, declare it as context = ["{0}"] in the problem',
    "selected": "effects learned from selected cases do not hold for all cases, and dowise does "
    "not correct for selection: remove the tag if {0} does not determine who is in the data",
}
_BARE = re.compile(r"[A-Za-z0-9_.]+")


class DagittyChain(NamedTuple):
    """Names and groups joined by arrows; a name with its tags is a chain of length one."""

    ends: list[Any]  # a name, or the list of statements of a group
    arrows: list[str]
    tags: list[str]


def parse_dagitty(text: str) -> Structure:
    """Parse a `dag { ... }`. Positions are ignored; `adjusted` and `selected` are refused."""
    from lark import Transformer

    class DagittyReader(Transformer[Any, Any]):
        def name(self, children: list[Any]) -> str:
            return bare_text(str(children[0]))

        def tag(self, children: list[Any]) -> str:
            name, *value = children
            return str(name) if is_true(*value or [True]) else f"{name}={value[0]}"

        def tags(self, children: list[Any]) -> tuple[str, ...]:
            return tuple(children)

        def chain(self, children: list[Any]) -> DagittyChain:
            tags = children.pop() if isinstance(children[-1], tuple) else ()
            for arrow in children[1::2]:
                if arrow not in ("->", "<-", "<->"):
                    raise _ambiguous(f"an edge '{arrow}'", arrow)
            return DagittyChain(children[::2], children[1::2], list(tags))

        def setting(self, children: list[Any]) -> None:  # noqa: ARG002 - only affects the drawing
            return None

        def body(self, children: list[Any]) -> list[Any]:
            return [child for child in children if child is not None]

        def kind(self, children: list[Any]) -> None:
            if children[0].lower() not in ("dag", "digraph"):
                raise _ambiguous(f"a '{children[0]}'", children[0])

        def start(self, children: list[Any]) -> list[Any]:
            return list(children[-1])

    sketch = GraphSketch()
    roles: dict[str, set[str]] = {role: set() for role in _ROLES.values()}
    _add_statements(parse_with("dagitty", text, DagittyReader(), _WORDS, "dagitty"), sketch, roles)
    for role, reason in _REFUSED.items():
        for name in sorted(roles.pop(role)):
            raise DowiseError(
                f"dagitty: {name} is tagged '{role}': {reason.format(name)}", code="invalid-role"
            )
    for role in ("exposure", "outcome"):
        for name in sorted(roles[role] & roles["latent"]):
            raise DowiseError(
                f"dagitty: {name} can't be both {role} and latent: remove one tag",
                code="conflicting-roles",
            )
    exposures, outcomes, latent = (tuple(sorted(names)) for names in roles.values())
    graph = sketch.graph().project(latent)
    if not graph.variables:
        raise DowiseError(
            f"dagitty: all variables are latent ({', '.join(latent)})", code="empty-graph"
        )
    return Structure(graph, {}, exposures, outcomes, latent)


def to_dagitty(graph: CausalGraph) -> str:
    """Return directed edges, bidirected ones and isolated variables as a `dag`."""
    tags = {"?": " [doubtful]", "!": " [certain]", "": ""}
    lines = [
        f"{_name(edge.left)} {edge.arrow} {_name(edge.right)}{tags[graph.marks.get(str(edge), '')]}"
        for edge in graph.edges
    ]
    lines += [_name(name) for name in isolated(graph)]
    return "\n".join(["dag {", *lines, "}"]) + "\n"


def _add_statements(
    statements: list[DagittyChain], sketch: GraphSketch, roles: dict[str, set[str]]
) -> list[str]:
    """Add the statements of a block to the sketch and return the names they mention."""
    mentioned: list[str] = []
    for ends, arrows, tags in statements:
        groups = [
            [end] if isinstance(end, str) else _add_statements(end, sketch, roles) for end in ends
        ]
        mentioned += (name for group in groups for name in group)
        mark = mark_of(dict.fromkeys(tags, True), f"dagitty: an edge at {mentioned[-1]}")
        sketch.chain(groups, [Arrow(arrow, mark) for arrow in arrows])
        for tag in _REFUSED.keys() & {tag.lower() for tag in tags} if arrows else ():
            raise DowiseError(
                f"dagitty: an edge at {mentioned[-1]} is tagged '{tag}', which is a tag for "
                f"variables: write {mentioned[-1]} [{tag}] if that is intended",
                code="invalid-role",
            )
        if not arrows:  # the tags of an edge do not apply to its ends
            for tag in tags:
                if tag.lower() in _ROLES:
                    roles[_ROLES[tag.lower()]].update(groups[0])
    return list(dict.fromkeys(mentioned))


def _ambiguous(subject: str, token: Any) -> InputSyntaxError:
    remedy = "write a 'dag' with the arrows ->, <- and <-> only"
    return syntax_error_at(token, "dagitty", f"{subject} does not determine causes: {remedy}")


def _name(name: str) -> str:
    # dagitty has no variables named 'graph' or 'node'; here they are quoted.
    return name if _BARE.fullmatch(name) and name not in ("graph", "node") else quoted(name)
