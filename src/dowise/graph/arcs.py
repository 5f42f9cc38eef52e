"""The way of a bidirected edge: an arc from the top or bottom of one box to that of another.

Directed edges use the left and right of a box, so an arc is told apart by where it starts. For each
edge a few dozen arcs are tried, higher and flatter, above and below, and the shortest that hits no
box and crosses few edges is kept. Where every arc hits a box, the edge goes round instead: along
the gaps between the columns, where no box is, and past the rim of the drawing if need be. Such a
way always exists.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import dist, inf

from dowise.graph.causal_graph import Edge

__all__ = ["STUB", "Box", "Curve", "Point", "flatten", "line", "route"]

Point = tuple[float, float]
Curve = tuple[Point, ...]
# What it costs, where it runs, and the sides that it is attached to: -1 is the top, 1 the bottom.
_Way = tuple[float, Curve, tuple[int, int]]

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
    drawn = [piece for curve in directed.values() for piece in pairwise(flatten(curve, _COARSE))]
    # Arcs attached so far to the top or bottom of a box, by the direction they go in.
    used: Counter[tuple[str, int, bool]] = Counter()
    curves: dict[Edge, Curve] = {}
    for edge in sorted(edges, key=lambda edge: (_distance(edge, boxes), edge)):
        one, other = sorted(edge, key=lambda name: (boxes[name].x, boxes[name].y))
        a, b = boxes[one], boxes[other]
        ways: list[_Way] = []
        for sides in product((-1, 1), (-1, 1)):
            start = _slot(a, sides[0], used[one, sides[0], a.x < b.x], a.x < b.x)
            end = _slot(b, sides[1], used[other, sides[1], False], False)
            rounds = _ways_round(start, end, sides, spans, boxes.values(), len(curves))
            ways += ((_length(flatten(curve)), curve, sides) for curve in _arcs(start, end, sides))
            ways += ((_length(flatten(curve)) + _DETOUR_COST, curve, sides) for curve in rounds)
        foreign = [box for name, box in boxes.items() if name not in edge]
        _, curve, sides = _cheapest(ways, foreign, (a, b), drawn)
        curves[edge] = curve if edge[0] == one else curve[::-1]
        drawn += pairwise(flatten(curve, _COARSE))
        used[one, sides[0], a.x < b.x] += 1
        used[other, sides[1], False] += 1
    return {edge: curves[edge] for edge in edges}


def _cheapest(
    ways: list[_Way],
    foreign: Sequence[Box],
    own: Sequence[Box],
    drawn: Sequence[tuple[Point, Point]],
) -> _Way:
    """The way that hits no box, short and with few crossings."""
    best, cost = ways[0], inf
    for way in sorted(ways):
        length, curve, _ = way
        if length >= cost:
            break
        points = flatten(curve)
        if _hits(points, foreign, _CLEARANCE) or _hits(points, own, -0.05):
            continue
        most = len(drawn) if cost == inf else int((cost - length) / _CROSSING_COST)
        price = length + _CROSSING_COST * _crossings(flatten(curve, _COARSE), drawn, most)
        if price < cost:
            best, cost = way, price
    return best


def _distance(edge: Edge, boxes: Mapping[str, Box]) -> float:
    one, other = boxes[edge[0]], boxes[edge[1]]
    return dist((one.x, one.y), (other.x, other.y))


def _slot(box: Box, side: int, taken: int, rightwards: bool) -> Point:
    """The next free place on the top (-1) or bottom (1) of a box."""
    shift = _SLOTS[taken % len(_SLOTS)]
    return box.x + (shift if rightwards else -shift), box.top if side < 0 else box.bottom


def _arcs(start: Point, end: Point, sides: tuple[int, int]) -> Iterator[Curve]:
    """Arcs of several heights."""
    lean = 0.2 * (end[0] - start[0])
    drop = end[1] - start[1]
    # Between sides that face each other a handle must not reach past the other end.
    facing = sides[0] != sides[1] and drop * sides[0] > 0
    for bow in (abs(drop) / 2,) if facing else _BOWS:
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
    sides: tuple[int, int],
    spans: Sequence[tuple[float, float]],
    boxes: Iterable[Box],
    turn: int,
) -> Iterator[Curve]:
    """Ways along the gaps between columns and past the rim; `turn` keeps two of them apart."""
    aside = 0.5 * (turn % 5 - 2)
    gaps = [spans[0][0] - 3.0]
    gaps += [(left[1] + right[0]) / 2 for left, right in pairwise(spans)]
    gaps += [spans[-1][1] + 3.0]
    first, final = (start[0], start[1] + sides[0] * _AWAY), (end[0], end[1] + sides[1] * _AWAY)
    rims = min(box.top for box in boxes) - 2.0, max(box.bottom for box in boxes) + 2.0
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


def _hits(points: Sequence[Point], boxes: Iterable[Box], margin: float) -> bool:
    """Whether a line comes within the margin of one of the boxes."""
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    return any(
        _enters(a, b, box, margin)
        for box in boxes
        if box.left - margin < right and left < box.right + margin
        for a, b in pairwise(points)
    )


def _enters(a: Point, b: Point, box: Box, margin: float) -> bool:
    """Whether the segment from a to b meets the box, grown by the margin on every side."""
    low, high = 0.0, 1.0
    for start, end, near, far in (
        (a[0], b[0], box.left - margin, box.right + margin),
        (a[1], b[1], box.top - margin, box.bottom + margin),
    ):
        if max(start, end) <= near or min(start, end) >= far:
            return False
        if start != end:
            enter, leave = sorted(((near - start) / (end - start), (far - start) / (end - start)))
            low, high = max(low, enter), min(high, leave)
    return low < high


def _crossings(points: Sequence[Point], pieces: Iterable[tuple[Point, Point]], most: int) -> int:
    """How often a line crosses straight pieces, or just more than `most`."""

    def left_of(p: Point, q: Point, r: Point) -> bool:
        return (q[0] - p[0]) * (r[1] - p[1]) > (q[1] - p[1]) * (r[0] - p[0])

    count = 0
    for a, b in pairwise(points):
        left, right = (a[0], b[0]) if a[0] < b[0] else (b[0], a[0])
        for c, d in pieces:
            # Most pieces are far off; this spares the arithmetic.
            if (c[0] < left and d[0] < left) or (c[0] > right and d[0] > right):
                continue
            if left_of(a, b, c) != left_of(a, b, d) and left_of(c, d, a) != left_of(c, d, b):
                count += 1
        if count > most:
            break
    return count
