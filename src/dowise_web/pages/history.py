"""The page History: every event, newest first, with filter, search, explanations and export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from dowise.errors import DowiseError
from dowise.experiment import KINDS, Event, StateView, decision_of, event_text
from dowise_web.api.dependencies import (
    CurrentView,
    DecisionId,
    ReadExperiment,
    cached,
    run_long,
)
from dowise_web.auth import Reader
from dowise_web.pages.rendering import is_from_htmx, page_message, render_in_thread

router = APIRouter(prefix="/experiments/{name:path}/history")

MAX_EVENTS = 50  # shown together
EVENTS_PER_READ = 500
MAX_ARMS = 12  # listed in an explanation
EventNumber = Annotated[int, Query(ge=0, le=2**53)]


@dataclass(frozen=True)
class HistoryLine:
    """An event as the page shows it."""

    event: Event
    text: str
    decision: int | None
    """Number of the decision that the event is about, if any."""


@dataclass(frozen=True)
class HistoryLines:
    """Some events, newest first; `before` continues with older ones, None if there are none."""

    lines: list[HistoryLine]
    before: int | None


@router.get("")
async def history(
    request: Request,
    experiment: ReadExperiment,
    principal: Reader,
    kind: Annotated[str, Query(max_length=20)] = "",
    search: Annotated[str, Query(max_length=200)] = "",
    before: EventNumber = 0,
    after: EventNumber | None = None,
) -> Response:
    """Show the page, or older or newer lines of its list if htmx asks for a part."""
    kind, search = kind if kind in KINDS else "", search.strip()
    is_part = bool(before or after is not None) and is_from_htmx(request)
    view = await run_in_threadpool(experiment.view, EVENTS_PER_READ)
    last: int | None
    if is_part and after is not None:
        lines, last = await run_in_threadpool(_newer_lines, view, kind, search, after)
    else:
        _, lines = await cached(
            request,
            view,
            ("lines", kind, search, before),
            lambda view: _older_lines(view, kind, search, before or view.head.number + 1),
            is_exact=True,
        )
        last = None if before else view.head.number
    query = {"kind": kind, "search": search}
    return await render_in_thread(
        request,
        "history_lines.html" if is_part else "history.html",
        principal,
        view=view,
        history=lines,
        kinds=KINDS,
        kind=kind,
        search=search,
        older=urlencode(query | {"before": lines.before or 0}),
        newer=None if last is None else urlencode(query | {"after": last}),
    )


@router.get("/explain/{id}")
async def explain(
    request: Request,
    view: CurrentView,
    principal: Reader,
    id: DecisionId,  # noqa: A002
) -> Response:
    """Show why a decision was made."""
    explanation, message = None, None
    rows: list[dict[str, Any]] = []
    try:
        view, explanation = await cached(
            request, view, ("explain", id), lambda view: view.explain(id), is_long=True
        )
        rows = explanation.rows()
    except DowiseError as error:
        message = page_message(request, error)
    if len(rows) > MAX_ARMS:
        rows = sorted(rows, key=lambda row: (-(row["probability"] or 0.0), -row["best"]))[:MAX_ARMS]
    return await render_in_thread(
        request,
        "explanation.html",
        principal,
        view=view,
        explanation=explanation,
        rows=rows,
        error=message,
        number=id,
        active_page="history",
        is_page=not is_from_htmx(request),
    )


@router.get("/audit")
async def audit(
    request: Request, experiment: ReadExperiment, view: CurrentView, principal: Reader
) -> Response:
    """Check that the journal is complete, and every decision follows from what was known then."""
    result = await run_long(request, experiment.audit)
    return await render_in_thread(
        request,
        "audit.html",
        principal,
        view=view,
        audit=result,
        active_page="history",
        is_page=not is_from_htmx(request),
    )


def _older_lines(view: StateView, kind: str, search: str, before: int) -> HistoryLines:
    """Return the newest events before a number that are of a kind and contain a text."""
    last = before - 1
    lines: list[HistoryLine] = []
    while last > 0 and len(lines) <= MAX_EVENTS:
        first = max(last - EVENTS_PER_READ, 0)
        lines += _matching_lines(view.events(first, last), kind, search)
        last = first
    if len(lines) <= MAX_EVENTS:
        return HistoryLines(lines, None)
    return HistoryLines(lines[:MAX_EVENTS], lines[MAX_EVENTS - 1].event.number)


def _newer_lines(view: StateView, kind: str, search: str, after: int) -> tuple[HistoryLines, int]:
    """Return events after a number that match, and the number of the last one that was read."""
    events = view.events(after, min(after + EVENTS_PER_READ, view.head.number))
    lines = _matching_lines(events, kind, search)
    return HistoryLines(lines, None), events[-1].number if events else after


def _matching_lines(events: list[Event], kind: str, search: str) -> list[HistoryLine]:
    """Return the events of a kind that contain a text, newest first."""
    lines = []
    for event in reversed(events):
        text = event_text(event)
        is_match = search.casefold() in f"{text} {event.actor} {event.at}".casefold()
        if kind in ("", event.kind) and is_match:
            lines.append(HistoryLine(event, text, decision_of(event)))
    return lines
