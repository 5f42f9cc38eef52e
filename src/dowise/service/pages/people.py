"""The page People: who may come in, a link or token for somebody more, and the end of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from dowise.errors import DowiseError
from dowise.service import tokens
from dowise.service.api.common import house_of
from dowise.service.failures import says
from dowise.service.pages.beginnings import whole_in
from dowise.service.pages.forms import Filled, in_page_words, text_in
from dowise.service.pages.rendering import render
from dowise.service.settings import is_loopback
from dowise.service.tokens import Token
from dowise.service.visitors import Admin, Visitor

__all__ = ["router"]

router = APIRouter(prefix="/people")

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


@router.get("")
def people(
    request: Request, visitor: Admin, revoked: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """All who may come in, and the form for another."""
    return _page(request, visitor, revoked=revoked)


@router.post("")
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


@router.get("/revoke")
def ask_first(
    request: Request, visitor: Admin, id: Annotated[str, Query(max_length=40)] = ""  # noqa: A002
) -> Response:  # fmt: skip
    """Whether it is meant; where a form failed and its address is opened again, the page."""
    if not id:
        return RedirectResponse("/people", 303)
    whose = _of_number(request, visitor, id)
    return render(request, "people_revoke.html", visitor, here="people", whose=whose)


@router.post("/revoke")
def revoke(request: Request, visitor: Admin, form: Filled) -> Response:
    """End a token or link, and the sessions that came from it; of one's own, go to the door."""
    whose = _of_number(request, visitor, text_in(form, "id"))
    tokens.revoke(house_of(request).storage, whose.token["id"])
    if whose.is_own:
        return RedirectResponse(f"/login?revoked={whose.token['kind']}", 303)
    return RedirectResponse(f"/people?revoked={whose.token['id']}", 303)


def _of_number(request: Request, visitor: Visitor, number: str) -> Person:
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
    request: Request, visitor: Visitor, *, revoked: str = "", wrong_words: str = "",
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
