"""Certificates: bounds on the regret of a round beyond λ times its gain, from its draws.

For a λ > 0 that is fixed in advance, a certificate of a distribution π over arms is an upper bound
on Δ(π) − λg(π) that holds with a given probability over the draws. If that of the π which IDS would
play is above K/(8λ), that of Thompson Sampling is not, by Γ² ≤ K/2 (Corollary 1). Summed over
rounds, certificates bound the Bayesian regret:

    E[Regret] ≤ λH(Π*) + E[Σ cert_t] + δ'·(span + λ log r)

without γ and without an event to condition on. docs/certificate.md proves it line by line.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, prod, sqrt
from typing import NamedTuple

import numpy as np

from dowise._core.kernels import kernel, lazy_kernels
from dowise._core.types import FloatArray
from dowise.errors import DowiseError
from dowise.information.estimates import Estimate, estimate_of
from dowise.information.ratio import IDSAction, minimise_ratio
from dowise.model.draws import Draws
from dowise.problem import Payoff, Problem

_kernels = lazy_kernels("dowise.information.certificate")

CHOOSING_SHARE = 0.3  # share of the draws that choose π; the others bound it
MIN_SAMPLES = 10  # then three choose
_OF_THE_BEST = 0.5  # of the λ that is best if no round is certified: docs/certificate.md


class Certificate(NamedTuple):
    """A distribution over arms from the draws of a round, and its bound on Δ − λg."""

    action: IDSAction
    """π by indices of the arms of the draws: what IDS plays by the draws that choose."""
    bound: float
    """Upper bound on Δ(π) − λg(π), except for a failure; never below −λ log r."""
    limit: float
    """K/(8λ), which Thompson Sampling never exceeds."""
    counts_gain: bool
    """True if the gain of π is counted, False if only Δ(π) is bounded."""
    chosen_by: Estimate
    """p*, Δ and g by the draws that chose."""

    @property
    def holds(self) -> bool:
        """True if π is at least as good as the guarantee of Thompson Sampling."""
        return self.bound <= self.limit

    @property
    def value(self) -> float:
        """cert_t of π, or of Thompson Sampling if that is played instead."""
        return min(self.bound, self.limit)


def net_values(payoff: Payoff, arms: int) -> FloatArray:
    """Return the net worth of each reward value under each arm, on the scale of the bounds."""
    worth: FloatArray = payoff.net_scaled(np.tile(payoff.scaled[:, None], (1, arms)))
    return np.ascontiguousarray(worth.T)


def make_certificate(
    draws: Draws,
    payoff: Payoff,
    worth: FloatArray,
    means: FloatArray | Callable[[], FloatArray] | None,
    lam: float,
    failure: float,
) -> Certificate:
    """Choose π by the first draws, and bound Δ(π) − λg(π) by the others.

    `worth` is that of the draws' arms, `means` the exact posterior means of their distributions,
    (arms, values); where there are none but rough ones give None, and nothing is said of what π
    teaches. Where they take long give what makes them: it is called only if what π teaches is worth
    counting by the means of the draws that choose. The bound fails with probability `failure` at
    most.
    """
    fit = choosing_draws(draws.samples)
    found = estimate_of(draws.first_ones(fit), payoff)
    action = minimise_ratio(found.delta, found.gain)
    winners, _ = draws.winners(payoff)
    others = np.ascontiguousarray(draws.others)

    def bounded(own: FloatArray, most: float) -> tuple[float, float]:
        bound, used = _kernels.certify(
            others, worth, winners, own, found.joint, found.winning, action, fit, most,
            -log(failure),
        )  # fmt: skip
        return bound, used

    at_hand = found.outcomes if means is None or callable(means) else means
    bound, used = bounded(at_hand, 0.0 if means is None else lam)
    if used > 0 and callable(means):
        bound, used = bounded(means(), lam)
    arms, values = worth.shape
    bound, limit = max(bound, min_bound(lam, values)), thompson_limit(lam, arms)
    return Certificate(action, bound, limit, used > 0, found)


def choosing_draws(samples: int) -> int:
    """Return how many of the draws choose π."""
    return max(2, int(CHOOSING_SHARE * samples))


def thompson_limit(lam: float, arms: int) -> float:
    """Return K/(8λ), which Thompson Sampling never exceeds."""
    return arms / (8 * lam)


def min_bound(lam: float, values: int) -> float:
    """Return −λ log r: no reward teaches more than log r."""
    return -lam * log(values)


def default_lam(problem: Problem, horizon: int) -> float:
    """Return the default λ, ½√(TK / (8 |C| log K)), from the problem and the horizon alone.

    Without the half λH + TK/(8λ), the bound if no round is certified, would be least for
    H = |C| log K, the largest entropy there is. With it that is a quarter more, and what is
    certified less.
    """
    arms = len(problem.arms)
    contexts = prod(float(len(problem.domains[name])) for name in problem.context)
    entropy = max(contexts * log(arms), log(2))
    return _OF_THE_BEST * sqrt(horizon * arms / (8 * entropy))


def certified_regret(
    lam: float, entropy: float, certificates: float, delta: float, worth: FloatArray
) -> float:
    """Return λH(Π*) + E[Σ cert_t] + δ'(span + λ log r), for rewards on the scale of the bounds."""
    if not lam > 0:
        raise DowiseError(f"lam={lam!r} must be more than 0", code="invalid-number")
    span = float(worth.max() - worth.min())
    slack = delta * (span + lam * log(worth.shape[1]))
    return lam * max(entropy, 0.0) + certificates + slack


