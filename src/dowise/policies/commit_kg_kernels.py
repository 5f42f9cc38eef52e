"""Value of n more plays of an arm in closed form: the kernels of `commit-kg`.

docs/beyond.md derives it. A lane is a context together with a set of edges. Lane by lane, with
η(μ) = log((μ − lo)/(hi − μ)) and its slope 1/S(μ):

- the gap of arm b is η(μ_inc) − η(μ_b), and its posterior variance the sum over rows of w_r, with
  d = ∇μ_b/S(μ_b) − ∇μ_inc/S(μ_inc);
- n plays that each visit row r with probability v explain n·v/(n_r + n·v) of w_r: in sum, s²_b;
- with that knowledge, switching to b is worth S·s·ψ(gap/s), where ψ(z) = φ(z) − zΦ(−z);
- a plan of n plays costs (1 + 0.7(n − 1))Δ, because a plan that goes badly is dropped early.

The graph-free hypothesis (`dowise.policies.graph_free`) is one more lane for the present context,
with an incumbent of its own: n plays of an arm there explain n/(n_a + n) of the variance v_a of its
own row. Other contexts need no such lane, because plays here teach nothing about arms there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64, njit

from dowise._core.kernels import kernel
from dowise._core.types import IntArray
from dowise.belief import Posterior
from dowise.belief.draw_kernels import mean_results
from dowise.belief.edge_weights import edge_sets
from dowise.model import Codes
from dowise.model.kernels import Trace, fill_means, forward, pass_back
from dowise.model.reward_circuit import Reading
from dowise.policies.graph_free_kernels import prediction_gain, weight_of
from dowise.policies.trials import learn_round, new_outcome

_EDGE = 1e-9  # of the span: smallest distance of a mean from an end of the scale
_TIE = 1e-12  # of the span: means that are closer are equal


class ContextLanes(NamedTuple):
    """Contexts and sets of edges, one pair per lane."""

    rows: Any
    """rows[lane, block]: the entry where the row of a block of inputs starts."""
    leaders: Any
    """leaders[lane, block]: the first block that reads the same row."""
    weights: Any
    """Probability of each lane."""
    twins: Any
    """Lane of the present context with the same edges."""


class Contexts(NamedTuple):
    """Contexts that may occur, in the order of their codes; each that counts gets a lane."""

    rows: Any
    """rows[context, block], as in `ContextLanes`."""
    visits: Any
    """Number of records of each context."""
    all_count: bool
    """True if all of them count, False if only those that were seen."""
    limit: int
    """Maximum number that count: the most frequent ones, and the present one."""


class RewardScale(NamedTuple):
    """Reward values and arm costs, on the scale from 0 to 1."""

    values: Any
    costs: Any


class OwnRewards(NamedTuple):
    """Graph-free hypothesis in the present context."""

    weight: Any
    """Probability of the hypothesis."""
    parameters: Any
    """Dirichlet parameters of each arm's reward: (arms, values)."""


class OwnLane(NamedTuple):
    """Means of the graph-free hypothesis in the present context, and the gaps to its incumbent."""

    weight: Any
    incumbent: Any
    means: Any
    totals: Any
    """n_a: sum of each arm's parameters."""
    variances: Any
    """v_a: posterior variance of η(μ_a)."""
    gaps: Any
    slopes: Any
    caps: Any
    limit: Any
    """Value of complete knowledge."""


class ArmSensitivity(NamedTuple):
    """Means, slopes and spreads of all arms at the posterior means."""

    values: Any
    """Value of every slot of the trace: (slots, lanes)."""
    totals: Any
    """Sum of each row's parameters: (blocks, lanes)."""
    means: Any
    """Mean rewards net of cost: (arms, lanes)."""
    slopes: Any
    """S(μ): (arms, lanes)."""
    scores: Any
    """η(μ): (arms, lanes)."""
    spreads: Any
    """√ψ′(α)·p·(∂η/∂θ − its mean over the row): (arms, inputs, lanes).

    The squared difference of two arms, summed over a row, is w_r. It is 0 if the present context
    can't teach about the row.
    """


