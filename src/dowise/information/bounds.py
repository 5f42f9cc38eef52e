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
from math import isinf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from dowise.errors import DowiseError
from dowise.information.intervals import Interval
from dowise.information.ratio import information_ratio, minimise_ratio

__all__ = ["corollary_1", "corollary_2", "gamma_bracket", "map_entropy", "theorem_1", "theorem_2"]


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
