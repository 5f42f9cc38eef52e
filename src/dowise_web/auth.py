"""Who asks: a token in a header, or the cookie of a session that a token or a link opened.

Nobody who is not known gets past the `AuthMiddleware`, but to the few places that are open: neither a form
nor a document of theirs is read, and a page that forgot to ask who comes is closed all the same.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.types import ASGIApp, Receive, Scope, Send

from dowise.errors import DowiseError
from dowise_web import tokens
from dowise_web.errors import RefusedError, answer_to
from dowise_web.tokens import Token

CSRF_HEADER = "X-CSRF-Token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_WANTED = {"WWW-Authenticate": "Bearer"}
OPEN = ("/health", "/login", "/enter", "/api/openapi.json")
_OPEN_BELOW = "/static/"
_MOST_FIELDS = 5000  # of a form


@dataclass(frozen=True)
class Principal:
    """Somebody who is known: what they may do, and what the journal calls them."""

    id: int
    role: str
    name: str
    source: int
    """The token or link that they came by: all sessions of one token are one to share with."""
    csrf: str | None = None
    """What forms of their pages must bring along; None where a token came in a header."""

    def may(self, role: str) -> bool:
        """Whether what needs this role is allowed."""
        return tokens.allows(self.role, role)


class AuthMiddleware:
    """ASGI middleware: whoever is not known is answered before anything that they send is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        is_open = scope["type"] != "http" or scope["path"] in OPEN
        if not is_open and not scope["path"].startswith(_OPEN_BELOW):
            request = Request(scope)
            try:
                await _known(request)
            except DowiseError as error:
                await answer_to(request, error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def needs(role: str) -> Callable[[Request], Awaitable[Principal]]:
    """What a function of the app depends on that needs a role: it gets the visitor."""

    async def visitor(request: Request) -> Principal:
        found = await _known(request)
        if found.csrf is not None and request.method not in _SAFE:
            await check_csrf(request, found)
        if not found.may(role):
            raise RefusedError(
                403, f"this needs the role {role!r}, and {found.name!r} has {found.role!r}"
            )
        return found

    return visitor


Reader = Annotated[Principal, Depends(needs("read"))]
Teller = Annotated[Principal, Depends(needs("tell"))]
Asker = Annotated[Principal, Depends(needs("ask"))]
Admin = Annotated[Principal, Depends(needs("admin"))]


async def _known(request: Request) -> Principal:
    """The visitor of a request, looked up once."""
    kept: Principal | None = getattr(request.state, "visitor", None)
    if kept is None:
        kept = await _looked_up(request)
        request.state.visitor = kept
        wait = request.app.state.visits.take(str(kept.id))
        if wait:
            raise RefusedError(429, "too many requests: slow down", _after(wait))
    return kept


async def _looked_up(request: Request) -> Principal:
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, secret = header.partition(" ")
        token = await _find(request, secret.strip()) if kind.lower() == "bearer" else None
        if token is None or token.kind != "token":
            raise _wrong_token(request)
        return Principal(token.id, token.role, token.name, token.id)
    cookie = request.cookies.get(request.app.state.settings.cookie)
    if cookie is None:
        raise RefusedError(
            401, "say who you are: send a token as 'Authorization: Bearer …'", _WANTED
        )
    token = await _find(request, cookie)
    if token is None or token.kind != "session":
        raise RefusedError(401, "this session has ended: sign in again", _WANTED)
    source = token.id if token.parent is None else token.parent
    return Principal(token.id, token.role, token.name, source, seal(cookie))


def _wrong_token(request: Request) -> RefusedError:
    """What those hear who have none that is good; others at the same address are not shut out."""
    address = request.client.host if request.client else ""
    if wait := request.app.state.guesses.take(address):
        return RefusedError(429, "too many wrong tokens from here: wait a while", _after(wait))
    return RefusedError(401, "this token is not known, has ended or was revoked", _WANTED)


async def is_still_known(request: Request) -> bool:
    """Whether the one who sent it is known now as then: for answers that take long."""
    try:
        await _looked_up(request)
    except DowiseError:  # or it can't be known: who is known may come back
        return False
    return True


async def _find(request: Request, secret: str) -> Token | None:
    return await run_in_threadpool(tokens.who, request.app.state.house.storage, secret)


def seal(session: str) -> str:
    """What a page of this session proves itself by: it follows from the cookie, and not back."""
    return hmac.new(session.encode(errors="replace"), b"dowise csrf", hashlib.sha256).hexdigest()


async def form_of(request: Request) -> FormData:
    """What a form sends, read once: whoever reads it first sets the limits."""
    return await request.form(max_files=0, max_fields=_MOST_FIELDS)


async def check_csrf(request: Request, visitor: Principal) -> None:
    """Raise unless the request is from a page that we gave this session."""
    given: Any = request.headers.get(CSRF_HEADER)
    if given is None and "form" in request.headers.get("content-type", ""):
        given = (await form_of(request)).get("csrf")
    wanted = visitor.csrf or ""
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise RefusedError(403, "this form is from another session: load the page again")


def _after(wait: float) -> dict[str, str]:
    return {"Retry-After": str(int(wait) + 1)}
