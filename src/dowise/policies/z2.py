"""Causal baseline: bandits whose arms are estimated from one another's data, by z²ID.

Lee & Bareinboim, "Structural Causal Bandits with Non-Manipulable Variables" (AAAI 2019). Each arm
has several estimators, one for each formula that identifies its reward from the other arms'
experiments (`dowise.identification`). The bootstrap estimates their covariance; weighted for the
least variance they give θ̂ and s², which replace the arm's data in Thompson Sampling (a Beta
distribution with that mean and variance) and in kl-UCB (an effective number of plays).

No posterior over CPTs is involved, so the graph may have bidirected edges. The graph is conditioned
on the context, and each context has its own data.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from math import ceil
from typing import Self

import numpy as np

from dowise._core.document import format_number, pluralize
from dowise._core.kernels import lazy_kernels
from dowise._core.rng import stream
from dowise._core.types import FloatArray, IntArray
from dowise._core.validation import check_integer, check_number
from dowise.errors import DowiseError
from dowise.identification.circuit import compile_estimators
from dowise.model import Codes
from dowise.policies.arm_rewards import UNKNOWN_MEAN, PendingPlays, PendingPlaysMixin
from dowise.policies.base import Choice, Policy, PosteriorPick, one_hot, pick_winner
from dowise.policies.baselines import bernoulli_upper_bound, exploration_level
from dowise.policies.decision import (
    HIGHEST_BOUND,
    DecisionTrace,
    not_played_reason,
    pending_note,
    sampled_reason,
)
from dowise.policies.requirements import Numbers, RecordMask, RecordRequirements
from dowise.problem import Problem, Record
from dowise.problem.problem import Context
from dowise.problem.record import RecordBatch


@lru_cache(maxsize=4096)
def settled_size(total: int, refresh: float) -> int:
    """Return the number of records, of `total`, that estimates are computed from.

    Estimates are renewed when the records have grown by the share `refresh`: the sizes are 1, 2,
    3, …, and from 1/refresh on each size is larger than the last one by that share.
    """
    if refresh == 0:
        return total
    size = int(min(total, 1 / refresh))  # up to here one more record is at least that share
    while True:
        following = max(size + 1, ceil((1 + refresh) * size))
        if following > total:
            return size
        size = following


class BootstrapData:
    """Records of one arm in one context, by distinct values; never a dense table."""

    def __init__(self, variables: IntArray, refresh: float) -> None:
        self._variables = variables  # used by some estimator
        self._refresh = refresh
        self._kinds: dict[bytes, list[int]] = {}  # for each kind of record its numbers, rising
        self._numbers: list[int] = []  # of all records, rising
        self._sum = 0
        self.is_new = False
        """True if something has changed since `settle`."""
        self._size, self._last = 0, -1  # settled records: how many, and the number of the last
        self._has_changed = False  # True if a settled record has changed
        self.rows = np.zeros((0, 0), dtype=np.int64)
        """Kinds of record, (kinds, variables), as of the last `settle`; `counts` counts them."""
        self.counts = np.zeros(0, dtype=np.int64)

    @property
    def total(self) -> int:
        """Number of records."""
        return len(self._numbers)

    def has(self, number: int) -> bool:
        """Return True if there is a record with this number."""
        i = bisect_left(self._numbers, number)
        return i < len(self._numbers) and self._numbers[i] == number

    def add(self, record: Record) -> None:
        """Add a record; it must have a new number."""
        assert record.number is not None
        number, kind = record.number, self._kind(record)
        insort(self._numbers, number)
        insort(self._kinds.setdefault(kind, []), number)
        self._change(record, kind, number, 1)

    def remove(self, record: Record) -> None:
        """Remove a record."""
        number, kind = record.number, self._kind(record)
        numbers = self._kinds.get(kind, [])
        if number is None or number not in numbers:
            raise DowiseError(
                f"{record!r} can't be retracted: it was not learned", code="not-learned"
            )
        numbers.remove(number)
        if not numbers:
            del self._kinds[kind]
        self._numbers.remove(number)
        self._change(record, kind, number, -1)

    def settle(self) -> bool:
        """Update the records to estimate from; return True if they have changed."""
        self.is_new = False
        size = settled_size(self.total, self._refresh)
        if size == self._size and not self._has_changed:
            return False
        self._size, self._last = size, self._numbers[size - 1] if size else -1
        self._has_changed = False
        self.rows, self.counts = self._first(size)
        return True

    def weights(self, resamples: int, rng: np.random.Generator) -> FloatArray:
        """Return the counts of each kind of record: (kinds, 1 + resamples), the data first.

        A resample draws as many records as there are, with replacement: multinomial counts.
        """
        weights = np.empty((len(self.counts), 1 + resamples))
        weights[:, 0] = self.counts
        if len(self.counts):
            total = self.counts.sum()
            weights[:, 1:] = rng.multinomial(total, self.counts / total, size=resamples).T
        return weights

    def state(self) -> dict[str, list[int]]:
        """Return the numbers of the records of every kind."""
        return {kind.hex(): numbers for kind, numbers in sorted(self._kinds.items())}

    def _first(self, size: int) -> tuple[IntArray, IntArray]:
        """Return the kinds of the first `size` records in order of appearance, and their counts."""
        if not size:
            return np.zeros((0, len(self._variables)), dtype=np.int64), np.zeros(0, dtype=np.int64)
        last = self._numbers[size - 1]
        kinds = sorted(
            (numbers[0], kind, bisect_right(numbers, last))
            for kind, numbers in self._kinds.items()
            if numbers[0] <= last
        )
        rows = np.frombuffer(b"".join(kind for _, kind, _ in kinds), dtype="<i8")
        rows = rows.astype(np.int64, copy=False)
        counts = np.array([count for _, _, count in kinds], dtype=np.int64)
        return rows.reshape(len(kinds), -1), counts

    def digest(self) -> bytes:
        """Return the sum of the hashes of all records."""
        return self._sum.to_bytes(32, "little")

    def _change(self, record: Record, kind: bytes, number: int, step: int) -> None:
        """Update the digest, and note whether a settled record has changed."""
        word = sha256(kind + f"{record.reward} {number}".encode()).digest()
        self._sum = (self._sum + step * int.from_bytes(word, "little")) % 2**256
        self.is_new = True
        self._has_changed |= number <= self._last

    def _kind(self, record: Record) -> bytes:
        return record.codes[self._variables].astype("<i8").tobytes()


_kernels = lazy_kernels("dowise.model.kernels")
_pooling = lazy_kernels("dowise.identification.pooling")


@dataclass(eq=False)
class Pooled:
    """θ̂ and s² of every arm in one context; NaN if no estimator is defined."""

    means: FloatArray
    variances: FloatArray
    weights: FloatArray
    """Weight of every estimator, in the order of the circuit's results."""


