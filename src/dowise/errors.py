"""Exceptions, and helpers for their messages: the name, the value, the remedy."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

_MAX_LISTED = 30  # names in a message
_MAX_COMPARED = 2_000  # candidates that are compared with a misspelt name


class DowiseError(Exception):
    """Base of every error that dowise raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong, with the name and the value, and what to do.
    code : str, optional
        Stable identifier in kebab-case, such as "unknown-variable", for programs and tests (`CODES`
        lists them). Messages may be reworded; codes stay. Defaults to the code of the class.
    hint : str, optional
        What to do next, in words that fit every surface.

    Examples
    --------
    >>> from dowise import CausalGraph
    >>> try:
    ...     CausalGraph.parse("X -> Y").parents("Z")
    ... except DowiseError as error:
    ...     print(error.code)
    unknown-variable
    """

    code = "invalid-input"

    def __init__(
        self, message: str = "", *, code: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.hint = hint


class InputSyntaxError(DowiseError):
    """A text that does not follow its grammar, with the line and column of the error."""

    code = "syntax-error"

    def __init__(
        self,
        message: str,
        line: int | None = None,
        column: int | None = None,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.line = line
        self.column = column


class MissingExtraError(DowiseError, ImportError):
    """A library that one of dowise's extras installs is missing."""

    code = "missing-extra"


class NotFoundError(DowiseError):
    """Something named or numbered does not exist."""

    code = "not-found"


class ConflictError(DowiseError):
    """The request contradicts what is already recorded."""

    code = "conflict"


class UnavailableError(DowiseError):
    """A valid request that cannot be served now; try again, or check the machine."""

    code = "unavailable"


class UserCodeError(DowiseError):
    """An error in user code: a custom policy or environment."""

    code = "user-code-failed"


USER_CODE_ERRORS = (Exception, SystemExit)
"""What user code may raise; a policy that calls `sys.exit` must not end the program silently."""


class DowiseWarning(UserWarning):
    """Something works, but perhaps not as the user expects."""


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """Return `" (did you mean 'Z2'?)"`, or "" if no candidate is close.

    >>> suggestion("Treatmnt", ["Diet", "Treatment"])
    " (did you mean 'Treatment'?)"
    >>> suggestion("maybe", ["no", "yes"])
    ''
    """
    names = list(candidates)
    by_lower = {candidate.lower(): candidate for candidate in reversed(names)}
    if name.lower() in by_lower:
        return f" (did you mean {by_lower[name.lower()]!r}?)"
    close = difflib.get_close_matches(name, names[:_MAX_COMPARED], n=1, cutoff=0.55)
    return f" (did you mean {close[0]!r}?)" if close else ""


def join_names(names: Iterable[str]) -> str:
    """Join names by commas; a long list is cut.

    >>> join_names(["low", "high"]), join_names(map(str, range(50_000)))[-26:]
    ('low, high', ' 28, 29, … (50,000 in all)')
    """
    listed = list(names)
    text = ", ".join(listed[:_MAX_LISTED])
    return f"{text}, … ({len(listed):,} in all)" if len(listed) > _MAX_LISTED else text


def type_name(value: object) -> str:
    """Return the name of the type of a value, with an article.

    >>> type_name(7), type_name("7")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def import_extra(module: str, extra: str, purpose: str) -> ModuleType:
    """Import `module`; raise `MissingExtraError` with the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed: pip install 'dowise[{extra}]'"
        ) from error


def describe_error(error: BaseException) -> str:
    """Describe an error in user code in one line: type, message, file and line."""
    text = " ".join(str(error).split())
    if not isinstance(error, DowiseError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError):  # its message has the location
        return text
    location = user_code_location(error)
    return f"{text} ({location})" if location else text


def user_code_error(error: BaseException) -> UserCodeError | None:
    """Return a `UserCodeError` if the error passed through user code, else None."""
    if isinstance(error, DowiseError) or user_code_location(error) is None:
        return None
    return UserCodeError(describe_error(error))


def user_code_location(error: BaseException) -> str | None:
    """Return the innermost location in user code in the traceback, or None."""
    import traceback  # slow to import, and needed after an error only

    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_user_code(frame.filename):
            return f"{_relative(frame.filename)}, line {frame.lineno}"
    return None


def is_user_code(file: str) -> bool:
    """Return True if a source file belongs neither to dowise, nor to Python, nor to a library."""
    import sysconfig

    paths = sysconfig.get_paths()
    folders = (str(Path(__file__).parent), paths["stdlib"], paths["purelib"])
    others = tuple(f"{folder}{os.sep}" for folder in folders)
    installed = {"site-packages", "dist-packages"} & {*Path(file).parts}
    return not (installed or file.startswith(("<", *others)))


def _relative(file: str) -> str:
    """Return a path relative to the current folder if it is inside."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (OSError, ValueError):
        return file
