"""Readers and writers of structure: the text form, DOT, GML, dagitty and BIF."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dowise.errors import DowiseError
from dowise.files import existing_file, read_file
from dowise.graph.formats.bif import parse_bif
from dowise.graph.formats.dagitty import parse_dagitty
from dowise.graph.formats.dot import parse_dot
from dowise.graph.formats.exchange import parse_gml
from dowise.graph.formats.structure import Structure
from dowise.graph.formats.text import parse_text

__all__ = ["GRAPH_ENDINGS", "Structure", "read_structure"]


def read_structure(path: str | Path) -> Structure:
    """Read a file by its ending: .txt, .graph (the text form), .dot, .gv, .gml, .dagitty, .bif."""
    path = existing_file(path)
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        ending = f"the ending {path.suffix!r} is unknown" if path.suffix else "it has no ending"
        raise DowiseError(f"{path}: {ending}; known endings are {', '.join(_PARSERS)}")
    return read_file(path, parse)


def _from_bif(text: str) -> Structure:
    network = parse_bif(text)
    return Structure(network.graph, network.domains)


_PARSERS: dict[str, Callable[[str], Structure]] = {
    ".txt": lambda text: Structure(parse_text(text)),
    ".graph": lambda text: Structure(parse_text(text)),
    ".dot": lambda text: Structure(parse_dot(text)),
    ".gv": lambda text: Structure(parse_dot(text)),
    ".gml": lambda text: Structure(parse_gml(text)),
    ".dagitty": parse_dagitty,
    ".bif": _from_bif,
}

GRAPH_ENDINGS = tuple(_PARSERS)
"""The endings of the files that `read_structure` reads."""
