"""Knowledge of the arms by their rewards alone, counted per context, and index policies on it.

These policies use the graph only to tell which arms are worth playing. They ignore all other
variables, so they need no posterior and apply to every graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from dowise._core.document import format_number, pluralize
from dowise._core.kernels import lazy_kernels
from dowise._core.rng import draw_key
from dowise._core.types import FloatArray, IntArray
from dowise.belief.posterior import block_size
from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.model.circuit import Builder, Circuit
from dowise.model.draws import Draws
from dowise.policies.base import Choice, Policy, digest_of, one_hot
from dowise.policies.decision import HIGHEST_BOUND, DecisionTrace, not_played_reason, pending_note
from dowise.policies.requirements import Numbers, RecordRequirements
from dowise.problem import Intervention, Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, equal_columns

if TYPE_CHECKING:
    from dowise.model.sampler import TrialScript

_draw_kernels = lazy_kernels("dowise.belief.draw_kernels")

UNKNOWN_MEAN = 0.5
"""Mean reward assumed for pending plays of an arm without finished ones."""


class PendingPlays:
    """Number of pending plays of each arm, by context: asked for, no outcome yet."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._plays: dict[Codes, IntArray] = {}

    def add(self, arm: ArmLike, context: Context, times: int) -> None:
        """Add plays, or take them back; an intervention that is not an arm is ignored."""
        problem = self._problem
        played = arm if isinstance(arm, Intervention) else problem.intervention(arm)
        index, codes = problem.arm_positions.get(played), problem.context_codes(context)
        if index is None:
            return
        plays = self.in_context(codes)
        if plays[index] + times < 0:
            raise DowiseError(
                f"can't take back {-times:,} plays of {played}: {plays[index]:,} are pending",
                code="invalid-number",
            )
        plays[index] += times
        if plays.any():
            self._plays[codes] = plays
        else:
            self._plays.pop(codes, None)

    def in_context(self, codes: Codes) -> IntArray:
        """Return the pending plays of every arm in a context."""
        plays = self._plays.get(codes)
        return np.zeros(len(self._problem.arms), dtype=np.int64) if plays is None else plays.copy()

    def contexts(self) -> list[Codes]:
        """Return the contexts with pending plays, in order."""
        return sorted(self._plays)

    def copy(self) -> Self:
        """Return a copy that counts independently."""
        copied = copy(self)
        copied._plays = deepcopy(self._plays)
        return copied

    def __bool__(self) -> bool:
        return bool(self._plays)