@dataclass(eq=False)
class ContextRecords:
    """Records of one context, by arm, with their resamples and the estimates from them."""

    counts: IntArray
    """Number of times that each arm brought each value of the reward: (arms, values)."""
    arms: list[BootstrapData]
    weights: list[FloatArray]
    pooled: Pooled | None = field(default=None)

    def plays(self) -> FloatArray:
        """Return the number of plays of each arm."""
        plays: FloatArray = self.counts.sum(axis=1).astype(np.float64)
        return plays

    def rewards(self, scaled: FloatArray) -> FloatArray:
        """Return the total reward of each arm, by the scaled values of the reward."""
        totals: FloatArray = self.counts @ scaled
        return totals


class ArmRecords:
    """Knowledge: the records of each arm in each context, identified by their numbers."""

    def __init__(
        self, problem: Problem, variables: IntArray, resamples: int, refresh: float
    ) -> None:
        self.problem, self._variables = problem, variables
        self._resamples, self._refresh = resamples, refresh
        self.by_context: dict[Codes, ContextRecords] = {}
        self.requires = RecordRequirements(
            sorted({*problem.context_positions.tolist(), *variables.tolist()}),
            "the z² policies need the context and every variable that their estimators use",
            arm=True,
            numbered=np.ones(len(problem.payoff.values), dtype=bool),
            number_purpose="it identifies the record",
        )

    def in_context(self, codes: Codes) -> ContextRecords:
        """Return the records of a context, empty if it was never seen."""
        if codes not in self.by_context:
            arms, values = len(self.problem.arms), len(self.problem.payoff.values)
            counts = np.zeros((arms, values), dtype=np.int64)
            data = [BootstrapData(self._variables, self._refresh) for _ in counts]
            weights = [np.empty((0, 1 + self._resamples))] * arms
            self.by_context[codes] = ContextRecords(counts, data, weights)
        return self.by_context[codes]

    def learn(self, record: Record) -> None:
        """Add one record with a new number."""
        self._of_arm(record).add(record)
        self._count(record, 1)

    def retract(self, record: Record) -> None:
        """Remove one record."""
        self._of_arm(record).remove(record)
        self._count(record, -1)
        if not self.by_context[record.context].plays().any():
            del self.by_context[record.context]

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Add many records."""
        for record in records.each(numbers):
            self.learn(record)

    def has(self, record: Record) -> bool:
        """Return True if a record with this context, arm and number was learned."""
        if record.context not in self.by_context or record.number is None:
            return False
        return self._of_arm(record).has(record.number)

    def _count(self, record: Record, times: int) -> None:
        arm = self.problem.arm_positions[record.arm]
        self.by_context[record.context].counts[arm, record.reward] += times

    def _of_arm(self, record: Record) -> BootstrapData:
        arm = self.problem.arm_positions[record.arm]
        return self.in_context(record.context).arms[arm]

    def copy(self) -> Self:
        """Return a copy that learns independently."""
        copied = copy(self)
        copied.by_context = deepcopy(self.by_context)
        return copied

    def state(self) -> Mapping[str, object]:
        """Return the records of every context and arm."""
        return {
            str(context): [
                {"records": arm.state(), "rewards": counts.tolist()}
                for arm, counts in zip(data.arms, data.counts, strict=True)
            ]
            for context, data in sorted(self.by_context.items())
            if data.plays().any()
        }

    def fingerprint(self) -> bytes:
        """Return a digest of the records of every context and arm."""
        digest = sha256()
        for context, data in sorted(self.by_context.items()):
            for i, arm in enumerate(data.arms):
                if arm.total:
                    digest.update(f"{context} {i} {arm.total} ".encode() + arm.digest())
        return digest.digest()


class Z2Policy(Policy):
    """Base of the z² policies: records, estimators, weights."""

    knowledge: ArmRecords

    def __init__(
        self, problem: Problem, resamples: int = 100, refresh: float = 0.0, seed: int = 0
    ) -> None:
        self.resamples = check_integer("resamples", resamples, 2, 100_000)
        self.seed = check_integer("seed", seed, 0)
        self.refresh = check_number("refresh", refresh, 0)
        self.estimates = compile_estimators(problem)
        self._undefined = np.repeat([0.0, 1.0], 1 + self.resamples)
        variables = self.estimates.variables
        super().__init__(problem, ArmRecords(problem, variables, self.resamples, self.refresh))

    def rejection_reason(self, record: Record) -> str | None:
        """Return why `learn` would refuse a record; None if it would take it."""
        reason = super().rejection_reason(record)
        if reason is None and self.knowledge.has(record):
            return _already_learned(record)
        return reason

    def usable_mask(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Return which records have what estimators use, and a new number."""
        usable = super().usable_mask(records, numbers)
        rows, keys = np.flatnonzero(usable.mask), set()
        if numbers is None or not len(rows):
            return usable
        for i, record in zip(rows.tolist(), records.take(rows).each(numbers[rows]), strict=True):
            key = record.context, record.arm, record.number
            if key in keys or self.knowledge.has(record):
                usable.exclude_row(i, _already_learned(record))
            keys.add(key)
        return usable

    def pooled(self, context: Context = None) -> Pooled:
        """Return θ̂ and s² of every arm in this context, from all the data of the context."""
        return self._pooled(self.problem.context_codes(context))

    def _pooled(self, context: Codes) -> Pooled:
        data = self.knowledge.in_context(context)
        changed = data.pooled is None
        for i, arm in enumerate(data.arms):
            if arm.is_new and arm.settle():
                rng = self._rng(context, i, int(arm.counts.sum()))
                data.weights[i] = arm.weights(self.resamples, rng)
                changed = True
        if changed or data.pooled is None:
            data.pooled = self._combined(data)
        return data.pooled

    def _rng(self, context: Codes, arm: int, records: int) -> np.random.Generator:
        """Return the source of an arm's resamples: a function of the seed and of the data."""
        index = 0  # of the context, in mixed radix
        for name, code in zip(self.problem.context, context, strict=True):
            index = index * len(self.problem.domains[name]) + code
        return stream(self.seed, index, arm, records)

    def _combined(self, data: ContextRecords) -> Pooled:
        circuit = self.estimates.circuit
        values = np.empty((circuit.slots, len(self._undefined)))
        values[: len(circuit.constants)] = circuit.constants[:, None]
        marginals = self.estimates.marginals
        for tables, arm, weights in zip(marginals, data.arms, data.weights, strict=True):
            rows = arm.rows.reshape(len(arm.counts), len(self.estimates.variables))
            _pooling.fill_marginals(values, tables, rows, weights)
        _kernels.run_circuit(values, values.shape[1], circuit.operations, self._undefined)
        arms, size, offsets = len(data.arms), 1 + self.resamples, self.estimates.offsets
        pooled = Pooled(np.empty(arms), np.empty(arms), np.empty(len(circuit.results)))
        _pooling.pool_estimates(
            values,
            size,
            circuit.results,
            offsets,
            pooled.means,
            pooled.variances,
            pooled.weights,
        )
        return pooled


