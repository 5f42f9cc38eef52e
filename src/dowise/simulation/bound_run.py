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
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.environments import make_environment
from dowise.information import (
    Estimate,
    delta_interval,
    estimate_from_draws,
    gain_interval,
    gamma_bracket,
    information_ratio,
)
from dowise.policies.thompson import ThompsonSampling
from dowise.problem import Problem

__all__ = [
    "Run", "Track", "draws_of", "estimate_of", "ratio_of_thompson", "ratio_then", "run_thompson",
    "winners_of",
]  # fmt: skip

_STEEPEST = 5  # rounds of the run whose ratio is taken again with more draws

Track = Callable[[Iterable[Any], str], Iterable[Any]]
State = tuple[dict[str, str], NDArray[np.float64]]
Draws = NDArray[np.float32]


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
    """Where Ψ_t was largest by N draws: context and Dirichlet counts, to look at more closely."""


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
        found = estimate_of(belief, draws_of(belief, context, samples, rng))
        ratio = ratio_of_thompson(found)
        if len(steepest) < _STEEPEST or ratio > steepest[0][0]:
            steepest = sorted([*steepest, (ratio, t, (context, belief.counts.copy()))])[-_STEEPEST:]
        gain = gain_interval(found, level)
        vacuous += bool((gain.low == 0).all() and (gain.high == most).all())
        low, high = gamma_bracket(delta_interval(found, level), gain)
        infinite += isinf(high)
        gammas_low, gammas_high = gammas_low + low, gammas_high + high
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
    states = tuple(state for _, _, state in steepest)
    return Run(0.0, gammas_low, gammas_high, infinite, vacuous, states)


def draws_of(
    belief: Belief, context: dict[str, str], samples: int, rng: np.random.Generator | int
) -> Draws:
    """Posterior draws of every arm's reward distribution, raw."""
    return belief.draw_raw(context, samples, rng)


def estimate_of(belief: Belief, drawn: Draws) -> Estimate:
    """Δ, g and p* from draws."""
    return estimate_from_draws(drawn, np.array(belief.problem.scaled_rewards))


def winners_of(belief: Belief, drawn: Draws) -> NDArray[np.int64]:
    """The best arm under each draw."""
    worth = np.array(belief.problem.scaled_rewards)
    winners: NDArray[np.int64] = np.einsum("avs,v->as", drawn, worth[1:] - worth[0]).argmax(axis=0)
    return winners


def ratio_then(belief: Belief, state: State, samples: int, seed: int) -> float:
    """Ψ of Thompson Sampling in a round that was kept, from so many draws; `belief` goes there."""
    context, belief.counts[:] = state
    return ratio_of_thompson(estimate_of(belief, draws_of(belief, context, samples, seed)))


def ratio_of_thompson(found: Estimate) -> float:
    """Ψ of Thompson Sampling, which plays an arm with the probability that it is the best."""
    return float(information_ratio(found.best @ found.delta, found.best @ found.gain))
