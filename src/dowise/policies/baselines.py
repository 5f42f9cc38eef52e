"""Baselines that know only rewards, or nothing: `ucb`, `kl-ucb`, `bernoulli-ts` and `random`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np

from dowise._core.document import format_number, pluralize
from dowise._core.kernels import kernel
from dowise._core.rng import draw_key, draw_keys
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise._core.validation import check_integer, check_number
from dowise.belief.draw_kernels import draw_block, draw_results, workspace
from dowise.belief.posterior import SMALL_PARAMETER
from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.model.circuit import Builder
from dowise.model.draws import Draws
from dowise.model.kernels import play_round, unrolled
from dowise.model.sampler import TrialScript
from dowise.policies.arm_rewards import ArmRewards, ArmRewardsPolicy, IndexPolicy, mean_rewards
from dowise.policies.base import Choice, Policy, PosteriorPick, TrialLoop, pick_winner
from dowise.policies.decision import DecisionTrace, sampled_reason
from dowise.policies.requirements import Numbers
from dowise.problem import Payoff, Problem, Record
from dowise.problem.record import RecordBatch


@kernel()
def count_reward(rewards: Any, context: Any, arm: Any, reward: Any) -> None:
    """Count one reward of an arm in a context."""
    rewards.counts[context, arm, reward] += 1
    rewards.plays[context, arm] += 1
    total = 0.0
    for y in range(len(rewards.values)):
        total += rewards.counts[context, arm, y] * rewards.values[y]
    rewards.totals[context, arm] = total


@kernel()
def first_largest(numbers: Any) -> Any:
    """Return the index of the largest number; ties go to the first."""
    best = 0
    for i in range(len(numbers)):
        if numbers[i] > numbers[best]:
            best = i
    return best


class UCB(IndexPolicy):
    """UCB1 (Auer, Cesa-Bianchi & Fischer 2002) on the problem's arms, one table per context.

    Play the arm with the largest mean + √(c·ln t / n), where n is the number of its plays in this
    context, t the number of rounds with this context, and c = `exploration`. At c = 2 the regret in
    each context grows like ln t by their Theorem 1, for rewards with any number of values, scaled
    to [0, 1]. Costs are subtracted from the bounds: they are known, so the proof holds with the net
    gaps between arms.

    Applies when the reward and the context are observed, whatever the graph is.
    """

    def __init__(self, problem: Problem, exploration: float = 2.0) -> None:
        super().__init__(problem)
        self.exploration = check_number("exploration", exploration, 0)

    def index(self, plays: IntArray, totals: FloatArray) -> FloatArray:
        """Return the upper confidence bound of each arm."""
        index = np.empty(len(plays))
        _index(plays, totals, self.exploration, index)
        return index

    def compiled_trial(self) -> TrialLoop | None:
        """Return a compiled trial if nothing is pending."""
        is_plain = type(self) is UCB and not self.pending and not self.floor
        return self._play if is_plain else None

    def _play(self, script: TrialScript, _rng: np.random.Generator) -> IntArray:
        rewards, chosen = self.knowledge.for_trial(script), np.empty(len(script.contexts), np.int64)
        costs, reward = self.problem.payoff.scaled_costs, self.problem.reward_position
        _play_rounds(self.exploration, costs, reward, rewards, script, chosen)
        self.knowledge.take_over(script, rewards)
        self.next_number += len(chosen)
        return chosen


@kernel()
def _index(plays: Any, totals: Any, exploration: Any, index: Any) -> None:
    """Fill `index` with mean + √(c·ln t / n), infinite if n = 0; c is `exploration`, t = Σ n."""
    rounds = plays.sum()
    for arm in range(len(plays)):
        n = plays[arm]
        if n == 0:
            index[arm] = np.inf
        else:
            index[arm] = totals[arm] / n + np.sqrt(exploration * np.log(rounds) / n)


@kernel()
def _play_rounds(
    exploration: Any, costs: Any, reward: Any, rewards: Any, script: Any, chosen: Any
) -> None:
    """Play a whole trial; `reward` is the index of the reward among the observed variables."""
    index = np.empty(rewards.plays.shape[1])
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    position = script.mechanism.observed[reward]
    for t in range(len(chosen)):
        c = script.contexts[t]
        _index(rewards.plays[c], rewards.totals[c], exploration, index)
        for arm in range(len(index)):
            index[arm] -= costs[arm]
        chosen[t] = first_largest(index)
        play_round(script, t, chosen[t], codes)
        count_reward(rewards, c, chosen[t], codes[position])


_STEPS = 100  # about six are needed
_SMALL = 1e-15


def exploration_level(rounds: int | IntArray, c: float) -> FloatArray:
    """Return f(t) = ln t + c·ln ln t, and 0 where that is negative or undefined."""
    log = np.log(np.maximum(rounds, 1))
    level: FloatArray = np.maximum(log + c * np.log(np.maximum(log, 1e-300)), 0)
    return level


def bernoulli_upper_bound(means: FloatArray, levels: FloatArray) -> FloatArray:
    """Return the largest q with kl(mean, q) ≤ level, kl being the divergence of Bernoulli laws.

    Newton's method from the right: kl(p, ·) rises and is convex there, so that the iterates
    approach the solution without passing it. The starting point is the smaller of two bounds. One
    is Pinsker's inequality, kl(p, q) ≥ 2(q − p)²; the other drops −p·ln q ≥ 0, and is the solution
    at p = 0.
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
    bound: FloatArray = np.maximum(means, q)
    return bound


