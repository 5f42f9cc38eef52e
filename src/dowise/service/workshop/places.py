"""Where an error stands in the text of a problem, so that a page can mark it.

Errors of TOML say their line. Those of a graph say it inside of the graph's text, which is a value
of TOML and begins somewhere in the page: it is looked up there. Other errors quote what is wrong;
where that stands once in the page, that is the place.

>>> text = 'reward = "Y"\\ngraph = \"\"\"\\nX -> Y\\nX -> -> Z\\n\"\"\"\\n'
>>> error = InputSyntaxError("graph, line 2, column 6: found '->'", 2, 6)
>>> placed(text, error)
BadInputError("graph, line 4, column 6: found '->'")
>>> placed('reward = "Y"\\ncontxt = "X"', DowiseError("unknown key 'contxt'")).line
2
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

from dowise.errors import DowiseError, InputSyntaxError
from dowise.service.workshop.failures import BadInputError

__all__ = ["placed"]

_LONGEST = 2_000  # characters of a message: it may quote all of the text
_TOML_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_GRAPH = re.compile(
    r"""^[ \t]*(?:graph|"graph"|'graph')[ \t]*=[ \t]*(\"""|'''|"|')""", re.MULTILINE
)
_PYTHONS_OWN = {
    "recursion depth": "brackets are nested too deeply",
    "set_int_max_str_digits": "a number is too long",
}
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_QUOTED = re.compile(r"'([^']+)'")
_WORD = re.compile(r"[A-Za-z_]+")
_KEY = r"^[ \t]*{}[ \t]*=|^[ \t]*\[{}\]"


class _Place(NamedTuple):
    line: int
    column: int


def placed(text: str, error: DowiseError, is_graph: bool = False) -> BadInputError:
    """The same error with its place in the text, which is a problem's or a graph alone."""
    message = str(error)
    for sign, said in _PYTHONS_OWN.items():
        message = f"not valid TOML: {said}" if sign in message else message
    place: _Place | None = None
    if isinstance(error, InputSyntaxError) and error.line is not None and error.column is not None:
        inside = _Place(error.line, error.column)
        place = inside if is_graph else _in_the_graph(text, inside)
        if place is not None:
            said = f"line {inside.line}, column {inside.column}"
            message = message.replace(said, f"line {place.line}, column {place.column}", 1)
    elif found := _TOML_PLACE.search(message):
        place = _Place(int(found[1]), int(found[2]))
    elif "(at end of document)" in message:
        place = _place_at(text, len(text.rstrip()))
    elif not is_graph:
        place = _of_what_is_quoted(text, message)
    short = message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …"
    return BadInputError(short, "problem", *(place or (None, None)))


def _place_at(text: str, position: int) -> _Place:
    before = text[:position]
    return _Place(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1)


def _in_the_graph(text: str, inside: _Place) -> _Place | None:
    """The place in the page of a place inside of the graph's text."""
    try:
        graph = tomllib.loads(text)["graph"]
    except (ValueError, KeyError, RecursionError):
        return None
    for found in _GRAPH.finditer(text):
        letters = list(_letters(text, found.end(), found[1]))
        if "".join(letter for letter, _ in letters) == graph:
            break
    else:
        return None
    lines = graph.split("\n")
    offset = sum(len(line) + 1 for line in lines[: inside.line - 1]) + inside.column - 1
    positions = [position for _, position in letters]
    end = positions[-1] + 1 if positions else found.end()
    return _place_at(text, positions[offset] if offset < len(positions) else end)


def _letters(text: str, position: int, quotes: str) -> Iterator[tuple[str, int]]:
    """The letters of a text in TOML that begins there, each with its place in the page."""
    mark, is_long, end = quotes[0], len(quotes) == 3, len(text)
    if is_long and text.startswith("\n", position):
        position += 1
    while position < end:
        if text.startswith(quotes, position):
            # Up to two quotes may stand before the three that end it.
            more = 0
            while is_long and text.startswith(mark, position + 3 + more):
                yield mark, position + more
                more += 1
            return
        letter = text[position]
        if letter != "\\" or mark == "'":
            yield letter, position
            position += 1
            continue
        code = text[position + 1 : position + 2]
        if code in ("u", "U"):
            digits = 4 if code == "u" else 8
            yield chr(int(text[position + 2 : position + 2 + digits], 16)), position
            position += 2 + digits
        elif code in _ESCAPES:
            yield _ESCAPES[code], position
            position += 2
        else:  # at the end of a line: it goes on where something stands
            position += 1
            while position < end and text[position].isspace():
                position += 1


def _of_what_is_quoted(text: str, message: str) -> _Place | None:
    """Where the first thing stands that the message quotes, or the key that it begins with."""
    for name in _QUOTED.findall(message)[:5]:
        whole = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        found = [match for match in whole.finditer(text) if not _is_comment(text, match.start())]
        if len(found) == 1:
            return _place_at(text, found[0].start())
    for word in _WORD.findall(message.partition(":")[0])[:20]:
        keys = list(re.finditer(_KEY.format(word, word), text, re.MULTILINE))
        if len(keys) == 1:
            return _place_at(text, text.index(word, keys[0].start()))
    return None


def _is_comment(text: str, position: int) -> bool:
    """Whether a line's first sign is that of a comment."""
    start = text.rfind("\n", 0, position) + 1
    return text[start:position].lstrip().startswith("#")
