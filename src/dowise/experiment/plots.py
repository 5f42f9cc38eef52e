"""Where an experiment stands, and how it came there, as a picture: numbers first, drawing second.

For each context the interval of every arm and P(best) along the journal; below them the expected
regret of stopping, and the regret of the decisions so far as estimated today. Where there are many
arms, those that matter are drawn and the others are summed up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import pluralize
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.counters import PlayCounts
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import History
from dowise.experiment.rehearsal import Rehearsal, exact_number
from dowise.experiment.status import ArmSummary, Status, context_text
from dowise.plotting.figures import (
    COLOURS,
    DASHES,
    GREY,
    INK,
    SeriesStyle,
    check_path,
    figure_style,
    finish_axes,
    label_ends,
    new_figure,
    save_figure,
)
from dowise.problem import Problem

MOST_ARMS = 12
OTHERS = "others"

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IntervalData:
    """The arms of one panel, in the order of the problem, those of `MOST_ARMS` that matter most."""

    title: str
    along: str
    """What the axis says: what the mark means, and what the means are of."""
    places: Integers
    """Where these arms stand among the problem's."""
    arms: tuple[str, ...]
    mean: Floats
    low: Floats
    high: Floats
    best: Floats
    marked: int | None
    """The place in this list of the leader, or of what was chosen; None where leaders tie."""
    left_out: int
    """How many other arms there are."""


@dataclass(frozen=True, eq=False)
class ContextData:
    """One context: the intervals of its arms, and P(best) at each point of the journal."""

    intervals: IntervalData
    best: Floats
    """(points, arms), the arms as in `intervals`."""
    others: Floats | None
    """Of all other arms together; None where there are none."""


@dataclass(frozen=True, eq=False)
class FigureData:
    """All numbers of the picture."""

    title: str
    unit: str
    """What means and regrets are in."""
    contexts: tuple[ContextData, ...]
    outcomes: Integers
    """How many outcomes were known at each point of the journal."""
    stopping: Floats
    """What stopping there was expected to cost a round."""
    decisions: Integers
    """The numbers of the decisions whose arm and context are known and judged today."""
    regret: Floats
    """What each of them is expected to have cost, by today's posterior."""
    tolerance: float | None = None

    @property
    def cumulative_regret(self) -> Floats:
        """Of all decisions up to each."""
        total: Floats = np.cumsum(self.regret)
        return total


def figure_data(
    status: Status, history: History, cases: Iterable[Case], tolerance: float | None = None
) -> FigureData:
    """The numbers of the picture, of contexts that the history has."""
    panels = []
    for c, context in enumerate(history.contexts):
        one = next((one for one in status.contexts if one.context == context), None)
        if one is None:
            raise DowiseError(f"the status has no context {context}: take both of one experiment")
        panels.append(_context(status.problem, one, history.best[:, c]))
    decisions, regret = _regrets(status, cases)
    done, pending = pluralize(status.counts["done"], "outcome"), status.counts["pending"]
    title = f"{status.name}: {done}, {pending:,} pending"
    if len(panels) < len(status.contexts):
        title += f"; the context{'' if len(panels) == 1 else 's'} that came most often"
    return FigureData(
        title,
        _unit(status.problem),
        tuple(panels),
        history.outcomes,
        history.expected_regret_of_stopping,
        decisions,
        regret,
        tolerance,
    )


def intervals_then(explanation: Explanation) -> IntervalData:
    """The numbers of an explanation's picture: the arms as they looked when it was decided."""
    decision, then = explanation.decision, explanation.then
    place = decision.problem.arm_index(decision.arm)
    where = f", {context_text(then)}" if then.context else ""
    title, along = f"decision {decision.id}{where}", f"▸ chosen; {_unit(decision.problem)}"
    return _intervals(then, title, along, place, then.best)


def draw(data: FigureData | IntervalData, path: str | Path) -> None:
    """Draw the numbers to a .png, .svg or .pdf file."""

    if isinstance(data, IntervalData):
        draw_intervals(data, path)
    else:
        draw_status(data, path)


def _unit(problem: Problem) -> str:
    net = ", net of cost" if problem.payoff.has_costs else ""
    return f"mean {problem.reward}{net}{', smaller is better' if problem.minimise else ''}"


def _context(problem: Problem, one: ArmSummary, best: Floats) -> ContextData:
    same, says = one.leaders, "▸ looks best"
    if len(same) > 1:
        is_all = len(same) == len(one.arms)
        says = "nothing tells the arms apart" if is_all else f"{len(same)} arms tie for the best"
    along = f"{says}; {_unit(problem)}"
    intervals = _intervals(one, context_text(one), along, one.leader, best.max(axis=0))
    if len(same) > 1:
        intervals = replace(intervals, marked=None)
    own = best[:, intervals.places]
    others = 1 - own.sum(axis=1) if intervals.left_out else None
    return ContextData(intervals, own, others)