@njit
def trigamma(x):
    """Return ψ′(x) for x > 0: recurrence up to 8, then the asymptotic series, to about 1e-11."""
    total = 0.0
    while x < 8.0:
        total += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    series = 1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0))
    return total + 1.0 / x + 0.5 * y + y / x * series


@njit
def look_at(state, lanes, trace, scale):
    """Compute means, slopes and gradients of all arms in all lanes."""
    arms, width = len(trace.results), len(lanes.rows)
    values, adjoints = np.empty((trace.slots, width)), np.zeros((trace.slots, width))
    totals = np.empty((len(trace.block_slots), width))
    fill_means(values, totals, state.prior, state.counts, lanes.rows, trace)
    forward(values, trace)
    first = len(trace.constants)
    means, slopes = np.empty((arms, width)), np.empty((arms, width))
    scores, spreads = np.empty((arms, width)), np.empty((arms, trace.first - first, width))
    low, high = ends(scale)
    worth = np.ones(len(scale.values))  # writeable, so that `pass_back` is compiled once
    for y in range(len(worth)):
        worth[y] = scale.values[y]
    for a in range(arms):
        pass_back(values, adjoints, worth, a, trace)
        for lane in range(width):
            mean = -scale.costs[a]
            for y in range(len(scale.values)):
                mean += scale.values[y] * values[trace.results[a, y], lane]
            means[a, lane] = mean
            above = max(mean - low, _EDGE * (high - low))
            below = max(high - mean, _EDGE * (high - low))
            slopes[a, lane] = above * below / (high - low)
            scores[a, lane] = math.log(above / below)
        for e in range(trace.first - first):
            for lane in range(width):
                spreads[a, e, lane] = adjoints[first + e, lane] / slopes[a, lane]
    _gather(spreads, lanes.leaders, trace)
    look = ArmSensitivity(values, totals, means, slopes, scores, spreads)
    _standardise(look, state, lanes, trace)
    return look


@njit
def ends(scale):
    """Return the smallest and the largest possible reward net of cost."""
    lowest, highest = scale.costs[0], scale.costs[0]  # by hand: max and min compile for 0.6 s
    for cost in scale.costs:
        lowest, highest = min(lowest, cost), max(highest, cost)
    return -highest, 1.0 - lowest


@njit(inline="always")
def _gather(table, leaders, trace):
    """Add up the gradients of blocks that read the same row, at the first of them."""
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


@njit(inline="always")
def _standardise(look, state, lanes, trace):
    """Turn gradients into spreads, centred by row, which avoids differences of squares."""
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
                alpha = state.prior[entry + k] + state.counts[entry + k]
                share = look.values[first + slot + k, lane]
                scale = math.sqrt(trigamma(alpha)) * share if taught else 0.0
                for a in range(len(look.spreads)):
                    look.spreads[a, slot + k, lane] *= scale


@njit
def best_of(means, lane, allowed, span):
    """Return the first allowed arm whose mean is the largest up to rounding."""
    top = -np.inf
    for a in range(len(means)):
        if allowed[a] and means[a, lane] > top:
            top = means[a, lane]
    for a in range(len(means)):
        if allowed[a] and means[a, lane] >= top - _TIE * span:
            return a
    return 0


@njit
def _keep_most_frequent(visits, limit, counts):
    """Unmark all contexts but those with the most visits; of equal ones the first count."""
    least, most, above = 0, 1, 0  # at least `limit` contexts have `least` visits or more
    for c in range(len(visits)):
        most = max(most, visits[c] + 1)
    while most - least > 1:
        middle, times = (least + most) // 2, 0
        for c in range(len(visits)):
            times += visits[c] >= middle
        least, most = (middle, most) if times >= limit else (least, middle)
    for c in range(len(visits)):
        above += visits[c] > least
    room = limit - above
    for c in range(len(visits)):
        is_tied = visits[c] == least
        counts[c] &= visits[c] > least or (is_tied and room > 0)
        room -= is_tied


