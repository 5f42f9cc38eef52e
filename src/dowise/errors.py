"""What can go wrong, said in plain English: the offending name, the value, the remedy."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

__all__ = [
    "FAILURES",
    "ConflictError",
    "DowiseError",
    "InputSyntaxError",
    "MissingExtraError",
    "NotFoundError",
    "OwnCodeError",
    "UnavailableError",
    "described",
    "import_extra",
    "is_own",
    "kind_of",
    "listed",
    "own_code_error",
    "own_place",
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


class NotFoundError(DowiseError):
    """Something that was asked for by its name or number is not there."""


class ConflictError(DowiseError):
    """What was said contradicts what holds already."""


class UnavailableError(DowiseError):
    """It can't be done now, for no fault of what was asked: try again, or look to the machine."""


class OwnCodeError(DowiseError):
    """Something went wrong in code of the user's own: a policy, a world."""


FAILURES = (Exception, SystemExit)
"""Whatever somebody's own code may raise: `sys.exit` in a policy must not end us without a word."""


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


def described(error: BaseException) -> str:
    """An error of somebody's own code in one line: kind, message, and where it happened there."""
    text = " ".join(str(error).split())
    if not isinstance(error, DowiseError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    place = None if isinstance(error, SyntaxError) else own_place(error)  # which says it itself
    return f"{text} ({place})" if place else text


def own_code_error(error: BaseException) -> OwnCodeError | None:
    """The same as one of ours, if it came through the user's own code; None otherwise."""
    if isinstance(error, DowiseError) or own_place(error) is None:
        return None
    return OwnCodeError(described(error))


def own_place(error: BaseException) -> str | None:
    """The innermost line of the user's own code that an error came through, if there is one."""
    import traceback  # here, so that nobody waits for it who makes no mistake

    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_own(frame.filename):
            return f"{_from_here(frame.filename)}, line {frame.lineno}"
    return None


def is_own(file: str) -> bool:
    """Whether a file of code is the user's own: neither ours nor Python's nor a library's."""
    import sysconfig

    paths = sysconfig.get_paths()
    folders = (str(Path(__file__).parent), paths["stdlib"], paths["purelib"])
    others = tuple(f"{folder}{os.sep}" for folder in folders)
    installed = {"site-packages", "dist-packages"} & {*Path(file).parts}
    return not (installed or file.startswith(("<", *others)))


def _from_here(file: str) -> str:
    """A path as one would type it in the current folder."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (OSError, ValueError):
        return file
