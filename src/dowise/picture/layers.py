"""Columns for a drawing: which variable stands in which column, and in what order from the top.

Every edge runs from a column to one further right (Sugiyama's scheme). An edge that skips columns
passes through a *bend* in each of them, so that from then on all edges join neighbouring columns
and a bend claims its place in the column as a variable does. This module only counts and compares;
`dowise.picture.layout` turns the columns into coordinates.

>>> from dowise.graph import CausalGraph
>>> layers = arrange(CausalGraph([("Z", "X"), ("X", "Y"), ("Z", "Y")]))
>>> layers.chains["Z", "Y"]      # positions of Z and Y among the variables, and one bend between
(2, 3, 1)
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import Edge

__all__ = ["Layers", "arrange"]

# Sweeps after which crossings have stopped falling on graphs of up to 60 variables, and how many
# points they may visit altogether: a dense graph, with its thousands of bends, gets fewer sweeps.
_SWEEPS, _LEAST_SWEEPS = 16, 2
_VISITS = 30_000


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
    for sweep in range(max(_LEAST_SWEEPS, min(_SWEEPS, _VISITS // max(len(left), 1)))):
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
