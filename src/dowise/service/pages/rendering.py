"""Templates become answers: what every page has, and what templates may call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dowise.experiment.event import Head
from dowise.experiment.experiment import Experiment
from dowise.experiment.status_words import duration
from dowise.plain import amount, counted
from dowise.service.visitors import Visitor

__all__ = ["STATIC", "api_place", "page", "place", "static"]

_FOLDER = Path(__file__).parents[1]
STATIC = _FOLDER / "static"


@dataclass(frozen=True)
class Shown:
    """What the frame of a page says about its experiment."""

    name: str
    policy: str
    decisions: int
    head: Head


def page(
    request: Request,
    template: str,
    visitor: Visitor | None = None,
    experiment: Experiment | None = None,
    *,
    here: str = "",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """A page; `here` is which of them, for the navigation."""
    shown = None
    if experiment is not None:
        asked = experiment.counts()["asked"]
        shown = Shown(experiment.name, experiment.policy, asked, experiment.head)
    csrf = "" if visitor is None else visitor.csrf or ""
    frame = {"request": request, "visitor": visitor, "csrf": csrf, "here": here, "shown": shown}
    text = _templates().get_template(template).render(frame | values)
    # Half a character, which JSON and forms can bring, can't be sent.
    return HTMLResponse(text.encode(errors="replace"), status, dict(headers or {}))


def place(name: str, page: str) -> str:
    """The address of a page of an experiment, whatever its name.

    >>> place("ward 7/left", "now")
    '/experiments/ward%207%2Fleft/now'
    """
    return f"/experiments/{quote(name, safe='')}/{page}"


def api_place(name: str, what: str) -> str:
    """The address of what the API has of an experiment."""
    return f"/api{place(name, what)}"


@cache
def static(file: str) -> str:
    """The address of a static file, another one when the file is another.

    >>> static("dowise.css").partition("?v=")[0]
    '/static/dowise.css'
    """
    return f"/static/{file}?v={sha256((STATIC / file).read_bytes()).hexdigest()[:12]}"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"place": place, "api_place": api_place, "static": static}
    made.filters |= {"amount": amount, "counted": counted, "duration": duration, "in_query": _in_query}
    return made


def _in_query(text: object) -> str:
    return quote(str(text), safe="")
