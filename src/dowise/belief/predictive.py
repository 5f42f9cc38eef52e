"""Draws of worlds and outcomes from a posterior, and credible intervals of its entries.

A world is a draw of all entries and of the open edges. An outcome is drawn from the posterior
predictive distribution: it uses one entry of each row at most, and rows are independent, so given
the edges its probability is the product of mean entries. Learning such an outcome leaves every mean
unchanged on average (a martingale).
"""

from __future__ import annotations

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, draw_key, generator
from dowise._core.types import FloatArray, IntArray
from dowise.belief.posterior import Posterior
from dowise.model import Codes
from dowise.model.sampler import sample_outcome
from dowise.problem import Record

_mixture_kernels = lazy_kernels("dowise.belief.mixture_kernels")


def draw_record(posterior: Posterior, arm: int, codes: Codes, rng: Random) -> Record:
    """Draw an outcome from the posterior predictive distribution; `arm` is its position."""
    problem, source = posterior.problem, generator(rng)
    if posterior.is_settled:
        entries = posterior.mean_entries()
    else:
        (versions,) = _draw_versions(posterior, 1, source)
        means = posterior.layout.normalised(posterior.parameters)
        entries = _entries_under(posterior, versions, means)
    played = problem.arms[arm]
    seen = sample_outcome(problem, entries, arm, codes, source)
    return Record(problem, played, seen, problem.fixed(played))


def draw_worlds(posterior: Posterior, count: int, rng: Random) -> FloatArray:
    """Draw the entries of all factors: (count, entries)."""
    source = generator(rng)
    if posterior.is_settled:
        return np.ascontiguousarray(posterior.draw_entries(count, source).T, dtype=np.float64)
    versions = _draw_versions(posterior, count, source)
    drawn = posterior.draw_entries(count, source).T.astype(np.float64)
    pairs = zip(versions, drawn, strict=True)
    return np.array([_entries_under(posterior, chosen, entries) for chosen, entries in pairs])


def _draw_versions(posterior: Posterior, count: int, source: np.random.Generator) -> IntArray:
    """Draw sets of edges: the version of every variable, (count, variables)."""
    shared = posterior.shared
    first: IntArray = shared.structures.first
    versions = np.repeat(first[:-1, None], count, axis=1)
    streams, options = len(posterior.counts), shared.edge_weights.options
    _mixture_kernels.choose(
        draw_key(source), streams, options, posterior.weights(), 0, count, versions
    )
    return np.ascontiguousarray(versions.T)


def _entries_under(posterior: Posterior, versions: IntArray, entries: FloatArray) -> FloatArray:
    """Return the entries of the factors where each variable has the given version."""
    structures, factors = posterior.shared.structures, posterior.model.factors
    spread_entries = np.empty(factors.entries)
    for f, v in enumerate(factors.targets.tolist()):
        t = structures.table_of[versions[v], f]
        axes = structures.tables.families[t]
        spread = tuple(slice(None) if u in axes else None for u in factors.families[f])
        factors.table(spread_entries, f)[...] = structures.tables.table(entries, t)[spread]
    return spread_entries


_POINTS = 4001  # of the grid: quantiles are then right to 3e-5
_DEPTH = 40.0  # the grid ends where the log density is this far below its peak
_MAX_TOGETHER = 64  # distributions, to bound the memory


def dirichlet_intervals(parameters: FloatArray, level: float) -> FloatArray:
    """Return central credible intervals of each entry of Dirichlet rows: (rows, values, 2)."""
    others = parameters.sum(axis=1, keepdims=True) - parameters
    intervals = beta_interval(parameters.ravel(), others.ravel(), level)
    return intervals.reshape(*parameters.shape, 2)


def beta_interval(a: FloatArray, b: FloatArray, level: float) -> FloatArray:
    """Return the central interval of each Beta(a, b), right to four digits: (distributions, 2)."""
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    intervals = np.empty((len(a), 2))
    for first in range(0, len(a), _MAX_TOGETHER):
        some = slice(first, first + _MAX_TOGETHER)
        intervals[some] = _quantiles(a[some, None], b[some, None], tails)
    return intervals


def _quantiles(a: FloatArray, b: FloatArray, tails: FloatArray) -> FloatArray:
    """Return quantiles of Beta distributions; `a` and `b` are columns."""
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
    return np.asarray(np.exp(-np.logaddexp(0.0, -quantiles)))  # from log odds to probabilities