_PSEUDO = 2.0  # so many draws speak for p̄ in r: then r is never 0 where p̄ is not
_NEVER = 1e-30  # a mean of at most this is that of a value which does not occur
_CLOSE = 5e-3  # by how much the evidence may exceed what is needed: a thousandth of a bound's width
_ROUNDING = 1e-9
_MAX_STEPS = 60
_TOGETHER = 8  # factors of a product of which one logarithm is taken


@kernel()
def certify(drawn, worth, winners, means, joint, winning, action, fit, lam, evidence):
    """(an upper bound on Δ(π) − λg(π), the λ that was used: this one or 0).

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first, worth[arm, y] what a
    value is worth, `winners` the best arm of each draw, means[arm, y] the exact posterior mean. The
    first `fit` draws gave `joint` and `winning` (`Estimate`) and `action`, which is π; they choose
    here how to bet. The others bound, which fails with probability exp(−evidence).
    """
    first, second, chance = action
    pair, pi = np.array([first, second]), np.array([chance, 1 - chance])
    logs = np.zeros((2, len(winning) + 1, worth.shape[1]))
    for j in range(2):
        if pi[j] > 0:
            _fill_logs(joint[pair[j]], means[pair[j]], fit, logs[j])
    places = np.zeros(len(worth), dtype=np.int64)
    for k in range(len(winning)):
        places[winning[k]] = k + 1
    costs = _costs(drawn, worth, winners, pair, pi)
    told = _told(drawn, places[winners[:fit]], pair, pi, logs)
    used, beta, top = _bet(costs[:fit], told, worth, winning, pair, pi, logs, lam, evidence,
                           drawn.shape[2] - fit)  # fmt: skip
    values = costs[fit:]
    if used > 0:
        values -= used * _told(drawn[:, :, fit:], places[winners[fit:]], pair, pi, logs)
    for i in range(len(values)):
        values[i] = min(values[i], top)  # above it by rounding alone
    return upper_mean(values, top, beta, evidence), used


@kernel()
def _fill_logs(joint, mean, fit, logs):
    """L(k + 1, y) of one arm, of joint[k, y]: r is what the first draws say, drawn towards p̄.

    L(0, y), for best arms that the first draws do not know, stays 0: there r is p̄.
    """
    for k in range(len(joint)):
        total = 0.0
        for y in range(len(mean)):
            total += fit * joint[k, y] + _PSEUDO * mean[y]
        for y in range(len(mean)):
            if mean[y] > _NEVER:
                logs[k + 1, y] = np.log((fit * joint[k, y] / mean[y] + _PSEUDO) / total)


@kernel()
def _costs(drawn, worth, winners, pair, pi):
    """x of every draw: a sum of P(Y = y) times a number for each value."""
    others, samples = drawn.shape[1:]
    costs = np.empty(samples)
    without = pi[0] * worth[pair[0], 0] + pi[1] * worth[pair[1], 0]
    least = worth[:, 0] - without
    for i in range(samples):
        costs[i] = least[winners[i]]
    for y in range(others):
        adds = worth[:, y + 1] - worth[:, 0]
        for i in range(samples):
            costs[i] += adds[winners[i]] * drawn[winners[i], y, i]
    for j in range(2):
        a = pair[j]
        for y in range(others if pi[j] > 0 else 0):
            row, more = drawn[a, y], pi[j] * (worth[a, y + 1] - worth[a, 0])
            for i in range(samples):
                costs[i] -= more * row[i]
    return costs


