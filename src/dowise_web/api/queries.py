"""What is known: status, decisions, explanations, history."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response, StreamingResponse

import dowise
from dowise.errors import DowiseError
from dowise.experiment.case import Status as CaseStatus
from dowise.experiment.event import KINDS, Event, Head, as_text
from dowise.experiment.experiment import Experiment
from dowise.experiment.factor_tables import formula_view, variable_view
from dowise.experiment.history import POINTS
from dowise.experiment.wire import (
    belief_to_json,
    case_to_json,
    decision_to_json,
    evaluation_to_json,
    explanation_to_json,
    status_to_json,
    target_from_json,
)
from dowise_web.api.dependencies import (
    PREFIX,
    PROBLEMS,
    ContextQuery,
    Here,
    answer,
    check_policy_name,
    context_in,
    house_of,
    key_of,
    meant,
    not_modified,
    whose,
)
from dowise_web.api.schemas import CASE, EVENTS, STATUS, Evaluate, keyword_options
from dowise_web.auth import Principal, Reader, is_still_known, needs
from dowise_web.cache import PatientRoute

router = APIRouter(prefix=PREFIX, tags=["looking"], responses=PROBLEMS, route_class=PatientRoute)
_MOST = 10_000  # that an option of a policy may ask for, such as draws at each decision
Id = Annotated[int, Path(ge=1, le=2**53, description="The number of a decision.")]
MOST_ROUNDS = 10_000  # which take seconds


def tag_of(head: Head, request: Request) -> str:
    """What an answer can be known by: the journal's head and what was asked of it."""
    asked = f"{dowise.__version__}|{head}|{request.url.path}|{request.url.query}"
    return f'W/"{hashlib.sha256(asked.encode()).hexdigest()[:32]}"'


@router.get("/status", responses=STATUS)
def status(
    request: Request,
    experiment: Here,
    context: ContextQuery = None,
    tolerance: Annotated[float | None, Query(ge=0, allow_inf_nan=False)] = None,
    rounds: Annotated[int | None, Query(ge=1, le=MOST_ROUNDS)] = None,
    evidence: bool | None = None,
) -> Response:
    """What each arm is expected to bring, how sure that is, what is open; with an ETag."""
    tag = tag_of(experiment.head, request)
    if (known := not_modified(request, tag)) is not None:
        return known
    seen = meant(experiment, context_in(context))
    head, found = house_of(request).look(
        experiment,
        ("status", key_of(seen), rounds, evidence),
        lambda: experiment.status(seen, evidence, rounds),
        whose(request) if rounds or evidence else None,
    )
    headers = {"ETag": tag_of(head, request), "Cache-Control": "private, no-cache"}
    return answer(status_to_json(found, tolerance), headers=headers)


@router.get("/decisions")
def decisions(
    experiment: Here,
    status: CaseStatus | None = None,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The decisions with what was told of them, oldest first; `next` goes on."""
    problem, found = experiment.problem, experiment.decisions(after, limit + 1, status)
    page, more = found[:limit], len(found) > limit
    rest = page[-1].id if more else None
    return answer({"decisions": [case.as_dict(problem) for case in page], "next": rest})


@router.get("/decisions/{id}", responses=CASE)
def decision(experiment: Here, id: Id) -> Response:  # noqa: A002 (its name)
    """One decision, with what was told of it."""
    view = experiment.view()
    case = view.case(id)
    made = None if case.status == "erased" else decision_to_json(view.decision(id))
    return answer(case_to_json(view, case) | {"decision": made})


@router.get("/explain/{id}")
def explain(request: Request, experiment: Here, id: Id) -> Response:  # noqa: A002
    """Why a decision came out as it did."""
    _, found = house_of(request).look(
        experiment, ("explain", id), lambda: experiment.explain(id), whose(request)
    )
    return answer(explanation_to_json(found))


@router.get("/counted")
def counted(request: Request, experiment: Here) -> Response:
    """How many past records the policy learns from, and why not from the others."""
    with house_of(request).long_look(whose(request)):
        return answer(experiment.counted().as_dict())


@router.get("/belief")
def belief(request: Request, experiment: Here) -> Response:
    """What is known of every variable: counts by what they depend on."""
    with house_of(request).long_look(whose(request)):
        return answer(belief_to_json(experiment.belief))


@router.get("/variable")
def variable(
    request: Request, experiment: Here, variable: Annotated[str, Query(max_length=1000)]
) -> Response:
    """What is known of a variable: its factor, with counts and intervals."""
    key = ("variable", variable)
    _, found = house_of(request).look(
        experiment, key, lambda: variable_view(experiment.belief, variable)
    )
    return answer(found.as_dict())


@router.get("/formula")
def formula(experiment: Here, arm: Annotated[str, Query(max_length=10_000)]) -> Response:
    """The formula of an arm's expected reward."""
    return answer(formula_view(experiment.problem, arm).as_dict())


@router.get("/history")
def history(
    request: Request,
    experiment: Here,
    context: ContextQuery = None,
    points: Annotated[int, Query(ge=2, le=200)] = POINTS,
) -> Response:
    """How sure the experiment was along its journal."""
    seen = meant(experiment, context_in(context))
    key = ("history", key_of(seen), points)
    _, found = house_of(request).look(
        experiment, key, lambda: experiment.history(seen, points), whose(request)
    )
    return answer(found.as_dict())


@router.post("/evaluate")
def evaluate(request: Request, experiment: Here, body: Evaluate) -> Response:
    """What another policy, or one arm for all, would have earned on the same decisions."""
    policy = target_from_json(body.policy)
    if isinstance(policy, str) and not policy.lstrip().startswith("do("):
        check_policy_name(policy)
    elif body.options:
        raise DowiseError("an arm has no options: leave them out")
    _check_modest(body.options or {})
    with house_of(request).long_look(whose(request)):
        found = experiment.evaluate(policy, keyword_options(body.options), body.level)
    return answer(evaluation_to_json(found))


def _check_modest(options: Mapping[str, Any]) -> None:
    """Refuse what would take this process all its time or memory: whoever may look can ask."""
    for name, given in options.items():
        if isinstance(given, int | float) and given > _MOST:
            raise DowiseError(
                f"{name}={given:.6g} is too much for a server: give at most {_MOST:,}, or evaluate "
                "on a copy of the store with `dowise evaluate`"
            )


journal_router = APIRouter(prefix=PREFIX, tags=["journal"], responses=PROBLEMS)

_AT_ONCE = 1000  # events that are read together
_LARGE = 100_000  # characters of a body that is not sent among others: records
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

_TABLE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The table.", "content": {"text/csv": {}, "application/json": {}}}
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "The stream.", "content": {"text/event-stream": {}}}
}

