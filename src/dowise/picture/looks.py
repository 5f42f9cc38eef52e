"""How variables look, whoever draws them: what differs by role, the outline of a box, the words.

Each role differs in colour and also in its outline, so that a picture can be read in grey print and
by colour-blind eyes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dowise.graph.edges import EdgeName
from dowise.picture.pen import pen_for
from dowise.picture.shapes import Box, Point

__all__ = ["INSET", "LABELS", "LOOKS", "SAMPLES", "Look", "outline", "printable"]

Command = Literal["move", "line", "curve", "close"]

INSET = 0.25
"""How far inside the outer outline the inner one of a double outline runs."""
_CORNER = 0.4
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Look:
    """How a role looks: colours on white paper, the shape of the corners, the outline."""

    line: str
    fill: str
    text: str
    corners: Literal["round", "square", "cut"]
    dashes: tuple[float, ...] = ()
    double: bool = False


# Red for what can't be set and orange for the context, as in the paper. The tints differ in
# brightness too. The legend has this order.
LOOKS: Mapping[str, Look] = {
    "manipulable": Look("#1f4e79", "#ffffff", "#16324f", "round"),
    "non_manipulable": Look("#c1121f", "#fdeaea", "#8a0d16", "square", dashes=(3.5, 1.6)),
    "context": Look("#d97706", "#ffe3ad", "#6b3a00", "cut"),
    "reward": Look("#1b263b", "#1b263b", "#ffffff", "round", double=True),
}
LABELS: Mapping[str, str] = {
    "manipulable": "manipulable",
    "non_manipulable": "non-manipulable",
    "context": "context",
    "reward": "reward",
    "hidden": "hidden common cause",
    "doubtful": "doubtful",
    "doubtful_hidden": "doubtful hidden cause",
    "suspected": "suspected",
}
"""What roles and kinds of edges are called in a legend."""
_ARROW, _TIE = EdgeName("A", "->", "B"), EdgeName("A", "<->", "B")
SAMPLES = {
    "hidden": pen_for(_TIE),
    "doubtful": pen_for(_ARROW, doubtful=True),
    "doubtful_hidden": pen_for(_TIE, doubtful=True),
    "suspected": pen_for(_ARROW, suspected=True),
}
"""The pens of the samples of edges in a legend."""


def outline(
    box: Box, corners: Literal["round", "square", "cut"], inset: float = 0.0
) -> list[tuple[Command, tuple[Point, ...]]]:
    """How to draw the outline of a box, step by step; a curve has one handle and its end."""
    left, right = box.left + inset, box.right - inset
    top, bottom = box.top + inset, box.bottom - inset
    r = max(_CORNER - inset, 0.1)
    # Corner by corner: where its rounding starts, the corner, where the rounding ends.
    turns = [
        ((left, top + r), (left, top), (left + r, top)),
        ((right - r, top), (right, top), (right, top + r)),
        ((right, bottom - r), (right, bottom), (right - r, bottom)),
        ((left + r, bottom), (left, bottom), (left, bottom - r)),
    ]
    steps: list[tuple[Command, tuple[Point, ...]]] = []
    for start, corner, end in turns:
        if corners == "square":
            steps.append(("line", (corner,)))
        elif corners == "cut":
            steps += [("line", (start,)), ("line", (end,))]
        else:
            steps += [("line", (start,)), ("curve", (corner, end))]
    return [("move", steps[0][1]), *steps[1:], ("close", ())]


def printable(text: str) -> str:
    """The text on one line; control characters, which SVG forbids, become spaces.

    Those that join letters or emoji, or keep letters apart, stay.
    """
    return " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())
