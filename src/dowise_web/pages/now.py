"""The page Now: the next decision, what was seen of it, and what is pending."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.ask import LiveDecision
from dowise.experiment.case import Case
from dowise.experiment.event import now as moment
from dowise.experiment.experiment import Experiment
from dowise.experiment.status import pending_seconds
from dowise.problem import Intervention, Problem
from dowise_web.api.dependencies import Asking, Here, Telling
from dowise_web.auth import Principal, Reader
from dowise_web.errors import says
from dowise_web.pages.rendering import (
    Filled,
    address_of,
    as_sent,
    in_page_words,
    render,
    text_in,
    texts_in,
    values_in,
)

router = APIRouter(
    prefix="/experiments/{name:path}/now",
)
Number = Annotated[int | None, Query(ge=1, le=2**53)]

MOST_PENDING = 50  # that are listed
LATEST = 5  # decisions that are offered for correction
MOST_TICKS = 24  # arms that are listed for ticking; with more their texts are typed
_REPEATED = 10.0  # seconds after which a decision that comes again is no double click


@dataclass
class Failed:
    """A form that did not work: which one, why, and what it held."""

    form: str
    why: str
    sent: Mapping[str, Any] = field(default_factory=dict)


@router.get("")
def now(
    request: Request,
    experiment: Here,
    visitor: Reader,
    decision: Number = None,
    said: Annotated[str, Query(max_length=20)] = "",
    seen: Annotated[int | None, Query(ge=0, le=2**53)] = None,
) -> Response:
    """The page. `seen` is the last event of the decision that the reader's page shows."""
    return _page(request, experiment, visitor, decision, said=said, seen=seen)


@router.get("/{form}")
def form_alone(experiment: Here, form: str) -> Response:  # noqa: ARG001
    """Where a form failed and its address is opened again: the page."""
    return RedirectResponse(address_of(experiment.name), 303)


@router.post("/ask")
def ask(request: Request, experiment: Asking, visitor: Reader, form: Filled) -> Response:
    """Ask, and show the decision; the same form twice makes one."""

    def act() -> tuple[int, str]:
        asked = experiment.ask(
            values_in(form, "context."),
            text_in(form, "request_id") or None,
            texts_in(form, "allowed"),
            texts_in(form, "forbid"),
        )
        age = (moment() - datetime.fromisoformat(asked.at)).total_seconds()
        return asked.id, "repeated" if age > _REPEATED else "asked"

    return _done(request, experiment, visitor, form, "ask", None, act)


@router.post("/tell")
def tell(request: Request, experiment: Telling, visitor: Reader, form: Filled) -> Response:
    """Tell what was seen, or what was done instead."""

    def say(number: int, **done: Any) -> Case:
        return experiment.tell(number, values_in(form, "seen."), **done)

    return _said(request, experiment, visitor, form, "tell", "told", say)


@router.post("/amend")
def amend(request: Request, experiment: Telling, visitor: Reader, form: Filled) -> Response:
    """Correct what was told: what differs from what the form showed."""

    def say(number: int, **done: Any) -> Case:
        given, shown = values_in(form, "now."), values_in(form, "was.")
        changed = {name: label for name, label in given.items() if shown.get(name, "") != label}
        return experiment.amend(number, changed, text_in(form, "reason"), **done)

    return _said(request, experiment, visitor, form, "amend", "amended", say)


@router.post("/withdraw")
def withdraw(request: Request, experiment: Telling, visitor: Reader, form: Filled) -> Response:
    """End a decision of which nothing more will come."""
    number = _number(form)

    def act() -> tuple[int, str]:
        experiment.withdraw(number, text_in(form, "reason"))
        return number, "withdrawn"

    return _done(request, experiment, visitor, form, "withdraw", number, act)


def _said(
    request: Request, experiment: Experiment, visitor: Principal, form: FormData, which: str,
    news: str, say: Callable[..., Case],
) -> Response:  # fmt: skip
    """Say something of a decision, with what was done instead; `news` is what came of it, if."""
    number = _number(form)

    def act() -> tuple[int, str]:
        case = say(number, played=_played(form), unrelated=bool(text_in(form, "unrelated")))
        return number, news if case.changed else "same"

    return _done(request, experiment, visitor, form, which, number, act)


