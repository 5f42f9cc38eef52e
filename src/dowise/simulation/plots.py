"""Charts of regret curves, with a panel per problem.

A registered policy has the same colour and dashes in every chart, and its name at the end of its
line.
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
    INK,
    SeriesStyle,
    figure_style,
    finish_axes,
    label_ends,
    matplotlib_part,
    new_figure,
    save_figure,
)
from dowise.policies import policy_names
from dowise.simulation.analysis import Measure, RegretCurve

Band = Literal["se", "sd"]
_BANDS = {"se": "two standard errors", "sd": "two standard deviations"}
_MEASURES: Mapping[Measure, str] = {"regret": "regret", "expected": "expected regret"}
_HEIGHT, _LABEL_HEIGHT = 4.2, 0.19  # inches: a chart of one problem, and a policy's name
_MAX_NAME_LENGTH = 36
_MAX_TITLE_LENGTH = 72


def save_curves(
    curves: Sequence[RegretCurve], title: str, paths: Sequence[Path], band: Band = "se"
) -> None:
    """Write a chart of mean cumulative regret with bands to each file (.png, .pdf, .svg)."""
    figure = plot_regret({title: curves}, band)
    for path in paths:
        save_figure(figure, path)


def plot_regret(
    panels: Mapping[str, Sequence[RegretCurve]], band: Band = "se", axes: Any = None
) -> Any:
    """Draw a panel for each problem and return the matplotlib `Figure`.

    `axes` are the Axes to draw on, one per problem. By default a new figure is created, which does
    not depend on the user's settings of matplotlib.
    """
    if band not in _BANDS:
        raise DowiseError(
            f'band={band!r} must be "se" (standard errors) or "sd" (standard deviations)',
            code="unknown-value",
        )
    styles = _styles([*dict.fromkeys(x.policy for curves in panels.values() for x in curves)])
    if axes is not None:
        all_axes = _check_axes(axes, len(panels))
        _draw_panels(all_axes, panels, band, styles)
        return all_axes[0].figure
    with figure_style():
        figure, all_axes = _new_panels(len(panels), max(map(len, styles)))
        _draw_panels(all_axes, panels, band, styles)
        return figure


def _new_panels(count: int, longest_name: int) -> tuple[Any, list[Any]]:
    """Create panels below each other, in two columns if there are many; wider for long names."""
    columns = 1 if count < 4 else 2
    rows = -(-count // columns)
    width = 6.4 + 0.075 * max(0, min(longest_name, _MAX_NAME_LENGTH) - 12)
    figure = new_figure(columns * width, _HEIGHT if count == 1 else 3.2 * rows)
    all_axes = [*figure.subplots(rows, columns, squeeze=False).flat]
    for unused in all_axes[count:]:
        unused.set_axis_off()
    return figure, all_axes[:count]


def _check_axes(axes: Any, count: int) -> list[Any]:
    all_axes = [axes] if hasattr(axes, "plot") else [*np.ravel(np.asarray(axes, dtype=object))]
    if len(all_axes) != count or not all(hasattr(x, "plot") for x in all_axes):
        raise DowiseError(
            f"axes={axes!r:.80} must be {count:,} matplotlib Axes, one for each problem, or None",
            code="invalid-type",
        )
    return all_axes


def _draw_panels(
    all_axes: Sequence[Any],
    panels: Mapping[str, Sequence[RegretCurve]],
    band: Band,
    styles: Mapping[str, SeriesStyle],
) -> None:
    for axes, (title, curves) in zip(all_axes, panels.items(), strict=True):
        _draw_curves(axes, curves, band, styles)
        note = _note(curves, band)
        gap = "   " if len(title) + len(note) < _MAX_TITLE_LENGTH else "\n"
        finish_axes(axes, f"{_shorten(title, _MAX_TITLE_LENGTH)}{gap}({note})", "round", size=10)


def _draw_curves(
    axes: Any, curves: Sequence[RegretCurve], band: Band, styles: Mapping[str, SeriesStyle]
) -> None:
    """Draw lines from 0 in round 0, with bands if there are several trials."""
    for curve in curves:
        style = styles[curve.policy]
        rounds, mean, low, high = (
            np.concatenate([[0], part]) for part in (curve.rounds, curve.mean, *curve.band(band))
        )
        if curve.trials > 1:
            axes.fill_between(rounds, low, high, color=style.colour, alpha=0.15, linewidth=0)
        line = {"color": style.colour, "linestyle": style.dashes, "linewidth": 1.8}
        axes.plot(rounds, mean, label=curve.policy, **line)
    top = max(float(curve.band(band)[1].max()) for curve in curves)
    bottom = min(0.0, min(float(curve.band(band)[0].min()) for curve in curves))
    top = 1.05 * top if top > bottom else 1.0
    axes.set_xlim(0, max(float(curve.rounds[-1]) for curve in curves))
    axes.set_ylim(bottom, top)
    whole = matplotlib_part("ticker").MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True)
    axes.xaxis.set_major_locator(whole)
    axes.set_ylabel(f"mean cumulative {_MEASURES[curves[0].measure]}", fontsize=9, color=INK)
    inches = axes.get_position().height * axes.figure.get_size_inches()[1]
    ends = [
        (
            float(curve.mean[-1]),
            _shorten(curve.policy, _MAX_NAME_LENGTH),
            styles[curve.policy].colour,
        )
        for curve in curves
    ]
    label_ends(axes, ends, (top - bottom) * _LABEL_HEIGHT / inches)


def _note(curves: Sequence[RegretCurve], band: Band) -> str:
    """Describe trials and bands; a running simulation may have fewer trials of some policies."""
    low, high = (choose(curve.trials for curve in curves) for choose in (min, max))
    trials = pluralize(high, "trial") if low == high else f"{low:,} to {high:,} trials"
    return f"{trials}, bands: {_BANDS[band]}" if high > 1 else trials


def _shorten(name: str, length: int) -> str:
    """Keep the beginning and the end, which distinguish names.

    >>> _shorten("my_policies:Greedy", 9)
    'my_p…eedy'
    """
    half = length // 2
    return name if len(name) <= length else f"{name[:half]}…{name[half - length + 1 :]}"


def _styles(names: Sequence[str]) -> dict[str, SeriesStyle]:
    """Return the style of each policy; that of a registered policy is always the same."""
    styles = {
        name: SeriesStyle(COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)])
        for i, name in enumerate(policy_names())
        if name in names
    }
    used = {style.colour for style in styles.values()}
    free = [colour for colour in reversed(COLOURS) if colour not in used] or list(COLOURS)
    for i, name in enumerate(name for name in names if name not in styles):
        styles[name] = SeriesStyle(free[i % len(free)], DASHES[i % len(DASHES)])
    return styles
