"""Where to draw a causal graph: causes on the left, effects on the right, nothing in the way.

A layout is plain numbers, measured in *em* (the height of the font), y growing downwards. It keeps
three promises by construction rather than by luck:

- boxes never overlap, because each column keeps its points a fixed distance apart;
- a directed edge never touches the box of another variable, because inside a column it runs level
  at a height of its own and it rises or falls only in the gap between columns, where no box is;
- it leaves a box on the right and enters on the left, level, at a place of its own.

Bidirected edges leave and enter at the top or the bottom; `dowise.plotting.layout` finds their way,
clear of all boxes. A dense graph (far more than 25 variables with 14 bidirected edges) keeps the
three promises, but it is laid out with less care, to be done in seconds: with fewer sweeps, so that
more edges cross, and its longest bidirected edges may run across boxes.

>>> from dowise.graph import CausalGraph
>>> plan = layout(CausalGraph([("X", "Y")]))
>>> plan.boxes["X"].right < plan.boxes["Y"].left
True
>>> plan.directed["X", "Y"][-1] == (plan.boxes["Y"].left, plan.boxes["Y"].y)
True
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect, bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, product
from math import dist, inf
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import Edge, EdgeName

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Array = NDArray[np.float64]


# Sweeps after which crossings have stopped falling on graphs of up to 60 variables, and how many
# points they may visit altogether: a dense graph, with its thousands of bends, gets fewer sweeps.
_layers_SWEEPS, _layers_LEAST_SWEEPS = 16, 2
_layers_VISITS = 30_000


@dataclass(frozen=True, slots=True)
class Layers:
    """Columns from left to right, each from top to bottom.

    A point below `variables` is the variable of that position in the graph, any other is a bend.
    `chains` gives each directed edge as the points it visits, its two ends included. `left` and
    `right` are the neighbours of every point in the columns beside it, from top to bottom.
    """

    variables: int
    columns: tuple[tuple[int, ...], ...]
    chains: dict[Edge, tuple[int, ...]]
    left: tuple[tuple[int, ...], ...]
    right: tuple[tuple[int, ...], ...]


def arrange(graph: CausalGraph, last: str | None = None) -> Layers:
    """Columns with short edges and few crossings; `last` goes to the far right if it may."""
    place = _places(graph, last)
    columns: list[list[int]] = [[] for _ in range(max(place.values(), default=-1) + 1)]
    for i, name in enumerate(graph.variables):
        columns[place[name]].append(i)

    position = {name: i for i, name in enumerate(graph.variables)}
    chains: dict[Edge, tuple[int, ...]] = {}
    points = len(graph.variables)
    for cause, effect in graph.directed_edges:
        between = range(place[cause] + 1, place[effect])
        bends = range(points, points + len(between))
        for column, bend in zip(between, bends, strict=True):
            columns[column].append(bend)
        chains[cause, effect] = (position[cause], *bends, position[effect])
        points += len(between)

    left: list[list[int]] = [[] for _ in range(points)]
    right: list[list[int]] = [[] for _ in range(points)]
    for chain in chains.values():
        for u, v in pairwise(chain):
            right[u].append(v)
            left[v].append(u)
    columns = _untangle(columns, left, right)
    rank = _ranks(columns)
    return Layers(
        variables=len(graph.variables),
        columns=tuple(map(tuple, columns)),
        chains=chains,
        left=tuple(tuple(sorted(near, key=rank.__getitem__)) for near in left),
        right=tuple(tuple(sorted(near, key=rank.__getitem__)) for near in right),
    )


def _places(graph: CausalGraph, last: str | None) -> dict[str, int]:
    """The column of every variable: by longest path, then moved wherever that shortens edges."""
    order = graph.topological_order()
    linked = [name for name in order if graph.parents(name) or graph.children(name)]
    place: dict[str, int] = {}
    for name in linked:
        place[name] = max((place[parent] + 1 for parent in graph.parents(name)), default=0)
    columns = max(place.values(), default=-1) + 1
    pinned = last if last in place and last is not None and not graph.children(last) else None
    if pinned is not None:
        place[pinned] = columns - 1

    # A move to the right never lengthens the edges and a move to the left shortens them, so this
    # ends. Backwards, so that a cause follows an effect that has just moved.
    moved = True
    while moved:
        moved = False
        for name in reversed(linked):
            parents, children = graph.parents(name), graph.children(name)
            if name == pinned:
                continue
            if len(children) >= len(parents):
                target = min(place[child] for child in children) - 1
            else:
                target = max(place[parent] for parent in parents) + 1
            moved |= target != place[name]
            place[name] = target

    # Variables without directed edges fill the emptiest columns: a block, not one long stack.
    free = [name for name in order if name not in place]
    counts = [0] * max(columns, math.isqrt(max(len(free) - 1, 0)) + 1)
    for column in place.values():
        counts[column] += 1
    for name in free:
        place[name] = len(counts) - 1 if name == last else counts.index(min(counts))
        counts[place[name]] += 1
    filled = [column for column, count in enumerate(counts) if count]
    return {name: filled.index(column) for name, column in place.items()}


def _untangle(
    columns: list[list[int]], left: list[list[int]], right: list[list[int]]
) -> list[list[int]]:
    """The order with the fewest crossings among those that sweeps to and fro come across."""
    best, fewest = columns, _crossings(columns, right)
    for sweep in range(
        max(_layers_LEAST_SWEEPS, min(_layers_SWEEPS, _layers_VISITS // max(len(left), 1)))
    ):
        if not fewest:
            break
        columns = [list(column) for column in columns]
        near, way = (left, columns) if sweep % 2 == 0 else (right, columns[::-1])
        rank = _ranks(columns)
        for column in way:
            _sort_by_neighbours(column, near, rank)
            rank.update((v, i) for i, v in enumerate(column))
        _swap_neighbours(columns, left, right)
        crossings = _crossings(columns, right)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _sort_by_neighbours(column: list[int], near: list[list[int]], rank: dict[int, int]) -> None:
    """Order a column by the mean rank of the neighbours; a point without any keeps its place."""
    slots = [i for i, v in enumerate(column) if near[v]]
    ordered = sorted(
        (column[i] for i in slots), key=lambda v: fmean(rank[neighbour] for neighbour in near[v])
    )
    for i, v in zip(slots, ordered, strict=True):
        column[i] = v


def _swap_neighbours(
    columns: list[list[int]], left: list[list[int]], right: list[list[int]]
) -> None:
    """Swap points one above the other as long as that removes crossings."""
    rank = _ranks(columns)
    # A column can only improve after a swap in it or beside it.
    waiting = set(range(len(columns)))
    while waiting:
        swapped = set()
        for i, column in enumerate(columns):
            if i in waiting and _swap_in_column(column, left, right, rank):
                swapped.add(i)
                waiting.add(i + 1)
        waiting = {i + step for i in swapped for step in (-1, 0, 1)}


def _swap_in_column(
    column: list[int], left: list[list[int]], right: list[list[int]], rank: dict[int, int]
) -> bool:
    """Go down a column once and swap wherever that removes crossings; whether anything moved."""
    ends = [[sorted([rank[u] for u in near[v]]) for near in (left, right)] for v in column]
    moved = False
    for i in range(len(column) - 1):
        if _saved(ends[i], ends[i + 1]) > 0:
            column[i], column[i + 1] = column[i + 1], column[i]
            ends[i], ends[i + 1] = ends[i + 1], ends[i]
            rank[column[i]], rank[column[i + 1]] = i, i + 1
            moved = True
    return moved


def _saved(upper: list[list[int]], lower: list[list[int]]) -> int:
    """How many crossings disappear when two points swap, given the ranks of their neighbours."""
    saved = 0
    for above, below in zip(upper, lower, strict=True):
        if len(above) == len(below) == 1:  # Two bends, by far the most frequent case.
            saved += (above[0] > below[0]) - (above[0] < below[0])
        else:
            saved += sum(bisect_left(below, end) + bisect_right(below, end) for end in above)
            saved -= len(above) * len(below)
    return saved


def _crossings(columns: list[list[int]], right: list[list[int]]) -> int:
    """How many pairs of edges cross: inversions between the ranks of their two ends."""
    rank = _ranks(columns)
    total = 0
    for column in columns:
        seen: list[int] = []
        for v in column:
            ends = sorted(rank[neighbour] for neighbour in right[v])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _ranks(columns: list[list[int]]) -> dict[int, int]:
    return {v: i for column in columns for i, v in enumerate(column)}


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


_MIN_HEIGHT = 2.3
_PADDING = 2.0
_MIN_WIDTH = 3.4
_MIN_GAP, _MAX_GAP = 5.0, 12.0
# The gap between columns grows with the steepest edge in it, so that edges stay easy to follow.
_GAP_PER_RISE = 0.5
# How far apart edges arrive on the left of a box, with their heads, and leave on its right. A box
# grows with them: ports keep clear of its corners.
_PORT_STEPS = 0.48, 0.36
_CORNERS = 1.0
# Free height between box and box, box and bend, bend and bend; more where an arc must fit between.
_BETWEEN = {2: 2.2, 1: 1.25, 0: 1.0}
_BETWEEN_SIBLINGS = 3.4
# Sweeps, and how many points they may visit altogether: a dense graph gets fewer sweeps.
_SWEEPS, _LEAST_SWEEPS = 24, 6
_VISITS = 60_000
# Where the pulls from left and right balance, a sweep follows the side it comes from: then an edge
# is level over many columns rather than a staircase.
_LEAN = 1.05
# A rise that looks like a slip of the pen; a port in the middle of a side can move this far.
_NEARLY_LEVEL = 0.6


@dataclass(frozen=True, slots=True)
class Layout:
    """A box for every variable and a stroke for every edge.

    `extra` are strokes of edges, by their texts, that the graph lacks and that are drawn into it.

    The first and last pieces of a stroke are straight, and long enough to carry an arrowhead
    wherever there is one.
    """

    boxes: Mapping[str, Box]
    directed: Mapping[Edge, Stroke]
    bidirected: Mapping[Edge, Stroke]
    extra: Mapping[str, Stroke] = field(default_factory=dict)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of everything drawn."""
        arcs = (*self.bidirected.values(), *self.extra.values())
        points = [point for stroke in arcs for point in flatten(stroke)]
        # A directed edge only moves level or in an S, so it reaches no further than its points.
        points += [point for stroke in self.directed.values() for point in stroke]
        for box in self.boxes.values():
            points += [(box.left, box.top), (box.right, box.bottom)]
        if not points:
            return 0.0, 0.0, 0.0, 0.0
        xs, ys = [x for x, _ in points], [y for _, y in points]
        return min(xs), min(ys), max(xs), max(ys)


