"""Names as people write them: bare where that is clear, else in double quotes.

>>> as_text("X1"), as_text("body mass"), bare_text('"body mass"')
('X1', '"body mass"', 'body mass')
"""

from __future__ import annotations

import re

__all__ = ["as_text", "bare_text", "quoted"]

_BARE = re.compile(r"\w+(?:[.\-:']\w+)*'*")


def as_text(name: str) -> str:
    """The name as the text form of a graph has it."""
    return name if _BARE.fullmatch(name) else quoted(name)


def bare_text(text: str) -> str:
    """The inside of a double-quoted string, with \\", \\\\ and \\n resolved; else the text."""
    if not text.startswith('"'):
        return text
    return re.sub(r'\\(["\\n])', lambda m: "\n" if m[1] == "n" else m[1], text[1:-1])


def quoted(text: str) -> str:
    """The double-quoted string that `bare_text` reads back."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