def kl_ucb_index(
    plays: IntArray, totals: FloatArray, rounds: int | IntArray, c: float
) -> FloatArray:
    """Return the largest q with n·kl(mean, q) ≤ f(t) for each arm, infinite if n = 0."""
    levels = exploration_level(rounds, c) / np.maximum(plays, 1)
    return np.where(plays > 0, bernoulli_upper_bound(mean_rewards(plays, totals), levels), inf)


class KLUCB(IndexPolicy):
    """KL-UCB (Garivier & Cappé 2011) on the problem's arms, one table per context.

    Play the arm with the largest upper bound q, the largest number with
    n·kl(mean, q) ≤ ln t + c·ln ln t, where n is the number of the arm's plays in this context and t
    the number of rounds with this context. Their Theorem 1 needs c = 3; in practice they recommend
    0. For two-valued rewards the regret in each context reaches the lower bound of Lai & Robbins.
    With more values, scaled to [0, 1], the bound stays valid (Cappé, Garivier, Maillard, Munos &
    Stoltz 2013), because Bernoulli rewards vary most among rewards in [0, 1] with the same mean.

    Applies when the reward and the context are observed, whatever the graph is.
    """

    def __init__(self, problem: Problem, c: float = 3.0) -> None:
        super().__init__(problem)
        self.c = check_number("c", c, 0)

    def index(self, plays: IntArray, totals: FloatArray) -> FloatArray:
        """Return the largest plausible mean of each arm."""
        return kl_ucb_index(plays, totals, int(plays.sum()), self.c)


_FAILURE_SUCCESS = np.array([0.0, 1.0])


def coin(probability: float, *counter: int) -> float:
    """Return 1 with this probability, else 0; a hash of the counter decides."""
    if probability in (0.0, 1.0):
        return probability
    word = int(np.random.SeedSequence(counter).generate_state(1, np.uint64)[0])
    return float((word >> 11) * 2.0**-53 < probability)


