"""The smallest divergence between two boxes of distributions: the lower bound of Lemma 4.

Minimise KL(P‖Q) over distributions P and Q whose entries lie between given bounds. The problem is
jointly convex. For a fixed Q the best P is clip(s·Q, low, high), and for a fixed P the best Q is
clip(s·P, low, high), each with the s that makes it sum to 1; the two steps alternate. Mostly one or
two sweeps suffice, but sometimes hundreds do not, and a value before convergence is too large for a
lower bound. So each sweep also computes the Frank-Wolfe gap, and value − gap is returned.

>>> round(minimise_kl([0.7, 0.1], [0.9, 0.3], [0.1, 0.5], [0.5, 0.9]), 4)
0.0823
>>> minimise_kl([0.2, 0.2], [0.8, 0.8], [0.1, 0.5], [0.5, 0.9])     # the boxes share a distribution
0.0
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dowise._core.kernels import kernel, lazy_kernels
from dowise._core.types import FloatArray
from dowise.errors import DowiseError

_kernels = lazy_kernels("dowise.information.kl")

_ROUNDING = 1e-12


def minimise_kl(p_low: ArrayLike, p_high: ArrayLike, q_low: ArrayLike, q_high: ArrayLike) -> float:
    """Return a lower bound on min KL(P‖Q) over p_low ≤ P ≤ p_high and q_low ≤ Q ≤ q_high.

    Parameters
    ----------
    p_low, p_high, q_low, q_high : array_like
        Bounds of the same shape, of any rank.

    Returns
    -------
    float
        Infinite if Q must be 0 in a cell where P can't be.

    Raises
    ------
    DowiseError
        If the shapes differ ("invalid-shape"), or a box holds no distribution ("invalid-number").

    Examples
    --------
    >>> round(minimise_kl([0.7, 0.1], [0.9, 0.3], [0.1, 0.5], [0.5, 0.9]), 4)
    0.0823
    """
    pl, pu, ql, qu = (_numbers(bound) for bound in (p_low, p_high, q_low, q_high))
    if not pl.shape == pu.shape == ql.shape == qu.shape or not pl.size:
        raise DowiseError(
            "the four bounds must be arrays of one shape with at least one entry",
            code="invalid-shape",
        )
    pl, pu, ql, qu = pl.ravel(), pu.ravel(), ql.ravel(), qu.ravel()
    value: float = _kernels.box_divergence(pl, pu, ql, qu)
    if value >= 0:
        return value
    _clipped_box("P", pl, pu)
    _clipped_box("Q", ql, qu)
    raise DowiseError(
        "the bounds leave no room for a distribution: they sum to 1 too closely",
        code="invalid-number",
    )


def project_to_box(point: ArrayLike, low: ArrayLike, high: ArrayLike) -> FloatArray:
    """Return the distribution between the bounds that is closest to a point (Euclidean).

    It is clip(point − λ, low, high) with the λ that makes it sum to 1, by bisection (appendix).

    Parameters
    ----------
    point, low, high : array_like

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    DowiseError
        If the shapes differ or the point is not finite ("invalid-shape"), or no distribution is
        between the bounds ("invalid-number").

    Examples
    --------
    >>> project_to_box([0.9, 0.5], [0.0, 0.0], [1.0, 1.0]).round(3).tolist()
    [0.7, 0.3]
    """
    z, lo, hi = (_numbers(x) for x in (point, low, high))
    if not z.shape == lo.shape == hi.shape or not np.isfinite(z).all():
        raise DowiseError(
            "the point and the bounds must be arrays of one shape, the point finite",
            code="invalid-shape",
        )
    lo, hi = _clipped_box("x", lo, hi)
    left, right = float((z - hi).min()) - 1, float((z - lo).max()) + 1
    for _ in range(200):
        shift = 0.5 * (left + right)
        if np.clip(z - shift, lo, hi).sum() > 1:
            left = shift
        else:
            right = shift
    return np.clip(z - 0.5 * (left + right), lo, hi)


def _numbers(values: ArrayLike) -> FloatArray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DowiseError(f"{values!r} is not an array of numbers", code="invalid-type") from None


def _clipped_box(name: str, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    if not (low <= high).all() or low.sum() > 1 + _ROUNDING or high.sum() < 1 - _ROUNDING:
        raise DowiseError(
            f"no distribution {name} is between the bounds: the lower ones sum to {low.sum():.6g}, "
            f"the upper ones to {high.sum():.6g}, and 1 is not in between, or a lower bound "
            "exceeds its upper bound",
            code="invalid-number",
        )
    return low, high


_NO_ANSWER = -1.0  # result of `box_divergence` if a box holds no distribution
_TOLERANCE = 1e-10
_MAX_SWEEPS = 20_000
_MAX_INSERTION_SORT = 64
_TINY = 1e-200  # used for 0: too small to change a sum, but no ratio is 0/0


class BoxBounds(NamedTuple):
    """Lower and upper bounds of the entries of a distribution."""

    low: FloatArray
    high: FloatArray


@kernel()
def _scale(weights, box, out):
    """Set out = clip(s·weights, low, high) so that it sums to 1; return False if there is no s.

    The sum is rising and piecewise linear in s, so finitely many Newton steps suffice; a bracket
    guards them where the sum is flat.
    """
    n = len(weights)
    low, high = box
    below, above = 0.0, np.inf
    s = 1.0
    for _ in range(200):
        total, slope = 0.0, 0.0
        for i in range(n):
            x = s * weights[i]
            if x <= low[i]:
                x = low[i]
            elif x >= high[i]:
                x = high[i]
            else:
                slope += weights[i]
            out[i] = x
            total += x
        missing = 1.0 - total
        if abs(missing) <= 4e-16 * n:
            return True
        if missing > 0:
            below = s
        else:
            above = s
        s = s + missing / slope if slope > 0 else (2 * s if missing > 0 else s / 2)
        if not below < s < above:
            s = 2 * below + 1.0 if above == np.inf else 0.5 * (below + above)
        if s > 1e300 or (above < np.inf and above - below <= 1e-16 * above):
            break
    return abs(missing) <= 1e-12


@kernel()
def _fill_up(out, high, movable):
    """Raise the movable cells until the sum is 1; return False if that is not possible."""
    missing = 1.0
    for i in range(len(out)):
        missing -= out[i]
    for i in range(len(out)):
        if movable[i] and missing > 0:
            more = min(high[i] - out[i], missing)
            out[i] += more
            missing -= more
    return missing <= 1e-12


@kernel()
def _smallest_product(gradient, box, order):
    """Return min gradient·x over the box and the simplex, filling the cheapest cells first.

    `order` is any permutation of the cells, and is sorted in place.
    """
    remaining = 1.0
    total = 0.0
    for i in range(len(gradient)):
        remaining -= box.low[i]
        total += gradient[i] * box.low[i]
    _sort_by(gradient, order)
    for k in range(len(order)):
        if remaining <= 0:
            break
        i = order[k]
        more = min(box.high[i] - box.low[i], remaining)
        total += gradient[i] * more
        remaining -= more
    return total


@kernel()
def _sort_by(keys, order):
    """Sort the permutation `order` by its keys, by insertion if it is short."""
    if len(order) > _MAX_INSERTION_SORT:
        order[:] = np.argsort(keys)
        return
    for i in range(1, len(order)):
        moved = order[i]
        j = i
        while j > 0 and keys[order[j - 1]] > keys[moved]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = moved


@kernel(inline="always")  # 5 % of a divergence
def _divergence_and_gap(p, q, box_p, box_q, scratch, orders):
    """Return KL(P‖Q) and the Frank-Wolfe gap, an upper bound on its excess over the minimum."""
    grad_p, grad_q = scratch[0], scratch[1]
    value, at_p, at_q = 0.0, 0.0, 0.0
    for i in range(len(p)):
        if box_p.high[i] == 0:  # P must be 0: no contribution
            grad_p[i] = grad_q[i] = 0.0
            continue
        ratio = p[i] / q[i]
        grad_p[i] = np.log(ratio) + 1.0
        grad_q[i] = -ratio
        value += p[i] * (grad_p[i] - 1.0)
        at_p += grad_p[i] * p[i]
        at_q += grad_q[i] * q[i]
    gap = at_p - _smallest_product(grad_p, box_p, orders[0])
    gap += at_q - _smallest_product(grad_q, box_q, orders[1])
    return value, gap


@kernel()
def _alternate(box_p, box_q, q):
    """Return a lower bound on min KL(P‖Q), within a tolerance of it; negative if a box is empty.

    P = clip(s·Q) and Q = clip(s·P) alternate; after each sweep value − gap is a valid lower bound.
    All cells must have box_q.high > 0, and `q` must start in its box without an entry 0.
    """
    n = len(q)
    scratch = np.empty((3, n))
    p = scratch[2]
    orders = np.empty((2, n), dtype=np.int64)
    for i in range(n):
        orders[0, i] = orders[1, i] = i
    empty = box_p.high == 0
    bound = 0.0
    for _ in range(_MAX_SWEEPS):
        if not _scale(q, box_p, p):
            return _NO_ANSWER
        for i in range(n):
            if not empty[i]:
                p[i] = max(p[i], _TINY)
        if not _scale(p, box_q, q) and not _fill_up(q, box_q.high, empty):
            return _NO_ANSWER
        for i in range(n):
            q[i] = max(q[i], _TINY)
        value, gap = _divergence_and_gap(p, q, box_p, box_q, scratch, orders)
        bound = max(bound, value - gap)
        if gap <= _TOLERANCE:
            break
    return bound


@kernel()
def _clip(low, high, box):
    """Fill the box with the bounds, clipped to [0, 1]; return False if they are reversed."""
    for i in range(len(low)):
        if not low[i] <= high[i]:  # also if one is NaN
            return False
        box.low[i], box.high[i] = max(low[i], 0.0), min(high[i], 1.0)
    return True


@kernel()
def _has_distribution(box):
    for i in range(len(box.low)):
        if not box.low[i] <= box.high[i]:
            return False
    return box.low.sum() <= 1 + _ROUNDING and box.high.sum() >= 1 - _ROUNDING


@kernel()
def _intersect(p, q):
    low, high = 0.0, 0.0
    for i in range(len(p.low)):
        lower, upper = max(p.low[i], q.low[i]), min(p.high[i], q.high[i])
        if lower > upper:
            return False
        low += lower
        high += upper
    return low <= 1 + _ROUNDING and high >= 1 - _ROUNDING


@kernel()
def _interior_point(box, out):
    """Fill `out` with a distribution inside the box: an entry of Q that starts at 0 stays 0."""
    least = box.low.sum()
    spread = box.high.sum() - least
    share = (1 - least) / spread if spread > 0 else 0.0
    for i in range(len(out)):
        out[i] = box.low[i] + (box.high[i] - box.low[i]) * share


@kernel()
def box_divergence(p_low, p_high, q_low, q_high):
    """Return a lower bound on min KL(P‖Q) over two boxes; negative if one is empty."""
    rows = np.empty((5, len(p_low)))
    p, q = BoxBounds(rows[0], rows[1]), BoxBounds(rows[2], rows[3])
    if not (_clip(p_low, p_high, p) and _clip(q_low, q_high, q)):
        return _NO_ANSWER
    if not (_has_distribution(p) and _has_distribution(q)):
        return _NO_ANSWER
    if _intersect(p, q):
        return 0.0
    if q.low.sum() >= 1:
        q = BoxBounds(q.low, q.low)  # Q has no choice
    # Where Q must be 0, P must be too.
    support = q.high > 0
    max_sum = 0.0
    for i in range(len(support)):
        if support[i]:
            max_sum += p.high[i]
        elif p.low[i] > 0:
            return np.inf
    if max_sum < 1 - _ROUNDING:
        return np.inf
    if not support.all():
        p = BoxBounds(p.low[support], p.high[support])
        q = BoxBounds(q.low[support], q.high[support])
    start = rows[4, : len(q.low)]
    _interior_point(q, start)
    return _alternate(p, q, start)


@kernel()
def _groups(arms, winning, apart):
    """Return the index of each group of arms among the winning arms, or −1, and its size."""
    count = arms if apart else min(len(winning) + 1, arms)
    places, copies = np.empty(count, dtype=np.int64), np.empty(count)
    for i in range(count):
        places[i], copies[i] = -1, 1.0
    for k in range(len(winning)):
        places[winning[k] if apart else k] = k
    if places[count - 1] < 0 and not apart:
        copies[count - 1] = arms - len(winning)
    return places, copies


@kernel()
def _boxes_of(joint, best, winning, groups, radii, p, q):
    """Fill the boxes of an arm's joint distribution and of the product; return χ² of Lemma 4."""
    places, copies = groups
    of_joint, of_best, of_outcome = radii
    values = joint.shape[1]
    outcomes = np.empty(values)
    for y in range(values):
        outcomes[y] = joint[:, y].sum()
    chi_squared = -1.0
    for group in range(len(places)):
        k, size = places[group], copies[group]
        share = best[winning[k]] if k >= 0 else 0.0
        share_low, share_high = max(share - of_best, 0.0), min(share + of_best, 1.0)
        for y in range(values):
            i = group * values + y
            cell, outcome = joint[k, y] if k >= 0 else 0.0, outcomes[y]
            p.low[i] = size * max(cell - of_joint, 0.0)
            p.high[i] = size * min(cell + of_joint, 1.0)
            q.low[i] = size * (share_low * max(outcome - of_outcome, 0.0))
            q.high[i] = size * (share_high * min(outcome + of_outcome, 1.0))
            chi_squared += p.high[i] ** 2 / q.low[i] if q.low[i] > 0 else np.inf
    return chi_squared


