"""Worlds that a posterior holds for possible, and outcomes that it expects.

A world is a draw of all entries, its edges among it. An outcome is drawn from the posterior
predictive distribution: it takes one entry of each row at most, and rows are independent, so given
the edges its chance is the product of mean entries. An outcome that is learned after it was drawn
so leaves every mean where it was on average (a martingale), and what is not known smaller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dowise.belief.dirichlet import Dirichlet
from dowise.belief.mixture import Mixture
from dowise.belief.posterior import Posterior
from dowise.compiling import kernels_of
from dowise.model import Codes
from dowise.model.sampler import outcome
from dowise.problem import Record
from dowise.randomness import Random, generator, key_of

__all__ = ["can_imagine", "draw_worlds", "imagine"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_kernels = kernels_of("dowise.belief.kernels")
_draws = kernels_of("dowise.belief.mixture_draws")


def can_imagine(posterior: Posterior) -> bool:
    """Whether it is known how a posterior's outcomes come about: not of one of the user's own."""
    return isinstance(posterior, Dirichlet | Mixture)


def imagine(posterior: Dirichlet | Mixture, arm: int, codes: Codes, rng: Random) -> Record:
    """An outcome of an arm in a context, both by their positions, as likely as it is by now."""
    problem, source = posterior.problem, generator(rng)
    if isinstance(posterior, Mixture):
        (versions,) = _versions(posterior, 1, source)
        means = posterior.shared.structures.tables.normalised(posterior.prior + posterior.counts)
        entries = _under(posterior, versions, means)
    else:
        entries = posterior.mean_entries()
    played = problem.arms[arm]
    seen = outcome(problem, entries, arm, codes, source)
    return Record(problem, played, seen, problem.fixed(played))


def draw_worlds(posterior: Dirichlet | Mixture, count: int, rng: Random) -> Floats:
    """Draws of the entries of all factors: (count, entries)."""
    source = generator(rng)
    if isinstance(posterior, Dirichlet):
        return np.ascontiguousarray(posterior.draw_entries(count, source).T, dtype=np.float64)
    versions = _versions(posterior, count, source)
    tables = posterior.shared.structures.tables
    drawn = np.empty((tables.entries, count), dtype=np.float32)
    _kernels.draw_entries(
        key_of(source), posterior.prior + posterior.counts, tables.row_starts, tables.row_sizes,
        posterior.block, drawn,
    )  # fmt: skip
    each = zip(versions, drawn.T.astype(np.float64), strict=True)
    return np.array([_under(posterior, own, entries) for own, entries in each])


def _versions(posterior: Mixture, count: int, source: np.random.Generator) -> Integers:
    """Sets of edges as likely as they are: the version of every variable, (count, variables)."""
    shared = posterior.shared
    first: Integers = shared.structures.first
    versions = np.repeat(first[:-1, None], count, axis=1)
    _draws.choose(
        key_of(source), len(posterior.counts), shared.choices.options, posterior.weights(), 0,
        count, versions,
    )  # fmt: skip
    return np.ascontiguousarray(versions.T)


def _under(posterior: Mixture, versions: Integers, entries: Floats) -> Floats:
    """The factors of the full graph where each variable has this version."""
    structures, factors = posterior.shared.structures, posterior.model.factors
    found = np.empty(factors.entries)
    for f, v in enumerate(factors.targets.tolist()):
        t = structures.table_of[versions[v], f]
        axes = structures.tables.families[t]
        spread = tuple(slice(None) if u in axes else None for u in factors.families[f])
        factors.table(found, f)[...] = structures.tables.table(entries, t)[spread]
    return found
