"""The journal: its events, as they come, and as a whole."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse

from dowise.experiment.event import KINDS, Event, as_text
from dowise.experiment.experiment import Experiment
from dowise.service.api.common import PREFIX, PROBLEMS, Here, answer, house_of, whose
from dowise.service.api.documents import EVENTS
from dowise.service.visitors import Reader, Visitor, is_still_known, needs

__all__ = ["event_page", "events_page", "router", "safe_csv"]

router = APIRouter(prefix=PREFIX, tags=["journal"], responses=PROBLEMS)

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


@router.get("/events", responses=EVENTS)
def events(
    experiment: Here,
    visitor: Annotated[Visitor, Depends(needs("read"))],
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Limit = 100,
    kind: Kind = None,
    search: Search = None,
) -> Response:
    """What happened, event by event; `next` goes on. The seed is shown to admins only."""
    return answer(events_page(experiment, visitor, after, limit, kind, search))


def events_page(
    experiment: Experiment, visitor: Visitor, after: int, limit: int, kind: str | None,
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
    says = event.says if len(event.body) <= _LARGE else {"records": event.says.get("records")}
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
    body = event.body if whole or "seed" not in event.says else as_text(_without_seed(event.says))
    return search.casefold() in f"{event.actor} {body}".casefold()


@router.get("/stream", response_class=StreamingResponse, responses=_STREAM)
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


@router.get("/audit")
def audit(
    request: Request, experiment: Here, head: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Whether the journal is whole, and every decision follows from what was known then."""
    # Anew each time: whoever rewrites it leaves the head alone.
    with house_of(request).long_look(whose(request)):
        return answer(experiment.audit(head).as_dict())


@router.get("/export", response_class=Response, responses=_TABLE)
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
