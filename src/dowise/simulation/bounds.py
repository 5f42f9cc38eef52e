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
from dowise.checks import share, true_or_false, whole_number
from dowise.errors import DowiseError
from dowise.information import Estimate, gains_above_0, map_entropy
from dowise.problem import Problem
from dowise.simulation.bound_figures import Bounds
from dowise.simulation.bound_run import (
    Meter,
    Progress,
    Run,
    estimated,
    ratio_of_thompson,
    run_thompson,
)
from dowise.simulation.certify import LEAST_TRIALS, TRIALS, certified_runs
from dowise.simulation.race import MOST_ROUNDS

__all__ = ["bounds"]

MAX_CONTEXTS = 1024
# As in the paper, or so many for each arm: then a p* of 1/K is known to a tenth.
SAMPLES, SAMPLES_PER_ARM = 50_000, 100
POLICY_SAMPLES = 1000
_DRAWS_PER_KIND = 10  # with fewer for each arm or map, an entropy is not to be trusted
_MOST_SAMPLES = 50_000_000  # whose best arms take 2 GB while they are counted
_LARGEST_N = 1e15  # where the search for the N at which intervals bite ends
_SEARCH = 32  # steps of that search, each of which counts as a hundredth of the draws


def bounds(
    problem: Problem,
    horizon: int,
    samples: int | None = None,
    policy_samples: int | None = None,
    delta: float = 0.05,
    seed: int = 0,
    progress: Progress | None = None,
    certify: bool = False,
    trials: int | None = None,
) -> Bounds:
    """Every bound of the paper for this problem at its prior, uniform unless told.

    `samples` draws for p* and H(Π*), unless told 50,000, or 100 for each arm where that is more;
    `policy_samples` (N) draws in each round of the run, unless told 1000, or 10 for each arm, with
    the intervals of Lemmas 3 and 4 at level delta / (2·horizon·K). `progress` is told what is being
    done, how much of it is, and how much there is. With `certify` also the bound of
    docs/certificate.md, from so many `trials` of "certified-ids", 100 unless told.
    """
    horizon = whole_number("horizon", horizon, 1, MOST_ROUNDS)
    arms = len(problem.arms)
    samples = _checked_draws("samples", samples, arms, max(SAMPLES, SAMPLES_PER_ARM * arms))
    policy_samples = _checked_draws(
        "policy_samples", policy_samples, arms, max(POLICY_SAMPLES, _DRAWS_PER_KIND * arms)
    )
    failure, seed = share("delta", delta), whole_number("seed", seed, 0)
    trials = _checked_trials(trials, true_or_false("certify", certify))
    belief = Belief(problem)
    contexts = tuple(_contexts(problem))
    level = failure / (2 * horizon * arms)
    prior = _at_the_prior(belief, contexts, samples, level, seed, progress)
    is_joint = samples >= _DRAWS_PER_KIND * len(prior.maps)
    entropy, error = (
        map_entropy(prior.maps) if is_joint else _summed_entropy(prior.p_best * samples)
    )
    entropy = min(entropy, len(contexts) * log(arms))  # the correction may overshoot
    run = run_thompson(problem, horizon, policy_samples, level, seed, progress)
    run = _looked_at_again(run, prior.ratio, samples, seed, progress)
    certified = None
    if certify:
        certified = certified_runs(
            problem, horizon, policy_samples, failure, trials, seed, (entropy, error), progress
        )
    return Bounds(
        problem, horizon, samples, policy_samples, failure, seed, contexts, prior.p_best,
        entropy, error, len(prior.maps), is_joint, run,
        prior.some, inf if prior.unresolved else prior.every, prior.unresolved, certified,
    )  # fmt: skip


def _looked_at_again(
    run: Run, ratio: float, samples: int, seed: int, progress: Progress | None
) -> Run:
    """The run with its largest ratio, from more draws; it is at least that of the prior."""
    meter = Meter(progress, "the steepest rounds again", len(run.steepest) * samples)
    again = [estimated(then, context, samples, seed, meter) for context, then in run.steepest]
    return replace(run, largest_ratio=max([ratio, *map(ratio_of_thompson, again)]))


def _checked_trials(given: int | None, is_wanted: bool) -> int:
    if given is not None and not is_wanted:
        raise DowiseError(f"trials={given!r} (--trials) are those of --certify: give it as well")
    return whole_number("trials", TRIALS if given is None else given, LEAST_TRIALS)


def _checked_draws(name: str, given: int | None, arms: int, needed: int) -> int:
    """How many draws are made: those given, or what the problem needs."""
    number = whole_number(name, needed if given is None else given, 1, _MOST_SAMPLES)
    least = _DRAWS_PER_KIND * arms
    if number < least:
        raise DowiseError(
            f"{name}={number} (--{name.replace('_', '-')}) must be at least {least:,} "
            f"({_DRAWS_PER_KIND} for each arm) to say anything: leave it out, and there are enough"
        )
    return number


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
    progress: Progress | None,
) -> _Prior:
    arms = len(belief.problem.arms)
    p_best: list[NDArray[np.float64]] = []
    maps: NDArray[np.int64] | int = 0
    ratio, some, every, unresolved = 0.0, inf, 1.0, 0
    each = samples + _SEARCH * (samples // 100)
    meter = Meter(progress, "p* and H(Π*) before anything was seen", len(contexts) * each)
    for i, context in enumerate(contexts):
        found = estimated(belief, context, samples, seed, meter)
        p_best.append(found.best)
        maps = np.unique(maps * arms + found.winners, return_inverse=True)[1]
        ratio = max(ratio, ratio_of_thompson(found))
        unresolved = max(unresolved, int((found.gain < _noise(found)).sum()))
        some = _samples_for(found, level, np.any, 1.0, some, meter)
        every = _samples_for(found, level, np.all, every, inf, meter)
        meter.reach((i + 1) * each)
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
    meter: Meter,
) -> float:
    """The N, to two digits, from which some or all lower bounds of Lemma 4 are positive.

    From one large estimate with the radii that N draws would have; nobody draws 1e8. Not less than
    `least` and not more than `most`, which other contexts have settled.
    """

    def bites(n: float) -> bool:
        meter.advance(found.samples // 100)
        return bool(enough(gains_above_0(found, level, ceil(n))))

    if least == inf or bites(least):
        return least
    if not bites(min(most, _LARGEST_N)):
        return most
    low, high = log10(least), log10(min(most, _LARGEST_N))
    while high - low > 0.002:
        middle = (low + high) / 2
        low, high = (low, middle) if bites(10**middle) else (middle, high)
    return float(f"{10**high:.1e}")
