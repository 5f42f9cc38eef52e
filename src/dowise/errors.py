"""Exceptions, and helpers for their messages: the name, the value, the remedy."""

from __future__ import annotations

import difflib
import importlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

_MAX_LISTED = 30  # names in a message
_MAX_COMPARED = 2_000  # candidates that are compared with a misspelt name


CODES: Mapping[str, str] = {
    "authentication-required": "The server requires a token.",
    "bad-request": "The request is malformed.",
    "bad-rows": "Rows of a table are invalid.",
    "bidirected-edge": "A format or library has no bidirected edges.",
    "broken-contract": "A custom policy, environment or storage breaks its contract.",
    "cluster-unreachable": "The scheduler of a cluster does not answer.",
    "confirmation-required": "A change that can't be undone was not confirmed.",
    "conflict": "The request contradicts what is already recorded.",
    "conflicting-options": "Two options exclude each other.",
    "conflicting-roles": "A variable has two roles that exclude each other.",
    "constant-reward": "All values of the reward are worth the same.",
    "contradictory-edge": "An edge is declared in two ways that exclude each other.",
    "contradictory-order": "A stated order of variables contradicts the graph or the context.",
    "contradictory-record": "An outcome contradicts the arm that was played.",
    "cross-site-request": "A page of another site sent the request.",
    "cyclic-graph": "The graph has a directed cycle.",
    "damaged-file": "The contents of a file are damaged.",
    "decision-erased": "A decision was erased.",
    "decision-withdrawn": "A decision was withdrawn.",
    "directory-in-use": "A directory for results exists and holds something else.",
    "doubtful-edges": "Doubtful edges rule this out.",
    "duplicate-name": "A name or key occurs twice.",
    "empty-file": "A file is empty.",
    "empty-graph": "A graph has no variables.",
    "erasure-incomplete": "Copies of erased data may still exist.",
    "external-file": "A text refers to a file where only text can be read.",
    "file-error": "The operating system refused to read or write a file.",
    "file-not-found": "There is no such file.",
    "forbidden-arm": "An arm is forbidden by the problem.",
    "hidden-variable": "A hidden variable can't be recorded, set or doubted.",
    "horizon-over": "A policy was asked to decide after its horizon.",
    "inconsistent-table": "The parts of a table do not fit together.",
    "insecure-connection": "A token would be sent over an unencrypted connection.",
    "internal-error": "Something failed in the server; its log has the details.",
    "invalid-address": "The server can't use this address or port.",
    "invalid-certificate": "A certificate and its key can't be used for TLS.",
    "invalid-context": "A variable can't be context.",
    "invalid-csrf-token": "A form belongs to another session.",
    "invalid-domain": "A variable has an invalid list of values.",
    "invalid-edge": "An edge does not connect two variables.",
    "invalid-encoding": "A text is not UTF-8.",
    "invalid-input": "An argument or a value is invalid.",
    "invalid-name": "A name can't be used for this.",
    "invalid-number": "A number is not finite, not whole, or out of range.",
    "invalid-option": "An option of a policy is invalid or does not fit the others.",
    "invalid-policy": "A custom policy does not have the required form.",
    "invalid-request": "The body or the parameters of a request are invalid.",
    "invalid-role": "A variable or an edge has a tag that it can't have.",
    "invalid-shape": "An array has the wrong shape.",
    "invalid-store": "A store is invalid, or can't be used for this.",
    "invalid-token": "A token is not accepted.",
    "invalid-type": "A value has the wrong type.",
    "invalid-url": "A URL is not that of a server or a store.",
    "malformed-data": "Stored or transmitted data do not have the expected form.",
    "method-not-allowed": "The URL does not support the method of the request.",
    "missing-extra": "A library of one of dowise's extras is not installed.",
    "missing-records": "Records that are needed were not kept.",
    "missing-value": "A required value is missing.",
    "newer-version": "The server or the data are newer than this version of dowise.",
    "no-arms": "There is no arm to choose from.",
    "no-expected-regret": "Expected regret is not defined for these worlds.",
    "no-results": "There are no results of this kind.",
    "no-session": "There is no session to end.",
    "not-a-file": "A path leads to a folder.",
    "not-confirmed": "The user did not confirm.",
    "not-found": "Something named or numbered does not exist.",
    "not-learned": "A record that was never learned can't be retracted.",
    "not-manipulable": "A variable can't be set.",
    "not-picklable": "An object can't be sent to other processes.",
    "not-supported": "The server does not offer this.",
    "other-version": "A file was written by another version of dowise.",
    "outdated-form": "A form was opened before the server was restarted.",
    "pooled-prior": "Something needs independent rows, which the pooled prior does not have.",
    "port-forbidden": "The user may not use this port.",
    "port-in-use": "Another program uses this port.",
    "rate-limited": "Too many requests in a short time; try again later.",
    "redirected": "The server redirects to another address.",
    "refused": "The server refused the request.",
    "request-conflict": "A request id was used for another question.",
    "request-timeout": "A request arrived too slowly.",
    "role-required": "The role of the token does not allow this.",
    "sandbox-failed": "A job of the sandbox failed for a reason other than its input.",
    "server-busy": "The server is busy; try again later.",
    "session-ended": "The session has ended.",
    "stopped": "A job was stopped.",
    "store-busy": "Other writers hold the store; try again.",
    "syntax-error": "A text does not follow its grammar.",
    "timeout": "The server did not answer in time.",
    "too-large": "An input exceeds a limit.",
    "too-many-queries": "Too many long-running queries of one principal.",
    "too-many-requests": "Too many requests of one principal wait for results.",
    "too-many-streams": "Too many event streams are open.",
    "transaction-ended": "A transaction was used after its end.",
    "transaction-failed": "A transaction could not be committed.",
    "transaction-nested": "A thread opened a transaction inside another one.",
    "unavailable": "The request is valid but can't be served now.",
    "undirected-edge": "An edge has no direction.",
    "unencrypted": "Secrets would cross the network unencrypted.",
    "unknown-arm": "An intervention is not an arm of the problem.",
    "unknown-decision": "There is no decision with this number.",
    "unknown-edge": "The graph has no such edge.",
    "unknown-experiment": "The store has no experiment of this name.",
    "unknown-figure": "A decision has no such figure.",
    "unknown-module": "A module of custom policies can't be imported.",
    "unknown-option": "There is no such option, keyword or key.",
    "unknown-panel": "There is no such panel of experiments.",
    "unknown-policy": "There is no such policy.",
    "unknown-problem": "There is no such problem.",
    "unknown-rehearsal": "There is no such rehearsal.",
    "unknown-role": "There is no such role.",
    "unknown-token": "There is no such token.",
    "unknown-value": "A variable or an option has no such value.",
    "unknown-variable": "There is no such variable.",
    "unreadable-file": "A file can't be read.",
    "unreadable-response": "The response of the server can't be read.",
    "unsupported-belief": "A belief has a form that is not supported here.",
    "unsupported-format": "A file has a format that can't be read or written here.",
    "unsupported-graph": "A graph has a form that is not supported here.",
    "unsupported-media-type": "The media type of a request is not supported.",
    "unusable-record": "A policy can't learn from a record.",
    "unused-option": "An option has no effect without another one.",
    "unwritable-file": "A file can't be written.",
    "user-code-failed": "A custom policy or environment raised an error.",
    "workers-failed": "Worker processes could not be started, or died.",
    "wrong-argument-order": "Arguments are probably in the wrong order.",
    "wrong-host": "The request names another host.",
    "wrong-problem": "Data belong to another problem.",
}
"""Meaning of every error code. Codes are stable; add new ones here, in alphabetical order."""


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
        What to do next. Verbs are in backticks (`amend`): each surface names its own way to do it.

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
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
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
"""Errors that user code may raise; `sys.exit` in a policy must not end the program silently."""


class DowiseWarning(UserWarning):
    """Warning about something that works, but perhaps not as the user expects."""


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
    libraries = tuple(f"{folder}{os.sep}" for folder in folders)
    installed = {"site-packages", "dist-packages"} & {*Path(file).parts}
    return not (installed or file.startswith(("<", *libraries)))


def _relative(file: str) -> str:
    """Return a path relative to the current folder if it is inside."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (OSError, ValueError):
        return file
