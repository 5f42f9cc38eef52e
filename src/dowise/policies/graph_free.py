"""The graph-free hypothesis: every arm has a reward distribution of its own in each context.

A graph can be wrong: an arrow may be missing, or two variables may be swapped. So a policy may
weigh the posterior of the graph against a second hypothesis that uses no graph. Its prior share is
`graph_free_prior`, and its weight follows from how well each side predicted the rewards, each
before it was learned:

    log odds(no graph) = log(share / (1 − share)) + Σ log[P_arm(y | past) / P_graph(y | past)]

P_arm is the Dirichlet(1) predictive of that arm in that context, P_graph the exact mean under the
posterior of the graph. The past is every record that arrived before the reward, without the other
values of its own decision. Records of interventions that are not arms, or without the reward, teach
the graph and are not scored. Arms without a graph predict no other variable, so these are
prequential weights, not a posterior of one joint model.

The sum depends on the order of arrival (`dowise.belief.arrivals`). If a record is corrected or
retracted, the rewards that arrived since then are scored again. Every term is rounded to 2⁻³⁶ nats,
so that the same sequence always gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from dowise._core.document import format_number, pluralize
from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, generator
from dowise._core.types import FloatArray, IntArray
from dowise.belief import Belief, Posterior
from dowise.belief.arrivals import Arrivals, Piece
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.policies.arm_rewards import RewardDistributions
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.problem import Context
from dowise.problem.record import RecordBatch, check_record

_kernels = lazy_kernels("dowise.policies.graph_free_kernels")

NAT = 2.0**36
MIN_COMPILED = 16  # pieces from which on they are scored by a kernel
MAX_ODDS = 1e6  # larger ratios are not spelled out


class _Step(NamedTuple):
    """Change of what is known by one piece of a record."""

    record: Record
    earlier: Record | None
    """Record with the values that were known before the piece; it is forgotten first."""
    arm: int
    """Index of the arm whose reward is scored, −1 if none is."""


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
        self.rewards = RewardDistributions(graph.problem)
        """Rewards of each arm in each context: what the graph-free hypothesis learns."""
        self.arrivals = Arrivals(graph.problem)
        """Sequence of everything that was learned."""
        self.appends = True
        """True if records arrive in the order in which they are learned, False if the caller fills
        `arrivals`, as live experiments do."""
        self._start = graph.posterior.copy()
        self._gains: list[int] = []  # of the pieces that are scored
        self._total = 0  # of all gains

    # -- weight -------------------------------------------------------------------------------

    @property
    def gain(self) -> int:
        """Log likelihood ratio of all predictions, without the graph against with it.

        The unit is 2⁻³⁶ nats.
        """
        if not self._is_scored:
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

    @property
    def _is_scored(self) -> bool:
        return self.arrivals.changed_from == len(self.arrivals) == len(self._gains)

    def _score_rest(self) -> None:
        """Score all pieces since the first that changed."""
        first = min(self.arrivals.changed_from, len(self._gains))
        self._total -= sum(self._gains[first:])
        del self._gains[first:]
        distinct, order = self._steps(first)
        posterior, rewards = self._start.copy(), RewardDistributions(self.problem)
        if first:  # go back from what is known now
            posterior, rewards = self.posterior.copy(), self.rewards.copy()
            for i in reversed(order):
                record, earlier, arm = distinct[i]
                posterior.retract(record)
                if earlier is not None:
                    posterior.learn(earlier)
                if arm >= 0:
                    rewards.retract(record)
        gains = self._scores(posterior, rewards, distinct, order)
        self._gains += gains
        self._total += sum(gains)
        self.arrivals.mark_read()

    def _steps(self, first: int) -> tuple[list[_Step], list[int]]:
        """Return the distinct pieces from a position on, and the index of each piece."""
        problem, pieces = self.problem, self.arrivals.arrays(first)
        names, distinct = problem.graph.variables, []
        columns = zip(*pieces[1:4], pieces.codes.T, strict=True)
        for cut, told, continues, codes in columns:
            labels = {
                names[v]: problem.domains[names[v]][codes[v]]
                for v in range(len(codes))
                if cut >> v & 1
            }
            arm = Intervention(labels)
            fixed = np.array(
                [code if cut >> v & 1 else MISSING for v, code in enumerate(codes.tolist())]
            )
            record, earlier = Record(problem, arm, codes.copy(), fixed), None
            if continues:
                before = self.arrivals.earlier_codes(Piece(codes, cut, told, True))
                earlier = Record(problem, arm, before, fixed)
            is_new = earlier is None or earlier.reward == MISSING
            counts = is_new and self.rewards.can_learn(record)
            distinct.append(_Step(record, earlier, problem.arm_positions[arm] if counts else -1))
        return distinct, pieces.order.tolist()

    def _scores(
        self,
        posterior: Posterior,
        rewards: RewardDistributions,
        distinct: list[_Step],
        order: list[int],
    ) -> list[int]:
        """Return the gain of each piece, and learn it."""
        if posterior.is_settled and posterior.model.has_circuit and len(order) >= MIN_COMPILED:
            return self._compiled_scores(posterior, rewards, distinct, order)
        gains = []
        for i in order:
            record, earlier, arm = distinct[i]
            if earlier is not None:
                posterior.retract(earlier)
            gains.append(self._score(posterior, rewards, record) if arm >= 0 else 0)
            posterior.learn(record)
            if arm >= 0:
                rewards.learn(record)
        return gains

    def _score(self, posterior: Posterior, rewards: RewardDistributions, record: Record) -> int:
        """Return the gain of a reward that neither side has learned."""
        arm, codes = self.problem.arm_positions[record.arm], record.context
        counts = rewards.in_context(codes).counts[arm]
        predicted = posterior.mean_distributions(codes)[arm]
        return int(_kernels.prediction_gain(counts, predicted, record.reward))

    def _compiled_scores(
        self,
        posterior: Posterior,
        rewards: RewardDistributions,
        distinct: list[_Step],
        order: list[int],
    ) -> list[int]:
        problem, factors, model = self.problem, posterior.model.factors, posterior.model
        contexts = {step.record.context: 0 for step in distinct if step.arm >= 0}
        contexts = {codes: c for c, codes in enumerate(contexts)}
        if not contexts:
            return [0] * len(order)
        counts = [rewards.in_context(codes).counts for codes in contexts]
        rows = [model.rows(codes) for codes in contexts]
        masks = [problem.graph.mask(step.record.arm) for step in distinct]
        gains = np.zeros(len(order), dtype=np.int64)
        _kernels.score_pieces(
            posterior.state(),
            np.array(order),
            np.array([step.record.codes for step in distinct]),
            np.array([(step.earlier or step.record).codes for step in distinct]),
            np.array([step.earlier is not None for step in distinct]),
            np.array([step.record.fixed for step in distinct]),
            np.array([factors.under(mask) for mask in masks]),
            np.array([(step.arm, contexts.get(step.record.context, -1)) for step in distinct]),
            (factors.starts, factors.strides, problem.reward_position),
            np.array(rows, dtype=np.int64).reshape(len(contexts), -1),
            model.circuit.tape,
            np.array(counts, dtype=np.int64).reshape(len(contexts), len(problem.arms), -1),
            gains,
        )
        return gains.tolist()

    # -- learning -----------------------------------------------------------------------------

    def learn(self, record: Record) -> None:
        """Learn from a record, and score the predictions of its reward."""
        check_record(record, self.problem)
        counts, is_scored = self.rewards.can_learn(record), self.appends and self._is_scored
        gain = self._score(self.posterior, self.rewards, record) if counts and is_scored else 0
        self.graph.learn(record)
        if counts:
            self.rewards.learn(record)
        if self.appends:
            self.arrivals.append(record)
        if is_scored:
            self._gains.append(gain)
            self._total += gain
            self.arrivals.mark_read()

    def learn_many(self, records: RecordBatch) -> None:
        """Learn from many records, with the same result as one by one."""
        self.graph.learn_many(records)
        self._count_rewards(records)
        if self.appends:
            self.arrivals.extend(records)

    def add_learned(self, records: RecordBatch, gains: IntArray) -> None:
        """Add records that the graph has learned, with their gains, as a compiled trial does."""
        self._gains += gains.tolist()
        self._total += int(gains.sum())
        self._count_rewards(records)
        self.arrivals.extend(records)
        self.arrivals.mark_read()

    def retract(self, record: Record) -> None:
        """Undo `learn`; the rewards that arrived later are scored again."""
        check_record(record, self.problem)
        if self.appends:
            self.arrivals.check_has(record)
        self.graph.retract(record)
        if self.appends:
            self.arrivals.remove(record)
        if self.rewards.can_learn(record):
            self.rewards.retract(record)

    def _count_rewards(self, records: RecordBatch) -> None:
        usable = self.rewards.requires.mask(records, None).mask
        self.rewards.learn_many(records.take(np.flatnonzero(usable)))

    # -- queries ------------------------------------------------------------------------------

    def reward_counts(self) -> dict[str, int]:
        """Return the number of rewards, by what they teach.

        `seen` has all that the graph may learn from, `unlearned` those of them that it can't use
        because other values are missing, and `of_arms` those that count for each arm by itself.
        """
        reward = self.problem.reward
        lacking = self.lacking().get(reward, {})
        unlearned = sum(times for other, times in lacking.items() if other not in ("", reward))
        return {
            "seen": self.times_learned()[reward] + unlearned,
            "unlearned": unlearned,
            "of_arms": sum(int(known.counts.sum()) for known in self.rewards.by_context.values()),
        }

    def mean_distributions(self, context: Context = None) -> FloatArray:
        """Return P(Y = y | do(arm), c) on average over both hypotheses: (arms, values of Y)."""
        codes, weight = self.problem.context_codes(context), self.weight
        by_graph = self.posterior.mean_distributions(codes)
        return by_graph + weight * (self.rewards.means(codes) - by_graph)

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """Draw the distribution of the reward under every arm, from either hypothesis.

        The first draws are those without the graph.
        """
        source = generator(rng)
        count = self._graph_free_draws(samples, source)
        parts = [self.rewards.draw(codes, count, source)] if count else []
        if count < samples:
            parts.append(self.posterior.draw(codes, samples - count, source))
        return _joined(parts)

    def draw_in_blocks(self, codes: Codes, samples: int, rng: Random) -> Iterator[Draws]:
        """Yield the draws of `draw` in blocks."""
        source = generator(rng)
        count = self._graph_free_draws(samples, source)
        if count:
            yield self.rewards.draw(codes, count, source)
        if count < samples:
            yield from super().draw_in_blocks(codes, samples - count, source)

    def _graph_free_draws(self, samples: int, source: np.random.Generator) -> int:
        """Return the number of draws without the graph: the weight times all, rounded at random."""
        return min(int(samples * self.weight + source.random()), samples)

    # -- copies -------------------------------------------------------------------------------

    def copy(self) -> MixtureBelief:
        """Return an independent copy."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        copied.graph, copied.rewards = self.graph.copy(), self.rewards.copy()
        copied.posterior, copied.monitor = copied.graph.posterior, copied.graph.monitor
        copied.arrivals, copied._gains = self.arrivals.copy(), self._gains.copy()
        return copied

    def as_dict(self) -> dict[str, Any]:
        """Return the belief about the graph, the rewards of arms, and the gain, for JSON."""
        mixture = {"prior": self.prior, "rewards": dict(self.rewards.state()), "gain": self.gain}
        return {**self.graph.as_dict(), "graph_free": mixture}

    def __repr__(self) -> str:
        return f"<MixtureBelief about {self.problem!r}>"


