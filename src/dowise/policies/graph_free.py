"""The graph-free hypothesis: every arm has a reward distribution of its own in each context.

A graph can be wrong: an arrow may be missing, or two variables may be swapped. So a policy may
weigh the posterior of the graph against a second hypothesis that uses no graph. Its prior share is
`graph_free_prior`, and its weight follows from how well each side predicted the rewards, each
before it was learned:

    log odds(no graph) = log(share / (1 − share)) + Σ log[P_arm(y | past) / P_graph(y | past)]

P_arm is the Dirichlet(1) predictive of that arm in that context, P_graph the exact mean under the
posterior of the graph. Records of interventions that are not arms, or without the reward, teach the
graph and are not scored. Arms without a graph predict no other variable, so these are prequential
weights, not a posterior of one joint model.

The sum depends on the order in which the records arrived. If a record is corrected or retracted,
the predictions of all rewards since then are computed again. Every term is rounded to 2⁻³⁶ nats, so
replaying the same records gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dowise._core.document import format_number
from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, draw_key, generator
from dowise._core.types import FloatArray, IntArray
from dowise.belief import Belief, Posterior
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.policies.arm_rewards import ArmRewards
from dowise.policies.requirements import Numbers
from dowise.problem import Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import Context
from dowise.problem.record import RecordBatch, equal_columns

_kernels = lazy_kernels("dowise.policies.graph_free_kernels")
_draw_kernels = lazy_kernels("dowise.belief.draw_kernels")

NAT = 2.0**36
MIN_BATCH = 16  # records that are scored together rather than one by one
DRAW_BLOCK = 256
MAX_ODDS = 1e6  # larger ratios are not spelled out


class MixtureBelief(Belief):
    """Belief of a policy that weighs the graph against the graph-free hypothesis.

    Means, draws and intervals are those of the mixture; everything about tables and edges is the
    graph's alone.

    Parameters
    ----------
    graph : Belief
        Belief about the graph; the mixture learns into it.
    prior : float
        Prior probability of the graph-free hypothesis.
    """

    def __init__(self, graph: Belief, prior: float) -> None:
        self.graph, self.prior = graph, prior
        self.problem, self.posterior, self.monitor = graph.problem, graph.posterior, graph.monitor
        self.rewards = ArmRewards(graph.problem)
        """Rewards of each arm in each context: what the graph-free hypothesis learns."""
        self._start = graph.posterior.copy()
        self._records: list[Record] = []  # in their order of arrival
        self._gains: list[int] = []  # of the records that are scored
        self._total = 0  # of all gains

    # -- weight -------------------------------------------------------------------------------

    @property
    def gain(self) -> int:
        """Log likelihood ratio of all predictions, without the graph against with it.

        The unit is 2⁻³⁶ nats.
        """
        if len(self._gains) < len(self._records):
            self._score_rest()
        return self._total

    @property
    def log_ratio(self) -> float:
        """Log likelihood ratio of all predictions, without the graph against with it, in nats."""
        return self.gain / NAT

    @property
    def weight(self) -> float:
        """Probability of the graph-free hypothesis."""
        return float(_kernels.weight_of(self.prior, float(self.gain)))

    def _score_rest(self) -> None:
        """Score the records that are not, after those that are."""
        posterior, rewards, scored = self._start.copy(), ArmRewards(self.problem), len(self._gains)
        if scored:
            batch = _batch_of(self._records[:scored])
            posterior.learn_many(batch)
            _count_rewards(rewards, batch)
        gains = self._scores(posterior, rewards, _batch_of(self._records[scored:]))
        self._gains += gains
        self._total += sum(gains)

    def _scores(self, posterior: Posterior, rewards: ArmRewards, batch: RecordBatch) -> list[int]:
        """Return the gain of each record, and learn it."""
        if posterior.is_settled and posterior.model.has_circuit and len(batch) >= MIN_BATCH:
            return self._score_compiled(posterior, rewards, batch)
        gains = []
        for record in batch.each():
            gains.append(self._score(posterior, rewards, record))
            posterior.learn(record)
            if rewards.can_learn(record):
                rewards.learn(record)
        return gains

    def _score(self, posterior: Posterior, rewards: ArmRewards, record: Record) -> int:
        """Return the gain of a record that neither side has learned."""
        if not rewards.can_learn(record):
            return 0
        arm, codes = self.problem.arm_positions[record.arm], record.context
        counts = rewards.in_context(codes).counts[arm]
        predicted = posterior.mean_distributions(codes)[arm]
        return int(_kernels.prediction_gain(counts, predicted, record.reward))

    def _score_compiled(
        self, posterior: Posterior, rewards: ArmRewards, batch: RecordBatch
    ) -> list[int]:
        problem, model = self.problem, posterior.model
        factors = model.factors
        sets, numbers = batch.by_set()
        codes = np.ascontiguousarray(batch.codes.T)
        fixed = np.where(batch.was_set.T, codes, MISSING)
        under = factors.under_sets(sets)[numbers]
        plays, contexts = _plays_of(rewards, batch)
        rows = [model.rows(context) for context in contexts]
        counts = [rewards.in_context(context).counts for context in contexts]
        gains = np.zeros(len(batch), dtype=np.int64)
        _kernels.score_records(
            posterior.state(),
            (codes, fixed, under),
            plays,
            (factors.starts, factors.strides, problem.reward_position),
            np.array(rows).reshape(len(contexts), -1),
            model.circuit.tape,
            np.array(counts).reshape(len(contexts), len(problem.arms), -1),
            gains,
        )
        _count_rewards(rewards, batch)
        return gains.tolist()

    # -- learning -----------------------------------------------------------------------------

    def learn(self, record: Record) -> None:
        """Learn from a record, and score the predictions of its reward."""
        if len(self._gains) == len(self._records):
            self._gains.append(self._score(self.posterior, self.rewards, record))
            self._total += self._gains[-1]
        self.graph.learn(record)
        if self.rewards.can_learn(record):
            self.rewards.learn(record)
        self._records.append(record)

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Learn from many records, with the same result as one by one."""
        self.graph.learn_many(records)
        _count_rewards(self.rewards, records)
        self._records += records.each(numbers)  # they are scored when the weight is needed

    def extend(self, records: RecordBatch, numbers: IntArray, gains: IntArray) -> None:
        """Add records that the graph has learned, with their gains, as a compiled trial does."""
        _count_rewards(self.rewards, records)
        self._records += records.each(numbers)
        self._gains += gains.tolist()
        self._total += int(gains.sum())

    def retract(self, record: Record) -> None:
        """Undo `learn`; the rewards that were learned later are scored again."""
        self.graph.retract(record)
        if self.rewards.can_learn(record):
            self.rewards.retract(record)
        i = self._position(record)
        del self._records[i]
        self._total -= sum(self._gains[i:])
        del self._gains[i:]

    def _position(self, record: Record) -> int:
        """Return the last position of a record."""
        for i in range(len(self._records) - 1, -1, -1):
            other = self._records[i]
            if (
                other.number == record.number
                and other.arm == record.arm
                and np.array_equal(other.codes, record.codes)
            ):
                return i
        raise AssertionError(f"{record!r} was learned and is not in the sequence")

    # -- queries ------------------------------------------------------------------------------

    def mean_distributions(self, context: Context = None) -> FloatArray:
        """Return P(Y = y | do(arm), c) on average over both hypotheses: (arms, values of Y)."""
        codes, weight = self.problem.context_codes(context), self.weight
        parameters = 1.0 + self.rewards.in_context(codes).counts
        own = parameters / parameters.sum(axis=1, keepdims=True)
        means: FloatArray = (1 - weight) * self.posterior.mean_distributions(codes) + weight * own
        return means

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """Draw the distribution of the reward under every arm, from either hypothesis.

        The first draws are those without the graph.
        """
        source = generator(rng)
        parts = []
        count = self._graph_free_draws(samples, source)
        if count:
            parts.append(self._draw_arms(codes, count, source))
        if count < samples:
            parts.append(self.posterior.draw(codes, samples - count, source))
        return _joined(parts)

    def draw_in_blocks(self, codes: Codes, samples: int, rng: Random) -> Iterator[Draws]:
        """Yield the draws of `draw` in blocks."""
        source = generator(rng)
        count = self._graph_free_draws(samples, source)
        if count:
            yield self._draw_arms(codes, count, source)
        if count < samples:
            yield from super().draw_in_blocks(codes, samples - count, source)

    def _graph_free_draws(self, samples: int, source: np.random.Generator) -> int:
        """Return the number of draws without the graph: the weight times all, rounded at random."""
        return min(int(samples * self.weight + source.random()), samples)

    def _draw_arms(self, codes: Codes, count: int, source: np.random.Generator) -> Draws:
        counts = self.rewards.in_context(codes).counts
        return draw_arms(1.0 + counts, count, source)

    # -- copies -------------------------------------------------------------------------------

    def copy(self) -> MixtureBelief:
        """Return an independent copy."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        copied.graph = self.graph.copy()
        copied.posterior, copied.monitor = copied.graph.posterior, copied.graph.monitor
        copied.rewards = self.rewards.copy()
        copied._records, copied._gains = self._records.copy(), self._gains.copy()
        return copied

    def as_dict(self) -> dict[str, Any]:
        """Return the belief about the graph, the rewards of arms, and the weight, for JSON."""
        return {
            **self.graph.as_dict(),
            "graph_free": {
                "prior": self.prior,
                "rewards": dict(self.rewards.state()),
                "gain": self.gain,
            },
        }

    def __repr__(self) -> str:
        return f"<MixtureBelief about {self.problem!r}>"


def prediction_sentence(problem: Problem, log_ratio: float) -> str:
    """Return a sentence on whether the graph helps to predict the reward.

    `log_ratio` is the log likelihood ratio of all predictions, without the graph against with it.

    >>> from dowise.problem import load_problem
    >>> prediction_sentence(load_problem("task1"), -3.69)
    'Y is predicted better with the graph than without it, 40 to 1'
    """
    ratio = float(np.exp(min(abs(log_ratio), 100.0)))
    if ratio < 1.5:
        return f"{problem.reward} is predicted equally well with and without the graph"
    odds = f"more than {MAX_ODDS:,.0f}" if ratio > MAX_ODDS else format_number(_rounded(ratio))
    first, second = ("with", "without") if log_ratio < 0 else ("without", "with")
    objects = ("the graph", "it")
    return (
        f"{problem.reward} is predicted better {first} {objects[0]} than {second} {objects[1]}, "
        f"{odds} to 1"
    )


def _rounded(ratio: float) -> float:
    """Return a ratio with two significant digits."""
    return float(f"{ratio:.2g}")


def draw_arms(parameters: FloatArray, samples: int, rng: Random) -> Draws:
    """Draw reward distributions of arms that are independent: Dirichlet rows (arms, values)."""
    arms, values = parameters.shape
    out = np.empty((arms * values, samples), dtype=np.float32)
    starts = np.arange(0, arms * values, values)
    sizes = np.full(arms, values)
    _draw_kernels.draw_entries(
        draw_key(generator(rng)), parameters.ravel(), starts, sizes, DRAW_BLOCK, out
    )
    return Draws(np.ascontiguousarray(out.reshape(arms, values, samples)[:, 1:]))


def _joined(parts: list[Draws]) -> Draws:
    """Return several draws as one."""
    if len(parts) == 1:
        return parts[0]
    return Draws(np.concatenate([part.after_first for part in parts], axis=2))


def _batch_of(records: list[Record]) -> RecordBatch:
    codes = np.stack([record.codes for record in records], axis=1)
    fixed = np.stack([record.fixed for record in records], axis=1)
    return RecordBatch(records[0].problem, codes, fixed != MISSING)


def _count_rewards(rewards: ArmRewards, batch: RecordBatch) -> None:
    """Count the rewards of the records that have what is required."""
    usable = rewards.requires.mask(batch, None).mask
    rewards.learn_many(batch.take(np.flatnonzero(usable)))


def _plays_of(rewards: ArmRewards, batch: RecordBatch) -> tuple[IntArray, list[Codes]]:
    """Return the arm and context of each record, (−1, −1) if it is not scored, and the contexts."""
    problem, plays = rewards.problem, np.full((len(batch), 2), -1)
    scored = np.flatnonzero(rewards.requires.mask(batch, None).mask)
    codes = batch.codes[problem.context_positions][:, scored]
    first, contexts = equal_columns([np.zeros(len(scored), dtype=np.int64), *codes])
    arms, kinds = batch.arms()
    index = np.array([problem.arm_positions.get(arm, -1) for arm in arms])
    plays[scored, 0], plays[scored, 1] = index[kinds[scored]], contexts
    return plays, [tuple(codes[:, i].tolist()) for i in first.tolist()]