Limit = Annotated[int, Query(ge=1, le=1000)]
Kind = Annotated[str | None, Query(pattern=f"^({'|'.join(KINDS)})$")]
Search = Annotated[str | None, Query(max_length=200)]


@journal_router.get("/events", responses=EVENTS)
def events(
    experiment: Here,
    visitor: Annotated[Principal, Depends(needs("read"))],
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Limit = 100,
    kind: Kind = None,
    search: Search = None,
) -> Response:
    """What happened, event by event; `next` goes on. The seed is shown to admins only."""
    return answer(events_page(experiment, visitor, after, limit, kind, search))


def events_page(
    experiment: Experiment, visitor: Principal, after: int, limit: int, kind: str | None,
    search: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Some events behind a number, and the number to go on from."""
    found: list[Event] = []
    is_admin = visitor.may("admin")
    last = experiment.head.number
    while after < last and len(found) <= limit:
        upto = min(after + _AT_ONCE, last)
        found += [
            event for event in experiment.events(after, upto)
            if (kind is None or event.kind == kind) and _has(event, search, is_admin)
        ]  # fmt: skip
        after = upto
    page, more = found[:limit], len(found) > limit
    rest = page[-1].number if more else None
    return {"events": [event_page(one, is_admin) for one in page], "next": rest}


def event_page(event: Event, whole: bool) -> dict[str, Any]:
    """An event as others may see it: who could foresee arms by the seed is not told it."""
    page: dict[str, Any] = event.row()
    says = event.payload if len(event.body) <= _LARGE else {"records": event.payload.get("records")}
    page["body"], page["is_whole"] = says, len(event.body) <= _LARGE
    if not whole:
        page |= {"salt": None, "is_whole": False}
        page["body"] = _without_seed(says)
    return page


def _without_seed(says: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in says.items() if name != "seed"}


def _has(event: Event, search: str | None, whole: bool) -> bool:
    """Whether a text is in an event, as far as it may be seen: else one could guess at the seed."""
    if search is None:
        return True
    body = (
        event.body
        if whole or "seed" not in event.payload
        else as_text(_without_seed(event.payload))
    )
    return search.casefold() in f"{event.actor} {body}".casefold()


@journal_router.get("/stream", response_class=StreamingResponse, responses=_STREAM)
async def stream(request: Request, name: str, visitor: Reader) -> Response:
    """Server-sent events: `head` with the number of the last event, whenever it grows."""
    from starlette.concurrency import run_in_threadpool

    watchers = request.app.state.watchers
    watchers.check(visitor.id)
    await run_in_threadpool(house_of(request).experiment, name)
    return StreamingResponse(
        watchers.follow(name, visitor.id, partial(is_still_known, request)),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )  # fmt: skip


@journal_router.get("/audit")
def audit(
    request: Request, experiment: Here, head: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Whether the journal is whole, and every decision follows from what was known then."""
    # Anew each time: whoever rewrites it leaves the head alone.
    with house_of(request).long_look(whose(request)):
        return answer(experiment.audit(head).as_dict())


@journal_router.get("/export", response_class=Response, responses=_TABLE)
def export(
    experiment: Here,
    format: Annotated[str, Query(pattern="^(csv|json)$")] = "csv",  # noqa: A002
) -> Response:
    """All decisions as a table: CSV that is safe in a spreadsheet, or columns as JSON."""
    table = experiment.table()
    if format == "json":
        return answer(table)
    named = "".join(c if c.isascii() and c.isalnum() else "-" for c in experiment.name)
    return Response(
        safe_csv(table), media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{named}.csv"'},
    )  # fmt: skip


def safe_csv(table: dict[str, list[Any]]) -> bytes:
    """A table in which no cell is taken for a formula: those that look like one begin with a '.

    >>> safe_csv({"X": ["=1+1", "-1", "low"]})
    b"X\\r\\n'=1+1\\r\\n'-1\\r\\nlow\\r\\n"
    """
    page = io.StringIO(newline="")
    # Python quotes what has the end of a line in it, and for spreadsheets each of the two is one.
    writer = csv.writer(page, lineterminator="\r\n")
    writer.writerow([_harmless(name) for name in table])
    for row in zip(*table.values(), strict=True):
        writer.writerow([_harmless(cell) for cell in row])
    return page.getvalue().encode()


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(_FORMULAS):
        return f"'{cell}"
    return "" if cell is None else cell
