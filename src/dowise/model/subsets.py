"""The likeliest subsets of things that are there independently, each with a probability of its own.

>>> [(sorted(s), round(p, 3)) for s, p in likeliest_subsets({"a": 0.9, "b": 0.5}, 3)]
[(['a', 'b'], 0.45), (['a'], 0.45), ([], 0.05)]
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from math import log, prod
from typing import TypeVar

__all__ = ["likeliest_subsets"]

Thing = TypeVar("Thing")


def likeliest_subsets(
    probabilities: Mapping[Thing, float], most: int
) -> list[tuple[frozenset[Thing], float]]:
    """At most so many subsets, from the likeliest on, each with its probability.

    Every subset differs from the likeliest one by some turned things, and each turned thing costs
    its log odds. Subsets come in the order of what they cost: a subset whose dearest turned thing
    is the i-th leads to those in which the (i+1)-th is turned too, or instead of it.
    """
    things = sorted(probabilities, key=lambda x: abs(_log_odds(probabilities[x])))
    costs = [abs(_log_odds(probabilities[x])) for x in things]
    usual = frozenset(x for x in things if probabilities[x] >= 0.5)

    def found(turned: tuple[int, ...]) -> tuple[frozenset[Thing], float]:
        subset = usual ^ frozenset(things[i] for i in turned)
        chances = (p if x in subset else 1 - p for x, p in probabilities.items())
        return subset, prod(chances)

    subsets = [found(())]
    queue: list[tuple[float, tuple[int, ...]]] = [(costs[0], (0,))] if things else []
    while queue and len(subsets) < most:
        cost, turned = heapq.heappop(queue)
        subsets.append(found(turned))
        last = turned[-1]
        if last + 1 < len(things):
            heapq.heappush(queue, (cost + costs[last + 1], (*turned, last + 1)))
            instead = cost + costs[last + 1] - costs[last]
            heapq.heappush(queue, (instead, (*turned[:-1], last + 1)))
    return subsets


def _log_odds(p: float) -> float:
    return log(p) - log(1 - p)
