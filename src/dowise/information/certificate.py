"""Certificates: bounds on the regret of a round beyond λ times its gain, from its draws.

For a λ > 0 that is fixed in advance, a certificate of a distribution π over arms is an upper bound
on Δ(π) − λg(π) that holds with a given probability over the draws. For Thompson Sampling K/(8λ) is
such a bound, by Γ² ≤ K/2 (Corollary 1), so it is played where the certificate of the π of IDS is
larger. Summed over rounds, certificates bound the Bayesian regret,

    E[Regret] ≤ λH(Π*) + E[Σ cert_t] + δ'·(span + λ log r),

without γ and without an event to condition on. docs/certificate.md has the proof.
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
MIN_SAMPLES = 10  # of which three choose
_LAMBDA_FACTOR = 0.5  # times the λ that is best if no round is certified: docs/certificate.md


class Certificate(NamedTuple):
    """A distribution π over arms from the draws of a round, and its bound on Δ − λg."""

    action: IDSAction
    """π by indices of the arms of the draws: the action of IDS for the draws that choose."""
    bound: float
    """Upper bound on Δ(π) − λg(π) with the given probability; at least −λ log r."""
    limit: float
    """K/(8λ), the bound of Thompson Sampling."""
    counts_gain: bool
    """True if the bound counts the gain of π, False if it bounds Δ(π) alone."""
    chosen_by: Estimate
    """p*, Δ and g from the draws that chose π."""

    @property
    def holds(self) -> bool:
        """True if the bound of π is at most that of Thompson Sampling."""
        return self.bound <= self.limit

    @property
    def value(self) -> float:
        """cert_t of π, or of Thompson Sampling if that is played instead."""
        return min(self.bound, self.limit)


def net_values(payoff: Payoff, arms: int) -> FloatArray:
    """Return the net worth of each reward value under each arm, scaled: (arms, values)."""
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

    Parameters
    ----------
    draws : Draws
        Posterior draws of some arms.
    payoff : Payoff
        Payoff of the problem.
    worth : numpy.ndarray
        `net_values` of these arms.
    means : numpy.ndarray, callable or None
        Exact posterior means of the arms' reward distributions, (arms, values), or a function that
        computes them, which is called only if the gain of π is worth counting by the means of the
        draws that choose. Without exact means Δ(π) alone is bounded.
    lam : float
        λ.
    failure : float
        Probability that the bound does not hold.
    """
    fit = choosing_draws(draws.samples)
    chosen_by = estimate_of(draws.head(fit), payoff)
    action = minimise_ratio(chosen_by.delta, chosen_by.gain)
    winners, _ = draws.winners(payoff)
    others = np.ascontiguousarray(draws.after_first)
    joint, winning, evidence = chosen_by.joint, chosen_by.winning, -log(failure)

    def certify_with(outcomes: FloatArray, max_lam: float) -> tuple[float, float]:
        bound, used_lam = _kernels.certify(
            others, worth, winners, outcomes, joint, winning, action, fit, max_lam, evidence
        )
        return bound, used_lam

    outcomes = chosen_by.outcomes if means is None or callable(means) else means
    bound, used_lam = certify_with(outcomes, 0.0 if means is None else lam)
    if used_lam > 0 and callable(means):
        bound, used_lam = certify_with(means(), lam)
    arms, values = worth.shape
    bound, limit = max(bound, min_bound(lam, values)), thompson_limit(lam, arms)
    return Certificate(action, bound, limit, used_lam > 0, chosen_by)


def choosing_draws(samples: int) -> int:
    """Return the number of draws that choose π."""
    return max(2, int(CHOOSING_SHARE * samples))


def thompson_limit(lam: float, arms: int) -> float:
    """Return K/(8λ), the bound of Thompson Sampling."""
    return arms / (8 * lam)


def min_bound(lam: float, values: int) -> float:
    """Return −λ log r, since the gain of an arm is at most log r."""
    return -lam * log(values)


