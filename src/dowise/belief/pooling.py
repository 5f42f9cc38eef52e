"""The pooled prior: rows of a table scatter around a common row, which is learned.

Independent flat rows imply that an arm that was never tried is mediocre, however the tables look.
With the pooled prior a row that was never seen is expected to look like the other rows of its
table, as far as these look alike. Two hypotheses about each table have prior ½ each:

- *flat*: every row is Dirichlet(1, …, 1), independently;
- *pooled*: a row of V values is V − 1 sticks, s_x = P(X = x | X ≥ x). Stick x of every row is
  Beta(a, b) with the same unknown (a, b): a and b are each one of ½, 1, 2, …, 128, with a prior
  proportional to (a/b)^τ / min(a, b/d), where d is the number of values after x. The exponent τ
  makes all values equally likely before any data: E[s_x] = 1/(d + 1). For d = 1 it is 0.

The evidence of every hypothesis is a sum of logarithms of a shape plus a count, each rounded to an
integer number of 2⁻³⁶ nats, so it is a function of the counts. Posterior means are exact: tables
are independent and a monomial of the circuit has one entry of each table. For draws and variances
each row is *matched*: it is the Dirichlet distribution with the mean and the total variance that
the row has under the mixture, and the dependence between rows is dropped.

A table of one row has nothing to pool and stays flat, and so does one of more than `MAX_ROWS` rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise.model.factors import TableLayout

SHAPES: FloatArray = 2.0 ** np.arange(-1.0, 8.0)
"""Values of a and b on the grid."""
NAT = 2.0**36
"""Units of evidence in a nat: evidence is counted in integers."""
MAX_ROWS = 10_000
"""Tables of more rows stay flat: all rows of a table are matched after every record."""


class Grid(NamedTuple):
    """Pairs of shapes (a, b) of a stick; a varies slowest."""

    shapes: FloatArray
    a: FloatArray
    b: FloatArray
    sums: FloatArray
    """Distinct values of a + b."""
    sum_of: IntArray
    """Index of each pair's a + b in `sums`."""
    pair: IntArray
    """The pair with a ≤ b of each sum."""
    mirrored: IntArray
    """The pair (b, a) of each sum."""
    log_prior: FloatArray
    """log_prior[d, g]: prior of pair g for a stick with d values after it."""


class Pooling(NamedTuple):
    """Tables of a posterior with pooled rows, as kernels see them."""

    is_pooled: BoolArray
    """True for each table with pooled rows."""
    starts: IntArray
    sizes: IntArray
    """Number of values in a row of each table."""
    grid: Grid


class PooledState(NamedTuple):
    """Kernel view of a posterior with pooled rows and without open edges."""

    prior: FloatArray
    """Matched Dirichlet parameters less the counts: `prior + counts` is what draws use."""
    counts: IntArray
    unused: IntArray
    told: IntArray
    """told[table, stick, g]: log evidence of pair g for a stick, in 2⁻³⁶ nats."""
    told_flat: IntArray
    """Log evidence of the flat hypothesis of each table, in 2⁻³⁶ nats."""
    pooling: Pooling


class PooledMixedState(NamedTuple):
    """Kernel view of a posterior with pooled rows and open edges: the entries of all versions."""

    prior: FloatArray
    """Matched Dirichlet parameters less the counts."""
    base: FloatArray
    """Parameters of the flat rows that versions are weighed by."""
    counts: IntArray
    evidence: IntArray
    unused: IntArray
    told: IntArray
    told_flat: IntArray
    pooling: Pooling


class CommonRow(NamedTuple):
    """Posterior of the common row of one table, from `Belief.alike`."""

    probability: float
    """Probability that the rows of the table are pooled."""
    mean: tuple[float, ...]
    """Mean of the common row, if they are."""
    low: tuple[float, ...]
    """Lower end of the 90 % range of each entry of a new row, if they are."""
    high: tuple[float, ...]


@lru_cache(maxsize=8)
def grid(values: int) -> Grid:
    """Return the grid for tables with at most this number of values in a row."""
    a, b = (x.ravel() for x in np.meshgrid(SHAPES, SHAPES, indexing="ij"))
    sums, sum_of = np.unique(a + b, return_inverse=True)
    log_prior = np.zeros((max(values, 2), len(a)))
    for later in range(1, len(log_prior)):
        weights = _tilted(1 / np.minimum(a, b / later), a, b, 1 / (later + 1))
        log_prior[later] = np.rint(np.log(weights) * NAT) / NAT  # the same bits on every processor
    low, high = np.flatnonzero(a <= b), np.flatnonzero(a >= b)
    pair, mirrored = low[np.argsort(sum_of[low])], high[np.argsort(sum_of[high])]
    return Grid(SHAPES, a, b, sums, sum_of.astype(np.int64), pair, mirrored, log_prior)


