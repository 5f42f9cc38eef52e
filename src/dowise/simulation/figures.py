"""Regret curves as a picture: numbers first (`analysis.RegretCurve`), drawing second.

Each policy has its own colour and dashes (`dowise.simulation.pens`), the same in every picture; the
name stands at the end of its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from dowise.picture.library import matplotlib_part
from dowise.policies import policy_names
from dowise.simulation.analysis import RegretCurve
from dowise.simulation.pens import COLOURS, DASHES, GRID, INK, apart, save_figure

__all__ = ["draw_curves"]


def draw_curves(
    curves: Sequence[RegretCurve],
    title: str,
    paths: Sequence[Path],
    band: Literal["se", "sd"] = "se",
) -> None:
    """Mean cumulative regret with bands, to each of the files (.png, .pdf, .svg)."""
    figure_module = matplotlib_part("figure")
    figure = figure_module.Figure(figsize=(6.4, 4.2), dpi=160, layout="constrained")
    axes = figure.subplots()
    styles = _styles([curve.policy for curve in curves])
    ends = []
    for curve in curves:
        colour, dashes = styles[curve.policy]
        low, high = curve.band(band)
        axes.fill_between(curve.rounds, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            curve.rounds, curve.mean, color=colour, linestyle=dashes, linewidth=1.8,
            label=curve.policy,
        )  # fmt: skip
        ends.append((float(curve.mean[-1]), curve.policy, colour))
    axes.set_xlim(0, max(float(curve.rounds[-1]) for curve in curves))
    top = max(float(curve.band(band)[1].max()) for curve in curves)
    bottom = min(0.0, min(float(curve.band(band)[0].min()) for curve in curves))
    axes.set_ylim(bottom, 1.05 * top)
    for height, (_, policy, colour) in zip(
        apart([end for end, _, _ in sorted(ends)], 0.055 * (1.05 * top - bottom)),
        sorted(ends),
        strict=True,
    ):
        axes.annotate(
            policy, (1.01, height), xycoords=("axes fraction", "data"), color=colour,
            va="center", fontsize=9, annotation_clip=False,
        )  # fmt: skip
    what = "two standard errors" if band == "se" else "two standard deviations"
    axes.set_xlabel("round", color=INK)
    axes.set_ylabel("mean cumulative regret", color=INK)
    axes.set_title(
        f"{title}   ({curves[0].trials} trials, bands: {what})", fontsize=10, color=INK, loc="left"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for path in paths:
        save_figure(figure, path)


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