@kernel()
def are_disjoint(joint, best, winning, apart, radii, is_disjoint):
    """Set is_disjoint[a] to True if no distribution is in both boxes of arm a: then g is above 0.

    The arguments are those of `gain_bounds`.
    """
    groups = _groups(len(best), winning, apart)
    cells = len(groups[0]) * joint.shape[2]
    rows = np.empty((4, cells))
    p, q = BoxBounds(rows[0], rows[1]), BoxBounds(rows[2], rows[3])
    for a in range(len(joint)):
        _boxes_of(joint[a], best, winning, groups, radii, p, q)
        _clip(p.low, p.high, p)
        _clip(q.low, q.high, q)
        is_disjoint[a] = not _intersect(p, q)


@kernel()
def gain_bounds(joint, best, winning, apart, radii, low, high):
    """Fill both ends of Lemma 4 for every arm; return False if a box has no distribution.

    joint[a, k, y] is p_a(a* = winning[k], y) for all arms or some, `best` is p* of all arms, and
    `radii` are those of the joint, of p* and of the outcomes. Arms that never win have equal cells.
    Unless `apart`, these are merged: m equal cells have equal values in the solution, and
    m p log(p/q) = mp log(mp / mq), so they are one cell with m times the bounds.
    """
    arms, _, values = joint.shape
    groups = _groups(len(best), winning, apart)
    cells = len(groups[0]) * values
    rows = np.empty((4, cells))
    p, q = BoxBounds(rows[0], rows[1]), BoxBounds(rows[2], rows[3])
    for a in range(arms):
        chi_squared = _boxes_of(joint[a], best, winning, groups, radii, p, q)
        high[a] = min(max(chi_squared, 0.0), np.log(values))
        divergence = box_divergence(p.low, p.high, q.low, q.high)
        if divergence < 0:
            return False
        low[a] = min(divergence, high[a])
    return True