def default_lam(problem: Problem, horizon: int) -> float:
    """Return the default λ, ½√(TK / (8 |C| log K)), from the problem and the horizon alone.

    Without the factor ½ it minimises λH + TK/(8λ), the bound if no round is certified, for the
    largest entropy, H = |C| log K. The factor makes this bound a quarter larger, and that of
    certified rounds smaller.
    """
    arms = len(problem.arms)
    contexts = prod(float(len(problem.domains[name])) for name in problem.context)
    entropy = max(contexts * log(arms), log(2))
    return _LAMBDA_FACTOR * sqrt(horizon * arms / (8 * entropy))


def certified_regret(
    lam: float, entropy: float, certificates: float, delta: float, worth: FloatArray
) -> float:
    """Return λH(Π*) + E[Σ cert_t] + δ'(span + λ log r), for rewards on the scale of the bounds."""
    if not lam > 0:
        raise DowiseError(f"lam={lam!r} must be more than 0", code="invalid-number")
    span = float(worth.max() - worth.min())
    slack = delta * (span + lam * log(worth.shape[1]))
    return lam * max(entropy, 0.0) + certificates + slack


_PSEUDO_DRAWS = 2.0  # weight of p̄ in r, so that r is never 0 where p̄ is not
_MIN_MEAN = 1e-30  # a value with a smaller mean does not occur
_TOLERANCE = 5e-3  # excess of the evidence over the required one: a thousandth of a bound's width
_ROUNDING = 1e-9
_MAX_STEPS = 60
_FACTORS = 8  # factors of a product whose logarithm is taken