@kernel()
def lanes_in(contexts, now):
    """Return a lane for each context that counts, weighted by its visits plus one.

    For contexts whose rows are each read by one block.
    """
    total = len(contexts.visits)
    counts, width = np.zeros(total, dtype=np.bool_), 0
    for c in range(total):
        counts[c] = contexts.all_count or contexts.visits[c] > 0
        width += counts[c]
    if width > contexts.limit:
        _keep_most_frequent(contexts.visits, contexts.limit, counts)
        width = contexts.limit
    width += not counts[now]
    counts[now] = True
    blocks = contexts.rows.shape[1]
    rows, leaders = np.empty((width, blocks), np.int64), np.empty((width, blocks), np.int64)
    weights, lane, present, times = np.empty(width), 0, 0, 0.0
    for c in range(total):
        if counts[c]:
            for r in range(blocks):
                rows[lane, r], leaders[lane, r] = contexts.rows[c, r], r
            weights[lane] = 1.0 + contexts.visits[c]
            times += weights[lane]
            present = lane if c == now else present
            lane += 1
    for lane in range(width):
        weights[lane] /= times
    return ContextLanes(rows, leaders, weights, np.full(width, present))


_LATER_COST = 0.7  # share of the cost that counts for the plays of a plan after the first
_MAX_GAP = 8.0  # in standard deviations; challengers with a larger gap are ignored
_MIN_VARIANCE = 1e-24  # smaller ones are rounding


class PlayPlan(NamedTuple):
    """Arm to play, and the number of plays that is worth most: 0 if it is the incumbent."""

    arm: int
    best: int
    """Incumbent: the arm with the best mean reward."""
    plays: float
    gain: float
    """Gain of the plays, net of their cost."""
    cost: float
    """Expected cost of one play."""


class _Challengers(NamedTuple):
    """Pairs of a lane and an arm that may overtake its incumbent."""

    lanes: Any
    gaps: Any
    slopes: Any
    caps: Any
    """Upper bound of the gain, from (hi − μ_inc) and (μ_b − lo)."""
    shares: Any
    """w_r of every row: (pairs, blocks)."""
    limits: Any
    """Value of complete knowledge."""


@njit
def _overtaking(gap, s):
    """Return s·ψ(gap/s) = E[max(X, 0)] for a normal X of mean −gap and standard deviation s."""
    z = gap / s
    if z >= _MAX_GAP:
        return 0.0
    density = 0.3989422804014327 * math.exp(-0.5 * z * z)
    return s * (density - z * 0.5 * math.erfc(z * 0.7071067811865476))


@njit
def _own_lane(own, scale):
    """Return the lane of the graph-free hypothesis; None without it."""
    if own is None:
        return None
    arms, values = own.parameters.shape
    low, high = ends(scale)
    means, totals = np.empty((arms, 1)), np.empty(arms)
    slopes, scores, variances = np.empty(arms), np.empty(arms), np.empty(arms)
    for a in range(arms):
        total, reward = 0.0, 0.0
        for y in range(values):
            total += own.parameters[a, y]
            reward += own.parameters[a, y] * scale.values[y]
        reward /= total
        mean = reward - scale.costs[a]
        above = max(mean - low, _EDGE * (high - low))
        below = max(high - mean, _EDGE * (high - low))
        means[a, 0], totals[a] = mean, total
        slopes[a] = above * below / (high - low)
        scores[a] = math.log(above / below)
        variances[a] = 0.0
        for y in range(values):
            share = own.parameters[a, y] / total
            d = share * (scale.values[y] - reward) / slopes[a]
            variances[a] += trigamma(own.parameters[a, y]) * d * d
    best = best_of(means, 0, np.ones(arms, dtype=np.bool_), high - low)
    gaps, mixed, caps, limit = np.empty(arms), np.empty(arms), np.empty(arms), 0.0
    for b in range(arms):
        total = max(variances[b] + variances[best], _MIN_VARIANCE)
        gaps[b] = scores[best] - scores[b]
        mixed[b] = (variances[b] * slopes[best] + variances[best] * slopes[b]) / total
        caps[b] = min(means[b, 0] - low, high - means[best, 0])
        if b != best:
            value = min(mixed[b] * _overtaking(gaps[b], math.sqrt(total)), caps[b])
            limit = max(limit, value)
    return OwnLane(own.weight, best, means, totals, variances, gaps, mixed, caps, limit)


