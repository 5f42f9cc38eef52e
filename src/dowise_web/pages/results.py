"""The page What we know: the arms of each context, how they came about, and whether to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from dowise._core.codec import to_json
from dowise._core.document import format_number
from dowise._core.validation import check_integer, check_number
from dowise.errors import DowiseError
from dowise.experiment.experiment import Experiment
from dowise.experiment.history import POINTS, History
from dowise.experiment.status import (
    ArmSummary,
    Status,
    context_text,
    default_tolerance,
    describe_continuing,
    describe_decisions,
    describe_leader,
    describe_stopping,
    describe_unused,
)
from dowise.problem import Problem
from dowise_web.api.dependencies import Here, house_of, key_of, meant, whose
from dowise_web.api.queries import MOST_ROUNDS
from dowise_web.auth import Reader
from dowise_web.cache import PatientRoute
from dowise_web.errors import says
from dowise_web.pages.rendering import address_of, as_sent, in_page_words, render, values_in

MOST_ARMS = 12  # that are shown unless all are asked for
_MARGIN = 3.0  # percent of the width on either side, so that no mark is cut


@dataclass(frozen=True)
class Axis:
    """Where numbers stand between 0 and 100 percent of the width."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> str:
        """The place of a number, as SVG reads it."""
        width = (self.high - self.low) or 1.0
        return f"{_MARGIN + (100 - 2 * _MARGIN) * (value - self.low) / width:.2f}%"

    def labels(self) -> list[tuple[str, str]]:
        """Places and texts of the ticks."""
        return [(self.at(tick), format_number(tick)) for tick in self.ticks]


@dataclass(frozen=True)
class Row:
    """One arm."""

    arm: str
    words: str
    mean: float
    low: float
    high: float
    best: float
    plays: int
    plays_in_all: int
    leads: bool


@dataclass(frozen=True)
class ArmTable:
    """The arms of one context."""

    one: ArmSummary
    rows: tuple[Row, ...]
    left_out: int
    """How many arms are not among the rows."""
    axis: Axis
    words: str
    """Which looks best, and how sure that is."""
    leaders: int
    """How many arms tie for the best; 1 where one leads."""


def standing(status: Status, one: ArmSummary, shows_all: bool = False) -> ArmTable:
    """The arms as they stand: the best mean first, of equals the likeliest to be the best."""
    problem, many = status.problem, len(one.arms)
    worse = problem.payoff.regrets(one.mean)
    order = [int(i) for i in np.lexsort((np.arange(many), -one.best, np.round(worse, 12)))]
    if not shows_all and many > MOST_ARMS:
        likely = sorted(order, key=lambda i: (i != one.leader, -one.best[i], worse[i]))
        order = [i for i in order if i in {*likely[:MOST_ARMS]}]
    same = one.leaders
    in_all = np.sum([other.plays for other in status.contexts], axis=0)
    rows = tuple(
        Row(
            str(one.arms[i]), one.arms[i].in_words(), float(one.mean[i]), float(one.low[i]),
            float(one.high[i]), float(one.best[i]), int(one.plays[i]), int(in_all[i]),
            leads=i in same and len(same) < many,
        )
        for i in order
    )  # fmt: skip
    axis = axis_for(min(row.low for row in rows), max(row.high for row in rows))
    words = describe_leader(status, one)
    return ArmTable(one, rows, many - len(rows), axis, words, len(same))


