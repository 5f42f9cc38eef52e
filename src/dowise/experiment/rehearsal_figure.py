"""A rehearsal as a picture: regret, the cost of stopping, how sure one is, when the advice comes.

The numbers are those of `Rehearsal.curve`; here they are put together (`rehearsal_figure`), then
drawn (`draw_rehearsal`). Legible in grey print and in colour-blind vision: lines differ in their
dashes too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.experiment.rehearsal import Rehearsal, given
from dowise.picture.drawing import check_path
from dowise.picture.library import matplotlib_part
from dowise.plain import counted
from dowise.simulation.pens import save_figure

__all__ = ["Line", "Panel", "RehearsalFigure", "draw_rehearsal", "rehearsal_figure"]

_INK, _GREY = "#333333", "#777777"
_COLOURS = ("#0072B2", "#D55E00")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)))

Floats = NDArray[np.float64]


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
    late = f", outcomes {counted(rehearsal.delay, 'round')} late" if rehearsal.delay else ""
    worlds = counted(rehearsal.worlds, "world")
    title = f"{name}: {rehearsal.policy} in {worlds} drawn from the prior{late}"
    if rehearsal.worlds > 1:
        title += "   (mean, and the range of 90 % of worlds)"
    return RehearsalFigure(title, rehearsal.rounds, _panels(rehearsal))


def _panels(rehearsal: Rehearsal) -> tuple[Panel, ...]:
    looks, tolerance = rehearsal.curve(), given(rehearsal.tolerance)

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
    """The picture, to a .svg, .png or .pdf file."""
    path = check_path(path)
    module = matplotlib_part("figure")
    drawing = module.Figure(figsize=(9.0, 6.4), dpi=160, layout="constrained")
    drawing.suptitle(figure.title, fontsize=10, color=_INK, x=0.01, ha="left")
    drawing.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
    for axes, panel in zip(drawing.subplots(2, 2, sharex=True).flat, figure.panels, strict=True):
        _draw_panel(axes, figure.rounds, panel)
    for axes in drawing.axes[2:]:
        axes.set_xlabel("round", color=_INK)
    save_figure(drawing, path)


def _draw_panel(axes: Any, rounds: NDArray[np.int64], panel: Panel) -> None:
    own = 0
    for line in panel.lines:
        colour, dashes = (_GREY, ":") if line.is_aside else (_COLOURS[own], _DASHES[own])
        own += not line.is_aside
        if line.low is not None and line.high is not None:
            axes.fill_between(rounds, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            rounds, line.middle, color=colour, linestyle=dashes, linewidth=1.8, label=line.label
        )
    axes.set_title(panel.title, fontsize=10, color=_INK, loc="left")
    axes.set_xlim(rounds[0], rounds[-1])
    axes.xaxis.set_major_formatter(lambda number, _: given(number))
    if panel.is_share:
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: given(value))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8, loc="best")
