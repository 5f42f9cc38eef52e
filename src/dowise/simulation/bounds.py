"""The regret bounds of the paper for a problem at hand: sections 5 and 6, with numbers.

What goes in: the prior probability p*(a) that an arm is best in a context, and the entropy H(Π*) of
the whole map from contexts to best arms, both from posterior draws at the prior; and, for Theorems
1 and 2, one run of Thompson Sampling in a world drawn from the prior (`bound_run.py`).

The draws of two contexts with the same seed have the same CPTs, so the best arms of all contexts
under one draw make one map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, inf, log, log10, prod

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.checks import share, whole_number
from dowise.errors import DowiseError
from dowise.information import Estimate, gain_interval, map_entropy
from dowise.problem import Problem
from dowise.simulation.bound_figures import Bounds
from dowise.simulation.bound_run import (
    Track,
    estimated,
    ratio_of_thompson,
    ratio_then,
    run_thompson,
)

__all__ = ["bounds"]

MAX_CONTEXTS = 1024
_DRAWS_PER_KIND = 10  # with fewer for each arm or map, an entropy is not to be trusted
_MOST_SAMPLES = 1e15  # where the search for the N at which intervals bite ends


def bounds(
    problem: Problem,
    horizon: int,
    samples: int = 50_000,
    policy_samples: int = 1000,
    delta: float = 0.05,
    seed: int = 0,
    track: Track = lambda items, _what: items,
) -> Bounds:
    """Every bound of the paper for this problem at its prior, uniform unless told.

    `samples` draws for p* and H(Π*); `policy_samples` (N) draws in each round of the run, with the
    intervals of Lemmas 3 and 4 at level delta / (2·horizon·K). `track` shows progress: it is given
    what to go through, and what for.
    """
    horizon, samples = whole_number("horizon", horizon, 1), whole_number("samples", samples, 1)
    policy_samples = whole_number("policy_samples", policy_samples, 1)
    failure, seed = share("delta", delta), whole_number("seed", seed, 0)
    arms = len(problem.arms)
    if min(samples, policy_samples) < _DRAWS_PER_KIND * arms:
        raise DowiseError(
            f"samples={samples} and policy_samples={policy_samples} must be at least "
            f"{_DRAWS_PER_KIND * arms} ({_DRAWS_PER_KIND} for each arm) to say anything"
        )
    belief = Belief(problem)
    contexts = tuple(_contexts(problem))
    level = failure / (2 * horizon * arms)
    prior = _at_the_prior(belief, contexts, samples, level, seed, track)
    is_joint = samples >= _DRAWS_PER_KIND * len(prior.maps)
    entropy, error = (
        map_entropy(prior.maps) if is_joint else _summed_entropy(prior.p_best * samples)
    )
    entropy = min(entropy, len(contexts) * log(arms))  # the correction may overshoot
    run = run_thompson(problem, horizon, policy_samples, level, seed, track)
    ratios = [ratio_then(state, samples, seed) for state in run.steepest]
    return Bounds(
        problem, horizon, samples, policy_samples, failure, seed, contexts, prior.p_best,
        entropy, error, len(prior.maps), is_joint,
        replace(run, largest_ratio=max([prior.ratio, *ratios])),
        prior.some, inf if prior.unresolved else prior.every, prior.unresolved,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Prior:
    """What draws before anything was seen tell; over all contexts."""

    p_best: NDArray[np.float64]
    """p*(a): (contexts, arms)."""
    maps: NDArray[np.int64]
    """How many draws have each map from context to best arm that was seen."""
    ratio: float
    """The largest information ratio of Thompson Sampling."""
    some: float
    """The N from which the lower bound on some arm's g is positive, and that on every arm's."""
    every: float
    unresolved: int
    """Arms whose g may be nothing but noise, in the worst context."""


def _at_the_prior(
    belief: Belief,
    contexts: Sequence[dict[str, str]],
    samples: int,
    level: float,
    seed: int,
    track: Track,
) -> _Prior:
    arms = len(belief.problem.arms)
    p_best: list[NDArray[np.float64]] = []
    maps: NDArray[np.int64] | int = 0
    ratio, some, every, unresolved = 0.0, inf, 1.0, 0
    for context in track(contexts, "p* and H(Π*) before anything was seen"):
        found = estimated(belief, context, samples, seed)
        p_best.append(found.best)
        maps = np.unique(maps * arms + found.winners, return_inverse=True)[1]
        ratio = max(ratio, ratio_of_thompson(found))
        unresolved = max(unresolved, int((found.gain < _noise(found)).sum()))
        some = _samples_for(found, level, np.any, 1.0, some)
        every = _samples_for(found, level, np.all, every, inf)
    return _Prior(np.array(p_best), np.bincount(maps), ratio, some, every, unresolved)


def _contexts(problem: Problem) -> Iterator[dict[str, str]]:
    domains = [problem.domains[name] for name in problem.context]
    count = prod(len(domain) for domain in domains)
    if count > MAX_CONTEXTS:
        raise DowiseError(
            f"the problem has {count:,} contexts, and bounds goes through each of at most "
            f"{MAX_CONTEXTS:,}: name fewer context variables"
        )
    for labels in product(*domains):
        yield dict(zip(problem.context, labels, strict=True))


def _noise(found: Estimate) -> float:
    """A gain up to this may be nothing but the bias of an estimate from so many draws."""
    arms, values = found.outcomes.shape
    return float((arms - 1) * (values - 1) / (2 * found.samples))


def _summed_entropy(counts: NDArray[np.float64]) -> tuple[float, float]:
    """Σ_c H(Π*(c)), an upper bound on the entropy of the map; the errors add up at worst."""
    parts = [map_entropy(row) for row in counts]
    return sum(h for h, _ in parts), sum(error for _, error in parts)


def _samples_for(
    found: Estimate,
    level: float,
    enough: Callable[[NDArray[np.bool_]], np.bool_],
    least: float,
    most: float,
) -> float:
    """The N, to two digits, from which some or all lower bounds of Lemma 4 are positive.

    From one large estimate with the radii that N draws would have; nobody draws 1e8. Not less than
    `least` and not more than `most`, which other contexts have settled.
    """

    def bites(n: float) -> bool:
        return bool(enough(gain_interval(found, level, ceil(n)).low > 0))

    if bites(least):
        return least
    if not bites(min(most, _MOST_SAMPLES)):
        return most
    low, high = log10(least), log10(min(most, _MOST_SAMPLES))
    while high - low > 0.002:
        middle = (low + high) / 2
        low, high = (low, middle) if bites(10**middle) else (middle, high)
    return float(f"{10**high:.1e}")