@njit
def _own_value(lane, arm, n):
    """Return the value per round of what n plays of an arm teach in the graph-free lane."""
    spread = lane.variances[arm] * n / (lane.totals[arm] + n)
    if spread <= _MIN_VARIANCE:
        return 0.0
    s, value = math.sqrt(spread), 0.0
    if arm != lane.incumbent:
        return min(lane.slopes[arm] * _overtaking(lane.gaps[arm], s), lane.caps[arm])
    for b in range(len(lane.gaps)):
        if b != arm:
            value = max(value, min(lane.slopes[b] * _overtaking(lane.gaps[b], s), lane.caps[b]))
    return value


@njit
def _challengers(look, trace, scale):
    """Return all pairs of a lane and an arm that may overtake the lane's incumbent."""
    arms, width = look.means.shape
    first, blocks = len(trace.constants), len(trace.block_slots)
    low, high = ends(scale)
    all_arms = np.ones(arms, dtype=np.bool_)
    lanes = np.empty(arms * width, dtype=np.int64)
    gaps, slopes, caps = np.empty(arms * width), np.empty(arms * width), np.empty(arms * width)
    shares, limits = np.empty((arms * width, blocks)), np.empty(arms * width)
    count = 0
    for lane in range(width):
        best = best_of(look.means, lane, all_arms, high - low)
        for b in range(arms):
            total, best_total, rival_total = 0.0, 0.0, 0.0
            for r in range(blocks):
                share = 0.0
                for e in range(trace.block_slots[r], trace.block_slots[r] + trace.block_sizes[r]):
                    rival, incumbent = (
                        look.spreads[b, e - first, lane],
                        look.spreads[best, e - first, lane],
                    )
                    share += (rival - incumbent) * (rival - incumbent)
                    rival_total += rival * rival
                    best_total += incumbent * incumbent
                shares[count, r] = share
                total += share
            gap = look.scores[best, lane] - look.scores[b, lane]
            if b == best or total <= _MIN_VARIANCE or gap >= _MAX_GAP * math.sqrt(total):
                continue
            lanes[count], gaps[count] = lane, gap
            # The uncertain one of the two moves: b rises to the incumbent, or that falls to b.
            mixed = rival_total * look.slopes[best, lane] + best_total * look.slopes[b, lane]
            slopes[count] = mixed / (rival_total + best_total)
            caps[count] = min(look.means[b, lane] - low, high - look.means[best, lane])
            limits[count] = min(slopes[count] * _overtaking(gap, math.sqrt(total)), caps[count])
            count += 1
    return _Challengers(
        lanes[:count], gaps[:count], slopes[:count], caps[:count], shares[:count], limits[:count]
    )


@njit(inline="always")
def _visits(look, lanes, trace):
    """Return visits[block, twin, arm]: the probability that a play in this context visits a row.

    Lanes of the present context are numbered from 0: first_lanes[twin] is the lane with a number,
    and twin_of[lane] the number of a lane's twin.
    """
    twin_of, width = np.empty(len(lanes.twins), dtype=np.int64), 0
    for lane in range(len(lanes.twins)):
        if lanes.twins[lane] == lane:
            twin_of[lane] = width
            width += 1
    values, first_lanes = np.empty((trace.slots, width)), np.empty(width, dtype=np.int64)
    for lane in range(len(lanes.twins)):
        if lanes.twins[lane] == lane:
            first_lanes[twin_of[lane]] = lane
            for slot in range(trace.slots):
                values[slot, twin_of[lane]] = look.values[slot, lane]
    for lane in range(len(lanes.twins)):
        twin_of[lane] = twin_of[lanes.twins[lane]]
    adjoints, ones = np.zeros((trace.slots, width)), np.ones(trace.results.shape[1])
    visits = np.zeros((len(trace.block_slots), width, len(trace.results)))
    for a in range(len(trace.results)):
        pass_back(values, adjoints, ones, a, trace)
        for r in range(len(trace.block_slots)):
            for twin in range(width):
                leader = lanes.leaders[first_lanes[twin], r]
                visits[leader, twin, a] += adjoints[trace.block_slots[r], twin]
    return twin_of, first_lanes, visits


