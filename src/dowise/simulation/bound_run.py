"""One run of Thompson Sampling in a world drawn from the prior, for Theorems 1 and 2.

In each round the information ratio and γ_t are computed from N fresh draws. A ratio from few draws
is too small, because the estimate of g is too large; so the rounds with the largest ones are kept
as they were, to be looked at again with more draws.

All that `bounds` asks of a belief goes through this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isinf, log
from typing import Any

import numpy as np

from dowise.belief import Belief
from dowise.environments import make_environment
from dowise.information import (
    Estimate,
    delta_interval,
    estimate_of,
    gain_interval,
    gamma_bracket,
    information_ratio,
)
from dowise.policies.thompson import ThompsonSampling
from dowise.problem import Problem
from dowise.problem.problem import Context
from dowise.randomness import Random

__all__ = ["Run", "Track", "estimated", "ratio_of_thompson", "ratio_then", "run_thompson"]

_STEEPEST = 5  # rounds of the run whose ratio is taken again with more draws

Track = Callable[[Iterable[Any], str], Iterable[Any]]
State = tuple[dict[str, str], Belief]


@dataclass(frozen=True, eq=False)
class Run:
    """What one run of Thompson Sampling showed, from N fresh draws in each round."""

    largest_ratio: float
    """The largest information ratio Ψ_t of Thompson Sampling; a measurement of one run."""
    gamma_low: float
    """Σγ_t from below, and from above."""
    gamma_high: float
    infinite_rounds: int
    """Rounds in which γ_t is infinite."""
    vacuous_rounds: int
    """Rounds in which Lemma 4 says of no arm more than 0 ≤ g ≤ log r."""
    steepest: tuple[State, ...] = ()
    """Where Ψ_t was largest by N draws: the context and the belief, to look at more closely."""


def run_thompson(
    problem: Problem, horizon: int, samples: int, level: float, seed: int, track: Track
) -> Run:
    """Let Thompson Sampling play, and take every round's figures at N = `samples` draws.

    Each interval may fail with probability `level`. `largest_ratio` is left at 0: it takes more
    draws than these.
    """
    world_seed, run_seed = np.random.SeedSequence(seed).spawn(2)
    world = make_environment(problem, int(world_seed.generate_state(1)[0]))
    policy = ThompsonSampling(problem)
    belief = policy.belief
    rng = np.random.default_rng(run_seed)
    steepest: list[tuple[float, int, State]] = []
    gammas_low, gammas_high, infinite, vacuous = 0.0, 0.0, 0, 0
    most = log(len(problem.domains[problem.reward]))
    for t in track(range(horizon), "a run of Thompson Sampling"):
        context = world.draw_context(rng)
        found = estimated(belief, context, samples, rng)
        ratio = ratio_of_thompson(found)
        if len(steepest) < _STEEPEST or ratio > steepest[0][0]:
            steepest = sorted([*steepest, (ratio, t, (context, belief.copy()))])[-_STEEPEST:]
        gain = gain_interval(found, level)
        vacuous += bool((gain.low == 0).all() and (gain.high == most).all())
        low, high = gamma_bracket(delta_interval(found, level), gain)
        infinite += isinf(high)
        gammas_low, gammas_high = gammas_low + low, gammas_high + high
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
    states = tuple(state for _, _, state in steepest)
    return Run(0.0, gammas_low, gammas_high, infinite, vacuous, states)


def estimated(belief: Belief, context: Context, samples: int, rng: Random) -> Estimate:
    """Δ, g and p* from so many draws."""
    draws = belief.draw(belief.problem.context_codes(context), samples, rng)
    return estimate_of(draws, belief.problem.payoff)


def ratio_then(state: State, samples: int, seed: int) -> float:
    """Ψ of Thompson Sampling in a round that was kept, from so many draws."""
    context, belief = state
    return ratio_of_thompson(estimated(belief, context, samples, seed))


def ratio_of_thompson(found: Estimate) -> float:
    """Ψ of Thompson Sampling, which plays an arm with the probability that it is the best."""
    return float(information_ratio(found.best @ found.delta, found.best @ found.gain))
