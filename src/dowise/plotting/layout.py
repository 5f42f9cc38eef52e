"""Layered layout of a causal graph: causes on the left, effects on the right.

Coordinates are in *em* (the height of the font), and y grows downwards. By construction

- boxes never overlap, because each column keeps its points a minimal distance apart;
- a directed edge never touches the box of another variable, because inside a column it is level at
  a separate height, and rises or falls only in the gap between columns, where there is no box;
- a directed edge leaves a box on the right and enters on the left, level, at a separate point.

Bidirected edges leave and enter at the top or the bottom, and avoid all boxes. A dense graph (far
more than 25 variables with 14 bidirected edges) keeps the three guarantees but gets fewer sweeps,
so that more edges cross and its longest bidirected edges may run across boxes. The layout is
deterministic.

>>> from dowise.graph import CausalGraph
>>> placed = layout(CausalGraph([("X", "Y")]))
>>> placed.boxes["X"].right < placed.boxes["Y"].left
True
>>> placed.directed["X", "Y"][-1] == (placed.boxes["Y"].left, placed.boxes["Y"].y)
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

import numpy as np

from dowise._core.types import BoolArray, FloatArray
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import Edge, EdgeName

Point = tuple[float, float]
Stroke = tuple[Point, ...]

STUB = 0.7  # length of the straight piece at the end of an edge: room for an arrowhead


@dataclass(frozen=True, slots=True)
class Box:
    """Rectangle by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        """x of the left side."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """x of the right side."""
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        """y of the upper side."""
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        """y of the lower side."""
        return self.y + self.height / 2


def line(start: Point, end: Point) -> Stroke:
    """Return the three points that continue a stroke from `start` straight to `end`."""
    (a, b), (c, d) = start, end
    return ((2 * a + c) / 3, (2 * b + d) / 3), ((a + 2 * c) / 3, (b + 2 * d) / 3), end


def flatten(stroke: Stroke, steps: int = 16) -> list[Point]:
    """Return points along a chain of Bézier pieces, `steps` of them per curved piece."""
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


@dataclass(frozen=True, slots=True)
class Layout:
    """A box for every variable and a stroke for every edge.

    `extra` has strokes of edges that the graph lacks, by their texts. The first and last pieces of
    a stroke are straight and have room for an arrowhead.
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
        # A directed edge is level or an S, so it does not extend beyond its points.
        points += [point for stroke in self.directed.values() for point in stroke]
        for box in self.boxes.values():
            points += [(box.left, box.top), (box.right, box.bottom)]
        if not points:
            return 0.0, 0.0, 0.0, 0.0
        xs, ys = [x for x, _ in points], [y for _, y in points]
        return min(xs), min(ys), max(xs), max(ys)


def text_width(text: str) -> float:
    """Return a generous estimate of the width of a text in em, without asking a font."""
    return sum(map(_character_width, text))


def layout(graph: CausalGraph, last: str | None = None, extra: Sequence[EdgeName] = ()) -> Layout:
    """Place every variable and route every edge; `last` (the reward) goes to the far right.

    `extra` edges don't affect the boxes and are routed like bidirected ones; they may form a cycle.
    """
    layers = arrange(graph, last)
    ports = _ports(layers)
    sizes = _sizes(layers)
    heights = _heights(layers, ports, [_offsets(column, sizes, graph) for column in layers.columns])
    _straighten(layers, ports, heights)
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
    bidirected = graph.bidirected_edges
    arcs = route_bidirected(
        [*bidirected, *((edge.left, edge.right) for edge in extra)], boxes, directed, spans
    )
    added = dict(zip(map(str, extra), arcs[len(bidirected) :], strict=True))
    return Layout(boxes, directed, dict(zip(bidirected, arcs, strict=False)), added)


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


# -- columns ------------------------------------------------------------------------------------

# More sweeps do not reduce crossings in graphs of up to 60 variables. A dense graph, with thousands
# of bends, gets fewer: all sweeps together may visit a limited number of points.
_MAX_ORDER_SWEEPS, _MIN_ORDER_SWEEPS = 16, 2
_MAX_ORDER_VISITS = 30_000