def _already_learned(record: Record) -> str:
    return f"a record of {record.arm} with number {record.number} was learned already"


_BASIS = "the plays of all arms"


class Z2ThompsonSampling(Z2Policy):
    """z²-TS: draw from Beta(κθ̂, κ(1 − θ̂)), κ = θ̂(1 − θ̂)/s² − 1, for each arm, and play the best.

    The best arm is the one with the largest draw net of what the arms cost. If θ̂ or s² is
    degenerate (no data yet, or always the same reward) the draw is from Beta(1 + rewards, 1 +
    shortfall) of the arm's own data. `resamples` (B) is the number of bootstrap samples, `seed`
    their seed. With `refresh` = 0.05 an arm's data are resampled, and its weights computed again,
    only when they have grown by 5 %. `propensity_samples` is that of `ts`.

    Applies when every variable that the estimators use is observed, also to graphs with bidirected
    edges.
    """

    def __init__(
        self,
        problem: Problem,
        resamples: int = 100,
        refresh: float = 0.0,
        seed: int = 0,
        propensity_samples: int = 0,
    ) -> None:
        super().__init__(problem, resamples, refresh, seed)
        self.propensity_samples = check_integer("propensity_samples", propensity_samples, 0)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the best arm under a draw from each arm's Beta distribution."""
        pooled, net = self._pooled(codes), self.problem.payoff.net_scaled
        alpha, beta = self._betas(pooled, self.knowledge.in_context(codes))
        drawn = net(rng.beta(alpha, beta, (self.propensity_samples or 1, len(alpha))))
        winners = drawn[:, arms].argmax(axis=1)
        pick = PosteriorPick(0, int(arms[winners[0]]))
        if self.propensity_samples:
            pick = pick_winner(self.problem, arms, winners, rng)
        figures = {
            "means": net(pooled.means),
            "variances": pooled.variances,
            "index": drawn[pick.draw].copy(),
        }
        trace = DecisionTrace(sampled_reason(pick.share, _BASIS), figures | pick.figures)
        return Choice(pick.arm, pick.probabilities, trace)

    def _betas(self, pooled: Pooled, data: ContextRecords) -> tuple[FloatArray, FloatArray]:
        """Return the parameters of each arm's Beta distribution."""
        rewards, plays = data.rewards(self.problem.payoff.scaled), data.plays()
        alpha, beta = 1 + rewards, 1 + plays - rewards
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (pooled.variances < spread)
        kappa = spread[sound] / pooled.variances[sound] - 1
        alpha[sound] = kappa * pooled.means[sound]
        beta[sound] = kappa * (1 - pooled.means[sound])
        return alpha, beta


