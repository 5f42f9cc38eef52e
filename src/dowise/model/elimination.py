"""In which order to sum variables out: greedy min-fill, with the cost known before any work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

__all__ = ["Elimination", "elimination"]


class Step(NamedTuple):
    """One variable is summed out of the product of all factors that have it."""

    variable: int
    scope: frozenset[int]
    """All variables of these factors."""
    factors: int


class Elimination(NamedTuple):
    """The steps in their order, and the scopes of what is left to be multiplied at the end."""

    steps: tuple[Step, ...]
    rest: tuple[frozenset[int], ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The variables in the order in which they go."""
        return tuple(step.variable for step in self.steps)

    def multiplications(self, sizes: Sequence[int]) -> float:
        """What it takes where variable v has sizes[v] values."""
        cost = sum(_cells(step.scope, sizes) * max(1, step.factors - 1) for step in self.steps)
        return cost + _cells(frozenset().union(*self.rest), sizes) * (len(self.rest) - 1)

    def cells(self, sizes: Sequence[int]) -> float:
        """The entries of all tables on the way, the last one included."""
        last = _cells(frozenset().union(*self.rest), sizes)
        return sum(_cells(step.scope, sizes) for step in self.steps) + last


def elimination(
    scopes: Iterable[frozenset[int]], eliminated: Iterable[int], sizes: Sequence[int]
) -> Elimination:
    """How to sum these variables out of the product of factors of these scopes.

    Next comes the variable whose neighbours lack the fewest edges among each other; then the one
    with the smallest table, then the lowest number. Variables not eliminated stay as axes.

    >>> found = elimination([frozenset({0, 1}), frozenset({1, 2})], [1], [2, 2, 2])
    >>> found.order, found.multiplications([2, 2, 2])
    ((1,), 8.0)
    """
    factors = list(scopes)
    neighbours: dict[int, set[int]] = {}
    for scope in factors:
        for v in scope:
            neighbours.setdefault(v, set()).update(scope - {v})
    left = set(eliminated)
    steps: list[Step] = []
    while left:
        v = min(left, key=lambda v: (_fill(v, neighbours), _table(v, neighbours, sizes), v))
        left.remove(v)
        bucket = [scope for scope in factors if v in scope]
        joined = frozenset().union(*bucket)
        steps.append(Step(v, joined, len(bucket)))
        factors = [scope for scope in factors if v not in scope] + [joined - {v}]
        around = neighbours.pop(v)
        for u in around:
            neighbours[u] |= around - {u}
            neighbours[u].discard(v)
    return Elimination(tuple(steps), tuple(factors))


def _cells(scope: Iterable[int], sizes: Sequence[int]) -> float:
    return prod((float(sizes[u]) for u in scope), start=1.0)


def _fill(v: int, neighbours: dict[int, set[int]]) -> int:
    return sum(b not in neighbours[a] for a, b in combinations(neighbours[v], 2))


def _table(v: int, neighbours: dict[int, set[int]], sizes: Sequence[int]) -> int:
    return sizes[v] * prod(sizes[u] for u in neighbours[v])
