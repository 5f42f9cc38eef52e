"""Thompson Sampling on the arms' rewards alone: a Beta distribution for each arm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief.kernels import draw_block, draw_results, workspace
from dowise.checks import whole_number
from dowise.compiling import kernel
from dowise.errors import DowiseError
from dowise.model.circuit import Builder
from dowise.model.kernels import play_round, unrolled
from dowise.model.sampling import Script
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import (
    Loop,
    allowed_arms,
    checked_propensity_samples,
    estimated_probabilities,
)
from dowise.policies.tabular import TabularPolicy, count_reward, first_largest
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.randomness import Random, generator, key_of, keys_of

__all__ = ["BernoulliThompsonSampling", "coin"]


def coin(probability: float, *counter: int) -> float:
    """1 with this probability, else 0: a hash of the counter decides, the same one every time."""
    if probability in (0.0, 1.0):
        return probability
    word = int(np.random.SeedSequence(counter).generate_state(1, np.uint64)[0])
    return float((word >> 11) * 2.0**-53 < probability)


class BernoulliThompsonSampling(TabularPolicy):
    """Thompson Sampling with a Beta distribution for each arm's mean reward, per context.

    Each round draws a mean for every arm and plays the arm of the largest. `prior` is the pair of
    Beta parameters, (1, 1) for the uniform distribution. With rewards of two values the regret in
    each context reaches the lower bound of Lai & Robbins (Kaufmann, Korda & Munos 2012).

    A reward between the lowest and the highest value, scaled to [0, 1], is turned into a success or
    a failure by a coin with the reward as its probability, which leaves the mean as it is (Agrawal
    & Goyal 2012). The coin is a hash of `seed` and the number of the decision, so a run can be
    repeated, and what was learned does not depend on the order in which outcomes come in; runs that
    are to be independent of each other need different seeds. Rewards of two values need no coin.

    As for `ts`, `decision.probabilities` are estimated from `propensity_samples` draws, and None
    with 0. Figures: `counts` (plays), `means` (posterior means), `index` (the means that were
    drawn), on the [0, 1] scale.
    """

    def __init__(
        self,
        problem: Problem,
        prior: Sequence[float] = (1.0, 1.0),
        propensity_samples: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(problem)
        self.prior = _checked_prior(prior)
        self.propensity_samples = checked_propensity_samples(propensity_samples)
        self.seed = whole_number("seed", seed, 0)
        self._worth = np.array([0.0, 1.0])  # a tally has failures and successes

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what one draw from the posterior of every arm says is best."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        seen = self.tally(codes).seen
        drawn = self._draw(seen, 1, source)[:, 0]
        chosen = int(arms[drawn[arms].argmax()])
        plays, won = seen.sum(axis=1), self.prior[0] + seen[:, 1]
        means = won / (won + self.prior[1] + seen[:, 0])
        figures = {"counts": plays, "means": means, "index": drawn}
        reason = (
            "the best arm under one draw from the posterior of each arm's mean reward; its own is "
            f"{problem.payoff.in_units(means[chosen]):.3g} on average after {plays[chosen]:,} plays"
        )
        probabilities = None
        if self.propensity_samples:
            best = self._draw(seen[arms], self.propensity_samples, source).argmax(axis=0)
            probabilities = estimated_probabilities(problem, arms, best, chosen)
            figures |= {"best": probabilities, "samples": self.propensity_samples}
            reason += (
                f"; it is picked with probability {probabilities[chosen]:.2f} "
                f"(estimated from {self.propensity_samples:,} draws)"
            )
        known = problem.context_labels(codes)
        return Decision(problem.arms[chosen], probabilities, reason, Figures(figures), known)

    def _draw(
        self, seen: NDArray[np.int64], draws: int, source: np.random.Generator
    ) -> NDArray[np.float32]:
        """Draws from the Beta distribution of each arm with these tallies: (arms, draws)."""
        arms = len(seen)
        drawn = np.empty((arms, 1, draws), dtype=np.float32)
        prior, rows, tape = np.tile(self.prior, arms), 2 * np.arange(arms), _beta_tape(arms)
        draw_results(key_of(source), prior, seen[:, ::-1].ravel(), rows, tape, draws, drawn)
        return drawn[:, 0]

    def _column(self, record: Record) -> int:
        """A success or a failure."""
        chance = float(self.problem.payoff.scaled[record.reward])
        return int(coin(chance, self.seed, record.number))

    def compiled_loop(self) -> Loop | None:
        """For rewards of two values, without propensities."""
        two_valued = len(self.problem.payoff.values) == 2
        is_plain = type(self) is BernoulliThompsonSampling and not self.propensity_samples
        return self._play if is_plain and two_valued else None

    def _play(self, script: Script, rng: np.random.Generator) -> NDArray[np.int64]:
        tallies, chosen = self._tallies(script), np.empty(len(script.contexts), dtype=np.int64)
        problem = self.problem
        best_first = bool(problem.payoff.scaled[0] == 1)  # the first value is the success
        reward = (problem.reward_position, best_first)
        arms = len(problem.arms)
        betas = (np.tile(self.prior, arms), 2 * np.arange(arms), _beta_tape(arms))
        _play_rounds(keys_of(rng, len(chosen)), betas, reward, tallies, script, chosen)
        self._keep(script, tallies)
        return chosen


@lru_cache(maxsize=32)
def _beta_tape(arms: int) -> NDArray[np.int64]:
    """A Beta variate is the first entry of a Dirichlet row of two: a circuit without operations."""
    builder = Builder()
    entries = builder.input_blocks(np.full(arms, 2))
    return builder.finish(entries[::2].reshape(arms, 1)).tape


@kernel()
def _play_rounds(
    keys: Any, betas: Any, reward: Any, tallies: Any, script: Any, chosen: Any
) -> None:
    """A whole trial for rewards of two values; `reward` is its place among the observed variables,
    and whether its first value is the good one."""
    (prior, rows, tape), (variable, best_first) = betas, reward
    place = script.mechanism.observed[variable]
    arms = tallies.plays.shape[1]
    counts, drawn = np.empty(2 * arms, dtype=np.int64), np.empty(arms, dtype=np.float32)
    circuit = unrolled(tape)
    one = script.contexts.ndim  # a literal would have everything compiled anew for it
    work = workspace(circuit, one)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    for t in range(len(chosen)):
        c = script.contexts[t]
        for arm in range(arms):
            counts[2 * arm] = tallies.seen[c, arm, 1]
            counts[2 * arm + 1] = tallies.seen[c, arm, 0]
        draw_block(keys[t], prior, counts, rows, circuit, one - one, one, work)
        for arm in range(arms):
            drawn[arm] = work.values[circuit.results[arm, 0], 0]
        chosen[t] = first_largest(drawn)
        play_round(script, t, chosen[t], codes)
        won = 1 - codes[place] if best_first else codes[place]
        count_reward(tallies, c, chosen[t], won)


def _checked_prior(prior: Sequence[float]) -> tuple[float, float]:
    try:
        a, b = (float(number) for number in prior)
    except (TypeError, ValueError):
        a = b = 0.0
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise DowiseError(f"prior={prior!r} must be two numbers above 0, such as (1, 1)")
    return a, b
