"""The page History: every event, newest first, with filter, search, explanations and export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from dowise.errors import DowiseError
from dowise.experiment.event import KINDS, Event
from dowise.experiment.experiment import Experiment
from dowise.experiment.history import decision_of, event_text
from dowise_web.api.dependencies import Here, house_of, whose
from dowise_web.auth import Reader
from dowise_web.cache import PatientRoute
from dowise_web.errors import says
from dowise_web.pages.rendering import is_from_htmx, render

router = APIRouter(prefix="/experiments/{name:path}/history", route_class=PatientRoute)

_AT_ONCE = 50  # events that are shown together
_READ = 500  # that are read together
_ARMS = 12  # that an explanation lists
Number = Annotated[int, Query(ge=0, le=2**53)]


@dataclass(frozen=True)
class Line:
    """An event as the page shows it."""

    event: Event
    words: str
    decision: int | None


@dataclass(frozen=True)
class Found:
    """Some events, newest first; `before` goes on with older ones, None where there are none."""

    lines: list[Line]
    before: int | None


@router.get("")
def history(
    request: Request,
    experiment: Here,
    visitor: Reader,
    kind: Annotated[str, Query(max_length=20)] = "",
    search: Annotated[str, Query(max_length=200)] = "",
    before: Number = 0,
    after: Number | None = None,
) -> Response:
    """The page; or more of its list, older or newer, where a part is asked for."""
    chosen, text = kind if kind in KINDS else "", search.strip()
    is_part = bool(before or after is not None) and is_from_htmx(request)
    last: int | None
    if is_part and after is not None:
        found, last = _newer(experiment, chosen, text, after)
    else:
        last = None if before else experiment.head.number
        found = _older(experiment, chosen, text, before or experiment.head.number + 1)
    asked = {"kind": chosen, "search": text}
    return render(
        request, "history_lines.html" if is_part else "history.html", visitor,
        experiment=experiment, found=found, kinds=KINDS, kind=chosen, search=text,
        rest=urlencode(asked | {"before": found.before or 0}),
        news=None if last is None else urlencode(asked | {"after": last}),
    )  # fmt: skip


@router.get("/explain/{id}")
def explain(
    request: Request,
    experiment: Here,
    visitor: Reader,
    id: Annotated[int, Path(ge=1, le=2**53)],  # noqa: A002 (what decisions call it)
) -> Response:
    """Why a decision came out as it did, as `dowise explain` tells it."""
    found, error = None, None
    try:
        _, found = house_of(request).look(
            experiment, ("explain", id), lambda: experiment.explain(id), whose(request)
        )
    except DowiseError as failure:
        error = says(request, failure)
    rows: list[dict[str, Any]] = [] if found is None else found.rows()
    if len(rows) > _ARMS:
        rows = sorted(rows, key=lambda row: (-(row["probability"] or 0.0), -row["best"]))[:_ARMS]
    return render(
        request, "explanation.html", visitor, experiment=experiment, found=found, rows=rows,
        error=error, number=id, here="history", whole=not is_from_htmx(request),
    )  # fmt: skip


@router.get("/audit")
def audit(request: Request, experiment: Here, visitor: Reader) -> Response:
    """Whether the journal is whole, and every decision follows from what was known then."""
    with house_of(request).long_look(whose(request)):
        found = experiment.audit()
    return render(
        request, "audit.html", visitor, experiment=experiment, found=found, here="history",
        whole=not is_from_htmx(request),
    )  # fmt: skip


def _older(experiment: Experiment, kind: str, search: str, before: int) -> Found:
    """The newest events before a number that are of a kind and hold a text."""
    last = before - 1
    lines: list[Line] = []
    while last > 0 and len(lines) <= _AT_ONCE:
        first = max(last - _READ, 0)
        lines += [line for event in reversed(experiment.events(first, last))
                  if (line := _line(event, kind, search)) is not None]  # fmt: skip
        last = first
    if len(lines) <= _AT_ONCE:
        return Found(lines, None)
    return Found(lines[:_AT_ONCE], lines[_AT_ONCE - 1].event.number)


def _newer(experiment: Experiment, kind: str, search: str, after: int) -> tuple[Found, int]:
    """Events after a number that are of a kind and hold a text, and how far that has looked."""
    events = experiment.events(after, min(after + _READ, experiment.head.number))
    lines = [line for event in reversed(events) if (line := _line(event, kind, search)) is not None]
    return Found(lines, None), events[-1].number if events else after


def _line(event: Event, kind: str, search: str) -> Line | None:
    if kind and event.kind != kind:
        return None
    words = event_text(event)
    if search and search.casefold() not in f"{words} {event.actor} {event.at}".casefold():
        return None
    return Line(event, words, decision_of(event))
