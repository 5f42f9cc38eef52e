"""Drawing the numbers of `dowise.experiment.figures` with matplotlib.

An arm has one colour, marker and dashes in all panels of a picture. Its name stands at its interval
and, if it was ever likely to be the best, at the end of its line: a number there, where names are
long.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

from dowise.experiment.figures import OTHERS, ContextData, FigureData, IntervalData
from dowise.picture.drawing import check_path
from dowise.picture.library import matplotlib_part
from dowise.simulation.pens import COLOURS, DASHES, GRID, INK, apart, save_figure

__all__ = ["draw_intervals", "draw_status"]

_WIDTH = 10.0
_LINE, _REST, _LOWEST = 0.17, 1.15, 2.1  # inches: for a line of names, and of a panel
_NAMED, _ONCE_NAMED = 0.04, 0.3  # a line is named if it ends above one, or ever was above the other
_MOST_POINTS = 1000
_LONG, _LINE_LENGTH, _MOST_LINES = 16, 36, 3  # characters of an arm's name, and lines
_LABEL_LENGTH = 62  # characters of a line below an axis
_TITLE_LENGTH = 46  # and above one: a panel is half the picture, less the names of the arms
_GREY = "#777777"


class _Pen(NamedTuple):
    """How an arm looks in all panels."""

    colour: str
    dashes: Any
    marker: str

    @classmethod
    def number(cls, i: int) -> _Pen:
        turn = i // len(COLOURS)
        return cls(COLOURS[i % len(COLOURS)], DASHES[turn % len(DASHES)], "osD^"[turn % 4])


def draw_status(data: FigureData, path: str | Path) -> None:
    """The whole picture."""
    path = check_path(path)
    shown = sorted({place for one in data.contexts for place in one.intervals.places.tolist()})
    pens = {place: _Pen.number(i) for i, place in enumerate(shown)}
    heights = [_height(context.intervals) for context in data.contexts] + [2.6]
    figure = _new_figure(sum(heights) + 0.3)
    grid = figure.subplots(len(heights), 2, squeeze=False, gridspec_kw={"height_ratios": heights})
    figure.suptitle(data.title, fontsize=11, color=INK, x=0.01, ha="left")
    for axes, context in zip(grid, data.contexts, strict=False):
        _draw_arms(axes[0], context.intervals, pens)
        _draw_best(axes[1], data, context, pens)
    _draw_stopping(grid[-1, 0], data)
    _draw_regret(grid[-1, 1], data)
    save_figure(figure, path)


def draw_intervals(data: IntervalData, path: str | Path) -> None:
    """The intervals alone."""
    path = check_path(path)
    figure = _new_figure(_height(data), 7.0)
    pens = {place: _Pen.number(i) for i, place in enumerate(data.places.tolist())}
    _draw_arms(figure.subplots(), data, pens)
    save_figure(figure, path)


def _new_figure(height: float, width: float = _WIDTH) -> Any:
    module = matplotlib_part("figure")
    return module.Figure(figsize=(width, height), dpi=150, layout="constrained")


def _height(data: IntervalData) -> float:
    lines = max(len(_wrapped(arm)) for arm in data.arms)
    above = _LINE * (len(_title(data.title)) - 1)
    return above + max(_LOWEST, (_LINE * lines + 0.1) * len(data.arms) + _REST)


# -- the panels ---------------------------------------------------------------------------------


def _draw_arms(axes: Any, data: IntervalData, pens: dict[int, _Pen]) -> None:
    """A bar from low to high for each arm, the first on top, with its mean and P(best)."""
    for row, place in enumerate(data.places.tolist()):
        pen, is_marked = pens[place], row == data.marked
        axes.plot(
            [data.low[row], data.high[row]], [row, row], color=pen.colour, alpha=0.9,
            linewidth=5 if is_marked else 2.2, solid_capstyle="butt",
        )  # fmt: skip
        axes.plot(
            data.mean[row], row, pen.marker, color=pen.colour, markersize=6.5,
            markeredgecolor="white",
        )  # fmt: skip
        axes.annotate(
            _chance(float(data.best[row])), (1.01, row), xycoords=("axes fraction", "data"),
            fontsize=8, color=INK, va="center", annotation_clip=False,
        )  # fmt: skip
    axes.annotate("P(best)", (1.01, 1.02), xycoords="axes fraction", fontsize=8, color=_GREY)
    axes.set_yticks(range(len(data.arms)), _row_names(data))
    axes.set_ylim(len(data.arms) - 0.4, -0.6)
    margin = 0.06 * (float(data.high.max() - data.low.min()) or 1.0)
    axes.set_xlim(float(data.low.min()) - margin, float(data.high.max()) + margin)
    plural = "" if data.left_out == 1 else "s"
    more = [f"{data.left_out:,} other arm{plural} not drawn"] if data.left_out else []
    along = wrap(f"{data.along}, with its 90\u00a0% interval", _LABEL_LENGTH)
    _finish(axes, "\n".join(_title(data.title)), "\n".join([*along, *more]))
    axes.tick_params(axis="y", labelsize=8.5 if _are_short(data) else 7.5)
    axes.grid(axis="x", color=GRID, linewidth=0.6)


def _draw_best(axes: Any, data: FigureData, context: ContextData, pens: dict[int, _Pen]) -> None:
    """P(best) of each arm along the journal."""
    arms, ends = context.intervals, []
    names = arms.arms if _are_short(arms) else [str(i + 1) for i in range(len(arms.arms))]
    for i, (name, place) in enumerate(zip(names, arms.places.tolist(), strict=True)):
        pen, chances = pens[place], context.best[:, i]
        _draw_line(axes, data.outcomes, chances, pen.colour, pen.dashes)
        if chances[-1] > _NAMED or chances.max() > _ONCE_NAMED:
            ends.append((float(chances[-1]), name, pen.colour))
    if context.others is not None:
        _draw_line(axes, data.outcomes, context.others, _GREY, (0, (1, 2)))
        ends.append((float(context.others[-1]), OTHERS, _GREY))
    _name_ends(axes, sorted(ends), 0.14 / (_height(arms) - _REST + 0.4))
    axes.set_ylim(-0.02, 1.03)
    _finish(axes, "P(best) along the way", "outcomes known")
    _start_at_zero(axes, data.outcomes)


def _draw_stopping(axes: Any, data: FigureData) -> None:
    _draw_line(axes, data.outcomes, data.stopping, COLOURS[0])
    top = float(data.stopping.max())
    if data.tolerance is not None:
        axes.axhline(data.tolerance, color=COLOURS[1], linestyle=DASHES[1], linewidth=1.2)
        axes.annotate(
            "tolerance", (0.99, data.tolerance), xycoords=("axes fraction", "data"), fontsize=8,
            color=COLOURS[1], ha="right", va="bottom", zorder=5,
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1},
        )  # fmt: skip
        top = max(top, data.tolerance)
    axes.set_ylim(0, 1.1 * top or 1.0)
    _finish(axes, "Expected regret of stopping, a round", "outcomes known")
    _start_at_zero(axes, data.outcomes)


def _draw_regret(axes: Any, data: FigureData) -> None:
    total, step = data.cumulative_regret, max(1, len(data.decisions) // _MOST_POINTS)
    if len(total):
        _draw_line(axes, data.decisions[::-step][::-1], total[::-step][::-1], COLOURS[2])
        axes.set_ylim(0, 1.1 * float(total[-1]) or 1.0)
    _finish(axes, "Regret of the decisions so far, as estimated today", "decision")
    _start_at_zero(axes, data.decisions)


# -- their parts --------------------------------------------------------------------------------


def _draw_line(axes: Any, along: Any, up: Any, colour: str, dashes: Any = "-") -> None:
    marker = "o" if len(along) == 1 or np.ptp(along) == 0 else None
    axes.plot(
        along, up, color=colour, linestyle=dashes, linewidth=1.7, marker=marker, clip_on=False
    )


def _name_ends(axes: Any, ends: list[tuple[float, str, str]], least: float) -> None:
    """Names at the right of lines that end in [0, 1], kept so far apart, and inside."""
    heights = apart([end for end, _, _ in ends], least)
    up = max(0.0, -heights[0]) if heights else 0.0
    for height, (_, name, colour) in zip(heights, ends, strict=True):
        axes.annotate(
            name, (1.015, height + up), xycoords=("axes fraction", "data"), fontsize=8,
            color=colour, va="center", annotation_clip=False,
        )  # fmt: skip


def _start_at_zero(axes: Any, places: Any) -> None:
    axes.set_xlim(0, max(float(places.max()) if len(places) else 0.0, 1.0))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(axis="y", color=GRID, linewidth=0.6)


def _finish(axes: Any, title: str, along: str) -> None:
    axes.set_title(title, fontsize=9.5, color=INK, loc="left")
    axes.set_xlabel(along, fontsize=8.5, color=INK)
    axes.tick_params(labelsize=8.5, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)


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
