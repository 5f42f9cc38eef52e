"""How an edge is drawn: its colour, its dashes, its heads, and the word on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import dist
from typing import Any

from dowise.graph.edges import EdgeName
from dowise.picture.library import matplotlib_part
from dowise.picture.shapes import Point, Stroke, flatten

__all__ = [
    "DOUBTFUL", "EDGE", "HIDDEN", "LABEL_SIZE", "SUSPECTED", "Pen", "draw_edge", "halfway",
    "head_of", "pen_for",
]  # fmt: skip

EDGE, HIDDEN, SUSPECTED = "#3b4252", "#7b4b94", "#d6006e"
DOUBTFUL = 0.72  # of the colour of a doubtful edge; the rest is the white of the paper
LABEL_SIZE = 8.0  # points
_DASHED, _DOTTED = (4.0, 2.4), (1.0, 2.0)
_WIDTH, _THIN, _THICK = 1.4, 0.7, 2.6
_FAINT = 0.3  # the colour of an edge that is hardly there
_HEAD_LENGTH, _HEAD_WIDTH = 0.68, 0.5


@dataclass(frozen=True, slots=True)
class Pen:
    """A line in a colour, dashed or not, with a head at its end or one at either end."""

    colour: str
    two_heads: bool = False
    dashes: tuple[float, ...] = ()
    width: float = _WIDTH
    label: str = ""
    probability: float | None = None
    """How likely the edge is to be there, where that is known."""

    def faded(self, strength: float) -> Pen:
        """The same in a paler colour, which has this share of its own; transparency would show
        where lines meet heads."""
        parts = (int(self.colour[i : i + 2], 16) for i in (1, 3, 5))
        mixed = (round(255 + strength * (part - 255)) for part in parts)
        return replace(self, colour="#" + "".join(f"{part:02x}" for part in mixed))


def pen_for(
    edge: EdgeName,
    doubtful: bool = False,
    suspected: bool = False,
    probability: float | None = None,
) -> Pen:
    """The pen of an edge; one with a probability is the thicker the likelier, and says it."""
    tied = edge.is_bidirected
    colour = SUSPECTED if suspected else HIDDEN if tied else EDGE
    pen = Pen(colour, tied, _DASHED if tied else ())
    if doubtful:
        pen = replace(pen, dashes=_DOTTED, label="?").faded(DOUBTFUL)
    if probability is None:
        return pen
    width = _THIN + probability * (_THICK - _THIN)
    percent = _percent(probability)
    pen = Pen(colour, tied, pen.dashes, width, percent, probability)
    return pen.faded(_FAINT + (1 - _FAINT) * probability)


def _percent(probability: float) -> str:
    """In whole per cent; what is not certain does not look so."""
    if 0 < probability < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 < probability < 1 else f"{100 * probability:.0f} %"


def draw_edge(axes: Any, stroke: Stroke, pen: Pen) -> None:
    """Draw one edge, its label in the middle of its way."""
    patches = matplotlib_part("patches")
    paths = matplotlib_part("path")
    points = list(stroke)
    # The line stops inside the head: a line's blunt end would show beside the sharp tip.
    for tip, inner in ((-1, -4), (0, 3))[: 2 if pen.two_heads else 1]:
        head, points[tip] = head_of(stroke[tip], stroke[inner])
        axes.add_patch(patches.Polygon(head, facecolor=pen.colour, edgecolor="none", zorder=1.5))
    commands = [1] + [4] * (len(points) - 1)
    axes.add_patch(
        patches.PathPatch(
            paths.Path(points, commands),
            facecolor="none",
            edgecolor=pen.colour,
            linewidth=pen.width,
            linestyle=(0.0, pen.dashes) if pen.dashes else "solid",
            capstyle="butt",
            zorder=1.4,
        )
    )
    if pen.label:
        x, y = halfway(stroke)
        style = {"ha": "center", "va": "center", "fontsize": LABEL_SIZE, "color": pen.colour}
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axes.text(x, y, pen.label, weight="bold", bbox=paper, zorder=1.6, **style)


def head_of(tip: Point, towards: Point) -> tuple[list[Point], Point]:
    """The triangle of an arrowhead, and the point inside it where the line should stop."""
    dx, dy = towards[0] - tip[0], towards[1] - tip[1]
    length = (dx * dx + dy * dy) ** 0.5
    dx, dy = dx / length, dy / length
    x, y = tip[0] + _HEAD_LENGTH * dx, tip[1] + _HEAD_LENGTH * dy
    half = _HEAD_WIDTH / 2
    wings = [(x - half * dy, y + half * dx), (x + half * dy, y - half * dx)]
    return [tip, *wings], (tip[0] + 0.9 * (x - tip[0]), tip[1] + 0.9 * (y - tip[1]))


def halfway(stroke: Stroke) -> Point:
    """The point in the middle of the way."""
    points = flatten(stroke)
    lengths = [dist(a, b) for a, b in pairwise(points)]
    half = sum(lengths) / 2
    for (a, b), length, end in zip(pairwise(points), lengths, accumulate(lengths), strict=True):
        if end >= half and length:
            part = 1 - (end - half) / length
            return a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])
    return points[-1]
