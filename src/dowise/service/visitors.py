"""Who asks: a token in a header, or the cookie of a session that a token or a link opened."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from dowise.experiment.storage import Token
from dowise.service import tokens
from dowise.service.failures import RefusedError

__all__ = [
    "CSRF_HEADER", "Admin", "Asker", "Reader", "Teller", "Visitor", "check_csrf", "needs", "seal",
]  # fmt: skip

CSRF_HEADER = "X-CSRF-Token"
_SAFE = ("GET", "HEAD", "OPTIONS")
_WANTED = {"WWW-Authenticate": "Bearer"}


@dataclass(frozen=True)
class Visitor:
    """Somebody who is known: what they may do, and what the journal calls them."""

    id: int
    role: str
    name: str
    csrf: str | None = None
    """What forms of their pages must bring along; None where a token came in a header."""

    def may(self, role: str) -> bool:
        """Whether what needs this role is allowed."""
        return tokens.allows(self.role, role)


def needs(role: str) -> Callable[[Request], Awaitable[Visitor]]:
    """What a function of the app depends on that needs a role: it gets the visitor."""

    async def visitor(request: Request) -> Visitor:
        found = await _known(request)
        if not found.may(role):
            raise RefusedError(
                403, f"this needs the role {role!r}, and {found.name!r} has {found.role!r}"
            )
        return found

    return visitor


Reader = Annotated[Visitor, Depends(needs("read"))]
Teller = Annotated[Visitor, Depends(needs("tell"))]
Asker = Annotated[Visitor, Depends(needs("ask"))]
Admin = Annotated[Visitor, Depends(needs("admin"))]


async def _known(request: Request) -> Visitor:
    """The visitor of a request, looked up once."""
    kept: Visitor | None = getattr(request.state, "visitor", None)
    if kept is None:
        kept = await _looked_up(request)
        request.state.visitor = kept
        wait = request.app.state.visits.take(str(kept.id))
        if wait:
            raise RefusedError(429, "too many requests: slow down", _after(wait))
    return kept


async def _looked_up(request: Request) -> Visitor:
    state = request.app.state
    address = request.client.host if request.client else ""
    if wait := state.guesses.wait(address):
        raise RefusedError(429, "too many wrong tokens from here: wait a while", _after(wait))
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, secret = header.partition(" ")
        token = await _find(request, secret.strip()) if kind.lower() == "bearer" else None
        if token is None or token.kind != "token":
            state.guesses.take(address)
            raise RefusedError(401, "this token is not known, has ended or was revoked", _WANTED)
        return Visitor(token.id, token.role, token.name)
    cookie = request.cookies.get(state.settings.cookie)
    if cookie is None:
        raise RefusedError(
            401, "say who you are: send a token as 'Authorization: Bearer …'", _WANTED
        )
    token = await _find(request, cookie)
    if token is None or token.kind != "session":
        raise RefusedError(401, "this session has ended: sign in again", _WANTED)
    visitor = Visitor(token.id, token.role, token.name, seal(cookie))
    if request.method not in _SAFE:
        await check_csrf(request, visitor)
    return visitor


async def _find(request: Request, secret: str) -> Token | None:
    return await run_in_threadpool(tokens.who, request.app.state.house.storage, secret)


def seal(session: str) -> str:
    """What a page of this session proves itself by: it follows from the cookie, and not back."""
    return hmac.new(session.encode(errors="replace"), b"dowise csrf", hashlib.sha256).hexdigest()


async def check_csrf(request: Request, visitor: Visitor) -> None:
    """Raise unless the request is from a page that we gave this session."""
    given: Any = request.headers.get(CSRF_HEADER)
    if given is None and "form" in request.headers.get("content-type", ""):
        given = (await request.form()).get("csrf")
    wanted = visitor.csrf or ""
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise RefusedError(403, "this form is from another session: load the page again")


def _after(wait: float) -> dict[str, str]:
    return {"Retry-After": str(int(wait) + 1)}
