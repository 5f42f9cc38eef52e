"""Thompson Sampling on the arms' rewards alone: a Beta distribution for each arm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.belief.careful import draw_whole
from dowise.belief.dirichlet import CAREFUL_BELOW
from dowise.belief.kernels import draw_block, draw_results, workspace
from dowise.checks import whole_number
from dowise.compiling import kernel
from dowise.errors import DowiseError
from dowise.model.circuit import Builder
from dowise.model.draws import Draws
from dowise.model.kernels import play_round, unrolled
from dowise.model.sampling import Script
from dowise.plain import amount, counted
from dowise.policies.decision import Decision, Figures
from dowise.policies.policy import (
    Loop,
    allowed_arms,
    checked_propensity_samples,
    pick_winner,
)
from dowise.policies.reasons import drawn_by_lot
from dowise.policies.tabular import TabularPolicy, count_reward, first_largest
from dowise.policies.usable import Numbers, Usable
from dowise.problem import Payoff, Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch
from dowise.randomness import Random, generator, key_of, keys_of

__all__ = ["BernoulliThompsonSampling", "coin"]

_NEEDS_NUMBER = (
    "the record has no number, and the coin of this policy is thrown by that of the decision: "
    "problem.record(arm, outcome, number)"
)
_WORTH = np.array([0.0, 1.0])  # of a failure and a success


def coin(probability: float, *counter: int) -> float:
    """1 with this probability, else 0: a hash of the counter decides, the same one every time."""
    if probability in (0.0, 1.0):
        return probability
    word = int(np.random.SeedSequence(counter).generate_state(1, np.uint64)[0])
    return float((word >> 11) * 2.0**-53 < probability)


class BernoulliThompsonSampling(TabularPolicy):
    """Thompson Sampling with a Beta distribution for each arm's mean reward, per context.

    Each round draws a mean for every arm and plays the arm of the largest, net of cost. `prior` is
    the pair of Beta parameters, (1, 1) for the uniform distribution. With rewards of two values the
    regret in each context reaches the lower bound of Lai & Robbins (Kaufmann, Korda & Munos 2012).

    A reward between the worst and the best value, scaled to [0, 1], is turned into a success or
    a failure by a coin with the reward as its probability, which leaves the mean as it is (Agrawal
    & Goyal 2012). The coin is a hash of `seed` and the number of the decision, so a run can be
    repeated, and what was learned does not depend on the order in which outcomes come in; runs that
    are to be independent of each other need different seeds. Rewards of two values need no coin.

    As for `ts`, with `propensity_samples` the winner of one of so many draws is played, and
    `decision.probabilities` are the shares of the winners; with 0 they are None. Figures: `counts`
    (plays), `means` (posterior means), `index` (the means of the draw that decided), on the [0, 1]
    scale, net of what the arms cost.
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
        self._success = Payoff(_WORTH, costs=problem.payoff.scaled_costs)
        self._worth = self._success.values  # a tally has failures and successes
        self._betas = _betas_of(len(problem.arms), self.prior)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what a draw from the posterior of every arm says is best."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        tally = self.tally(codes)
        draws = self._draw(tally.seen, self.propensity_samples or 1, source)
        winners, _ = draws.among(arms).winners(self._success)
        draw, chosen, probabilities = 0, int(arms[winners[0]]), None
        how = drawn_by_lot("its own plays")
        figures: dict[str, object] = {}
        if self.propensity_samples:
            picked = pick_winner(problem, arms, winners, source)
            draw, chosen, probabilities = picked
            figures = {"best": probabilities, "samples": self.propensity_samples}
            how = picked.in_words("its own plays")
        plays = tally.plays.copy()
        won = self.prior[0] + tally.totals
        means = self._success.net(won / (won + self.prior[1] + plays - tally.totals))
        index = self._success.net(draws.others[:, 0, draw].copy())
        figures = {"counts": plays, "means": means, "index": index} | figures
        reason = (
            f"{how}; after {counted(int(plays[chosen]), 'play')} its mean reward is reckoned as "
            f"{amount(problem.payoff.unscale(means[chosen]))}"
        )
        known = problem.context_labels(codes)
        return Decision(problem.arms[chosen], probabilities, reason, Figures(figures), known)

    def winners(
        self,
        codes: tuple[int, ...],
        arms: NDArray[np.int64],
        samples: int,
        source: np.random.Generator,
    ) -> NDArray[np.int64]:
        """The best of these arms under each of so many draws, by its place among them."""
        draws = self._draw(self.tally(codes).seen, samples, source)
        return draws.among(arms).winners(self._success)[0]

    def _draw(self, seen: NDArray[np.int64], draws: int, source: np.random.Generator) -> Draws:
        """Draws from each arm's Beta distribution.

        In double precision where parameters are so small that single precision would saturate.
        """
        arms, counts, key = len(seen), seen[:, ::-1].ravel(), key_of(source)
        prior, rows, tape = self._betas
        if self._is_fine:
            out = np.empty((arms, 2, draws), dtype=np.float32)
            draw_results(key, prior, counts, rows, tape, draws, 0, out)
            return Draws(out[:, 1:])
        whole = np.empty((arms, 2, draws))
        draw_whole(key, prior, counts, rows, tape, draws, 0, whole)
        return Draws(whole[:, 1:], whole, np.arange(arms), int(key[0]))

    @property
    def _is_fine(self) -> bool:
        return min(self.prior) >= CAREFUL_BELOW

    def _column(self, record: Record) -> int:
        """A success or a failure."""
        return self._throw(record.reward, record.number)

    def _columns(self, records: RecordBatch, numbers: Numbers) -> NDArray[np.int64]:
        """Coins are thrown one by one, for rewards between the worst and the best."""
        rewards = super()._columns(records, numbers)
        columns: NDArray[np.int64] = (self.problem.payoff.scaled == 1).astype(np.int64)[rewards]
        for i in np.flatnonzero(self._is_between[rewards]).tolist():
            columns[i] = self._throw(int(rewards[i]), None if numbers is None else int(numbers[i]))
        return columns

    def _throw(self, reward: int, number: int | None) -> int:
        return int(coin(float(self.problem.payoff.scaled[reward]), self.seed, number or 0))

    @property
    def _is_between(self) -> NDArray[np.bool_]:
        """Which rewards a coin is thrown for."""
        scaled = self.problem.payoff.scaled
        between: NDArray[np.bool_] = (scaled > 0) & (scaled < 1)
        return between

    def lacks(self, record: Record) -> str | None:
        """As all that learn from rewards; and where a coin is thrown, whether it has no number."""
        why = super().lacks(record)
        if why is None and record.number is None and self._is_between[record.reward]:
            return _NEEDS_NUMBER
        return why

    def _sorted_out(
        self, records: RecordBatch, numbers: Numbers
    ) -> tuple[Usable, NDArray[np.int64]]:
        found, arms = super()._sorted_out(records, numbers)
        if numbers is None:
            found.leave_out(self._is_between[super()._columns(records, None)], _NEEDS_NUMBER)
        return found, arms

    def compiled_loop(self) -> Loop | None:
        """For rewards of two values, without propensities."""
        two_valued = len(self.problem.payoff.values) == 2
        is_plain = type(self) is BernoulliThompsonSampling and not self.propensity_samples
        return self._play if is_plain and two_valued and self._is_fine else None

    def _play(self, script: Script, rng: np.random.Generator) -> NDArray[np.int64]:
        tallies, chosen = self._tallies(script), np.empty(len(script.contexts), dtype=np.int64)
        problem = self.problem
        best_first = bool(problem.payoff.scaled[0] == 1)  # the first value is the success
        reward = _Reward(problem.reward_position, best_first, self._success.scaled_costs)
        _play_rounds(keys_of(rng, len(chosen)), self._betas, reward, tallies, script, chosen)
        self._keep(script, tallies)
        return chosen


