"""Intervals that hold for adaptively collected data, in finite samples and at all times at once.

What is wanted is Θ = Σ_t Σ_a q_t(a) μ_t(a), where μ_t(a) is the mean reward, in [0, 1], of an arm
at decision t, and q_t is known before the arm is drawn: π_t for the value of a policy, π_t − e_t
for what it has over the one that decided. With predictions m_t and g_t(a) = q_t(a)/e_t(a) the term
Σ_a q_t(a) m_t(a) + ξ_t, where ξ_t = g_t(A_t)(Y_t − m_t(A_t)), has the right mean whatever the past
was. For λ > 0 with λξ_t > −1 always,

    Π_t (1 + λξ_t) exp(−λ E[ξ_t | past])

is a nonnegative supermartingale that starts at 1, because 1 + x ≤ exp(x). So (Ville) it reaches
1/α ever with probability α at most, and where it does not, Σ_t E[ξ_t | past] is above
(Σ_t log(1 + λξ_t) − log(1/α)) / λ. An average over several λ is a supermartingale as well, so
nobody need know beforehand which one fits. The mean reward may change with t. (Betting on a bounded
mean: Waudby-Smith & Ramdas 2023; on values of policies that change with time: Waudby-Smith et al.
2022. Here λ is constant, so that all decisions have the same weight in Θ.)

Where e_t(a) is small, g_t(a) is too large for λ. Then it is cut to what λ bears, which is known
before the draw, and for what was cut off the worst is assumed: a reward of 0 where it counts for
Θ, of 1 where it counts against. Arms that could not be played, e_t(a) = 0, are cut off entirely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LAMBDAS", "interval", "lower_bound", "ratios", "winnings"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LAMBDAS = 2.0 ** (-np.arange(19) / 2)
"""Each is √2 from the next: fit for sums of squares Σξ² from some ten to a million."""
# λξ ≥ −0.8. In simulated worlds intervals at 0.5 were some 5 % wider, at 0.95 about as wide.
_LARGEST_LOSS = 0.8
_ROOM = 1_000_000  # so many numbers are worked on at once


def ratios(wanted: Floats, logged: Floats) -> Floats:
    """g_t(a) = q_t(a) / e_t(a), and 0 where e_t(a) is 0."""
    found: Floats = np.divide(wanted, logged, out=np.zeros_like(wanted), where=logged > 0)
    return found


def interval(
    wanted: Floats,
    logged: Floats,
    predictions: Floats,
    arms: Integers,
    rewards: Floats,
    level: float,
) -> tuple[float, float]:
    """For Θ/T, with coverage of at least `level`; each side misses with half of the rest.

    An upper bound is a lower bound for the rewards 1 − Y.
    """
    alpha, total = (1 - level) / 2, float(wanted.sum()) / len(rewards)
    low = lower_bound(wanted, logged, predictions, arms, rewards, alpha)
    flipped = lower_bound(wanted, logged, 1 - predictions, arms, 1 - rewards, alpha)
    return min(low, total - flipped), max(low, total - flipped)


def lower_bound(
    wanted: Floats,
    logged: Floats,
    predictions: Floats,
    arms: Integers,
    rewards: Floats,
    alpha: float,
) -> float:
    """A number that Θ/T is below with probability α at most, now or ever."""
    won = winnings(wanted, logged, predictions, arms, rewards)
    bound = _crossing(won - np.log(len(LAMBDAS)) + np.log(alpha))
    return max(bound, float(np.minimum(wanted, 0).sum())) / len(rewards)


def winnings(
    wanted: Floats, logged: Floats, predictions: Floats, arms: Integers, rewards: Floats
) -> Floats:
    """For each λ the logarithm of its supermartingale at Θ = 0: at any Θ it is λΘ less.

    The mean of exp(winnings − λΘ) over the λ is what 1/α bounds.
    """
    logs = np.zeros(len(LAMBDAS))
    rows = max(1, _ROOM // (len(LAMBDAS) * wanted.shape[1]))
    for first in range(0, len(rewards), rows):
        some = slice(first, first + rows)
        logs += _won(wanted[some], logged[some], predictions[some], arms[some], rewards[some])
    return logs


def _won(
    wanted: Floats, logged: Floats, predictions: Floats, arms: Integers, rewards: Floats
) -> Floats:
    """The same for some decisions; the first axis is λ."""
    played, ratio, lam = np.arange(len(rewards)), ratios(wanted, logged), LAMBDAS[:, None]
    room = np.where(wanted > 0, predictions, 1 - predictions)  # how far a reward may fall short
    limit = np.divide(_LARGEST_LOSS, room, out=np.full_like(room, np.inf), where=room > 0)
    kept = np.minimum(np.abs(ratio), limit / lam[:, None])
    sure = wanted * predictions - (np.abs(wanted) - kept * logged) * room
    surprises = np.sign(ratio[played, arms]) * (rewards - predictions[played, arms])
    growth = np.log1p(lam * kept[:, played, arms] * surprises)
    logs: Floats = growth.sum(axis=1) + LAMBDAS * sure.sum(axis=(1, 2))
    return logs


def _crossing(logs: Floats) -> float:
    """The Θ with Σ_k exp(logs_k − λ_k Θ) = 1: Newton's method, which comes from below.

    The logarithm of the sum is convex and falls with Θ, and at the start one term alone is 1.
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
