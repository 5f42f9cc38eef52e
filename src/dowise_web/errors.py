"""Error responses: problem details (RFC 9457) for the API, pages for browsers."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
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
from dowise.experiment import BadRowsError, DamagedEventError

_LOG = logging.getLogger("dowise_web")
_STATUS: Mapping[type[DowiseError], int] = {
    NotFoundError: 404,
    ConflictError: 409,
    UnavailableError: 503,
    DamagedEventError: 503,
    UserCodeError: 500,
}
MAX_BAD_ROWS = 100  # listed in a response
MAX_VALIDATION_ERRORS = 20
MAX_DETAIL = 4000  # characters: a message may quote what was sent
INTERNAL_ERROR = "something went wrong in the server; its log has the details"
# Parts of pydantic's locations that name a branch of a union, and nothing that was sent.
_UNION_BRANCH = re.compile(
    r"str|int|float|bool|none|(dict|list|tuple|union|nullable)\[.*|(constrained|function|lax)-.*"
)


class RefusedError(DowiseError):
    """A request that is refused, with the status and headers of the response."""

    code = "refused"

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.status, self.headers = status, dict(headers or {})


def problem_response(
    status: int,
    detail: str,
    code: str,
    headers: Mapping[str, str] | None = None,
    **extra: Any,
) -> JSONResponse:
    """Return problem details."""
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": _replace_surrogates(detail[:MAX_DETAIL]),
        "code": code,
        **extra,
    }
    return JSONResponse(problem, status, dict(headers or {}), "application/problem+json")


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which JSON may contain and UTF-8 can't encode."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def http_status(error: DowiseError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, RefusedError):
        return error.status
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 422)


def public_message(request: Request, error: BaseException) -> str:
    """Return the part of an error message that users of the server may see."""
    if not isinstance(error, DowiseError) or isinstance(error, UserCodeError):
        return INTERNAL_ERROR
    return str(request.app.state.registry.redact(str(error)))


def add_error_handlers(app: FastAPI) -> None:
    """Register the handlers for all errors."""
    app.add_exception_handler(DowiseError, _handle_dowise_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_exception_handler(Exception, _handle_unexpected_error)


async def _handle_dowise_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, DowiseError)
    return error_response(request, error)


def error_response(request: Request, error: DowiseError) -> Response:
    """Return the response to a request that failed with a `DowiseError`."""
    if isinstance(error, UserCodeError):
        _LOG.error("%s %s failed: %s", request.method, quote(request.scope["path"]), error)
    headers = error.headers if isinstance(error, RefusedError) else {}
    extra: dict[str, Any] = {} if error.hint is None else {"hint": error.hint}
    if isinstance(error, BadRowsError):
        rows = [
            {"row": bad.row, "line": bad.line, "why": bad.why}
            for bad in error.checked.bad[:MAX_BAD_ROWS]
        ]
        extra |= {"bad_count": error.checked.bad_count, "bad": rows}
    if isinstance(error, InputSyntaxError) and error.line is not None:
        extra |= {"line": error.line, "column": error.column}
    return _respond(
        request, http_status(error), public_message(request, error), error.code, headers, **extra
    )


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    """Return pydantic's own messages, the first of them as the detail."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    listed = [
        {
            "where": [*map(_replace_surrogates, invalid["loc"][:MAX_VALIDATION_ERRORS])],
            "why": _replace_surrogates(_message(invalid)),
            "code": invalid["type"],
        }
        for invalid in errors[:MAX_VALIDATION_ERRORS]
    ]
    detail = f"{_field(errors[0]['loc'])}: {_message(errors[0])}" if errors else "invalid request"
    is_json = "json" in request.headers.get("content-type", "")
    if errors and errors[0]["loc"] == ("body",) and not is_json:
        detail = "body: send a JSON object, with the header Content-Type: application/json"
    return _respond(request, 422, detail, "invalid-request", errors=listed)


def _message(error: Mapping[str, Any]) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}"


def _field(location: Sequence[str | int]) -> str:
    """Format pydantic's location of a field: "allowed[0].Dose", or "body" for all of it."""
    part, *path = location
    names = [
        f"[{name}]" if isinstance(name, int) else f".{name}"
        for name in path
        if isinstance(name, int) or not _UNION_BRANCH.fullmatch(name)
    ]
    return "".join(names).removeprefix(".") or str(part)


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, detail = error.status_code, error.detail
    if status == 404:
        detail = "there is nothing at this address"
    elif status == 405:
        detail = f"this address does not support {request.method}"
    code = HTTPStatus(status).phrase.lower().replace(" ", "-")
    return _respond(request, status, detail, code, error.headers)


async def _handle_unexpected_error(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, quote(request.scope["path"]), exc_info=error)
    return _respond(request, 500, INTERNAL_ERROR, "internal-error")


def _respond(
    request: Request,
    status: int,
    detail: str,
    code: str,
    headers: Mapping[str, str] | None = None,
    **extra: Any,
) -> Response:
    error_page = getattr(request.app.state, "error_page", None)
    if error_page is None or request.url.path.startswith(("/api", "/health")):
        return problem_response(status, detail, code, headers, **extra)
    response: Response = error_page(request, status, detail, headers)
    return response
