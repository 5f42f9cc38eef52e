"""Confidence intervals for Δ and g from N draws: Lemmas 3 and 4.

Δ is a mean of numbers in [0, 1], so Hoeffding's inequality bounds it. (Where arms have costs and
an arm costs d more than the cheapest, these numbers are at most 1 + d and at least d − 1, so the
radius is that for numbers in [0, 1] times min(1 + d, 2).) g is a divergence between
probabilities each of which Hoeffding bounds: the radii ε₁ (joint), ε₂ (best arm) and ε₃ (reward)
hold for all of them at once with probability 1 − δ. From below, g is at least the smallest
divergence that those boxes allow; from above, at most a χ² at their corners, and never more than
log r for a reward of r values.

Where we say more than the paper, or other than it:

- Lemma 3 prints the radius √(2/N · log(2/δ)); its own proof gives half of that,
  √(1/(2N) · log(2/δ)). The printed one is the default, `printed=False` takes the other.
- Values are clipped to what is possible: Δ to [0, 1], or with costs [max(0, d − 1), 1 + d].
- The upper bound on g does not close in on g as N grows: it tends to min(log r, χ²), and it is
  log r as soon as one p*(a) is at most ε₂. The claim after Theorem 2 that its width shrinks like
  √(1/N) does not hold. The estimate itself always lies inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.compiling import kernels_of
from dowise.errors import DowiseError
from dowise.information.estimates import Estimate, slices
from dowise.information.ratio import FEW

__all__ = ["Interval", "Radii", "delta_interval", "gain_interval", "gains_above_0", "radii"]

_kernels = kernels_of("dowise.information.boxes")

Floats = NDArray[np.float64]
_SWEEPS = 2000  # over all cells, that a divergence may take


@dataclass(frozen=True, eq=False)
class Interval:
    """Lower and upper ends, arrays over arms."""

    low: Floats
    high: Floats


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


def gains_above_0(estimate: Estimate, delta: float, samples: int) -> NDArray[np.bool_]:
    """Of every arm whether the lower end of Lemma 4 is positive: sooner known than the end."""
    arms, _, values = estimate.joint.shape
    e, found = radii(samples, arms, values, delta), np.empty(arms, dtype=np.bool_)
    for some in slices(*estimate.joint.shape):
        joint, best, winning = estimate.joint[some], estimate.best, estimate.winning
        _kernels.are_apart(joint, best, winning, _kept_apart(arms), e, found[some])
    return found


def _kept_apart(arms: int) -> bool:
    """Or else arms that never win are taken together: the same but for rounding."""
    return arms <= FEW


def _checked(samples: int, failure: float) -> float:
    if not 0 < failure < 1:
        raise DowiseError(f"delta={failure!r} must be between 0 and 1, such as 0.05")
    if not samples >= 1:
        raise DowiseError(f"samples={samples!r} must be at least 1")
    return failure