@kernel()
def certify(drawn, worth, winners, means, joint, winning, action, fit, lam, evidence):
    """Return an upper bound on Δ(π) − λg(π), and the λ that was used: `lam`, or 0 without gain.

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first, worth[arm, y] the worth
    of a value, winners[draw] the best arm, means[arm, y] the exact posterior mean. `joint` and
    `winning` (see `Estimate`) and `action`, which is π, come from the first `fit` draws, which also
    choose the bet. The other draws make the bound, which fails with probability exp(−evidence).
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
    gains = _gains(drawn, places[winners[:fit]], pair, pi, logs)
    bounding = drawn.shape[2] - fit
    used_lam, beta, top = _bet(
        costs[:fit], gains, worth, winning, pair, pi, logs, lam, evidence, bounding
    )
    values = costs[fit:]
    if used_lam > 0:
        values -= used_lam * _gains(drawn[:, :, fit:], places[winners[fit:]], pair, pi, logs)
    for i in range(len(values)):
        values[i] = min(values[i], top)  # above it by rounding alone
    return upper_mean(values, top, beta, evidence), used_lam


@kernel()
def _fill_logs(joint, mean, fit, logs):
    """Fill L(k + 1, y) = log(r(y | k) / p̄(y)) of an arm: r is joint[k, y], shrunk towards p̄.

    L(0, y) stays 0: it is for best arms that win none of the first draws, where r is p̄.
    """
    for k in range(len(joint)):
        total = 0.0
        for y in range(len(mean)):
            total += fit * joint[k, y] + _PSEUDO_DRAWS * mean[y]
        for y in range(len(mean)):
            if mean[y] > _MIN_MEAN:
                logs[k + 1, y] = np.log((fit * joint[k, y] / mean[y] + _PSEUDO_DRAWS) / total)


@kernel()
def _costs(drawn, worth, winners, pair, pi):
    """Return x, the regret of π, under every draw: a linear function of the P(Y = y)."""
    others, samples = drawn.shape[1:]
    costs = np.empty(samples)
    base = pi[0] * worth[pair[0], 0] + pi[1] * worth[pair[1], 0]
    constants = worth[:, 0] - base
    for i in range(samples):
        costs[i] = constants[winners[i]]
    for y in range(others):
        slopes = worth[:, y + 1] - worth[:, 0]
        for i in range(samples):
            costs[i] += slopes[winners[i]] * drawn[winners[i], y, i]
    for j in range(2):
        a = pair[j]
        for y in range(others if pi[j] > 0 else 0):
            row, slope = drawn[a, y], pi[j] * (worth[a, y + 1] - worth[a, 0])
            for i in range(samples):
                costs[i] -= slope * row[i]
    return costs


@kernel()
def _gains(drawn, ranks, pair, pi, logs):
    """Return q under every draw, a log ratio whose mean is at most g(π).

    ranks[i] is the index in `logs` of the best arm under draw i.
    """
    constants = pi[0] * logs[0, :, 0] + pi[1] * logs[1, :, 0]
    gains = constants[ranks]
    for j in range(2):
        for y in range(drawn.shape[1] if pi[j] > 0 else 0):
            row, slopes = drawn[pair[j], y], pi[j] * (logs[j, :, y + 1] - logs[j, :, 0])
            for i in range(len(ranks)):
                gains[i] += slopes[ranks[i]] * row[i]
    return gains


@kernel()
def _bet(costs, gains, worth, winning, pair, pi, logs, lam, evidence, bounding):
    """Return (λ or 0, β, top) that promise the smallest bound from the `bounding` other draws.

    Any choice is valid. A gain that is too small to be detected only adds noise: then λ is 0.
    """
    fit = len(costs)
    # r was fitted to these draws, which flatters q by half a draw for each of its free numbers.
    bias = (len(winning) - 1) * (worth.shape[1] - 1) / (2 * fit)
    least, best_lam, beta, top = np.inf, 0.0, 1.0, 1.0
    for candidate in (0.0, lam):
        highest = _largest(worth, winning, pair, pi, logs, candidate)
        values = costs - candidate * gains
        mean, variance = _moments(values)
        middle = mean + candidate * bias
        spread = variance + highest * highest / (2 * fit)
        width = np.sqrt(2 * spread * evidence / bounding) + highest * evidence / (3 * bounding)
        if middle + width < least:
            least, best_lam, top = middle + width, candidate, highest
            beta = 1 / max(np.sqrt(bounding * spread / (2 * evidence)), top - middle, _ROUNDING)
    return best_lam, beta, top


@kernel()
def _largest(worth, winning, pair, pi, logs, lam):
    """Return an upper bound on h = x − λq under any draw.

    Where an arm of π is itself the best, its costs cancel, and only −λ Σ_y p(y) L(y) remains.
    """
    highest, top = worth.max(), 0.0
    for j in range(2):  # where the best arm wins none of the first draws
        top += pi[j] * (highest - worth[pair[j]].min())
    for k in range(len(winning)):
        max_worth, total = worth[winning[k]].max(), 0.0
        for j in range(2):
            largest = -np.inf
            for y in range(worth.shape[1]):
                cost = 0.0 if pair[j] == winning[k] else max_worth - worth[pair[j], y]
                largest = max(largest, cost - lam * logs[j, k + 1, y])
            total += pi[j] * largest
        top = max(top, total)
    return top


@kernel()
def upper_mean(values, top, beta, evidence):
    """Return an upper confidence bound on the mean of the distribution of `values` (x ≤ top).

    It is an m ≥ top − 1/β with Σ log(1 + β(m − x)) ≥ evidence, or `top` if that is smaller, and the
    mean exceeds it with probability exp(−evidence) at most (betting). The sum is concave and rises
    in m, so Newton's method towards a little more than the evidence never overshoots from the left;
    the returned m was checked.
    """
    least = top - (1 - _ROUNDING) / beta
    mean, variance = _moments(values)
    second_order = evidence / (beta * len(values)) + beta * variance / 2
    m = max(min(mean + second_order, top), least)
    for _ in range(_MAX_STEPS):
        total, slope = _capital(values, m, beta)
        if total >= evidence + _ROUNDING and (total <= evidence + 2 * _TOLERANCE or m == least):
            return m
        m = max(m + (evidence + _TOLERANCE - total) / slope, least)
        if m >= top:
            break
    return top


@kernel()
def _moments(values):
    """Return mean and variance; four independent sums run in parallel."""
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
    """Return Σ log(1 + β(m − x)) and its slope in m, with one logarithm for several factors."""
    total, slope = 0.0, 0.0
    for start in range(0, len(values), _FACTORS):
        product, inverse = 1.0, 0.0
        for i in range(start, min(start + _FACTORS, len(values))):
            factor = 1 + beta * (m - values[i])
            product *= factor
            inverse += beta / factor
        total += np.log(product)
        slope += inverse
    return total, slope
