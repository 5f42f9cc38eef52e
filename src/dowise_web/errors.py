"""Every error as its cause can use it: problem details (RFC 9457) or a page, without paths."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from dowise.errors import (
    ConflictError,
    DowiseError,
    InputSyntaxError,
    NotFoundError,
    UnavailableError,
    UserCodeError,
)
from dowise.experiment.event import DamagedEventError
from dowise.experiment.records import BadRowsError

Error = Mapping[str, Any]

_OBJECT = 'an object, as in {"name": "value"}'
_KINDS = {
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "list_type": "a list, as in [1, 2]",
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "none_required": "null",
}
"""What a value must be, by the kind of error."""
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "must be above {}"),
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than": ("lt", "must be below {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "string_too_long": ("max_length", "is too long: it may have {} characters"),
    "string_too_short": ("min_length", "is too short: it needs {} characters"),
    "too_long": ("max_length", "has too many entries: it may have {}"),
    "too_short": ("min_length", "has too few entries: it needs {}"),
    "literal_error": ("expected", "must be {}"),
}
_OTHERS: Mapping[str, str] = {
    "missing": "is lacking: give it",
    "extra_forbidden": "is no field here: correct its name or leave it out (/api/openapi.json "
    "lists all)",
}
# What tells the branches of a union apart, and is no part of what was sent.
_BRANCH = re.compile(
    r"str|int|float|bool|none|(dict|list|tuple|union|nullable)\[.*|(constrained|function|lax)-.*"
)


def in_words(errors: Iterable[Error]) -> str:
    """The first thing that is wrong; where several kinds of values would do, all of them."""
    found = [*errors]
    if not found:
        return "the request can't be read"
    # A value that fits one branch of a union half is told where it does not fit that one.
    field = _field(found[0])
    inside = [one for one in found if _field(one)[: len(field)] == field]
    deepest = max((_field(one) for one in inside), key=len)
    own = [one for one in inside if _field(one) == deepest]
    kinds = [*dict.fromkeys(_KINDS[one["type"]] for one in own if one["type"] in _KINDS)]
    name = _named(deepest, str(found[0]["loc"][0]))
    if len(kinds) == len({one["type"] for one in own}):
        return f"{name} must be {' or '.join(kinds)}"
    return _of_one(name, next(one for one in own if one["type"] not in _KINDS))


def _field(error: Error) -> tuple[str | int, ...]:
    """Where it is, as the sender wrote it."""
    _, *path = error["loc"]
    return tuple(part for part in path if isinstance(part, int) or not _BRANCH.fullmatch(part))


def _named(field: tuple[str | int, ...], part: str) -> str:
    """A field's name: "allowed[0].Dose"; that of the request's part, where it is all of that."""
    if not field:
        return f"the {part}"
    pieces = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in field)
    return "".join(pieces).removeprefix(".")


def _of_one(name: str, error: Error) -> str:
    kind, known = error["type"], error.get("ctx", {})
    if kind == "json_invalid":
        return f"the body is no JSON, by character {error['loc'][-1]}: {known['error'].lower()}"
    if kind == "value_error":
        return str(known["error"])
    if kind == "string_pattern_mismatch":  # ours list the texts that there are
        return f"{name} must be one of {known['pattern'].strip('^()$').replace('|', ', ')}"
    if kind in _LIMITS:
        what, words = _LIMITS[kind]
        limit = known[what]
        return f"{name} {words.format(limit if isinstance(limit, str) else f'{limit:,.16g}')}"
    words = _OTHERS.get(kind, "can't be read: /api/openapi.json says how it must be")
    return f"{name} {words}"


_LOG = logging.getLogger("dowise_web")
_STATUS: Mapping[type[DowiseError], int] = {
    NotFoundError: 404,
    ConflictError: 409,
    UnavailableError: 503,
    DamagedEventError: 503,
    UserCodeError: 500,
}
_BAD_ROWS = 100  # that an answer lists
_WRONG = 20  # places of a document, too
_LONGEST = 4000  # characters of an error: what was sent may be quoted in it


class RefusedError(DowiseError):
    """A request that is not let in: the status, and headers that go with it."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """Problem details."""
    page = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _sendable(detail[:_LONGEST]),
        **more,
    }
    return JSONResponse(page, status, dict(headers or {}), "application/problem+json")


def _sendable(part: Any) -> Any:
    """A text without half characters, which JSON may bring and UTF-8 can't have."""
    return part.encode(errors="replace").decode() if isinstance(part, str) else part


def status_of(error: DowiseError) -> int:
    """The status that tells a program what kind of error it is."""
    if isinstance(error, RefusedError):
        return error.status
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 422)


def says(request: Request, error: BaseException) -> str:
    """What may be told of an error to whoever asks."""
    if not isinstance(error, DowiseError) or isinstance(error, UserCodeError):
        return "something went wrong in the server; its log says what"
    return str(request.app.state.house.discreet(str(error)))


def take_over(app: FastAPI) -> None:
    """Let the app answer all errors so."""
    app.add_exception_handler(DowiseError, _ours)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _of_the_framework)
    app.add_exception_handler(Exception, _unforeseen)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, DowiseError)
    return answer_to(request, error)


def answer_to(request: Request, error: DowiseError) -> Response:
    """The answer to a request that one of our errors ended."""
    if isinstance(error, UserCodeError):
        _LOG.error("%s %s failed: %s", request.method, quote(request.scope["path"]), error)
    headers = error.headers if isinstance(error, RefusedError) else {}
    more: dict[str, Any] = {}
    if isinstance(error, BadRowsError):
        bad = error.found.bad[:_BAD_ROWS]
        rows = [{"row": one.row, "line": one.line, "why": one.why} for one in bad]
        more = {"bad_count": error.found.bad_count, "bad": rows}
    if isinstance(error, InputSyntaxError) and error.line is not None:
        more = {"line": error.line, "column": error.column}
    return _answer(request, status_of(error), says(request, error), headers, **more)


async def _unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = error.errors()
    found = [
        {"where": [*map(_sendable, one["loc"][:_WRONG])], "why": _sendable(in_words([one]))}
        for one in wrong[:_WRONG]
    ]
    detail = in_words(wrong)
    is_json = "json" in request.headers.get("content-type", "")
    if wrong and wrong[0]["loc"] == ("body",) and not is_json:
        detail = "send a JSON object, with the header Content-Type: application/json"
    return _answer(request, 422, detail, errors=found)


async def _of_the_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if error.status_code == 404:
        detail = "there is nothing at this address"
    elif error.status_code == 405:
        detail = f"{request.method} can't be done at this address"
    return _answer(request, error.status_code, detail, error.headers)


async def _unforeseen(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, quote(request.scope["path"]), exc_info=error)
    return _answer(request, 500, says(request, error))


def _answer(
    request: Request,
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    if request.url.path.startswith(("/api", "/health")):
        return problem_response(status, detail, headers, **more)
    page = getattr(request.app.state, "error_page", None)
    if page is None:
        return problem_response(status, detail, headers, **more)
    answer: Response = page(request, status, detail, headers)
    return answer
