"""UCB1, a baseline that plays the arm with the largest upper confidence bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.checks import real_number
from dowise.compiling import kernel
from dowise.model.kernels import play_round
from dowise.model.sampling import Script
from dowise.policies.policy import Loop
from dowise.policies.tabular import Floats, IndexPolicy, count_reward, first_largest
from dowise.problem import Problem

__all__ = ["UCB"]


class UCB(IndexPolicy):
    """UCB1 (Auer, Cesa-Bianchi & Fischer 2002) on the problem's arms, one table per context.

    Plays the arm with the largest mean + √(c·ln t / n), where n is how often the arm was played in
    this context, t how many rounds the context has had, and c = `exploration`. At c = 2 the regret
    in each context grows like ln t, by their Theorem 1, for rewards of any number of values scaled
    to [0, 1]. What arms cost is taken off the bounds: known numbers, which leave the proof as it is
    but for what the gaps between arms are.
    """

    def __init__(self, problem: Problem, exploration: float = 2.0) -> None:
        super().__init__(problem)
        self.exploration = real_number("exploration", exploration, 0)

    def index(self, plays: NDArray[np.int64], totals: Floats) -> Floats:
        """The upper confidence bound of each arm."""
        index = np.empty(len(plays))
        _index(plays, totals, self.exploration, index)
        return index

    def compiled_loop(self) -> Loop | None:
        """For this class, nothing under way; one made from it may do anything."""
        return self._play if type(self) is UCB and not self.pending else None

    def _play(self, script: Script, _rng: np.random.Generator) -> NDArray[np.int64]:
        tallies, chosen = self._tallies(script), np.empty(len(script.contexts), dtype=np.int64)
        costs, reward = self.problem.payoff.scaled_costs, self.problem.reward_position
        _play_rounds(self.exploration, costs, reward, tallies, script, chosen)
        self._keep(script, tallies)
        return chosen


@kernel()
def _index(plays: Any, totals: Any, exploration: Any, index: Any) -> None:
    """mean + √(c·ln t / n) for each arm, infinite where n = 0; c is `exploration`, t = Σ n."""
    rounds = plays.sum()
    for arm in range(len(plays)):
        n = plays[arm]
        if n == 0:
            index[arm] = np.inf
        else:
            index[arm] = totals[arm] / n + np.sqrt(exploration * np.log(rounds) / n)


@kernel()
def _play_rounds(
    exploration: Any, costs: Any, reward: Any, tallies: Any, script: Any, chosen: Any
) -> None:
    """A whole trial; `reward` is the place of the reward among the observed variables."""
    index = np.empty(tallies.plays.shape[1])
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    place = script.mechanism.observed[reward]
    for t in range(len(chosen)):
        c = script.contexts[t]
        _index(tallies.plays[c], tallies.totals[c], exploration, index)
        for arm in range(len(index)):
            index[arm] -= costs[arm]
        chosen[t] = first_largest(index)
        play_round(script, t, chosen[t], codes)
        count_reward(tallies, c, chosen[t], codes[place])