@njit(inline="always")
def _rows_that_matter(shares):
    """Return the blocks in which some challenger has a share."""
    blocks, count = np.empty(shares.shape[1], dtype=np.int64), 0
    for r in range(shares.shape[1]):
        total = 0.0
        for j in range(len(shares)):
            total += shares[j, r]
        if total > 0:
            blocks[count] = r
            count += 1
    return blocks[:count]


class _Room(NamedTuple):
    values: Any
    tops: Any
    variances: Any


@njit(inline="always")
def _values(challengers, rows, twin_of, learned, weights, room):
    """Fill room.values[i] with the value per round of what plays of candidate i would teach.

    learned[row, twin, candidate] is the share of w_r that they explain.
    """
    count = learned.shape[2]
    for i in range(count):
        room.values[i] = 0.0
        room.tops[i] = 0.0
    for j in range(len(challengers.gaps)):
        lane = challengers.lanes[j]
        twin = twin_of[lane]
        for i in range(count):
            room.variances[i] = 0.0
        for q in range(len(rows)):
            share = challengers.shares[j, rows[q]]
            if share > 0:
                for i in range(count):
                    room.variances[i] += share * learned[q, twin, i]
        for i in range(count):
            if room.variances[i] > _MIN_VARIANCE:
                gain = _overtaking(challengers.gaps[j], math.sqrt(room.variances[i]))
                gain = min(challengers.slopes[j] * gain, challengers.caps[j])
                room.tops[i] = max(room.tops[i], gain)
        if j + 1 == len(challengers.gaps) or challengers.lanes[j + 1] != lane:
            for i in range(count):
                room.values[i] += weights[lane] * room.tops[i]
                room.tops[i] = 0.0


@njit
def _present(look, lanes, allowed, scale, own):
    """Return the expected cost of each arm, the probability of this context, and the best arm."""
    arms = len(look.means)
    means, chance = np.zeros((arms, 1)), 0.0
    for lane in range(len(lanes.twins)):
        if lanes.twins[lane] == lane:
            chance += lanes.weights[lane]
            for a in range(arms):
                means[a, 0] += lanes.weights[lane] * look.means[a, lane]
    for a in range(arms):
        means[a, 0] /= chance
        if own is not None:
            means[a, 0] += own.weight * (own.means[a, 0] - means[a, 0])
    low, high = ends(scale)
    best = best_of(means, 0, allowed, high - low)
    costs = np.empty(arms)
    for a in range(arms):
        costs[a] = means[best, 0] - means[a, 0] if allowed[a] else np.inf
    return costs, chance, best


@njit(inline="always")
def _bound(challengers, weights):
    """Return the value of complete knowledge, an upper bound on the value of plays."""
    bound, top = 0.0, 0.0
    for j in range(len(challengers.gaps)):
        top = max(top, challengers.limits[j])
        lane = challengers.lanes[j]
        if j + 1 == len(challengers.gaps) or challengers.lanes[j + 1] != lane:
            bound += weights[lane] * top
            top = 0.0
    return bound


@njit
def _search(look, challengers, lanes, weights, own, trace, present, rounds):
    """Return the arm and the number of plays, 1, 2, 4, …, with the largest net gain.

    A gain is net of what as many plays of the incumbent would teach. `weights` are those of the
    lanes, `own` is the lane of the graph-free hypothesis or None. `present` has the costs, the
    probability of this context, the incumbent, and an upper bound on the value of plays.
    """
    costs, chance, best, bound = present
    rows = _rows_that_matter(challengers.shares)
    twin_of, first_lanes, visits = _visits(look, lanes, trace)
    arms, width = len(costs), len(first_lanes)
    room = _Room(np.empty(arms), np.empty(arms), np.empty(arms))
    candidates = np.empty(arms, dtype=np.int64)
    plan, n = PlayPlan(best, best, 0.0, 0.0, 0.0), 1.0
    while n / chance < rounds:
        remaining, paid = rounds - n / chance, 1.0 + _LATER_COST * (n - 1.0)
        candidates[0], count = best, 1
        for a in range(arms):
            if a != best and remaining * bound - paid * costs[a] > plan.gain:
                candidates[count] = a
                count += 1
        if count > 1:
            learned = np.empty((len(rows), width, count))
            for q in range(len(rows)):
                for h in range(width):
                    total = look.totals[rows[q], first_lanes[h]]
                    for i in range(count):
                        times = n * visits[rows[q], h, candidates[i]]
                        learned[q, h, i] = times / (total + times)
            _values(challengers, rows, twin_of, learned, weights, room)
            if own is not None:
                for i in range(count):
                    room.values[i] += own.weight * chance * _own_value(own, candidates[i], n)
            for i in range(1, count):
                cost = costs[candidates[i]]
                gain = remaining * (room.values[i] - room.values[0]) - paid * cost
                if gain > plan.gain:
                    plan = PlayPlan(candidates[i], best, n, gain, cost)
        n *= 2.0
    return plan


