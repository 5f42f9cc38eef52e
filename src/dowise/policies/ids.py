"""Information-Directed Sampling for causal bandits: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief, Dirichlet, Mixture, Posterior
from dowise.belief.prior import Prior
from dowise.checks import share, whole_number
from dowise.errors import DowiseError
from dowise.information import (
    Estimate,
    IDSAction,
    Interval,
    delta_interval,
    estimate_of,
    gain_interval,
    information_ratio,
    minimise_ratio,
)
from dowise.information.estimates import check_room
from dowise.model.sampling import Script
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import BayesianPolicy, Edges, Loop, allowed_arms
from dowise.policies.stepping import play_out
from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context
from dowise.randomness import Random, generator

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

    Applies to every graph, with hidden common causes and doubtful edges too (docs/hidden.md), as
    long as its factors fit into memory. At N = 1000 the intervals of g are [0, log r] in practice
    (docs/bounds.md); then both alternatives to "point" just play the arm of the smallest estimated
    Δ, without exploring. Gains are in nats, in the sentence of a decision in bits.
    """

    def __init__(
        self,
        problem: Problem,
        samples: int = 1000,
        delta: float = 0.05,
        horizon: int = 1000,
        interval: Within = "point",
        prior: Prior | None = None,
        belief: Belief | Posterior | None = None,
        widen: bool | float = False,
    ) -> None:
        super().__init__(problem, prior, belief, widen)
        if interval not in get_args(Within):
            raise DowiseError(f"interval={interval!r} must be one of {', '.join(get_args(Within))}")
        self.samples = whole_number("samples", samples, 1)
        arms = len(problem.arms)
        check_room(arms, min(arms, self.samples), len(problem.payoff.values))
        self.horizon = whole_number("horizon", horizon, 1)
        self.delta, self.interval = share("delta", delta), interval

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Balance regret against information, and play one of at most two arms."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        self._catch_up()
        return self._decide(codes, arms, source)

    def _decide(
        self, codes: tuple[int, ...], arms: NDArray[np.int64], source: np.random.Generator
    ) -> Decision:
        problem = self.problem
        draws = self.belief.posterior.draw(codes, self.samples, source)
        if len(arms) < len(problem.arms):
            draws = draws.among(arms)
        found = estimate_of(draws, problem.payoff)
        regret, gain = self._driving(found)
        action = minimise_ratio(regret, gain)
        action = self._settle_ties(action, regret, gain, found)
        pick = action.first if source.random() < action.probability else action.second
        workings = _Workings(
            problem, arms, found, action, pick, regret, gain, self._level(len(arms)), self._edges()
        )
        figures = Figures({"q": action.probability}, workings)
        chosen, seen = problem.arms[arms[pick]], problem.context_labels(codes)
        return Decision(chosen, workings.probabilities(), workings, figures, seen)

    @property
    def heeds_horizon(self) -> bool:
        """Whether decisions depend on the horizon: estimates do not, their intervals do."""
        return self.interval != "point"

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

    def compiled_loop(self) -> Loop | None:
        """`decide` as it is, its time being that of the draws; the rest of a round is compiled."""
        is_plain = type(self) is InformationDirectedSampling and self.belief.monitor is None
        ours = type(self.belief.posterior) in (Dirichlet, Mixture)
        return self._play if is_plain and ours else None

    def _play(self, script: Script, rng: np.random.Generator) -> NDArray[np.int64]:
        arms = np.arange(len(self.problem.arms))
        index = {arm: i for i, arm in enumerate(self.problem.arms)}
        return play_out(self, script, lambda _t, codes: index[self._decide(codes, arms, rng).arm])


@dataclass(frozen=True, eq=False, slots=True)
class _Workings:
    """What one decision was made from: `arms` are the places of the allowed arms among all."""

    problem: Problem
    arms: NDArray[np.int64]
    found: Estimate
    action: IDSAction
    pick: int
    regret: NDArray[np.float64]
    gain: NDArray[np.float64]
    level: float
    edges: Edges | None

    @property
    def names(self) -> tuple[str, ...]:
        doubtful = () if self.edges is None else ("edges",)
        return (
            "delta", "gain", "best", "ratio", "pair", "delta_interval", "gain_interval", *doubtful,
        )  # fmt: skip

    def probabilities(self) -> NDArray[np.float64]:
        full = np.zeros(len(self.problem.arms))
        full[self.arms[self.action.first]] += self.action.probability
        full[self.arms[self.action.second]] += 1 - self.action.probability
        return full

    def figure(self, name: str) -> Any:
        if name == "ratio":
            pi = self.action.distribution(len(self.arms))
            return float(information_ratio(pi @ self.regret, pi @ self.gain))
        if name == "pair":
            return self._arm(self.action.first), self._arm(self.action.second)
        if name == "edges" and self.edges is not None:
            return self.edges()
        if name == "delta_interval":
            return self._interval(delta_interval)
        if name == "gain_interval":
            return self._interval(gain_interval)
        return self._spread(getattr(self.found, name), 0.0 if name == "best" else np.nan)

    def reason(self) -> str:
        found, pick, likely = self.found, self.pick, int(self.found.best.argmax())
        cost = found.delta[pick] * self.problem.payoff.span
        return (
            f"expected to cost {cost:.3g} against the best arm and to "
            f"teach {found.gain[pick] / log(2):.2g} bits about which that is; most likely it is "
            f"{self._arm(likely)} ({100 * found.best[likely]:.0f} %)"
        )

    def _arm(self, place: int) -> Intervention:
        return self.problem.arms[int(self.arms[place])]

    def _interval(self, of: Callable[[Estimate, float], Interval]) -> Interval:
        interval = of(self.found, self.level)
        return Interval(self._spread(interval.low), self._spread(interval.high))

    def _spread(self, values: NDArray[np.float64], absent: float = np.nan) -> NDArray[np.float64]:
        """Figures of the allowed arms, at their places among all arms."""
        full = np.full(len(self.problem.arms), absent)
        full[self.arms] = values
        return full