@dataclass(frozen=True, slots=True)
class Layers:
    """Columns from left to right, each with its points from top to bottom.

    A point is a variable, by its position in the graph, or a bend of an edge if it is at least
    `variables`. `chains` has the points of each directed edge, including its ends. `left` and
    `right` are the neighbours of every point in the adjacent columns, from top to bottom.
    """

    variables: int
    columns: tuple[tuple[int, ...], ...]
    chains: dict[Edge, tuple[int, ...]]
    left: tuple[tuple[int, ...], ...]
    right: tuple[tuple[int, ...], ...]


def arrange(graph: CausalGraph, last: str | None = None) -> Layers:
    """Arrange variables in columns with short edges and few crossings.

    `last` goes to the far right if it has no children.
    """
    column_of = _assign_columns(graph, last)
    columns: list[list[int]] = [[] for _ in range(max(column_of.values(), default=-1) + 1)]
    for i, name in enumerate(graph.variables):
        columns[column_of[name]].append(i)

    position = {name: i for i, name in enumerate(graph.variables)}
    chains: dict[Edge, tuple[int, ...]] = {}
    points = len(graph.variables)
    for cause, effect in graph.directed_edges:
        between = range(column_of[cause] + 1, column_of[effect])
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
    columns = _reduce_crossings(columns, left, right)
    rank = _ranks(columns)
    return Layers(
        variables=len(graph.variables),
        columns=tuple(map(tuple, columns)),
        chains=chains,
        left=tuple(tuple(sorted(near, key=rank.__getitem__)) for near in left),
        right=tuple(tuple(sorted(near, key=rank.__getitem__)) for near in right),
    )


def _assign_columns(graph: CausalGraph, last: str | None) -> dict[str, int]:
    """Return the column of every variable: by longest path, then moved if edges get shorter."""
    order = graph.topological_order()
    linked = [name for name in order if graph.parents(name) or graph.children(name)]
    column_of: dict[str, int] = {}
    for name in linked:
        column_of[name] = max((column_of[parent] + 1 for parent in graph.parents(name)), default=0)
    columns = max(column_of.values(), default=-1) + 1
    pinned = last if last in column_of and last is not None and not graph.children(last) else None
    if pinned is not None:
        column_of[pinned] = columns - 1

    # A move to the right never lengthens edges and a move to the left shortens them, so the loop
    # ends. Its order is backwards, so that a cause follows an effect that has moved.
    moved = True
    while moved:
        moved = False
        for name in reversed(linked):
            parents, children = graph.parents(name), graph.children(name)
            if name == pinned:
                continue
            if len(children) >= len(parents):
                target = min(column_of[child] for child in children) - 1
            else:
                target = max(column_of[parent] for parent in parents) + 1
            moved |= target != column_of[name]
            column_of[name] = target

    # Variables without directed edges fill the emptiest columns, so that they form a block.
    free = [name for name in order if name not in column_of]
    counts = [0] * max(columns, math.isqrt(max(len(free) - 1, 0)) + 1)
    for column in column_of.values():
        counts[column] += 1
    for name in free:
        column_of[name] = len(counts) - 1 if name == last else counts.index(min(counts))
        counts[column_of[name]] += 1
    filled = [column for column, count in enumerate(counts) if count]
    return {name: filled.index(column) for name, column in column_of.items()}


