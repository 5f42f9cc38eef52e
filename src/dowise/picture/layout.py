"""Where to draw a causal graph: causes on the left, effects on the right, nothing in the way.

A layout is plain numbers, measured in *em* (the height of the font), y growing downwards. It keeps
three promises by construction rather than by luck:

- boxes never overlap, because each column keeps its points a fixed distance apart;
- a directed edge never touches the box of another variable, because inside a column it runs level
  at a height of its own and it rises or falls only in the gap between columns, where no box is;
- it leaves a box on the right and enters on the left, level, at a place of its own.

Bidirected edges leave and enter at the top or the bottom; `dowise.picture.arcs` finds their way,
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

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import Edge, EdgeName
from dowise.picture.arcs import route
from dowise.picture.layers import Layers, arrange
from dowise.picture.shapes import STUB, Box, Point, Stroke, flatten, line

__all__ = ["Layout", "layout", "text_width"]

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
