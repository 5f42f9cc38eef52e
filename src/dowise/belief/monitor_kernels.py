"""Kernels of balanced betting: an e-process for every edge that a graph lacks.

The graph implies that within a stratum the outcome has one distribution, whatever the cell. An
outcome with K values is split into K − 1 binary *sticks*: y = j, given y ≥ j. For one stick of one
stratum let p be the unknown probability. Before each outcome a rate p0 and a stake h are chosen
from the cell and earlier records, and bet with r(y) = q(y) / p0(y), logit q = logit p0 + h. With
g = (q − p0) / (p0 (1 − p0)), W = Σ log r(y), B = Σ g, C = Σ p0 g, Q = Σ log p0(y):

    E = inf_p [ (1 − ε) exp(W + C − p B) + ε exp(Q) / (p^n1 (1 − p)^n0) ]

is an e-process (docs/evidence.md has the proof), for any p0, h and ε. They only matter for power:
stakes follow the shift of log-odds that was learned for the cell, less its mean in the stratum, and
pull B to 0, so that it matters little that p is unknown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dowise._core.kernels import kernel
from dowise.belief import variates

SCALE = 0.5
"""Prior standard deviation of a shift of log-odds, of a feature and of a cell's own part."""
START = 4.0  # records that the overall rate counts for in a new stratum
DAMP = 3.0  # records after which stakes in a stratum are half of what was learned
MAX_STAKE = 4.0
MIN_RATE = 1e-4  # of p0
SMALLEST = 1e-15  # of p and 1 − p in the infimum: the bracket differs by less than rounding beyond
SLACK = 1e-6  # for rounding of running sums of bounds
HALVINGS = 24
LOG2 = 0.6931471805599453

# Functions that only kernels call, compiled once and without wrappers for Python, which would take
# most of the time to compile.
_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
CALLED = njit(error_model="numpy", **_OPTIONS)

# Columns of a stick: counts of the outcomes 1 and 0, log Q, counts before a restart, and for each
# of the two bettors W, B, C and an upper bound on log E.
ONE, ZERO, BASE, TRAINED_ONE, TRAINED_ZERO, BETTORS = 0, 1, 2, 3, 4, 5
STICK_COLUMNS = BETTORS + 2 * 4


class Tables(NamedTuple):
    """Positions of tables of one kind; see `Contrasts`."""

    starts: Any
    first: Any
    axes: Any
    steps: Any


class Plan(NamedTuple):
    """Tables of all contrasts, and what is fixed about alternatives."""

    strata: Tables
    cells: Tables
    features: Tables
    tables: Any
    first: Any
    sizes: Any
    owners: Any
    variables: Any
    later: Any
    feature_rows: Any
    pairs: Any
    slots: Any
    epsilons: Any
    log_shares: Any
    """Logarithm of every alternative's share; −inf if it has none."""


class Bets(NamedTuple):
    """State of all e-processes after some pieces."""

    sticks: Any
    """sticks[entry of a stratum]: see the names of the columns."""
    solved: Any
    """solved[entry of a stratum]: log E of both bettors, as of when it was last solved for."""
    is_stale: Any
    """True for each stick with outcomes that `solved` does not know of."""
    cells: Any
    """cells[entry of a cell]: shift and precision beyond the prior's, of the second bettor."""
    features: Any
    """features[entry of a feature]: the same for each bettor; then, in a row's first entry, the
    number of records."""
    mixtures: Any
    """Number of records by pair of a stratum and a feature."""
    overall: Any
    """overall[contrast, stick]: number of outcomes 1 and 0 in all strata."""
    totals: Any
    """totals[alternative, bettor]: sum of the bounds of all sticks."""
    scored: Any
    """Number of outcomes that were bet on, by alternative."""
    records: Any
    """records[0]: number of records."""


class Alarms(NamedTuple):
    """Alarms at each of some levels."""

    thresholds: Any
    """−log α."""
    since: Any
    """Number of the record that raised the alarm; 0 if there is none."""
    is_named: Any
    """is_named[level, alternative]: True if the alarm names it."""


