"""The causal baseline: bandits whose arms are estimated from one another's data, by z²ID.

Lee & Bareinboim, "Structural Causal Bandits with Non-Manipulable Variables" (AAAI 2019). Each arm
has several estimators, one for each formula that identifies its reward from the other arms'
experiments (`dowise.identification`). The bootstrap tells how they vary together; weighted for the
least variance they give θ̂ and s², which stand for the arm's data in Thompson Sampling (a Beta
distribution of that mean and variance) and in kl-UCB (an effective number of plays).

No posterior over CPTs is involved, so the graph may have bidirected edges. Everything happens
within the current context value: the graph is conditioned on the context, and only its own data
count.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from dowise.checks import real_number
from dowise.plain import amount, counted
from dowise.policies.decision import Decision, Figures
from dowise.policies.kl_ucb import bernoulli_upper_bound, exploration_level
from dowise.policies.pending import UNKNOWN_MEAN, Pending
from dowise.policies.policy import (
    allowed_arms,
    certainly,
    checked_propensity_samples,
    pick_winner,
)
from dowise.policies.pooled import ContextData, Floats, Pooled, PooledPolicy
from dowise.policies.reasons import BEST_BY_CHANCE, drawn_by_lot, not_played_before, under_way
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context
from dowise.randomness import Random, generator

__all__ = ["Z2KLUCB", "Z2ThompsonSampling"]

_KNOWN = "what the plays of all arms say of it"


class Z2ThompsonSampling(PooledPolicy):
    """z²-TS: one draw from Beta(κθ̂, κ(1 − θ̂)), κ = θ̂(1 − θ̂)/s² − 1, for each arm; the best wins.

    The best, that is, net of what the arms cost.

    Where θ̂ or s² is degenerate (nothing seen yet, or always the same) the draw is from
    Beta(1 + rewards, 1 + what they fell short) of the arm's own data. `resamples` (B) is the number
    of bootstrap samples, `seed` theirs. With `refresh` = 0.05 an arm's data are resampled, and
    weights computed anew, only when they have grown by 5 %.

    As for `ts`, with `propensity_samples` the winner of one of so many draws is played, and
    `decision.probabilities` are the shares of the winners; with 0 they are None. Applies to graphs
    with bidirected edges too. Needs every variable that the estimators use.
    """

    def __init__(
        self,
        problem: Problem,
        resamples: int = 100,
        refresh: float = 0.0,
        seed: int = 0,
        propensity_samples: int = 0,
    ) -> None:
        super().__init__(problem, resamples, refresh, seed)
        self.propensity_samples = checked_propensity_samples(propensity_samples)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Draw from each arm's Beta distribution, play the best."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        pooled = self._pooled(codes)
        alpha, beta = self._betas(pooled, self._data_of(codes))
        net = problem.payoff.net_scaled
        figures: dict[str, object] = {"means": net(pooled.means), "variances": pooled.variances}
        if self.propensity_samples:
            many = net(source.beta(alpha, beta, (self.propensity_samples, len(alpha))))
            picked = pick_winner(problem, arms, many[:, arms].argmax(axis=1), source)
            chosen, probabilities = picked.arm, picked.probabilities
            figures |= {"index": many[picked.draw].copy()}
            figures |= {"best": probabilities, "samples": self.propensity_samples}
            reason = picked.in_words(_KNOWN)
        else:
            drawn = net(source.beta(alpha, beta))
            chosen, probabilities = int(arms[drawn[arms].argmax()]), None
            figures |= {"index": drawn}
            reason = drawn_by_lot(_KNOWN)
        seen = problem.context_labels(codes)
        return Decision(problem.arms[chosen], probabilities, reason, Figures(figures), seen)

    def _betas(self, pooled: Pooled, data: ContextData) -> tuple[Floats, Floats]:
        won, played = data.rewards(self.problem.payoff.scaled), data.plays()
        alpha, beta = 1 + won, 1 + played - won
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (pooled.variances < spread)
        kappa = spread[sound] / pooled.variances[sound] - 1
        alpha[sound] = kappa * pooled.means[sound]
        beta[sound] = kappa * (1 - pooled.means[sound])
        return alpha, beta


class Z2KLUCB(PooledPolicy):
    """z²-kl-UCB: kl-UCB with the effective number of plays θ̂(1 − θ̂)/s² in place of the number.

    Each arm is played once first. t is the sum of the effective numbers, and the index the largest
    μ with kl(θ̂, μ) ≤ f(t)/n, f(t) = ln t + c ln ln t, less what the arm costs. Where θ̂ or s² is
    degenerate, the arm's own mean and number stand in. Other options as for z²-TS.

    Plays that are under way (`expect`) are added to an arm's effective number, its mean staying
    what it is (`dowise.policies.pending`): the figure `counts` is without them, `pending` has them.
    """

    def __init__(
        self,
        problem: Problem,
        resamples: int = 100,
        refresh: float = 0.0,
        seed: int = 0,
        c: float = 3.0,
    ) -> None:
        super().__init__(problem, resamples, refresh, seed)
        self.c = real_number("c", c, 0)
        self.pending = Pending(problem)
        """The plays that are under way."""

    def expect(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        """Count so many more plays of an arm as under way, or fewer."""
        self.pending.add(arm, context, times)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what was never played, or else the arm of the largest index."""
        generator(rng)  # nothing is drawn, but every policy wants one
        problem = self.problem
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        data, pending = self._data_of(codes), self.pending.of(codes)
        new = arms[(data.plays() + pending)[arms] == 0]
        if len(new):
            chosen, figures = int(new[0]), Figures({"pending": pending})
            reason = not_played_before(bool(problem.context))
        else:
            means, counts = self._effective(self._pooled(codes), data)
            net = problem.payoff.net_scaled
            index, means = net(self._index(means, counts, pending)), net(means)
            chosen = int(arms[index[arms].argmax()])
            figures = Figures(
                {"means": means, "counts": counts, "pending": pending, "index": index}
            )
            reason = (
                f"its mean reward is reckoned as {amount(problem.payoff.unscale(means[chosen]))} "
                f"from {_KNOWN}, which is worth about {counted(round(counts[chosen]), 'play')}"
                f"{under_way(int(pending[chosen]))}, {BEST_BY_CHANCE}"
            )
        sure, seen = certainly(problem, chosen), problem.context_labels(codes)
        return Decision(problem.arms[chosen], sure, reason, figures, seen)

    def _index(self, means: Floats, counts: Floats, pending: NDArray[np.int64]) -> Floats:
        if pending.any():
            means = np.where(counts > 0, means, UNKNOWN_MEAN)
            counts = counts + pending
        level, known = exploration_level(counts.sum(), self.c), counts > 0
        index = np.full(len(counts), np.inf)
        index[known] = bernoulli_upper_bound(means[known], level / counts[known])
        return index

    def _effective(self, pooled: Pooled, data: ContextData) -> tuple[Floats, Floats]:
        counts = data.plays()
        means = data.rewards(self.problem.payoff.scaled) / np.maximum(counts, 1)
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (spread > 0)
        means[sound] = pooled.means[sound]
        counts[sound] = spread[sound] / pooled.variances[sound]
        return means, counts