@kernel()
def _told(drawn, ranks, pair, pi, logs):
    """q of the first draws, one for each of `ranks`: the places of their best arms in `logs`."""
    first = pi[0] * logs[0, :, 0] + pi[1] * logs[1, :, 0]
    told = first[ranks]
    for j in range(2):
        for y in range(drawn.shape[1] if pi[j] > 0 else 0):
            row, tells = drawn[pair[j], y], pi[j] * (logs[j, :, y + 1] - logs[j, :, 0])
            for i in range(len(ranks)):
                told[i] += tells[ranks[i]] * row[i]
    return told


@kernel()
def _bet(costs, told, worth, winning, pair, pi, logs, lam, evidence, rest):
    """(λ or 0, β, top): what promises the least bound from the other draws, by these ones.

    Any choice is valid. A gain that is too small to be seen only adds noise; then it is left out.
    """
    fit = len(costs)
    # r was fitted to these draws: half a draw for each of its free numbers
    flattered = (len(winning) - 1) * (worth.shape[1] - 1) / (2 * fit)
    least, used, beta, top = np.inf, 0.0, 1.0, 1.0
    for own in (0.0, lam):
        highest = _largest(worth, winning, pair, pi, logs, own)
        values = costs - own * told
        mean, variance = _moments(values)
        middle = mean + own * flattered
        spread = variance + highest * highest / (2 * fit)
        wide = np.sqrt(2 * spread * evidence / rest) + highest * evidence / (3 * rest)
        if middle + wide < least:
            least, used, top = middle + wide, own, highest
            beta = 1 / max(np.sqrt(rest * spread / (2 * evidence)), top - middle, _ROUNDING)
    return used, beta, top


@kernel()
def _largest(worth, winning, pair, pi, logs, lam):
    """A number that h never exceeds.

    Where an arm of π is itself the best, M is what it brings, and only −λΣ_y p(y)L(y) is left.
    """
    highest, top = worth.max(), 0.0
    for j in range(2):  # where an arm is the best that the first draws do not know
        top += pi[j] * (highest - worth[pair[j]].min())
    for k in range(len(winning)):
        most, total = worth[winning[k]].max(), 0.0
        for j in range(2):
            own = -np.inf
            for y in range(worth.shape[1]):
                cost = 0.0 if pair[j] == winning[k] else most - worth[pair[j], y]
                own = max(own, cost - lam * logs[j, k + 1, y])
            total += pi[j] * own
        top = max(top, total)
    return top


@kernel()
def upper_mean(values, top, beta, evidence):
    """An m with Σ log(1 + β(m − x)) ≥ evidence, at least top − 1/β; or `top` where that is less.

    The mean of what `values` (x ≤ top) were drawn from exceeds it with probability exp(−evidence)
    at most. The sum is concave and rises in m, so Newton's steps towards a little more than the
    evidence never overshoot from the left; what is returned was checked.
    """
    least = top - (1 - _ROUNDING) / beta
    mean, variance = _moments(values)
    second_order = evidence / (beta * len(values)) + beta * variance / 2
    m = max(min(mean + second_order, top), least)
    for _ in range(_MAX_STEPS):
        total, slope = _capital(values, m, beta)
        if total >= evidence + _ROUNDING and (total <= evidence + 2 * _CLOSE or m == least):
            return m
        m = max(m + (evidence + _CLOSE - total) / slope, least)
        if m >= top:
            break
    return top


@kernel()
def _moments(values):
    """The mean and the variance; four sums in turn don't wait for one another."""
    size = len(values)
    whole, sums = size // 4 * 4, np.zeros((2, 4))
    for i in range(0, whole, 4):
        for j in range(4):
            sums[0, j] += values[i + j]
    for i in range(whole, size):
        sums[0, i - whole] += values[i]
    mean = (sums[0, 0] + sums[0, 1] + sums[0, 2] + sums[0, 3]) / size
    for i in range(0, whole, 4):
        for j in range(4):
            sums[1, j] += (values[i + j] - mean) ** 2
    for i in range(whole, size):
        sums[1, i - whole] += (values[i] - mean) ** 2
    return mean, (sums[1, 0] + sums[1, 1] + sums[1, 2] + sums[1, 3]) / size


@kernel()
def _capital(values, m, beta):
    """Σ log(1 + β(m − x)) and its slope in m; one logarithm for several factors."""
    total, slope = 0.0, 0.0
    for start in range(0, len(values), _TOGETHER):
        product, inverse = 1.0, 0.0
        for i in range(start, min(start + _TOGETHER, len(values))):
            factor = 1 + beta * (m - values[i])
            product *= factor
            inverse += beta / factor
        total += np.log(product)
        slope += inverse
    return total, slope
