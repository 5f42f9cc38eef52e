"""One run of Thompson Sampling in a world drawn from the prior, for Theorems 1 and 2.

In each round the information ratio and γ_t are computed from N fresh draws. A ratio from few draws
is too small, because the estimate of g is too large; so the rounds with the largest ones are kept
as they were, to be looked at again with more draws.

All that `bounds` asks of a belief goes through this module, some draws at a time: then a bar moves,
Ctrl-C ends it at once, and of each draw no more is kept than which arm is its best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isinf, log
from time import monotonic

import numpy as np

from dowise.belief import Belief
from dowise.belief.in_blocks import draw_in_blocks
from dowise.environments import make_environment
from dowise.information import (
    Estimate,
    delta_interval,
    estimate_in_blocks,
    gain_interval,
    gamma_bracket,
    information_ratio,
)
from dowise.model.draws import Draws
from dowise.policies.thompson import ThompsonSampling
from dowise.problem import Problem
from dowise.problem.problem import Context
from dowise.randomness import Random

__all__ = ["Meter", "Progress", "Run", "estimated", "ratio_of_thompson", "run_thompson"]

_STEEPEST = 5  # rounds of the run whose ratio is taken again with more draws

_PAUSE = 0.1  # seconds between two words on how far it is

Progress = Callable[[str, int, int], None]
"""Is told what is being done, how much of it is done, and how much there is."""
State = tuple[dict[str, str], Belief]


class Meter:
    """How far a part of the work is; it says so now and then."""

    def __init__(self, progress: Progress | None, what: str, total: int) -> None:
        self._progress, self._what, self._total = progress, what, total
        self._done, self._said = 0, monotonic()
        if progress is not None:
            progress(what, 0, total)

    def advance(self, by: int) -> None:
        """So much more is done."""
        self.reach(self._done + by)

    def reach(self, done: int) -> None:
        """So much is done by now."""
        self._done, now = min(done, self._total), monotonic()
        if self._progress and (now - self._said >= _PAUSE or self._done == self._total):
            self._said = now
            self._progress(self._what, self._done, self._total)


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
    problem: Problem, horizon: int, samples: int, level: float, seed: int, progress: Progress | None
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
    meter = Meter(progress, "a run of Thompson Sampling", horizon * samples)
    for t in range(horizon):
        context = world.draw_context(rng)
        found = estimated(belief, context, samples, rng, meter)
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


def estimated(
    belief: Belief, context: Context, samples: int, rng: Random, meter: Meter
) -> Estimate:
    """Δ, g and p* from so many draws."""

    def measured() -> Iterator[Draws]:
        for block in draw_in_blocks(belief, codes, samples, rng):
            meter.advance(block.samples)
            yield block

    codes = belief.problem.context_codes(context)
    return estimate_in_blocks(measured(), belief.problem.payoff, samples)


def ratio_of_thompson(found: Estimate) -> float:
    """Ψ of Thompson Sampling, which plays an arm with the probability that it is the best."""
    return float(information_ratio(found.best @ found.delta, found.best @ found.gain))
