"""What n more plays of an arm are worth, in closed form: the kernels of `commit-kg`.

docs/beyond.md derives it. In short, lane by lane, on the scale of `dowise.policies.commit_look`:

- the gap of arm b is η(μ_inc) − η(μ_b), and its posterior variance the sum over rows of w_r, with
  d = ∇μ_b/S(μ_b) − ∇μ_inc/S(μ_inc);
- n plays that visit row r with probability v each take n·v/(n_r + n·v) of w_r off: s²_b;
- knowing that much, changing over to b is worth S·s·ψ(gap/s), ψ(z) = φ(z) − zΦ(−z);
- a plan of n plays costs (1 + 0.7(n − 1))Δ: one that goes badly is dropped before its end.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dowise.compiling import kernel
from dowise.model.backward import pass_back
from dowise.policies.commit_look import best_of, ends, lanes_in, look_at

__all__ = ["Plan", "choose", "choose_in"]

_LATER = 0.7  # of its cost is what a play of a plan counts for, after the first
_FARTHEST = 8.0  # standard deviations, beyond which a challenger counts for nothing
_TINY = 1e-24  # a variance that is rounding


class Plan(NamedTuple):
    """The arm to play, and how many plays of it are worth most: 0 where it is the incumbent."""

    arm: int
    best: int
    """The incumbent: the arm with the best mean reward."""
    plays: float
    gain: float
    """What they bring, less what they cost."""
    cost: float
    """What one play is expected to cost."""


class _Challengers(NamedTuple):
    """Pairs of a lane and an arm that may overtake its incumbent."""

    lanes: Any
    gaps: Any
    slopes: Any
    caps: Any
    """No gain can be larger: (hi − μ_inc) and (μ_b − lo)."""
    shares: Any
    """w_r of every row: (pairs, blocks)."""
    most: Any
    """What knowing all of them would be worth."""


@njit
def _overtaking(gap, s):
    """s·ψ(gap/s): how far a normal variate of mean −gap and deviation s is expected above 0."""
    z = gap / s
    if z >= _FARTHEST:
        return 0.0
    density = 0.3989422804014327 * math.exp(-0.5 * z * z)
    return s * (density - z * 0.5 * math.erfc(z * 0.7071067811865476))


@njit
def _challengers(look, trace, worth):
    """All pairs of a lane and an arm that may overtake the lane's incumbent."""
    arms, width = look.means.shape
    first, blocks = len(trace.constants), len(trace.block_slots)
    low, high = ends(worth)
    every = np.ones(arms, dtype=np.bool_)
    lanes = np.empty(arms * width, dtype=np.int64)
    gaps, slopes, caps = np.empty(arms * width), np.empty(arms * width), np.empty(arms * width)
    shares, most = np.empty((arms * width, blocks)), np.empty(arms * width)
    count = 0
    for lane in range(width):
        best = best_of(look.means, lane, every, high - low)
        for b in range(arms):
            total, here, there = 0.0, 0.0, 0.0
            for r in range(blocks):
                share = 0.0
                for e in range(trace.block_slots[r], trace.block_slots[r] + trace.block_sizes[r]):
                    one, other = (
                        look.spreads[b, e - first, lane],
                        look.spreads[best, e - first, lane],
                    )
                    share += (one - other) * (one - other)
                    there += one * one
                    here += other * other
                shares[count, r] = share
                total += share
            gap = look.scores[best, lane] - look.scores[b, lane]
            if b == best or total <= _TINY or gap >= _FARTHEST * math.sqrt(total):
                continue
            lanes[count], gaps[count] = lane, gap
            # Where b is the unknown one it comes up to the incumbent, else that comes down to b.
            mixed = there * look.slopes[best, lane] + here * look.slopes[b, lane]
            slopes[count] = mixed / (there + here)
            caps[count] = min(look.means[b, lane] - low, high - look.means[best, lane])
            most[count] = min(slopes[count] * _overtaking(gap, math.sqrt(total)), caps[count])
            count += 1
    return _Challengers(
        lanes[:count], gaps[:count], slopes[:count], caps[:count], shares[:count], most[:count]
    )


@njit
def _visits(look, lanes, trace):
    """visits[block, here, arm]: how likely a play in the present context is to visit a row.

    `here` counts the lanes of the present context; places[lane] is that of a lane's twin.
    """
    places, width = np.empty(len(lanes.twins), dtype=np.int64), 0
    for lane in range(len(lanes.twins)):
        if lanes.twins[lane] == lane:
            places[lane] = width
            width += 1
    values, own = np.empty((trace.slots, width)), np.empty(width, dtype=np.int64)
    for lane in range(len(lanes.twins)):
        if lanes.twins[lane] == lane:
            own[places[lane]] = lane
            for slot in range(trace.slots):
                values[slot, places[lane]] = look.values[slot, lane]
    for lane in range(len(lanes.twins)):
        places[lane] = places[lanes.twins[lane]]
    adjoints, ones = np.zeros((trace.slots, width)), np.ones(trace.results.shape[1])
    visits = np.zeros((len(trace.block_slots), width, len(trace.results)))
    for a in range(len(trace.results)):
        pass_back(values, adjoints, ones, a, trace)
        for r in range(len(trace.block_slots)):
            for here in range(width):
                leader = lanes.leaders[own[here], r]
                visits[leader, here, a] += adjoints[trace.block_slots[r], here]
    return places, own, visits


