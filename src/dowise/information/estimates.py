"""Expected regret Δ and information gain g of every arm, from posterior draws (Lemma 2).

Given draws θ₁ … θ_N, let a*ᵢ be the best arm under θᵢ. Then

    p*(a*)   = share of draws in which a* is best,
    p_a(y)   = mean of P(Y_a = y | θᵢ),
    p_a(a*, y) = mean of 1{a*ᵢ = a*} P(Y_a = y | θᵢ),
    Δ(a)     = mean of μ(a*ᵢ) − μ(a),
    g(a)     = KL( p_a(a*, y) ‖ p*(a*) p_a(y) ),

the mutual information, in nats, between the best arm and the reward of arm a. If arms have costs,
μ is net of them, and so are a* and Δ; the observed y is the reward itself.

Sums are in double precision. Ties go to the first arm. The joint is kept for arms a* that win some
draw, so time and memory grow with arms × winning arms.

>>> import numpy as np
>>> two = estimate(np.array([[0.9, 0.1], [0.5, 0.5]]))    # arm 0 is best in the first draw
>>> two.best.tolist(), two.delta.round(3).tolist(), two.gain.round(3).tolist()
([0.5, 0.5], [0.2, 0.2], [0.368, 0.0])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise._core.kernels import kernel, lazy_kernels
from dowise._core.types import FloatArray, IntArray
from dowise.errors import DowiseError
from dowise.model.draws import Draws, zero_costs
from dowise.model.kernels import find_winners
from dowise.problem import Payoff

_kernels = lazy_kernels("dowise.information.estimates")

_SLACK = 1e-5  # rounding of a probability in single precision
_MAX_BYTES = 4 * 2**30  # of the joint
_MAX_CELLS = 2**20  # cells of the joint: a hundredth of a second


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimates from N draws, as arrays over arms.

    Attributes
    ----------
    samples : int
        N.
    winners : numpy.ndarray
        Best arm of every draw.
    winning : numpy.ndarray
        Arms that are best in some draw, rising.
    joint : numpy.ndarray
        `joint[a, k, y]` is p_a(a* = winning[k], Y_a = y).
    best : numpy.ndarray
        p* of all arms.
    means : numpy.ndarray
        Mean rewards in [0, 1], net of cost.
    delta : numpy.ndarray
        Δ.
    gain : numpy.ndarray
        g; never negative, and exactly 0 if all draws agree on the best arm.
    costs : numpy.ndarray or float
        Costs of the arms on the same scale.

    Examples
    --------
    >>> estimate([[0.9, 0.1], [0.5, 0.5]]).winners.tolist()
    [0, 1]
    """

    samples: int
    winners: IntArray
    winning: IntArray
    joint: FloatArray
    best: FloatArray
    means: FloatArray
    delta: FloatArray
    gain: FloatArray
    costs: FloatArray | float = 0.0

    @property
    def extra(self) -> FloatArray:
        """Cost of each arm above the cheapest."""
        costs = np.asarray(self.costs, dtype=np.float64)
        extra: FloatArray = costs - costs.min()
        return extra

    @property
    def outcomes(self) -> FloatArray:
        """p_a(y), an array (arms, values of Y)."""
        sums: FloatArray = self.joint.sum(axis=1)
        return sums


