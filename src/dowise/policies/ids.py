"""Information-Directed Sampling for causal bandits: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import log
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
    estimate_from_draws,
    gain_interval,
    information_ratio,
    minimise_ratio,
)
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import BayesianPolicy, allowed_arms, checked_number
from dowise.problem import Intervention, Problem
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

    Applies when the graph has no bidirected edge. At N = 1000 the intervals of g are [0, log r] in
    practice (docs/bounds.md); then both alternatives to "point" just play the arm of the smallest
    estimated Δ, without exploring. Gains are in nats, in the sentence of a decision in bits.
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
        if interval not in get_args(Within):
            raise DowiseError(f"interval={interval!r} must be one of {', '.join(get_args(Within))}")
        self.samples = checked_number("samples", samples, 1)
        self.horizon = checked_number("horizon", horizon, 1)
        self.delta, self.interval = delta, interval
        self._span = float(np.ptp(self.belief.rewards.worth))
        self._scaled = np.array(problem.scaled_rewards)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Balance regret against information, and play one of at most two arms."""
        source, arms = generator(rng), allowed_arms(self.problem, allowed)
        drawn = self.belief.draw_raw(context, self.samples, source)
        found = estimate_from_draws(drawn if allowed is None else drawn[arms], self._scaled)
        regret, gain = self._driving(found)
        action = minimise_ratio(regret, gain)
        action = self._settle_ties(action, regret, gain, found)
        pick = action.first if source.random() < action.probability else action.second
        behind = _Workings(
            self.problem.arms, arms, found, action, pick, regret, gain, self._level(len(arms)),
            self._span,
        )  # fmt: skip
        chosen = self.problem.arms[arms[pick]]
        return Decision(chosen, behind.probabilities(), behind.reason, behind.figures())

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


@dataclass(frozen=True, eq=False, slots=True)
class _Workings:
    """What one decision was made from: `arms` are the places of the allowed arms among all."""

    all_arms: tuple[Intervention, ...]
    arms: NDArray[np.int64]
    found: Estimate
    action: IDSAction
    pick: int
    regret: NDArray[np.float64]
    gain: NDArray[np.float64]
    level: float
    span: float

    def probabilities(self) -> NDArray[np.float64]:
        full = np.zeros(len(self.all_arms))
        full[self.arms[self.action.first]] += self.action.probability
        full[self.arms[self.action.second]] += 1 - self.action.probability
        return full

    def figures(self) -> Figures:
        return Figures(
            {"q": self.action.probability},
            {
                "delta": partial(self._over_all, "delta"),
                "gain": partial(self._over_all, "gain"),
                "best": partial(self._over_all, "best", 0.0),
                "ratio": self._ratio,
                "pair": self._pair,
                "delta_interval": partial(self._interval, delta_interval),
                "gain_interval": partial(self._interval, gain_interval),
            },
        )

    def reason(self) -> str:
        found, pick, likely = self.found, self.pick, int(self.found.best.argmax())
        return (
            f"expected to cost {found.delta[pick] * self.span:.3g} against the best arm and to "
            f"teach {found.gain[pick] / log(2):.2g} bits about which that is; most likely it is "
            f"{self.all_arms[self.arms[likely]]} ({100 * found.best[likely]:.0f} %)"
        )

    def _ratio(self) -> float:
        pi = self.action.distribution(len(self.arms))
        return float(information_ratio(pi @ self.regret, pi @ self.gain))

    def _pair(self) -> tuple[Intervention, Intervention]:
        first, second = self.action.first, self.action.second
        return self.all_arms[self.arms[first]], self.all_arms[self.arms[second]]

    def _over_all(self, name: str, absent: float = np.nan) -> NDArray[np.float64]:
        return self._spread(getattr(self.found, name), absent)

    def _interval(self, of: Callable[[Estimate, float], Interval]) -> Interval:
        interval = of(self.found, self.level)
        return Interval(self._spread(interval.low), self._spread(interval.high))

    def _spread(self, values: NDArray[np.float64], absent: float = np.nan) -> NDArray[np.float64]:
        """Figures of the allowed arms, at their places among all arms."""
        full = np.full(len(self.all_arms), absent)
        full[self.arms] = values
        return full