def _tilted(weights: FloatArray, a: FloatArray, b: FloatArray, mean: float) -> FloatArray:
    """Return the weights times (a/b)^τ, summing to 1, with τ such that E[a/(a + b)] = `mean`."""
    low, high = -8.0, 0.0  # E rises with τ; without a tilt it is at least `mean`
    while True:
        tilt = (low + high) / 2
        tilted = weights * (a / b) ** tilt
        tilted /= tilted.sum()
        if not low < tilt < high:
            return tilted
        low, high = (low, tilt) if tilted @ (a / (a + b)) > mean else (tilt, high)


def pooling_of(layout: TableLayout, may_pool: BoolArray) -> Pooling:
    """Return the pooling of these tables; `may_pool` excludes those with counts given by users."""
    sizes = layout.sizes[layout.targets].astype(np.int64)
    rows = np.diff(layout.starts) // sizes
    is_pooled = may_pool & (rows > 1) & (rows <= MAX_ROWS)
    widest = int(sizes[is_pooled].max(initial=2))
    return Pooling(is_pooled, layout.starts, sizes, grid(widest))


def empty_evidence(pooling: Pooling) -> tuple[IntArray, IntArray]:
    """Return `told` and `told_flat` before any record."""
    tables, sticks = len(pooling.sizes), pooling.grid.log_prior.shape[0] - 1
    told = np.zeros((tables, sticks, len(pooling.grid.a)), dtype=np.int64)
    return told, np.zeros(tables, dtype=np.int64)


def counts_in_rows(counts: IntArray, pooling: Pooling) -> IntArray:
    """Return all counts of values in pooled rows, and of a value and those after it, ascending."""
    found = [np.zeros(1, dtype=np.int64)]
    for table in np.flatnonzero(pooling.is_pooled).tolist():
        rows = counts[pooling.starts[table] : pooling.starts[table + 1]]
        rows = rows.reshape(-1, pooling.sizes[table])
        found += [rows.ravel(), np.cumsum(rows[:, ::-1], axis=1).ravel()]
    return np.unique(np.concatenate(found))


def draw_pooled_rows(entries: FloatArray, pooling: Pooling, rng: np.random.Generator) -> None:
    """Draw the rows of pooled tables from the prior, in place: (entries, worlds).

    In each world a table has its own hypothesis and common sticks, and then its rows.
    """
    worlds = entries.shape[1]
    for table in np.flatnonzero(pooling.is_pooled).tolist():
        values = int(pooling.sizes[table])
        rows = entries[pooling.starts[table] : pooling.starts[table + 1]]
        rows = rows.reshape(-1, values, worlds)
        rows[...] = rng.standard_exponential(rows.shape)
        rows /= rows.sum(axis=1, keepdims=True)
        pooled = np.flatnonzero(rng.random(worlds) < 0.5)
        left = np.ones((len(rows), len(pooled)))
        for stick in range(values - 1):
            shares = np.exp(pooling.grid.log_prior[values - 1 - stick])
            pairs = rng.choice(len(shares), len(pooled), p=shares)
            drawn = rng.beta(pooling.grid.a[pairs], pooling.grid.b[pairs], left.shape)
            rows[:, stick, pooled] = left * drawn
            left *= 1 - drawn
        rows[:, -1, pooled] = left


def common_row(shares: FloatArray, probability: float, pooling: Pooling) -> CommonRow:
    """Return the common row of a table, given the posterior of the pairs of each stick.

    The range is that of a new row, from 20,000 draws with a fixed seed.
    """
    pairs, rng = pooling.grid, np.random.default_rng(0)
    left, rest, means, drawn = 1.0, np.ones(20_000), list[float](), list[FloatArray]()
    for share in shares:
        stick = float(share @ (pairs.a / (pairs.a + pairs.b)))
        means.append(left * stick)
        left *= 1 - stick
        chosen = rng.choice(len(share), len(rest), p=share)
        sticks = rng.beta(pairs.a[chosen], pairs.b[chosen])
        drawn.append(rest * sticks)
        rest = rest * (1 - sticks)
    low, high = np.quantile([*drawn, rest], [0.05, 0.95], axis=1).tolist()
    return CommonRow(probability, (*means, left), tuple(low), tuple(high))