def _reduce_crossings(
    columns: list[list[int]], left: list[list[int]], right: list[list[int]]
) -> list[list[int]]:
    """Return the order with the fewest crossings among sweeps in both directions."""
    best, fewest = columns, _crossings(columns, right)
    sweeps = min(_MAX_ORDER_SWEEPS, _MAX_ORDER_VISITS // max(len(left), 1))
    for sweep in range(max(_MIN_ORDER_SWEEPS, sweeps)):
        if not fewest:
            break
        columns = [list(column) for column in columns]
        near, order = (left, columns) if sweep % 2 == 0 else (right, columns[::-1])
        rank = _ranks(columns)
        for column in order:
            _sort_by_neighbours(column, near, rank)
            rank.update((v, i) for i, v in enumerate(column))
        _swap_neighbours(columns, left, right)
        crossings = _crossings(columns, right)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _sort_by_neighbours(column: list[int], near: list[list[int]], rank: dict[int, int]) -> None:
    """Order a column by the mean rank of neighbours; a point without neighbours stays."""
    slots = [i for i, v in enumerate(column) if near[v]]
    ordered = sorted(
        (column[i] for i in slots), key=lambda v: fmean(rank[neighbour] for neighbour in near[v])
    )
    for i, v in zip(slots, ordered, strict=True):
        column[i] = v


def _swap_neighbours(
    columns: list[list[int]], left: list[list[int]], right: list[list[int]]
) -> None:
    """Swap vertical neighbours as long as swaps remove crossings."""
    rank = _ranks(columns)
    # Swaps in a column can only remove crossings after a swap in it or in an adjacent one.
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
    """Swap neighbours in a column if that removes crossings; return True if any moved."""
    ends = [[sorted([rank[u] for u in near[v]]) for near in (left, right)] for v in column]
    moved = False
    for i in range(len(column) - 1):
        if _crossings_removed(ends[i], ends[i + 1]) > 0:
            column[i], column[i + 1] = column[i + 1], column[i]
            ends[i], ends[i + 1] = ends[i + 1], ends[i]
            rank[column[i]], rank[column[i + 1]] = i, i + 1
            moved = True
    return moved


def _crossings_removed(upper: list[list[int]], lower: list[list[int]]) -> int:
    """Return the number of crossings that swapping two points removes, by ranks of neighbours."""
    removed = 0
    for above, below in zip(upper, lower, strict=True):
        if len(above) == len(below) == 1:  # two bends, by far the most frequent case
            removed += (above[0] > below[0]) - (above[0] < below[0])
        else:
            removed += sum(bisect_left(below, end) + bisect_right(below, end) for end in above)
            removed -= len(above) * len(below)
    return removed


def _crossings(columns: list[list[int]], right: list[list[int]]) -> int:
    """Count the pairs of edges that cross: inversions between the ranks of their two ends."""
    rank = _ranks(columns)
    total = 0
    for column in columns:
        ends_above: list[int] = []
        for v in column:
            ends = sorted(rank[neighbour] for neighbour in right[v])
            total += sum(len(ends_above) - bisect_right(ends_above, end) for end in ends)
            for end in ends:
                insort(ends_above, end)
    return total


def _ranks(columns: list[list[int]]) -> dict[int, int]:
    return {v: i for column in columns for i, v in enumerate(column)}


# -- coordinates --------------------------------------------------------------------------------

_MIN_HEIGHT = 2.3
_PADDING = 2.0
_MIN_WIDTH = 3.4
_MIN_GAP, _MAX_GAP = 5.0, 12.0
_GAP_PER_RISE = 0.5  # a gap grows with its steepest edge, so that edges stay easy to follow
# Distance of the edges that arrive on the left of a box, with their heads, and that leave on its
# right. A box grows with their number, so that ports stay away from its corners.
_PORT_STEPS = 0.48, 0.36
_PORT_MARGIN = 1.0
# Free height between box and box, box and bend, bend and bend; siblings need room for an arc.
_BETWEEN = {2: 2.2, 1: 1.25, 0: 1.0}
_BETWEEN_SIBLINGS = 3.4
# In a dense graph all sweeps together may visit a limited number of points.
_MAX_HEIGHT_SWEEPS, _MIN_HEIGHT_SWEEPS = 24, 6
_MAX_HEIGHT_VISITS = 60_000
# Weight of the side that a sweep comes from: if the pulls from left and right are equal, an edge is
# level over many columns instead of a staircase.
_LEAN = 1.05
_NEARLY_LEVEL = 0.6  # a smaller rise looks like an error; a single port can move this far


def _ports(layers: Layers) -> dict[tuple[int, int], float]:
    """Return the distance of each port, where the edge from u to v is attached, from u's middle."""
    ports: dict[tuple[int, int], float] = {}
    for near, step in zip((layers.left, layers.right), _PORT_STEPS, strict=True):
        for u, ends in enumerate(near):
            for i, v in enumerate(ends):
                ports[u, v] = step * (i - (len(ends) - 1) / 2)
    return ports


def _sizes(layers: Layers) -> list[float]:
    """Return the height of every point: a box has room for all its ports, a bend needs none."""
    sizes = [0.0] * len(layers.left)
    for v in range(layers.variables):
        edges = len(layers.left[v]), len(layers.right[v])
        rooms = (step * (n - 1) + _PORT_MARGIN for step, n in zip(_PORT_STEPS, edges, strict=True))
        sizes[v] = max(_MIN_HEIGHT, *rooms)
    return sizes


def _heights(
    layers: Layers, ports: dict[tuple[int, int], float], offsets: list[list[float]]
) -> list[float]:
    """Return the y of every point, so that edges are as level as the distances in a column allow.

    Each column in turn is placed optimally given its neighbours: first by means, which distribute a
    shift over the whole drawing, then by medians, which make most edges exactly level.
    """
    heights = [0.0] * len(layers.left)
    for column, shifts in zip(layers.columns, offsets, strict=True):
        for v, shift in zip(column, shifts, strict=True):
            heights[v] = shift - shifts[-1] / 2
    work = list(zip(layers.columns, offsets, strict=True))
    sweeps = min(_MAX_HEIGHT_SWEEPS, _MAX_HEIGHT_VISITS // max(len(heights), 1))
    sweeps = max(_MIN_HEIGHT_SWEEPS, sweeps)
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
            levels = _isotonic(pulls, median=sweep >= sweeps // 2)
            for v, shift, level in zip(column, shifts, levels, strict=True):
                heights[v] = level + shift
    return heights


def _straighten(layers: Layers, ports: dict[tuple[int, int], float], heights: list[float]) -> None:
    """Move ports so that edges which are almost level become level; only single ports move."""
    for u, ends in enumerate(layers.right):
        for v in ends:
            rise = heights[v] + ports[v, u] - heights[u] - ports[u, v]
            if 0 < abs(rise) <= _NEARLY_LEVEL:
                if u < layers.variables and len(ends) == 1:
                    ports[u, v] += rise
                elif v < layers.variables and len(layers.left[v]) == 1:
                    ports[v, u] -= rise


def _offsets(column: tuple[int, ...], sizes: list[float], graph: CausalGraph) -> list[float]:
    """Return the least distance of each point below the first point of its column."""
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
    """Return the weight of a level edge: 1, 2 or 8 as in Gansner et al. (1993), section 4."""
    return {2: 1.0, 1: 2.0, 0: 8.0}[(u < variables) + (v < variables)]


def _isotonic(pulls: list[list[tuple[float, float]]], median: bool) -> list[float]:
    """Return the rising levels closest to (target, weight) pulls: isotonic regression.

    Levels that would fall are pooled, and then move as a whole.
    """
    settle = _weighted_median if median else _weighted_mean
    pools: list[tuple[float, list[tuple[float, float]], int]] = []
    for pull in pulls:
        level, pooled, size = *settle(pull), 1
        while pools and pools[-1][0] > level:
            _, previous, previous_size = pools.pop()
            level, pooled = settle(previous + pooled)
            size += previous_size
        pools.append((level, pooled, size))
    return [level for level, _, size in pools for _ in range(size)]


def _weighted_mean(
    pulls: list[tuple[float, float]],
) -> tuple[float, list[tuple[float, float]]]:
    """Return the mean, and a single pull that is equivalent to all of them."""
    total = sum([weight for _, weight in pulls])
    mean = sum([target * weight for target, weight in pulls]) / total
    return mean, [(mean, total)]


def _weighted_median(
    pulls: list[tuple[float, float]],
) -> tuple[float, list[tuple[float, float]]]:
    """Return the middle of all points where the weights on either side balance, and the pulls."""
    pulls = sorted(pulls)
    running = list(accumulate([weight for _, weight in pulls]))
    half = running[-1] / 2
    low = bisect_left(running, half - 1e-9)
    high = bisect_right(running, half + 1e-9)
    return (pulls[low][0] + pulls[high][0]) / 2, pulls


def _spans(layers: Layers, heights: list[float], widths: list[float]) -> list[tuple[float, float]]:
    """Return the left and right end of every column."""
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
    """Return a stroke that is level in each column and an S in each gap."""
    stroke: list[Point] = [(cause.right, rises[0][0])]
    for (_, right), (left, _), (start, end) in zip(spans, spans[1:], rises, strict=False):
        leave, arrive = right + STUB / 2, left - STUB
        middle = (leave + arrive) / 2
        stroke += line(stroke[-1], (leave, start))
        stroke += [(middle, start), (middle, end), (arrive, end)]
    return (*stroke, *line(stroke[-1], (effect.left, rises[-1][1])))


# -- bidirected edges ---------------------------------------------------------------------------

_Sides = tuple[int, int]  # of both ends of an edge: -1 is the top of a box, 1 its bottom
_Ends = Mapping[_Sides, tuple[Point, Point]]
_Route = tuple[float, Stroke, _Sides, list[Point]]  # cost, stroke, sides, points along the stroke

_CLEARANCE = 0.4  # least distance of an arc to the boxes of other variables
_BOWS = (2.0, 3.0, 4.5, 6.5, 9.0, 12.0, 16.0, 21.0)  # distances of the handles of an arc
_CROSSING_COST, _DETOUR_COST = 5.0, 14.0  # cost of a crossing and of corners, in em of length
_COARSE_STEPS = 3  # per Bézier piece, to count crossings
# Distances from the middle of a box at which arcs are attached at its top or bottom. Shorter arcs
# come first, so that they are inside the longer ones.
_SLOTS = (1.2, 0.6, 0.0)
_DETOUR_DISTANCE, _CORNER_RADIUS = 1.0, 1.4  # of a detour from its boxes, and of its corners
# Limit for the work, in comparisons of straight pieces, after which the first clear arc is used
# (about a second), and the fixed work of a route.
_MAX_WORK, _WORK_PER_ROUTE = 24_000_000, 2_000


def route_bidirected(
    edges: Sequence[Edge],
    boxes: Mapping[str, Box],
    directed: Mapping[Edge, Stroke],
    spans: Sequence[tuple[float, float]],
) -> list[Stroke]:
    """Return a stroke for every edge; `spans` are the left and right ends of the columns.

    Short edges come first, so that they are inside the longer ones. A pair may occur repeatedly.
    """
    if not edges:
        return []
    strokes = _StrokeSet(directed.values())
    sides = np.array([(box.left, box.top, box.right, box.bottom) for box in boxes.values()])
    rims = float(sides[:, 1].min()) - 2.0, float(sides[:, 3].max()) + 2.0
    # Number of arcs attached to the top or bottom of a box, by direction.
    used: Counter[tuple[str, int, bool]] = Counter()
    routed: dict[int, Stroke] = {}
    for i in sorted(range(len(edges)), key=lambda i: (_distance(edges[i], boxes), edges[i], i)):
        edge = edges[i]
        left, right = sorted(edge, key=lambda name: (boxes[name].x, boxes[name].y))
        a, b = boxes[left], boxes[right]
        margins = [-0.05 if name in edge else _CLEARANCE for name in boxes]
        walls = sides + np.outer(margins, (-1.0, -1.0, 1.0, 1.0))
        starts = {k: _slot(a, k, used[left, k, a.x < b.x], a.x < b.x) for k in (-1, 1)}
        stops = {k: _slot(b, k, used[right, k, False], False) for k in (-1, 1)}
        ends = {(j, k): (starts[j], stops[k]) for j, k in product((-1, 1), (-1, 1))}
        if strokes.work < _MAX_WORK:
            routes = _routes(ends, spans, rims, len(routed))
            _, stroke, chosen, _ = _cheapest(routes, walls, strokes)
            strokes.add(stroke)
        else:
            stroke, chosen = _first_clear(ends, walls, stacked=a.x == b.x)
        routed[i] = stroke if edge[0] == left else stroke[::-1]
        used[left, chosen[0], a.x < b.x] += 1
        used[right, chosen[1], False] += 1
    return [routed[i] for i in range(len(edges))]


class _StrokeSet:
    """Straight pieces of strokes, and the work spent on comparing routes with them."""

    def __init__(self, strokes: Iterable[Stroke]) -> None:
        self.pieces: FloatArray = np.empty((0, 2, 2))
        self.work = 0
        self.add(*strokes)

    def add(self, *strokes: Stroke) -> None:
        pieces = [piece for stroke in strokes for piece in pairwise(flatten(stroke, _COARSE_STEPS))]
        self.pieces = np.concatenate([self.pieces, np.reshape(pieces, (-1, 2, 2))])

    def crossings(self, stroke: Stroke) -> int:
        """Count the crossings of a stroke with those of the set."""
        points = np.array(flatten(stroke, _COARSE_STEPS))
        # Most pieces are far away and need no arithmetic.
        (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
        (cx, cy), (dx, dy) = self.pieces.T.swapaxes(0, 1)
        near = (np.maximum(cx, dx) >= left) & (np.minimum(cx, dx) <= right)
        near &= (np.maximum(cy, dy) >= top) & (np.minimum(cy, dy) <= bottom)
        c, d = self.pieces[near].swapaxes(0, 1)
        a, b = points[:-1, None], points[1:, None]
        self.work += len(self.pieces) + len(a) * len(c)
        apart = _left_of(a, b, c) != _left_of(a, b, d)
        return int(np.count_nonzero(apart & (_left_of(c, d, a) != _left_of(c, d, b))))


def _left_of(p: FloatArray, q: FloatArray, r: FloatArray) -> BoolArray:
    """Return True where r is to the left of the line from p to q."""
    (px, py), (qx, qy), (rx, ry) = (np.moveaxis(point, -1, 0) for point in (p, q, r))
    left: BoolArray = (qx - px) * (ry - py) > (qy - py) * (rx - px)
    return left


def _routes(
    ends: _Ends,
    spans: Sequence[tuple[float, float]],
    rims: tuple[float, float],
    number: int,
) -> list[_Route]:
    """Return all candidate routes, with their length as the cost; a detour costs more."""
    routes: list[_Route] = []
    for sides, (start, end) in ends.items():
        strokes = [(stroke, 0.0) for stroke in _arcs(start, end, sides)]
        detours = _detours(start, end, sides, spans, rims, number)
        for stroke, cost in strokes + [(stroke, _DETOUR_COST) for stroke in detours]:
            points = flatten(stroke)
            routes.append((_length(points) + cost, stroke, sides, points))
    return routes


def _cheapest(routes: list[_Route], walls: FloatArray, strokes: _StrokeSet) -> _Route:
    """Return the cheapest route that hits no box, by length and crossings."""
    strokes.work += _WORK_PER_ROUTE * len(routes)
    best, cost = routes[0], inf
    for route in sorted(routes):
        length, stroke, _, points = route
        if length >= cost:
            break
        if not _hits(points, walls):
            price = length + _CROSSING_COST * strokes.crossings(stroke)
            if price < cost:
                best, cost = route, price
    return best


def _first_clear(ends: _Ends, walls: FloatArray, stacked: bool) -> tuple[Stroke, _Sides]:
    """Return the first of a few arcs that hits no box, or the first of all."""
    order = [(1, -1)] if stacked else [(-1, -1), (1, 1)]
    arcs = [(arc, sides) for sides in order for arc in _arcs(*ends[sides], sides, _BOWS[1::2])]
    return next((arc for arc in arcs if not _hits(flatten(arc[0], 8), walls)), arcs[0])


def _distance(edge: Edge, boxes: Mapping[str, Box]) -> float:
    a, b = boxes[edge[0]], boxes[edge[1]]
    return dist((a.x, a.y), (b.x, b.y))


def _slot(box: Box, side: int, used: int, rightwards: bool) -> Point:
    """Return the next free point on the top (-1) or bottom (1) of a box."""
    shift = _SLOTS[used % len(_SLOTS)]
    return box.x + (shift if rightwards else -shift), box.top if side < 0 else box.bottom


def _arcs(
    start: Point, end: Point, sides: _Sides, bows: Sequence[float] = _BOWS
) -> Iterator[Stroke]:
    """Yield arcs of several heights."""
    lean = 0.2 * (end[0] - start[0])
    drop = end[1] - start[1]
    # Between facing sides a handle must not extend beyond the other end.
    facing = sides[0] != sides[1] and drop * sides[0] > 0
    for bow in (abs(drop) / 2,) if facing else bows:
        heights = [start[1] + sides[0] * bow, end[1] + sides[1] * bow]
        if sides[0] == sides[1]:
            # Both handles have one height, or the arc would cross the box that is further away.
            heights = [min(heights) if sides[0] < 0 else max(heights)] * 2
        yield _arc(start, (start[0] + lean, heights[0]), (end[0] - lean, heights[1]), end)


def _arc(start: Point, start_handle: Point, end_handle: Point, end: Point) -> Stroke:
    """Return a Bézier piece between straight ends in the directions of its handles."""
    first, final = _point_towards(start, start_handle), _point_towards(end, end_handle)
    return (start, *line(start, first), start_handle, end_handle, final, *line(final, end))


def _point_towards(start: Point, towards: Point, length: float = STUB) -> Point:
    """Return the point at distance `length` from `start`."""
    part = length / (dist(start, towards) or 1.0)
    return start[0] + part * (towards[0] - start[0]), start[1] + part * (towards[1] - start[1])


def _detours(
    start: Point,
    end: Point,
    sides: _Sides,
    spans: Sequence[tuple[float, float]],
    rims: tuple[float, float],
    number: int,
) -> Iterator[Stroke]:
    """Yield routes through the gaps between columns and around the graph.

    The number of routes so far determines a shift, which separates routes in one gap.
    """
    shift = 0.5 * (number % 5 - 2)
    gaps = [spans[0][0] - 3.0]
    gaps += [(left[1] + right[0]) / 2 for left, right in pairwise(spans)]
    gaps += [spans[-1][1] + 3.0]
    first, final = (
        (start[0], start[1] + sides[0] * _DETOUR_DISTANCE),
        (end[0], end[1] + sides[1] * _DETOUR_DISTANCE),
    )
    for start_gap, end_gap in product(_adjacent_gaps(start, gaps), _adjacent_gaps(end, gaps)):
        out, back = (start_gap + shift, first[1]), (end_gap + shift, final[1])
        if start_gap == end_gap:
            yield _rounded_polyline([start, first, out, back, final, end])
            continue
        for rim in rims:
            over = [(out[0], rim + shift), (back[0], rim + shift)]
            yield _rounded_polyline([start, first, out, *over, back, final, end])


def _adjacent_gaps(point: Point, gaps: Sequence[float]) -> tuple[float, float]:
    """Return the gaps to the left and right of a column."""
    i = bisect(gaps, point[0])
    return gaps[i - 1], gaps[i]


def _rounded_polyline(corners: Sequence[Point]) -> Stroke:
    """Return a stroke along a polyline with rounded corners and straight ends."""
    stroke = [corners[0]]
    ends = corners[0], corners[-1]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        rooms = (
            dist(corner, end) - STUB if end in ends else dist(corner, end) / 2
            for end in (before, after)
        )
        radius = min(_CORNER_RADIUS, *rooms)
        enter, leave = _point_towards(corner, before, radius), _point_towards(corner, after, radius)
        stroke += [*line(stroke[-1], enter), corner, corner, leave]
    return (*stroke, *line(stroke[-1], corners[-1]))


def _length(points: Sequence[Point]) -> float:
    return sum(dist(a, b) for a, b in pairwise(points))


def _hits(points: Sequence[Point], walls: FloatArray) -> bool:
    """Return True if a polyline enters one of the rectangles (left, top, right, bottom)."""
    line = np.array(points)
    low, high = line.min(axis=0), line.max(axis=0)
    # Most boxes are far away and need no arithmetic.
    walls = walls[(walls[:, :2] < high).all(axis=1) & (low < walls[:, 2:]).all(axis=1)]
    if not len(walls):
        return False
    start, end = line[:-1, None], line[1:, None]
    near, far = walls[:, :2], walls[:, 2:]
    beside = (np.maximum(start, end) <= near) | (np.minimum(start, end) >= far)
    # Part of each piece between left and right, and between top and bottom.
    step = np.where(start == end, 1e-200, end - start)
    limits = (near - start) / step, (far - start) / step
    enter, leave = np.minimum(*limits).max(axis=2), np.maximum(*limits).min(axis=2)
    inside = np.maximum(enter, 0.0) < np.minimum(leave, 1.0)
    return bool((inside & ~beside.any(axis=2)).any())
