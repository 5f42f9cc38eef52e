"""UCB1, a baseline that plays the arm with the largest upper confidence bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import format_number, pluralize
from dowise._core.kernels import kernel
from dowise._core.rng import Random, draw_key, draw_keys, generator
from dowise._core.validation import check_integer, check_number
from dowise.belief.draw_kernels import draw_block, draw_results, draw_whole, workspace
from dowise.belief.posterior import MIN_SINGLE_PRECISION
from dowise.errors import DowiseError
from dowise.model.circuit import Builder
from dowise.model.draws import Draws
from dowise.model.kernels import play_round, unrolled
from dowise.model.sampler import TrialScript
from dowise.policies.arm_rewards import (
    Floats,
    IndexPolicy,
    TabularPolicy,
    count_reward,
    first_largest,
    means_of,
)
from dowise.policies.base import (
    Loop,
    Numbers,
    RecordMask,
    RecordPolicy,
    allowed_arms,
    check_batch,
    checked_propensity_samples,
    pick_winner,
)
from dowise.policies.decision import Decision, Figures, drawn_by_lot
from dowise.problem import Payoff, Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record


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
        self.exploration = check_number("exploration", exploration, 0)

    def index(self, plays: NDArray[np.int64], totals: Floats) -> Floats:
        """The upper confidence bound of each arm."""
        index = np.empty(len(plays))
        _index(plays, totals, self.exploration, index)
        return index

    def compiled_loop(self) -> Loop | None:
        """For this class, nothing under way; one made from it may do anything."""
        return self._play if type(self) is UCB and not self.pending else None

    def _play(self, script: TrialScript, _rng: np.random.Generator) -> NDArray[np.int64]:
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


_STEPS = 100  # about six are needed
_SMALL = 1e-15


def exploration_level(rounds: int | NDArray[np.int64], c: float) -> Floats:
    """f(t) = ln t + c·ln ln t, and 0 where that is negative or undefined."""
    log = np.log(np.maximum(rounds, 1))
    level: Floats = np.maximum(log + c * np.log(np.maximum(log, 1e-300)), 0)
    return level


def bernoulli_upper_bound(means: Floats, levels: Floats) -> Floats:
    """The largest q with kl(mean, q) ≤ level, where kl is the divergence of Bernoulli laws.

    By Newton's method from the right: kl(p, ·) rises and is convex there, so that it closes in on
    the solution without passing it. Two bounds say where to start. One is Pinsker's inequality,
    kl(p, q) ≥ 2(q − p)²; the other drops −p·ln q ≥ 0, and is the solution itself at p = 0.
    """
    p = np.minimum(means, 1 - _SMALL)
    entropy_part = -p * np.log(np.maximum(p, 1e-300))
    cap = 1 - (1 - p) * np.exp(-(levels + entropy_part) / (1 - p))
    q = np.minimum(np.minimum(p + np.sqrt(levels / 2), cap), 1 - _SMALL)
    for _ in range(_STEPS):
        ratio = np.maximum(p, 1e-300) / np.maximum(q, 1e-300)
        excess = p * np.log(ratio) + (1 - p) * np.log((1 - p) / (1 - q)) - levels
        step = np.maximum(excess, 0) * q * (1 - q) / np.maximum(q - p, _SMALL)
        q = q - step
        if (step < 1e-14).all():
            break
    bound: Floats = np.maximum(means, q)
    return bound


def kl_ucb_index(
    plays: NDArray[np.int64], totals: Floats, rounds: int | NDArray[np.int64], c: float
) -> Floats:
    """The largest q with n·kl(mean, q) ≤ f(t) for each arm, infinite where n = 0."""
    levels = exploration_level(rounds, c) / np.maximum(plays, 1)
    return np.where(plays > 0, bernoulli_upper_bound(means_of(plays, totals), levels), inf)


class KLUCB(IndexPolicy):
    """KL-UCB (Garivier & Cappé 2011) on the problem's arms, one table per context.

    Plays the arm whose mean may be largest: the largest q with n·kl(mean, q) ≤ ln t + c·ln ln t,
    where n is how often the arm was played in this context and t how many rounds the context has
    had. c = 3 is what their Theorem 1 needs; in practice they recommend 0. For two-valued rewards
    the regret in each context reaches the lower bound of Lai & Robbins. With more values the same
    index of the mean, rewards scaled to [0, 1], stays a valid bound (Cappé, Garivier, Maillard,
    Munos & Stoltz 2013): among rewards in [0, 1] with this mean the Bernoulli ones vary most.
    """

    def __init__(self, problem: Problem, c: float = 3.0) -> None:
        super().__init__(problem)
        self.c = check_number("c", c, 0)

    def index(self, plays: NDArray[np.int64], totals: Floats) -> Floats:
        """The largest mean that the plays of each arm leave plausible."""
        return kl_ucb_index(plays, totals, int(plays.sum()), self.c)


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
        self.seed = check_integer("seed", seed, 0)
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
            f"{how}; after {pluralize(int(plays[chosen]), 'play')} its mean reward is reckoned as "
            f"{format_number(problem.payoff.unscale(means[chosen]))}"
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
        arms, counts, key = len(seen), seen[:, ::-1].ravel(), draw_key(source)
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
        return min(self.prior) >= MIN_SINGLE_PRECISION

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
    ) -> tuple[RecordMask, NDArray[np.int64]]:
        found, arms = super()._sorted_out(records, numbers)
        if numbers is None:
            found.leave_out(self._is_between[super()._columns(records, None)], _NEEDS_NUMBER)
        return found, arms

    def compiled_loop(self) -> Loop | None:
        """For rewards of two values, without propensities."""
        two_valued = len(self.problem.payoff.values) == 2
        is_plain = type(self) is BernoulliThompsonSampling and not self.propensity_samples
        return self._play if is_plain and two_valued and self._is_fine else None

    def _play(self, script: TrialScript, rng: np.random.Generator) -> NDArray[np.int64]:
        tallies, chosen = self._tallies(script), np.empty(len(script.contexts), dtype=np.int64)
        problem = self.problem
        best_first = bool(problem.payoff.scaled[0] == 1)  # the first value is the success
        reward = _Reward(problem.reward_position, best_first, self._success.scaled_costs)
        _bernoulli_play_rounds(
            draw_keys(rng, len(chosen)), self._betas, reward, tallies, script, chosen
        )
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
def _bernoulli_play_rounds(
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


class RandomChoice(RecordPolicy):
    """Each allowed arm with the same probability, whatever was seen: a randomised trial."""

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Draw one of the allowed arms."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        probabilities = np.zeros(len(problem.arms))
        probabilities[arms] = 1 / len(arms)
        chosen = problem.arms[int(arms[source.integers(len(arms))])]
        reason = f"drawn at random from {len(arms)} arms"
        return Decision(chosen, probabilities, reason, context=problem.context_labels(codes))

    def learn(self, record: Record) -> None:
        """Nothing is learned; that the record makes sense was checked when it was made."""
        check_record(record, self.problem)

    def retract(self, record: Record) -> None:
        """Nothing was learned."""
        check_record(record, self.problem)

    def lacks(self, record: Record) -> str | None:
        """Nothing is needed."""
        check_record(record, self.problem)
        return None

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """All of them."""
        check_batch(self.problem, records, numbers)
        return RecordMask.all_of(len(records))

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Nothing is learned."""
        check_batch(self.problem, records, numbers)

    def state(self) -> Mapping[str, object]:
        """Nothing."""
        return {}
