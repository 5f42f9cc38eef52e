"""Charts of an experiment, an explanation and a rehearsal: first the numbers, then the drawing.

The chart of an experiment has a row for each context, with the interval of every arm and P(best)
along the journal. Below are the expected loss per round of stopping, and the regret of the
decisions so far, as estimated today. If there are many arms, the most relevant are drawn, and the
others are summed up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from dowise._core.document import pluralize
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.counters import PlayCounts
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import History
from dowise.experiment.rehearsal import Rehearsal, exact_number
from dowise.experiment.status import ASSUMPTION, ArmSummary, Status, context_text
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

MAX_ARMS = 12  # in a chart

_WIDTH = 10.0  # inches
_LINE_HEIGHT, _FRAME_HEIGHT, _MIN_HEIGHT = 0.17, 1.15, 2.1  # inches: of a line, around it, at least
_MIN_LAST, _MIN_EVER = 0.04, 0.3  # P(best), at the end or ever, above which a line has a label
_MAX_POINTS = 1000
_SHORT_NAME, _NAME_WIDTH, _MAX_NAME_LINES = 16, 36, 3  # characters of an arm's name, and lines
_LABEL_WIDTH = 62  # characters of a line below an axis
_HOLLOW_WIDTH, _OUTLINE = 2.8, 1.0  # points that a hollow bar is wider, and of its outline
_REMARK = {"fontsize": 6.5, "color": GREY, "ha": "right", "va": "bottom"}
_TITLE_WIDTH = 46  # characters of a line above: a panel is half of the chart without the names

Styles = dict[int, SeriesStyle]
"""Style of each arm by its index among the problem's, the same in all panels."""


# -- numbers ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ArmIntervals:
    """Intervals of the arms of one panel: at most `MAX_ARMS`, in the order of the problem."""

    title: str
    axis_label: str
    """Label of the axis: the meaning of the marked arm and of the means."""
    indices: IntArray
    """Indices of these arms among the problem's."""
    arms: tuple[str, ...]
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    best: FloatArray
    marked: int | None
    """Position in this list of the leader or the chosen arm; None if leaders tie."""
    left_out: int
    """Number of other arms."""
    is_assumption: BoolArray
    """True for each arm that was never tried."""


@dataclass(frozen=True, eq=False)
class ContextChart:
    """Numbers of one context: intervals of its arms, and P(best) at each point of the journal."""

    intervals: ArmIntervals
    best: FloatArray
    """P(best) of each arm: (points, arms), the arms as in `intervals`."""
    best_of_others: FloatArray | None
    """P(best) of all other arms together; None if there are none."""


@dataclass(frozen=True, eq=False)
class StatusChart:
    """All numbers of the chart of an experiment."""

    title: str
    contexts: tuple[ContextChart, ...]
    outcomes: IntArray
    """Number of known outcomes at each point of the journal."""
    stopping: FloatArray
    """Expected loss per round of stopping at each point."""
    decisions: IntArray
    """Numbers of the decisions whose arm and context are among those of the chart."""
    regret: FloatArray
    """Expected loss of each of these decisions, by today's posterior."""
    tolerance: float | None = None


