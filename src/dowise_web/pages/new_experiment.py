"""The page New experiment: write a problem and see what it means, rehearse it, start."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError
from starlette.datastructures import FormData

from dowise.errors import DowiseError
from dowise.policies import policy_info, policy_names
from dowise.problem import (
    builtin_names,
    builtin_path,
    is_prior_name,
    load_problem,
    problem_text,
)
from dowise_web.api.admin import create_experiment
from dowise_web.api.schemas import NewExperiment
from dowise_web.auth import Admin, Principal
from dowise_web.errors import http_status
from dowise_web.pages.rendering import (
    SentForm,
    get_text,
    is_from_htmx,
    page_message,
    page_url,
    render,
)
from dowise_web.pages.results import Chart
from dowise_web.sandbox import BadInputError, RehearsalJob, RehearsalJobs, Sandbox, get_sandbox

router = APIRouter(prefix="/new")

CONTEXT_LINES = 2  # lines shown before and after an error
MAX_LINE = 160  # characters of a line that are shown
MAX_DIGITS = 20

_EMPTY_FIELDS = ("problem", "name", "suggested", "floor", "prior", "seed", "tolerance")
_EMPTY_BOXES = ("ignore_restricted", "skip_trials")
_DEFAULTS = {
    **dict.fromkeys((*_EMPTY_FIELDS, *_EMPTY_BOXES), ""),
    "policy": "best",
    "horizon": "200",
    "worlds": "20",
    "delay": "0",
}


@router.get("")
def new(
    request: Request, principal: Admin, example: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Show the page, empty or with an example."""
    return _render_page(request, principal, {"problem": example_text(example)})


@router.post("")
def begin(request: Request, principal: Admin, form: SentForm) -> Response:
    """Create the experiment and go there, or show the page with what is wrong."""
    try:
        created = create_experiment(request, principal, _body(form, get_sandbox(request.app)))
    except DowiseError as error:
        message = page_message(request, error)
        return _render_page(request, principal, _sent(form), http_status(error), message)
    return RedirectResponse(page_url(created["name"]), 303)


@router.post("/preview")
def preview(request: Request, principal: Admin, form: SentForm) -> Response:
    """Show what the problem means, or what is wrong with it: a part of the page."""
    text = _problem(form)
    try:
        result = get_sandbox(request.app).preview(text)
    except DowiseError as error:
        error_context = _problem_error(request, text, error)
        return render(request, "new_preview.html", principal, preview=None, error=error_context)
    return render(request, "new_preview.html", principal, preview=result, error=None)


@router.post("/look")
def look(request: Request, principal: Admin, form: SentForm) -> Response:
    """Show the whole page with a preview; a graph alone becomes the draft of a problem."""
    sent = _sent(form)
    try:
        result = get_sandbox(request.app).preview(sent["problem"])
    except DowiseError as error:
        error_context = _problem_error(request, sent["problem"], error)
        return _render_page(request, principal, sent, 422, error=error_context)
    if result["made_of"] is None:
        return _render_page(request, principal, sent, preview=result)
    return _render_page(request, principal, {**sent, "problem": result["problem"]})


@router.post("/rehearse")
def rehearse(request: Request, principal: Admin, form: SentForm) -> Response:
    """Start a rehearsal, and show its progress."""
    try:
        job = _rehearsals(request).start(
            _problem(form),
            policy=get_text(form, "policy") or "best",
            options=_options(form),
            horizon=parse_whole_number(form, "horizon", "Rounds"),
            worlds=parse_whole_number(form, "worlds", "Worlds"),
            delay=parse_whole_number(form, "delay", "Delay of outcomes"),
            tolerance=parse_number(form, "tolerance", "A loss that does not matter"),
        )
    except DowiseError as error:
        return _render_rehearsal(request, principal, None, page_message(request, error))
    if is_from_htmx(request):
        return _render_rehearsal(request, principal, job)
    return RedirectResponse(f"/new/rehearsal/{job.id}", 303)


@router.get("/rehearsal/{id}")
def rehearsal(request: Request, principal: Admin, id: str) -> Response:  # noqa: A002
    """Show the progress or the result of a rehearsal."""
    return _render_rehearsal(request, principal, _rehearsals(request).find(id))


@router.post("/rehearsal/{id}/stop")
def stop(request: Request, principal: Admin, id: str) -> Response:  # noqa: A002
    """End a rehearsal."""
    job = _rehearsals(request).find(id)
    job.stop()
    return _render_rehearsal(request, principal, job)


# -- forms --------------------------------------------------------------------------------------


def parse_number(form: FormData, field: str, label: str) -> float | None:
    """Return the number in a field, None if it is empty."""
    text = get_text(form, field)
    if not text:
        return None
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float("nan")
    if not isfinite(number) or len(text) > MAX_DIGITS:
        raise BadInputError(f"{label}: {text!r:.40} is not a number", field, code="invalid-number")
    return int(number) if number.is_integer() else number


def parse_whole_number(form: FormData, field: str, label: str) -> int:
    """Return the whole number in a field."""
    text = get_text(form, field)
    if not (text.isascii() and text.isdigit()) or len(text) > MAX_DIGITS:
        raise BadInputError(
            f"{label}: {text!r:.40} is not a whole number", field, code="invalid-number"
        )
    return int(text)


