"""The page What we know: the arms in each context, how that came about, and whether to stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor, inf, log10
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from dowise._core.document import format_number
from dowise.errors import DowiseError
from dowise.experiment import (
    ASSUMPTION,
    ASSUMPTION_NOTE,
    POINTS,
    ArmSummary,
    History,
    StateView,
    Status,
    context_text,
    default_tolerance,
    describe_continuing,
    describe_decisions,
    describe_leader,
    describe_stopping,
    describe_unused,
    to_json,
)
from dowise.problem import Problem
from dowise_web.api.dependencies import CurrentView, cached, context_key, normalize_context
from dowise_web.api.queries import MAX_ROUNDS
from dowise_web.auth import Reader
from dowise_web.pages.rendering import (
    encode_value,
    get_values,
    page_message,
    page_url,
    render_in_thread,
)

router = APIRouter(prefix="/experiments/{name:path}/known")
TypedNumber = Annotated[str, Query(max_length=40)]

MAX_ARMS = 12  # shown unless all are requested
MAX_CONTEXTS = 12  # listed before the rest is folded away
MAX_SERIES = 6  # arms with a colour of their own
_MARGIN = 3.0  # percent of the width on either side, so that no mark is cut off


# -- the table of arms --------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """Horizontal axis that maps numbers to percentages of the width."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> str:
        """Return the position of a number, for SVG."""
        width = (self.high - self.low) or 1.0
        return f"{_MARGIN + (100 - 2 * _MARGIN) * (value - self.low) / width:.2f}%"

    @cached_property
    def labels(self) -> list[tuple[str, str]]:
        """Positions and texts of the ticks."""
        return [(self.at(tick), format_number(tick)) for tick in self.ticks]


@dataclass(frozen=True)
class ArmRow:
    """One arm of an `ArmTable`."""

    arm: str
    mean: float
    low: float
    high: float
    best: float
    plays: int
    total_plays: int
    is_leader: bool
    is_assumption: bool
    """True if the arm was never tried: its bar is hollow."""


@dataclass(frozen=True)
class ArmTable:
    """The arms in one context, the best mean first."""

    rows: tuple[ArmRow, ...]
    left_out: int
    """Number of arms without a row."""
    axis: Axis
    summary: str
    """Sentence about the best arm and its certainty."""
    leaders: int
    """Number of arms that tie for the best."""


def arm_table(status: Status, context: ArmSummary, shows_all: bool = False) -> ArmTable:
    """Return the arms in a context, ordered by mean, then by the chance of being the best."""
    problem, count = status.problem, len(context.arms)
    regrets = problem.payoff.regrets(context.mean)
    order = [int(i) for i in np.lexsort((np.arange(count), -context.best, np.round(regrets, 12)))]
    if not shows_all and count > MAX_ARMS:
        likely = sorted(order, key=lambda i: (i != context.leader, -context.best[i], regrets[i]))
        order = [i for i in order if i in {*likely[:MAX_ARMS]}]
    leaders = context.leaders
    total_plays = np.sum([other.plays for other in status.contexts], axis=0)
    rows = tuple(
        ArmRow(
            str(context.arms[i]),
            float(context.mean[i]),
            float(context.low[i]),
            float(context.high[i]),
            float(context.best[i]),
            int(context.plays[i]),
            int(total_plays[i]),
            is_leader=i in leaders and len(leaders) < count,
            is_assumption=bool(context.is_assumption[i]),
        )
        for i in order
    )
    axis = axis_for(min(row.low for row in rows), max(row.high for row in rows))
    summary = describe_leader(status, context)
    return ArmTable(rows, count - len(rows), axis, summary, len(leaders))


def axis_for(low: float, high: float, about: int = 5) -> Axis:
    """Return an axis over a range, with about that many round ticks.

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
    """Return the label of the axis of means."""
    net = ", net of cost" if problem.payoff.has_costs else ""
    return f"mean {problem.reward}{net}{', lower is better' if problem.minimise else ''}"


# -- charts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chart:
    """Lines over the number of outcomes, or of rounds."""

    title: str
    along: str
    x: list[int]
    series: list[dict[str, Any]]
    """Each with name, values, colour (1, 2, … or "others") and `leads`."""
    range: list[float] | None = None
    """Range of the y axis; None to fit the values."""

    def as_dict(self) -> dict[str, Any]:
        """Return the data for the page's script."""
        data: dict[str, Any] = to_json(self)
        return data

    def rows(self) -> list[list[str]]:
        """Return the same numbers as a table: x, then each line."""
        return [
            [f"{x:,}", *(format_number(line["values"][i]) for line in self.series)]
            for i, x in enumerate(self.x)
        ]