class Pieces(NamedTuple):
    """Pieces that arrived; see `dowise.belief.arrivals.PieceArrays`."""

    codes: Any
    places: Any
    """Intervention set of each distinct piece."""
    told: Any
    """told[v, piece]: True if the piece told the value of v."""
    earlier: Any
    """earlier[v, piece]: True if an earlier piece of the record told the value of v."""
    has_earlier: Any
    continues: Any
    order: Any


@CALLED
def log64(x):
    """Return the natural logarithm; not inlined, as it is called in many places."""
    return variates.log64(x)


@CALLED
def exp64(x):
    """Return e^x for x ≤ 0."""
    return variates.exp64(x)


@CALLED
def _log_sum(a, b):
    """Return log(exp a + exp b), not both of which are 0."""
    top, low = max(a, b), min(a, b)
    return top + log64(1.0 + exp64(max(low - top, -745.0)))


@CALLED
def _logistic(z):
    e = exp64(-abs(z))
    return 1.0 / (1.0 + e) if z >= 0 else e / (1.0 + e)


@CALLED
def _row(tables, t, codes, d):
    """Return the first entry of a record's row of a table, or −1 if a value is missing."""
    entry = tables.starts[t]
    last = tables.first[t + 1] - 1  # the variable itself
    for k in range(tables.first[t], last):
        code = codes[tables.axes[k], d]
        if code < 0:
            return -1
        entry += tables.steps[k] * code
    return entry


@kernel()
def log_e_value(stick, bettor, epsilon):
    """Return log E of one stick: the infimum over p, from below.

    The bracket is a convex function of p. Its second part is smallest at the observed rate, its
    first falls in the direction of B. Its minimum is found by bisection, in the logit; the slope
    at the last point times the width that is left is subtracted.
    """
    n1, n0 = stick[ONE], stick[ZERO]
    n = n1 + n0
    if n == 0:
        return 0.0
    c = BETTORS + 4 * bettor
    w, b = stick[c], stick[c + 1]
    first, second = log64(1.0 - epsilon) + w + stick[c + 2], log64(epsilon) + stick[BASE]
    rate = min(max(n1 / n, SMALLEST), 1.0 - SMALLEST)
    low, high = (rate, 1.0 - SMALLEST) if b > 0 else (SMALLEST, rate)
    left, right = log64(low / (1.0 - low)), log64(high / (1.0 - high))
    value, slope = 0.0, 0.0
    for _ in range(HALVINGS):
        middle = 0.5 * (left + right)
        p = _logistic(middle)
        x, y = first - p * b, second - n1 * log64(p) - n0 * log64(1.0 - p)
        value = _log_sum(x, y)
        slope = (n0 / (1.0 - p) - n1 / p) * exp64(min(y - value, 0.0)) - b * exp64(
            min(x - value, 0.0)
        )
        if slope > 0:
            right = middle
        else:
            left = middle
    rest = abs(slope) * (_logistic(right) - _logistic(left))
    return value + log64(max(1.0 - rest, 1e-300))


@CALLED
def _bet(stick, bettor, p0, h, one):
    """Bet with a stake on one outcome."""
    c = BETTORS + 4 * bettor
    e = exp64(-abs(h))
    e = 1.0 / e if h > 0 else e
    d = 1.0 - p0 + p0 * e
    g = (e - 1.0) / d
    stick[c] += h * one - log64(d)
    stick[c + 1] += g
    stick[c + 2] += p0 * g


