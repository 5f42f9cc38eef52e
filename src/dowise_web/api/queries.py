"""Queries: status, decisions, explanations and history; the journal, its audit and its export."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

import dowise
from dowise.errors import DowiseError
from dowise.experiment import (
    KINDS,
    POINTS,
    CaseStatus,
    Event,
    Head,
    StateView,
    as_text,
    belief_to_json,
    case_to_json,
    decision_to_json,
    evaluation_to_json,
    explanation_to_json,
    formula_view,
    status_to_json,
    target_from_json,
    variable_view,
)
from dowise_web.api.dependencies import (
    PREFIX,
    PROBLEMS,
    ContextQuery,
    CurrentView,
    DecisionId,
    ReadExperiment,
    cached,
    check_policy_name,
    context_key,
    get_registry,
    json_response,
    not_modified,
    parse_context,
    run_long,
)
from dowise_web.api.schemas import CASE, EVENTS, STATUS, Evaluate, keyword_options
from dowise_web.auth import Principal, Reader, is_still_valid

router = APIRouter(prefix=PREFIX, responses=PROBLEMS)
_QUERIES: list[Any] = ["queries"]
_JOURNAL: list[Any] = ["journal"]

MAX_OPTION = 10_000  # of a policy's numeric option, such as draws per decision
MAX_ROUNDS = 10_000  # of the value of continuing, which takes seconds
EVENTS_PER_READ = 1000
MAX_EVENT_BODY = 100_000  # characters; larger ones, with records, are not listed
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

_TABLE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The table.", "content": {"text/csv": {}, "application/json": {}}}
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "The stream.", "content": {"text/event-stream": {}}}
}


def entity_tag(head: Head, request: Request) -> str:
    """Return the ETag of a document: it depends on the journal's head and the URL."""
    source = f"{dowise.__version__}|{head}|{request.url.path}|{request.url.query}"
    return f'W/"{hashlib.sha256(source.encode()).hexdigest()[:32]}"'


@router.get("/status", tags=_QUERIES, responses=STATUS)
async def status(
    request: Request,
    view: CurrentView,
    context: ContextQuery = None,
    tolerance: Annotated[float | None, Query(ge=0, allow_inf_nan=False)] = None,
    rounds: Annotated[int | None, Query(ge=1, le=MAX_ROUNDS)] = None,
    evidence: bool | None = None,
) -> Response:
    """Return the expected reward of each arm, its uncertainty, and missing values. Has an ETag."""
    unchanged = not_modified(request, entity_tag(view.head, request))
    if unchanged is not None:
        return unchanged
    labels = parse_context(context, view.problem)
    view, result = await cached(
        request,
        view,
        ("status", context_key(labels), rounds, evidence),
        lambda view: view.status(labels, evidence, rounds),
        is_long=bool(rounds or evidence),
    )
    headers = {"ETag": entity_tag(view.head, request), "Cache-Control": "private, no-cache"}
    return json_response(status_to_json(result, tolerance), headers=headers)