def status_chart(
    status: Status, history: History, cases: Iterable[Case], tolerance: float | None = None
) -> StatusChart:
    """Return the chart of an experiment, in the contexts of its history."""
    by_context: dict[tuple[str, ...] | None, ArmSummary] = {
        tuple(arms.context.values()): arms for arms in status.contexts
    }
    charts = []
    for c, context in enumerate(history.contexts):
        arms = by_context.get(tuple(context.values()))
        if arms is None or arms.context != context:
            raise DowiseError(
                f"the status has no context {context}: take both of one experiment",
                code="wrong-problem",
            )
        charts.append(_context_chart(status.problem, arms, history.best[:, c]))
    plays, indices = PlayCounts(status.problem), {a: i for i, a in enumerate(status.problem.arms)}
    numbers, regrets = [], list[float]()
    for case in cases:
        arms, i = by_context.get(plays.context(case)), indices.get(case.arm)
        if case.status in ("done", "pending") and arms is not None and i is not None:
            numbers.append(case.id)
            regrets.append(arms.regret[i])
    outcomes, pending = pluralize(status.counts["done"], "outcome"), status.counts["pending"]
    title = f"{status.name}: {outcomes}, {pending:,} pending"
    if len(charts) < len(status.contexts):
        title += f"; the most frequent context{'' if len(charts) == 1 else 's'}"
    return StatusChart(
        title=title,
        contexts=tuple(charts),
        outcomes=history.outcomes,
        stopping=history.expected_regret_of_stopping,
        decisions=np.array(numbers, dtype=np.int64),
        regret=np.array(regrets, dtype=np.float64),
        tolerance=tolerance,
    )


def explanation_chart(explanation: Explanation) -> ArmIntervals:
    """Return the intervals of the arms as they looked when a decision was made."""
    decision, then = explanation.decision, explanation.then
    context = f", {context_text(then)}" if then.context else ""
    title, axis_label = f"decision {decision.id}{context}", f"▸ chosen; {_unit(decision.problem)}"
    chosen = decision.problem.arm_index(decision.arm)
    return _arm_intervals(then, title, axis_label, chosen, then.best)


def _unit(problem: Problem) -> str:
    net = ", net of cost" if problem.payoff.has_costs else ""
    return f"mean {problem.reward}{net}{', smaller is better' if problem.minimise else ''}"


def _context_chart(problem: Problem, arms: ArmSummary, best: FloatArray) -> ContextChart:
    ties, mark = len(arms.leaders), "▸ looks best"
    if ties > 1:
        all_tie = ties == len(arms.arms)
        mark = "nothing tells the arms apart" if all_tie else f"{ties} arms tie for the best"
    axis_label = f"{mark}; {_unit(problem)}"
    title, relevance = context_text(arms), best.max(axis=0)
    intervals = _arm_intervals(arms, title, axis_label, arms.leader, relevance)
    if ties > 1:
        intervals = replace(intervals, marked=None)
    drawn = best[:, intervals.indices]
    return ContextChart(intervals, drawn, 1 - drawn.sum(axis=1) if intervals.left_out else None)


def _arm_intervals(
    arms: ArmSummary, title: str, axis_label: str, marked: int, relevance: FloatArray
) -> ArmIntervals:
    """Select the marked arm and the most relevant ones; today's P(best) decides ties."""
    order = np.lexsort((np.arange(len(arms.arms)), -arms.best, -np.maximum(relevance, arms.best)))
    selected = [marked, *(i for i in order.tolist() if i != marked)][:MAX_ARMS]
    indices = np.array(sorted(selected))
    return ArmIntervals(
        title=title,
        axis_label=axis_label,
        indices=indices,
        arms=tuple(str(arms.arms[i]) for i in indices),
        mean=arms.mean[indices],
        low=arms.low[indices],
        high=arms.high[indices],
        best=arms.best[indices],
        marked=sorted(selected).index(marked),
        left_out=len(arms.arms) - len(indices),
        is_assumption=arms.is_assumption[indices],
    )


# -- an experiment and an explanation -------------------------------------------------------------


