"""KL-UCB, a baseline whose confidence bounds fit Bernoulli rewards."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from dowise.checks import real_number
from dowise.policies.tabular import Floats, IndexPolicy, means_of
from dowise.problem import Problem

__all__ = [
    "KLUCB",
    "bernoulli_upper_bound",
    "exploration_level",
    "kl_ucb_index",
]

_STEPS = 100  # about six are needed
_SMALL = 1e-15


def exploration_level(rounds: int | NDArray[np.int64], c: float) -> Floats:
    """f(t) = ln t + c·ln ln t, and 0 where that is negative or undefined."""
    log = np.log(np.maximum(rounds, 1))
    level: Floats = np.maximum(log + c * np.log(np.maximum(log, 1e-300)), 0)
    return level


def bernoulli_upper_bound(means: Floats, levels: Floats) -> Floats:
    """The largest q with kl(mean, q) ≤ level, where kl is the divergence of Bernoulli laws.

    By Newton's method from the right: kl(p, ·) rises and is convex there, so that it closes in on
    the solution without passing it. Two bounds say where to start. One is Pinsker's inequality,
    kl(p, q) ≥ 2(q − p)²; the other drops −p·ln q ≥ 0, and is the solution itself at p = 0.
    """
    p = np.minimum(means, 1 - _SMALL)
    entropy_part = -p * np.log(np.maximum(p, 1e-300))
    cap = 1 - (1 - p) * np.exp(-(levels + entropy_part) / (1 - p))
    q = np.minimum(np.minimum(p + np.sqrt(levels / 2), cap), 1 - _SMALL)
    for _ in range(_STEPS):
        ratio = np.maximum(p, 1e-300) / np.maximum(q, 1e-300)
        excess = p * np.log(ratio) + (1 - p) * np.log((1 - p) / (1 - q)) - levels
        step = np.maximum(excess, 0) * q * (1 - q) / np.maximum(q - p, _SMALL)
        q = q - step
        if (step < 1e-14).all():
            break
    bound: Floats = np.maximum(means, q)
    return bound


def kl_ucb_index(
    plays: NDArray[np.int64], totals: Floats, rounds: int | NDArray[np.int64], c: float
) -> Floats:
    """The largest q with n·kl(mean, q) ≤ f(t) for each arm, infinite where n = 0."""
    levels = exploration_level(rounds, c) / np.maximum(plays, 1)
    return np.where(plays > 0, bernoulli_upper_bound(means_of(plays, totals), levels), inf)


class KLUCB(IndexPolicy):
    """KL-UCB (Garivier & Cappé 2011) on the problem's arms, one table per context.

    Plays the arm whose mean may be largest: the largest q with n·kl(mean, q) ≤ ln t + c·ln ln t,
    where n is how often the arm was played in this context and t how many rounds the context has
    had. c = 3 is what their Theorem 1 needs; in practice they recommend 0. For two-valued rewards
    the regret in each context reaches the lower bound of Lai & Robbins. With more values the same
    index of the mean, rewards scaled to [0, 1], stays a valid bound (Cappé, Garivier, Maillard,
    Munos & Stoltz 2013): among rewards in [0, 1] with this mean the Bernoulli ones vary most.
    """

    def __init__(self, problem: Problem, c: float = 3.0) -> None:
        super().__init__(problem)
        self.c = real_number("c", c, 0)

    def index(self, plays: NDArray[np.int64], totals: Floats) -> Floats:
        """The largest mean that the plays of each arm leave plausible."""
        return kl_ucb_index(plays, totals, int(plays.sum()), self.c)
