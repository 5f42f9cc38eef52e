"""In which order to sum variables out: greedy min-fill, with the cost known before any work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod

__all__ = ["elimination_order"]


def elimination_order(
    scopes: Iterable[frozenset[int]], eliminated: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[int, ...], float]:
    """An order for these variables, and the multiplications it takes on factors of these scopes.

    Next comes the variable whose neighbours lack the fewest edges among each other; then the one
    with the smallest table, then the lowest number. Variables not eliminated stay as axes.

    >>> elimination_order([frozenset({0, 1}), frozenset({1, 2})], [1], [2, 2, 2])
    ((1,), 8.0)
    """
    factors = list(scopes)
    neighbours: dict[int, set[int]] = {}
    for scope in factors:
        for v in scope:
            neighbours.setdefault(v, set()).update(scope - {v})
    left = set(eliminated)
    order: list[int] = []
    cost = 0.0
    while left:
        v = min(left, key=lambda v: (_fill(v, neighbours), _cells(v, neighbours, sizes), v))
        left.remove(v)
        order.append(v)
        bucket = [scope for scope in factors if v in scope]
        joined = frozenset().union(*bucket)
        cost += prod(float(sizes[u]) for u in joined) * max(1, len(bucket) - 1)
        factors = [scope for scope in factors if v not in scope] + [joined - {v}]
        around = neighbours.pop(v)
        for u in around:
            neighbours[u] |= around - {u}
            neighbours[u].discard(v)
    rest = frozenset().union(*factors)
    cost += prod(float(sizes[u]) for u in rest) * (len(factors) - 1)
    return tuple(order), cost


def _fill(v: int, neighbours: dict[int, set[int]]) -> int:
    return sum(b not in neighbours[a] for a, b in combinations(neighbours[v], 2))


def _cells(v: int, neighbours: dict[int, set[int]], sizes: Sequence[int]) -> int:
    return sizes[v] * prod(sizes[u] for u in neighbours[v])