@kernel()
def choose(state, lanes, trace, scale, allowed, rounds, own_rewards):
    """Return the `PlayPlan` among the allowed arms if `rounds` rounds will follow.

    `own_rewards` are those of the graph-free hypothesis, or None.
    """
    look, own = look_at(state, lanes, trace, scale), _own_lane(own_rewards, scale)
    costs, chance, best = _present(look, lanes, allowed, scale, own)
    challengers = _challengers(look, trace, scale)
    if own_rewards is None:  # numba compiles one branch: it knows the types of arguments
        weights = lanes.weights
        bound = _bound(challengers, weights)
    else:
        weights = lanes.weights * (1.0 - own.weight)
        bound = _bound(challengers, weights) + own.weight * chance * own.limit
    cheapest = np.inf
    for a in range(len(costs)):
        if a != best:
            cheapest = min(cheapest, costs[a])
    if (rounds - 1.0 / chance) * bound <= cheapest:
        return PlayPlan(best, best, 0.0, 0.0, 0.0)
    present = costs, chance, best, bound
    return _search(look, challengers, lanes, weights, own, trace, present, rounds)


@kernel()
def count_pending(state, lanes, plays, trace, added, visited):
    """Add the plays of one context whose outcomes are not known yet, each at its mean.

    A play counts in every row that it may visit, by the probability of a visit times the row's mean
    entries, so means stay and variances shrink. `lanes` are those of the context, one for each set
    of edges, plays[arm] the number of pending plays. It is added to added[entry], and to
    visited[entry] the weight of the sets of edges in which an entry is read.
    """
    arms, width = len(trace.results), len(lanes.rows)
    values, adjoints = np.empty((trace.slots, width)), np.zeros((trace.slots, width))
    totals, ones = np.empty((len(trace.block_slots), width)), np.ones(trace.results.shape[1])
    fill_means(values, totals, state.prior, state.counts, lanes.rows, trace)
    forward(values, trace)
    for lane in range(width):
        for r in range(len(trace.block_slots)):
            if lanes.leaders[lane, r] == r:
                for k in range(trace.block_sizes[r]):
                    visited[lanes.rows[lane, r] + k] += lanes.weights[lane]
    for a in range(arms):
        if plays[a] == 0:
            continue
        pass_back(values, adjoints, ones, a, trace)
        for r in range(len(trace.block_slots)):
            slot = trace.block_slots[r]
            for lane in range(width):
                visits = plays[a] * lanes.weights[lane] * adjoints[slot, lane]
                for k in range(trace.block_sizes[r]):
                    added[lanes.rows[lane, r] + k] += visits * values[slot + k, lane]


MAX_CONTEXTS = 64  # the most frequent ones
MAX_EDGE_SETS = 64
MAX_NUMBERS = 2**22  # numbers that a decision may hold in memory: 32 MB


