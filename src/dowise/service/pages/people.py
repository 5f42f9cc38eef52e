"""The page People: who may come in, a link or token for somebody more, and the end of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from dowise.errors import DowiseError
from dowise.service import tokens
from dowise.service.api.common import house_of
from dowise.service.failures import says
from dowise.service.pages.beginnings import number_in
from dowise.service.pages.forms import Filled, in_page_words, text_in
from dowise.service.pages.rendering import render
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


@router.get("")
def people(
    request: Request, visitor: Admin, said: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """All who may come in, and the form for another."""
    return _page(request, visitor, said=said)


@router.post("")
def let_in(request: Request, visitor: Admin, form: Filled) -> Response:
    """Make a link or a token, and show its secret this once: no address and no store has it."""
    try:
        made = _made(request, form)
    except DowiseError as error:
        return _page(request, visitor, wrong_words=in_page_words(says(request, error)), sent=form)
    return _page(request, visitor, made=made)


@router.get("/revoke")
def revoke_alone(visitor: Admin) -> Response:  # noqa: ARG001 (only for admins)
    """Where a form failed and its address is opened again: the page."""
    return RedirectResponse("/people", 303)


@router.post("/revoke")
def revoke(request: Request, visitor: Admin, form: Filled) -> Response:  # noqa: ARG001
    """End a token or link, and the sessions that came from it."""
    number = text_in(form, "id")
    is_number = number.isascii() and number.isdigit() and len(number) < 16
    if not is_number or not tokens.revoke(house_of(request).storage, int(number)):
        raise DowiseError(f"there is nobody of the number {number!r:.40}: load the page again")
    return RedirectResponse("/people?said=revoked", 303)


def _made(request: Request, form: FormData) -> tokens.Made:
    storage = house_of(request).storage
    name, role = text_in(form, "name"), text_in(form, "role")
    if not name:
        raise DowiseError("say who it is for, in the field Name")
    if text_in(form, "kind") == "token":
        days = number_in(form, "days", "Days that it lasts")
        return tokens.make_token(storage, role, name, days)
    return tokens.make_link(storage, role, name, LINK_MINUTES)


def _page(
    request: Request, visitor: Visitor, *, said: str = "", wrong_words: str = "",
    sent: FormData | None = None, made: tokens.Made | None = None,
) -> Response:  # fmt: skip
    everyone = _everyone(tokens.pages(house_of(request).storage), visitor.id)
    return render(
        request, "people.html", visitor,
        422 if wrong_words else 200,
        here="people",
        said=said,
        wrong_words=wrong_words,
        sent=sent or {},
        made=made,
        link=None if made is None else f"{request.app.state.settings.address}/enter#{made.secret}",
        may=MAY,
        now=[one for one in everyone if one.is_good],
        before=[one for one in everyone if not one.is_good],
    )  # fmt: skip


def _everyone(known: list[dict[str, Any]], own: int) -> list[Person]:
    """Tokens and links, the newest first, with what came of them."""
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
                max(still) if is_used_up and still else token["ended_at"] or token["ends_at"],
                max((one["made_at"] for one in sessions), default=None),
                any(one["id"] == own for one in sessions),
            )
        )
    return found
