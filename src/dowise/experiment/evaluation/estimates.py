"""What a policy would have earned, estimated from what was played instead.

All of it is about θ = (1/T) Σ_t Σ_a π_t(a) μ_t(a), see `Evaluation`. Where arms have costs, μ_t(a)
is net of them: c(a) is known, and so is (1/T) Σ_t Σ_a π_t(a) c(a), which is taken off estimates and
intervals of the gross rewards alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.experiment.evaluation.intervals import interval, ratios
from dowise.experiment.evaluation.replay import Replay
from dowise.plain import number_from

__all__ = ["Estimated", "doubly_robust", "inverse_propensity", "self_normalised", "weights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimated:
    """A number with the interval that holds, and the narrower one of the normal approximation."""

    value: float
    low: float
    high: float
    normal: tuple[float, float] | None
    """None where an arm that could not be played was wanted: no approximation knows of it."""

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    def turned(self, scale: Callable[[float], float]) -> Estimated:
        """In other units, by a function that is linear, rising or falling."""
        low, high = sorted((scale(self.low), scale(self.high)))
        normal = None
        if self.normal is not None:
            first, second = sorted(map(scale, self.normal))
            normal = first, second
        return Estimated(scale(self.value), low, high, normal)

    @classmethod
    def from_dict(cls, page: Mapping[str, Any]) -> Estimated:
        """The way back from JSON."""
        normal = None
        if page["normal"] is not None:
            first, second = map(number_from, page["normal"])
            normal = first, second
        value, low, high = (number_from(page[name]) for name in ("value", "low", "high"))
        return cls(value, low, high, normal)


def weights(found: Replay) -> Floats:
    """π_t(A_t) / e_t(A_t): how much each decision counts for the target."""
    played = np.arange(len(found))
    weight: Floats = ratios(found.target, found.logged)[played, found.arms]
    return weight


def doubly_robust(found: Replay, wanted: Floats, level: float) -> Estimated:
    """Of (1/T) Σ_t Σ_a q_t(a) μ_t(a): what the model expects, mended by what was seen.

    (1/T) Σ_t [Σ_a q_t(a) m_t(a) + q_t(A_t)/e_t(A_t) (Y_t − m_t(A_t))], the AIPW estimate. It is
    unbiased whatever the predictions m_t are worth, since they were made before the outcome; good
    ones make it precise. For arms that could not be played it rests on the model alone.
    """
    return _estimate(found, wanted, found.predictions, level)


def inverse_propensity(found: Replay, level: float) -> Estimated:
    """(1/T) Σ_t π_t(A_t)/e_t(A_t) Y_t: unbiased where all that the target plays could be played.

    Less what the target's choices cost.

    It is the doubly robust estimate of a model that expects the worst reward of every arm.
    """
    return _estimate(found, found.target, np.zeros_like(found.predictions), level)


def self_normalised(found: Replay) -> float | None:
    """Σ w_t Y_t / Σ w_t, steadier but a little biased; None where all weights are 0."""
    weight = weights(found)
    total = float(weight.sum())
    gross = float(weight @ found.rewards) / total if total > 0 else None
    return None if gross is None else gross - found.cost_of(found.target)


def _estimate(found: Replay, wanted: Floats, predictions: Floats, level: float) -> Estimated:
    rounds, played = len(found), np.arange(len(found))
    ratio = ratios(wanted, found.logged)[played, found.arms]
    surprises = ratio * (found.rewards - predictions[played, found.arms])
    cost = found.cost_of(wanted)
    value = float((wanted * predictions).sum()) / rounds + float(surprises.mean()) - cost
    low, high = interval(wanted, found.logged, predictions, found.arms, found.rewards, level)
    is_supported = not wanted[found.logged == 0].any()
    normal = None
    if is_supported and rounds > 1:
        error = float(surprises.std(ddof=1)) / sqrt(rounds)
        half = NormalDist().inv_cdf((1 + level) / 2) * error
        normal = value - half, value + half
    return Estimated(value, low - cost, high - cost, normal)