class BernoulliRewards(ArmRewards):
    """Knowledge: successes and failures of each arm, with a Beta distribution of its mean.

    A reward between the worst and the best becomes a success or a failure by a coin toss: a hash of
    the seed and the number of the decision.
    """

    def __init__(
        self, problem: Problem, prior: Sequence[float] = (1.0, 1.0), seed: int = 0
    ) -> None:
        super().__init__(problem)
        self.prior, self.seed = _validate_prior(prior), check_integer("seed", seed, 0)
        self.payoff = Payoff(_FAILURE_SUCCESS, costs=problem.payoff.scaled_costs)
        self.values = self.payoff.values
        self.betas = _betas_of(len(problem.arms), self.prior)
        scaled = problem.payoff.scaled
        self._is_between: BoolArray = (scaled > 0) & (scaled < 1)
        if self._is_between.any():
            self.requires = replace(
                self.requires,
                numbered=self._is_between,
                number_purpose="it seeds the coin for rewards between the worst and the best",
            )

    @property
    def is_small(self) -> bool:
        """True if a parameter is so small that draws need both values."""
        return min(self.prior) < SMALL_PARAMETER

    @property
    def any_shape(self) -> bool | None:
        """None if all parameters are whole numbers, otherwise True."""
        return None if all(number == int(number) for number in self.prior) else True

    def draw(self, codes: Codes, samples: int, rng: np.random.Generator) -> Draws:
        """Return draws from each arm's Beta distribution in a context."""
        rewards = self.in_context(codes).counts
        arms, counts, key = len(rewards), rewards[:, ::-1].ravel(), draw_key(rng)
        prior, rows, tape = self.betas
        out = np.empty((arms, 2, samples), dtype=np.float32)
        draw_results(key, prior, counts, rows, tape, samples, 0, out, self.any_shape)
        if not self.is_small:
            return Draws(out[:, 1:])
        return Draws(out[:, 1:], out, np.arange(arms), int(key[0]))

    def winners(
        self, codes: Codes, arms: IntArray, samples: int, rng: np.random.Generator
    ) -> IntArray:
        """Return the best of these arms under each draw, as indices into `arms`."""
        return self.draw(codes, samples, rng).among(arms).winners(self.payoff)[0]

    def column(self, record: Record) -> int:
        """Return 1 for a success, 0 for a failure."""
        return self._toss(record.reward, record.number)

    def columns(self, records: RecordBatch, numbers: Numbers) -> IntArray:
        """Return 1 for each success, 0 for each failure."""
        rewards = super().columns(records, numbers)
        columns: IntArray = (self.problem.payoff.scaled == 1).astype(np.int64)[rewards]
        for i in np.flatnonzero(self._is_between[rewards]).tolist():
            columns[i] = self._toss(int(rewards[i]), None if numbers is None else int(numbers[i]))
        return columns

    def _toss(self, reward: int, number: int | None) -> int:
        return int(coin(float(self.problem.payoff.scaled[reward]), self.seed, number or 0))


