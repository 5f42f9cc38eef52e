"""Every error as its cause can use it: problem details (RFC 9457) or a page, without paths."""

from __future__ import annotations

import logging
from collections.abc import Mapping
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
    OwnCodeError,
    UnavailableError,
)
from dowise.experiment.event import DamagedEventError
from dowise.experiment.importing import BadRowsError
from dowise.service.unread import in_words

__all__ = ["RefusedError", "answer_to", "problem_response", "says", "status_of", "take_over"]

_LOG = logging.getLogger("dowise.service")
_STATUS: Mapping[type[DowiseError], int] = {
    NotFoundError: 404,
    ConflictError: 409,
    UnavailableError: 503,
    DamagedEventError: 503,
    OwnCodeError: 500,
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
    if not isinstance(error, DowiseError) or isinstance(error, OwnCodeError):
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
    if isinstance(error, OwnCodeError):
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