def estimate(rewards: ArrayLike, values: ArrayLike | None = None) -> Estimate:
    """Estimate Δ and g from draws.

    Parameters
    ----------
    rewards : array_like
        (arms, samples), the mean rewards in [0, 1] of a reward with the values 0 and 1; or
        (arms, values, samples), the probability of each value.
    values : array_like, optional
        Worth of each value from 0 to 1; more is better. `problem.payoff.scaled` has such values,
        also for a reward to minimise.

    Returns
    -------
    Estimate

    Raises
    ------
    DowiseError
        If an array has the wrong type ("invalid-type") or shape ("invalid-shape"), or numbers are
        out of range ("invalid-number").

    Examples
    --------
    >>> estimate([[0.9, 0.1], [0.5, 0.5]]).best.tolist()
    [0.5, 0.5]
    """
    try:
        drawn = np.asarray(rewards)
        if drawn.dtype != np.float32:
            drawn = drawn.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise DowiseError(
            "rewards must be an array of numbers, one row for each arm", code="invalid-type"
        ) from None
    if drawn.ndim not in (2, 3) or 0 in drawn.shape or (drawn.ndim == 3) != (values is not None):
        raise DowiseError(
            f"rewards of shape {drawn.shape} {'with' if values is not None else 'without'} values: "
            "expected (arms, samples), or (arms, values, samples) with values",
            code="invalid-shape",
        )
    if np.isnan(drawn).any():
        raise DowiseError("some rewards are NaN: remove these draws", code="invalid-number")
    if not (drawn.min() >= -_SLACK and drawn.max() <= 1 + _SLACK):
        raise DowiseError(
            f"rewards range from {drawn.min():.4g} to {drawn.max():.4g}: scale them to [0, 1]",
            code="invalid-number",
        )
    drawn = drawn.clip(0, 1)
    if values is None:
        return estimate_from_draws(drawn[:, None, :], np.array([0.0, 1.0]))
    scaled = np.asarray(values, dtype=np.float64)
    if scaled.shape != (drawn.shape[1],) or not ((scaled >= 0) & (scaled <= 1)).all():
        raise DowiseError(
            f"values={values!r} must be {drawn.shape[1]} numbers between 0 and 1",
            code="invalid-number",
        )
    if not np.abs(drawn.sum(axis=1) - 1).max() <= 1e-4:
        raise DowiseError(
            "the probabilities of the values must sum to 1 for each arm and draw",
            code="invalid-number",
        )
    return estimate_from_draws(drawn[:, 1:], scaled)


def estimate_from_draws(
    drawn: NDArray[np.floating],
    scaled: FloatArray,
    winners: tuple[IntArray, float] | None = None,
    costs: FloatArray | None = None,
) -> Estimate:
    """Estimate Δ and g from an array of draws, which is not validated.

    Parameters
    ----------
    drawn : numpy.ndarray
        drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first.
    scaled : numpy.ndarray
        Worth of every value from 0 to 1, the first included.
    winners : tuple, optional
        Best arm of every draw and the sum of their rewards, if they are computed already.
    costs : numpy.ndarray, optional
        Costs of the arms on the same scale (`payoff.scaled_costs`).

    Returns
    -------
    Estimate

    Raises
    ------
    DowiseError
        If the joint distribution needs too much memory ("too-large").

    Examples
    --------
    >>> drawn = np.array([[[0.9, 0.1]], [[0.5, 0.5]]])
    >>> estimate_from_draws(drawn, np.array([0.0, 1.0])).best.tolist()
    [0.5, 0.5]
    """
    arms, others, samples = drawn.shape
    drawn = np.ascontiguousarray(drawn)
    costs = zero_costs(arms) if costs is None else costs
    best, winning = np.empty(arms), np.empty(arms, np.int64)
    if winners is None:
        best_arms = np.empty(samples, np.int64)
        peak, count = _kernels.find_and_count_winners(
            drawn, scaled, costs, best_arms, best, winning
        )
    else:
        best_arms, peak = winners
        count = _kernels.count_winners(best_arms, best, winning)
    winning = winning[:count]
    check_memory(arms, count, others + 1)
    joint = np.empty((arms, count, others + 1))
    means, regret, gain = 0.0 - costs, np.empty(arms), np.empty(arms)
    _kernels.summarise(drawn, scaled, peak, best_arms, winning, best, joint, means, regret, gain)
    return Estimate(samples, best_arms, winning, joint, best, means, regret, gain, costs)


def estimate_of(draws: Draws, payoff: Payoff) -> Estimate:
    """Estimate Δ and g from the draws of a belief.

    Parameters
    ----------
    draws : Draws
    payoff : Payoff

    Returns
    -------
    Estimate

    Raises
    ------
    DowiseError
        If the joint distribution needs too much memory ("too-large").

    Examples
    --------
    >>> from dowise import Belief, load_problem
    >>> belief = Belief(load_problem("task1"))
    >>> estimate_of(belief.draw((), 100, 0), belief.problem.payoff).samples
    100
    """
    winners = None if draws.whole is None else draws.winners(payoff)
    return estimate_from_draws(draws.after_first, payoff.scaled, winners, draws.costs(payoff))


