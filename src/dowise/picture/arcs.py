"""The way of a bidirected edge: an arc from the top or bottom of one box to that of another.

Directed edges use the left and right of a box, so an arc is told apart by where it starts. For each
edge a few dozen arcs are tried, higher and flatter, above and below, and the shortest that hits no
box and crosses few edges is kept. Where every arc hits a box, the edge goes round instead: along
the gaps between the columns, where no box is, and past the rim of the drawing if need be. Such a
way always exists.

In a dense graph the search ends when a set amount of work is done. The edges left over, which are
the longest, get the first of a few arcs that hits no box, however many edges it crosses, or a plain
bow across boxes if there is none. Work is counted and not timed: the same graph always gives the
same strokes.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import dist, inf
from typing import TYPE_CHECKING

import numpy as np

from dowise.graph.edges import Edge
from dowise.picture.shapes import STUB, Box, Point, Stroke, flatten, line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Array = NDArray[np.float64]

__all__ = ["route"]

# The top of a box is -1, its bottom 1; here for both ends of an edge.
_Sides = tuple[int, int]
_Ends = Mapping[_Sides, tuple[Point, Point]]
# What it costs, where it runs, the sides that it is attached to, and points along it.
_Way = tuple[float, Stroke, _Sides, list[Point]]

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


def route(
    edges: Sequence[Edge],
    boxes: Mapping[str, Box],
    directed: Mapping[Edge, Stroke],
    spans: Sequence[tuple[float, float]],
) -> list[Stroke]:
    """A stroke for every bidirected edge, given the columns' left and right ends.

    Short edges choose first, so that they get the inner places. A pair may come more than once.
    """
    if not edges:
        return []
    drawn = _Drawn(directed.values())
    sides = np.array([(box.left, box.top, box.right, box.bottom) for box in boxes.values()])
    rims = float(sides[:, 1].min()) - 2.0, float(sides[:, 3].max()) + 2.0
    # Arcs attached so far to the top or bottom of a box, by the direction they go in.
    used: Counter[tuple[str, int, bool]] = Counter()
    strokes: dict[int, Stroke] = {}
    for i in sorted(range(len(edges)), key=lambda i: (_distance(edges[i], boxes), edges[i], i)):
        edge = edges[i]
        one, other = sorted(edge, key=lambda name: (boxes[name].x, boxes[name].y))
        a, b = boxes[one], boxes[other]
        margins = [-0.05 if name in edge else _CLEARANCE for name in boxes]
        walls = sides + np.outer(margins, (-1.0, -1.0, 1.0, 1.0))
        starts = {k: _slot(a, k, used[one, k, a.x < b.x], a.x < b.x) for k in (-1, 1)}
        stops = {k: _slot(b, k, used[other, k, False], False) for k in (-1, 1)}
        ends = {(j, k): (starts[j], stops[k]) for j, k in product((-1, 1), (-1, 1))}
        if drawn.work < _WORK:
            _, stroke, chosen, _ = _cheapest(_ways(ends, spans, rims, len(strokes)), walls, drawn)
            drawn.add(stroke)
        else:
            stroke, chosen = _first_clear(ends, walls, stacked=a.x == b.x)
        strokes[i] = stroke if edge[0] == one else stroke[::-1]
        used[one, chosen[0], a.x < b.x] += 1
        used[other, chosen[1], False] += 1
    return [strokes[i] for i in range(len(edges))]


class _Drawn:
    """What is drawn so far, as straight pieces, and the work done in comparing with them."""

    def __init__(self, strokes: Iterable[Stroke]) -> None:
        self.pieces: _Array = np.empty((0, 2, 2))
        self.work = 0
        self.add(*strokes)

    def add(self, *strokes: Stroke) -> None:
        pieces = [piece for stroke in strokes for piece in pairwise(flatten(stroke, _COARSE))]
        self.pieces = np.concatenate([self.pieces, np.reshape(pieces, (-1, 2, 2))])

    def crossings(self, stroke: Stroke) -> int:
        """How often a stroke crosses what is drawn."""
        points = np.array(flatten(stroke, _COARSE))
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
        strokes = [(stroke, 0.0) for stroke in _arcs(start, end, sides)]
        rounds = _ways_round(start, end, sides, spans, rims, turn)
        for stroke, extra in strokes + [(stroke, _DETOUR_COST) for stroke in rounds]:
            points = flatten(stroke)
            ways.append((_length(points) + extra, stroke, sides, points))
    return ways


def _cheapest(ways: list[_Way], walls: _Array, drawn: _Drawn) -> _Way:
    """The way that hits no box, short and with few crossings."""
    drawn.work += _WORK_PER_WAY * len(ways)
    best, cost = ways[0], inf
    for way in sorted(ways):
        length, stroke, _, points = way
        if length >= cost:
            break
        if not _hits(points, walls):
            price = length + _CROSSING_COST * drawn.crossings(stroke)
            if price < cost:
                best, cost = way, price
    return best


def _first_clear(ends: _Ends, walls: _Array, stacked: bool) -> tuple[Stroke, _Sides]:
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
) -> Iterator[Stroke]:
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


def _arc(start: Point, one: Point, other: Point, end: Point) -> Stroke:
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
) -> Iterator[Stroke]:
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


def _rounded(corners: Sequence[Point]) -> Stroke:
    """A stroke along a line with corners, each of them rounded off but for the straight ends."""
    stroke = [corners[0]]
    ends = corners[0], corners[-1]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        rooms = (
            dist(corner, end) - STUB if end in ends else dist(corner, end) / 2
            for end in (before, after)
        )
        radius = min(_CORNER_RADIUS, *rooms)
        enter, leave = _along(corner, before, radius), _along(corner, after, radius)
        stroke += [*line(stroke[-1], enter), corner, corner, leave]
    return (*stroke, *line(stroke[-1], corners[-1]))


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
