"""Regret bounds of the paper, and the confidence intervals of Lemmas 3 and 4.

H(Π*) is the entropy, in nats, of the map from every context to its best arm. The plug-in estimate
from draws is biased low, which would make a bound too small: `map_entropy` adds the correction of
Miller and Madow.

γ_t is the largest difference of the information ratio within the confidence sets. For a fixed π the
ratio is largest at (Δ̄, g̲) and smallest at (Δ̲, ḡ); the former is convex in π and so largest at a
single arm. This brackets γ_t: from below by the single arms, from above by the largest minus the
smallest ratio over all π. It is infinite if the interval of one arm's g contains 0 and that of its
Δ does not. Because of the upper bound on g (`gain_interval`) it does not tend to 0 as N grows, so
Theorem 2 does not recover Corollary 2 in the limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isinf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dowise._core.kernels import lazy_kernels
from dowise._core.types import BoolArray, FloatArray
from dowise.errors import DowiseError
from dowise.information.estimates import Estimate, slices
from dowise.information.ratio import MAX_ALL_PAIRS, information_ratio, minimise_ratio

_kernels = lazy_kernels("dowise.information.kl")

_SWEEPS = 2000  # over all cells, for a divergence that converges slowly


@dataclass(frozen=True, eq=False)
class Interval:
    """Lower and upper ends, arrays over arms.

    Examples
    --------
    >>> Interval(np.zeros(2), np.ones(2)).high.tolist()
    [1.0, 1.0]
    """

    low: FloatArray
    high: FloatArray


class Radii(NamedTuple):
    """ε₁, ε₂ and ε₃ of the appendix: for the joint, for p* and for outcomes.

    Examples
    --------
    >>> Radii(0.3, 0.2, 0.1).best
    0.2
    """

    joint: float
    best: float
    outcome: float


def radii(samples: int, arms: int, values: int, delta: float) -> Radii:
    """Return the radii of Lemma 4 for `values` reward values; those of the paper for two.

    Parameters
    ----------
    samples, arms, values : int
        Numbers of draws, arms and reward values.
    delta : float
        Probability of failure.

    Returns
    -------
    Radii

    Raises
    ------
    DowiseError
        If `delta` or `samples` is out of range ("invalid-number").

    Examples
    --------
    >>> round(radii(1000, 3, 2, 0.05).best, 3)
    0.054
    """
    _check_range(samples, delta)

    def radius(events: float) -> float:
        return sqrt((log(events) - log(delta)) / (2 * samples))

    return Radii(radius(6 * values * arms**2), radius(6 * arms), radius(6 * values * arms))


def delta_interval(
    estimate: Estimate, delta: float, samples: int | None = None, printed: bool = True
) -> Interval:
    """Return Lemma 3's interval for Δ(a), which holds for a single arm with probability 1 − delta.

    Parameters
    ----------
    estimate : Estimate
    delta : float
        Probability of failure.
    samples : int, optional
        Use the radius of this number of draws instead of the estimate's.
    printed : bool
        Use the radius as printed in the paper, which is twice the one that is needed.

    Returns
    -------
    Interval

    Raises
    ------
    DowiseError
        If `delta` or `samples` is out of range ("invalid-number").

    Examples
    --------
    >>> from dowise.information import estimate
    >>> delta_interval(estimate([[0.9, 0.1], [0.5, 0.5]]), 0.05).low.tolist()
    [0.0, 0.0]
    """
    n = estimate.samples if samples is None else samples
    _check_range(n, delta)
    regret, radius = estimate.delta, sqrt((2 if printed else 0.5) / n * log(2 / delta))
    extra = estimate.extra
    low, high = np.maximum(extra - 1.0, 0.0), 1.0 + extra  # of the regret under every draw
    scaled = (high - low) * radius
    return Interval(np.maximum(regret - scaled, low), np.minimum(regret + scaled, high))


def gain_interval(estimate: Estimate, delta: float, samples: int | None = None) -> Interval:
    """Return Lemma 4's intervals for g(a), which hold for all arms with probability 1 − delta.

    Parameters
    ----------
    estimate : Estimate
    delta : float
        Probability of failure.
    samples : int, optional
        Use the radii of this number of draws instead of the estimate's.

    Returns
    -------
    Interval

    Raises
    ------
    DowiseError
        If `delta` or `samples` is out of range ("invalid-number"), or the estimate is inconsistent.

    Examples
    --------
    >>> from dowise.information import estimate
    >>> gain_interval(estimate([[0.9, 0.1], [0.5, 0.5]]), 0.05).low.tolist()
    [0.0, 0.0]
    """
    arms, _, values = estimate.joint.shape
    e = radii(estimate.samples if samples is None else samples, arms, values, delta)
    low, high = np.empty(arms), np.empty(arms)
    for some in slices(*estimate.joint.shape, _SWEEPS):
        joint, best, winning = estimate.joint[some], estimate.best, estimate.winning
        apart = arms <= MAX_ALL_PAIRS  # merging arms that never win changes only the rounding
        if not _kernels.gain_bounds(joint, best, winning, apart, e, low[some], high[some]):
            raise DowiseError(
                "the estimate is inconsistent: no distribution is within its radii; create it with "
                "dowise.information.estimate"
            )
    return Interval(low, high)


def gains_above_0(estimate: Estimate, delta: float, samples: int) -> BoolArray:
    """Return True for each arm whose lower end of Lemma 4 is positive, without computing the end.

    Parameters
    ----------
    estimate : Estimate
    delta : float
        Probability of failure.
    samples : int
        Number of draws for the radii.

    Returns
    -------
    numpy.ndarray of bool

    Raises
    ------
    DowiseError
        If `delta` or `samples` is out of range ("invalid-number").

    Examples
    --------
    >>> from dowise.information import estimate
    >>> gains_above_0(estimate([[0.9, 0.1], [0.5, 0.5]]), 0.05, 10**6).tolist()
    [True, False]
    """
    arms, _, values = estimate.joint.shape
    e, is_above = radii(samples, arms, values, delta), np.empty(arms, dtype=np.bool_)
    for some in slices(*estimate.joint.shape):
        joint, best, winning = estimate.joint[some], estimate.best, estimate.winning
        _kernels.are_disjoint(joint, best, winning, arms <= MAX_ALL_PAIRS, e, is_above[some])
    return is_above


def _check_range(samples: int, delta: float) -> None:
    if not 0 < delta < 1:
        raise DowiseError(
            f"delta={delta!r} must be between 0 and 1, such as 0.05", code="invalid-number"
        )
    if not samples >= 1:
        raise DowiseError(f"samples={samples!r} must be at least 1", code="invalid-number")


def theorem_1(coefficient: float, entropy: float, horizon: int) -> float:
    """Return Γ √(H(Π*) T), the bound on the Bayesian regret of Thompson Sampling.

    Parameters
    ----------
    coefficient : float
        Γ; its square is at least the Ψ of every round.
    entropy : float
        H(Π*) in nats.
    horizon : int

    Returns
    -------
    float

    Examples
    --------
    >>> theorem_1(1.0, 4.0, 100)
    20.0
    """
    return coefficient * sqrt(max(entropy, 0.0) * horizon)


def corollary_1(arms: int, contexts: int, horizon: int) -> float:
    """Return √(T |A| |C| log|A| / 2): Theorem 1 with Γ² = |A|/2 and the largest entropy.

    Parameters
    ----------
    arms, contexts, horizon : int

    Returns
    -------
    float

    Raises
    ------
    DowiseError
        If there is no arm ("invalid-number").

    Examples
    --------
    >>> round(corollary_1(2, 1, 100), 2)
    8.33
    """
    if arms < 1:
        raise DowiseError(f"arms={arms!r} must be at least 1", code="invalid-number")
    return sqrt(horizon * arms * contexts * log(arms) / 2)


def corollary_2(arms: int, entropy: float, horizon: int) -> float:
    """Return √(|A|/2 · T · H(Π*)), the bound for IDS with the exact information ratio.

    Parameters
    ----------
    arms : int
    entropy : float
        H(Π*) in nats.
    horizon : int

    Returns
    -------
    float

    Examples
    --------
    >>> corollary_2(2, 1.0, 100)
    10.0
    """
    return sqrt(arms / 2 * horizon * max(entropy, 0.0))


def theorem_2(arms: int, entropy: float, horizon: int, gammas: Iterable[float]) -> float:
    """Return √(H(Π*) (T|A|/2 + 2 Σγ_t)) as the paper states it; infinite if a γ_t is infinite.

    This is the formula of the paper, which bounds an expectation by random γ_t and conditions on an
    event of all rounds.

    Parameters
    ----------
    arms : int
    entropy : float
        H(Π*) in nats.
    horizon : int
    gammas : iterable of float

    Returns
    -------
    float

    Examples
    --------
    >>> theorem_2(2, 1.0, 100, [0.0])
    10.0
    """
    total = sum(gammas)
    return total if isinf(total) else sqrt(max(entropy, 0.0) * (horizon * arms / 2 + 2 * total))


def gamma_bracket(regret: Interval, gain: Interval) -> tuple[float, float]:
    """Return a lower and an upper bound on γ_t of Theorem 2; (∞, ∞) if it is infinite.

    Parameters
    ----------
    regret, gain : Interval

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> gamma_bracket(Interval(np.zeros(1), np.ones(1)), Interval(np.zeros(1), np.ones(1)))
    (inf, inf)
    """
    highest = information_ratio(regret.high, gain.low)
    if np.isinf(highest).any():
        return np.inf, np.inf
    lowest = information_ratio(regret.low, gain.high)
    action = minimise_ratio(regret.low, gain.high)
    pi = action.distribution(len(highest))
    smallest = float(information_ratio(pi @ regret.low, pi @ gain.high))
    return float((highest - lowest).max()), float(highest.max() - smallest)


def map_entropy(counts: ArrayLike) -> tuple[float, float]:
    """Return the entropy of a sample of maps in nats, and its standard error.

    It is the plug-in estimate plus Miller and Madow's correction (kinds − 1) / (2 draws).

    Parameters
    ----------
    counts : array_like
        Number of times each map was drawn.

    Returns
    -------
    tuple of float

    Raises
    ------
    DowiseError
        If a count is negative or all are 0 ("invalid-number").

    Examples
    --------
    >>> map_entropy([10, 0])
    (0.0, 0.0)
    """
    times = np.asarray(counts, dtype=np.float64).ravel()
    if not len(times) or not (times >= 0).all() or not times.sum() >= 1:
        raise DowiseError(
            f"counts={counts!r} must be how often each map was drawn", code="invalid-number"
        )
    draws = times.sum()
    shares = times[times > 0] / draws
    plug_in = float(-(shares * np.log(shares)).sum())
    spread = float((shares * np.log(shares) ** 2).sum() - plug_in**2)
    return plug_in + (len(shares) - 1) / float(2 * draws), sqrt(max(spread, 0.0) / draws)