class BernoulliThompsonSampling(ArmRewardsPolicy):
    """Thompson Sampling with a Beta distribution for each arm's mean reward, per context.

    In each round, draw a mean for every arm and play the arm with the largest one, net of cost.
    `prior` is the pair of Beta parameters; (1, 1) is the uniform distribution. With rewards of two
    values the regret in each context reaches the lower bound of Lai & Robbins (Kaufmann, Korda &
    Munos 2012).

    A reward between the worst and the best value, scaled to [0, 1], becomes a success or a failure
    by the toss of a coin with the reward as its probability, which preserves the mean (Agrawal &
    Goyal 2012). The coin is a hash of `seed` and the number of the decision, so runs can be
    repeated and what was learned does not depend on the order of outcomes. Runs that should be
    independent need different seeds. Rewards of two values need no coin.

    `propensity_samples` is that of `ts`. Figures: `counts` (plays), `means` (posterior means) and
    `index` (means under the draw that decided), on the [0, 1] scale, net of what the arms cost.

    Applies when the reward and the context are observed, whatever the graph is.
    """

    knowledge: BernoulliRewards

    def __init__(
        self,
        problem: Problem,
        prior: Sequence[float] = (1.0, 1.0),
        propensity_samples: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(problem, BernoulliRewards(problem, prior, seed))
        self.prior = self.knowledge.prior
        self.propensity_samples = check_integer("propensity_samples", propensity_samples, 0)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the best arm under a draw from every arm's Beta distribution."""
        problem, payoff = self.problem, self.knowledge.payoff
        draws = self.knowledge.draw(codes, self.propensity_samples or 1, rng)
        winners, _ = draws.among(arms).winners(payoff)
        pick = PosteriorPick(0, int(arms[winners[0]]))
        if self.propensity_samples:
            pick = pick_winner(problem, arms, winners, rng)
        rewards = self.knowledge.in_context(codes)
        plays = rewards.plays.copy()
        successes = self.prior[0] + rewards.totals
        means = payoff.net(successes / (successes + self.prior[1] + plays - rewards.totals))
        index = payoff.net(draws.after_first[:, 0, pick.draw].copy())
        mean = format_number(problem.payoff.unscale(means[pick.arm]))
        reason = (
            f"{sampled_reason(pick.share, 'its own plays')}; its estimated mean reward after "
            f"{pluralize(int(plays[pick.arm]), 'play')} is {mean}"
        )
        figures = {"counts": plays, "means": means, "index": index} | pick.figures
        return Choice(pick.arm, pick.probabilities, DecisionTrace(reason, figures))

    def compiled_trial(self) -> TrialLoop | None:
        """Return a compiled trial for rewards of two values, without propensities."""
        is_plain = type(self) is BernoulliThompsonSampling
        if not is_plain or self.propensity_samples or self.floor:
            return None
        is_two_valued = len(self.problem.payoff.values) == 2
        return self._play if is_two_valued and not self.knowledge.is_small else None

    def _play(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        rewards, chosen = self.knowledge.for_trial(script), np.empty(len(script.contexts), np.int64)
        reward = _Reward(
            self.problem.reward_position,
            bool(self.problem.payoff.scaled[0] == 1),
            self.knowledge.payoff.scaled_costs,
        )
        keys = draw_keys(rng, len(chosen))
        any_shape = self.knowledge.any_shape
        _bernoulli_play_rounds(
            keys, self.knowledge.betas, reward, rewards, script, chosen, any_shape
        )
        self.knowledge.take_over(script, rewards)
        self.next_number += len(chosen)
        return chosen


class _Betas(NamedTuple):
    """Beta variates as Dirichlet rows of two entries, success and failure, one row per arm."""

    prior: FloatArray
    rows: IntArray
    tape: IntArray
    """Circuit that computes nothing: its results are its inputs, failure first."""


class _Reward(NamedTuple):
    """Index and orientation of the reward, and the arm costs."""

    variable: int
    best_first: bool
    costs: FloatArray


@lru_cache(maxsize=32)
def _betas_of(arms: int, prior: tuple[float, float]) -> _Betas:
    builder = Builder()
    entries = builder.input_blocks(np.full(arms, 2))
    tape = builder.finish(entries.reshape(arms, 2)[:, ::-1]).tape
    return _Betas(np.tile(prior, arms), 2 * np.arange(arms), tape)


@kernel()
def _bernoulli_play_rounds(
    keys: Any, betas: Any, reward: Any, rewards: Any, script: Any, chosen: Any, any_shape: Any
) -> None:
    """Play a whole trial for rewards of two values."""
    position = script.mechanism.observed[reward.variable]
    arms = rewards.plays.shape[1]
    counts, drawn = np.empty(2 * arms, dtype=np.int64), np.empty(arms)
    circuit = unrolled(betas.tape)
    one = script.contexts.ndim  # a literal would compile everything again
    work = workspace(circuit, one, any_shape)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    for t in range(len(chosen)):
        c = script.contexts[t]
        for arm in range(arms):
            counts[2 * arm] = rewards.counts[c, arm, 1]
            counts[2 * arm + 1] = rewards.counts[c, arm, 0]
        draw_block(keys[t], betas.prior, counts, betas.rows, circuit, one - one, one, work)
        for arm in range(arms):
            drawn[arm] = work.values[circuit.results[arm, 1], 0] - reward.costs[arm]
        chosen[t] = first_largest(drawn)
        play_round(script, t, chosen[t], codes)
        success = 1 - codes[position] if reward.best_first else codes[position]
        count_reward(rewards, c, chosen[t], success)


def _validate_prior(prior: Sequence[float]) -> tuple[float, float]:
    try:
        a, b = (float(number) for number in prior)
    except (TypeError, ValueError):
        a = b = 0.0
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise DowiseError(
            f"prior={prior!r} must be two numbers above 0, such as (1, 1)", code="invalid-number"
        )
    return a, b


class RandomChoice(Policy):
    """Play each allowed arm with the same probability: a randomised trial. Nothing is learned.

    Applies to every problem.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Sample one of the arms uniformly."""
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[arms] = 1 / len(arms)
        chosen = int(arms[rng.integers(len(arms))])
        reason = f"sampled uniformly from {pluralize(len(arms), 'arm')}"
        return Choice(chosen, probabilities, DecisionTrace(reason))
