"""The page New experiment: write a problem and see what it means, rehearse it, begin."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError
from starlette.datastructures import FormData

from dowise.errors import DowiseError, UnavailableError
from dowise.policies.registry import policy_info, policy_names
from dowise.problem import builtin_names, load_problem
from dowise.problem.problem_file import builtin_path, problem_text
from dowise_web.api.admin import create
from dowise_web.api.schemas import New
from dowise_web.auth import Admin, Principal
from dowise_web.errors import says, status_of
from dowise_web.pages.rendering import (
    Filled,
    address_of,
    in_page_words,
    is_from_htmx,
    render,
    text_in,
)
from dowise_web.pages.results import Chart
from dowise_web.rehearsals import Rehearsals
from dowise_web.sandbox import BadInputError, Sandbox

_AROUND = 2  # lines before and after a mistake
_WIDEST = 160  # letters of a line that are shown
_DIGITS = 20  # of a number


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """The problems that come built in, each with what it is about."""
    return tuple((name, load_problem(name).description or "") for name in builtin_names())


def example_text(name: str) -> str:
    """The text of a built-in problem, in one piece; of any other name nothing.

    >>> example_text("asia").splitlines()[0], example_text("../secret")
    ('name = "asia"', '')
    """
    return _text_of(name) if name in builtin_names() else ""


@cache  # of built-in problems alone: others could be any number
def _text_of(name: str) -> str:
    text = builtin_path(name).read_text("utf-8")
    return problem_text(load_problem(name)) if "graph_file" in text else text


def excerpt(text: str, line: int) -> list[tuple[int, str]]:
    """The lines around one, by their numbers.

    >>> excerpt("a\\nb\\nc\\nd\\ne", 4)
    [(2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')]
    """
    lines = text.split("\n")
    first = max(line - _AROUND, 1)
    return [
        (first + i, f"{one[:_WIDEST]} …" if len(one) > _WIDEST else one)
        for i, one in enumerate(lines[first - 1 : line + _AROUND])
    ]


def number_in(form: FormData, field: str, called: str) -> float | None:
    """The number of a field that may be empty; whole ones as such."""
    text = text_in(form, field)
    if not text:
        return None
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float("nan")
    if not isfinite(number) or len(text) > _DIGITS:
        raise BadInputError(f"{called}: {text!r:.40} is no number", field)
    return int(number) if number.is_integer() else number


def whole_in(form: FormData, field: str, called: str) -> int:
    """The whole number of a field."""
    text = text_in(form, field)
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        raise BadInputError(f"{called}: {text!r:.40} is no whole number", field)
    return int(text)


def charts_of(found: dict[str, Any]) -> list[Chart]:
    """The curves of a rehearsal, means over its worlds."""
    looks = found["looks"]
    rounds = [look["round"] for look in looks]
    regret = [
        {"name": found["policy"], "colour": 1, "leads": True,
         "values": [look["regret"]["mean"] for look in looks]},
        {"name": "at random", "colour": "others", "leads": False,
         "values": [look["at_random"] for look in looks]},
    ]  # fmt: skip
    shares = [
        {"name": "sure", "colour": 1, "leads": True,
         "values": [look["sure"]["mean"] for look in looks]},
        {"name": "right", "colour": 2, "leads": False, "values": [look["best"] for look in looks]},
        {"name": "advised to stop", "colour": 3, "leads": False,
         "values": [look["stopped"] for look in looks]},
    ]  # fmt: skip
    return [
        Chart("What it costs in all (regret)", "rounds", rounds, regret),
        Chart("How sure one is, and how rightly", "rounds", rounds, shares, [0, 1]),
    ]


router = APIRouter(prefix="/new")

_EMPTY = {
    "problem": "", "name": "", "suggested": "", "policy": "best", "floor": "", "prior": "",
    "seed": "", "ignore_restricted": "", "horizon": "200", "worlds": "20", "tolerance": "",
    "delay": "0",
}  # fmt: skip


@router.get("")
def new(
    request: Request, visitor: Admin, example: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """The page, empty or with an example."""
    return _page(request, visitor, {"problem": example_text(example)})


@router.post("")
def begin(request: Request, visitor: Admin, form: Filled) -> Response:
    """Begin the experiment, and go there."""
    try:
        body = _body(form, _workshop(request))
        made = create(request, visitor, body)
    except DowiseError as error:
        return _again(request, visitor, form, error)
    return RedirectResponse(address_of(made["name"]), 303)


@router.post("/preview")
def preview(request: Request, visitor: Admin, form: Filled) -> Response:
    """What the problem means, or what is wrong with it: a part of the page."""
    text = _problem(form)
    try:
        found = _workshop(request).preview(text)
    except DowiseError as error:
        return render(request, "new_preview.html", visitor, **_wrong(request, text, error))
    return render(request, "new_preview.html", visitor, page=found, error=None)


@router.post("/look")
def look(request: Request, visitor: Admin, form: Filled) -> Response:
    """The whole page with the same; a graph alone becomes the draft of a problem."""
    sent = _sent(form)
    try:
        found = _workshop(request).preview(sent["problem"])
    except DowiseError as error:
        return _page(request, visitor, sent, 422, **_wrong(request, sent["problem"], error))
    if found["made_of"] is None:
        return _page(request, visitor, sent, page=found)
    return _page(request, visitor, {**sent, "problem": found["problem"]})


@router.post("/rehearse")
def rehearse(request: Request, visitor: Admin, form: Filled) -> Response:
    """Begin a rehearsal, and say how far it is."""
    try:
        started = _rehearsals(request).start(
            _problem(form),
            policy=text_in(form, "policy") or "best",
            options=_options(form),
            horizon=whole_in(form, "horizon", "How many rounds"),
            worlds=whole_in(form, "worlds", "Worlds"),
            delay=whole_in(form, "delay", "Rounds that outcomes come late"),
            tolerance=number_in(form, "tolerance", "A loss that does not matter"),
        )
    except DowiseError as error:
        return _rehearsal(request, visitor, None, _words(request, error))
    if is_from_htmx(request):
        return _rehearsal(request, visitor, started)
    return RedirectResponse(f"/new/rehearsal/{started.id}", 303)


@router.get("/rehearsal/{id}")
def rehearsal(request: Request, visitor: Admin, id: str) -> Response:  # noqa: A002 (its name)
    """How far a rehearsal is, or what came out of it."""
    return _rehearsal(request, visitor, _rehearsals(request).find(id))


@router.post("/rehearsal/{id}/stop")
def stop(request: Request, visitor: Admin, id: str) -> Response:  # noqa: A002 (its name)
    """End a rehearsal."""
    found = _rehearsals(request).find(id)
    found.stop()
    return _rehearsal(request, visitor, found)


# -- what is sent -----------------------------------------------------------------------------


def _problem(form: FormData) -> str:
    """The text of the problem, with the line ends that it had before the browser sent it."""
    sent = form.get("problem")
    return sent.replace("\r\n", "\n") if isinstance(sent, str) else ""


def _sent(form: FormData) -> dict[str, str]:
    """All fields, so that nothing that was typed is lost."""
    return {**{name: text_in(form, name) for name in _EMPTY}, "problem": _problem(form)}


def _options(form: FormData) -> dict[str, Any]:
    """The policy's, as far as they were given."""
    given = {
        "floor": number_in(form, "floor", "The floor"),
        "prior": number_in(form, "prior", "The prior"),
    }
    return {name: number for name, number in given.items() if number is not None}


def _body(form: FormData, workshop: Sandbox) -> New:
    problem = _problem(form)
    if not problem.strip():
        raise BadInputError("write a problem first", "problem")
    name = text_in(form, "name") or text_in(form, "suggested")
    if not name:
        found = workshop.preview(problem)  # whose errors come first
        name = str(found.get("name") or "")
    if not name:
        raise BadInputError("give the experiment a name", "name")
    try:
        return New(
            name=name,
            problem=problem,
            policy=text_in(form, "policy") or "best",
            options=_options(form),
            seed=text_in(form, "seed") or None,
            learn_restricted=not text_in(form, "ignore_restricted"),
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


# -- what is shown ----------------------------------------------------------------------------


def _workshop(request: Request) -> Sandbox:
    found: Sandbox | None = request.app.state.workshop
    if found is None:
        raise UnavailableError("this server takes no new problems")
    return found


def _rehearsals(request: Request) -> Rehearsals:
    _workshop(request)
    found: Rehearsals = request.app.state.rehearsals
    return found


def _words(request: Request, error: DowiseError) -> str:
    return in_page_words(says(request, error))


def _page(
    request: Request,
    visitor: Principal,
    sent: Mapping[str, str],
    status: int = 200,
    failed: str = "",
    page: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> HTMLResponse:
    """The page with what was typed; `failed` is why nothing began, the rest what it means."""
    policies = [policy_info(name) for name in ("best", *policy_names()) if name != "best"]
    return render(
        request, "new.html", visitor, status, sent={**_EMPTY, **sent}, failed=failed,
        examples=examples(), best=policy_info("best"), policies=policies,
        most=_workshop(request).limits.text_bytes, page=page, error=error,
    )  # fmt: skip


def _again(
    request: Request, visitor: Principal, form: FormData, error: DowiseError
) -> HTMLResponse:
    """The page with all that was typed, and what was wrong with it."""
    return _page(request, visitor, _sent(form), status_of(error), _words(request, error))


def _wrong(request: Request, text: str, error: DowiseError) -> dict[str, Any]:
    """A problem that can't be, for its template: the words, and the lines around the place."""
    line, column = getattr(error, "line", None), getattr(error, "column", None)
    wrong = {
        "why": _words(request, error), "line": line, "column": column, "is_empty": not text.strip(),
        "lines": [] if line is None else excerpt(text, line),
    }  # fmt: skip
    return {"page": None, "error": wrong}


def _rehearsal(request: Request, visitor: Principal, found: Any, wrong: str = "") -> HTMLResponse:
    """A rehearsal as a part of the page, or as a page of its own where there is no script."""
    if found is not None and found.error is not None and not found.is_stopped:
        wrong = _words(request, found.error)
    drawn = charts_of(found.found) if found is not None and found.found is not None else []
    template = "new_rehearsal.html" if is_from_htmx(request) else "rehearsal.html"
    return render(request, template, visitor, rehearsal=found, wrong_words=wrong, drawn=drawn)