def draw_status(chart: StatusChart, path: str | Path) -> None:
    """Draw the chart of an experiment to a .png, .svg or .pdf file."""
    path = check_path(path)
    styles = _styles(sorted({i for c in chart.contexts for i in c.intervals.indices.tolist()}))
    heights = [_height(context.intervals) for context in chart.contexts] + [2.6]
    with figure_style():
        figure = new_figure(_WIDTH, sum(heights) + 0.3)
        grid = figure.subplots(
            len(heights), 2, squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        figure.suptitle(chart.title, fontsize=11, color=INK, x=0.01, ha="left")
        for (left, right), context in zip(grid, chart.contexts, strict=False):
            _draw_intervals(left, context.intervals, styles)
            _draw_best(right, chart, context, styles)
        _draw_stopping(grid[-1, 0], chart)
        _draw_regret(grid[-1, 1], chart)
    save_figure(figure, path)


def draw_intervals(chart: ArmIntervals, path: str | Path) -> None:
    """Draw intervals of arms to a .png, .svg or .pdf file."""
    path = check_path(path)
    with figure_style():
        figure = new_figure(7.0, _height(chart))
        _draw_intervals(figure.subplots(), chart, _styles(chart.indices.tolist()))
    save_figure(figure, path)


def _styles(arms: Iterable[int]) -> Styles:
    return {arm: SeriesStyle.from_index(i) for i, arm in enumerate(arms)}


def _height(chart: ArmIntervals) -> float:
    lines = max(len(_wrap_name(arm)) for arm in chart.arms)
    title = _LINE_HEIGHT * (len(_wrap_title(chart.title)) - 1)
    rows = (_LINE_HEIGHT * lines + 0.1) * len(chart.arms)
    return title + max(_MIN_HEIGHT, rows + _FRAME_HEIGHT)


def _draw_intervals(axes: Any, chart: ArmIntervals, styles: Styles) -> None:
    """Draw a bar from low to high for each arm, the first on top, with its mean and P(best).

    The bars and marks of arms that were never tried are hollow.
    """
    for row, arm in enumerate(chart.indices.tolist()):
        style, is_marked = styles[arm], row == chart.marked
        is_hollow = bool(chart.is_assumption[row])
        width = 5 if is_marked else 2.2
        span = [chart.low[row], chart.high[row]], [row, row]
        bar = {"color": style.colour, "alpha": 0.9, "solid_capstyle": "butt"}
        marker = {"color": style.colour, "markersize": 6.5, "markeredgecolor": "white"}
        if is_hollow:
            width += _HOLLOW_WIDTH
            marker |= {"markerfacecolor": "white", "markeredgecolor": style.colour}
        axes.plot(*span, **bar, linewidth=width)
        if is_hollow:
            hole = bar | {"color": "white", "alpha": 1}
            axes.plot(*span, **hole, linewidth=width - 2 * _OUTLINE)
            for end in span[0]:  # close the outline
                axes.plot(end, row, "|", color=style.colour, markersize=width, markeredgewidth=1)
            position = (float(chart.high[row]), row)
            axes.annotate(ASSUMPTION, position, (0, 5), textcoords="offset points", **_REMARK)
        axes.plot(chart.mean[row], row, style.marker, **marker)
        best = float(chart.best[row])
        axes.annotate(
            "<0.01" if 0 < best < 0.005 else f"{best:.2f}",
            (1.01, row),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            color=INK,
            va="center",
            annotation_clip=False,
        )
    axes.annotate("P(best)", (1.01, 1.02), xycoords="axes fraction", fontsize=8, color=GREY)
    names = ["\n".join(_wrap_name(arm)) for arm in chart.arms]
    if not _are_short(chart):  # numbers stand for them at the ends of lines
        names = [f"{i + 1}  {name}" for i, name in enumerate(names)]
    names = [f"▸ {name}" if i == chart.marked else name for i, name in enumerate(names)]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    margin = 0.06 * (float(chart.high.max() - chart.low.min()) or 1.0)
    axes.set_xlim(float(chart.low.min()) - margin, float(chart.high.max()) + margin)
    label = wrap(f"{chart.axis_label}, with its 90\u00a0% interval", _LABEL_WIDTH)
    if chart.left_out:
        label.append(f"{pluralize(chart.left_out, 'other arm')} not drawn")
    finish_axes(axes, "\n".join(_wrap_title(chart.title)), "\n".join(label), grid="x")
    axes.tick_params(axis="y", labelsize=8.5 if _are_short(chart) else 7.5)


def _draw_best(axes: Any, chart: StatusChart, context: ContextChart, styles: Styles) -> None:
    """Draw P(best) of each arm along the journal."""
    intervals, ends = context.intervals, []
    for i, arm in enumerate(intervals.indices.tolist()):
        style, chances = styles[arm], context.best[:, i]
        _draw_line(axes, chart.outcomes, chances, style.colour, style.dashes)
        if chances[-1] > _MIN_LAST or chances.max() > _MIN_EVER:
            name = intervals.arms[i] if _are_short(intervals) else str(i + 1)
            ends.append((float(chances[-1]), name, style.colour))
    if context.best_of_others is not None:
        _draw_line(axes, chart.outcomes, context.best_of_others, GREY, (0, (1, 2)))
        ends.append((float(context.best_of_others[-1]), "others", GREY))
    axes.set_ylim(-0.02, 1.03)
    label_ends(axes, ends, 0.14 / (_height(intervals) - _FRAME_HEIGHT + 0.4))
    finish_axes(axes, "P(best) over time", "known outcomes")
    _start_at_zero(axes, chart.outcomes)


def _draw_stopping(axes: Any, chart: StatusChart) -> None:
    _draw_line(axes, chart.outcomes, chart.stopping, COLOURS[0])
    top = float(chart.stopping.max())
    if chart.tolerance is not None:
        axes.axhline(chart.tolerance, color=COLOURS[1], linestyle=DASHES[1], linewidth=1.2)
        axes.annotate(
            "tolerance",
            (0.99, chart.tolerance),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            color=COLOURS[1],
            ha="right",
            va="bottom",
            zorder=5,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1},
        )
        top = max(top, chart.tolerance)
    axes.set_ylim(0, 1.1 * top or 1.0)
    finish_axes(axes, "Expected loss per round if you stop", "known outcomes")
    _start_at_zero(axes, chart.outcomes)


