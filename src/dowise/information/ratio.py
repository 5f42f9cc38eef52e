"""The information ratio and its minimiser: IDSAction of the appendix, in closed form.

Ψ(π) = (πᵀΔ)² / πᵀg is convex in π, and a distribution on at most two arms attains its minimum
(Russo & Van Roy 2014). On the pair (a, b), with q the probability of a, d = Δ_a − Δ_b and
e = g_a − g_b, the derivative of (Δ_b + qd)² / (g_b + qe) vanishes at q = (eΔ_b − 2d g_b) / (de);
it is compared with both ends, so no grid over q is needed. Conventions: 0/0 = 0 and x/0 = ∞.

>>> minimise_ratio([0.2, 0.1], [0.0, 0.5])         # arm 1 costs less and teaches more
IDSAction(first=1, second=1, probability=1.0)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dowise._core.kernels import kernel, lazy_kernels
from dowise._core.types import FloatArray
from dowise.errors import DowiseError

_kernels = lazy_kernels("dowise.information.ratio")

MAX_ALL_PAIRS = 256  # with more arms only pairs on the hull are tried
MIN_GAIN = 1e-12  # smaller gains are rounding, and count as 0


class IDSAction(NamedTuple):
    """Play `first` with this probability, otherwise `second`; a single arm a is (a, a, 1.0).

    Examples
    --------
    >>> IDSAction(0, 2, 0.25).distribution(3).tolist()
    [0.25, 0.0, 0.75]
    """

    first: int
    second: int
    probability: float

    def distribution(self, arms: int) -> FloatArray:
        """Return π, the probability of each of `arms` arms."""
        pi = np.zeros(arms)
        pi[self.first] += self.probability
        pi[self.second] += 1 - self.probability
        return pi


def information_ratio(regret: ArrayLike, gain: ArrayLike) -> FloatArray:
    """Return Ψ = Δ²/g for each element, with 0/0 = 0 and x/0 = ∞.

    Parameters
    ----------
    regret, gain : array_like

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> information_ratio([0.2, 0.0], [0.1, 0.0]).round(2).tolist()
    [0.4, 0.0]
    """
    squares, gains = np.broadcast_arrays(np.square(regret, dtype=np.float64), np.asarray(gain))
    ratio = np.where(squares > 0, np.inf, 0.0)
    np.divide(squares, gains, out=ratio, where=gains > 0)
    return ratio


def minimise_ratio(delta: ArrayLike, gain: ArrayLike) -> IDSAction:
    """Return the distribution over arms with the smallest information ratio.

    If no arm has a gain, it is the arm with the least regret. Ties go to a single arm, then to the
    first arms.

    Parameters
    ----------
    delta, gain : array_like
        Δ and g of each arm.

    Returns
    -------
    IDSAction

    Raises
    ------
    DowiseError
        If the shapes differ ("invalid-shape"), or a number is negative or not finite
        ("invalid-number").

    Examples
    --------
    >>> minimise_ratio([0.2, 0.1], [0.0, 0.5])
    IDSAction(first=1, second=1, probability=1.0)
    """
    regret, gains = np.asarray(delta, np.float64), np.asarray(gain, np.float64)
    if regret.shape != gains.shape or regret.ndim != 1 or not len(regret):
        raise DowiseError(
            f"delta {regret.shape} and gain {gains.shape} must have one number per arm",
            code="invalid-shape",
        )
    if len(regret) <= MAX_ALL_PAIRS:
        action = IDSAction(*_kernels.best_pair(regret, gains, MIN_GAIN))
    else:
        # A small gain is set to 0; a negative one stays, to be rejected below.
        gains = np.where(gains <= MIN_GAIN, np.minimum(gains, 0.0), gains)
        order = np.lexsort((-gains, regret))
        action = IDSAction(*_kernels.best_pair_on_hull(regret, gains, order))
    if action.first < 0:
        raise DowiseError(
            f"regrets and gains must be finite and not negative, not {delta!r} and {gain!r}",
            code="invalid-number",
        )
    return action


def least_ratio(delta: ArrayLike, gain: ArrayLike) -> IDSAction:
    """Return the single arm with the smallest Δ²/g; ties go to the least regret, then the first.

    Parameters
    ----------
    delta, gain : array_like
        Δ and g of each arm.

    Returns
    -------
    IDSAction

    Examples
    --------
    >>> least_ratio([0.2, 0.1], [0.0, 0.0])
    IDSAction(first=1, second=1, probability=1.0)
    """
    regret, gains = np.asarray(delta, np.float64), np.asarray(gain, np.float64)
    ratio = information_ratio(regret, np.where(gains <= MIN_GAIN, 0.0, gains))
    chosen = int(np.lexsort((regret, ratio))[0])
    return IDSAction(chosen, chosen, 1.0)


_ROUNDING = 1e-12


@kernel()
def _best_single(regret, gain, min_gain):
    """Return the first arm with the smallest Ψ, and its Ψ.

    If no arm has a gain, return the arm of least regret and −1, which ends the search. The arm is
    −1 if a number is negative or not finite.
    """
    single, least = 0, np.inf
    cheapest, any_gain = 0, False
    for a in range(len(regret)):
        if not (0 <= regret[a] < np.inf and 0 <= gain[a] < np.inf):
            return -1, -1.0
        if regret[a] < regret[cheapest]:
            cheapest = a
        if gain[a] > min_gain:
            any_gain = True
            ratio = regret[a] * regret[a] / gain[a]
        else:
            ratio = np.inf if regret[a] > 0 else 0.0
        if ratio < least:
            single, least = a, ratio
    return (single, least) if any_gain else (cheapest, -1.0)


@kernel()
def _mixture(regret_a, gain_a, regret_b, gain_b):
    """Return (Ψ, q, 1 − q) at the inner stationary point of a pair; Ψ is ∞ if there is none."""
    d, e = regret_a - regret_b, gain_a - gain_b
    if d * e == 0:
        return np.inf, 1.0, 0.0
    q = (e * regret_b - 2 * d * gain_b) / (d * e)
    q_b = 1 - q
    if q >= 1:  # possibly by rounding: then the formula for the other arm is exact
        q_b = (2 * d * gain_a - e * regret_a) / (d * e)
    if not (q > 0 and q_b > 0):
        return np.inf, 1.0, 0.0
    cost = q * regret_a + q_b * regret_b
    return cost * cost / (q * gain_a + q_b * gain_b), q, q_b


@kernel()
def best_pair(regret, gain, min_gain):
    """Return (first, second, probability of the first) with the smallest (πᵀΔ)² / πᵀg.

    A gain of at most `min_gain` counts as 0. Single arms come first, then all pairs. The first arm
    is −1 if a number is negative or not finite.
    """
    single, least = _best_single(regret, gain, min_gain)
    first, second, probability = single, single, 1.0
    if least <= 0:
        return first, second, probability
    for a in range(len(regret)):
        gain_a = gain[a] if gain[a] > min_gain else 0.0
        for b in range(a + 1, len(regret)):
            gain_b = gain[b] if gain[b] > min_gain else 0.0
            ratio, q, q_b = _mixture(regret[a], gain_a, regret[b], gain_b)
            if ratio < least:
                least = ratio
                first, second, probability = (a, b, q) if q < 1 else (b, a, q_b)
    return first, second, probability


@kernel()
def _turn(regret, gain, a, b, c):
    """Return a positive number if a, b, c turn left at b, which is then below the hull."""
    product = (regret[b] - regret[a]) * (gain[c] - gain[b])
    return product - (gain[b] - gain[a]) * (regret[c] - regret[b])


@kernel()
def _upper_chain(regret, gain, order, chain):
    """Fill in the arms of the hull's upper left boundary and return their number.

    `order` has the arms by rising regret, then falling gain, then index: an arm without more gain
    than an earlier one is dominated by it, or equal to it.
    """
    count = 0
    for c in order:
        if count and gain[c] <= gain[chain[count - 1]]:
            continue
        while count > 1 and _turn(regret, gain, chain[count - 2], chain[count - 1], c) > 0:
            count -= 1
        chain[count] = c
        count += 1
    return count


@kernel()
def _first_on_line(regret, gain, chain, edge):
    """Return the first arms on the edge's line, up to its left end and from its right end on."""
    left, right = chain[edge], chain[edge + 1]
    k = edge
    while k > 0 and _turn(regret, gain, chain[k - 1], chain[k], chain[k + 1]) == 0:
        k -= 1
        left = min(left, chain[k])
    k = edge + 1
    while k < len(chain) - 1 and _turn(regret, gain, chain[k - 1], chain[k], chain[k + 1]) == 0:
        k += 1
        right = min(right, chain[k])
    return left, right


