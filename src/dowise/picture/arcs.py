"""The way of a bidirected edge: an arc from the top or bottom of one box to that of another.

Directed edges use the left and right of a box, so an arc is told apart by where it starts. For each
edge a few dozen arcs are tried, higher and flatter, above and below, and the shortest that hits no
box and crosses few edges is kept. Where every arc hits a box, the edge goes round instead: along
the gaps between the columns, where no box is, and past the rim of the drawing if need be. Such a
way always exists.

In a dense graph the search ends when a set amount of work is done. The edges left over, which are
the longest, get the first of a few arcs that hits no box, however many edges it crosses, or a plain
bow across boxes if there is none. Work is counted and not timed: the same graph always gives the
same curves.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import dist, inf
from typing import TYPE_CHECKING

import numpy as np

from dowise.graph.causal_graph import Edge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Array = NDArray[np.float64]

__all__ = ["STUB", "Box", "Curve", "Point", "flatten", "line", "route"]

Point = tuple[float, float]
Curve = tuple[Point, ...]
# The top of a box is -1, its bottom 1; here for both ends of an edge.
_Sides = tuple[int, int]
_Ends = Mapping[_Sides, tuple[Point, Point]]
# What it costs, where it runs, the sides that it is attached to, and points along it.
_Way = tuple[float, Curve, _Sides, list[Point]]

# The straight piece at the end of an edge, long enough for an arrowhead.
STUB = 0.7

# How near an arc may come to a box that it doesn't belong to.
_CLEARANCE = 0.4
# How far out the handles of an arc lie.
_BOWS = (2.0, 3.0, 4.5, 6.5, 9.0, 12.0, 16.0, 21.0)
# A crossing is worth a detour of this many em, and so is avoiding a way with corners.
_CROSSING_COST, _DETOUR_COST = 5.0, 14.0
# Steps to a Bézier piece that are enough to count crossings.
_COARSE = 3
# Where on the top or bottom of a box arcs to one side are attached, away from its middle. Shorter
# arcs come first, so that they lie inside the longer ones.
_SLOTS = (1.2, 0.6, 0.0)
# How far from its boxes a way round runs, and how round its corners are.
_AWAY, _CORNER_RADIUS = 1.0, 1.4
# The work after which arcs are no longer searched for, counted in comparisons of straight pieces,
# and what one way costs beside those. About a second's work.
_WORK, _WORK_PER_WAY = 24_000_000, 2_000


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


def line(start: Point, end: Point) -> Curve:
    """The three points that continue a curve from `start` straight to `end`."""
    (a, b), (c, d) = start, end
    return ((2 * a + c) / 3, (2 * b + d) / 3), ((a + 2 * c) / 3, (b + 2 * d) / 3), end


def flatten(curve: Curve, steps: int = 16) -> list[Point]:
    """Points along a chain of Bézier pieces, `steps` to a piece that isn't straight."""
    points = [curve[0]]
    for i in range(0, len(curve) - 1, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = piece = curve[i : i + 4]
        if piece[1:] == line(piece[0], piece[3]):
            points.append(piece[3])
            continue
        for k in range(1, steps + 1):
            t = k / steps
            s = 1 - t
            a, b, c, d = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
            points.append((a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy))
    return points


def route(
    edges: Sequence[Edge],
    boxes: Mapping[str, Box],
    directed: Mapping[Edge, Curve],
    spans: Sequence[tuple[float, float]],
) -> dict[Edge, Curve]:
    """A curve for every bidirected edge, given the columns' left and right ends.

    Short edges choose first, so that they get the inner places.
    """
    if not edges:
        return {}
    drawn = _Drawn(directed.values())
    sides = np.array([(box.left, box.top, box.right, box.bottom) for box in boxes.values()])
    rims = float(sides[:, 1].min()) - 2.0, float(sides[:, 3].max()) + 2.0
    # Arcs attached so far to the top or bottom of a box, by the direction they go in.
    used: Counter[tuple[str, int, bool]] = Counter()
    curves: dict[Edge, Curve] = {}
    for edge in sorted(edges, key=lambda edge: (_distance(edge, boxes), edge)):
        one, other = sorted(edge, key=lambda name: (boxes[name].x, boxes[name].y))
        a, b = boxes[one], boxes[other]
        margins = [-0.05 if name in edge else _CLEARANCE for name in boxes]
        walls = sides + np.outer(margins, (-1.0, -1.0, 1.0, 1.0))
        starts = {i: _slot(a, i, used[one, i, a.x < b.x], a.x < b.x) for i in (-1, 1)}
        stops = {i: _slot(b, i, used[other, i, False], False) for i in (-1, 1)}
        ends = {(i, j): (starts[i], stops[j]) for i, j in product((-1, 1), (-1, 1))}
        if drawn.work < _WORK:
            _, curve, chosen, _ = _cheapest(_ways(ends, spans, rims, len(curves)), walls, drawn)
            drawn.add(curve)
        else:
            curve, chosen = _first_clear(ends, walls, stacked=a.x == b.x)
        curves[edge] = curve if edge[0] == one else curve[::-1]
        used[one, chosen[0], a.x < b.x] += 1
        used[other, chosen[1], False] += 1
    return {edge: curves[edge] for edge in edges}


class _Drawn:
    """What is drawn so far, as straight pieces, and the work done in comparing with them."""

    def __init__(self, curves: Iterable[Curve]) -> None:
        self.pieces: _Array = np.empty((0, 2, 2))
        self.work = 0
        self.add(*curves)

    def add(self, *curves: Curve) -> None:
        pieces = [piece for curve in curves for piece in pairwise(flatten(curve, _COARSE))]
        self.pieces = np.concatenate([self.pieces, np.reshape(pieces, (-1, 2, 2))])

    def crossings(self, curve: Curve) -> int:
        """How often a curve crosses what is drawn."""
        points = np.array(flatten(curve, _COARSE))
        # Most pieces are far off; this spares the arithmetic.
        (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
        (cx, cy), (dx, dy) = self.pieces.T.swapaxes(0, 1)
        near = (np.maximum(cx, dx) >= left) & (np.minimum(cx, dx) <= right)
        near &= (np.maximum(cy, dy) >= top) & (np.minimum(cy, dy) <= bottom)
        c, d = self.pieces[near].swapaxes(0, 1)
        a, b = points[:-1, None], points[1:, None]
        self.work += len(self.pieces) + len(a) * len(c)
        apart = _left_of(a, b, c) != _left_of(a, b, d)
        return int(np.count_nonzero(apart & (_left_of(c, d, a) != _left_of(c, d, b))))


def _left_of(p: _Array, q: _Array, r: _Array) -> NDArray[np.bool_]:
    """Whether r lies to the left of the way from p to q."""
    (px, py), (qx, qy), (rx, ry) = (np.moveaxis(point, -1, 0) for point in (p, q, r))
    left: NDArray[np.bool_] = (qx - px) * (ry - py) > (qy - py) * (rx - px)
    return left


def _ways(
    ends: _Ends,
    spans: Sequence[tuple[float, float]],
    rims: tuple[float, float],
    turn: int,
) -> list[_Way]:
    """All ways to be tried, at their length; a way round costs more."""
    ways: list[_Way] = []
    for sides, (start, end) in ends.items():
        curves = [(curve, 0.0) for curve in _arcs(start, end, sides)]
        rounds = _ways_round(start, end, sides, spans, rims, turn)
        for curve, extra in curves + [(curve, _DETOUR_COST) for curve in rounds]:
            points = flatten(curve)
            ways.append((_length(points) + extra, curve, sides, points))
    return ways


def _cheapest(ways: list[_Way], walls: _Array, drawn: _Drawn) -> _Way:
    """The way that hits no box, short and with few crossings."""
    drawn.work += _WORK_PER_WAY * len(ways)
    best, cost = ways[0], inf
    for way in sorted(ways):
        length, curve, _, points = way
        if length >= cost:
            break
        if not _hits(points, walls):
            price = length + _CROSSING_COST * drawn.crossings(curve)
            if price < cost:
                best, cost = way, price
    return best


def _first_clear(ends: _Ends, walls: _Array, stacked: bool) -> tuple[Curve, _Sides]:
    """The first of a few arcs that hits no box, or else a plain bow."""
    order = [(1, -1)] if stacked else [(-1, -1), (1, 1)]
    arcs = [(arc, sides) for sides in order for arc in _arcs(*ends[sides], sides, _BOWS[1::2])]
    return next((way for way in arcs if not _hits(flatten(way[0], 8), walls)), arcs[0])


def _distance(edge: Edge, boxes: Mapping[str, Box]) -> float:
    one, other = boxes[edge[0]], boxes[edge[1]]
    return dist((one.x, one.y), (other.x, other.y))


def _slot(box: Box, side: int, taken: int, rightwards: bool) -> Point:
    """The next free place on the top (-1) or bottom (1) of a box."""
    shift = _SLOTS[taken % len(_SLOTS)]
    return box.x + (shift if rightwards else -shift), box.top if side < 0 else box.bottom


def _arcs(
    start: Point, end: Point, sides: _Sides, bows: Sequence[float] = _BOWS
) -> Iterator[Curve]:
    """Arcs of several heights."""
    lean = 0.2 * (end[0] - start[0])
    drop = end[1] - start[1]
    # Between sides that face each other a handle must not reach past the other end.
    facing = sides[0] != sides[1] and drop * sides[0] > 0
    for bow in (abs(drop) / 2,) if facing else bows:
        heights = [start[1] + sides[0] * bow, end[1] + sides[1] * bow]
        if sides[0] == sides[1]:
            # Both handles at one height, else the arc would cut through the box that lies deeper.
            heights = [min(heights) if sides[0] < 0 else max(heights)] * 2
        yield _arc(start, (start[0] + lean, heights[0]), (end[0] - lean, heights[1]), end)


def _arc(start: Point, one: Point, other: Point, end: Point) -> Curve:
    """A Bézier piece with handles `one` and `other`, between two straight ends along them."""
    first, final = _along(start, one), _along(end, other)
    return (start, *line(start, first), one, other, final, *line(final, end))


def _along(start: Point, towards: Point, length: float = STUB) -> Point:
    """The point `length` away from `start`."""
    part = length / (dist(start, towards) or 1.0)
    return start[0] + part * (towards[0] - start[0]), start[1] + part * (towards[1] - start[1])


def _ways_round(
    start: Point,
    end: Point,
    sides: _Sides,
    spans: Sequence[tuple[float, float]],
    rims: tuple[float, float],
    turn: int,
) -> Iterator[Curve]:
    """Ways along the gaps between columns and past the rim; `turn` keeps two of them apart."""
    aside = 0.5 * (turn % 5 - 2)
    gaps = [spans[0][0] - 3.0]
    gaps += [(left[1] + right[0]) / 2 for left, right in pairwise(spans)]
    gaps += [spans[-1][1] + 3.0]
    first, final = (start[0], start[1] + sides[0] * _AWAY), (end[0], end[1] + sides[1] * _AWAY)
    for here, there in product(_beside(start, gaps), _beside(end, gaps)):
        out, back = (here + aside, first[1]), (there + aside, final[1])
        if here == there:
            yield _rounded([start, first, out, back, final, end])
            continue
        for rim in rims:
            over = [(out[0], rim + aside), (back[0], rim + aside)]
            yield _rounded([start, first, out, *over, back, final, end])


def _beside(point: Point, gaps: Sequence[float]) -> tuple[float, float]:
    """The gaps to the left and right of a column."""
    i = bisect(gaps, point[0])
    return gaps[i - 1], gaps[i]


def _rounded(corners: Sequence[Point]) -> Curve:
    """A curve along a line with corners, each of them rounded off but for the straight ends."""
    curve = [corners[0]]
    ends = corners[0], corners[-1]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        rooms = (
            dist(corner, end) - STUB if end in ends else dist(corner, end) / 2
            for end in (before, after)
        )
        radius = min(_CORNER_RADIUS, *rooms)
        enter, leave = _along(corner, before, radius), _along(corner, after, radius)
        curve += [*line(curve[-1], enter), corner, corner, leave]
    return (*curve, *line(curve[-1], corners[-1]))


def _length(points: Sequence[Point]) -> float:
    return sum(dist(a, b) for a, b in pairwise(points))


def _hits(points: Sequence[Point], walls: _Array) -> bool:
    """Whether a line enters one of the rectangles, given by left, top, right and bottom."""
    line = np.array(points)
    low, high = line.min(axis=0), line.max(axis=0)
    # Most boxes are far off; this spares the arithmetic.
    walls = walls[(walls[:, :2] < high).all(axis=1) & (low < walls[:, 2:]).all(axis=1)]
    if not len(walls):
        return False
    start, end = line[:-1, None], line[1:, None]
    near, far = walls[:, :2], walls[:, 2:]
    beside = (np.maximum(start, end) <= near) | (np.minimum(start, end) >= far)
    # Which part of each piece lies between left and right, and which between top and bottom.
    step = np.where(start == end, 1e-200, end - start)
    ways = (near - start) / step, (far - start) / step
    enter, leave = np.minimum(*ways).max(axis=2), np.maximum(*ways).min(axis=2)
    inside = np.maximum(enter, 0.0) < np.minimum(leave, 1.0)
    return bool((inside & ~beside.any(axis=2)).any())