def _draw_regret(axes: Any, chart: StatusChart) -> None:
    total, step = np.cumsum(chart.regret), max(1, len(chart.decisions) // _MAX_POINTS)
    if len(total):
        _draw_line(axes, chart.decisions[::-step][::-1], total[::-step][::-1], COLOURS[2])
        axes.set_ylim(0, 1.1 * float(total[-1]) or 1.0)
    finish_axes(axes, "Regret of the decisions so far, as estimated today", "decision")
    _start_at_zero(axes, chart.decisions)


def _draw_line(axes: Any, x: Any, y: Any, colour: str, dashes: Any = "-") -> None:
    marker = "o" if len(x) == 1 or np.ptp(x) == 0 else None
    axes.plot(x, y, color=colour, linestyle=dashes, linewidth=1.7, marker=marker, clip_on=False)


def _start_at_zero(axes: Any, x: IntArray) -> None:
    axes.set_xlim(0, max(float(x.max()) if len(x) else 0.0, 1.0))
    axes.xaxis.get_major_locator().set_params(integer=True)


def _are_short(chart: ArmIntervals) -> bool:
    return max(map(len, chart.arms)) <= _SHORT_NAME


def _wrap_title(context: str) -> list[str]:
    return _wrap_name(context or "All arms", _TITLE_WIDTH)


def _wrap_name(name: str, width: int = _NAME_WIDTH) -> list[str]:
    """Break a name into a few lines at the ends of words: at spaces, or after = , ( _ or -."""
    lines = [""]
    for word in re.findall(r".+?(?:[\s=,(_-]+|$)", name, re.DOTALL):
        if len(word.rstrip()) <= width < len(lines[-1] + word.rstrip()):
            lines.append("")
        line = lines.pop() + word
        while len(line.rstrip()) > width:  # a word that is longer than a line
            lines.append(line[:width])
            line = line[width:]
        lines.append(line)
    lines = [line.strip() for line in lines if line.strip()]
    if len(lines) <= _MAX_NAME_LINES:
        return lines
    return [*lines[: _MAX_NAME_LINES - 1], f"{lines[_MAX_NAME_LINES - 1][: width - 1]}…"]


# -- a rehearsal ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve over the rounds, perhaps with the range of 90 % of the worlds."""

    label: str
    middle: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    is_reference: bool = False
    """True if it is drawn for comparison only."""


@dataclass(frozen=True, eq=False)
class ChartPanel:
    """A panel of the chart of a rehearsal."""

    title: str
    curves: tuple[Curve, ...]
    is_share: bool = False
    """True if its numbers are shares, between 0 and 1."""


def rehearsal_title(rehearsal: Rehearsal) -> str:
    """Return the title of the chart of a rehearsal."""
    name = rehearsal.problem.name or "the problem"
    late = f", outcomes {pluralize(rehearsal.delay, 'round')} late" if rehearsal.delay else ""
    worlds = pluralize(rehearsal.worlds, "world")
    averaged = "   (mean, and the range of 90 % of worlds)" if rehearsal.worlds > 1 else ""
    return f"{name}: {rehearsal.policy} in {worlds} drawn from the prior{late}{averaged}"


def rehearsal_panels(rehearsal: Rehearsal) -> tuple[ChartPanel, ...]:
    """Return the panels of the chart of a rehearsal."""
    looks, tolerance = rehearsal.curve(), exact_number(rehearsal.tolerance)

    def numbers(name: str) -> FloatArray:
        return np.array([look[name] for look in looks])

    def summary(name: str, label: str) -> Curve:
        middle, low, high = np.array(
            [(look[name].mean, look[name].low, look[name].high) for look in looks]
        ).T
        return Curve(label, middle, low, high) if rehearsal.worlds > 1 else Curve(label, middle)

    limit = np.full(len(looks), rehearsal.tolerance)
    everywhere = " in every context" if rehearsal.problem.context else ""
    return (
        ChartPanel(
            "regret so far",
            (
                summary("regret", rehearsal.policy),
                Curve("at random", numbers("at_random"), is_reference=True),
            ),
        ),
        ChartPanel(
            "loss per round if you stop",
            (
                summary("stopping", "expected"),
                Curve("true", summary("cost", "true").middle),
                Curve(f"tolerance {tolerance}", limit, is_reference=True),
            ),
        ),
        ChartPanel(
            f"is what looks best the best{everywhere}?",
            (
                summary("sure", "believed probability"),
                Curve("share of worlds where it is", numbers("best")),
                Curve(f"… within {tolerance}", numbers("nearly_best"), is_reference=True),
            ),
            is_share=True,
        ),
        ChartPanel(
            "worlds in which the advice was to stop",
            (Curve(f"tolerance {tolerance}", numbers("stopped")),),
            is_share=True,
        ),
    )


def draw_rehearsal(rehearsal: Rehearsal, path: str | Path) -> None:
    """Draw the chart of a rehearsal to a .png, .svg or .pdf file."""
    path = check_path(path)
    with figure_style():
        figure = new_figure(9.0, 6.4)
        figure.suptitle(rehearsal_title(rehearsal), fontsize=10, color=INK, x=0.01, ha="left")
        grid = figure.subplots(2, 2, sharex=True)
        for axes, panel in zip(grid.flat, rehearsal_panels(rehearsal), strict=True):
            _draw_panel(axes, rehearsal.rounds, panel)
        for axes in grid[1]:
            axes.set_xlabel("round")
    save_figure(figure, path)


def _draw_panel(axes: Any, rounds: IntArray, panel: ChartPanel) -> None:
    styles = iter(zip(COLOURS, DASHES, strict=False))
    for curve in panel.curves:
        colour, dashes = (GREY, ":") if curve.is_reference else next(styles)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(rounds, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            rounds, curve.middle, color=colour, linestyle=dashes, linewidth=1.8, label=curve.label
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