def history_charts(problem: Problem, history: History, leader: int) -> list[Chart]:
    """Return charts of chances, means and the loss of stopping, in a history's first context."""
    # Several points may have the same number of outcomes: the last one counts.
    is_last = np.append(history.outcomes[1:] != history.outcomes[:-1], True)
    last = np.flatnonzero(is_last)
    best, mean = history.best[last, 0], history.mean[last, 0]
    x = [int(count) for count in history.outcomes[last]]
    along = "decisions with an outcome"
    order = np.lexsort((np.arange(len(history.arms)), -best[-1], -best.max(axis=0)))
    arms = [leader, *(int(arm) for arm in order if arm != leader)][:MAX_SERIES]
    has_all = len(history.arms) <= MAX_SERIES  # then an arm has the same colour in every context
    lines = [
        {
            "name": str(history.arms[arm]),
            "colour": (arm if has_all else i) + 1,
            "leads": arm == leader,
        }
        for i, arm in enumerate(arms)
    ]
    chances = [{**line, "values": best[:, arm]} for line, arm in zip(lines, arms, strict=True)]
    if not has_all:
        others = np.clip(1 - best[:, arms].sum(axis=1), 0, 1)
        chances.append({"name": "all others", "colour": "others", "leads": False, "values": others})
    means = [{**line, "values": mean[:, arm]} for line, arm in zip(lines, arms, strict=True)]
    loss = {"name": "loss", "colour": 1, "leads": True, "values": history.stopping[last, 0]}
    title = unit(problem)
    return [
        Chart("Chance of being the best", along, x, chances, [0, 1]),
        Chart(f"{title[0].upper()}{title[1:]}", along, x, means),
        Chart("What we'd lose by stopping, per round", along, x, [loss]),
    ]


# -- the page -----------------------------------------------------------------------------------


class _Query:
    """Parsed query of the URL; invalid parts are reported in `error`, and ignored."""

    def __init__(
        self,
        request: Request,
        view: StateView,
        problem: Problem,
        tolerance: str = "",
        rounds: str = "",
    ) -> None:
        self._url = page_url(view.name, "known")
        self.context = get_values(request.query_params, "context.")
        self.default_tolerance = f"{default_tolerance(problem):g}"
        self.tolerance, self.rounds, self.error = tolerance.strip(), rounds.strip(), ""
        if "tolerance" in request.query_params and not (self.tolerance or self.rounds):
            self.tolerance = self.default_tolerance  # what the empty field shows
        tolerance_number = self._parse(self.tolerance, float, self.default_tolerance)
        if tolerance_number is not None and not 0 <= tolerance_number < inf:
            self.error = (
                f"{self.tolerance!r} is not a loss of at least 0, such as {self.default_tolerance}."
            )
            tolerance_number = None
        self.tolerance_number: float | None = tolerance_number
        rounds_number = self._parse(self.rounds, int, "100")
        if rounds_number is not None and not 1 <= rounds_number <= MAX_ROUNDS:
            self.error = f"The number of rounds must be between 1 and {MAX_ROUNDS:,}."
            rounds_number = None
        self.rounds_number: int | None = rounds_number

    def _parse(self, text: str, parse: Callable[[str], Any], example: str) -> Any:
        try:
            return parse(text) if text else None
        except ValueError:
            self.error = f"{text!r} is not a number such as {example}."
            return None

    def url(self, context: Mapping[str, str], **more: str) -> str:
        """Return the URL of the page with another context, or with more of it."""
        parts = _context_fields(context)
        numbers = {"tolerance": self.tolerance, "rounds": self.rounds}
        parts |= {name: text for name, text in numbers.items() if text} | more
        return f"{self._url}?{urlencode(parts)}" if parts else self._url

    def charts_url(self, context: Mapping[str, str]) -> str:
        """Return the URL of the charts in a context, which are a part of the page."""
        return f"{self._url}/past?{urlencode(_context_fields(context))}"


