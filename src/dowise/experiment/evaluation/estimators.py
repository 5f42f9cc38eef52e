"""Estimators of what a policy would have earned, and their intervals.

All of them are about θ = (1/T) Σ_t Σ_a q_t(a) μ_t(a); see `Evaluation`. The array `target` has
q_t(a): the target's probabilities π_t(a), or their difference from those of the log, e_t(a). If
arms have costs, μ_t(a) is net of them. Since c(a) is known, (1/T) Σ_t Σ_a q_t(a) c(a) is simply
subtracted from the estimates and intervals of the gross rewards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from dowise._core.types import FloatArray
from dowise.experiment.evaluation.decision_log import Replay

LAMBDAS = 2.0 ** (-np.arange(19) / 2)
"""Bets λ, each √2 times the next: they suit sums of squares Σξ² from about ten to a million."""
# λξ ≥ −0.8. In simulated worlds intervals at 0.5 were some 5 % wider, at 0.95 about as wide.
_LARGEST_LOSS = 0.8
_MAX_CELLS = 1_000_000  # of the arrays that are worked on at a time


def importance_ratios(target: FloatArray, logged: FloatArray) -> FloatArray:
    """Return g_t(a) = q_t(a) / e_t(a), and 0 where e_t(a) is 0."""
    ratios: FloatArray = np.divide(target, logged, out=np.zeros_like(target), where=logged > 0)
    return ratios


def interval(target: FloatArray, replay: Replay, level: float) -> tuple[float, float]:
    """Return an interval for θ with coverage of at least `level`, half of the misses on each side.

    An upper bound is a lower bound for the rewards 1 − Y.
    """
    alpha, total = (1 - level) / 2, float(target.sum()) / len(replay)
    low = lower_bound(target, replay, alpha)
    flipped = replace(replay, predictions=1 - replay.predictions, rewards=1 - replay.rewards)
    high = total - lower_bound(target, flipped, alpha)
    return min(low, high), max(low, high)


def lower_bound(target: FloatArray, replay: Replay, alpha: float) -> float:
    """Return a bound that θ is below with probability at most α, over all lengths of the log."""
    wealth = log_wealth(target, replay)
    bound = _solve_for_total(wealth - np.log(len(LAMBDAS)) + np.log(alpha))
    return max(bound, float(np.minimum(target, 0).sum())) / len(replay)


def log_wealth(target: FloatArray, replay: Replay) -> FloatArray:
    """Return for each λ the logarithm of its supermartingale at Θ = Tθ = 0.

    At any other Θ it is smaller by λΘ. The mean of exp(log_wealth − λΘ) over all λ is what 1/α
    bounds.
    """
    logs = np.zeros(len(LAMBDAS))
    rows = max(1, _MAX_CELLS // (len(LAMBDAS) * target.shape[1]))
    for first in range(0, len(replay), rows):
        chunk = slice(first, first + rows)
        logs += _log_wealth_of_rows(target[chunk], replay[chunk])
    return logs


def _log_wealth_of_rows(target: FloatArray, replay: Replay) -> FloatArray:
    """Compute `log_wealth` of some decisions at once; the first axis of the arrays is λ."""
    logged, predictions, arms, rows = replay.logged, replay.predictions, replay.arms, replay.rows
    ratio, lam = importance_ratios(target, logged), LAMBDAS[:, None]
    shortfall = np.where(target > 0, predictions, 1 - predictions)  # the largest of a reward
    limit = np.divide(
        _LARGEST_LOSS, shortfall, out=np.full_like(shortfall, np.inf), where=shortfall > 0
    )
    truncated = np.minimum(np.abs(ratio), limit / lam[:, None])
    certain = target * predictions - (np.abs(target) - truncated * logged) * shortfall
    residuals = np.sign(ratio[rows, arms]) * (replay.rewards - predictions[rows, arms])
    growth = np.log1p(lam * truncated[:, rows, arms] * residuals)
    logs: FloatArray = growth.sum(axis=1) + LAMBDAS * certain.sum(axis=(1, 2))
    return logs


def _solve_for_total(logs: FloatArray) -> float:
    """Return the Θ with Σ_k exp(logs_k − λ_k Θ) = 1, by Newton's method.

    It converges from below: the logarithm of the sum is convex and falls with Θ, and at the start a
    single term is 1.
    """
    theta = float((logs / LAMBDAS).max())
    for _ in range(100):
        terms = logs - LAMBDAS * theta
        total = float(np.logaddexp.reduce(terms))
        step = total / float(np.exp(terms - total) @ LAMBDAS)
        theta += step
        if step <= 1e-12 * max(1.0, abs(theta)):
            break
    return theta


@dataclass(frozen=True)
class IntervalEstimate:
    """An estimate with a guaranteed interval, and the narrower one of the normal approximation."""

    value: float
    low: float
    high: float
    normal: tuple[float, float] | None
    """None if the target played an arm with probability 0, which the approximation ignores."""

    @property
    def interval(self) -> tuple[float, float]:
        """The guaranteed interval (low, high)."""
        return self.low, self.high

    def rescaled(self, scale: Callable[[float], float]) -> IntervalEstimate:
        """Return the estimate in other units, by a linear function, rising or falling."""
        low, high = sorted((scale(self.low), scale(self.high)))
        normal = None
        if self.normal is not None:
            first, second = sorted(map(scale, self.normal))
            normal = first, second
        return IntervalEstimate(scale(self.value), low, high, normal)


def importance_weights(replay: Replay) -> FloatArray:
    """Return π_t(A_t) / e_t(A_t): how much each decision counts for the target."""
    weights: FloatArray = importance_ratios(replay.target, replay.logged)[replay.rows, replay.arms]
    return weights


def doubly_robust(replay: Replay, target: FloatArray, level: float) -> IntervalEstimate:
    """Estimate θ by the model's predictions, corrected by what was observed (AIPW).

    (1/T) Σ_t [Σ_a q_t(a) m_t(a) + q_t(A_t)/e_t(A_t) (Y_t − m_t(A_t))]. The estimate is unbiased
    however wrong the predictions m_t are, since they were made before the outcome; good ones make
    it precise. For arms that could not be played it rests on the model alone.
    """
    rows, arms, predictions = replay.rows, replay.arms, replay.predictions
    ratio = importance_ratios(target, replay.logged)[rows, arms]
    corrections = ratio * (replay.rewards - predictions[rows, arms])
    cost = replay.cost_of(target)
    value = float((target * predictions).sum()) / len(replay) + float(corrections.mean()) - cost
    low, high = interval(target, replay, level)
    normal = None
    if len(replay) > 1 and not target[replay.logged == 0].any():
        error = float(corrections.std(ddof=1)) / sqrt(len(replay))
        half = NormalDist().inv_cdf((1 + level) / 2) * error
        normal = value - half, value + half
    return IntervalEstimate(value, low - cost, high - cost, normal)


def inverse_propensity(replay: Replay, level: float) -> IntervalEstimate:
    """Estimate (1/T) Σ_t π_t(A_t)/e_t(A_t) Y_t, net of the costs of the target's choices.

    It is unbiased if the target plays only arms that could be played. It equals the doubly robust
    estimate under a model that expects the worst reward of every arm.
    """
    worst = replace(replay, predictions=np.zeros_like(replay.predictions))
    return doubly_robust(worst, replay.target, level)


def self_normalised(replay: Replay) -> float | None:
    """Estimate Σ w_t Y_t / Σ w_t: steadier, but slightly biased; None if all weights are 0."""
    weights = importance_weights(replay)
    total = float(weights.sum())
    if not total > 0:
        return None
    return float(weights @ replay.rewards) / total - replay.cost_of(replay.target)
