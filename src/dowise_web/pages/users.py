"""Sign in and out, the list of experiments, and the page People with tokens and links."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData

from dowise._core.hosts import is_loopback
from dowise.errors import DowiseError
from dowise_web import tokens
from dowise_web.api.admin import summaries
from dowise_web.api.dependencies import get_registry
from dowise_web.auth import Admin, Principal, Reader, retry_after
from dowise_web.errors import RefusedError
from dowise_web.pages.new_experiment import parse_whole_number
from dowise_web.pages.rendering import SentForm, get_text, page_message, page_url, render
from dowise_web.tokens import CreatedToken, Token

router = APIRouter()
Secret = Annotated[str, Form(max_length=1000)]

INVITATION_MINUTES = 24 * 60  # a link that is sent to someone is not opened at once
ROLE_DESCRIPTIONS = {
    "read": "see everything",
    "tell": "also record outcomes, and correct them",
    "ask": "also ask for decisions",
    "admin": "also create and revise experiments, and invite people",
}


# -- signing in and out -------------------------------------------------------------------------


@router.get("/")
def index(request: Request, principal: Reader) -> Response:
    """Show the experiments of the store; if there is only one, go there."""
    names = get_registry(request).names()
    if len(names) == 1 and "all" not in request.query_params:
        return RedirectResponse(page_url(names[0]), 303)
    experiments = summaries(get_registry(request))
    return render(request, "experiments.html", principal, experiments=experiments)


@router.get("/login")
def login(
    request: Request,
    next: Annotated[str, Query(max_length=2000)] = "/",  # noqa: A002
    revoked: Annotated[str, Query(max_length=20)] = "",
) -> HTMLResponse:
    """Show the form for a token; `next` is the page to go to, `revoked` what the user revoked."""
    kind = revoked if revoked in ("link", "token") else None  # a URL may contain any text
    return render(request, "login.html", error=None, next=_local_url(next), revoked=kind)


@router.get("/enter")
def enter(request: Request) -> HTMLResponse:
    """Show the target of a one-time link, which sends the secret from the URL's fragment."""
    return render(request, "enter.html", error=None)


@router.post("/login")
def sign_in(
    request: Request,
    secret: Secret = "",
    next: Annotated[str, Form(max_length=2000)] = "/",  # noqa: A002
) -> Response:
    """Create a session for a token."""
    message = (
        "This token is unknown or has expired. Ask the person who runs this server for a new one."
    )
    return _create_session(request, secret, "login.html", message, _local_url(next))


@router.post("/enter")
def open_link(request: Request, secret: Secret = "") -> Response:
    """Create a session for a one-time link."""
    message = (
        "This link was used before, has expired or was revoked. Ask the person who runs this "
        "server for a new one."
    )
    return _create_session(request, secret, "enter.html", message)


@router.post("/logout")
def sign_out(request: Request, principal: Reader) -> Response:
    """End the session. Its token stays valid, because others may use it."""
    if principal.csrf is None:
        raise RefusedError(403, "a token has no session to end", code="no-session")
    settings = request.app.state.settings
    tokens.revoke(get_registry(request).storage, principal.id)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(settings.cookie, path="/", secure=settings.is_secure)
    return response


def _local_url(url: str) -> str:
    """Return a URL if it is a path on this server, else the root.

    >>> _local_url("/experiments/ward/now?decision=5"), _local_url("//evil.example")
    ('/experiments/ward/now?decision=5', '/')
    >>> _local_url("javascript:x")
    '/'
    """
    is_local = url.startswith("/") and url[1:2] not in ("/", "\\") and url.isprintable()
    return url if is_local else "/"