def estimate_in_blocks(blocks: Iterable[Draws], payoff: Payoff, samples: int) -> Estimate:
    """Estimate Δ and g from blocks of draws, without keeping them in memory.

    Sums are taken block by block, so the last digits may differ from those of `estimate_of`.

    Parameters
    ----------
    blocks : iterable of Draws
    payoff : Payoff
    samples : int
        Number of draws in all blocks.

    Returns
    -------
    Estimate

    Raises
    ------
    DowiseError
        If the joint distribution needs too much memory ("too-large").

    Examples
    --------
    >>> from dowise import Belief, load_problem
    >>> belief = Belief(load_problem("task1"))
    >>> blocks = [belief.draw((), 50, 0), belief.draw((), 50, 1)]
    >>> estimate_in_blocks(blocks, belief.problem.payoff, 100).samples
    100
    """
    remaining = iter(blocks)
    block = next(remaining)
    if block.samples >= samples:
        return estimate_of(block, payoff)
    sums = _Sums(block.costs(payoff), block.after_first.shape[1], samples)
    for draws in chain([block], remaining):
        sums.add(draws, payoff)
    return sums.estimate(payoff)


class _Sums:
    """Running sums over blocks of draws."""

    def __init__(self, costs: FloatArray, others: int, samples: int) -> None:
        arms, self.costs = len(costs), costs
        self.winners = np.empty(samples, np.int64)
        self.samples, self.peak = 0, 0.0
        self.places = np.full(arms, -1)
        """Index of each arm among the winning ones, which are in the order of their first win."""
        self.winning = np.empty(0, np.int64)
        self.joint = np.zeros((arms, 0, others + 1))

    def add(self, draws: Draws, payoff: Payoff) -> None:
        """Add a block."""
        winners, peak = draws.winners(payoff)
        self.winners[self.samples : self.samples + len(winners)] = winners
        self.samples, self.peak = self.samples + len(winners), self.peak + peak
        new = np.setdiff1d(winners, self.winning)
        if len(new):
            self.places[new] = len(self.winning) + np.arange(len(new))
            self.winning = np.append(self.winning, new)
            self._widen_joint()
        _kernels.add_joint(
            np.ascontiguousarray(draws.after_first), self.places[winners], self.joint
        )

    def _widen_joint(self) -> None:
        """Make room for the winning arms, and for as many more."""
        arms, before, values = self.joint.shape
        count = len(self.winning)
        if count > before:
            check_memory(arms, count, values)
            wider = np.zeros((arms, min(2 * count, arms), values))
            wider[:, :before] = self.joint
            self.joint = wider

    def estimate(self, payoff: Payoff) -> Estimate:
        """Return the estimate from all blocks."""
        arms, count, order = len(self.joint), len(self.winning), np.argsort(self.winning)
        joint = np.ascontiguousarray(self.joint[:, :count])
        for table in joint:  # in place: it may be large
            table[:] = table[order] / self.samples
        winning = self.winning[order]
        best = np.bincount(self.winners, minlength=arms) / self.samples
        means, regret, gain = 0.0 - self.costs, np.empty(arms), np.empty(arms)
        for some in slices(*joint.shape):
            filled = joint[some], means[some], regret[some], gain[some]
            _kernels.regret_and_gain(
                payoff.scaled, self.peak / self.samples, winning, best, *filled
            )
        costs = self.costs
        return Estimate(
            self.samples, self.winners, winning, joint, best, means, regret, gain, costs
        )


