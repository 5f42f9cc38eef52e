"""The one order of variables in which all factors are written, whatever is set.

Causes come before effects and whole pools one after the other. Among the variables that are ready
the one goes first whose factor has the smallest scope: the variables of its c-component among those
already there, and their parents. That keeps tables small where there are hidden common causes.

>>> chain = Adjacency.of(4, directed=[(3, 2), (2, 0), (1, 0)], bidirected=[(0, 1)])
>>> factor_order(chain, [0b1000, 0b0111])
[3, 1, 2, 0]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dowise.graph.adjacency import Adjacency
from dowise.graph.bits import bits, closure

__all__ = ["factor_order", "predecessors", "tied_within", "with_parents"]


def factor_order(edges: Adjacency, pools: Iterable[int]) -> list[int]:
    """The variables of the pools, pool by pool; each pool has all parents in itself or before."""
    order: list[int] = []
    placed = 0
    for pool in pools:
        left = pool & ~placed
        while left:
            ready = [v for v in bits(left) if not edges.parents[v] & ~placed]
            v = min(ready, key=lambda v: (_scope(edges, v, placed).bit_count(), v))
            order.append(v)
            placed |= 1 << v
            left &= ~(1 << v)
    return order


def predecessors(order: Iterable[int], size: int) -> list[int]:
    """Of each of so many variables: itself and all that come before it."""
    before, placed = [0] * size, 0
    for v in order:
        placed |= 1 << v
        before[v] = placed
    return before


def tied_within(edges: Adjacency, variables: int) -> Adjacency:
    """The same edges, but hidden causes only of two of these variables."""
    siblings = (
        mask & variables if variables >> v & 1 else 0 for v, mask in enumerate(edges.siblings)
    )
    return replace(edges, siblings=tuple(siblings))


def with_parents(edges: Adjacency, variables: int) -> int:
    """A set and all parents of its members."""
    found = variables
    for v in bits(variables):
        found |= edges.parents[v]
    return found


def _scope(edges: Adjacency, v: int, placed: int) -> int:
    return with_parents(edges, closure(1 << v, edges.siblings, within=placed | 1 << v))