@CALLED
def _watch(bets, plan, slots, i, t, s, c, y, found, scale, damp):
    """Bet on an outcome of one contrast, whose stratum s is in table t, and learn from it.

    `slots` are those of the plan: read from there in the loop, references would be counted, which
    takes as long as all the rest.
    """
    k, a = plan.sizes[i], plan.owners[i]
    many = plan.feature_rows[i]
    features = plan.first[2, i]
    first_slot = plan.pairs[t, 2]
    mixed = plan.pairs[t, 0] + (s - plan.strata.starts[t]) // k * plan.pairs[t, 1]
    epsilon = plan.epsilons[i]
    prior = 1.0 / (scale * scale)
    stratum = bets.sticks[s]
    here = stratum[ONE] + stratum[ZERO] + stratum[TRAINED_ONE] + stratum[TRAINED_ZERO]
    anywhere = bets.overall[i, 0, 0] + bets.overall[i, 0, 1]
    for j in range(min(y + 1, k - 1)):
        one = 1.0 if y == j else 0.0
        stick = bets.sticks[s + j]
        ones, zeros = bets.overall[i, j, 0], bets.overall[i, j, 1]
        n1, n0 = stick[ONE] + stick[TRAINED_ONE], stick[ZERO] + stick[TRAINED_ZERO]
        seen = n1 + n0
        p0 = (n1 + START * (ones + 0.5) / (ones + zeros + 1.0)) / (seen + START)
        p0 = min(max(p0, MIN_RATE), 1.0 - MIN_RATE)
        logit = log64(p0 / (1.0 - p0))
        pull, caution = 1.0 / np.sqrt(1.0 + seen), (seen + 0.01) / (seen + 0.01 + damp)
        mean0, mean1 = 0.0, 0.0
        for f in range(many):
            row = features + f * k
            times = bets.features[row, 4]
            if times > 0:
                in_stratum = bets.mixtures[mixed + slots[first_slot + f]]
                weight = (in_stratum + START * times / anywhere) / (here + START)
                mean0 += weight * bets.features[row + j, 0]
                mean1 += weight * bets.features[row + j, 2]
        x0, x1 = -mean0, bets.cells[c + j, 0] - mean1
        for f in found:
            if f >= 0:
                x0 += bets.features[f + j, 0]
                x1 += bets.features[f + j, 2]
        for bettor, x in ((0, x0), (1, x1)):
            h = caution * x - pull * stick[BETTORS + 4 * bettor + 1]
            _bet(stick, bettor, p0, min(max(h, -MAX_STAKE), MAX_STAKE), one)
            q = _logistic(logit + x)
            for f in found:  # a Newton step each
                if f >= 0:
                    shift = bets.features[f + j]
                    shift[2 * bettor + 1] += q * (1.0 - q)
                    shift[2 * bettor] += (one - q) / (prior + shift[2 * bettor + 1])
            if bettor == 1:
                own = bets.cells[c + j]
                own[1] += q * (1.0 - q)
                own[0] += (one - q) / (prior + own[1])
        stick[BASE] += log64(p0 if one else 1.0 - p0)
        stick[ONE] += one
        stick[ZERO] += 1.0 - one
        bets.overall[i, j, 0] += one
        bets.overall[i, j, 1] += 1.0 - one
        n = stick[ONE] + stick[ZERO]
        rate = min(max(stick[ONE] / n, SMALLEST), 1.0 - SMALLEST)
        second = log64(epsilon) + stick[BASE]
        second -= stick[ONE] * log64(rate) + stick[ZERO] * log64(1.0 - rate)
        for bettor in range(2):  # the bracket at the observed rate, an upper bound
            b = BETTORS + 4 * bettor
            first = log64(1.0 - epsilon) + stick[b] + stick[b + 2] - rate * stick[b + 1]
            bound = _log_sum(first, second)
            bets.totals[a, bettor] += bound - stick[b + 3]
            stick[b + 3] = bound
        bets.is_stale[s + j] = True
    for f in found:
        if f >= 0:
            bets.features[f, 4] += 1.0
            bets.mixtures[mixed + slots[first_slot + (f - features) // k]] += 1
    bets.scored[a] += 1


@CALLED
def _solve(bets, plan, a, contrasts):
    """Return log E of one alternative: the mean of both bettors' products over all sticks."""
    total0, total1 = 0.0, 0.0
    for i in range(contrasts[a], contrasts[a + 1]):
        for s in range(plan.first[0, i], plan.first[0, i + 1]):
            if bets.is_stale[s]:
                for bettor in range(2):
                    bets.solved[s, bettor] = log_e_value(bets.sticks[s], bettor, plan.epsilons[i])
                bets.is_stale[s] = False
            total0 += bets.solved[s, 0]
            total1 += bets.solved[s, 1]
    return _log_sum(total0, total1) - LOG2


@kernel()
def solve_all(bets, plan, contrasts, logs):
    """Write log E of every alternative into `logs`."""
    for a in range(len(logs)):
        logs[a] = _solve(bets, plan, a, contrasts)


@CALLED
def _check(bets, plan, contrasts, alarms, level):
    """Raise the alarm of a level if the mean e-value has reached its threshold.

    Bounds are replaced by values, the largest first, until the answer is certain, and also which
    alternative is the largest.
    """
    many, threshold = len(plan.log_shares), alarms.thresholds[level]
    bounds, is_open = np.empty(many), np.empty(many, dtype=np.bool_)
    for a in range(many):
        is_open[a] = plan.log_shares[a] > -np.inf
        bounds[a] = plan.log_shares[a] + _log_sum(bets.totals[a, 0], bets.totals[a, 1]) - LOG2
    total, largest, best = -np.inf, -np.inf, -1
    while True:
        most, top = total, -1
        for a in range(many):
            if is_open[a]:
                most = _log_sum(most, bounds[a])
                top = a if top < 0 or bounds[a] > bounds[top] else top
        if most < threshold - SLACK:
            return
        if total >= threshold and (top < 0 or bounds[top] < largest):
            alarms.since[level] = bets.records[0]
            alarms.is_named[level, best] = True
            return
        if top < 0:
            return
        value = plan.log_shares[top] + _solve(bets, plan, top, contrasts)
        is_open[top] = False
        total = _log_sum(total, value)
        if value > largest:
            largest, best = value, top


@kernel()
def watch_many(bets, plan, contrasts, alarms, pieces, scale, damp):
    """Bet on all pieces, and raise alarms."""
    codes, slots = pieces.codes, plan.slots
    found = np.empty(plan.tables.shape[2] - 2, dtype=np.int64)
    lowest = np.inf
    for threshold in alarms.thresholds:
        lowest = min(lowest, threshold - SLACK)
    for d in pieces.order:
        p = pieces.places[d]
        bets.records[0] += 0 if pieces.continues[d] else 1
        for i in range(len(plan.owners)):
            v = plan.variables[i]
            y, table = codes[v, d], plan.tables[p, i]
            if y < 0 or table[0] < 0 or not pieces.told[v, d]:
                continue
            is_blind = True
            if pieces.has_earlier[d]:
                for u in range(len(codes)):
                    is_blind &= not (pieces.earlier[u, d] and plan.later[u, i])
            c = _row(plan.cells, table[1], codes, d)
            if c < 0 or not is_blind:
                continue
            s = _row(plan.strata, table[0], codes, d)
            for f in range(len(found)):
                t = table[2 + f]
                found[f] = _row(plan.features, t, codes, d) if t >= 0 else -1
            _watch(bets, plan, slots, i, table[0], s, c, y, found, scale, damp)
        top = -np.inf
        for a in range(len(bets.totals)):
            if plan.log_shares[a] > -np.inf:
                top = max(top, bets.totals[a, 0], bets.totals[a, 1])
        if top < lowest:
            continue
        for level in range(len(alarms.thresholds)):
            threshold = alarms.thresholds[level]
            if top >= threshold - SLACK and not alarms.since[level]:
                _check(bets, plan, contrasts, alarms, level)
            if not alarms.since[level]:
                continue
            for a in range(len(bets.totals)):
                bound = max(bets.totals[a, 0], bets.totals[a, 1]) + plan.log_shares[a]
                if bound >= threshold - SLACK and not alarms.is_named[level, a]:
                    value = plan.log_shares[a] + _solve(bets, plan, a, contrasts)
                    alarms.is_named[level, a] = value >= threshold