def _create_session(
    request: Request,
    secret: str,
    template: str,
    message: str,
    next: str = "/",  # noqa: A002
) -> Response:
    """Create a session, in a cookie that no script can read and no other site can send.

    Failures are limited per address, sessions per token: so nobody locks others out, and no token
    fills the store with sessions.
    """
    settings, storage = request.app.state.settings, get_registry(request).storage
    secret = secret.strip()
    token = tokens.authenticate(storage, secret)
    if token is not None:
        _limit_rate(request, f"sessions of {token.id}", "too many sessions of this token")
    created = tokens.create_session(storage, secret)
    if created is None:
        address = request.client.host if request.client else ""
        _limit_rate(request, address, "too many attempts from this address")
        return render(request, template, None, 403, error=message, next=next, revoked=None)
    response = RedirectResponse(next, 303)
    response.set_cookie(
        settings.cookie,
        created.secret,
        max_age=3600 * tokens.SESSION_HOURS,
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


def _limit_rate(request: Request, key: str, message: str) -> None:
    if wait := request.app.state.failure_rate.take(key):
        raise RefusedError(
            429, f"{message}: try again later", retry_after(wait), code="rate-limited"
        )


# -- users --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class User:
    """A token or a link, with the sessions that it opened."""

    token: dict[str, Any]
    sessions: int
    """Number of open sessions."""
    ended_sessions: int
    """Number of sessions that ended before they expired."""
    ends: str | None
    """Time at which access ends; None until it is revoked."""
    last: str | None
    """Time of the last sign-in."""
    is_own: bool
    """True if the reader of the page signed in by it."""

    @property
    def is_active(self) -> bool:
        """True if someone has access by it."""
        return self.token["state"] == "valid" or self.sessions > 0

    @property
    def state(self) -> str:
        """Its state as text; empty if it is as it was created.

        A store keeps one end of a link, its use. That it was revoked later shows in its session,
        which also ends when its user signs out.
        """
        state: str = self.token["state"]
        if state == "used" and self.ended_sessions:
            return "used, then revoked or signed out"
        return {"valid": "", "ended": "revoked"}.get(state, state)


@router.get("/people")
def users(
    request: Request, principal: Admin, revoked: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show everyone who has access, and the form to invite someone."""
    return _render_users(request, principal, revoked=revoked)


@router.post("/people")
def invite(request: Request, principal: Admin, form: SentForm) -> Response:
    """Create a link or a token, and show its secret once.

    If the page is reloaded, the form is sent again: that creates nothing, and shows no secret.
    """
    sent = tuple(get_text(form, field) for field in ("key", "name", "role", "kind", "days"))
    try:
        created, secret = request.app.state.one_time_form.submit(
            sent, lambda: _create_access(request, form)
        )
    except DowiseError as error:
        message = page_message(request, error)
        return _render_users(request, principal, error=message, sent=form)
    return _render_users(request, principal, created=created, secret=secret)


@router.get("/people/revoke")
def confirm_revoke(
    request: Request,
    principal: Admin,
    id: Annotated[str, Query(max_length=40)] = "",  # noqa: A002
) -> Response:
    """Ask for confirmation; without an id, as after a failed form, show the page People."""
    if not id:
        return RedirectResponse("/people", 303)
    user = _find_user(request, principal, id)
    return render(request, "users_revoke.html", principal, active_page="people", user=user)


@router.post("/people/revoke")
def revoke(request: Request, principal: Admin, form: SentForm) -> Response:
    """Revoke a token or link and its sessions; users who revoke their own are signed out."""
    user = _find_user(request, principal, get_text(form, "id"))
    tokens.revoke(get_registry(request).storage, user.token["id"])
    if user.is_own:
        return RedirectResponse(f"/login?revoked={user.token['kind']}", 303)
    return RedirectResponse(f"/people?revoked={user.token['id']}", 303)


def _find_user(request: Request, principal: Principal, number: str) -> User:
    for user in _list_users(tokens.list_tokens(get_registry(request).storage), principal.source):
        if str(user.token["id"]) == number:
            return user
    raise DowiseError(
        f"there is no token or link {number!r:.40}: reload the page People", code="unknown-token"
    )


def _create_access(request: Request, form: FormData) -> CreatedToken:
    storage = get_registry(request).storage
    name, role = get_text(form, "name"), get_text(form, "role")
    if not name:
        raise DowiseError("enter a name", code="missing-value")
    has_days = get_text(form, "days") != ""
    if get_text(form, "kind") == "token":
        days = (
            parse_whole_number(form, "days", "Days until the token expires") if has_days else None
        )
        return tokens.create_token(storage, role, name, days)
    if has_days:
        raise DowiseError(
            "a link is valid for one day: leave the days empty, or choose a token",
            code="invalid-number",
        )
    return tokens.create_link(storage, role, name, INVITATION_MINUTES)


def _render_users(
    request: Request,
    principal: Principal,
    *,
    revoked: str = "",
    error: str = "",
    sent: FormData | None = None,
    created: Token | None = None,
    secret: str | None = None,
) -> Response:
    all_users = _list_users(tokens.list_tokens(get_registry(request).storage), principal.source)
    former = [user for user in all_users if not user.is_active]
    address = request.app.state.settings.address
    return render(
        request,
        "users.html",
        principal,
        422 if error else 200,
        active_page="people",
        revoked=[user.token for user in former if str(user.token["id"]) == revoked],
        error=error,
        sent=sent or {},
        key=request.app.state.one_time_form.new_key(),
        created=created,
        secret=secret,
        address=address,
        is_local=is_loopback(urlsplit(address).hostname or ""),
        roles=ROLE_DESCRIPTIONS,
        active=[user for user in all_users if user.is_active],
        former=former,
    )


def _list_users(all_tokens: list[dict[str, Any]], own_source: int) -> list[User]:
    """Return tokens and links with their sessions, the newest first."""
    users = []
    for token in reversed(all_tokens):
        if token["kind"] == "session":
            continue
        sessions = [other for other in all_tokens if other["parent"] == token["id"]]
        ends = [session["ends_at"] for session in sessions if session["state"] == "valid"]
        is_used_up = token["state"] != "valid"
        users.append(
            User(
                token,
                len(ends),
                sum(session["state"] == "ended" for session in sessions),
                max(ends) if is_used_up and ends else token["ended_at"] or token["ends_at"],
                max((session["made_at"] for session in sessions), default=None),
                token["id"] == own_source,
            )
        )
    return users


class OneTimeForm:
    """Form that creates a secret exactly once, even if the response is reloaded.

    Each page gives its form a key, which is sent along. Keys of an earlier run of the server are
    refused, so that a page that is reloaded after a restart creates nothing either.
    """

    def __init__(self) -> None:
        self._run = secrets.token_urlsafe(8)
        self._lock = Lock()
        self._created: dict[tuple[str, ...], Token] = {}

    def new_key(self) -> str:
        """Return a key for the form of a page."""
        return f"{self._run}.{secrets.token_urlsafe(15)}"

    def submit(
        self, sent: tuple[str, ...], create: Callable[[], CreatedToken]
    ) -> tuple[Token, str | None]:
        """Return what the form creates and its secret, or None instead if it was sent before.

        `sent` are all fields, the key first. Users who go back in the browser and change a field
        send the same key, and mean it. If `create` raises an error, nothing is remembered.
        """
        if not sent[0].startswith(f"{self._run}."):
            raise DowiseError(
                "the server was restarted since this form was opened: send it again",
                code="outdated-form",
            )
        with self._lock:
            if sent in self._created:
                return self._created[sent], None
            created = create()
            self._created[sent] = created.token
            return created.token, created.secret
