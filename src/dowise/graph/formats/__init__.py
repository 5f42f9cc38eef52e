"""Readers and writers of structure: the text form, DOT, GML, dagitty and BIF."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from dowise.errors import DowiseError, InputSyntaxError
from dowise.files import ending_of, existing_file, read_file
from dowise.graph.formats.bif import parse_bif
from dowise.graph.formats.dagitty import parse_dagitty
from dowise.graph.formats.dot import parse_dot
from dowise.graph.formats.exchange import parse_gml
from dowise.graph.formats.recognise import reading_as, recognise
from dowise.graph.formats.structure import Structure
from dowise.graph.formats.text import parse_text

__all__ = ["GRAPH_ENDINGS", "Structure", "format_of", "parse_structure", "read_structure"]


def read_structure(path: str | Path) -> Structure:
    """Read a file by its ending: .dot, .gv, .gml, .dagitty, .bif; of any other by its content.

    A .gz at the end does not count: `asia.bif.gz` is unpacked and read as `asia.bif`.
    """
    path = existing_file(path)
    return read_file(path, partial(parse_structure, ending_of(path)))


def format_of(ending: str, text: str) -> str | None:
    """ "text", "DOT", "GML", "dagitty" or "BIF", as the ending says, or else the content."""
    said = GRAPH_ENDINGS.get(ending)
    if said in (None, "text"):
        return recognise(text) or said
    return said


def parse_structure(ending: str, text: str) -> Structure:
    """Read the text of a file with this ending."""
    kind = format_of(ending, text)
    try:
        if kind is not None:
            remedy = "this looks like {}: let the name of the file say so"
            return reading_as(kind, _PARSERS[kind], text, remedy)
    except InputSyntaxError:
        if ending in GRAPH_ENDINGS or kind != "text":
            raise
    name = f"the ending {ending!r} is unknown" if ending else "it has no ending"
    raise DowiseError(
        f"{name} and what it says is no graph that is known; known endings are "
        f"{', '.join(GRAPH_ENDINGS)}"
    )


def _from_bif(text: str) -> Structure:
    network = parse_bif(text)
    return Structure(network.graph, network.domains)


_PARSERS: dict[str, Callable[[str], Structure]] = {
    "text": lambda text: Structure(parse_text(text)),
    "DOT": lambda text: Structure(parse_dot(text)),
    "GML": lambda text: Structure(parse_gml(text)),
    "dagitty": parse_dagitty,
    "BIF": _from_bif,
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
"""The endings of files that hold a graph. In one of "text" there may be any of the formats."""
