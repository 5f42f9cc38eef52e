"""The smallest divergence between two boxes of distributions: the lower bound of Lemma 4.

minimise KL(P‖Q) over distributions P and Q whose entries lie between given bounds. The problem is
jointly convex. For a fixed Q the best P is clip(s·Q, low, high), and for a fixed P the best Q is
clip(s·P, low, high), each with the s that makes it sum to 1; the two take turns. Mostly a sweep or
two suffice, at times hundreds do not; and a value that was stopped early is too large, which a
lower bound must not be. So each sweep also computes the Frank-Wolfe gap; value − gap is returned.

>>> round(minimise_kl([0.7, 0.1], [0.9, 0.3], [0.1, 0.5], [0.5, 0.9]), 4)
0.0823
>>> minimise_kl([0.2, 0.2], [0.8, 0.8], [0.1, 0.5], [0.5, 0.9])     # the boxes share a distribution
0.0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise.compiling import kernels_of
from dowise.errors import DowiseError

__all__ = ["minimise_kl", "project_to_box"]

_kernels = kernels_of("dowise.information.boxes")

_ROUNDING = 1e-12

Floats = NDArray[np.float64]


def minimise_kl(p_low: ArrayLike, p_high: ArrayLike, q_low: ArrayLike, q_high: ArrayLike) -> float:
    """min KL(P‖Q) over p_low ≤ P ≤ p_high and q_low ≤ Q ≤ q_high, from below.

    Arrays of one shape, any rank; one problem. Infinite where Q can't be positive at a place where
    P must be. A box that holds no distribution is an error.
    """
    pl, pu, ql, qu = _numbers(p_low), _numbers(p_high), _numbers(q_low), _numbers(q_high)
    if not pl.shape == pu.shape == ql.shape == qu.shape or not pl.size:
        raise DowiseError("the four bounds must be arrays of one shape with at least one entry")
    if pl.ndim != 1:
        pl, pu, ql, qu = pl.ravel(), pu.ravel(), ql.ravel(), qu.ravel()
    value: float = _kernels.box_divergence(pl, pu, ql, qu)
    if value >= 0:
        return value
    _checked_box("P", pl, pu)
    _checked_box("Q", ql, qu)
    raise DowiseError("the bounds leave no room for a distribution: they sum to 1 too closely")


def project_to_box(point: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
    """The distribution between the bounds that is closest to a point (Euclidean).

    clip(point − λ, low, high) with the λ that makes it sum to 1, found by bisection (appendix).
    """
    z, lo, hi = (_numbers(x) for x in (point, low, high))
    if not z.shape == lo.shape == hi.shape or not np.isfinite(z).all():
        raise DowiseError("the point and the bounds must be arrays of one shape, the point finite")
    lo, hi = _checked_box("x", lo, hi)
    left, right = float((z - hi).min()) - 1, float((z - lo).max()) + 1
    for _ in range(200):
        shift = 0.5 * (left + right)
        if np.clip(z - shift, lo, hi).sum() > 1:
            left = shift
        else:
            right = shift
    return np.clip(z - 0.5 * (left + right), lo, hi)


def _numbers(given: ArrayLike) -> Floats:
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise DowiseError(f"{given!r} is no array of numbers") from None


def _checked_box(name: str, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    if not (low <= high).all() or low.sum() > 1 + _ROUNDING or high.sum() < 1 - _ROUNDING:
        raise DowiseError(
            f"no distribution {name} lies between the bounds: the lower ones sum to "
            f"{low.sum():.6g} and the upper ones to {high.sum():.6g}, with 1 not in between, "
            "or a lower one exceeds its upper one"
        )
    return low, high
