"""Credible intervals of probabilities: quantiles of Beta distributions, without SciPy.

A row of a factor has a Dirichlet posterior, so that each of its entries has a Beta distribution. On
the scale of log odds its density is smooth and falls off at least exponentially, whatever the
parameters: there it is added up over points that lie close where it is high, and the quantiles are
read off. No special function is needed, and the sum itself is what the density is divided by.

>>> beta_interval(np.array([1.0, 3.0]), np.array([1.0, 1.0]), 0.9).round(4).tolist()
[[0.05, 0.95], [0.3684, 0.983]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["beta_interval", "dirichlet_intervals"]

Floats = NDArray[np.float64]

_POINTS = 4001  # quantiles are then right to 3e-5
_DEPTH = 40.0  # the density is followed down to this logarithm below its peak
_AT_ONCE = 64  # distributions, so that a wide table takes no more memory


def dirichlet_intervals(parameters: Floats, level: float) -> Floats:
    """Central intervals of each entry of rows of Dirichlet parameters: (rows, values, 2)."""
    others = parameters.sum(axis=1, keepdims=True) - parameters
    found = beta_interval(parameters.ravel(), others.ravel(), level)
    return found.reshape(*parameters.shape, 2)


def beta_interval(a: Floats, b: Floats, level: float) -> Floats:
    """The central interval of each Beta(a, b), right to four digits: (distributions, 2)."""
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    found = np.empty((len(a), 2))
    for first in range(0, len(a), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        found[some] = _quantiles(a[some, None], b[some, None], tails)
    return found


def _quantiles(a: Floats, b: Floats, tails: Floats) -> Floats:
    """Of distributions that stand one below the other."""
    peak, spread = np.log(a / b), np.sqrt(1 / a + 1 / b)
    # Near its peak the density is that of a normal distribution, further out it falls off as
    # exp(a u) on the left and as exp(−b u) on the right.
    reach = np.sqrt(2 * _DEPTH) * spread
    start, end = (np.arcsinh((reach + _DEPTH / tail) / spread) for tail in (a, b))
    steps = -start + np.linspace(0.0, 1.0, _POINTS) * (start + end)
    odds = peak + spread * np.sinh(steps)
    logs = a * odds - (a + b) * np.logaddexp(0.0, odds)
    density = np.exp(logs - logs.max(axis=1, keepdims=True)) * np.cosh(steps)
    below = np.cumsum(density, axis=1) - density / 2  # by the trapezium rule
    below /= density.sum(axis=1, keepdims=True)
    quantiles = np.array([np.interp(tails, *row) for row in zip(below, odds, strict=True)])
    return _share(quantiles)


def _share(odds: Floats) -> Floats:
    """The probability of these log odds."""
    shares: Floats = np.exp(-np.logaddexp(0.0, -odds))
    return shares
