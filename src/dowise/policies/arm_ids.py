"""Information-Directed Sampling on the arms' own rewards, without a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from dowise._core.kernels import kernel
from dowise._core.rng import draw_keys_and_coins
from dowise._core.types import IntArray
from dowise._core.validation import check_integer
from dowise.belief.draw_kernels import draw_results
from dowise.belief.posterior import block_size, check_samples
from dowise.information import estimate_of, minimise_ratio
from dowise.information.estimates import check_memory, find_and_count_winners, summarise
from dowise.information.ratio import MAX_ALL_PAIRS, MIN_GAIN, best_pair
from dowise.model import Codes
from dowise.model.kernels import play_round
from dowise.model.sampler import TrialScript
from dowise.policies.arm_rewards import ArmRewardsPolicy, RewardDistributions
from dowise.policies.base import Choice, TrialLoop
from dowise.policies.baselines import count_reward
from dowise.policies.ids import IDSTrace
from dowise.problem import Problem

LEVEL = 0.05 / (2 * 1000)
"""Level of the intervals in the figures, times the number of arms: that of `ids` by default."""


class ArmIDS(ArmRewardsPolicy):
    """Information-Directed Sampling with a reward distribution of its own for each arm.

    The rule is that of `ids`: play the distribution π over arms with the smallest ratio
    (πᵀΔ)² / πᵀg, Δ and g estimated from `samples` draws (Lemma 2). The draws come from independent
    Dirichlet distributions of the rewards, one for each arm in each context, with prior
    Dirichlet(1). So an outcome teaches about the arm played alone, and a wrong graph does no harm:
    it is the policy to beat where the graph may be wrong. Rewards may have any number of values.

    Figures: those of `ids`. Pending plays are not counted.

    Applies when the reward and the context are observed, whatever the graph is.
    """

    knowledge: RewardDistributions
    is_quick = False

    def __init__(self, problem: Problem, samples: int = 1000) -> None:
        super().__init__(problem, RewardDistributions(problem))
        self.samples = check_integer("samples", samples, 1)
        arms, values = len(problem.arms), len(problem.payoff.values)
        check_memory(arms, min(arms, self.samples), values)
        check_samples(self.samples, self.knowledge.distributions.circuit, True)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose one of at most two arms that balance regret against information."""
        draws = self.knowledge.draw(codes, self.samples, rng)
        if len(arms) < len(self.problem.arms):
            draws = draws.among(arms)
        estimate = estimate_of(draws, self.problem.payoff)
        action = minimise_ratio(estimate.delta, estimate.gain)
        pick = action.first if rng.random() < action.probability else action.second
        objective = estimate.delta, estimate.gain, LEVEL / len(arms)
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[arms[action.first]] += action.probability
        probabilities[arms[action.second]] += 1 - action.probability
        trace = IDSTrace(self, None, arms, estimate, action, pick, objective, None)
        return Choice(int(arms[pick]), probabilities, trace)

    def compiled_trial(self) -> TrialLoop | None:
        """Return a compiled trial."""
        is_plain = type(self) is ArmIDS and not self.floor
        return self._play if is_plain and len(self.problem.arms) <= MAX_ALL_PAIRS else None

    def _play(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        rewards, chosen = self.knowledge.for_trial(script), np.empty(len(script.contexts), np.int64)
        payoff, (circuit, prior, rows) = self.problem.payoff, self.knowledge.distributions
        _play_rounds(
            *draw_keys_and_coins(rng, len(chosen)),
            (prior, rows, circuit.tape, block_size(circuit.slots)),
            (self.problem.reward_position, payoff.scaled, payoff.scaled_costs),
            rewards,
            np.empty((*circuit.results.shape, self.samples), dtype=np.float32),
            script,
            chosen,
        )
        self.knowledge.take_over(script, rewards)
        self.next_number += len(chosen)
        return chosen


@kernel()
def _play_rounds(
    keys: Any,
    coins: Any,
    distributions: Any,
    reward: Any,
    rewards: Any,
    drawn: Any,
    script: Any,
    chosen: Any,
) -> None:
    """Play each round: draw, decide and count the reward.

    `distributions` is (prior, rows, tape, block), `reward` is (index of the reward, scaled reward
    values, costs of the arms); `drawn` is room for the draws.
    """
    prior, rows, tape, block = distributions
    variable, scaled, costs = reward
    position = script.mechanism.observed[variable]
    count, other_values, samples = drawn.shape
    zero = block - block  # a literal would compile everything again
    winners = np.empty(samples, dtype=np.int64)
    winning = np.empty(count, dtype=np.int64)
    best, means = np.empty(count), np.empty(count)
    regret, gain = np.empty(count), np.empty(count)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    for t in range(len(chosen)):
        c = script.contexts[t]
        counts = rewards.counts[c].copy().reshape(count * (other_values + 1))
        draw_results(keys[t], prior, counts, rows, tape, block, zero, drawn, None)
        peak, several = find_and_count_winners(drawn, scaled, costs, winners, best, winning)
        joint = np.empty((count, several, other_values + 1))
        for a in range(count):
            means[a] = -costs[a]
        summarise(drawn, scaled, peak, winners, winning[:several], best, joint, means, regret, gain)
        first, second, probability = best_pair(regret, gain, MIN_GAIN)
        chosen[t] = first if coins[t] < probability else second
        play_round(script, t, chosen[t], codes)
        count_reward(rewards, c, chosen[t], codes[position])
