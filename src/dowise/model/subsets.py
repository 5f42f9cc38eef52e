"""The likeliest subsets of things that are there independently, each with a probability of its own.

>>> [(sorted(s), round(p, 3)) for s, p in likeliest_subsets({"a": 0.9, "b": 0.5}, 4)]
[(['a'], 0.45), (['a', 'b'], 0.45), ([], 0.05), (['b'], 0.05)]
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from math import log, prod
from typing import TypeVar

import numpy as np

__all__ = ["fitted", "likeliest_subsets"]

Thing = TypeVar("Thing")
_EVEN = 1e-9  # log odds below which both ways are alike
_LEAST = 1.0
_SWEEPS = 1000


def likeliest_subsets(
    probabilities: Mapping[Thing, float], most: int
) -> list[tuple[frozenset[Thing], float]]:
    """At most so many subsets, the likeliest by and large, each with its probability.

    Every subset differs from the likeliest one by some turned things. They come in the order of
    what the turned things cost: each its log odds, but 1 at least, so that a few things turned come
    before many. A subset whose dearest turned thing is the i-th leads to those in which the
    (i+1)-th is turned too, or instead of it. Where things are as likely as not a subset comes
    together with the one that has all of these the other way round, which is as likely.
    """
    odds = {x: log(p) - log(1 - p) for x, p in probabilities.items()}
    even = frozenset(x for x in odds if abs(odds[x]) < _EVEN)
    usual = frozenset(x for x in odds if odds[x] > 0 and x not in even)
    things = sorted(odds, key=lambda x: abs(odds[x]))
    costs = [max(abs(odds[x]), _LEAST) for x in things]
    subsets: dict[frozenset[Thing], float] = {}
    queue: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    while queue and len(subsets) < most:
        cost, turned = heapq.heappop(queue)
        subset = usual ^ frozenset(things[i] for i in turned)
        for found in (subset, subset ^ even):
            chances = (p if x in found else 1 - p for x, p in probabilities.items())
            subsets[found] = prod(chances)
        last = turned[-1] if turned else -1
        if last + 1 < len(things):
            more = round(cost + costs[last + 1], 9)
            heapq.heappush(queue, (more, (*turned, last + 1)))
            if turned:
                heapq.heappush(queue, (round(more - costs[last], 9), (*turned[:-1], last + 1)))
    return list(subsets.items())[:most]


def fitted(
    subsets: Sequence[tuple[frozenset[Thing], float]], probabilities: Mapping[Thing, float]
) -> list[float]:
    """Weights of some of the subsets such that every thing is there as likely as it should be.

    By iterative proportional fitting: of all weights with these margins they are the closest to the
    subsets' own probabilities (Csiszár 1975). Of all subsets it is these probabilities.
    """
    weights = np.array([p for _, p in subsets], dtype=np.float64)
    weights /= weights.sum()
    if len(subsets) == 2 ** len(probabilities):
        return [float(w) for w in weights]
    there = {x: np.array([x in subset for subset, _ in subsets]) for x in probabilities}
    open_things = [x for x, held in there.items() if held.any() and not held.all()]
    for _ in range(_SWEEPS):
        off = 0.0
        for x in open_things:
            share = float(weights[there[x]].sum())
            off = max(off, abs(share - probabilities[x]))
            weights = np.where(
                there[x],
                weights * (probabilities[x] / share),
                weights * ((1 - probabilities[x]) / (1 - share)),
            )
        if off < 1e-13:
            break
    return [float(w) for w in weights / weights.sum()]
