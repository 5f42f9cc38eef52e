"""What can go wrong, said in plain English: the offending name, the value, the remedy."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

__all__ = [
    "DowiseError",
    "InputSyntaxError",
    "MissingExtraError",
    "import_extra",
    "kind_of",
    "listed",
    "suggestion",
]


_MOST_LISTED = 30  # names in a message
_MOST_COMPARED = 2_000  # candidates that are looked through for a close one


class DowiseError(Exception):
    """Base of every error that dowise raises on purpose."""


class InputSyntaxError(DowiseError):
    """A text that does not follow its grammar, with the place where it went wrong."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class MissingExtraError(DowiseError, ImportError):
    """A library that one of dowise's extras brings is not installed."""


class DowiseWarning(UserWarning):
    """Something that still works, but not as one might think."""


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """`" (did you mean 'Z2'?)"`, or nothing where no candidate is close.

    >>> suggestion("Treatmnt", ["Diet", "Treatment"])
    " (did you mean 'Treatment'?)"
    >>> suggestion("maybe", ["no", "yes"])
    ''
    """
    known = list(candidates)
    by_lower = {candidate.lower(): candidate for candidate in reversed(known)}
    if name.lower() in by_lower:
        return f" (did you mean {by_lower[name.lower()]!r}?)"
    close = difflib.get_close_matches(name, known[:_MOST_COMPARED], n=1, cutoff=0.55)
    return f" (did you mean {close[0]!r}?)" if close else ""


def listed(names: Iterable[str]) -> str:
    """Names between commas, the first of them where they are many.

    >>> listed(["low", "high"]), listed(map(str, range(50_000)))[-26:]
    ('low, high', ' 28, 29, … (50,000 in all)')
    """
    known = list(names)
    shown = ", ".join(known[:_MOST_LISTED])
    return f"{shown}, … ({len(known):,} in all)" if len(known) > _MOST_LISTED else shown


def kind_of(value: object) -> str:
    """What something is, with its article.

    >>> kind_of(7), kind_of("7")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or say which extra of dowise brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'dowise[{extra}]'"
        ) from error