@kernel()
def best_pair_on_hull(regret, gain, order):
    """Return the result of `best_pair` in linear time; gains are 0 or more than `min_gain`.

    `order` is that of `_upper_chain`. If more than two arms are on a line, all pairs around the
    optimum are equal, and the first arm of either side is returned.
    """
    single, least = _best_single(regret, gain, 0.0)
    if least <= 0:
        return single, single, 1.0
    chain = np.empty(len(regret), dtype=np.int64)
    count = _upper_chain(regret, gain, order, chain)
    edge = -1
    for k in range(count - 1):
        a, b = min(chain[k], chain[k + 1]), max(chain[k], chain[k + 1])
        ratio, _, _ = _mixture(regret[a], gain[a], regret[b], gain[b])
        if ratio < least:
            edge, least = k, ratio
    if edge < 0:
        return single, single, 1.0
    left, right = _first_on_line(regret, gain, chain[:count], edge)
    a, b = min(left, right), max(left, right)
    ratio, q, q_b = _mixture(regret[a], gain[a], regret[b], gain[b])
    if ratio > least * (1 + _ROUNDING):  # the arms are only nearly on a line
        a, b = min(chain[edge], chain[edge + 1]), max(chain[edge], chain[edge + 1])
        ratio, q, q_b = _mixture(regret[a], gain[a], regret[b], gain[b])
    return (a, b, q) if q < 1 else (b, a, q_b)