class _Betas(NamedTuple):
    """Beta variates as Dirichlet rows of two entries, success and failure, one row an arm."""

    prior: NDArray[np.float64]
    rows: NDArray[np.int64]
    tape: NDArray[np.int64]
    """A circuit that computes nothing: its results are its inputs, failure first."""


class _Reward(NamedTuple):
    """Its place among the observed variables; whether its first value is the good; arms' costs."""

    variable: int
    best_first: bool
    costs: NDArray[np.float64]


@lru_cache(maxsize=32)
def _betas_of(arms: int, prior: tuple[float, float]) -> _Betas:
    builder = Builder()
    entries = builder.input_blocks(np.full(arms, 2))
    tape = builder.finish(entries.reshape(arms, 2)[:, ::-1]).tape
    return _Betas(np.tile(prior, arms), 2 * np.arange(arms), tape)


@kernel()
def _play_rounds(
    keys: Any, betas: Any, reward: Any, tallies: Any, script: Any, chosen: Any
) -> None:
    """A whole trial for rewards of two values."""
    place = script.mechanism.observed[reward.variable]
    arms = tallies.plays.shape[1]
    counts, drawn = np.empty(2 * arms, dtype=np.int64), np.empty(arms)
    circuit = unrolled(betas.tape)
    one = script.contexts.ndim  # a literal would have everything compiled anew for it
    work = workspace(circuit, one)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    for t in range(len(chosen)):
        c = script.contexts[t]
        for arm in range(arms):
            counts[2 * arm] = tallies.seen[c, arm, 1]
            counts[2 * arm + 1] = tallies.seen[c, arm, 0]
        draw_block(keys[t], betas.prior, counts, betas.rows, circuit, one - one, one, work)
        for arm in range(arms):
            drawn[arm] = work.values[circuit.results[arm, 1], 0] - reward.costs[arm]
        chosen[t] = first_largest(drawn)
        play_round(script, t, chosen[t], codes)
        won = 1 - codes[place] if reward.best_first else codes[place]
        count_reward(tallies, c, chosen[t], won)


def _checked_prior(prior: Sequence[float]) -> tuple[float, float]:
    try:
        a, b = (float(number) for number in prior)
    except (TypeError, ValueError):
        a = b = 0.0
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise DowiseError(f"prior={prior!r} must be two numbers above 0, such as (1, 1)")
    return a, b
