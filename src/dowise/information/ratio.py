"""The information ratio and its minimiser: IDSAction of the appendix, in closed form.

Ψ(π) = (πᵀΔ)² / πᵀg is convex in π, and a distribution on at most two arms attains its minimum
(Russo & Van Roy 2014). On the pair (a, b), with q the probability of a, d = Δ_a − Δ_b and
e = g_a − g_b, the derivative of (Δ_b + qd)² / (g_b + qe) vanishes at q = (eΔ_b − 2d g_b) / (de);
it is compared with both ends, so no grid over q is needed. Conventions: 0/0 = 0 and x/0 = ∞.

>>> minimise_ratio([0.2, 0.1], [0.0, 0.5])         # arm 1 is cheaper and teaches more
IDSAction(first=1, second=1, probability=1.0)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise.compiling import kernels_of
from dowise.errors import DowiseError

__all__ = ["IDSAction", "information_ratio", "least_ratio", "minimise_ratio"]

_kernels = kernels_of("dowise.information.pairs")

FEW = 256  # so many arms, and all pairs are tried; of more, those that can matter
NOTHING = 1e-12  # a gain of at most this is rounding, and counts as 0

Floats = NDArray[np.float64]


class IDSAction(NamedTuple):
    """Play `first` with this probability, otherwise `second`; a pure choice is (a, a, 1.0)."""

    first: int
    second: int
    probability: float

    def distribution(self, arms: int) -> Floats:
        """π: the probability of each of so many arms."""
        pi = np.zeros(arms)
        pi[self.first] += self.probability
        pi[self.second] += 1 - self.probability
        return pi


def information_ratio(regret: ArrayLike, gain: ArrayLike) -> Floats:
    """Ψ = Δ²/g, element by element, with 0/0 = 0 and x/0 = ∞."""
    squared, known = np.broadcast_arrays(np.square(regret, dtype=np.float64), np.asarray(gain))
    ratio = np.where(squared > 0, np.inf, 0.0)
    np.divide(squared, known, out=ratio, where=known > 0)
    return ratio


def minimise_ratio(delta: ArrayLike, gain: ArrayLike) -> IDSAction:
    """The distribution over arms with the smallest information ratio.

    Where no arm teaches anything, the arm with the least regret. Among equals a pure choice goes
    before a mixed one, then the arms that come first.
    """
    regret, known = np.asarray(delta, np.float64), np.asarray(gain, np.float64)
    if regret.shape != known.shape or regret.ndim != 1 or not len(regret):
        raise DowiseError(
            f"delta {regret.shape} and gain {known.shape}: give a number for each arm"
        )
    if len(regret) <= FEW:
        action = IDSAction(*_kernels.best_pair(regret, known, NOTHING))
    else:
        known = np.where(known <= NOTHING, np.minimum(known, 0.0), known)  # a bad one stays bad
        order = np.lexsort((-known, regret))
        action = IDSAction(*_kernels.best_pair_on_hull(regret, known, order))
    if action.first < 0:
        raise DowiseError(
            f"regrets and gains must be finite and not negative, not {delta!r} and {gain!r}"
        )
    return action


def least_ratio(delta: ArrayLike, gain: ArrayLike) -> IDSAction:
    """The single arm with the smallest Δ²/g, ties going to the least regret, then to the first.

    >>> least_ratio([0.2, 0.1], [0.0, 0.0])
    IDSAction(first=1, second=1, probability=1.0)
    """
    regret, known = np.asarray(delta, np.float64), np.asarray(gain, np.float64)
    ratio = information_ratio(regret, np.where(known <= NOTHING, 0.0, known))
    chosen = int(np.lexsort((regret, ratio))[0])
    return IDSAction(chosen, chosen, 1.0)