def text_width(text: str) -> float:
    """A generous estimate in em of how wide a text prints; no font is asked."""
    return sum(map(_character_width, text))


def layout(graph: CausalGraph, last: str | None = None, extra: Sequence[EdgeName] = ()) -> Layout:
    """Place every variable and route every edge; `last` (the reward) goes to the far right.

    The same graph always gives the same layout. `extra` edges move no box and are routed as
    bidirected ones are, so that they may even make a cycle.
    """
    layers = arrange(graph, last)
    ports = _ports(layers)
    sizes = _sizes(layers)
    heights = _heights(layers, ports, [_offsets(column, sizes, graph) for column in layers.columns])
    _level(layers, ports, heights)
    widths = [max(_MIN_WIDTH, text_width(name) + _PADDING) for name in graph.variables]
    spans = _spans(layers, heights, widths)
    centre = {v: i for i, column in enumerate(layers.columns) for v in column}
    boxes = {
        name: Box(sum(spans[centre[v]]) / 2, heights[v], widths[v], sizes[v])
        for v, name in enumerate(graph.variables)
    }
    directed = {
        (cause, effect): _edge(
            boxes[cause],
            boxes[effect],
            [spans[centre[v]] for v in chain],
            [(heights[u] + ports[u, v], heights[v] + ports[v, u]) for u, v in pairwise(chain)],
        )
        for (cause, effect), chain in layers.chains.items()
    }
    tied = graph.bidirected_edges
    arcs = route([*tied, *((edge.one, edge.other) for edge in extra)], boxes, directed, spans)
    added = dict(zip(map(str, extra), arcs[len(tied) :], strict=True))
    return Layout(boxes, directed, dict(zip(tied, arcs, strict=False)), added)


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.1
    if character in "mwMW@%—…":
        return 1.0
    if character in "fijlrtI.,:;'|!()[] ":
        return 0.42
    return 0.76 if character.isupper() else 0.66