def mixed_lanes(
    posterior: Posterior,
    contexts: list[Codes],
    visits: IntArray,
    now: int,
    all_count: bool,
    limit: int,
) -> ContextLanes:
    """Return a lane for each context that counts and each set of edges, about `limit` of them."""
    counts = np.ones(len(contexts), dtype=bool) if all_count else visits > 0
    counts[np.argsort(-visits, kind="stable")[min(MAX_CONTEXTS, limit) :]] = False
    counts[now] = True
    counting = np.flatnonzero(counts)
    frequency = 1.0 + visits[counting]
    versions, chances = edge_sets(posterior, max(1, min(MAX_EDGE_SETS, limit // len(counting))))
    reading = posterior.shared.trace_reading
    blocks = len(posterior.model.trace.blocks)
    by_set = [_rows(reading, chosen, blocks) for chosen in versions]
    first, leaders, shifts = (np.array(arrays) for arrays in zip(*by_set, strict=True))
    codes = np.array([contexts[c] for c in counting], dtype=np.int64).reshape(len(counting), -1)
    rows = first[None] + np.einsum("srx,cx->csr", shifts, codes)
    sets, present = len(versions), int(np.searchsorted(counting, now))
    return ContextLanes(
        np.ascontiguousarray(rows.reshape(-1, rows.shape[2])),
        np.tile(leaders, (len(counting), 1)),
        np.outer(frequency / frequency.sum(), chances / chances.sum()).ravel(),
        np.tile(present * sets + np.arange(sets), len(counting)),
    )


def max_lanes(trace: Trace) -> int:
    """Return the number of lanes that fit into memory, at least one."""
    inputs, arms = trace.first - len(trace.constants), len(trace.results)
    size: int = 2 * trace.slots + arms * (inputs + len(trace.block_slots))
    return max(1, MAX_NUMBERS // size)


def _rows(reading: Reading, versions: IntArray, blocks: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return for each block its row, the first block that reads it, and its shift by context."""
    rows, leaders = np.zeros(blocks, dtype=np.int64), np.arange(blocks)
    shifts = np.zeros((blocks, reading.shifts.shape[1]), dtype=np.int64)
    for m in versions[reading.variables].tolist():
        for r in range(reading.reads[m], reading.reads[m + 1]):
            targets = reading.blocks[reading.targets[r] : reading.targets[r + 1]]
            rows[targets], leaders[targets] = reading.entries[r], targets.min()
            shifts[targets] = reading.shifts[r]
    return rows, leaders, shifts


class OwnTrial(NamedTuple):
    """Graph-free hypothesis in a compiled trial."""

    prior: Any
    before: Any
    """Gain of all predictions before the trial, in 2⁻³⁶ nats."""
    gains: Any
    """gains[t]: gain of round t."""
    counts: Any
    """counts[c, arm, y]: rewards in each of the script's contexts."""
    seen: Any
    """seen[t, v]: code of each variable in round t."""
    rows: Any
    """rows[c]: rows of the reward circuit."""
    tape: Any
    position: Any
    """Index of the reward among the observed variables."""


@kernel()
def play_rounds(state, arms, contexts, numbers, trace, scale, pace, script, own, chosen):
    """Play a whole trial.

    numbers[c] is the index of the script's context c among all; pace has the rounds to come per
    round played, the rounds added to those, and the rounds before the first. `own` is the
    `OwnTrial`, or None.
    """
    outcome = new_outcome(script)
    allowed = np.ones(len(arms.place), dtype=np.bool_)
    times, head_start, before = pace
    predicted = np.empty((len(arms.place), len(scale.values)))
    if own is not None:
        gain = int64(own.before)
    for t in range(len(chosen)):
        context = script.contexts[t]
        now = numbers[context]
        rounds, lanes = times * (before + t + head_start), lanes_in(contexts, now)
        if own is None:
            best = choose(state, lanes, trace, scale, allowed, rounds, None).arm
        else:
            rewards = OwnRewards(weight_of(own.prior, float64(gain)), 1.0 + own.counts[context])
            best = choose(state, lanes, trace, scale, allowed, rounds, rewards).arm
            mean_results(state.prior, state.counts, own.rows[context], own.tape, predicted)
        chosen[t] = best
        learn_round(state, None, arms, script, t, best, outcome)
        if own is not None:
            value = outcome.seen[own.position]
            counts = own.counts[context, best]
            own.gains[t] = prediction_gain(counts, predicted[best], value)
            gain += own.gains[t]
            counts[value] += 1
            own.seen[t] = outcome.seen
        contexts.visits[now] += 1
