"""From a template to an answer: what every page is given, and what an error looks like on one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData

import dowise
from dowise._core.document import format_number, pluralize
from dowise.errors import DowiseError
from dowise.experiment.status import duration
from dowise_web.auth import Principal, form_of

MISSING = "-"
Filled = Annotated[FormData, Depends(form_of)]


def as_sent(label: str | None) -> str:
    """What a field sends for a value.

    >>> as_sent("low"), as_sent(None)
    ('=low', '-')
    """
    return MISSING if label is None else f"={label}"


def values_in(form: FormData | Mapping[str, object], prefix: str) -> dict[str, str | None]:
    """The values of the variables whose fields begin so, without those that were left open.

    >>> values_in({"seen.Z": "=low", "seen.Y": "", "seen.X": "-", "reason": "=a"}, "seen.")
    {'Z': 'low', 'X': None}
    """
    found: dict[str, str | None] = {}
    for field, sent in form.items():
        if field.startswith(prefix) and sent:
            name = field.removeprefix(prefix)
            if not isinstance(sent, str) or not (sent == MISSING or sent.startswith("=")):
                raise DowiseError(f"the field of {name} holds {sent!r:.80}: choose a value of it")
            found[name] = None if sent == MISSING else sent[1:]
    return found


def text_in(form: FormData, field: str) -> str:
    """A field's text, without blanks around it."""
    sent = form.get(field)
    return sent.strip() if isinstance(sent, str) else ""


def texts_in(form: FormData, field: str) -> list[str] | None:
    """All that was ticked under a name, or the lines of a text; None where nothing was."""
    sent = [one for one in form.getlist(field) if isinstance(one, str)]
    lines = [line.strip() for one in sent for line in one.splitlines() if line.strip()]
    return lines or None


# Errors name commands and options, which a page does not have: it has forms with other names.
_HERE = (
    (re.compile(r"say why: (amend|withdraw) needs a `reason`"), "say why, in the field Reason"),
    (re.compile(r"nothing was told; say what was seen, Y=1"), "choose a value of what was seen"),
    (re.compile(r"say what is corrected, such as Y=0"), "change what is to be corrected"),
    (
        re.compile(r"`amend` corrects it, `erase` takes it out for good"),
        "“Correct something” corrects it",
    ),
    (re.compile(r"`amend` corrects it"), "“Correct something” changes it"),
    (
        re.compile(r"`tell` tells it, `amend` corrects what was told"),
        "tell it under “What was seen”",
    ),
    (
        re.compile(r"say what \(`played`\)"),
        "say what, under “Something else was done”",
    ),
    (
        re.compile(r"`unrelated` goes with `played`: (say what was done instead)"),
        r"\1, too",
    ),
    (re.compile(r"\. `import` brings what was seen in as a record of its own"), ""),
    (re.compile(r": another question needs another `request_id`"), ""),
)  # fmt: skip


def in_page_words(said: str) -> str:
    """An error as it reads where there are forms instead of commands.

    >>> in_page_words("say why: amend needs a `reason`")
    'Say why, in the field Reason.'
    """
    for pattern, words in _HERE:
        said = pattern.sub(words, said)
    return sentence(said)


def sentence(said: str) -> str:
    """With a capital, unless it begins with an arm's name, and a full stop.

    >>> sentence("do(X=1) looks better"), sentence("nothing was told")
    ('do(X=1) looks better.', 'Nothing was told.')
    """
    first = said[:1] if said.startswith("do(") else said[:1].upper()
    return f"{first}{said[1:]}{'' if said.endswith(('.', '?', '!')) else '.'}"


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
        "amount": format_number, "chance": _chance, "duration": duration, "sentence": sentence,
    }  # fmt: skip
    environment.globals |= {
        "counted": pluralize, "version": dowise.__version__, "address_of": address_of,
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
    content = files("dowise_web").joinpath("static", file).read_bytes()
    return f"/static/{file}?v={sha256(content).hexdigest()[:12]}"


def fragment(template: str, **context: Any) -> str:
    """A template filled in, as a text."""
    return _templates().get_template(template).render(**context)


def render(
    request: Request,
    template: str,
    visitor: Principal | None = None,
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