def _context_fields(context: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form that hold a context."""
    return {f"context.{name}": encode_value(label) for name, label in context.items()}


@router.get("")
async def known(
    request: Request,
    view: CurrentView,
    principal: Reader,
    tolerance: TypedNumber = "",
    rounds: TypedNumber = "",
    arms: Annotated[str, Query(max_length=10)] = "",
    past: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Show the page; `arms=all` shows every arm, `past=1` the charts without JavaScript."""
    view, status = await _status(request, view)
    query = _Query(request, view, status.problem, tolerance, rounds)
    context = await _selected_context(request, view, status, query)
    continuing = ""
    if query.rounds_number is not None:
        continuing = await _continuing(request, view, status, query.rounds_number)
    charts = await _charts(request, view, status, context) if past else None
    limit = query.tolerance_number
    url_of_all = {"arms": "all"} if arms == "all" else {}
    return await render_in_thread(
        request,
        "results.html",
        principal,
        view=view,
        problem=status.problem,
        status=status,
        query=query,
        table=arm_table(status, context, arms == "all"),
        where=context_text(context),
        contexts=[
            _context_row(other, context, query)
            for other in sorted(status.contexts, key=lambda other: -other.weight)
        ],
        selected=_context_fields(context.context),
        decisions=describe_decisions(status),
        advice=None if limit is None else status.advice(limit),
        stopping=describe_stopping(status, bool(continuing)),
        continuing=continuing,
        unit=unit(status.problem),
        assumption=ASSUMPTION,
        assumption_note=ASSUMPTION_NOTE,
        caveats=[*describe_unused(status), *status.notes],
        all_arms_url=query.url(context.context, arms="all"),
        current_url=query.url(context.context, **url_of_all),
        charts_url=query.url(context.context, past="1"),
        charts_part_url=query.charts_url(context.context),
        charts=charts,
        max_contexts=MAX_CONTEXTS,
    )


@router.get("/past")
async def charts(request: Request, view: CurrentView, principal: Reader) -> Response:
    """Show the charts alone, which take longer."""
    view, status = await _status(request, view)
    context = await _selected_context(request, view, status, _Query(request, view, status.problem))
    return await render_in_thread(
        request,
        "results_charts.html",
        principal,
        charts=await _charts(request, view, status, context),
    )


async def _status(request: Request, view: StateView) -> tuple[StateView, Status]:
    """Return the status without evidence, which has a page of its own."""
    return await cached(
        request,
        view,
        ("status", None, None, False),
        lambda view: view.status(evidence=False),
    )


async def _selected_context(
    request: Request, view: StateView, status: Status, query: _Query
) -> ArmSummary:
    """Return the arms in the requested context, or in the most frequent one."""
    if not query.context:
        return max(status.contexts, key=lambda context: context.weight)
    for context in status.contexts:
        if context.context == query.context:
            return context
    labels = normalize_context(query.context, status.problem)
    _, other = await cached(
        request,
        view,
        ("status", context_key(labels), None, False),
        lambda view: view.status(labels, evidence=False),
        is_exact=True,
    )
    return other.contexts[0]


async def _continuing(request: Request, view: StateView, status: Status, rounds: int) -> str:
    """Return what more rounds are worth, or why that is unknown."""
    try:
        _, value = await cached(
            request,
            view,
            ("continuing", rounds),
            lambda view: view.value_of_continuing(rounds),
            is_long=True,
            is_exact=True,
        )
    except DowiseError as error:
        return page_message(request, error)
    return " ".join(describe_continuing(replace(status, continuing=value)))


async def _charts(
    request: Request, view: StateView, status: Status, context: ArmSummary
) -> list[Chart]:
    labels = context.context or None
    _, history = await cached(
        request,
        view,
        ("history", context_key(labels), POINTS),
        lambda view: view.history(labels),
        is_long=True,
        is_exact=True,
    )
    return history_charts(status.problem, history, context.leader)


def _context_row(context: ArmSummary, selected: ArmSummary, query: _Query) -> dict[str, Any]:
    leaders = context.leaders
    is_open = len(leaders) == len(context.arms) > 1
    return {
        "text": context_text(context),
        "url": query.url(context.context),
        "is_selected": context.context == selected.context,
        "share": context.weight,
        "leader": str(context.arms[context.leader]) if len(leaders) == 1 else None,
        "tie": "no difference known yet" if is_open else f"{len(leaders)} arms tie",
        "mean": float(context.mean[context.leader]),
        "best": None if is_open else float(context.best[list(leaders)].sum()),
        "stopping": context.stopping,
    }
