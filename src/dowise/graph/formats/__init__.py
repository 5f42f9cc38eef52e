"""Readers and writers of causal graphs: the text form, DOT, GML, dagitty and BIF.

>>> detect_format("dag { X -> Y }"), detect_format("# mine\\nX -> Y"), detect_format("Dear all,")
('dagitty', 'text', None)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from dowise._core.files import file_extension, read_file, require_file
from dowise.errors import DowiseError, InputSyntaxError
from dowise.graph.formats.bif import parse_bif
from dowise.graph.formats.dagitty import parse_dagitty
from dowise.graph.formats.dot import parse_dot
from dowise.graph.formats.gml import parse_gml
from dowise.graph.formats.grammar import Structure
from dowise.graph.formats.text import parse_text

__all__ = ["GRAPH_ENDINGS", "Structure", "format_of", "parse_structure", "read_structure"]

ResultT = TypeVar("ResultT")

_SKIPPED = r"(?:\s|//[^\n]*|/\*[\s\S]*?\*/|#[^\n]*)*+"
_NAME = r'(?:"(?:[^"\\]|\\.)*"|[^\s{}"\[\]]+)'
_OPENINGS = {
    "dagitty": rf"(?i:dag|pdag|mag|pag)(?:\s+{_NAME})?\s*\{{",
    "DOT": rf"(?i:(?:strict\s+)?(?:di)?graph)(?:\s+{_NAME})?\s*\{{",
    # Metadata may come before the graph: Creator "…" Version 1.
    "GML": rf"(?:\w+\s+{_NAME}\s+){{0,9}}graph\s*\[",
    "BIF": rf"network(?:\s+{_NAME})?\s*\{{|variable\s+{_NAME}\s*\{{|probability\s*\(",
}
_KINDS = {kind: re.compile(_SKIPPED + f"(?:{opening})") for kind, opening in _OPENINGS.items()}
_ARROW = re.compile(r"->|<-|<\?>")


def detect_format(text: str) -> str | None:
    """Detect a format by the first words of a text; "text" if there is an arrow, else None."""
    for kind, opening in _KINDS.items():
        if opening.match(text):
            return kind
    return "text" if _ARROW.search(text) else None


def parse_as(kind: str, parse: Callable[[str], ResultT], text: str, remedy: str) -> ResultT:
    """Parse a text. If it looks like another format, the syntax error mentions that.

    `remedy` is appended to the error, with "{}" replaced by the name of that format.
    """
    try:
        return parse(text)
    except InputSyntaxError as error:
        detected = detect_format(text)
        if detected in (None, kind, "text"):
            raise
        message = f"{error}; {remedy.format(detected)}"
        raise InputSyntaxError(message, error.line, error.column, code=error.code) from None


def read_structure(path: str | Path) -> Structure:
    """Read a file by its ending (.dot, .gv, .gml, .dagitty, .bif), or else by its content.

    `asia.bif.gz` is unpacked and read as `asia.bif`.
    """
    path = require_file(path)
    return read_file(path, partial(parse_structure, file_extension(path)))


def format_of(ending: str, text: str) -> str | None:
    """Return "text", "DOT", "GML", "dagitty" or "BIF" by the ending, or else by the content."""
    declared = GRAPH_ENDINGS.get(ending)
    if declared in (None, "text"):
        return detect_format(text) or declared
    return declared


def parse_structure(ending: str, text: str) -> Structure:
    """Parse the text of a file with this ending."""
    kind = format_of(ending, text)
    try:
        if kind is not None:
            remedy = "this looks like {}: rename the file accordingly"
            return parse_as(kind, _PARSERS[kind], text, remedy)
    except InputSyntaxError:
        if ending in GRAPH_ENDINGS or kind != "text":
            raise
    name = f"the ending {ending!r} is unknown" if ending else "it has no ending"
    raise DowiseError(
        f"{name} and its content is not a graph in a supported format; supported endings are "
        f"{', '.join(GRAPH_ENDINGS)}",
        code="unsupported-format",
    )


_PARSERS: dict[str, Callable[[str], Structure]] = {
    "text": lambda text: Structure(parse_text(text)),
    "DOT": lambda text: Structure(parse_dot(text)),
    "GML": lambda text: Structure(parse_gml(text)),
    "dagitty": parse_dagitty,
    "BIF": lambda text: parse_bif(text).structure(),
}

GRAPH_ENDINGS = {
    ".txt": "text",
    ".graph": "text",
    ".dot": "DOT",
    ".gv": "DOT",
    ".gml": "GML",
    ".dagitty": "dagitty",
    ".bif": "BIF",
}
"""Endings of graph files. A file with an ending of "text" may hold any of the formats."""