def _done(
    request: Request, experiment: Experiment, visitor: Principal, form: FormData, which: str,
    number: int | None, act: Callable[[], tuple[int, str]],
) -> Response:  # fmt: skip
    """Do it and go to the page anew, so that a reload repeats nothing; or show what is wrong."""
    try:
        decision, said = act()
    except UnavailableError:
        raise
    except DowiseError as error:
        failed = Failed(which, in_page_words(says(request, error)), form)
        return _page(request, experiment, visitor, number, failed=failed)
    query = urlencode({"decision": decision, "said": said})
    return RedirectResponse(f"{address_of(experiment.name)}?{query}", 303)


def _number(form: FormData) -> int:
    text = text_in(form, "decision")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise DowiseError(f"decision={text!r:.40} must be the number of a decision")
    return int(text)


def _played(form: FormData) -> str | None:
    """What was done instead: typed in full, or chosen from the list."""
    return text_in(form, "played_otherwise") or text_in(form, "played") or None


def _page(
    request: Request, experiment: Experiment, visitor: Principal, number: int | None, *,
    said: str = "", seen: int | None = None, failed: Failed | None = None,
) -> Response:  # fmt: skip
    problem, pending = experiment.problem, experiment.pending()
    case = None if number is None else experiment.case(number)
    is_there = case is not None and case.status != "erased"
    asked = experiment.decision(case.id) if case is not None and is_there else None
    order = [*problem.graph.topological_order()]
    return render(
        request, "now.html", visitor,
        200 if failed is None else 422,
        None if failed is None else {"HX-Push-Url": "false"},
        experiment=experiment,
        here="now",
        problem=problem,
        case=case,
        asked=asked,
        said=said,
        failed=failed,
        is_news=case is not None and seen is not None and case.last_event > seen,
        notes=[] if case is None or not is_there else experiment.idle(case.id),
        lacking=() if case is None else _in_order(case.missing_variables(problem), order, problem),
        correctable={} if case is None else _correctable(case, problem, order),
        arms=[str(arm) for arm in problem.arms],
        is_ticked=len(problem.arms) <= MOST_TICKS,
        settings=_settings(problem),
        request_id=f"page-{secrets.token_urlsafe(15)}",
        pending=[
            (case, pending_seconds(case), case.missing_variables(problem))
            for case in pending[:MOST_PENDING]
        ],
        more_pending=max(len(pending) - MOST_PENDING, 0),
        latest=_latest(experiment),
        as_sent=as_sent,
        chance=_chance(asked),
    )  # fmt: skip


def _in_order(names: tuple[str, ...], order: list[str], problem: Problem) -> list[str]:
    """Causes first, the reward last: about as they are seen."""
    return sorted(names, key=lambda name: (name == problem.reward, order.index(name)))


def _correctable(case: Case, problem: Problem, order: list[str]) -> dict[str, str | None]:
    """The context and what was told, under the variables that there are today."""
    known = {**case.context, **case.values}
    names = tuple(name for name in known if name in problem.domains and name not in case.arm)
    return {name: known[name] for name in _in_order(names, order, problem)}


def _settings(problem: Problem) -> list[tuple[str, str]]:
    """What can be ruled out: each value that some arm sets, and the arm that sets nothing."""
    each = {setting for arm in problem.arms for setting in arm.items()}
    ordered = sorted(each, key=lambda one: (one[0], problem.domains[one[0]].index(one[1])))
    found = [(str(Intervention({name: label})), f"{name} to {label}") for name, label in ordered]
    return [*found, ("do()", "nothing at all")] if Intervention() in problem.arms else found


def _latest(experiment: Experiment) -> list[Case]:
    """The last decisions that have an outcome."""
    found: list[Case] = []
    last = experiment.counts()["asked"]
    for number in range(last, max(last - 4 * LATEST, 0), -1):
        case = experiment.case(number)
        if case.status == "done" and len(found) < LATEST:
            found.append(case)
    return found


def _chance(asked: LiveDecision | None) -> str | None:
    if asked is None or asked.probability is None:
        return None
    return f"{asked.probability:.2f}"
