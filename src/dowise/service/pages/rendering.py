"""From a template to an answer: what every page is given, and what an error looks like on one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

import dowise
from dowise.experiment.status_words import duration
from dowise.plain import amount, counted
from dowise.service.pages.forms import sentence
from dowise.service.visitors import Visitor

__all__ = ["address_of", "error_page", "fragment", "is_from_htmx", "render", "static"]


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("dowise.service", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": amount, "chance": _chance, "duration": duration, "sentence": sentence,
    }  # fmt: skip
    environment.globals |= {
        "counted": counted, "version": dowise.__version__, "address_of": address_of,
        "static": static,
    }  # fmt: skip
    return environment


def address_of(name: str, page: str = "now") -> str:
    """Where a page of an experiment is.

    >>> address_of("ward 7/b", "known")
    '/experiments/ward%207/b/known'
    """
    return f"/experiments/{quote(name)}/{page}"


@cache
def static(file: str) -> str:
    """Where a static file is; another place when the file is another, so that no old one is kept.

    >>> static("dowise.css").partition("?v=")[0]
    '/static/dowise.css'
    """
    content = files("dowise.service").joinpath("static", file).read_bytes()
    return f"/static/{file}?v={sha256(content).hexdigest()[:12]}"


def fragment(template: str, **context: Any) -> str:
    """A template filled in, as a text."""
    return _templates().get_template(template).render(**context)


def render(
    request: Request,
    template: str,
    visitor: Visitor | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    /,  # so that a template may have a `status` of its own
    **context: Any,
) -> HTMLResponse:
    """A page or a part of one; templates know the request's visitor as `visitor`."""
    page = fragment(template, visitor=visitor, path=request.url.path, **context)
    # Half a character, which JSON may bring and UTF-8 can't have, must not be the page's end.
    return HTMLResponse(page.encode(errors="replace"), status, dict(headers or {}))


def is_from_htmx(request: Request) -> bool:
    """Whether a part of a page is wanted rather than the whole."""
    return request.headers.get("HX-Request") == "true"


def error_page(
    request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """An error on a page; whoever is not known is sent to the door."""
    if status == 401:
        if is_from_htmx(request):  # whose script says so, and keeps what was typed
            return Response(status_code=401)
        wanted = f"{quote(request.scope['path'])}?{request.url.query}".rstrip("?")
        back = (
            f"?next={quote(wanted, safe='')}" if request.method == "GET" and wanted != "/" else ""
        )
        return RedirectResponse(f"/login{back}", 303)
    visitor = getattr(request.state, "visitor", None)
    title = HTTPStatus(status).phrase
    return render(request, "error.html", visitor, status, headers, title=title, detail=detail)


def _chance(share: float) -> str:
    """A probability as people read it.

    >>> _chance(0.25), _chance(0.0004), _chance(0.9999)
    ('25 %', '< 1 %', '> 99 %')
    """
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 < share < 1 else f"{100 * share:.0f} %"
