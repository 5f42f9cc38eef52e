"""The page Now: the next decision, its outcome, and pending decisions."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData

from dowise.errors import DowiseError, UnavailableError
from dowise.experiment import Case, Experiment, LiveDecision, StateView, pending_seconds
from dowise.experiment import now as current_time
from dowise.problem import Intervention, Problem
from dowise_web.api.dependencies import AskExperiment, CurrentView, ReadExperiment, TellExperiment
from dowise_web.auth import Principal, Reader
from dowise_web.pages.rendering import (
    SentForm,
    encode_value,
    get_lines,
    get_text,
    get_values,
    page_message,
    page_url,
    render,
)

router = APIRouter(prefix="/experiments/{name:path}/now")

MAX_PENDING = 50  # listed
MAX_RECENT = 5  # decisions with an outcome that are offered for correction
MAX_CHECKBOXES = 24  # arms as check boxes; more are typed
REPEAT_AFTER = 10.0  # seconds: a repeated request is no double click any more


@dataclass
class FailedForm:
    """A form that was not accepted: its name, the error, and what was sent."""

    form: str
    message: str
    sent: Mapping[str, Any] = field(default_factory=dict)


@router.get("")
def now(
    request: Request,
    view: CurrentView,
    principal: Reader,
    decision: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    result: Annotated[str, Query(alias="said", max_length=20)] = "",
    last_event: Annotated[int | None, Query(alias="seen", ge=0, le=2**53)] = None,
) -> Response:
    """Show the page.

    `result` is what the form that led here has done, `last_event` the last event of the decision
    that the reader's page shows.
    """
    return _render_page(request, view, principal, decision, result=result, last_event=last_event)


@router.get("/{form}")
def open_form_url(experiment: ReadExperiment, form: str) -> Response:  # noqa: ARG001
    """Redirect to the page, if the URL of a form that failed is opened again."""
    return RedirectResponse(page_url(experiment.name), 303)


@router.post("/ask")
def ask(request: Request, experiment: AskExperiment, principal: Reader, form: SentForm) -> Response:
    """Ask for a decision and show it; sending a form twice makes one decision."""

    def act() -> tuple[int, str]:
        decision = experiment.ask(
            get_values(form, "context."),
            get_text(form, "request_id") or None,
            get_lines(form, "allowed"),
            get_lines(form, "forbid"),
        )
        age = (current_time() - datetime.fromisoformat(decision.at)).total_seconds()
        return decision.id, "repeated" if age > REPEAT_AFTER else "asked"

    return _submit(request, experiment, principal, form, "ask", None, act)


@router.post("/tell")
def tell(
    request: Request, experiment: TellExperiment, principal: Reader, form: SentForm
) -> Response:
    """Record an outcome, or what was done instead."""
    number = _decision_number(form)

    def act() -> tuple[int, str]:
        values, played, is_unrelated = get_values(form, "seen."), *_deviation(form)
        if not values and played is None:
            raise DowiseError("choose at least one value", code="missing-value")
        case = experiment.tell(number, values, played=played, unrelated=is_unrelated)
        return number, "told" if case.changed else "same"

    return _submit(request, experiment, principal, form, "tell", number, act)


@router.post("/amend")
def amend(
    request: Request, experiment: TellExperiment, principal: Reader, form: SentForm
) -> Response:
    """Correct the values that differ from those the form showed."""
    number = _decision_number(form)

    def act() -> tuple[int, str]:
        values, shown = get_values(form, "now."), get_values(form, "was.")
        changes = {name: label for name, label in values.items() if shown.get(name, "") != label}
        played, is_unrelated = _deviation(form)
        if not changes and played is None:
            raise DowiseError("change at least one value to correct it", code="missing-value")
        reason = _reason(form)
        case = experiment.amend(number, changes, reason, played=played, unrelated=is_unrelated)
        return number, "amended" if case.changed else "same"

    return _submit(request, experiment, principal, form, "amend", number, act)


@router.post("/withdraw")
def withdraw(
    request: Request, experiment: TellExperiment, principal: Reader, form: SentForm
) -> Response:
    """Close a pending decision that will not get an outcome."""
    number = _decision_number(form)

    def act() -> tuple[int, str]:
        experiment.withdraw(number, _reason(form))
        return number, "withdrawn"

    return _submit(request, experiment, principal, form, "withdraw", number, act)


def _submit(
    request: Request,
    experiment: Experiment,
    principal: Principal,
    form: FormData,
    name: str,
    number: int | None,
    act: Callable[[], tuple[int, str]],
) -> Response:
    """Act and redirect to the page, so that a reload repeats nothing; or show what is wrong."""
    try:
        decision, result = act()
    except UnavailableError:
        raise
    except DowiseError as error:
        failed = FailedForm(name, page_message(request, error), form)
        return _render_page(request, experiment.view(), principal, number, failed=failed)
    query = urlencode({"decision": decision, "said": result})
    return RedirectResponse(f"{page_url(experiment.name)}?{query}", 303)


def _decision_number(form: FormData) -> int:
    text = get_text(form, "decision")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise DowiseError(
            f"decision={text!r:.40} must be the number of a decision", code="invalid-number"
        )
    return int(text)


def _deviation(form: FormData) -> tuple[str | None, bool]:
    """Return what was done instead, typed or chosen, and if the reason was unrelated."""
    played = get_text(form, "played_otherwise") or get_text(form, "played") or None
    is_unrelated = bool(get_text(form, "unrelated"))
    if is_unrelated and played is None:
        raise DowiseError("choose what was done instead", code="missing-value")
    return played, is_unrelated


def _reason(form: FormData) -> str:
    reason = get_text(form, "reason")
    if not reason:
        raise DowiseError("enter a reason", code="missing-value")
    return reason


def _render_page(
    request: Request,
    view: StateView,
    principal: Principal,
    number: int | None,
    *,
    result: str = "",
    last_event: int | None = None,
    failed: FailedForm | None = None,
) -> Response:
    problem, pending = view.problem, view.pending()
    choices = _choices(problem)
    case = None if number is None else view.case(number)
    is_erased = case is not None and case.status == "erased"
    decision = None if case is None or is_erased else view.decision(case.id)
    return render(
        request,
        "now.html",
        principal,
        200 if failed is None else 422,
        None if failed is None else {"HX-Push-Url": "false"},
        view=view,
        active_page="now",
        problem=problem,
        case=case,
        decision=decision,
        result=result,
        failed=failed,
        has_changed=case is not None and last_event is not None and case.last_event > last_event,
        notes=[] if case is None or is_erased else view.idle(case.id),
        missing=[] if case is None else choices.sort(case.missing_variables(problem)),
        correctable={} if case is None else _correctable(case, problem),
        arms=choices.arms,
        has_checkboxes=len(choices.arms) <= MAX_CHECKBOXES,
        settings=choices.settings,
        request_id=f"page-{secrets.token_urlsafe(15)}",
        pending=[
            (other, pending_seconds(other), other.missing_variables(problem))
            for other in pending[:MAX_PENDING]
        ],
        more_pending=max(len(pending) - MAX_PENDING, 0),
        recent=_recent(view),
        encode_value=encode_value,
        chance=_chance(decision),
    )


@dataclass(frozen=True)
class _Choices:
    """Choices in the forms of a problem."""

    arms: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    """Settings that can be excluded, with labels: values that arms set, and setting nothing."""
    ranks: Mapping[str, int]
    """Order in which variables are about observed: causes first, the reward last."""

    def sort(self, names: Iterable[str]) -> list[str]:
        """Sort variables about as they are observed."""
        return sorted(names, key=self.ranks.__getitem__)


@lru_cache(maxsize=64)
def _choices(problem: Problem) -> _Choices:
    pairs = {setting for arm in problem.arms for setting in arm.items()}
    ordered = sorted(pairs, key=lambda pair: (pair[0], problem.domains[pair[0]].index(pair[1])))
    settings = [(str(Intervention({name: label})), f"{name} to {label}") for name, label in ordered]
    if Intervention() in problem.arms:
        settings.append(("do()", "nothing at all"))
    order = [name for name in problem.graph.topological_order() if name != problem.reward]
    ranks = {name: rank for rank, name in enumerate([*order, problem.reward])}
    return _Choices(tuple(map(str, problem.arms)), tuple(settings), ranks)


def _correctable(case: Case, problem: Problem) -> dict[str, str | None]:
    """Return the context and the outcome of a case, for the variables of the current problem."""
    labels = {**case.context, **case.values}
    names = [name for name in labels if name in problem.domains and name not in case.arm]
    return {name: labels[name] for name in _choices(problem).sort(names)}


def _recent(view: StateView) -> list[Case]:
    """Return the last decisions that have an outcome."""
    first = max(view.counts()["asked"] - 4 * MAX_RECENT, 0)
    cases = [case for case in view.decisions(after=first) if case.status == "done"]
    return cases[: -MAX_RECENT - 1 : -1]


def _chance(decision: LiveDecision | None) -> str | None:
    if decision is None or decision.probability is None:
        return None
    return f"{decision.probability:.2f}"
