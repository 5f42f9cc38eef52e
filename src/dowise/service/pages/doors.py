"""Coming in and going out: the login, the one-time link, signing out, the list of experiments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from dowise.service import tokens
from dowise.service.api.experiments import summaries
from dowise.service.failures import RefusedError
from dowise.service.pages.rendering import address_of, render
from dowise.service.visitors import Reader

__all__ = ["router"]

router = APIRouter()
Secret = Annotated[str, Form(max_length=1000)]
Next = Annotated[str, Query(max_length=2000)]


@router.get("/")
def index(request: Request, visitor: Reader) -> Response:
    """The experiments of the store; where there is one, that one."""
    names = request.app.state.house.names()
    if len(names) == 1 and "all" not in request.query_params:
        return RedirectResponse(address_of(names[0]), 303)
    found = summaries(request.app.state.house)
    return render(request, "experiments.html", visitor, experiments=found)


@router.get("/login")
def login(
    request: Request,
    next: Next = "/",  # noqa: A002 (a common name for it)
    revoked: Annotated[str, Query(max_length=20)] = "",
) -> HTMLResponse:
    """Where a token can be pasted; `next` is where one wanted to go, `revoked` what one ended."""
    ended = revoked if revoked in ("link", "token") else None  # no words of other people's links
    return render(request, "login.html", error=None, next=_ours(next), revoked=ended)


@router.get("/enter")
def enter(request: Request) -> HTMLResponse:
    """Where a one-time link leads: its page sends the secret, which no address has shown."""
    return render(request, "enter.html", error=None)


@router.post("/login")
def sign_in(
    request: Request,
    secret: Secret = "",
    next: Annotated[str, Form(max_length=2000)] = "/",  # noqa: A002
) -> Response:
    """A session for a token, in a cookie that no script can read and no other site can send."""
    why = "This token is not known, or has ended: ask whoever runs this for a new one."
    return _session(request, secret, "login.html", why, _ours(next))


@router.post("/enter")
def come_in(request: Request, secret: Secret = "") -> Response:
    """A session for a link, which then has done its work."""
    why = "This link was used before, is old or was revoked: ask whoever runs this for a new link."
    return _session(request, secret, "enter.html", why)


@router.post("/logout")
def sign_out(request: Request, visitor: Reader) -> Response:
    """End the session; a token is for others to revoke, and more than one may have it."""
    if visitor.csrf is None:
        raise RefusedError(403, "a token has no session to end: `dowise token` revokes it")
    state = request.app.state
    tokens.revoke(state.house.storage, visitor.id)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(state.settings.cookie, path="/", secure=state.settings.is_secure)
    return answer


def _ours(address: str) -> str:
    """A place on this server, or its root where the address is any other.

    >>> _ours("/experiments/ward/now?decision=5"), _ours("//evil.example"), _ours("javascript:x")
    ('/experiments/ward/now?decision=5', '/', '/')
    """
    is_ours = address.startswith("/") and address[1:2] not in ("/", "\\") and address.isprintable()
    return address if is_ours else "/"


def _session(
    request: Request,
    secret: str,
    template: str,
    why: str,
    next: str = "/",  # noqa: A002
) -> Response:
    """A wrong secret counts for the address that it is from, a session for its own token: so nobody
    shuts others out, and no token fills the store with sessions."""
    state, given = request.app.state, secret.strip()
    token = tokens.who(state.house.storage, given)
    if token is not None:
        _take(request, f"sessions of {token.id}", "too many sessions of this token at once")
    made = tokens.begin_session(state.house.storage, given)
    if made is None:
        address = request.client.host if request.client else ""
        _take(request, address, "too many tries from here")
        return render(request, template, None, 403, error=why, next=next, revoked=None)
    answer = RedirectResponse(next, 303)
    answer.set_cookie(
        state.settings.cookie, made.secret, max_age=3600 * tokens.SESSION_HOURS, path="/",
        secure=state.settings.is_secure, httponly=True, samesite="strict",
    )  # fmt: skip
    return answer


def _take(request: Request, key: str, why: str) -> None:
    """Raise where there were too many of these."""
    if wait := request.app.state.guesses.take(key):
        after = {"Retry-After": str(int(wait) + 1)}
        raise RefusedError(429, f"{why}: wait a while", after)