class Z2KLUCB(PendingPlaysMixin, Z2Policy):
    """z²-kl-UCB: kl-UCB with the effective number of plays, n = θ̂(1 − θ̂)/s².

    Each arm is played once first. Then the index of an arm is the largest μ with
    kl(θ̂, μ) ≤ f(t)/n, less what the arm costs, where f(t) = ln t + c ln ln t and t is the sum of
    the effective numbers. If θ̂ or s² is degenerate, the arm's own mean and plays are used. The
    other options are those of z²-TS.

    Pending plays (`add_pending`) are added to an arm's effective number and do not change its mean;
    the figure `counts` is without them, and `pending` is their number.

    Applies when every variable that the estimators use is observed, also to graphs with bidirected
    edges.
    """

    def __init__(
        self,
        problem: Problem,
        resamples: int = 100,
        refresh: float = 0.0,
        seed: int = 0,
        c: float = 3.0,
    ) -> None:
        super().__init__(problem, resamples, refresh, seed)
        self.c = check_number("c", c, 0)
        self.pending = PendingPlays(problem)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose an arm that was never played, else the one with the largest index."""
        problem = self.problem
        data, pending = self.knowledge.in_context(codes), self.pending.in_context(codes)
        new = arms[(data.plays() + pending)[arms] == 0]
        if len(new):
            chosen = int(new[0])
            figures: dict[str, object] = {"pending": pending}
            reason = not_played_reason(bool(problem.context))
        else:
            means, counts = self._effective(self._pooled(codes), data)
            net = problem.payoff.net_scaled
            index, means = net(self._index(means, counts, pending)), net(means)
            chosen = int(arms[index[arms].argmax()])
            figures = {"means": means, "counts": counts, "pending": pending, "index": index}
            mean = format_number(problem.payoff.unscale(means[chosen]))
            reason = (
                f"its mean reward is estimated as {mean} from {_BASIS}, worth about "
                f"{pluralize(round(counts[chosen]), 'play')}{pending_note(int(pending[chosen]))}, "
                f"{HIGHEST_BOUND}"
            )
        return Choice(chosen, one_hot(problem, chosen), DecisionTrace(reason, figures))

    def _index(self, means: FloatArray, counts: FloatArray, pending: IntArray) -> FloatArray:
        if pending.any():
            means = np.where(counts > 0, means, UNKNOWN_MEAN)
            counts = counts + pending
        level, played = exploration_level(counts.sum(), self.c), counts > 0
        index = np.full(len(counts), np.inf)
        index[played] = bernoulli_upper_bound(means[played], level / counts[played])
        return index

    def _effective(self, pooled: Pooled, data: ContextRecords) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the effective number of plays of each arm."""
        counts = data.plays()
        means = data.rewards(self.problem.payoff.scaled) / np.maximum(counts, 1)
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (spread > 0)
        means[sound] = pooled.means[sound]
        counts[sound] = spread[sound] / pooled.variances[sound]
        return means, counts