def _intervals(
    one: ArmSummary, title: str, along: str, marked: int, interest: Floats
) -> IntervalData:
    """The marked arm, and those with the largest `interest`, today's P(best) deciding ties."""
    order = np.lexsort((np.arange(len(one.arms)), -one.best, -np.maximum(interest, one.best)))
    first: Sequence[int] = [marked, *(a for a in order.tolist() if a != marked)][:MOST_ARMS]
    places = np.array(sorted(first))
    return IntervalData(
        title,
        along,
        places,
        tuple(str(one.arms[a]) for a in places),
        one.mean[places],
        one.low[places],
        one.high[places],
        one.best[places],
        int(np.flatnonzero(places == marked)[0]),
        len(one.arms) - len(places),
    )


def _regrets(status: Status, cases: Iterable[Case]) -> tuple[Integers, Floats]:
    """Of every decision that was played what it is expected to have cost, by today's posterior."""
    came = PlayCounts(status.problem)
    regrets = {tuple(one.context.values()): one.regret for one in status.contexts}
    places = {arm: a for a, arm in enumerate(status.problem.arms)}
    found = []
    for case in cases:
        context = came.context(case)
        if case.status in ("done", "pending") and context in regrets and case.arm in places:
            found.append((case.id, regrets[context][places[case.arm]]))
    return (
        np.array([number for number, _ in found], dtype=np.int64),
        np.array([regret for _, regret in found], dtype=np.float64),
    )


_WIDTH = 10.0
_LINE, _REST, _LOWEST = 0.17, 1.15, 2.1  # inches: for a line of names, and of a panel
_NAMED, _ONCE_NAMED = 0.04, 0.3  # a line is named if it ends above one, or ever was above the other
_MOST_POINTS = 1000
_LONG, _LINE_LENGTH, _MOST_LINES = 16, 36, 3  # characters of an arm's name, and lines
_LABEL_LENGTH = 62  # characters of a line below an axis
_TITLE_LENGTH = 46  # and above one: a panel is half the picture, less the names of the arms


def draw_status(data: FigureData, path: str | Path) -> None:
    """Draw the status of an experiment to a file."""
    path = check_path(path)
    arms = sorted({arm for each in data.contexts for arm in each.intervals.places.tolist()})
    styles = {arm: SeriesStyle.from_index(i) for i, arm in enumerate(arms)}
    heights = [_height(context.intervals) for context in data.contexts] + [2.6]
    with figure_style():
        figure = new_figure(_WIDTH, sum(heights) + 0.3)
        ratios = {"height_ratios": heights}
        grid = figure.subplots(len(heights), 2, squeeze=False, gridspec_kw=ratios)
        figure.suptitle(data.title, fontsize=11, color=INK, x=0.01, ha="left")
        for axes, context in zip(grid, data.contexts, strict=False):
            _draw_arms(axes[0], context.intervals, styles)
            _draw_best(axes[1], data, context, styles)
        _draw_stopping(grid[-1, 0], data)
        _draw_regret(grid[-1, 1], data)
    save_figure(figure, path)


def draw_intervals(data: IntervalData, path: str | Path) -> None:
    """Draw the intervals of the arms to a file."""
    path = check_path(path)
    styles = {arm: SeriesStyle.from_index(i) for i, arm in enumerate(data.places.tolist())}
    with figure_style():
        figure = new_figure(7.0, _height(data))
        _draw_arms(figure.subplots(), data, styles)
    save_figure(figure, path)


def _height(data: IntervalData) -> float:
    lines = max(len(_wrapped(arm)) for arm in data.arms)
    above = _LINE * (len(_title(data.title)) - 1)
    return above + max(_LOWEST, (_LINE * lines + 0.1) * len(data.arms) + _REST)


# -- the panels ---------------------------------------------------------------------------------