@njit
def _rows_that_matter(shares):
    """The blocks in which some challenger has a share."""
    found, count = np.empty(shares.shape[1], dtype=np.int64), 0
    for r in range(shares.shape[1]):
        some = 0.0
        for j in range(len(shares)):
            some += shares[j, r]
        if some > 0:
            found[count] = r
            count += 1
    return found[:count]


class _Room(NamedTuple):
    values: Any
    tops: Any
    variances: Any


@njit
def _values(challengers, rows, places, learned, weights, room):
    """room.values[i]: what is known after plays of the i-th candidate is worth, a round.

    learned[row, here, candidate] is the part of w_r that they take off.
    """
    count = learned.shape[2]
    for i in range(count):
        room.values[i] = 0.0
        room.tops[i] = 0.0
    for j in range(len(challengers.gaps)):
        lane = challengers.lanes[j]
        place = places[lane]
        for i in range(count):
            room.variances[i] = 0.0
        for q in range(len(rows)):
            share = challengers.shares[j, rows[q]]
            if share > 0:
                for i in range(count):
                    room.variances[i] += share * learned[q, place, i]
        for i in range(count):
            if room.variances[i] > _TINY:
                gain = _overtaking(challengers.gaps[j], math.sqrt(room.variances[i]))
                gain = min(challengers.slopes[j] * gain, challengers.caps[j])
                room.tops[i] = max(room.tops[i], gain)
        if j + 1 == len(challengers.gaps) or challengers.lanes[j + 1] != lane:
            for i in range(count):
                room.values[i] += weights[lane] * room.tops[i]
                room.tops[i] = 0.0


@njit
def _present(look, lanes, may, worth):
    """What a play of each arm is expected to cost now, how likely this context is, and the best."""
    arms = len(look.means)
    means, here = np.zeros((arms, 1)), 0.0
    for lane in range(len(lanes.twins)):
        if lanes.twins[lane] == lane:
            here += lanes.weights[lane]
            for a in range(arms):
                means[a, 0] += lanes.weights[lane] * look.means[a, lane]
    for a in range(arms):
        means[a, 0] /= here
    low, high = ends(worth)
    best = best_of(means, 0, may, high - low)
    costs = np.empty(arms)
    for a in range(arms):
        costs[a] = means[best, 0] - means[a, 0] if may[a] else np.inf
    return costs, here, best


@njit
def _bound(challengers, weights):
    """What knowing everything would be worth: no plays are worth more."""
    bound, top = 0.0, 0.0
    for j in range(len(challengers.gaps)):
        top = max(top, challengers.most[j])
        lane = challengers.lanes[j]
        if j + 1 == len(challengers.gaps) or challengers.lanes[j + 1] != lane:
            bound += weights[lane] * top
            top = 0.0
    return bound


@njit
def _search(look, challengers, lanes, trace, present, rounds):
    """The arm and the number of plays, 1, 2, 4, …, that bring most beyond what they cost.

    Beyond what as many plays of the incumbent would teach, too. `present`: costs, the probability
    of this context, the incumbent, and a bound of what plays can be worth.
    """
    costs, here, best, bound = present
    rows = _rows_that_matter(challengers.shares)
    places, own, visits = _visits(look, lanes, trace)
    arms, width = len(costs), len(own)
    room = _Room(np.empty(arms), np.empty(arms), np.empty(arms))
    candidates = np.empty(arms, dtype=np.int64)
    plan, n = Plan(best, best, 0.0, 0.0, 0.0), 1.0
    while n / here < rounds:
        left, paid = rounds - n / here, 1.0 + _LATER * (n - 1.0)
        candidates[0], count = best, 1
        for a in range(arms):
            if a != best and left * bound - paid * costs[a] > plan.gain:
                candidates[count] = a
                count += 1
        if count > 1:
            learned = np.empty((len(rows), width, count))
            for q in range(len(rows)):
                for h in range(width):
                    total = look.totals[rows[q], own[h]]
                    for i in range(count):
                        times = n * visits[rows[q], h, candidates[i]]
                        learned[q, h, i] = times / (total + times)
            _values(challengers, rows, places, learned, lanes.weights, room)
            for i in range(1, count):
                cost = costs[candidates[i]]
                gain = left * (room.values[i] - room.values[0]) - paid * cost
                if gain > plan.gain:
                    plan = Plan(candidates[i], best, n, gain, cost)
        n *= 2.0
    return plan


@kernel()
def choose(known, lanes, trace, worth, may, rounds):
    """The arm to play, of those that may be, if so many rounds are still to come: a `Plan`."""
    look = look_at(known, lanes, trace, worth)
    costs, here, best = _present(look, lanes, may, worth)
    challengers = _challengers(look, trace, worth)
    bound, cheapest = _bound(challengers, lanes.weights), np.inf
    for a in range(len(costs)):
        if a != best:
            cheapest = min(cheapest, costs[a])
    if (rounds - 1.0 / here) * bound <= cheapest:
        return Plan(best, best, 0.0, 0.0, 0.0)
    return _search(look, challengers, lanes, trace, (costs, here, best, bound), rounds)


@kernel()
def choose_in(known, contexts, now, trace, worth, may, rounds):
    """The same in the context number `now`, each row being read by one block."""
    return choose(known, lanes_in(contexts, now), trace, worth, may, rounds)