def _problem(form: FormData) -> str:
    """Return the text of the problem, with the line ends that it had in the browser."""
    sent = form.get("problem")
    return sent.replace("\r\n", "\n") if isinstance(sent, str) else ""


def _sent(form: FormData) -> dict[str, str]:
    """Return all fields, so that the page can show them again."""
    return {**{name: get_text(form, name) for name in _DEFAULTS}, "problem": _problem(form)}


def _options(form: FormData) -> dict[str, Any]:
    is_best, prior = get_text(form, "policy") in ("", "best"), get_text(form, "prior")
    strength = "Prior (flat, pooled or a number)"
    options = {
        "floor": parse_number(form, "floor", "Floor"),
        "prior": prior if is_prior_name(prior) else parse_number(form, "prior", strength),
        "try_all": False if get_text(form, "skip_trials") and is_best else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _body(form: FormData, sandbox: Sandbox) -> NewExperiment:
    problem = _problem(form)
    if not problem.strip():
        raise BadInputError("write a problem first", "problem", code="missing-value")
    name = get_text(form, "name") or get_text(form, "suggested")
    if not name:
        result = sandbox.preview(problem)  # whose errors come first
        name = str(result.get("name") or "")
    if not name:
        raise BadInputError("enter a name for the experiment", "name", code="missing-value")
    try:
        return NewExperiment(
            name=name,
            problem=problem,
            policy=get_text(form, "policy") or "best",
            options=_options(form),
            seed=get_text(form, "seed") or None,
            learn_restricted=not get_text(form, "ignore_restricted"),
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


# -- rendering ----------------------------------------------------------------------------------


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """Return the built-in problems, each with its description."""
    return tuple((name, load_problem(name).description or "") for name in builtin_names())


def example_text(name: str) -> str:
    """Return the text of a built-in problem in one piece; nothing for any other name.

    >>> example_text("asia").splitlines()[0], example_text("../secret")
    ('name = "asia"', '')
    """
    return _builtin_text(name) if name in builtin_names() else ""


@cache  # of built-in problems only: other names could fill the memory
def _builtin_text(name: str) -> str:
    text = builtin_path(name).read_text("utf-8")
    return problem_text(load_problem(name)) if "graph_file" in text else text


def excerpt(text: str, line: int) -> list[tuple[int, str]]:
    """Return the lines around a line, with their numbers.

    >>> excerpt("a\\nb\\nc\\nd\\ne", 4)
    [(2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')]
    """
    first = max(line - CONTEXT_LINES, 1)
    lines = text.split("\n")[first - 1 : line + CONTEXT_LINES]
    return [
        (number, f"{content[:MAX_LINE]} …" if len(content) > MAX_LINE else content)
        for number, content in enumerate(lines, first)
    ]


def rehearsal_charts(result: dict[str, Any]) -> list[Chart]:
    """Return the curves of a rehearsal, averaged over its worlds."""
    looks = result["looks"]
    rounds = [look["round"] for look in looks]
    regret = [
        _series(result["policy"], 1, [look["regret"]["mean"] for look in looks]),
        _series("random choice", "others", [look["at_random"] for look in looks]),
    ]
    shares = [
        _series("certainty", 1, [look["sure"]["mean"] for look in looks]),
        _series("correct", 2, [look["best"] for look in looks]),
        _series("advised to stop", 3, [look["stopped"] for look in looks]),
    ]
    return [
        Chart("Total loss against the best arm (regret)", "rounds", rounds, regret),
        Chart("How certain the result is, and how often correct", "rounds", rounds, shares, [0, 1]),
    ]


def _series(name: str, colour: int | str, values: list[float]) -> dict[str, Any]:
    return {"name": name, "colour": colour, "leads": colour == 1, "values": values}


def _rehearsals(request: Request) -> RehearsalJobs:
    get_sandbox(request.app)  # raises an error if there is none
    rehearsals: RehearsalJobs = request.app.state.rehearsals
    return rehearsals


def _render_page(
    request: Request,
    principal: Principal,
    sent: Mapping[str, str],
    status: int = 200,
    failure: str = "",
    preview: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> HTMLResponse:
    """Render the page with what was typed; `failure` is why the experiment was not created."""
    return render(
        request,
        "new.html",
        principal,
        status,
        sent={**_DEFAULTS, **sent},
        failure=failure,
        examples=examples(),
        best=policy_info("best"),
        policies=[policy_info(name) for name in policy_names() if name != "best"],
        max_bytes=get_sandbox(request.app).limits.text_bytes,
        preview=preview,
        error=error,
    )


def _problem_error(request: Request, text: str, error: DowiseError) -> dict[str, Any]:
    """Return an error in a problem for its template, with the lines around it."""
    line, column = getattr(error, "line", None), getattr(error, "column", None)
    return {
        "message": page_message(request, error),
        "line": line,
        "column": column,
        "is_empty": not text.strip(),
        "lines": [] if line is None else excerpt(text, line),
    }


def _render_rehearsal(
    request: Request, principal: Principal, job: RehearsalJob | None, error: str = ""
) -> HTMLResponse:
    """Render a rehearsal as a part of the page, or as its own page without JavaScript."""
    if job is not None and job.error is not None and not job.is_stopped:
        error = page_message(request, job.error)
    charts = rehearsal_charts(job.result) if job is not None and job.result is not None else []
    template = "new_rehearsal.html" if is_from_htmx(request) else "rehearsal.html"
    return render(request, template, principal, rehearsal=job, error=error, charts=charts)