def axis_for(low: float, high: float, about: int = 5) -> Axis:
    """An axis over these numbers, with round ticks.

    >>> axis_for(0.13, 0.92).ticks
    (0.2, 0.4, 0.6, 0.8)
    >>> axis_for(3, 3).ticks
    (3.0,)
    """
    if not high > low:
        return Axis(low - 0.5, high + 0.5, (float(low),))
    rough = (high - low) / about
    size = 10.0 ** floor(log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return Axis(low, high, tuple(round(i * step, 12) for i in range(first, last + 1)))


def unit(problem: Problem) -> str:
    """What the means are of."""
    net = ", net of cost" if problem.payoff.has_costs else ""
    return f"mean {problem.reward}{net}{', smaller is better' if problem.minimise else ''}"


MOST_LINES = 6  # arms that have a colour of their own
OTHERS = "all others"


@dataclass(frozen=True)
class Chart:
    """Lines over the number of outcomes."""

    title: str
    along: str
    x: list[int]
    series: list[dict[str, Any]]
    """Each with name, values, colour (1, 2, … or "others") and whether it leads."""
    range: list[float] | None = None
    """Of the y axis; None where it follows the numbers."""

    def as_dict(self) -> dict[str, Any]:
        """For the page's script."""
        page: dict[str, Any] = to_json(self)
        return page

    def rows(self) -> list[list[str]]:
        """The same numbers as a table: outcomes, then each line."""
        return [
            [f"{outcomes:,}", *(format_number(one["values"][i]) for one in self.series)]
            for i, outcomes in enumerate(self.x)
        ]


def charts(problem: Problem, past: History, leader: int) -> list[Chart]:
    """P(best), the means and what stopping costs, in the first context of a history."""
    last = _last_of_each(past.outcomes)
    best, mean = past.best[last, 0], past.mean[last, 0]
    x = [int(count) for count in past.outcomes[last]]
    along = "decisions with an outcome"
    order = np.lexsort((np.arange(len(past.arms)), -best[-1], -best.max(axis=0)))
    arms = [leader, *(int(a) for a in order if a != leader)][:MOST_LINES]
    is_whole = len(past.arms) <= MOST_LINES  # then an arm has its colour in every context
    lines = [
        {"name": str(past.arms[a]), "colour": (a if is_whole else i) + 1, "leads": a == leader}
        for i, a in enumerate(arms)
    ]
    chances = [{**line, "values": best[:, a]} for line, a in zip(lines, arms, strict=True)]
    if len(arms) < len(past.arms):
        rest = np.clip(1 - best[:, arms].sum(axis=1), 0, 1)
        chances.append({"name": OTHERS, "colour": "others", "leads": False, "values": rest})
    means = [{**line, "values": mean[:, a]} for line, a in zip(lines, arms, strict=True)]
    cost = {"name": "cost a round", "colour": 1, "leads": True, "values": past.stopping[last, 0]}
    named = unit(problem)
    return [
        Chart("How likely each arm is to be the best", along, x, chances, [0, 1]),
        Chart(f"{named[0].upper()}{named[1:]}", along, x, means),
        Chart("Expected regret of stopping, a round", along, x, [cost]),
    ]


def _last_of_each(outcomes: Any) -> Any:
    """The last place of each number of outcomes."""
    is_last = np.append(outcomes[1:] != outcomes[:-1], True)
    return np.flatnonzero(is_last)


router = APIRouter(prefix="/experiments/{name:path}/known", route_class=PatientRoute)
Typed = Annotated[str, Query(max_length=40)]

MOST_CONTEXTS = 12  # that are listed before the rest is folded away


class _Asked:
    """What the address asks for; what is wrong in it is told, and left aside."""

    def __init__(
        self, request: Request, problem: Problem, tolerance: str = "", rounds: str = ""
    ) -> None:
        self.context = values_in(request.query_params, "context.")
        self.usual = f"{default_tolerance(problem):g}"
        self.tolerance, self.rounds, self.wrong = tolerance.strip(), rounds.strip(), ""
        if "tolerance" in request.query_params and not (self.tolerance or self.rounds):
            self.tolerance = self.usual  # what the empty field shows
        self.limit: float | None = self._read(
            self.tolerance, self.usual, lambda text: check_number("tolerance", float(text), 0)
        )
        self.more: int | None = self._read(
            self.rounds, "100", lambda text: check_integer("rounds", int(text), 1, MOST_ROUNDS)
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
        decisions=describe_decisions(status),
        verdict=None if asked.limit is None else status.advice(asked.limit),
        stops=asked.limit is not None and status.should_stop(asked.limit),
        stopping=describe_stopping(status, bool(worth)),
        worth=worth,
        unit=unit(status.problem),
        to_know=[*describe_unused(status), *status.notes],
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


def _chosen(request: Request, experiment: Experiment, status: Status, asked: _Asked) -> ArmSummary:
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
    return " ".join(describe_continuing(replace(status, continuing=found)))


def _contexts(
    experiment: Experiment, status: Status, chosen: ArmSummary, asked: _Asked
) -> list[dict[str, Any]]:
    """Each context in one line, those that came most often first."""
    ordered = sorted(status.contexts, key=lambda one: -one.weight)
    return [_in_a_line(experiment, one, chosen, asked) for one in ordered]


def _in_a_line(
    experiment: Experiment, one: ArmSummary, chosen: ArmSummary, asked: _Asked
) -> dict[str, Any]:
    same = one.leaders
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


def _past(request: Request, experiment: Experiment, status: Status, one: ArmSummary) -> Any:
    context = one.context or None
    _, found = house_of(request).look(
        experiment,
        ("history", key_of(context), POINTS),
        lambda: experiment.history(context),
        whose(request),
    )
    return charts(status.problem, found, one.leader)


def _query(one: ArmSummary) -> str:
    return urlencode({f"context.{name}": as_sent(label) for name, label in one.context.items()})
