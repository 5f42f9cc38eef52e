"""Thompson Sampling for causal bandits: Algorithm 1 of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float32, njit

from dowise._core.kernels import kernel
from dowise._core.rng import draw_key, draw_keys
from dowise._core.types import IntArray
from dowise._core.validation import check_integer
from dowise.belief import Belief
from dowise.belief.draw_kernels import draw_block, workspace
from dowise.model import Codes
from dowise.model.kernels import unrolled
from dowise.model.sampler import TrialScript
from dowise.policies.base import (
    Choice,
    PosteriorPick,
    TrialLoop,
    pick_winner,
)
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import DecisionTrace, sampled_reason
from dowise.policies.trials import (
    draw_rewards,
    draw_winners,
    learn_round,
    mixture_room,
    new_outcome,
    trial_arms,
    trial_posterior,
    whole_draws,
)
from dowise.problem import Problem
from dowise.problem.prior import Prior


class ThompsonSampling(BayesianPolicy):
    """Draw CPTs θ from the posterior, play argmax_a E[Y_a | θ, c], net of what the arms cost.

    Each arm is played with the probability that it is the best. That probability has no closed
    form, so by default `decision.probabilities` are None. With `propensity_samples` = N the policy
    makes N draws and plays the winner of one of them, picked at random: each arm is as likely as
    before, and the shares of the winners are the exact probabilities given the draws. An outcome
    teaches about a variable if the whole scope of its factor was observed. Bayesian regret is at
    most Γ√(H(Π*)T) (Theorem 1), and Γ ≤ √(K/2) (Corollary 1).

    With a `graph_free_prior` above 0 the draw may come from the hypothesis that every arm has a
    reward distribution of its own (`dowise.policies.graph_free`).

    Applies to every graph, also with hidden common causes and doubtful edges (docs/hidden.md), as
    long as its factors fit into memory.
    """

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        propensity_samples: int = 0,
        belief: Belief | None = None,
        graph_free_prior: float = 0.0,
    ) -> None:
        super().__init__(problem, prior, belief, graph_free_prior)
        self.propensity_samples = check_integer("propensity_samples", propensity_samples, 0)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the best arm under a fresh draw from the posterior."""
        if self.propensity_samples:
            winners = self.knowledge.winners(codes, arms, self.propensity_samples, rng)
            pick = pick_winner(self.problem, arms, winners, rng)
        else:
            pick = PosteriorPick(0, self._best_arm(codes, arms, rng))
        figures = pick.figures | self._mixture_figures()
        trace = DecisionTrace(sampled_reason(pick.share), figures, self._edges())
        return Choice(pick.arm, pick.probabilities, trace)

    def _best_arm(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> int:
        """Return the best of these arms under one draw: in one kernel where possible."""
        posterior, payoff = self.belief.posterior, self.problem.payoff
        allows_all = len(arms) == len(self.problem.arms) and self.mixture is None
        if not (allows_all and posterior.is_settled) or posterior.is_small_in(codes):
            return int(arms[self.knowledge.winners(codes, arms, 1, rng)[0]])
        model = posterior.model
        best: int = _draw_best(
            draw_key(rng),
            posterior.prior,
            posterior.counts,
            model.rows(codes),
            model.circuit.tape,
            payoff.scaled,
            payoff.scaled_costs,
            posterior.any_shape,
        )
        return best

    def compiled_trial(self) -> TrialLoop | None:
        """Return a compiled trial without propensities, unless small parameters meet open edges."""
        is_plain = type(self) is ThompsonSampling and self.belief.monitor is None
        is_plain &= self.mixture is None
        if not is_plain or self.propensity_samples or self.floor:
            return None
        posterior = self.belief.posterior
        return self._play if posterior.is_settled or not posterior.may_be_small else None

    def _play(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        posterior, rounds = self.belief.posterior, len(script.contexts)
        start = trial_posterior(posterior, script.context_codes)
        whole = whole_draws(posterior, script.context_codes) if posterior.is_settled else None
        chosen = np.empty(rounds, dtype=np.int64)
        _play_rounds(
            draw_keys(rng, rounds),
            start.state,
            start.rows,
            start.mixture,
            whole,
            posterior.any_shape,
            trial_arms(posterior),
            posterior.model.circuit.tape,
            self.problem.payoff.scaled,
            script,
            chosen,
        )
        self.next_number += rounds
        return chosen


@njit(inline="always")
def _best_of(values: Any, results: Any, scaled: Any, costs: Any) -> Any:
    """Return the best arm of the first lane net of cost; ties go to the first."""
    best, top = 0, -np.inf
    for arm in range(results.shape[0]):
        reward = scaled[0] - costs[arm]
        for y in range(results.shape[1]):
            chance = min(values[results[arm, y], 0], float32(1))
            reward += (scaled[y + 1] - scaled[0]) * chance
        if reward > top:
            best, top = arm, reward
    return best


@kernel()
def _draw_best(
    key: Any,
    prior: Any,
    counts: Any,
    rows: Any,
    tape: Any,
    scaled: Any,
    costs: Any,
    any_shape: Any,
) -> Any:
    """Return the best arm under one draw of all rewards."""
    circuit = unrolled(tape)
    lanes = rows.ndim  # one; a literal would compile everything again
    work = workspace(circuit, lanes, any_shape)
    draw_block(key, prior, counts, rows, circuit, lanes - lanes, lanes, work)
    return _best_of(work.values, circuit.results, scaled, costs)


@kernel()
def _play_rounds(
    keys: Any,
    state: Any,
    rows: Any,
    mixture: Any,
    whole: Any,
    any_shape: Any,
    arms: Any,
    tape: Any,
    scaled: Any,
    script: Any,
    chosen: Any,
) -> None:
    """Play each round: draw all rewards, play the best arm, learn."""
    circuit = unrolled(tape)
    lanes = script.contexts.ndim  # one; a literal would compile everything again
    work, room = workspace(circuit, lanes, any_shape), mixture_room(mixture, lanes)
    outcome, winners = new_outcome(script), np.empty(lanes, dtype=np.int64)
    drawn = np.empty((*circuit.results.shape, lanes), dtype=np.float32)
    for t in range(len(chosen)):
        context = script.contexts[t]
        current = rows[context]
        if whole is None:
            draw_rewards(keys[t], state, current, mixture, circuit, lanes, work, room)
            chosen[t] = _best_of(work.values, circuit.results, scaled, arms.costs)
        else:
            draw_winners(
                keys[t],
                state,
                rows,
                context,
                whole,
                (tape, lanes, scaled),
                arms.costs,
                drawn,
                winners,
            )
            chosen[t] = winners[0]
        learn_round(state, mixture, arms, script, t, chosen[t], outcome)
