"""The bound of docs/certificate.md for a problem at hand: `certified-ids` in worlds of the prior.

E[Σ cert_t] is the mean over trials, each in a world of its own; what is left open by so many trials
and by the estimate of H(Π*) is in the upper limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.environments.draw import Manner
from dowise.environments.sources import random_worlds
from dowise.information.certificate import certified_regret, worth_of
from dowise.model.sampling import Script
from dowise.policies.certified import CertifiedSampling, Played
from dowise.policies.policy import Loop
from dowise.problem import Problem
from dowise.simulation.bound_run import Meter, Progress
from dowise.simulation.trial import make_world, run_trial

__all__ = ["LEAST_TRIALS", "TRIALS", "Certified", "certified_runs"]

CONFIDENCE = 0.95  # of the upper limit
LEAST_TRIALS = 10  # for the quantile of Student's t below
TRIALS = 100


@dataclass(frozen=True, eq=False)
class Certified:
    """What `certified-ids` certified in some trials, for rewards in [0, 1]."""

    lam: float
    sums: NDArray[np.float64]
    """Σ cert_t of every trial."""
    share: float
    """The share of rounds in which draws certified what IDS would play."""
    bound_of_zero: float
    """The bound if all certificates were 0: λH(Π*) + δ'(span + λ log r)."""
    entropy_error: float
    """The standard error of the estimate of H(Π*)."""
    regrets: NDArray[np.float64]
    """What every trial did cost: a measurement, no bound."""

    @property
    def mean(self) -> float:
        """The bound on the Bayesian regret, with the mean over the trials for E[Σ cert_t]."""
        return self.bound_of_zero + float(self.sums.mean())

    @property
    def bound(self) -> float:
        """Its upper limit at confidence .95, by Student's t over the trials and the error of H."""
        trials = len(self.sums)
        error = sqrt(float(self.sums.var(ddof=1)) / trials + (self.lam * self.entropy_error) ** 2)
        return self.mean + _upper_quantile(trials - 1) * error

    def as_dict(self) -> dict[str, float]:
        """Every figure by its own name."""
        return {
            "certified_bound": self.bound,
            "certified_mean": self.mean,
            "certified_share": self.share,
            "certified_trials": len(self.sums),
            "certified_lam": self.lam,
            "certified_regret": float(self.regrets.mean()),
        }


def certified_runs(
    problem: Problem,
    horizon: int,
    samples: int,
    delta: float,
    trials: int,
    seed: int,
    entropy: tuple[float, float],
    progress: Progress | None = None,
) -> Certified:
    """Let `certified-ids` play so many trials; `entropy` is H(Π*) with its standard error."""
    played: list[Played] = []

    def make(own: Problem) -> _Watched:
        return _Watched(own, samples, delta, horizon, tell=played.append)

    regrets = np.empty(trials)
    worlds = random_worlds(problem, Manner(edges="prior"))
    meter = Meter(progress, "certified-ids", trials * horizon)
    for trial in range(trials):
        world = make_world(worlds, seed, trial)
        regrets[trial] = run_trial(world, make, horizon, seed, trial).regrets.sum()
        meter.advance(horizon)
    lam = make(problem).lam
    flat = certified_regret(
        lam, entropy[0], 0.0, delta, worth_of(problem.payoff, len(problem.arms))
    )
    return Certified(
        lam,
        np.array([run.certificates.sum() for run in played]),
        float(np.mean([run.held.mean() for run in played])),
        flat,
        entropy[1],
        regrets / problem.payoff.span,
    )


class _Watched(CertifiedSampling):
    """The policy, which tells what it certified."""

    def __init__(self, problem: Problem, *options: Any, tell: Callable[[Played], None]) -> None:
        super().__init__(problem, *options)
        self._tell = tell

    def compiled_loop(self) -> Loop:
        return self._play

    def _play(self, script: Script, rng: np.random.Generator) -> NDArray[np.int64]:
        played = self.play_certified(script, rng)
        self._tell(played)
        return played.arms


def _upper_quantile(freedom: int) -> float:
    """Student's t at CONFIDENCE, to a thousandth from nine degrees of freedom on.

    By Fisher's expansion around the normal quantile (Abramowitz & Stegun 26.7.5).
    """
    z = NormalDist().inv_cdf(CONFIDENCE)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2