def _draw_arms(axes: Any, data: IntervalData, styles: dict[int, SeriesStyle]) -> None:
    """A bar from low to high for each arm, the first on top, with its mean and P(best)."""
    for row, place in enumerate(data.places.tolist()):
        style, is_marked = styles[place], row == data.marked
        axes.plot(
            [data.low[row], data.high[row]],
            [row, row],
            color=style.colour,
            alpha=0.9,
            linewidth=5 if is_marked else 2.2,
            solid_capstyle="butt",
        )
        marker = {"color": style.colour, "markersize": 6.5, "markeredgecolor": "white"}
        axes.plot(data.mean[row], row, style.marker, **marker)
        axes.annotate(
            _chance(float(data.best[row])),
            (1.01, row),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            color=INK,
            va="center",
            annotation_clip=False,
        )
    axes.annotate("P(best)", (1.01, 1.02), xycoords="axes fraction", fontsize=8, color=GREY)
    axes.set_yticks(range(len(data.arms)), _row_names(data))
    axes.set_ylim(len(data.arms) - 0.4, -0.6)
    margin = 0.06 * (float(data.high.max() - data.low.min()) or 1.0)
    axes.set_xlim(float(data.low.min()) - margin, float(data.high.max()) + margin)
    plural = "" if data.left_out == 1 else "s"
    more = [f"{data.left_out:,} other arm{plural} not drawn"] if data.left_out else []
    along = wrap(f"{data.along}, with its 90\u00a0% interval", _LABEL_LENGTH)
    finish_axes(axes, "\n".join(_title(data.title)), "\n".join([*along, *more]), grid="x")
    axes.tick_params(axis="y", labelsize=8.5 if _are_short(data) else 7.5)


def _draw_best(
    axes: Any, data: FigureData, context: ContextData, styles: dict[int, SeriesStyle]
) -> None:
    """P(best) of each arm along the journal."""
    arms, ends = context.intervals, []
    names = arms.arms if _are_short(arms) else [str(i + 1) for i in range(len(arms.arms))]
    for i, (name, place) in enumerate(zip(names, arms.places.tolist(), strict=True)):
        style, chances = styles[place], context.best[:, i]
        _draw_line(axes, data.outcomes, chances, style.colour, style.dashes)
        if chances[-1] > _NAMED or chances.max() > _ONCE_NAMED:
            ends.append((float(chances[-1]), name, style.colour))
    if context.others is not None:
        _draw_line(axes, data.outcomes, context.others, GREY, (0, (1, 2)))
        ends.append((float(context.others[-1]), OTHERS, GREY))
    axes.set_ylim(-0.02, 1.03)
    label_ends(axes, ends, 0.14 / (_height(arms) - _REST + 0.4))
    finish_axes(axes, "P(best) along the way", "outcomes known")
    _start_at_zero(axes, data.outcomes)


def _draw_stopping(axes: Any, data: FigureData) -> None:
    _draw_line(axes, data.outcomes, data.stopping, COLOURS[0])
    top = float(data.stopping.max())
    if data.tolerance is not None:
        axes.axhline(data.tolerance, color=COLOURS[1], linestyle=DASHES[1], linewidth=1.2)
        axes.annotate(
            "tolerance",
            (0.99, data.tolerance),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            color=COLOURS[1],
            ha="right",
            va="bottom",
            zorder=5,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1},
        )
        top = max(top, data.tolerance)
    axes.set_ylim(0, 1.1 * top or 1.0)
    finish_axes(axes, "Expected regret of stopping, a round", "outcomes known")
    _start_at_zero(axes, data.outcomes)


def _draw_regret(axes: Any, data: FigureData) -> None:
    total, step = data.cumulative_regret, max(1, len(data.decisions) // _MOST_POINTS)
    if len(total):
        _draw_line(axes, data.decisions[::-step][::-1], total[::-step][::-1], COLOURS[2])
        axes.set_ylim(0, 1.1 * float(total[-1]) or 1.0)
    finish_axes(axes, "Regret of the decisions so far, as estimated today", "decision")
    _start_at_zero(axes, data.decisions)


# -- their parts --------------------------------------------------------------------------------


def _draw_line(axes: Any, along: Any, up: Any, colour: str, dashes: Any = "-") -> None:
    marker = "o" if len(along) == 1 or np.ptp(along) == 0 else None
    axes.plot(
        along, up, color=colour, linestyle=dashes, linewidth=1.7, marker=marker, clip_on=False
    )


def _start_at_zero(axes: Any, places: Any) -> None:
    axes.set_xlim(0, max(float(places.max()) if len(places) else 0.0, 1.0))
    axes.xaxis.get_major_locator().set_params(integer=True)


def _row_names(data: IntervalData) -> list[str]:
    """Names of the rows, numbered where they are too long for the ends of lines."""
    names = ["\n".join(_wrapped(arm)) for arm in data.arms]
    if not _are_short(data):
        names = [f"{i + 1}  {name}" for i, name in enumerate(names)]
    return [f"▸ {name}" if i == data.marked else name for i, name in enumerate(names)]


def _are_short(data: IntervalData) -> bool:
    return max(map(len, data.arms)) <= _LONG


def _title(context: str) -> list[str]:
    return _wrapped(context or "All arms", _TITLE_LENGTH)


def _wrapped(name: str, length: int = _LINE_LENGTH) -> list[str]:
    """A name in a few lines, broken where a word ends: at a space, or after one of = , ( _ -."""
    lines = [""]
    for word in re.findall(r".+?(?:[\s=,(_-]+|$)", name, re.DOTALL):
        if len(word.rstrip()) <= length < len(lines[-1] + word.rstrip()):
            lines.append("")
        whole = lines.pop() + word
        while len(whole.rstrip()) > length:  # a word that is longer than a line
            lines.append(whole[:length])
            whole = whole[length:]
        lines.append(whole)
    lines = [line.strip() for line in lines if line.strip()]
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1][: length - 1]}…"]


