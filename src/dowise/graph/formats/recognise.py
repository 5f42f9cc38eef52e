"""Which format a text is in, told by its first words: for files whose ending does not say.

>>> recognise("dag { X -> Y }"), recognise("# mine\\nX -> Y"), recognise("Dear all,")
('dagitty', 'text', None)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from dowise.errors import InputSyntaxError

__all__ = ["reading_as", "recognise"]

Result = TypeVar("Result")

_SKIPPED = r"(?:\s|//[^\n]*|/\*[\s\S]*?\*/|#[^\n]*)*+"
_NAME = r'(?:"(?:[^"\\]|\\.)*"|[^\s{}"\[\]]+)'
_OPENINGS = {
    "dagitty": rf"(?i:dag|pdag|mag|pag)(?:\s+{_NAME})?\s*\{{",
    "DOT": rf"(?i:(?:strict\s+)?(?:di)?graph)(?:\s+{_NAME})?\s*\{{",
    # Words about the file may stand before the graph: Creator "…" Version 1.
    "GML": rf"(?:\w+\s+{_NAME}\s+){{0,9}}graph\s*\[",
    "BIF": rf"network(?:\s+{_NAME})?\s*\{{|variable\s+{_NAME}\s*\{{|probability\s*\(",
}
_KINDS = {kind: re.compile(_SKIPPED + f"(?:{opening})") for kind, opening in _OPENINGS.items()}
_ARROW = re.compile(r"->|<-|<\?>")


def recognise(text: str) -> str | None:
    """ "dagitty", "DOT", "GML", "BIF"; "text" where there is an arrow; None for anything else."""
    for kind, opening in _KINDS.items():
        if opening.match(text):
            return kind
    return "text" if _ARROW.search(text) else None


def reading_as(kind: str, parse: Callable[[str], Result], text: str, remedy: str) -> Result:
    """Parse the text; where it is no such text but plainly another, the error says so too.

    The remedy has a {} for what it looks like.
    """
    try:
        return parse(text)
    except InputSyntaxError as error:
        seen = recognise(text)
        if seen in (None, kind, "text"):
            raise
        said = f"{error}; {remedy.format(seen)}"
        raise InputSyntaxError(said, error.line, error.column) from None