def _ports(layers: Layers) -> dict[tuple[int, int], float]:
    """How far from the middle of u's side the edge to v is attached; bends have one place only."""
    ports: dict[tuple[int, int], float] = {}
    for near, step in zip((layers.left, layers.right), _PORT_STEPS, strict=True):
        for u, ends in enumerate(near):
            for i, v in enumerate(ends):
                ports[u, v] = step * (i - (len(ends) - 1) / 2)
    return ports


def _sizes(layers: Layers) -> list[float]:
    """How tall every point is: a box has room for all its ports, a bend takes no room."""
    sizes = [0.0] * len(layers.left)
    for v in range(layers.variables):
        edges = len(layers.left[v]), len(layers.right[v])
        rooms = (step * (n - 1) + _CORNERS for step, n in zip(_PORT_STEPS, edges, strict=True))
        sizes[v] = max(_MIN_HEIGHT, *rooms)
    return sizes


def _heights(
    layers: Layers, ports: dict[tuple[int, int], float], offsets: list[list[float]]
) -> list[float]:
    """The y of every point, so that edges run as level as the distances in a column allow.

    Each column in turn is set best for its neighbours as they stand. Means come first, since they
    spread a shift over the whole drawing; then medians, which make most edges exactly level.
    """
    heights = [0.0] * len(layers.left)
    for column, shifts in zip(layers.columns, offsets, strict=True):
        for v, shift in zip(column, shifts, strict=True):
            heights[v] = shift - shifts[-1] / 2
    work = list(zip(layers.columns, offsets, strict=True))
    sweeps = max(_LEAST_SWEEPS, min(_SWEEPS, _VISITS // max(len(heights), 1)))
    for sweep in range(sweeps):
        forward = sweep % 2 == 0
        behind = layers.left if forward else layers.right
        for column, shifts in work if forward else reversed(work):
            pulls = []
            for u, shift in zip(column, shifts, strict=True):
                pull = [
                    (
                        heights[v] + ports[v, u] - ports[u, v] - shift,
                        _weight(u, v, layers.variables) * (_LEAN if near is behind else 1.0),
                    )
                    for near in (layers.left, layers.right)
                    for v in near[u]
                ]
                pulls.append(pull or [(heights[u] - shift, 0.1)])
            levels = _monotone(pulls, median=sweep >= sweeps // 2)
            for v, shift, level in zip(column, shifts, levels, strict=True):
                heights[v] = level + shift
    return heights


def _level(layers: Layers, ports: dict[tuple[int, int], float], heights: list[float]) -> None:
    """Move the only port of a side so that an edge which is almost level becomes level."""
    for u, ends in enumerate(layers.right):
        for v in ends:
            rise = heights[v] + ports[v, u] - heights[u] - ports[u, v]
            if 0 < abs(rise) <= _NEARLY_LEVEL:
                if u < layers.variables and len(ends) == 1:
                    ports[u, v] += rise
                elif v < layers.variables and len(layers.left[v]) == 1:
                    ports[v, u] -= rise


def _offsets(column: tuple[int, ...], sizes: list[float], graph: CausalGraph) -> list[float]:
    """How far below the first point of its column each point must be at least."""
    names = graph.variables
    steps: list[float] = []
    for u, v in pairwise(column):
        boxes = (u < len(names)) + (v < len(names))
        siblings = boxes == 2 and names[u] in graph.siblings(names[v])
        steps.append(
            (sizes[u] + sizes[v]) / 2 + (_BETWEEN_SIBLINGS if siblings else _BETWEEN[boxes])
        )
    return list(accumulate(steps, initial=0.0))


def _weight(u: int, v: int, variables: int) -> float:
    """How much an edge should be level: 1, 2 and 8 as in Gansner et al. (1993), section 4."""
    return {2: 1.0, 1: 2.0, 0: 8.0}[(u < variables) + (v < variables)]


def _monotone(pulls: list[list[tuple[float, float]]], median: bool) -> list[float]:
    """Rising levels closest to where (target, weight) pulls each of them: isotonic regression.

    Levels that would fall are pooled, and then move as a whole.
    """
    settle = _weighted_median if median else _weighted_mean
    pools: list[tuple[float, list[tuple[float, float]], int]] = []
    for pull in pulls:
        # All that counts for a mean is the mean so far and its weight.
        level, pooled, size = *settle(pull), 1
        while pools and pools[-1][0] > level:
            _, other, more = pools.pop()
            level, pooled = settle(other + pooled)
            size += more
        pools.append((level, pooled, size))
    return [level for level, _, size in pools for _ in range(size)]


def _weighted_mean(
    pulls: list[tuple[float, float]],
) -> tuple[float, list[tuple[float, float]]]:
    """The mean, and the one pull that stands for all of them."""
    total = sum([weight for _, weight in pulls])
    mean = sum([target * weight for target, weight in pulls]) / total
    return mean, [(mean, total)]


def _weighted_median(
    pulls: list[tuple[float, float]],
) -> tuple[float, list[tuple[float, float]]]:
    """The middle of all the points where the weights on either side balance, and the pulls."""
    pulls = sorted(pulls)
    running = list(accumulate([weight for _, weight in pulls]))
    half = running[-1] / 2
    low = bisect_left(running, half - 1e-9)
    high = bisect_right(running, half + 1e-9)
    return (pulls[low][0] + pulls[high][0]) / 2, pulls


def _spans(layers: Layers, heights: list[float], widths: list[float]) -> list[tuple[float, float]]:
    """The left and right end of every column."""
    spans: list[tuple[float, float]] = []
    start = 0.0
    for column in layers.columns:
        end = start + max(widths[v] for v in column if v < layers.variables)
        spans.append((start, end))
        rises = [abs(heights[u] - heights[v]) for u in column for v in layers.right[u]]
        start = end + min(_MAX_GAP, max([_MIN_GAP, *(_GAP_PER_RISE * rise for rise in rises)]))
    return spans


def _edge(
    cause: Box, effect: Box, spans: list[tuple[float, float]], rises: list[tuple[float, float]]
) -> Stroke:
    """Level through each column, an S in each gap."""
    stroke: list[Point] = [(cause.right, rises[0][0])]
    for (_, here), (there, _), (start, end) in zip(spans, spans[1:], rises, strict=False):
        leave, arrive = here + STUB / 2, there - STUB
        middle = (leave + arrive) / 2
        stroke += line(stroke[-1], (leave, start))
        stroke += [(middle, start), (middle, end), (arrive, end)]
    return (*stroke, *line(stroke[-1], (effect.left, rises[-1][1])))
