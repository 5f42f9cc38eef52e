"""Draws of worlds and outcomes from a posterior, and credible intervals of its entries.

A world is a draw of all entries and of the open edges. An outcome is drawn from the posterior
predictive distribution. It uses at most one entry of each row, and rows are independent, so given
the edges its probability is the product of mean entries. Learning such an outcome leaves every mean
unchanged in expectation (a martingale).
"""

from __future__ import annotations

import numpy as np

from dowise._core.rng import Random, draw_key, generator
from dowise._core.types import FloatArray, IntArray
from dowise.belief.edge_weights import draw_versions
from dowise.belief.pooling import draw_pooled_rows
from dowise.belief.posterior import Posterior
from dowise.model import Codes
from dowise.model.sampler import sample_outcome
from dowise.problem import Problem, Record
from dowise.problem.prior import Prior


def draw_record(posterior: Posterior, arm: int, codes: Codes, rng: Random) -> Record:
    """Draw an outcome from the posterior predictive distribution; `arm` is its position."""
    problem, source = posterior.problem, generator(rng)
    if posterior.is_settled:
        entries = posterior.mean_entries()
    else:
        versions = draw_versions(posterior, posterior.weights(), draw_key(source), 1)[:, 0]
        means = posterior.layout.normalised(posterior.parameters)
        entries = _entries_under(posterior, versions, means)
    outcome = sample_outcome(problem, entries, arm, codes, source)
    intervention = problem.arms[arm]
    return Record(problem, intervention, outcome, problem.fixed(intervention))


def draw_worlds(posterior: Posterior, count: int, rng: Random) -> FloatArray:
    """Draw the entries of all factors: (count, entries)."""
    source = generator(rng)
    if posterior.is_settled:
        return np.ascontiguousarray(posterior.draw_entries(count, source).T, dtype=np.float64)
    versions = draw_versions(posterior, posterior.weights(), draw_key(source), count)
    drawn = posterior.draw_entries(count, source).astype(np.float64)
    return _under_versions(posterior, versions, drawn)


def draw_prior_worlds(problem: Problem, prior: Prior, count: int, rng: Random) -> FloatArray:
    """Draw the entries of all factors from a prior, in which rows may be pooled: (count, entries).

    Draws from a posterior with pooled rows drop the dependence between rows; these have it.
    """
    posterior, source = Posterior(problem, prior), generator(rng)
    layout, base = posterior.layout, posterior.base[:, None]
    # Logarithms of gamma variates, which stay finite for tiny parameters.
    logs = np.log(source.standard_gamma(base + 1, (layout.entries, count)))
    logs += np.log1p(-source.random(logs.shape)) / base
    logs -= np.repeat(np.maximum.reduceat(logs, layout.row_starts), layout.row_sizes, axis=0)
    drawn = np.exp(logs)
    drawn /= np.repeat(np.add.reduceat(drawn, layout.row_starts), layout.row_sizes, axis=0)
    if posterior.pooling is not None:
        draw_pooled_rows(drawn, posterior.pooling, source)
    if posterior.is_settled:
        return np.ascontiguousarray(drawn.T)
    versions = draw_versions(posterior, posterior.weights(), draw_key(source), count)
    return _under_versions(posterior, versions, drawn)


def _under_versions(posterior: Posterior, versions: IntArray, drawn: FloatArray) -> FloatArray:
    pairs = zip(versions.T, drawn.T, strict=True)
    return np.array([_entries_under(posterior, chosen, entries) for chosen, entries in pairs])


def _entries_under(posterior: Posterior, versions: IntArray, entries: FloatArray) -> FloatArray:
    """Return the entries of the factors if each variable has the given version."""
    factors = posterior.model.factors
    of_factors = np.empty(factors.entries)
    for v, m in enumerate(versions.tolist()):
        for f, table in posterior.shared.version_tables(entries, v, m):
            factors.table(of_factors, f)[...] = table
    return of_factors


_POINTS = 4001  # of the grid, for an error of at most 3e-5
_DEPTH = 40.0  # the grid ends where the log density is this far below its peak
_BLOCK = 64  # distributions per block, to bound the memory


def dirichlet_intervals(parameters: FloatArray, level: float) -> FloatArray:
    """Return central credible intervals of each entry of Dirichlet rows: (rows, values, 2)."""
    complements = parameters.sum(axis=1, keepdims=True) - parameters
    intervals = beta_interval(parameters.ravel(), complements.ravel(), level)
    return intervals.reshape(*parameters.shape, 2)


def beta_interval(a: FloatArray, b: FloatArray, level: float) -> FloatArray:
    """Return the central interval of each Beta(a, b), to four digits: (distributions, 2)."""
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    intervals = np.empty((len(a), 2))
    for first in range(0, len(a), _BLOCK):
        block = slice(first, first + _BLOCK)
        intervals[block] = _quantiles(a[block, None], b[block, None], tails)
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
