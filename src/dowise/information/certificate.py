"""A bound on what a round costs beyond what it teaches, from the draws of that round.

For a λ > 0 that is fixed beforehand, a certificate of a distribution π over arms is an upper bound
on Δ(π) − λg(π) that holds with a stated probability over the draws. Where that of the π which IDS
would play is above K/(8λ), Thompson Sampling is not, by Γ² ≤ K/2 (Corollary 1). Summed over rounds,
certificates bound the Bayesian regret:

    E[Regret] ≤ λH(Π*) + E[Σ cert_t] + δ'·(span + λ log r)

without γ and without an event to condition on. docs/certificate.md proves it line by line.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, prod, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.compiling import kernels_of
from dowise.errors import DowiseError
from dowise.information.estimates import Estimate, estimate_of
from dowise.information.ratio import IDSAction, minimise_ratio
from dowise.model.draws import Draws
from dowise.problem import Payoff, Problem

__all__ = ["Certificate", "certificate_of", "certified_regret", "usual_lam", "worth_of"]

_kernels = kernels_of("dowise.information.betting")

CHOOSING = 0.3  # the share of the draws that choose; the others bound
LEAST_SAMPLES = 10  # then three choose
_OF_THE_BEST = 0.5  # of the λ that is best if no round is certified: docs/certificate.md

Floats = NDArray[np.float64]


class Certificate(NamedTuple):
    """What the draws of a round say: a distribution over arms, and what it costs beyond λg."""

    action: IDSAction
    """π, by the places of the arms of the draws: what IDS plays by the draws that choose."""
    bound: float
    """At least Δ(π) − λg(π), but for a failure; never below −λ log r."""
    limit: float
    """K/(8λ), which Thompson Sampling never exceeds."""
    counts_gain: bool
    """Whether it counts what π teaches, or bounds Δ(π) alone."""
    chosen_by: Estimate
    """p*, Δ and g by the draws that chose."""

    @property
    def holds(self) -> bool:
        """Whether π is at least as good as what Thompson Sampling is known to be."""
        return self.bound <= self.limit

    @property
    def value(self) -> float:
        """cert_t: that of π, or of the draw of Thompson Sampling that is played instead."""
        return min(self.bound, self.limit)


def worth_of(payoff: Payoff, arms: int) -> Floats:
    """What each value of the reward is worth under each arm, net, on the scale of the bounds."""
    worth: Floats = payoff.net_scaled(np.tile(payoff.scaled[:, None], (1, arms)))
    return np.ascontiguousarray(worth.T)


def certificate_of(
    draws: Draws,
    payoff: Payoff,
    worth: Floats,
    means: Floats | Callable[[], Floats] | None,
    lam: float,
    failure: float,
) -> Certificate:
    """Choose π by the first draws, and bound Δ(π) − λg(π) by the others.

    `worth` is that of the draws' arms, `means` the exact posterior means of their distributions,
    (arms, values); where there are none but rough ones give None, and nothing is said of what π
    teaches. Where they take long give what makes them: it is called only if what π teaches is worth
    counting by the means of the draws that choose. The bound fails with probability `failure` at
    most.
    """
    fit = choosing(draws.samples)
    found = estimate_of(draws.first_ones(fit), payoff)
    action = minimise_ratio(found.delta, found.gain)
    winners, _ = draws.winners(payoff)
    others = np.ascontiguousarray(draws.others)

    def bounded(own: Floats, most: float) -> tuple[float, float]:
        bound, used = _kernels.certify(
            others, worth, winners, own, found.joint, found.winning, action, fit, most,
            -log(failure),
        )  # fmt: skip
        return bound, used

    at_hand = found.outcomes if means is None or callable(means) else means
    bound, used = bounded(at_hand, 0.0 if means is None else lam)
    if used > 0 and callable(means):
        bound, used = bounded(means(), lam)
    arms, values = worth.shape
    bound, limit = max(bound, least_bound(lam, values)), limit_of(lam, arms)
    return Certificate(action, bound, limit, used > 0, found)


def choosing(samples: int) -> int:
    """How many of so many draws choose."""
    return max(2, int(CHOOSING * samples))


def limit_of(lam: float, arms: int) -> float:
    """K/(8λ), which Thompson Sampling never exceeds."""
    return arms / (8 * lam)


def least_bound(lam: float, values: int) -> float:
    """−λ log r: no reward teaches more than log r."""
    return -lam * log(values)


def usual_lam(problem: Problem, horizon: int) -> float:
    """λ unless told: ½√(TK / (8 |C| log K)), by the problem and the horizon alone.

    Without the half λH + TK/(8λ), the bound if no round is certified, would be least for
    H = |C| log K, the largest entropy there is. With it that is a quarter more, and what is
    certified less.
    """
    arms = len(problem.arms)
    contexts = prod(float(len(problem.domains[name])) for name in problem.context)
    entropy = max(contexts * log(arms), log(2))
    return _OF_THE_BEST * sqrt(horizon * arms / (8 * entropy))


def certified_regret(
    lam: float, entropy: float, certificates: float, delta: float, worth: Floats
) -> float:
    """λH(Π*) + E[Σ cert_t] + δ'(span + λ log r), for rewards on the scale of the bounds."""
    if not lam > 0:
        raise DowiseError(f"lam={lam!r} must be more than 0")
    span = float(worth.max() - worth.min())
    slack = delta * (span + lam * log(worth.shape[1]))
    return lam * max(entropy, 0.0) + certificates + slack
