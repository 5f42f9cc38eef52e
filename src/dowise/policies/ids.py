"""Information-Directed Sampling for causal bandits: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import log
from numbers import Integral
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dowise.belief.prior import Prior
from dowise.belief.randomness import Random, generator
from dowise.belief.rewards import Context
from dowise.errors import DowiseError
from dowise.information import (
    Estimate,
    IDSAction,
    Interval,
    delta_interval,
    estimate,
    gain_interval,
    information_ratio,
    minimise_ratio,
)
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import BayesianPolicy, allowed_arms
from dowise.problem import Problem
from dowise.problem.problem import ArmLike

__all__ = ["InformationDirectedSampling"]

Within = Literal["point", "optimistic", "pessimistic"]


class InformationDirectedSampling(BayesianPolicy):
    """Play the distribution π over arms with the smallest ratio (πᵀΔ)² / πᵀg.

    Δ is what an arm is expected to cost against the best one and g what its reward is expected to
    tell about which arm that is, both from `samples` (N) fresh posterior draws (Lemma 2). At most
    two arms are played with positive probability. `interval` says which values within the
    confidence intervals of Lemmas 3 and 4, at level delta / (2·horizon·K), drive the choice: the
    estimates ("point"), small Δ and large g ("optimistic"), or large Δ and small g
    ("pessimistic"), ties going to the arm that teaches more, then to the one that is estimated to
    cost less. The regret is bounded by Theorem 2.

    Applies when the graph has no bidirected edge. At N = 1000 the intervals of g are [0, log r]
    in practice (docs/paper-map.md), so the two alternatives to "point" say little about g.
    """

    def __init__(
        self,
        problem: Problem,
        samples: int = 1000,
        delta: float = 0.05,
        horizon: int = 1000,
        interval: Within = "point",
        prior: Prior = 1.0,
    ) -> None:
        super().__init__(problem, prior)
        if not isinstance(delta, float) or not 0 < delta < 1:
            raise DowiseError(f"delta={delta!r} must be between 0 and 1, such as 0.05")
        for name, number in (("samples", samples), ("horizon", horizon)):
            if isinstance(number, bool) or not isinstance(number, Integral) or number < 1:
                raise DowiseError(f"{name}={number!r} must be a whole number of at least 1")
        if interval not in get_args(Within):
            raise DowiseError(f"interval={interval!r} must be one of {', '.join(get_args(Within))}")
        self.samples, self.delta, self.horizon, self.interval = samples, delta, horizon, interval
        worth = np.array(list(problem.reward_values.values()))
        self._lowest, self._span = float(worth.min()), float(np.ptp(worth))
        self._values = None if len(worth) == 2 else (worth - self._lowest) / self._span

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Balance regret against information, and play one of at most two arms."""
        source, arms = generator(rng), allowed_arms(self.problem, allowed)
        found = self._estimate(context, source, arms)
        regret, gain = self._driving(found)
        action = self._settle_ties(minimise_ratio(regret, gain), regret, gain, found)
        pick = action.first if source.random() < action.probability else action.second
        pi = action.distribution(len(arms))
        spread = partial(_over_all, arms, len(self.problem.arms))
        level = self._level(len(arms))
        figures = Figures(
            {
                "delta": spread(found.delta),
                "gain": spread(found.gain),
                "best": spread(found.best, 0.0),
                "ratio": float(information_ratio(pi @ regret, pi @ gain)),
                "pair": tuple(self.problem.arms[arms[i]] for i in (action.first, action.second)),
                "q": action.probability,
            },
            {
                "delta_interval": partial(_interval, delta_interval, found, level, spread),
                "gain_interval": partial(_interval, gain_interval, found, level, spread),
            },
        )
        probabilities = spread(pi, 0.0)
        reason = self._reason(found, pick, arms)
        return Decision(self.problem.arms[arms[pick]], probabilities, reason, figures)

    def _estimate(
        self, context: Context, source: np.random.Generator, arms: NDArray[np.int64]
    ) -> Estimate:
        """Lemma 2 on fresh draws, with rewards scaled to [0, 1]."""
        if self._values is not None:
            drawn = self.belief.draw_distributions(context, self.samples, source)
            return estimate(drawn[arms], values=self._values)
        rewards = self.belief.draw_rewards(context, self.samples, source)[arms]
        if self._lowest or self._span != 1:
            rewards = (rewards - self._lowest) / self._span
        return estimate(rewards)

    def _level(self, arms: int) -> float:
        return self.delta / (2 * self.horizon * arms)

    def _driving(self, found: Estimate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The values within the confidence intervals that the choice is made by."""
        if self.interval == "point":
            return found.delta, found.gain
        level = self._level(len(found.delta))
        cost, taught = delta_interval(found, level), gain_interval(found, level)
        if self.interval == "optimistic":
            return cost.low, taught.high
        return cost.high, taught.low

    def _settle_ties(
        self,
        action: IDSAction,
        regret: NDArray[np.float64],
        gain: NDArray[np.float64],
        found: Estimate,
    ) -> IDSAction:
        """Among arms of the same ratio, the one that teaches most, then the one that costs least.

        The ends of wide intervals tie: with Δ̲ = 0 for several arms the first would be played for
        ever. Estimates tie only where the arms are alike, and there the first one goes.
        """
        if self.interval == "point" or action.first != action.second:
            return action
        ratios = information_ratio(regret, gain)
        tied = np.flatnonzero(ratios == ratios[action.first])
        chosen = int(min(tied, key=lambda a: (-gain[a], found.delta[a], a)))
        return IDSAction(chosen, chosen, 1.0)

    def _reason(self, found: Estimate, pick: int, arms: NDArray[np.int64]) -> str:
        likely = int(found.best.argmax())
        return (
            f"expected to cost {found.delta[pick] * self._span:.3g} against the best arm and to "
            f"teach {found.gain[pick] / log(2):.2g} bits about which that is; most likely it is "
            f"{self.problem.arms[arms[likely]]} ({100 * found.best[likely]:.0f} %)"
        )


def _over_all(
    arms: NDArray[np.int64], everything: int, values: NDArray[np.float64], absent: float = np.nan
) -> NDArray[np.float64]:
    """Figures of the allowed arms, at their places among all arms."""
    full = np.full(everything, absent)
    full[arms] = values
    return full


def _interval(
    of: Callable[[Estimate, float], Interval],
    found: Estimate,
    level: float,
    spread: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Interval:
    interval = of(found, level)
    return Interval(spread(interval.low), spread(interval.high))
