"""Templates, forms and error pages, shared by all pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

import dowise
from dowise._core.document import format_number, pluralize
from dowise.errors import DowiseError
from dowise.experiment import StateView, duration
from dowise_web.auth import Principal, read_form
from dowise_web.errors import public_message

MISSING = "-"  # sent by a field for a value that is permanently missing
SentForm = Annotated[FormData, Depends(read_form)]


# -- forms --------------------------------------------------------------------------------------


def encode_value(label: str | None) -> str:
    """Encode a value for a field of a form.

    >>> encode_value("low"), encode_value(None)
    ('=low', '-')
    """
    return MISSING if label is None else f"={label}"


def get_values(form: FormData | Mapping[str, object], prefix: str) -> dict[str, str | None]:
    """Return the values of variables from the fields with a prefix, without empty fields.

    >>> get_values({"seen.Z": "=low", "seen.Y": "", "seen.X": "-", "reason": "=a"}, "seen.")
    {'Z': 'low', 'X': None}
    """
    values: dict[str, str | None] = {}
    for field, sent in form.items():
        if field.startswith(prefix) and sent:
            name = field.removeprefix(prefix)
            if not isinstance(sent, str) or not (sent == MISSING or sent.startswith("=")):
                raise DowiseError(
                    f"{name}: {sent!r:.80} is not one of the values on the page",
                    code="unknown-value",
                )
            values[name] = None if sent == MISSING else sent[1:]
    return values


def get_text(form: FormData, field: str) -> str:
    """Return the text of a field, stripped."""
    sent = form.get(field)
    return sent.strip() if isinstance(sent, str) else ""


def get_lines(form: FormData, field: str) -> list[str] | None:
    """Return all ticked values of a field, or the lines of its text; None if there are none."""
    texts = [sent for sent in form.getlist(field) if isinstance(sent, str)]
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    return lines or None


# -- texts --------------------------------------------------------------------------------------

# Messages of the library name its verbs; pages have forms instead.
_FORM_NAMES = {"`amend`": "“Correct something”", "`tell`": "“Save the outcome”"}


def page_message(request: Request, error: DowiseError) -> str:
    """Return an error message for a page, as a sentence."""
    message = public_message(request, error)
    for verb, form in _FORM_NAMES.items():
        message = message.replace(verb, form)
    return sentence(message)


def sentence(text: str) -> str:
    """Return a text with a capital letter, unless it starts with an arm, and a full stop.

    >>> sentence("do(X=1) looks better"), sentence("choose a value")
    ('do(X=1) looks better.', 'Choose a value.')
    """
    first = text[:1] if text.startswith("do(") else text[:1].upper()
    return f"{first}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


def format_chance(share: float) -> str:
    """Format a probability for readers.

    >>> format_chance(0.25), format_chance(0.0004), format_chance(0.9999)
    ('25 %', '< 1 %', '> 99 %')
    """
    if 0 < share < 0.005:
        return "< 1 %"
    return "> 99 %" if 0.995 < share < 1 else f"{100 * share:.0f} %"


# -- templates ----------------------------------------------------------------------------------


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("dowise_web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": format_number,
        "chance": format_chance,
        "duration": duration,
        "sentence": sentence,
    }
    environment.globals |= {
        "pluralize": pluralize,
        "version": dowise.__version__,
        "page_url": page_url,
        "static": static_url,
    }
    return environment


def page_url(name: str, page: str = "now") -> str:
    """Return the URL of a page of an experiment.

    >>> page_url("ward 7/b", "known")
    '/experiments/ward%207/b/known'
    """
    return f"/experiments/{quote(name)}/{page}"


@cache
def static_url(file: str) -> str:
    """Return the URL of a static file, which changes with its content.

    >>> static_url("dowise.css").partition("?v=")[0]
    '/static/dowise.css'
    """
    content = files("dowise_web").joinpath("static", file).read_bytes()
    return f"/static/{file}?v={sha256(content).hexdigest()[:12]}"


def render(
    request: Request,
    template: str,
    principal: Principal | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    /,  # so that a template may have a variable `status`
    **context: Any,
) -> HTMLResponse:
    """Render a page or a part of one. A page of an experiment needs its `view`."""
    view: StateView | None = context.setdefault("view", None)
    if view is not None:
        context |= {"name": view.name, "head": view.head, "base_url": page_url(view.name, "")[:-1]}
    context |= {"principal": principal, "path": request.url.path}
    html = _templates().get_template(template).render(context)
    # JSON may contain lone surrogates, which UTF-8 can't encode.
    return HTMLResponse(html.encode(errors="replace"), status, dict(headers or {}))


async def render_in_thread(*arguments: Any, **context: Any) -> HTMLResponse:
    """Call `render` from an async endpoint, without blocking the event loop."""
    return await run_in_threadpool(partial(render, *arguments, **context))


def is_from_htmx(request: Request) -> bool:
    """Return True if the request is for a part of a page."""
    return request.headers.get("HX-Request") == "true"


def error_page(
    request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error as a page; unknown principals are sent to the login page."""
    if status == 401:
        if is_from_htmx(request):  # its script tells the user, and keeps what was typed
            return Response(status_code=401)
        wanted = f"{quote(request.scope['path'])}?{request.url.query}".rstrip("?")
        has_target = request.method == "GET" and wanted != "/"
        query = f"?next={quote(wanted, safe='')}" if has_target else ""
        return RedirectResponse(f"/login{query}", 303)
    principal = getattr(request.state, "principal", None)
    title = HTTPStatus(status).phrase
    return render(request, "error.html", principal, status, headers, title=title, detail=detail)
