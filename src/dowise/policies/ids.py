"""Information-Directed Sampling for causal bandits: Algorithm 2 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any, Literal, get_args

import numpy as np

from dowise._core.document import format_number
from dowise._core.kernels import kernel
from dowise._core.rng import draw_keys_and_coins
from dowise._core.types import FloatArray, IntArray
from dowise._core.validation import check_fraction, check_fraction_or_zero, check_integer
from dowise.belief import Belief
from dowise.belief.posterior import check_samples
from dowise.errors import DowiseError
from dowise.information import (
    Estimate,
    IDSAction,
    Interval,
    delta_interval,
    estimate_of,
    gain_interval,
    information_ratio,
    least_ratio,
    minimise_ratio,
)
from dowise.information.estimates import check_memory, count_winners, summarise
from dowise.information.gains import Gains, GainSource, GainTarget
from dowise.information.ratio import MAX_ALL_PAIRS, MIN_GAIN, best_pair
from dowise.model import Codes
from dowise.model.sampler import TrialScript
from dowise.policies.base import Choice, Policy, TrialLoop
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import DecisionTrace, Edges, floor_reason
from dowise.policies.trials import (
    draw_winners,
    learn_round,
    new_outcome,
    play_steps,
    trial_arms,
    trial_posterior,
    whole_draws,
)
from dowise.problem import Intervention, Problem
from dowise.problem.prior import Prior

IntervalUse = Literal["point", "optimistic", "pessimistic"]
ChoiceRule = Literal["mixture", "deterministic"]


class InformationDirectedSampling(BayesianPolicy):
    """Play the distribution π over arms with the smallest ratio (πᵀΔ)² / πᵀg.

    Δ is what an arm is expected to lose against the best one, net of what the arms cost, and g what
    its reward is expected to tell about which arm that is, both from `samples` (N) fresh posterior
    draws (Lemma 2). At most two arms are played with positive probability. `interval` selects the
    values within the confidence intervals of Lemmas 3 and 4, at level delta / (2·horizon·K), that
    drive the choice: the estimates ("point"), small Δ and large g ("optimistic"), or large Δ and
    small g ("pessimistic"); ties go to the arm with the larger g, then to the one with the smaller
    estimated Δ. The regret is bounded by Theorem 2.

    Five options go beyond the paper; the defaults are the paper's choices. `gain` selects what an
    arm teaches by: the "reward", "all" observed variables, or the "rows" of factors that it visits.
    `about` selects what it teaches about: the best "arm" of the present context, or the "map" of
    the best arms of all contexts (`dowise.information.gains`). With `choice` "deterministic" the
    arm with the smallest Δ²/g is played. With a `floor` f the probabilities are (1 − f)π + f·p*,
    where p* are the shares of the draws in which each arm is best. With a `graph_free_prior` above
    0 a share of the draws comes from the hypothesis that every arm has a reward distribution of its
    own (`dowise.policies.graph_free`).

    Gains are in nats; the reason of a decision states them as a share or in bits. At N = 1000 the
    intervals of g are [0, log r] in practice (docs/bounds.md); then both alternatives to "point"
    play the arm with the smallest estimated Δ, without exploring.

    Applies to every graph, also with hidden common causes and doubtful edges (docs/hidden.md), as
    long as its factors fit into memory.
    """

    uses_fantasies = True

    def __init__(
        self,
        problem: Problem,
        samples: int = 1000,
        delta: float = 0.05,
        horizon: int = 1000,
        interval: IntervalUse = "point",
        prior: Prior | None = None,
        belief: Belief | None = None,
        gain: GainSource = "reward",
        about: GainTarget = "arm",
        choice: ChoiceRule = "mixture",
        floor: float = 0.0,
        graph_free_prior: float = 0.0,
    ) -> None:
        super().__init__(problem, prior, belief, graph_free_prior)
        for option, value, values in (
            ("interval", interval, get_args(IntervalUse)),
            ("gain", gain, get_args(GainSource)),
            ("about", about, get_args(GainTarget)),
            ("choice", choice, get_args(ChoiceRule)),
        ):
            if value not in values:
                raise DowiseError(
                    f"{option}={value!r} must be one of {', '.join(values)}", code="unknown-value"
                )
        self.gains = None if (gain, about) == ("reward", "arm") else Gains(gain, about)
        """Computation of other gains than the paper's; None for the paper's."""
        if self.gains is not None:
            self.gains.check(problem)
            if interval != "point":
                raise DowiseError(
                    f'interval={interval!r} needs gain="reward" and about="arm": Lemma 4 has no '
                    "intervals for other gains",
                    code="invalid-option",
                )
            if self.mixture is not None:
                raise DowiseError(
                    f'graph_free_prior={graph_free_prior!r} needs gain="reward" and about="arm": '
                    "without a graph a play teaches about no other arm",
                    code="invalid-option",
                )
        self.choice, self.floor = choice, check_fraction_or_zero("floor", floor)
        self.samples = check_integer("samples", samples, 1)
        arms = len(problem.arms)
        check_memory(arms, min(arms, self.samples), len(problem.payoff.values))
        self.horizon = check_integer("horizon", horizon, 1)
        self.delta, self.interval = check_fraction("delta", delta), interval
        self.depends_on_horizon = interval != "point"  # estimates do not, their intervals do

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose one of at most two arms that balance regret against information."""
        estimate = self._estimate(codes, arms, rng)
        level = self.delta / (2 * self.horizon * len(arms))
        regret, gain = estimate.delta, estimate.gain
        if self.interval != "point":
            deltas, gains = delta_interval(estimate, level), gain_interval(estimate, level)
            is_optimistic = self.interval == "optimistic"
            regret = deltas.low if is_optimistic else deltas.high
            gain = gains.high if is_optimistic else gains.low
        action = (minimise_ratio if self.choice == "mixture" else least_ratio)(regret, gain)
        if self.interval != "point" and action.first == action.second:
            action = _break_ties(action, regret, gain, estimate)
        pick = action.first if rng.random() < action.probability else action.second
        objective = regret, gain, level
        trace = IDSTrace(
            self,
            self.gains,
            arms,
            estimate,
            action,
            pick,
            objective,
            self._edges(),
            self._mixture_figures(),
        )
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[arms[action.first]] += action.probability
        probabilities[arms[action.second]] += 1 - action.probability
        return Choice(int(arms[pick]), probabilities, trace)

    def _estimate(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Estimate:
        """Return Δ, g and p* of these arms from fresh draws (Lemma 2)."""
        belief = self.knowledge.belief
        if self.gains is not None:
            return self.gains.estimate(belief.posterior, codes, self.samples, arms, rng)
        draws = belief.draw(codes, self.samples, rng)
        if len(arms) < len(self.problem.arms):
            draws = draws.among(arms)
        return estimate_of(draws, self.problem.payoff)

    def apply_floor(
        self, choice: Choice, codes: Codes, arms: IntArray, rng: np.random.Generator
    ) -> Choice:
        """Mix in the floor by the draws that the choice was made from."""
        arm, probabilities, trace = choice
        assert isinstance(trace, IDSTrace) and probabilities is not None
        probabilities *= 1 - self.floor
        probabilities[arms] += self.floor * trace.estimate.best
        if rng.random() < self.floor:
            trace.pick = int(trace.estimate.winners[rng.integers(self.samples)])
            trace.by_floor, arm = True, int(arms[trace.pick])
        return Choice(arm, probabilities, trace)

    def compiled_trial(self) -> TrialLoop | None:
        """Return a trial that is compiled as a whole if possible, else stepped with `choose`."""
        if type(self) is not InformationDirectedSampling or self.belief.monitor is not None:
            return None
        posterior, has_few_arms = self.belief.posterior, len(self.problem.arms) <= MAX_ALL_PAIRS
        fits_kernel = posterior.is_settled and has_few_arms
        is_paper = self.gains is None and self.choice == "mixture" and self.floor == 0
        is_paper &= self.mixture is None
        is_paper &= self.interval == "point"
        return self._play_whole if fits_kernel and is_paper else self._play

    def _play_whole(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        posterior, rounds = self.belief.posterior, len(script.contexts)
        circuit = posterior.model.circuit
        check_samples(self.samples, circuit, False)
        start = trial_posterior(posterior, script.context_codes)
        chosen = np.empty(rounds, dtype=np.int64)
        _play_rounds(
            *draw_keys_and_coins(rng, rounds),
            start.state,
            start.rows,
            whole_draws(posterior, script.context_codes),
            trial_arms(posterior),
            (circuit.tape, posterior.block, self.problem.payoff.scaled),
            np.empty((*circuit.results.shape, self.samples), dtype=np.float32),
            script,
            chosen,
        )
        self.next_number += rounds
        return chosen

    def _play(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        arms = np.arange(len(self.problem.arms))

        def choose(_round: int, codes: Codes) -> int:
            choice = self.choose(codes, arms, rng)
            return (self.apply_floor(choice, codes, arms, rng) if self.floor else choice).arm

        return play_steps(self, script, choose)


def _break_ties(
    action: IDSAction, regret: FloatArray, gain: FloatArray, estimate: Estimate
) -> IDSAction:
    """Among arms of the same ratio, return the one with the most gain, then the least regret.

    Ends of wide intervals tie: if Δ̲ = 0 for several arms, the first would be played forever.
    Estimates tie only if arms are equivalent; then the first one is played.
    """
    ratios = information_ratio(regret, gain)
    tied = np.flatnonzero(ratios == ratios[action.first])
    chosen = int(min(tied, key=lambda a: (-gain[a], estimate.delta[a], a)))
    return IDSAction(chosen, chosen, 1.0)


class IDSTrace(DecisionTrace):
    """Estimates behind one decision of IDS.

    `arms` are the indices of the allowed arms; `gains` is None for the paper's gain.
    """

    def __init__(
        self,
        policy: Policy,
        gains: Gains | None,
        arms: IntArray,
        estimate: Estimate,
        action: IDSAction,
        pick: int,
        objective: tuple[FloatArray, FloatArray, float],
        edges: Edges | None,
        figures: Mapping[str, float] | None = None,
    ) -> None:
        lemma_4 = ("gain_interval",) if gains is None else ()
        self.lazy = "delta", "gain", "best", "ratio", "pair", "delta_interval", *lemma_4
        super().__init__(figures={"q": action.probability, **(figures or {})}, edges=edges)
        self.problem, self.gains, self.floor = policy.problem, gains, policy.floor
        self.arms, self.estimate, self.action, self.pick = arms, estimate, action, pick
        self.regret, self.gain, self.level = objective
        self.by_floor = False

    def compute(self, name: str) -> Any:
        """Return a figure of all arms, NaN or 0 for those that were not allowed."""
        estimate, arms = self.estimate, self.problem.arms
        if name == "ratio":
            pi = self.action.distribution(len(self.arms))
            return float(information_ratio(pi @ self.regret, pi @ self.gain))
        if name == "pair":
            return tuple(arms[int(self.arms[i])] for i in self.action[:2])
        if name.endswith("_interval"):
            make = delta_interval if name == "delta_interval" else gain_interval
            interval = make(estimate, self.level)
            ends = np.full((2, len(arms)), np.nan)
            ends[:, self.arms] = interval.low, interval.high
            return Interval(*ends)
        full = np.full(len(arms), 0.0 if name == "best" else np.nan)
        full[self.arms] = getattr(estimate, name)
        return full

    @property
    def reason(self) -> str:
        """Reason of the choice: expected loss, information, and the likely best arm."""
        best, payoff = self.estimate.best, self.problem.payoff
        gain, likely = float(self.estimate.gain[self.pick]), int(best.argmax())
        if self.gains is not None and self.gains.about == "map":
            teaches = f"to bring {gain / log(2):.2g} bits about which arm is best in each context"
        else:
            possible = best[best > 0]
            uncertainty = -float(possible @ np.log(possible))
            share = min(gain / uncertainty, 1.0) if uncertainty > 0 else 0.0
            percent = f"{100 * share:.0f} %" if share >= 0.01 else "less than 1 %"
            teaches = f"to resolve {percent} of the uncertainty about which arm is best"
        loss = format_number(self.estimate.delta[self.pick] * payoff.span)
        arm: Intervention = self.problem.arms[int(self.arms[likely])]
        text = (
            f"expected to lose {loss} against the best arm and {teaches}; "
            f"most likely the best is {arm} ({100 * best[likely]:.0f} %)"
        )
        if self.by_floor:
            return floor_reason(self.floor, text)
        return f"best trade-off of cost and information: {text}"


@kernel()
def _play_rounds(
    keys: Any,
    coins: Any,
    state: Any,
    rows: Any,
    whole: Any,
    arms: Any,
    circuit: Any,
    drawn: Any,
    script: Any,
    chosen: Any,
) -> None:
    """Play each round: decide and learn. `circuit` is (tape, block, scaled reward values).

    rows[c] are the rows of the circuit under context c; `drawn` is room for the draws.
    """
    scaled = circuit[2]
    count, other_values, samples = drawn.shape
    winners = np.empty(samples, dtype=np.int64)
    winning = np.empty(count, dtype=np.int64)
    best, means = np.empty(count), np.empty(count)
    regret, gain = np.empty(count), np.empty(count)
    outcome = new_outcome(script)
    for t in range(len(chosen)):
        context = script.contexts[t]
        peak = draw_winners(
            keys[t], state, rows, context, whole, circuit, arms.costs, drawn, winners
        )
        several = count_winners(winners, best, winning)
        joint = np.empty((count, several, other_values + 1))
        for a in range(count):
            means[a] = -arms.costs[a]
        summarise(drawn, scaled, peak, winners, winning[:several], best, joint, means, regret, gain)
        first, second, probability = best_pair(regret, gain, MIN_GAIN)
        chosen[t] = first if coins[t] < probability else second
        learn_round(state, None, arms, script, t, chosen[t], outcome)
