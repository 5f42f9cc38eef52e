"""All arms at the posterior means, lane by lane: rewards, and how far they hang on each row.

A lane is a context, with a set of edges where edges are doubtful. The scale is that of
η(μ) = log((μ − lo)/(hi − μ)), on which a reward has no ends; S(μ) = dμ/dη. The posterior variance
of a row's part in η is that of a linear function of the logarithms of gamma variates:
w_r = Σ_x ψ′(α_x) p_x² (d_x − d̄)², d = ∇μ/S(μ), d̄ = Σ_x p_x d_x, ψ′ the trigamma function.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dowise.model.backward import fill_means, forward, pass_back

__all__ = [
    "Contexts", "Known", "Lanes", "Look", "Worth", "best_of", "ends", "lanes_in",
    "look_at", "trigamma",
]  # fmt: skip

_EDGE = 1e-9  # of the span: how near a mean may come to an end of the scale
_TIE = 1e-12  # of the span: means as near as this are the same


class Known(NamedTuple):
    """The Dirichlet parameters, entry by entry."""

    prior: Any
    counts: Any


class Lanes(NamedTuple):
    """Contexts, and sets of edges, side by side."""

    rows: Any
    """rows[lane, block]: the entry where the row of a block of inputs starts."""
    leaders: Any
    """leaders[lane, block]: the first block that reads the same row."""
    weights: Any
    """How likely each lane is; they sum to 1."""
    twins: Any
    """The lane of the present context with the same edges."""


class Contexts(NamedTuple):
    """Contexts that may occur, in the order of their codes; a lane is made of each that counts."""

    rows: Any
    """rows[context, block], as in `Lanes`."""
    visits: Any
    """How often each was seen."""
    every: bool
    """Whether all of them count, or those that were seen."""
    most: int
    """So many count at most, those that were seen most often, and the present one."""


class Worth(NamedTuple):
    """What values of the reward are worth and arms cost, on the scale from 0 to 1."""

    values: Any
    costs: Any


class Look(NamedTuple):
    """All arms at the posterior means."""

    values: Any
    """Of every slot of the trace: (slots, lanes)."""
    totals: Any
    """The sum of each row's parameters: (blocks, lanes)."""
    means: Any
    """Net of cost: (arms, lanes)."""
    slopes: Any
    """S(μ): (arms, lanes)."""
    scores: Any
    """η(μ): (arms, lanes)."""
    spreads: Any
    """√ψ′(α)·p·(∂η/∂θ − its mean over the row): (arms, inputs, lanes).

    The square of a difference of two, summed over a row, is w_r. 0 where the present context can't
    teach.
    """


@njit
def trigamma(x):
    """ψ′(x) for x > 0: recurrence up to 8, then the asymptotic series, to about 1e-11."""
    total = 0.0
    while x < 8.0:
        total += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = 1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0))
    return total + 1.0 / x + 0.5 * y + y / x * series


@njit
def look_at(known, lanes, trace, worth):
    """Means, slopes and gradients of all arms in all lanes."""
    arms, width = len(trace.results), len(lanes.rows)
    values, adjoints = np.empty((trace.slots, width)), np.zeros((trace.slots, width))
    totals = np.empty((len(trace.block_slots), width))
    fill_means(values, totals, known.prior, known.counts, lanes.rows, trace)
    forward(values, trace)
    first = len(trace.constants)
    means, slopes = np.empty((arms, width)), np.empty((arms, width))
    scores, spreads = np.empty((arms, width)), np.empty((arms, trace.first - first, width))
    low, high = ends(worth)
    for a in range(arms):
        pass_back(values, adjoints, worth.values, a, trace)
        for lane in range(width):
            mean = -worth.costs[a]
            for y in range(len(worth.values)):
                mean += worth.values[y] * values[trace.results[a, y], lane]
            means[a, lane] = mean
            above = max(mean - low, _EDGE * (high - low))
            below = max(high - mean, _EDGE * (high - low))
            slopes[a, lane] = above * below / (high - low)
            scores[a, lane] = math.log(above / below)
        for e in range(trace.first - first):
            for lane in range(width):
                spreads[a, e, lane] = adjoints[first + e, lane] / slopes[a, lane]
    _gather(spreads, lanes.leaders, trace)
    look = Look(values, totals, means, slopes, scores, spreads)
    _standardise(look, known, lanes, trace)
    return look


@njit
def ends(worth):
    """The least and the most that a reward net of cost can be."""
    return -worth.costs.max(), 1.0 - worth.costs.min()


@njit
def _gather(table, leaders, trace):
    """Where several blocks read one row, add what they have up at the first of them."""
    first = len(trace.constants)
    for r in range(len(trace.block_slots)):
        for lane in range(len(leaders)):
            leader = leaders[lane, r]
            if leader == r:
                continue
            slot, target = trace.block_slots[r] - first, trace.block_slots[leader] - first
            for a in range(len(table)):
                for k in range(trace.block_sizes[r]):
                    table[a, target + k, lane] += table[a, slot + k, lane]
                    table[a, slot + k, lane] = 0.0


@njit
def _standardise(look, known, lanes, trace):
    """Turn gradients into spreads: centred row by row first, never a difference of squares."""
    first = len(trace.constants)
    for r in range(len(trace.block_slots)):
        slot, size = trace.block_slots[r] - first, trace.block_sizes[r]
        for lane in range(len(lanes.rows)):
            entry = lanes.rows[lane, r]
            taught = lanes.leaders[lane, r] == r and entry == lanes.rows[lanes.twins[lane], r]
            for a in range(len(look.spreads)):
                mean = 0.0
                for k in range(size):
                    mean += look.values[first + slot + k, lane] * look.spreads[a, slot + k, lane]
                for k in range(size):
                    look.spreads[a, slot + k, lane] -= mean
            for k in range(size):
                alpha = known.prior[entry + k] + known.counts[entry + k]
                share = look.values[first + slot + k, lane]
                scale = math.sqrt(trigamma(alpha)) * share if taught else 0.0
                for a in range(len(look.spreads)):
                    look.spreads[a, slot + k, lane] *= scale


@njit
def best_of(means, lane, may, span):
    """The first arm, of those that may be played, whose mean is the largest but for rounding."""
    top = -np.inf
    for a in range(len(means)):
        if may[a] and means[a, lane] > top:
            top = means[a, lane]
    for a in range(len(means)):
        if may[a] and means[a, lane] >= top - _TIE * span:
            return a
    return 0


@njit
def lanes_in(contexts, now):
    """A lane for each context that counts, each as likely as one visit more than it had."""
    total = len(contexts.visits)
    counts, seen = np.zeros(total, dtype=np.bool_), 0
    for c in range(total):
        counts[c] = contexts.every or contexts.visits[c] > 0
        seen += counts[c]
    if seen > contexts.most:
        often = np.argsort(-contexts.visits, kind="mergesort")
        for q in range(contexts.most, total):
            counts[often[q]] = False
        seen = contexts.most
    seen += not counts[now]
    counts[now] = True
    blocks = contexts.rows.shape[1]
    rows, leaders = np.empty((seen, blocks), np.int64), np.empty((seen, blocks), np.int64)
    weights, lane, here, times = np.empty(seen), 0, 0, 0.0
    for c in range(total):
        if counts[c]:
            for r in range(blocks):
                rows[lane, r], leaders[lane, r] = contexts.rows[c, r], r
            weights[lane] = 1.0 + contexts.visits[c]
            times += weights[lane]
            here = lane if c == now else here
            lane += 1
    for lane in range(seen):
        weights[lane] /= times
    return Lanes(rows, leaders, weights, np.full(seen, here))