def _chance(share: float) -> str:
    return "<0.01" if 0 < share < 0.005 else f"{share:.2f}"


@dataclass(frozen=True, eq=False)
class Line:
    """One curve, with the range that holds 90 % of the worlds where it has one."""

    label: str
    middle: Floats
    low: Floats | None = None
    high: Floats | None = None
    is_aside: bool = False
    """Whether it is there for comparison only."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One plot of the figure."""

    title: str
    lines: tuple[Line, ...]
    is_share: bool = False
    """Whether its numbers are shares, between 0 and 1."""


@dataclass(frozen=True, eq=False)
class RehearsalFigure:
    """What is to be drawn."""

    title: str
    rounds: NDArray[np.int64]
    panels: tuple[Panel, ...]


def rehearsal_figure(rehearsal: Rehearsal) -> RehearsalFigure:
    """The numbers of the picture."""
    name = rehearsal.problem.name or "the problem"
    late = f", outcomes {pluralize(rehearsal.delay, 'round')} late" if rehearsal.delay else ""
    worlds = pluralize(rehearsal.worlds, "world")
    title = f"{name}: {rehearsal.policy} in {worlds} drawn from the prior{late}"
    if rehearsal.worlds > 1:
        title += "   (mean, and the range of 90 % of worlds)"
    return RehearsalFigure(title, rehearsal.rounds, _panels(rehearsal))


def _panels(rehearsal: Rehearsal) -> tuple[Panel, ...]:
    looks, tolerance = rehearsal.curve(), exact_number(rehearsal.tolerance)

    def numbers(name: str) -> Floats:
        return np.array([look[name] for look in looks])

    def spread(name: str, label: str) -> Line:
        parts = ("mean", "low", "high")
        middle, low, high = (
            np.array([getattr(look[name], part) for look in looks]) for part in parts
        )
        return Line(label, middle, low, high) if rehearsal.worlds > 1 else Line(label, middle)

    limit = np.full(len(looks), rehearsal.tolerance)
    everywhere = " in every context" if rehearsal.problem.context else ""
    return (
        Panel(
            "regret so far",
            (
                spread("regret", rehearsal.policy),
                Line("at random", numbers("at_random"), is_aside=True),
            ),
        ),
        Panel(
            "what stopping now costs a round",
            (
                spread("stopping", "expected"),
                Line("true", np.array([look["cost"].mean for look in looks])),
                Line(f"tolerance {tolerance}", limit, is_aside=True),
            ),
        ),
        Panel(
            f"is what looks best the best{everywhere}?",
            (
                spread("sure", "believed probability"),
                Line("share of worlds where it is", numbers("best")),
                Line(f"… within {tolerance}", numbers("nearly_best"), is_aside=True),
            ),
            is_share=True,
        ),
        Panel(
            "worlds in which the advice was to stop",
            (Line(f"tolerance {tolerance}", numbers("stopped")),),
            is_share=True,
        ),
    )


def draw_rehearsal(figure: RehearsalFigure, path: str | Path) -> None:
    """Draw a rehearsal to a .svg, .png or .pdf file."""
    path = check_path(path)
    with figure_style():
        drawing = new_figure(9.0, 6.4)
        drawing.suptitle(figure.title, fontsize=10, color=INK, x=0.01, ha="left")
        grid = drawing.subplots(2, 2, sharex=True)
        for axes, panel in zip(grid.flat, figure.panels, strict=True):
            _draw_panel(axes, figure.rounds, panel)
        for axes in grid[1]:
            axes.set_xlabel("round")
    save_figure(drawing, path)


def _draw_panel(axes: Any, rounds: NDArray[np.int64], panel: Panel) -> None:
    styles = iter(zip(COLOURS, DASHES, strict=False))
    for line in panel.lines:
        colour, dashes = (GREY, ":") if line.is_aside else next(styles)
        if line.low is not None and line.high is not None:
            axes.fill_between(rounds, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            rounds, line.middle, color=colour, linestyle=dashes, linewidth=1.8, label=line.label
        )
    axes.set_xlim(rounds[0], rounds[-1])
    axes.xaxis.set_major_formatter(lambda number, _: exact_number(number))
    if panel.is_share:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: exact_number(value))
    finish_axes(axes, panel.title, size=10)
    axes.legend(frameon=False, fontsize=8, loc="best")