def slices(arms: int, *cells: int) -> Iterator[slice]:
    """Return slices of arms with about a million cells; signals are handled between them."""
    step = max(1, _MAX_CELLS // prod(cells))
    return (slice(first, first + step) for first in range(0, arms, step))


def check_memory(arms: int, winning: int, values: int) -> None:
    """Raise an error if the joint distribution would need too much memory."""
    size = 8 * arms * winning * values
    if size > _MAX_BYTES:
        raise DowiseError(
            f"the joint distribution of {arms:,} arms and {winning:,} best arms needs "
            f"{size / 1e9:,.1f} GB, more than the limit of {_MAX_BYTES / 1e9:,.1f}: use fewer "
            "samples or fewer arms",
            code="too-large",
        )


_ROUNDING = 1e-12


@kernel()
def find_and_count_winners(drawn, scaled, costs, winners, best, winning):
    """Return the sum of the best rewards and the number of arms that win; fills the arrays."""
    peak = find_winners(drawn, scaled, costs, winners)
    return peak, count_winners(winners, best, winning)


@kernel()
def count_winners(winners, best, winning):
    """Fill best[a], the share of draws that arm a wins; return how many arms win some draw.

    The first entries of `winning` are those arms, rising.
    """
    for a in range(len(best)):
        best[a] = 0.0
        winning[a] = 0
    half = len(winners) // 2
    for i in range(half):  # two independent counts run in parallel
        best[winners[i]] += 1.0
        winning[winners[half + i]] += 1
    for i in range(2 * half, len(winners)):
        best[winners[i]] += 1.0
    count = 0
    for a in range(len(best)):
        best[a] = (best[a] + winning[a]) / len(winners)
        if best[a] > 0:
            winning[count] = a
            count += 1
    return count


@kernel()
def summarise(drawn, scaled, peak, winners, winning, best, joint, means, regret, gain):
    """Fill p_a(a*, y), the mean rewards, Δ(a) and g(a) from N draws: the last four arguments.

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first; scaled[y] is the worth
    of a value; `peak` is the sum of the best net rewards; joint[a, k, y] is
    p_a(a* = winning[k], Y_a = y). means[a] must be minus the arm's cost, so that the means are net.
    """
    arms, others, samples = drawn.shape
    ranks = winners if len(winning) == arms else _ranks(winners, winning, arms)
    parts = np.empty((4, len(winning)))
    for a in range(arms):
        for y in range(others):
            sum_by_winner(drawn[a, y], ranks, parts)
            for k in range(len(winning)):
                total = parts[0, k] + parts[1, k] + parts[2, k] + parts[3, k]
                joint[a, k, y + 1] = total / samples
    regret_and_gain(scaled, peak / samples, winning, best, joint, means, regret, gain)


@kernel()
def add_joint(drawn, ranks, joint):
    """Add the draws that the k-th winning arm wins to joint[a, k, y], for values but the first.

    ranks[i] is the index of draw i's winner among the winning arms.
    """
    arms, others, samples = drawn.shape
    for a in range(arms):
        for y in range(others):
            for i in range(samples):
                joint[a, ranks[i], y + 1] += drawn[a, y, i]


@kernel()
def regret_and_gain(scaled, top, winning, best, joint, means, regret, gain):
    """Fill p_a(a*, y) for the first value y, and the last three arguments (see `summarise`).

    `joint` has all arms or some of them, `best` is p* of all arms, `top` the mean best reward.
    """
    arms, _, values = joint.shape
    outcome = np.empty(values)
    for a in range(arms):
        for k in range(len(winning)):
            remainder = best[winning[k]]
            for y in range(1, values):
                remainder -= joint[a, k, y]
            joint[a, k, 0] = max(remainder, 0.0)
        for y in range(values):
            outcome[y] = 0.0
            for k in range(len(winning)):
                outcome[y] += joint[a, k, y]
            means[a] += outcome[y] * scaled[y]
        cost = top - means[a]
        regret[a] = cost if cost > _ROUNDING * max(1.0, abs(top)) else 0.0
        gain[a] = _mutual_information(joint[a], winning, best, outcome)


@kernel()
def _ranks(winners, winning, arms):
    """Return the index of every draw's winner among the winning arms."""
    places = np.empty(arms, dtype=np.int64)
    for k in range(len(winning)):
        places[winning[k]] = k
    ranks = np.empty(len(winners), dtype=np.int64)
    for i in range(len(winners)):
        ranks[i] = places[winners[i]]
    return ranks


@kernel()
def sum_by_winner(row, ranks, parts):
    """Fill `parts`: parts[0, k] + … + parts[3, k] is the sum of `row` where the k-th arm wins.

    Four independent sums run in parallel.
    """
    for k in range(parts.shape[1]):
        parts[0, k] = parts[1, k] = parts[2, k] = parts[3, k] = 0.0
    whole = len(row) // 4 * 4
    for i in range(0, whole, 4):
        parts[0, ranks[i]] += row[i]
        parts[1, ranks[i + 1]] += row[i + 1]
        parts[2, ranks[i + 2]] += row[i + 2]
        parts[3, ranks[i + 3]] += row[i + 3]
    for i in range(whole, len(row)):
        parts[0, ranks[i]] += row[i]


@kernel()
def _mutual_information(joint, winning, best, outcome):
    """Return KL(joint[k, y] ‖ best[k] outcome[y]) ≥ 0; exactly 0 if one arm is always best."""
    if len(winning) == 1:
        return 0.0
    total = 0.0
    for k in range(len(winning)):
        share = best[winning[k]]
        for y in range(len(outcome)):
            if joint[k, y] > 0:
                total += joint[k, y] * np.log(joint[k, y] / (share * outcome[y]))
    return max(total, 0.0)