@router.get("/decisions", tags=_QUERIES)
def decisions(
    view: CurrentView,
    status: CaseStatus | None = None,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """List the decisions with their outcomes, oldest first; `next` continues the list."""
    cases = view.decisions(after, limit + 1, status)
    following = cases[limit - 1].id if len(cases) > limit else None
    listed = [case.as_dict(view.problem) for case in cases[:limit]]
    return json_response({"decisions": listed, "next": following})


@router.get("/decisions/{id}", tags=_QUERIES, responses=CASE)
def decision(view: CurrentView, id: DecisionId) -> Response:  # noqa: A002
    """Return a decision with its outcome."""
    case = view.case(id)
    as_made = None if case.status == "erased" else decision_to_json(view.decision(id))
    return json_response(case_to_json(view, case) | {"decision": as_made})


@router.get("/explain/{id}", tags=_QUERIES)
async def explain(request: Request, view: CurrentView, id: DecisionId) -> Response:  # noqa: A002
    """Explain why a decision was made."""
    _, explanation = await cached(
        request, view, ("explain", id), lambda view: view.explain(id), is_long=True
    )
    return json_response(explanation_to_json(explanation))


@router.get("/counted", tags=_QUERIES)
async def counted(request: Request, view: CurrentView) -> Response:
    """Count the past records that the policy learns from, and the others by reason."""
    return json_response((await run_long(request, view.counted)).as_dict())


@router.get("/belief", tags=_QUERIES)
async def belief(request: Request, view: CurrentView) -> Response:
    """Return the belief: counts of every variable by the values of its causes."""
    return json_response(await run_long(request, lambda: belief_to_json(view.belief)))


@router.get("/variable", tags=_QUERIES)
async def variable(
    request: Request, view: CurrentView, variable: Annotated[str, Query(max_length=1000)]
) -> Response:
    """Return the tables of a variable, with counts and intervals."""
    _, tables = await cached(
        request,
        view,
        ("variable", variable),
        lambda view: variable_view(view.belief, variable),
    )
    return json_response(tables.as_dict())


@router.get("/formula", tags=_QUERIES)
def formula(view: CurrentView, arm: Annotated[str, Query(max_length=10_000)]) -> Response:
    """Return the formula of an arm's expected reward."""
    return json_response(formula_view(view.problem, arm).as_dict())


@router.get("/history", tags=_QUERIES)
async def history(
    request: Request,
    view: CurrentView,
    context: ContextQuery = None,
    points: Annotated[int, Query(ge=2, le=200)] = POINTS,
) -> Response:
    """Return the status at points along the journal."""
    labels = parse_context(context, view.problem)
    _, result = await cached(
        request,
        view,
        ("history", context_key(labels), points),
        lambda view: view.history(labels, points),
        is_long=True,
    )
    return json_response(result.as_dict())


@router.post("/evaluate", tags=_QUERIES)
async def evaluate(request: Request, view: CurrentView, body: Evaluate) -> Response:
    """Estimate what another policy, or one arm for everyone, would have earned."""
    target = target_from_json(body.policy)
    if isinstance(target, str) and not target.lstrip().startswith("do("):
        check_policy_name(target)
    elif body.options:
        raise DowiseError("an arm takes no options: leave them out", code="unknown-option")
    _check_options(body.options or {})
    options = keyword_options(body.options)
    evaluation = await run_long(request, view.evaluate, target, options, body.level)
    return json_response(evaluation_to_json(evaluation))


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that would take all time or memory of the server: any reader may evaluate."""
    for name, value in options.items():
        if isinstance(value, int | float) and value > MAX_OPTION:
            raise DowiseError(
                f"{name}={value:.6g} is too large for a server: use at most {MAX_OPTION:,}, or "
                "evaluate a copy of the store with `dowise evaluate`",
                code="too-large",
            )


# -- the journal --------------------------------------------------------------------------------


@router.get("/events", tags=_JOURNAL, responses=EVENTS)
def events(
    view: CurrentView,
    principal: Reader,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    kind: Annotated[str | None, Query(pattern=f"^({'|'.join(KINDS)})$")] = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """List the events of the journal; `next` continues the list. Only admins see the seed."""
    return json_response(_list_events(view, principal, after, limit, kind, search))


def _list_events(
    view: StateView,
    principal: Principal,
    after: int,
    limit: int,
    kind: str | None,
    search: str | None,
) -> dict[str, Any]:
    matching: list[Event] = []
    is_admin, last = principal.may("admin"), view.head.number
    while after < last and len(matching) <= limit:
        upto = min(after + EVENTS_PER_READ, last)
        matching += [
            event
            for event in view.events(after, upto)
            if (kind is None or event.kind == kind) and _contains(event, search, is_admin)
        ]
        after = upto
    following = matching[limit - 1].number if len(matching) > limit else None
    listed = [_event_to_json(event, is_admin) for event in matching[:limit]]
    return {"events": listed, "next": following}


def _event_to_json(event: Event, is_admin: bool) -> dict[str, Any]:
    """Return an event without the seed, by which arms could be predicted, unless for an admin."""
    data: dict[str, Any] = event.row()
    payload, is_whole = event.payload, len(event.body) <= MAX_EVENT_BODY
    if not is_whole:
        payload = {"records": payload.get("records")}
    data |= {"body": payload, "is_whole": is_whole}
    if not is_admin:
        data |= {"body": _without_seed(payload), "is_whole": False, "salt": None}
    return data


def _without_seed(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name != "seed"}


def _contains(event: Event, search: str | None, is_admin: bool) -> bool:
    """Return True if an event contains a text, in the part that the principal may see."""
    if search is None:
        return True
    is_public = is_admin or "seed" not in event.payload
    body = event.body if is_public else as_text(_without_seed(event.payload))
    return search.casefold() in f"{event.actor} {body}".casefold()


@router.get("/stream", tags=_JOURNAL, response_class=StreamingResponse, responses=_STREAM)
async def stream(request: Request, name: str, principal: Reader) -> Response:
    """Stream server-sent events: `head` with the number of the last event, when it grows."""
    streams = request.app.state.streams
    streams.check(principal.id)
    await run_in_threadpool(get_registry(request).experiment, name)
    return StreamingResponse(
        streams.subscribe(name, principal.id, partial(is_still_valid, request)),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


@router.get("/audit", tags=_JOURNAL)
async def audit(
    request: Request,
    experiment: ReadExperiment,
    head: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Check that the journal is complete, and every decision follows from what was known then."""
    # Not cached: a journal that was tampered with may have the same head.
    return json_response((await run_long(request, experiment.audit, head)).as_dict())


@router.get("/export", tags=_JOURNAL, response_class=Response, responses=_TABLE)
def export(
    view: CurrentView,
    format: Annotated[str, Query(pattern="^(csv|json)$")] = "csv",  # noqa: A002
) -> Response:
    """Export all decisions as CSV that is safe in a spreadsheet, or as columns in JSON."""
    table = view.table()
    if format == "json":
        return json_response(table)
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in view.name)
    return Response(
        safe_csv(table),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.csv"'},
    )


def safe_csv(table: dict[str, list[Any]]) -> bytes:
    """Return a table as CSV in which no cell is taken for a formula: such cells start with a '.

    >>> safe_csv({"X": ["=1+1", "-1", "low"]})
    b"X\\r\\n'=1+1\\r\\n'-1\\r\\nlow\\r\\n"
    """
    text = io.StringIO(newline="")
    # Python quotes cells that contain the line terminator; spreadsheets end lines at \r and at \n.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_escape_formula(name) for name in table])
    for row in zip(*table.values(), strict=True):
        writer.writerow([_escape_formula(cell) for cell in row])
    return text.getvalue().encode()


def _escape_formula(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(_FORMULA_SIGNS):
        return f"'{cell}"
    return "" if cell is None else cell
