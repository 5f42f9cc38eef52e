"""Coming in and going out: the login, the one-time link, signing out, the list of experiments."""

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

from dowise.errors import DowiseError
from dowise_web import tokens
from dowise_web.api.admin import summaries
from dowise_web.api.dependencies import house_of
from dowise_web.auth import Admin, Principal, Reader
from dowise_web.errors import RefusedError, says
from dowise_web.pages.new_experiment import whole_in
from dowise_web.pages.rendering import Filled, address_of, in_page_words, render, text_in
from dowise_web.settings import is_loopback
from dowise_web.tokens import Made, Token

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


people_router = APIRouter(prefix="/people")

LINK_MINUTES = 24 * 60  # a link that is sent to somebody is not opened at once
MAY = {
    "read": "look at everything",
    "tell": "also tell what was seen, and correct it",
    "ask": "also ask for decisions",
    "admin": "also begin and revise experiments, and let people in",
}
"""What each role may do, in short."""


@dataclass(frozen=True)
class Person:
    """A token or a link, and the sessions that came from it."""

    token: dict[str, Any]
    sessions: int
    """How many of them are open."""
    stopped: int
    """How many of them ended before their time."""
    ends: str | None
    """When nobody can do anything by it any more; None where somebody has to revoke it."""
    last: str | None
    """When somebody last came in by it."""
    is_own: bool
    """Whether the one who looks came in by it."""

    @property
    def is_good(self) -> bool:
        """Whether somebody can do something by it."""
        return self.token["state"] == "valid" or self.sessions > 0

    @property
    def state(self) -> str:
        """What became of it, in words; nothing while it is as it was made.

        A store keeps one end of a link, its use. That it was revoked later shows in its session,
        which signing out ends just so.
        """
        state: str = self.token["state"]
        if state == "used" and self.stopped:
            return "used, then revoked or signed out"
        return {"valid": "", "ended": "revoked"}.get(state, state)


@people_router.get("")
def people(
    request: Request, visitor: Admin, revoked: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """All who may come in, and the form for another."""
    return _page(request, visitor, revoked=revoked)


@people_router.post("")
def let_in(request: Request, visitor: Admin, form: Filled) -> Response:
    """Make a link or a token, and show its secret this once: no address and no store has it.

    A page that is loaded again sends its form again, which makes no other and has no secret.
    """
    sent = tuple(text_in(form, field) for field in ("key", "name", "role", "kind", "days"))
    try:
        made, secret = request.app.state.once.make(sent, lambda: _made(request, form))
    except DowiseError as error:
        return _page(request, visitor, wrong_words=in_page_words(says(request, error)), sent=form)
    return _page(request, visitor, made=made, secret=secret)


@people_router.get("/revoke")
def ask_first(
    request: Request, visitor: Admin, id: Annotated[str, Query(max_length=40)] = ""  # noqa: A002
) -> Response:  # fmt: skip
    """Whether it is meant; where a form failed and its address is opened again, the page."""
    if not id:
        return RedirectResponse("/people", 303)
    whose = _of_number(request, visitor, id)
    return render(request, "people_revoke.html", visitor, here="people", whose=whose)


@people_router.post("/revoke")
def revoke(request: Request, visitor: Admin, form: Filled) -> Response:
    """End a token or link, and the sessions that came from it; of one's own, go to the door."""
    whose = _of_number(request, visitor, text_in(form, "id"))
    tokens.revoke(house_of(request).storage, whose.token["id"])
    if whose.is_own:
        return RedirectResponse(f"/login?revoked={whose.token['kind']}", 303)
    return RedirectResponse(f"/people?revoked={whose.token['id']}", 303)


def _of_number(request: Request, visitor: Principal, number: str) -> Person:
    """The token or link of a number, which a form or an address sent."""
    for one in _everyone(tokens.pages(house_of(request).storage), visitor.source):
        if str(one.token["id"]) == number:
            return one
    raise DowiseError(f"there is nobody of the number {number!r:.40}: load the page People again")


def _made(request: Request, form: FormData) -> tokens.Made:
    storage = house_of(request).storage
    name, role = text_in(form, "name"), text_in(form, "role")
    if not name:
        raise DowiseError("say who it is for, in the field Name")
    has_days = text_in(form, "days") != ""
    if text_in(form, "kind") == "token":
        days = whole_in(form, "days", "Days that a token lasts") if has_days else None
        return tokens.make_token(storage, role, name, days)
    if has_days:
        raise DowiseError("a link is good for a day: leave the days empty, or choose a token")
    return tokens.make_link(storage, role, name, LINK_MINUTES)


def _page(
    request: Request, visitor: Principal, *, revoked: str = "", wrong_words: str = "",
    sent: FormData | None = None, made: Token | None = None, secret: str | None = None,
) -> Response:  # fmt: skip
    everyone = _everyone(tokens.pages(house_of(request).storage), visitor.source)
    before = [one for one in everyone if not one.is_good]
    address = request.app.state.settings.address
    return render(
        request, "people.html", visitor,
        422 if wrong_words else 200,
        here="people",
        revoked=[one.token for one in before if str(one.token["id"]) == revoked],
        wrong_words=wrong_words,
        sent=sent or {},
        key=request.app.state.once.key(),
        made=made,
        secret=secret,
        address=address,
        only_here=is_loopback(urlsplit(address).hostname or ""),
        may=MAY,
        now=[one for one in everyone if one.is_good],
        before=before,
    )  # fmt: skip


def _everyone(known: list[dict[str, Any]], own: int) -> list[Person]:
    """Tokens and links, the newest first, with what came of them; `own` is the visitor's source."""
    found = []
    for token in reversed(known):
        if token["kind"] == "session":
            continue
        sessions = [one for one in known if one["parent"] == token["id"]]
        still = [one["ends_at"] for one in sessions if one["state"] == "valid"]
        is_used_up = token["state"] != "valid"
        found.append(
            Person(
                token,
                len(still),
                sum(one["state"] == "ended" for one in sessions),
                max(still) if is_used_up and still else token["ended_at"] or token["ends_at"],
                max((one["made_at"] for one in sessions), default=None),
                token["id"] == own,
            )
        )
    return found


class OneTimeForm:
    """What was made by which form: each page gives its form a key, which is sent along.

    It lives as long as the server. Keys of another server's are refused, so that a page that is
    loaded again after a restart makes nothing either.
    """

    def __init__(self) -> None:
        self._ours = secrets.token_urlsafe(8)
        self._lock = Lock()
        self._made: dict[tuple[str, ...], Token] = {}

    def key(self) -> str:
        """A key for the form of a page."""
        return f"{self._ours}.{secrets.token_urlsafe(15)}"

    def make(self, sent: tuple[str, ...], make: Callable[[], Made]) -> tuple[Token, str | None]:
        """What a form makes that sent this, its key first, and the secret; None: made before.

        Who goes back in the browser and fills in somebody else sends the same key, and means it:
        so all that was sent counts. What raises has made nothing.
        """
        if not sent[0].startswith(f"{self._ours}."):
            raise DowiseError("this form is from before the server was started: send it again")
        with self._lock:
            if sent in self._made:
                return self._made[sent], None
            made = make()
            self._made[sent] = made.token
            return made.token, made.secret
