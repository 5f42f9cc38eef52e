"""Expected regret of each round of a trial, given the history before it.

A simulation has its own belief, with the prior that its worlds are drawn from, and learns every
record of a trial. In each round, before learning, it draws CPTs from its posterior and computes
how far the played arm is from the best: E[max_b μ_b − μ_a | history]. By the tower rule the sum
over the rounds has the same mean over worlds as the regret under the true CPTs, whatever policy
chose the arms, but without the noise of the world that was drawn. The draws add little noise,
because those of different rounds are independent. All policies of a trial share the keys of draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, njit

from dowise._core.kernels import kernel
from dowise._core.rng import draw_keys
from dowise._core.types import FloatArray, IntArray
from dowise.belief import Belief
from dowise.belief.draw_kernels import workspace
from dowise.model.kernels import unrolled
from dowise.model.sampler import TrialScript
from dowise.policies.trials import (
    draw_rewards,
    learn_round,
    mixture_room,
    new_outcome,
    trial_arms,
    trial_posterior,
)
from dowise.problem import Payoff

DRAWS = 32
"""From the posterior in every round: they add less than a per cent to the variance over worlds."""


class NormalisedRewards(NamedTuple):
    """Net rewards of all arms, scaled to [0, 1]."""

    least: FloatArray
    """Net reward of each arm at the first value of the reward."""
    more: FloatArray
    """Net reward of each arm at every other value of the reward, less that at the first."""


def normalised_rewards(payoff: Payoff, arms: int) -> NormalisedRewards:
    """Return the net rewards of this number of arms."""
    scaled = payoff.scaled
    return NormalisedRewards(payoff.net_scaled(np.full(arms, scaled[0])), scaled[1:] - scaled[0])


def expected_regrets(
    belief: Belief, script: TrialScript, chosen: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return E[max_b μ_b − μ_a | history] of the played arm in every round, in the user's units.

    `belief` is a belief of the world's problem that has learned the records before the first round;
    it learns all rounds of the trial. `chosen` are indices of the problem's arms.
    """
    problem, posterior = belief.problem, belief.posterior
    rewards = normalised_rewards(problem.payoff, len(problem.arms))
    start, gaps = trial_posterior(posterior, script.context_codes), np.empty(len(chosen))
    _expect_rounds(
        draw_keys(rng, len(chosen)),
        start.state,
        start.rows,
        start.mixture,
        trial_arms(posterior),
        posterior.model.circuit.tape,
        rewards,
        script,
        chosen,
        np.empty((2, DRAWS)),
        gaps,
        posterior.any_shape,
    )
    return problem.payoff.span * gaps


@njit(inline="always")
def _gap(values: Any, results: Any, rewards: Any, played: Any, room: Any) -> Any:
    """Return the distance of an arm from the best one, averaged over the lanes.

    room[0] and room[1] have an element per lane, for the net reward of an arm and of the best.
    """
    current, best = room[0], room[1]
    total = 0.0
    for lane in range(len(best)):
        best[lane] = -np.inf
    for arm in range(results.shape[0]):
        for lane in range(len(current)):
            current[lane] = rewards.least[arm]
        for y in range(results.shape[1]):
            row = values[results[arm, y]]
            for lane in range(len(current)):  # rounding may have carried a sum beyond 1
                current[lane] += rewards.more[y] * min(row[lane], float32(1))
        for lane in range(len(best)):
            best[lane] = current[lane] if current[lane] > best[lane] else best[lane]
        if arm == played:
            for lane in range(len(current)):
                total -= current[lane]
    for lane in range(len(best)):
        total += best[lane]
    return total / len(best)


@kernel()
def _expect_rounds(
    keys: Any,
    state: Any,
    rows: Any,
    mixture: Any,
    arms: Any,
    tape: Any,
    rewards: Any,
    script: Any,
    chosen: Any,
    gap_room: Any,
    gaps: Any,
    any_shape: Any,
) -> None:
    """For each round, draw all rewards, compute the mean gap of the played arm, and learn.

    rows[c] are the rows of the circuit, or what the versions read, under context c.
    """
    circuit, lanes = unrolled(tape), gap_room.shape[1]
    work, room = workspace(circuit, lanes, any_shape), mixture_room(mixture, lanes)
    outcome = new_outcome(script)
    for t in range(len(chosen)):
        current = rows[script.contexts[t]]
        draw_rewards(keys[t], state, current, mixture, circuit, lanes, work, room)
        gaps[t] = _gap(work.values, circuit.results, rewards, chosen[t], gap_room)
        learn_round(state, mixture, arms, script, t, chosen[t], outcome)
