"""Plots of regret curves: numbers first (`analysis.RegretCurve`), drawing second.

Each policy has its own colour and dashes (`dowise.plotting.figures`), the same in every picture;
its name is at the end of its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dowise._core.document import pluralize
from dowise.errors import DowiseError
from dowise.plotting.figures import (
    COLOURS,
    DASHES,
    GRID,
    INK,
    apart,
    lettered,
    matplotlib_part,
    save_figure,
)
from dowise.policies import policy_names
from dowise.simulation.analysis import Measure, RegretCurve

Band = Literal["se", "sd"]
_BANDS = {"se": "two standard errors", "sd": "two standard deviations"}
_MEASURES: Mapping[Measure, str] = {"regret": "regret", "expected": "expected regret"}
_HEIGHT, _LABEL = 4.2, 0.19  # inches: a picture of one problem, and a policy's name with its gap
_LONGEST = 36  # characters of a name
_ONE_LINE = 72  # characters of a heading


def save_curves(
    curves: Sequence[RegretCurve], title: str, paths: Sequence[Path], band: Band = "se"
) -> None:
    """Mean cumulative regret with bands, to each of the files (.png, .pdf, .svg)."""
    figure = plot_regret({title: curves}, band)
    for path in paths:
        save_figure(figure, path)


def plot_regret(
    panels: Mapping[str, Sequence[RegretCurve]], band: Band = "se", axes: Any = None
) -> Any:
    """A matplotlib `Figure` with a panel for each problem, or that of the axes given.

    `axes` is one, or a sequence of as many as there are problems. A figure of our own looks the
    same whatever somebody's settings of matplotlib are.
    """
    if band not in _BANDS:
        raise DowiseError(
            f'band={band!r} must be "se" (standard errors) or "sd" (standard deviations)',
            code="unknown-value",
        )
    styles = _styles([*dict.fromkeys(x.policy for curves in panels.values() for x in curves)])
    if axes is not None:
        places = _checked_axes(axes, len(panels))
        _draw_panels(places, panels, band, styles)
        return places[0].figure
    with matplotlib_part("style").context("default"):
        figure, places = _new_figure(len(panels), max(map(len, styles)))
        _draw_panels(places, panels, band, styles)
        lettered(figure)
        return figure


def _new_figure(panels: int, longest: int) -> tuple[Any, list[Any]]:
    """Panels below each other, in two columns where there are many; wider for long names."""
    columns = 1 if panels < 4 else 2
    rows = -(-panels // columns)
    width = 6.4 + 0.075 * max(0, min(longest, _LONGEST) - 12)
    height = _HEIGHT if panels == 1 else 3.2 * rows
    module = matplotlib_part("figure")
    figure = module.Figure(figsize=(columns * width, height), dpi=160, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
    places = [*figure.subplots(rows, columns, squeeze=False).flat]
    for unused in places[panels:]:
        unused.set_axis_off()
    return figure, places[:panels]


def _checked_axes(given: Any, panels: int) -> list[Any]:
    places = [given] if hasattr(given, "plot") else [*np.ravel(np.asarray(given, dtype=object))]
    if len(places) != panels or not all(hasattr(one, "plot") for one in places):
        raise DowiseError(
            f"axes={given!r:.80} must be {panels:,} matplotlib Axes, one for each problem, or None",
            code="invalid-type",
        )
    return places


def _draw_panels(
    places: Sequence[Any],
    panels: Mapping[str, Sequence[RegretCurve]],
    band: Band,
    styles: Mapping[str, tuple[str, Any]],
) -> None:
    for axes, (title, curves) in zip(places, panels.items(), strict=True):
        _draw_panel(axes, curves, band, styles)
        note = _note(curves, band)
        gap = "   " if len(title) + len(note) < _ONE_LINE else "\n"
        axes.set_title(
            f"{_shortened(title, _ONE_LINE)}{gap}({note})",
            fontsize=10,
            color=INK,
            loc="left",
            parse_math=False,
        )


def _draw_panel(
    axes: Any,
    curves: Sequence[RegretCurve],
    band: Band,
    styles: Mapping[str, tuple[str, Any]],
) -> None:
    """Lines from round 0, where nothing is lost yet, with bands where there is a spread."""
    for curve in curves:
        colour, dashes = styles[curve.policy]
        rounds, mean, low, high = (
            np.concatenate([[0], part]) for part in (curve.rounds, curve.mean, *curve.band(band))
        )
        if curve.trials > 1:
            axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(rounds, mean, color=colour, linestyle=dashes, linewidth=1.8, label=curve.policy)
    top = max(float(curve.band(band)[1].max()) for curve in curves)
    bottom = min(0.0, min(float(curve.band(band)[0].min()) for curve in curves))
    axes.set_xlim(0, max(float(curve.rounds[-1]) for curve in curves))
    axes.set_ylim(bottom, 1.05 * top if top > bottom else 1.0)
    whole = matplotlib_part("ticker").MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True)
    axes.xaxis.set_major_locator(whole)
    axes.set_xlabel("round", color=INK)
    axes.set_ylabel(f"mean cumulative {_MEASURES[curves[0].measure]}", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    _name_lines(axes, curves, styles)


def _name_lines(
    axes: Any, curves: Sequence[RegretCurve], styles: Mapping[str, tuple[str, Any]]
) -> None:
    """Each policy's name at the end of its line, or as near as the others let it."""
    low, high = axes.get_ylim()
    inches = axes.get_position().height * axes.figure.get_size_inches()[1]
    gap = (high - low) * _LABEL / inches
    ends = sorted((float(curve.mean[-1]), curve.policy) for curve in curves)
    above = [max(end, low + i * gap) for i, (end, _) in enumerate(ends)]  # not on the round's label
    for height, (_, policy) in zip(apart(above, gap), ends, strict=True):
        axes.annotate(
            _shortened(policy, _LONGEST),
            (1.01, height),
            xycoords=("axes fraction", "data"),
            color=styles[policy][0],
            va="center",
            fontsize=9,
            annotation_clip=False,
            parse_math=False,
        )


def _note(curves: Sequence[RegretCurve], band: Band) -> str:
    """How many trials, and what the bands are; a race that goes on has fewer of some policies."""
    fewest, most = (choose(curve.trials for curve in curves) for choose in (min, max))
    trials = pluralize(most, "trial") if fewest == most else f"{fewest:,} to {most:,} trials"
    return f"{trials}, bands: {_BANDS[band]}" if most > 1 else trials


def _shortened(name: str, most: int) -> str:
    """Its beginning and its end, which tell names apart.

    >>> _shortened("my_policies:Greedy", 9)
    'my_p…eedy'
    """
    half = most // 2
    return name if len(name) <= most else f"{name[:half]}…{name[half - most + 1 :]}"


def _styles(names: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """A colour and dashes for each; registered policies have the same in every picture."""
    places = {name: i for i, name in enumerate(policy_names()) if name in names}
    styles = {
        name: (COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]) for name, i in places.items()
    }
    taken = {colour for colour, _ in styles.values()}
    free = [colour for colour in reversed(COLOURS) if colour not in taken] or list(COLOURS)
    others = [name for name in names if name not in styles]
    for i, name in enumerate(others):
        styles[name] = (free[i % len(free)], DASHES[i % len(DASHES)])
    return styles
