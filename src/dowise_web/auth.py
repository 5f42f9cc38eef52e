"""Authentication and authorization: principals, sessions, CSRF tokens and roles.

A principal sends a token in a header, or the cookie of a session that a token or a link opened.
`AuthMiddleware` answers unknown principals before anything they send is read, except at a few open
paths; so an endpoint that forgets to require a role is still closed to the public.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.types import ASGIApp, Receive, Scope, Send

from dowise.errors import DowiseError
from dowise_web import tokens
from dowise_web.errors import RefusedError, error_response
from dowise_web.tokens import ROLES, Token

CSRF_HEADER = "X-CSRF-Token"
OPEN_PATHS = ("/health", "/login", "/enter", "/api/openapi.json")
OPEN_PREFIX = "/static/"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
MAX_FORM_FIELDS = 5000
_BEARER = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True)
class Principal:
    """An authenticated user or program."""

    id: int
    role: str
    name: str
    """The actor in the journal."""
    source: int
    """Id of the token or link that it came from; limits count all sessions of a token together."""
    csrf: str | None = None
    """CSRF token that forms must send; None if the request has a token in its header."""

    def may(self, role: str) -> bool:
        """Return True if the principal's role includes another one.

        >>> Principal(1, "ask", "Ann", 1).may("tell"), Principal(1, "read", "Bob", 2).may("tell")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


class AuthMiddleware:
    """ASGI middleware that answers unknown principals before their requests are read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        is_open = scope["type"] != "http" or scope["path"] in OPEN_PATHS
        if not is_open and not scope["path"].startswith(OPEN_PREFIX):
            request = Request(scope)
            try:
                await _authenticate_once(request)
            except DowiseError as error:
                await error_response(request, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


@cache
def require_role(role: str) -> Callable[[Request], Awaitable[Principal]]:
    """Return the dependency that requires a role and provides the principal, once per request."""

    async def principal(request: Request) -> Principal:
        principal = await _authenticate_once(request)
        if principal.csrf is not None and request.method not in SAFE_METHODS:
            await check_csrf(request, principal)
        if not principal.may(role):
            raise RefusedError(
                403,
                f"the role {role!r} is required, and {principal.name!r} has {principal.role!r}",
                code="role-required",
            )
        return principal

    return principal


Reader = Annotated[Principal, Depends(require_role("read"))]
Admin = Annotated[Principal, Depends(require_role("admin"))]


def principal_id(request: Request) -> int:
    """Return the id by which limits count the principal of a request."""
    principal: Principal = request.state.principal
    return principal.source


async def is_still_valid(request: Request) -> bool:
    """Return True if the principal of a long response is still known."""
    try:
        await _authenticate(request)
    except DowiseError:  # also if that can't be checked now: the client will connect again
        return False
    return True


def csrf_token(session: str) -> str:
    """Derive the CSRF token of a session from its cookie."""
    return hmac.new(session.encode(errors="replace"), b"dowise csrf", hashlib.sha256).hexdigest()


async def check_csrf(request: Request, principal: Principal) -> None:
    """Raise `RefusedError` unless the request comes from a page of this session."""
    sent: Any = request.headers.get(CSRF_HEADER)
    if sent is None and "form" in request.headers.get("content-type", ""):
        sent = (await read_form(request)).get("csrf")
    expected = principal.csrf or ""
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), expected.encode()):
        raise RefusedError(
            403, "this form belongs to another session: reload the page", code="invalid-csrf-token"
        )


async def read_form(request: Request) -> FormData:
    """Read the form of a request, within limits; Starlette reads it once."""
    return await request.form(max_files=0, max_fields=MAX_FORM_FIELDS)


def retry_after(seconds: float) -> dict[str, str]:
    """Return the header that says when to try again."""
    return {"Retry-After": str(int(seconds) + 1)}


async def _authenticate_once(request: Request) -> Principal:
    principal: Principal | None = getattr(request.state, "principal", None)
    if principal is None:
        principal = request.state.principal = await _authenticate(request)
        if wait := request.app.state.request_rate.take(str(principal.id)):
            raise RefusedError(
                429, "too many requests: slow down", retry_after(wait), code="rate-limited"
            )
    return principal


async def _authenticate(request: Request) -> Principal:
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, secret = header.partition(" ")
        token = await _find_token(request, secret.strip()) if scheme.lower() == "bearer" else None
        if token is None or token.kind != "token":
            raise _invalid_token(request)
        return Principal(token.id, token.role, token.name, token.id)
    cookie = request.cookies.get(request.app.state.settings.cookie)
    if cookie is None:
        raise RefusedError(
            401,
            "authentication required: send 'Authorization: Bearer <token>'",
            _BEARER,
            code="authentication-required",
        )
    token = await _find_token(request, cookie)
    if token is None or token.kind != "session":
        raise RefusedError(
            401, "this session has ended: sign in again", _BEARER, code="session-ended"
        )
    source = token.id if token.parent is None else token.parent
    return Principal(token.id, token.role, token.name, source, csrf_token(cookie))


def _invalid_token(request: Request) -> RefusedError:
    """Return the error for an invalid token, limited per address."""
    address = request.client.host if request.client else ""
    if wait := request.app.state.failure_rate.take(address):
        return RefusedError(
            429, "too many invalid tokens: try again later", retry_after(wait), code="rate-limited"
        )
    return RefusedError(
        401, "the token is unknown, expired or revoked", _BEARER, code="invalid-token"
    )


async def _find_token(request: Request, secret: str) -> Token | None:
    return await run_in_threadpool(tokens.authenticate, request.app.state.registry.storage, secret)
