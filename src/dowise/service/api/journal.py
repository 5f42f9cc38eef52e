"""The journal: its events, as they come, and as a whole."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse

from dowise.experiment.event import KINDS, Event
from dowise.experiment.experiment import Experiment
from dowise.service.api.common import PREFIX, PROBLEMS, Here, answer, house_of
from dowise.service.api.documents import EVENTS
from dowise.service.visitors import Reader, Visitor, needs

__all__ = ["event_page", "events_page", "router", "safe_csv"]

router = APIRouter(prefix=PREFIX, tags=["journal"], responses=PROBLEMS)

_AT_ONCE = 1000  # events that are read together
_LARGE = 100_000  # characters of a body that is not sent among others: records
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")

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
    last = experiment.head.number
    while after < last and len(found) <= limit:
        upto = min(after + _AT_ONCE, last)
        found += [
            event for event in experiment.events(after, upto)
            if (kind is None or event.kind == kind) and _has(event, search)
        ]  # fmt: skip
        after = upto
    page, more = found[:limit], len(found) > limit
    rest = page[-1].number if more else None
    return {"events": [event_page(one, visitor.may("admin")) for one in page], "next": rest}


def event_page(event: Event, whole: bool) -> dict[str, Any]:
    """An event as others may see it: who could foresee arms by the seed is not told it."""
    page: dict[str, Any] = event.row()
    says = event.says if len(event.body) <= _LARGE else {"records": event.says.get("records")}
    page["body"], page["is_whole"] = says, len(event.body) <= _LARGE
    if not whole:
        page |= {"salt": None, "is_whole": False}
        page["body"] = {name: part for name, part in says.items() if name != "seed"}
    return page


def _has(event: Event, search: str | None) -> bool:
    return search is None or search.casefold() in f"{event.actor} {event.body}".casefold()


@router.get("/stream", response_class=StreamingResponse)
async def stream(request: Request, name: str, visitor: Reader) -> Response:
    """Server-sent events: `head` with the number of the last event, whenever it grows."""
    from starlette.concurrency import run_in_threadpool

    watchers = request.app.state.watchers
    watchers.check(visitor.id)
    await run_in_threadpool(house_of(request).experiment, name)
    return StreamingResponse(
        watchers.follow(name, visitor.id), media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )  # fmt: skip


@router.get("/audit")
def audit(
    request: Request, experiment: Here, head: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Whether the journal is whole, and every decision follows from what was known then."""
    with house_of(request).long_look():  # anew each time: whoever rewrites it leaves the head alone
        return answer(experiment.audit(head).as_dict())


@router.get("/export")
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
    b"X\\n'=1+1\\n'-1\\nlow\\n"
    """
    page = io.StringIO(newline="")
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow([_harmless(name) for name in table])
    for row in zip(*table.values(), strict=True):
        writer.writerow([_harmless(cell) for cell in row])
    return page.getvalue().encode()


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(_FORMULAS):
        return f"'{cell}"
    return "" if cell is None else cell
