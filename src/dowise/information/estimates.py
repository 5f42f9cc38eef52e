"""Expected regret Δ and information gain g of every arm, from posterior draws (Lemma 2).

Given draws θ₁ … θ_N, let a*ᵢ be the best arm under θᵢ. Then

    p*(a*)   = share of draws in which a* is best,
    p_a(y)   = mean of P(Y_a = y | θᵢ),
    p_a(a*, y) = mean of 1{a*ᵢ = a*} P(Y_a = y | θᵢ),
    Δ(a)     = mean of μ(a*ᵢ) − μ(a),
    g(a)     = KL( p_a(a*, y) ‖ p*(a*) p_a(y) ),

the mutual information, in nats, between which arm is best and the reward that arm a would bring.
Sums are in double precision. Ties go to the first arm.

>>> import numpy as np
>>> two = estimate(np.array([[0.9, 0.1], [0.5, 0.5]]))    # arm 0 is best in the first draw
>>> two.best.tolist(), two.delta.round(3).tolist(), two.gain.round(3).tolist()
([0.5, 0.5], [0.2, 0.2], [0.368, 0.0])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise.errors import DowiseError
from dowise.information.compiled import kernels

__all__ = ["Estimate", "estimate", "estimate_from_draws"]

Floats = NDArray[np.float64]

_SLACK = 1e-5  # what single precision may add to a probability


@dataclass(frozen=True, eq=False)
class Estimate:
    """What N draws say, arrays over arms.

    `joint[a, b, y]` is p_a(a* = b, Y_a = y); `best` is p*; `means` are the mean rewards in [0, 1];
    `gain` is never negative, and exactly 0 where all draws agree on the best arm.
    """

    samples: int
    joint: Floats
    best: Floats
    means: Floats
    delta: Floats
    gain: Floats

    @property
    def outcomes(self) -> Floats:
        """p_a(y): an array (arms, values of Y)."""
        sums: Floats = self.joint.sum(axis=1)
        return sums


def estimate(rewards: ArrayLike, values: ArrayLike | None = None) -> Estimate:
    """Estimate Δ and g from draws.

    `rewards` is (arms, samples), the mean rewards in [0, 1] of a reward of two values, 0 and 1; or
    (arms, values, samples), the probability of each value, and `values` says what each of them is
    worth, from 0 to 1.
    """
    try:
        drawn = np.asarray(rewards)
        if drawn.dtype != np.float32:
            drawn = drawn.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise DowiseError("rewards must be an array of numbers, one row for each arm") from None
    if drawn.ndim not in (2, 3) or 0 in drawn.shape or (drawn.ndim == 3) != (values is not None):
        raise DowiseError(
            f"rewards of shape {drawn.shape} {'with' if values is not None else 'without'} values: "
            "give (arms, samples), or (arms, values, samples) with values="
        )
    if not (drawn.min() >= -_SLACK and drawn.max() <= 1 + _SLACK):
        raise DowiseError(
            f"rewards range from {drawn.min():.4g} to {drawn.max():.4g}: scale them to [0, 1]"
        )
    drawn = drawn.clip(0, 1)
    if values is None:
        return estimate_from_draws(drawn[:, None, :], np.array([0.0, 1.0]))
    worth = _checked_values(values, drawn.shape[1])
    if not np.abs(drawn.sum(axis=1) - 1).max() <= 1e-4:
        raise DowiseError("the probabilities of the values must sum to 1 for each arm and draw")
    return estimate_from_draws(drawn[:, 1:], worth)


def estimate_from_draws(drawn: NDArray[np.floating], worth: Floats) -> Estimate:
    """The same from what a belief draws: drawn[arm, y − 1, draw], all values but the first.

    Nothing is checked. `worth` has a number from 0 to 1 for every value, the first included.
    """
    arms, others, samples = drawn.shape
    joint = np.zeros((arms, arms, others + 1))
    best, means, delta, gain = np.empty((4, arms))
    kernels().summarise(np.ascontiguousarray(drawn), worth, joint, best, means, delta, gain)
    return Estimate(samples, joint, best, means, delta, gain)


def _checked_values(values: ArrayLike, count: int) -> Floats:
    worth = np.asarray(values, dtype=np.float64)
    if worth.shape != (count,) or not ((worth >= 0) & (worth <= 1)).all():
        raise DowiseError(f"values={values!r}: give {count} numbers between 0 and 1")
    return worth
