"""Thompson Sampling on the arms' rewards alone: a Beta distribution for each arm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dowise.belief.randomness import Random, generator, key_of
from dowise.belief.rewards import Context
from dowise.errors import DowiseError
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import (
    allowed_arms,
    checked_number,
    checked_propensity_samples,
    estimated_probabilities,
)
from dowise.policies.tabular import Floats, TabularPolicy
from dowise.problem import Problem
from dowise.problem.problem import ArmLike

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
    & Goyal 2012). The coin is a hash of (`seed`, arm, number of plays, context), so a run can be
    repeated; runs that are to be independent of each other need different seeds. Rewards of two
    values need no coin.

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
        self.seed = checked_number("seed", seed, 0)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what one draw from the posterior of every arm says is best."""
        source, arms = generator(rng), allowed_arms(self.problem, allowed)
        table = self.table(self.problem.context_codes(context))
        a = self.prior[0] + table.totals
        b = self.prior[1] + table.plays - table.totals
        drawn = self._draw(a, b, 1, source)[:, 0]
        chosen = int(arms[drawn[arms].argmax()])
        means = a / (a + b)
        figures = {"counts": table.plays.copy(), "means": means, "index": drawn}
        reason = (
            "the best arm under one draw from the posterior of each arm's mean reward; its own is "
            f"{self._in_units(means[chosen]):.3g} on average after "
            f"{table.plays[chosen]:,} plays"
        )
        if not self.propensity_samples:
            return Decision(self.problem.arms[chosen], None, reason, Figures(figures, {}))
        best = self._draw(a[arms], b[arms], self.propensity_samples, source).argmax(axis=0)
        probabilities = estimated_probabilities(self.problem, arms, best, chosen)
        reason += (
            f"; it is picked with probability {probabilities[chosen]:.2f} "
            f"(estimated from {self.propensity_samples:,} draws)"
        )
        behind = Figures({**figures, "best": probabilities, "samples": self.propensity_samples}, {})
        return Decision(self.problem.arms[chosen], probabilities, reason, behind)

    def _draw(
        self, a: Floats, b: Floats, draws: int, source: np.random.Generator
    ) -> NDArray[np.float32]:
        """Draws from Beta(a, b) for each arm: (arms, draws)."""
        from dowise.policies.kernels import draw_betas

        drawn = np.empty((len(a), draws), dtype=np.float32)
        draw_betas(*key_of(source), np.stack([a, b], axis=1), drawn)
        return drawn

    def _credit(self, reward: float, *_counter: int) -> float:
        return coin(reward, self.seed, *_counter)


def _checked_prior(prior: Sequence[float]) -> tuple[float, float]:
    try:
        a, b = (float(number) for number in prior)
    except (TypeError, ValueError):
        a = b = 0.0
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise DowiseError(f"prior={prior!r} must be two numbers above 0, such as (1, 1)")
    return a, b