class PendingPlaysMixin(Policy):
    """Policy that counts pending plays, so as not to repeat the same arm until it learns."""

    pending: PendingPlays

    def add_pending(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        """Count plays of an arm that have no outcome yet; negative `times` take them back."""
        self.pending.add(arm, context, times)

    def copy(self) -> Self:
        """Return a policy that learns, and counts pending plays, independently."""
        copied = super().copy()
        copied.pending = self.pending.copy()
        return copied


class RewardCounts(NamedTuple):
    """Number of times that each arm brought each reward, in one context.

    In compiled trials every array but `values` has the contexts as its first axis. Plays and totals
    follow from the counts, whatever the order of the rewards.
    """

    counts: IntArray
    """counts[arm, reward]."""
    plays: IntArray
    """plays[arm]."""
    totals: FloatArray
    """totals[arm]: sum of the rewards."""
    values: FloatArray
    """Rewards, scaled to [0, 1]."""

    @classmethod
    def from_counts(cls, counts: IntArray, values: FloatArray) -> Self:
        """Compute plays and totals from the counts."""
        rewards = cls(counts, counts.sum(axis=1), np.zeros(len(counts)), values)
        for arm in range(len(counts)):
            rewards.add(arm, 0, 0)
        return rewards

    def add(self, arm: int, reward: int, times: int) -> None:
        """Count a reward of an arm; negative `times` take it back."""
        self.counts[arm, reward] += times
        self.plays[arm] += times
        total = 0.0  # in this order, as in `baselines.count_reward`
        for count, value in zip(self.counts[arm].tolist(), self.values.tolist(), strict=True):
            total += count * value
        self.totals[arm] = total


def mean_rewards(plays: IntArray, totals: FloatArray) -> FloatArray:
    """Return the mean reward of each arm, 0 for one that was never played."""
    means: FloatArray = totals / np.maximum(plays, 1)
    return means


class ArmRewards:
    """Knowledge: number of times that each arm brought each reward in each context."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.values = problem.payoff.scaled
        """Rewards as they are counted, scaled to [0, 1]: the worst to 0 and the best to 1."""
        self.by_context: dict[Codes, RewardCounts] = {}
        """Counts by the codes of the context's values, in the order of names."""
        self.requires = RecordRequirements(
            (problem.reward_position, *problem.context_positions.tolist()),
            "this policy learns from the reward in its context",
            arm=True,
        )

    def in_context(self, codes: Codes) -> RewardCounts:
        """Return the counts in a context, zeros if it was never seen."""
        rewards = self.by_context.get(codes)
        if rewards is not None:
            return rewards
        arms = len(self.problem.arms)
        counts = np.zeros((arms, len(self.values)), dtype=np.int64)
        return RewardCounts(counts, np.zeros(arms, dtype=np.int64), np.zeros(arms), self.values)

    def can_learn(self, record: Record) -> bool:
        """Return True if a record has what is required."""
        return self.requires.rejection_reason(record) is None

    def column(self, record: Record) -> int:
        """Return the column of `counts` for a record."""
        return record.reward

    def columns(self, records: RecordBatch, numbers: Numbers) -> IntArray:
        """Return the column of `counts` for each record."""
        rewards: IntArray = records.codes[self.problem.reward_position]
        return rewards

    def learn(self, record: Record) -> None:
        """Count one reward."""
        arm = self.problem.arm_positions[record.arm]
        self._add(record.context, arm, self.column(record), 1)

    def retract(self, record: Record) -> None:
        """Take one reward back."""
        arm, context = self.problem.arm_positions[record.arm], record.context
        rewards, column = self.in_context(context), self.column(record)
        if rewards.counts[arm, column] < 1:
            raise DowiseError(
                f"{record!r} can't be retracted: it was not learned", code="not-learned"
            )
        rewards.add(arm, column, -1)
        if not rewards.plays.any():
            del self.by_context[context]

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Count many rewards; equal records are counted together."""
        columns = self.columns(records, numbers)
        contexts = records.codes[self.problem.context_positions, :]
        arms, kinds = records.arms()
        first, groups = equal_columns([kinds, columns, *contexts])
        for i, times in zip(first.tolist(), np.bincount(groups).tolist(), strict=True):
            arm = self.problem.arm_positions[arms[kinds[i]]]
            self._add(tuple(contexts[:, i].tolist()), arm, int(columns[i]), times)

    def _add(self, context: Codes, arm: int, column: int, times: int) -> None:
        if context not in self.by_context:
            self.by_context[context] = self.in_context(context)
        self.by_context[context].add(arm, column, times)

    def copy(self) -> Self:
        """Return a copy that learns independently."""
        copied = copy(self)
        copied.by_context = deepcopy(self.by_context)
        return copied

    def state(self) -> Mapping[str, object]:
        """Return the counts of every context."""
        return {
            str(context): rewards.counts.tolist()
            for context, rewards in sorted(self.by_context.items())
        }

    def fingerprint(self) -> bytes:
        """Return a digest of the counts of every context."""
        numbers: list[Codes | IntArray] = []
        for codes in sorted(self.by_context):
            counts = self.by_context[codes].counts
            if counts.any():
                numbers += [codes, counts]
        return digest_of(*numbers)

    def for_trial(self, script: TrialScript) -> RewardCounts:
        """Return the counts of a trial's contexts, for a compiled trial to learn into."""
        contexts = [self.in_context(tuple(codes)) for codes in script.context_codes.tolist()]
        return RewardCounts(
            np.array([rewards.counts for rewards in contexts]),
            np.array([rewards.plays for rewards in contexts]),
            np.array([rewards.totals for rewards in contexts]),
            self.values,
        )

    def take_over(self, script: TrialScript, rewards: RewardCounts) -> None:
        """Replace the counts of a trial's contexts by those that a compiled trial has learned."""
        for c, codes in enumerate(script.context_codes.tolist()):
            self.by_context[tuple(codes)] = RewardCounts(
                rewards.counts[c], rewards.plays[c], rewards.totals[c], rewards.values
            )


class RewardRows(NamedTuple):
    """Reward distributions of all arms as Dirichlet rows, one per arm."""

    circuit: Circuit
    """Circuit that computes nothing: its results are its inputs but the first of every row."""
    prior: FloatArray
    rows: IntArray
    """rows[arm]: index of the first entry of each row."""


@lru_cache(maxsize=32)
def reward_rows(arms: int, values: int) -> RewardRows:
    """Return the rows of this number of arms, with rewards of this number of values."""
    builder = Builder()
    entries = builder.input_blocks(np.full(arms, values)).reshape(arms, values)
    circuit = builder.finish(np.ascontiguousarray(entries[:, 1:]))
    return RewardRows(circuit, np.ones(arms * values), values * np.arange(arms))


class RewardDistributions(ArmRewards):
    """Knowledge: the reward distribution of each arm in each context, with prior Dirichlet(1)."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.distributions = reward_rows(len(problem.arms), len(self.values))

    def draw(self, codes: Codes, samples: int, rng: np.random.Generator) -> Draws:
        """Return draws of each arm's reward distribution in a context."""
        circuit, prior, rows = self.distributions
        out = np.empty((*circuit.results.shape, samples), dtype=np.float32)
        counts, block = self.in_context(codes).counts.ravel(), block_size(circuit.slots)
        _draw_kernels.draw_results(
            draw_key(rng), prior, counts, rows, circuit.tape, block, 0, out, None
        )
        return Draws(out)

    def means(self, codes: Codes) -> FloatArray:
        """Return the mean reward distribution of each arm in a context: (arms, values)."""
        parameters = 1.0 + self.in_context(codes).counts
        means: FloatArray = parameters / parameters.sum(axis=1, keepdims=True)
        return means

    def winners(
        self, codes: Codes, arms: IntArray, samples: int, rng: np.random.Generator
    ) -> IntArray:
        """Return the best of these arms under each draw, as indices into `arms`."""
        return self.draw(codes, samples, rng).among(arms).winners(self.problem.payoff)[0]


class ArmRewardsPolicy(Policy):
    """Policy whose knowledge is `ArmRewards`."""

    knowledge: ArmRewards
    is_quick = True

    def __init__(self, problem: Problem, knowledge: ArmRewards | None = None) -> None:
        super().__init__(problem, ArmRewards(problem) if knowledge is None else knowledge)


class IndexPolicy(PendingPlaysMixin, ArmRewardsPolicy):
    """Play the arm with the largest index, an optimistic estimate of its mean reward, net of cost.

    The choice is deterministic: the chosen arm has probability 1. An arm that was not played in
    this context has an infinite index, and ties go to the first arm, so each arm is played once, in
    order. Pending plays (`add_pending`) count as if each had brought the arm's mean so far, so that
    the same arm is not repeated until something is learned.

    Figures: `counts` (finished plays), `pending` (those without an outcome), `means` (NaN before
    the first play is finished) and `index`, on the [0, 1] scale, net of what the arms cost.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.pending = PendingPlays(problem)

    def index(self, plays: IntArray, totals: FloatArray) -> FloatArray:
        """Return the index of each arm before costs, infinite for one that was never played."""
        raise NotImplementedError

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the arm with the largest index."""
        problem, payoff = self.problem, self.problem.payoff
        rewards, pending = self.knowledge.in_context(codes), self.pending.in_context(codes)
        counts, totals = rewards.plays.copy(), rewards.totals
        expected_plays, expected_totals = counts, totals
        if pending.any():  # as if each pending play had brought the arm's mean so far
            means = np.where(counts > 0, mean_rewards(counts, totals), UNKNOWN_MEAN)
            expected_plays = counts + pending
            expected_totals = np.where(pending > 0, expected_plays * means, totals)
        index = payoff.net_scaled(self.index(expected_plays, expected_totals))
        chosen = int(arms[index[arms].argmax()])
        plays, note = int(counts[chosen]), pending_note(int(pending[chosen]))
        means = np.where(counts > 0, payoff.net_scaled(mean_rewards(counts, totals)), np.nan)
        if plays:
            mean = format_number(payoff.unscale(means[chosen]))
            reason = (
                f"its mean reward was {mean} in {pluralize(plays, 'play')}{note}, {HIGHEST_BOUND}"
            )
        elif note:
            reason = f"none of its plays has an outcome yet{note}, {HIGHEST_BOUND}"
        else:
            reason = not_played_reason(bool(problem.context))
        figures = {"counts": counts, "pending": pending, "means": means, "index": index}
        return Choice(chosen, one_hot(problem, chosen), DecisionTrace(reason, figures))
