"""The regret bounds of the paper as functions of their ingredients, and γ of Theorem 2.

H(Π*) is the entropy, in nats, of the map from every context to its best arm. It is estimated from
draws, and the plug-in estimate is biased low, which would make a bound too small: `map_entropy`
adds Miller and Madow's correction.

γ_t is how much the information ratio may differ within the confidence sets. For a given π the ratio
is largest at (Δ̄, g̲) and smallest at (Δ̲, ḡ); the former is convex in π and so largest at a single
arm. That brackets γ_t: from below by the single arms, from above by the largest minus the smallest
ratio over all π. It is infinite as soon as one arm's g may be 0 and its Δ not. By the behaviour of
the upper bound on g (see `intervals`) it does not tend to 0 as N grows, so Theorem 2 does not
recover Corollary 2 in the limit.
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

_SWEEPS = 2000  # over all cells, that a divergence may take


@dataclass(frozen=True, eq=False)
class Interval:
    """Lower and upper ends, arrays over arms."""

    low: FloatArray
    high: FloatArray


class Radii(NamedTuple):
    """ε₁, ε₂ and ε₃ of the appendix."""

    joint: float
    best: float
    outcome: float


def radii(samples: int, arms: int, values: int, delta: float) -> Radii:
    """The radii of Lemma 4 for r reward values; the printed ones at r = 2."""
    failure = _checked(samples, delta)

    def radius(events: float) -> float:
        return sqrt((log(events) - log(failure)) / (2 * samples))

    return Radii(radius(6 * values * arms**2), radius(6 * arms), radius(6 * values * arms))


def delta_interval(
    estimate: Estimate, delta: float, samples: int | None = None, printed: bool = True
) -> Interval:
    """Lemma 3: an interval for Δ(a), each arm's alone with probability 1 − delta.

    `samples` asks for the radius that another number of draws would give.
    """
    n = estimate.samples if samples is None else samples
    failure = _checked(n, delta)
    regret, radius = estimate.delta, sqrt((2 if printed else 0.5) / n * log(2 / failure))
    # The regret of an arm lies between these under every draw.
    extra = estimate.extra
    least, most = np.maximum(extra - 1.0, 0.0), 1.0 + extra
    own = (most - least) * radius
    return Interval(np.maximum(regret - own, least), np.minimum(regret + own, most))


def gain_interval(estimate: Estimate, delta: float, samples: int | None = None) -> Interval:
    """Lemma 4: intervals for g(a) that hold for all arms at once with probability 1 − delta."""
    arms, _, values = estimate.joint.shape
    e = radii(estimate.samples if samples is None else samples, arms, values, delta)
    low, high = np.empty(arms), np.empty(arms)
    for some in slices(*estimate.joint.shape, _SWEEPS):
        joint, best, winning = estimate.joint[some], estimate.best, estimate.winning
        if not _kernels.gain_bounds(
            joint, best, winning, _kept_apart(arms), e, low[some], high[some]
        ):
            raise DowiseError(
                "the estimate is inconsistent: no distribution lies within its radii; make it with "
                "dowise.information.estimate"
            )
    return Interval(low, high)


def gains_above_0(estimate: Estimate, delta: float, samples: int) -> BoolArray:
    """Of every arm whether the lower end of Lemma 4 is positive: sooner known than the end."""
    arms, _, values = estimate.joint.shape
    e, found = radii(samples, arms, values, delta), np.empty(arms, dtype=np.bool_)
    for some in slices(*estimate.joint.shape):
        joint, best, winning = estimate.joint[some], estimate.best, estimate.winning
        _kernels.are_apart(joint, best, winning, _kept_apart(arms), e, found[some])
    return found


def _kept_apart(arms: int) -> bool:
    """Or else arms that never win are taken together: the same but for rounding."""
    return arms <= MAX_ALL_PAIRS


def _checked(samples: int, failure: float) -> float:
    if not 0 < failure < 1:
        raise DowiseError(f"delta={failure!r} must be between 0 and 1, such as 0.05")
    if not samples >= 1:
        raise DowiseError(f"samples={samples!r} must be at least 1")
    return failure


def theorem_1(coefficient: float, entropy: float, horizon: int) -> float:
    """Γ √(H(Π*) T): the Bayesian regret of Thompson Sampling, for Γ² at least every round's Ψ."""
    return coefficient * sqrt(max(entropy, 0.0) * horizon)


def corollary_1(arms: int, contexts: int, horizon: int) -> float:
    """√(T |A| |C| log|A| / 2): Theorem 1 with Γ² = |A|/2 and the largest entropy there is."""
    if arms < 1:
        raise DowiseError(f"arms={arms!r} must be at least 1")
    return sqrt(horizon * arms * contexts * log(arms) / 2)


def corollary_2(arms: int, entropy: float, horizon: int) -> float:
    """√(|A|/2 · T · H(Π*)): IDS with the information ratio computed exactly."""
    return sqrt(arms / 2 * horizon * max(entropy, 0.0))


def theorem_2(arms: int, entropy: float, horizon: int, gammas: Iterable[float]) -> float:
    """√(H(Π*) (T|A|/2 + 2 Σγ_t)), as the paper states it; infinite if one γ_t is.

    (The paper bounds an expectation by γ_t, which are random, and conditions on an event of all
    rounds; we report its formula and say so.)
    """
    total = sum(gammas)
    return total if isinf(total) else sqrt(max(entropy, 0.0) * (horizon * arms / 2 + 2 * total))


def gamma_bracket(regret: Interval, gain: Interval) -> tuple[float, float]:
    """Numbers between which γ_t of Theorem 2 lies; (∞, ∞) where it is infinite."""
    highest = information_ratio(regret.high, gain.low)
    if np.isinf(highest).any():
        return np.inf, np.inf
    lowest = information_ratio(regret.low, gain.high)
    action = minimise_ratio(regret.low, gain.high)
    pi = action.distribution(len(highest))
    smallest = float(information_ratio(pi @ regret.low, pi @ gain.high))
    return float((highest - lowest).max()), float(highest.max() - smallest)


def map_entropy(counts: ArrayLike) -> tuple[float, float]:
    """The entropy, in nats, of what was counted, and its standard error.

    Plug-in plus Miller and Madow's (kinds − 1) / (2 draws).
    """
    seen = np.asarray(counts, dtype=np.float64).ravel()
    if not len(seen) or not (seen >= 0).all() or not seen.sum() >= 1:
        raise DowiseError(f"counts={counts!r}: give how often each map was drawn")
    draws = seen.sum()
    shares = seen[seen > 0] / draws
    plug_in = float(-(shares * np.log(shares)).sum())
    spread = float((shares * np.log(shares) ** 2).sum() - plug_in**2)
    return plug_in + (len(shares) - 1) / float(2 * draws), sqrt(max(spread, 0.0) / draws)
