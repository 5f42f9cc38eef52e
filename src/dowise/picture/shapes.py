"""What a layout is made of: points, boxes, and the strokes that are drawn between boxes.

All numbers are in em, y growing downwards. A stroke is a chain of cubic Bézier pieces: one start,
then three points for each piece.

>>> stroke = ((0.0, 0.0), *line((0.0, 0.0), (3.0, 3.0)))
>>> stroke
((0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0))
>>> flatten(stroke)                       # a straight piece needs no points between
[(0.0, 0.0), (3.0, 3.0)]
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["STUB", "Box", "Point", "Stroke", "flatten", "line"]

Point = tuple[float, float]
Stroke = tuple[Point, ...]

# The straight piece at the end of an edge, long enough for an arrowhead.
STUB = 0.7


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        """The x of the left side."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """The x of the right side."""
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        """The y of the upper side."""
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        """The y of the lower side."""
        return self.y + self.height / 2


def line(start: Point, end: Point) -> Stroke:
    """The three points that continue a stroke from `start` straight to `end`."""
    (a, b), (c, d) = start, end
    return ((2 * a + c) / 3, (2 * b + d) / 3), ((a + 2 * c) / 3, (b + 2 * d) / 3), end


def flatten(stroke: Stroke, steps: int = 16) -> list[Point]:
    """Points along a chain of Bézier pieces, `steps` to a piece that isn't straight."""
    points = [stroke[0]]
    for i in range(0, len(stroke) - 1, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = piece = stroke[i : i + 4]
        if piece[1:] == line(piece[0], piece[3]):
            points.append(piece[3])
            continue
        for k in range(1, steps + 1):
            t = k / steps
            s = 1 - t
            a, b, c, d = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
            points.append((a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy))
    return points
