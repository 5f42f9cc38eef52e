"""The page What we know: the arms of each context, how they came about, and whether to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from dowise.checks import real_number, whole_number
from dowise.errors import DowiseError
from dowise.experiment.arms import ArmsStatus
from dowise.experiment.experiment import Experiment
from dowise.experiment.history import POINTS
from dowise.experiment.status import Status, usual_tolerance
from dowise.experiment.status_words import (
    context_text,
    continuing_in_words,
    decisions_in_words,
    lacking_in_words,
    stopping_in_words,
    tied,
)
from dowise.problem import Problem
from dowise.service.api.common import Here, house_of, key_of, meant, whose
from dowise.service.api.looking import MOST_ROUNDS
from dowise.service.failures import says
from dowise.service.looks import PatientRoute
from dowise.service.pages.forms import as_sent, in_page_words, values_in
from dowise.service.pages.past import charts
from dowise.service.pages.rendering import address_of, render
from dowise.service.pages.standing import standing, unit
from dowise.service.visitors import Reader

__all__ = ["router"]

router = APIRouter(prefix="/experiments/{name:path}/known", route_class=PatientRoute)
Typed = Annotated[str, Query(max_length=40)]

MOST_CONTEXTS = 12  # that are listed before the rest is folded away


class _Asked:
    """What the address asks for; what is wrong in it is told, and left aside."""

    def __init__(
        self, request: Request, problem: Problem, tolerance: str = "", rounds: str = ""
    ) -> None:
        self.context = values_in(request.query_params, "context.")
        self.usual = f"{usual_tolerance(problem):g}"
        self.tolerance, self.rounds, self.wrong = tolerance.strip(), rounds.strip(), ""
        if "tolerance" in request.query_params and not (self.tolerance or self.rounds):
            self.tolerance = self.usual  # what the empty field shows
        self.limit: float | None = self._read(
            self.tolerance, self.usual, lambda text: real_number("tolerance", float(text), 0)
        )
        self.more: int | None = self._read(
            self.rounds, "100", lambda text: whole_number("rounds", int(text), 1, MOST_ROUNDS)
        )

    def _read(self, text: str, example: str, reader: Callable[[str], Any]) -> Any:
        try:
            return reader(text) if text else None
        except ValueError:
            self.wrong = f"{text!r} is not a number such as {example}."
        except DowiseError as error:
            self.wrong = in_page_words(str(error))
        return None

    def address(self, experiment: Experiment, context: dict[str, str], **more: str) -> str:
        """The page with another context, or more of it."""
        parts = {f"context.{name}": as_sent(label) for name, label in context.items()}
        numbers = {"tolerance": self.tolerance, "rounds": self.rounds}
        parts |= {name: text for name, text in numbers.items() if text} | more
        address = address_of(experiment.name, "known")
        return f"{address}?{urlencode(parts)}" if parts else address


@router.get("")
def known(
    request: Request,
    experiment: Here,
    visitor: Reader,
    tolerance: Typed = "",
    rounds: Typed = "",
    arms: Annotated[str, Query(max_length=10)] = "",
    past: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """The page; `arms=all` shows every arm, `past=1` the charts for those without a script."""
    status = _status(request, experiment, None)
    asked = _Asked(request, status.problem, tolerance, rounds)
    one = _chosen(request, experiment, status, asked)
    worth = ""
    if asked.more is not None:
        worth = _worth(request, experiment, status, asked.more)
    shown = standing(status, one, arms == "all")
    return render(
        request, "known.html", visitor,
        experiment=experiment,
        problem=status.problem,
        found=status,
        asked=asked,
        standing=shown,
        where=context_text(one),
        contexts=_contexts(experiment, status, one, asked),
        picked={name: as_sent(label) for name, label in one.context.items()},
        decisions=decisions_in_words(status),
        verdict=None if asked.limit is None else status.advice(asked.limit),
        stops=asked.limit is not None and status.should_stop(asked.limit),
        stopping=stopping_in_words(status, bool(worth)),
        worth=worth,
        unit=unit(status.problem),
        to_know=[*lacking_in_words(status), *status.notes],
        all_arms=asked.address(experiment, one.context, arms="all"),
        this=asked.address(experiment, one.context, **({"arms": "all"} if arms == "all" else {})),
        with_past=asked.address(experiment, one.context, past="1"),
        past_place=f"{address_of(experiment.name, 'known/past')}?{_query(one)}",
        drawn=_past(request, experiment, status, one) if past else None,
        most_contexts=MOST_CONTEXTS,
    )  # fmt: skip


@router.get("/past")
def known_past(request: Request, experiment: Here, visitor: Reader) -> Response:
    """The charts alone, which take longer."""
    status = _status(request, experiment, None)
    asked = _Asked(request, status.problem)
    one = _chosen(request, experiment, status, asked)
    drawn = _past(request, experiment, status, one)
    return render(request, "known_past.html", visitor, drawn=drawn)


def _status(request: Request, experiment: Experiment, context: Any) -> Status:
    """The status, shared with all who ask for the same; the graph has a page of its own."""
    seen, look = meant(experiment, context), house_of(request).look
    key = ("status", key_of(seen), None, False)
    return look(experiment, key, lambda: experiment.status(seen, evidence=False))[1]


def _chosen(request: Request, experiment: Experiment, status: Status, asked: _Asked) -> ArmsStatus:
    """The context that was asked for, or else the one that came most often."""
    if not asked.context:
        return max(status.contexts, key=lambda one: one.weight)
    for one in status.contexts:
        if one.context == asked.context:
            return one
    return _status(request, experiment, asked.context).contexts[0]


def _worth(request: Request, experiment: Experiment, status: Status, rounds: int) -> str:
    """What so many rounds more are worth, or why that is not known."""
    try:
        _, found = house_of(request).look(
            experiment,
            ("continuing", rounds),
            lambda: experiment.value_of_continuing(rounds),
            whose(request),
        )
    except DowiseError as error:
        return in_page_words(says(request, error))
    return " ".join(continuing_in_words(replace(status, continuing=found)))


def _contexts(
    experiment: Experiment, status: Status, chosen: ArmsStatus, asked: _Asked
) -> list[dict[str, Any]]:
    """Each context in one line, those that came most often first."""
    ordered = sorted(status.contexts, key=lambda one: -one.weight)
    return [_in_a_line(experiment, status, one, chosen, asked) for one in ordered]


def _in_a_line(
    experiment: Experiment, status: Status, one: ArmsStatus, chosen: ArmsStatus, asked: _Asked
) -> dict[str, Any]:
    same = tied(status.problem, one)
    is_open = len(same) == len(one.arms) > 1
    tie = "nothing tells the arms apart yet" if is_open else f"{len(same)} arms tie"
    return {
        "text": context_text(one),
        "address": asked.address(experiment, one.context),
        "is_chosen": one.context == chosen.context,
        "share": one.weight,
        "leader": str(one.arms[one.leader]) if len(same) == 1 else None,
        "tie": tie,
        "mean": float(one.mean[one.leader]),
        "best": None if is_open else float(one.best[same].sum()),
        "stopping": one.stopping,
    }


def _past(request: Request, experiment: Experiment, status: Status, one: ArmsStatus) -> Any:
    context = one.context or None
    _, found = house_of(request).look(
        experiment,
        ("history", key_of(context), POINTS),
        lambda: experiment.history(context),
        whose(request),
    )
    return charts(status.problem, found, one.leader)


def _query(one: ArmsStatus) -> str:
    return urlencode({f"context.{name}": as_sent(label) for name, label in one.context.items()})
