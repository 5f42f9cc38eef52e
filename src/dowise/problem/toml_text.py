"""TOML as people write it: what is wrong, and where it began.

A list that is not closed goes on over the lines below it, so that Python's own reader blames one of
those. Here the line is named in which the list begins.

>>> _in_words('context = ["Age"\\nreward = "Recovery"', "Unclosed array (at line 2, column 1)")
'a list lacks its ] or a comma (at line 1, column 11), before line 2'
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from dowise.errors import InputSyntaxError

__all__ = ["read_toml"]

_UNCLOSED, _LACKS = "Unclosed array", "a list lacks its ] or a comma"
_PLACE = re.compile(r"\(at line (\d+), column \d+\)$")
# Texts and comments, in which brackets are letters; brackets; and what a line is told by.
_PIECE = re.compile(
    r"""\"""(?:\\.|[^\\])*?\"""|'''.*?'''|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]=\n]""",
    re.DOTALL,
)
_NEXT_ENTRY = re.compile(
    r"""[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*=|\[[ \t]*[A-Za-z_][^\[\],\n]*\])"""
)


def read_toml(text: str) -> dict[str, Any]:
    """The page that a text of TOML is."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of 5,000 digits
        raise InputSyntaxError(f"not valid TOML: {_in_words(text, str(error))}") from None


def _in_words(text: str, said: str) -> str:
    if not said.startswith((_UNCLOSED, "Invalid value")):
        return said
    found, lines = _PLACE.search(said), text.split("\n")
    before = len(lines) if found is None else int(found[1]) - 1
    opened = _open_list("\n".join(lines[:before]))
    if opened is None:
        return said.replace(_UNCLOSED, _LACKS)
    # Where the line is the next entry of the page, the list should have ended before it.
    is_over = found is None or _NEXT_ENTRY.match(lines[before]) is not None
    if is_over or said.startswith(_UNCLOSED):
        until = "the end" if found is None else f"line {found[1]}"
        return f"{_LACKS} (at {opened}), before {until}"
    return f"{said}, in a list that begins at {opened}: does it lack its ]?"


def _open_list(text: str) -> str | None:
    """Where the list begins that is still open at the end of whole lines, if one is."""
    begins: list[int] = []
    is_value = False
    for piece in _PIECE.finditer(text):
        match piece[0]:
            case "=":
                is_value = True
            case "\n":
                is_value = False
            case "[" if begins or is_value:  # else it is the header of a table
                begins.append(piece.start())
            case "]" if begins:
                begins.pop()
    if not begins:
        return None
    line, column = text.count("\n", 0, begins[0]) + 1, begins[0] - text.rfind("\n", 0, begins[0])
    return f"line {line}, column {column}"