def prediction_sentence(
    problem: Problem, log_ratio: float, rewards: Mapping[str, int] | None = None
) -> str:
    """Return a sentence on whether the graph helps to predict the reward.

    `log_ratio` is the log likelihood ratio of all predictions, without the graph against with it.
    `rewards` are the `reward_counts`: a graph that could not learn from rewards predicts badly.

    >>> from dowise.problem import load_problem
    >>> prediction_sentence(load_problem("task1"), -3.69)
    'Y is predicted better with the graph than without it, 40 to 1'
    """
    ratio = float(np.exp(min(abs(log_ratio), 100.0)))
    but = ""
    if rewards and rewards["unlearned"]:
        but = (
            f", but the graph could not learn from {rewards['unlearned']:,} of "
            f"{pluralize(rewards['seen'], 'reward')}, because other values are missing"
        )
    if ratio < 1.5:
        return f"{problem.reward} is predicted equally well with and without the graph{but}"
    rounded = float(f"{ratio:.2g}")
    odds = f"more than {MAX_ODDS:,.0f}" if ratio > MAX_ODDS else format_number(rounded)
    if log_ratio < 0:
        return (
            f"{problem.reward} is predicted better with the graph than without it, {odds} to 1{but}"
        )
    return f"{problem.reward} is predicted better without the graph than with it, {odds} to 1{but}"


def _joined(parts: list[Draws]) -> Draws:
    """Return several draws as one.

    Arms with the same reward by the graph may differ without it, so they are all told apart.
    """
    if len(parts) == 1:
        return parts[0]
    if all(part.whole is None for part in parts):
        return Draws(np.concatenate([part.after_first for part in parts], axis=2))
    whole = np.concatenate([part.distributions() for part in parts], axis=2)
    return Draws(whole[:, 1:], whole, np.arange(len(whole)), parts[-1].key)
