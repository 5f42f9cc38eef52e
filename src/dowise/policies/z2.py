"""The causal baseline: bandits whose arms are estimated from one another's data, by z²ID.

Lee & Bareinboim, "Structural Causal Bandits with Non-Manipulable Variables" (AAAI 2019). Each arm
has several estimators, one for each formula that identifies its reward from the other arms'
experiments (`dowise.identification`). The bootstrap tells how they vary together; weighted for the
least variance they give θ̂ and s², which stand for the arm's data in Thompson Sampling (a Beta
distribution of that mean and variance) and in kl-UCB (an effective number of plays).

No posterior over CPTs is involved, so the graph may have bidirected edges. Everything happens
within the current context value: the graph is conditioned on the context, and only its own data
count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import format_number, pluralize
from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, generator, stream
from dowise._core.validation import check_integer, check_number
from dowise.errors import DowiseError
from dowise.identification.circuit import compile_estimators
from dowise.model import Codes
from dowise.policies.arm_rewards import UNKNOWN_MEAN, Pending
from dowise.policies.base import (
    Numbers,
    RecordMask,
    RecordPolicy,
    allowed_arms,
    certainly,
    check_batch,
    checked_propensity_samples,
    pick_winner,
)
from dowise.policies.baselines import bernoulli_upper_bound, exploration_level
from dowise.policies.decision import (
    BEST_BY_CHANCE,
    Decision,
    Figures,
    drawn_by_lot,
    not_played_before,
    under_way,
)
from dowise.problem import Intervention, Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record

Integers = NDArray[np.int64]


@lru_cache(maxsize=4096)
def settled_size(total: int, refresh: float) -> int:
    """Of so many records how many are estimated from.

    Estimates are due anew whenever the records have grown by the share `refresh`: the sizes are
    1, 2, 3, … and from 1/refresh on each is so much larger than the one before.
    """
    if refresh == 0:
        return total
    size = int(min(total, 1 / refresh))  # up to here one more record is always a share more
    while True:
        following = max(size + 1, ceil((1 + refresh) * size))
        if following > total:
            return size
        size = following


class BootstrapData:
    """The records of one arm, by their kinds; never a dense table."""

    def __init__(self, rewards: Integers, variables: Integers, refresh: float) -> None:
        self._variables = variables  # the ones that some estimator looks at
        self._refresh = refresh
        self._kinds: dict[bytes, list[int]] = {}  # of each kind of record the numbers, rising
        self._numbers: list[int] = []  # of all records, rising
        self._sum = 0
        self.rewards = rewards
        """How often each value of the reward was seen; this array is kept up to date."""
        self.is_new = False
        """Whether something has changed since `settle`."""
        self._size, self._last = 0, -1  # of what is settled: how many records, the last number
        self._is_older = False  # whether a change is among these
        self.rows = np.zeros((0, 0), dtype=np.int64)
        """The kinds of record, (kinds, variables), as of the last `settle`; and how often each."""
        self.counts = np.zeros(0, dtype=np.int64)

    @property
    def total(self) -> int:
        """The number of records."""
        return len(self._numbers)

    def has(self, number: int) -> bool:
        """Whether there is a record of this number."""
        place = bisect_left(self._numbers, number)
        return place < len(self._numbers) and self._numbers[place] == number

    def add(self, record: Record) -> None:
        """One record more; it must have a number, a new one."""
        assert record.number is not None
        number, kind = record.number, self._kind(record)
        insort(self._numbers, number)
        insort(self._kinds.setdefault(kind, []), number)
        self._change(record, kind, number, 1)

    def remove(self, record: Record) -> None:
        """One record less."""
        number, kind = record.number, self._kind(record)
        numbers = self._kinds.get(kind, [])
        if number is None or number not in numbers:
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")
        numbers.remove(number)
        if not numbers:
            del self._kinds[kind]
        self._numbers.remove(number)
        self._change(record, kind, number, -1)

    def settle(self) -> bool:
        """Take the records that estimates are due from; whether these have changed."""
        self.is_new = False
        size = settled_size(self.total, self._refresh)
        if size == self._size and not self._is_older:
            return False
        self._size, self._last = size, self._numbers[size - 1] if size else -1
        self._is_older = False
        self.rows, self.counts = self._first(size)
        return True

    def weights(self, resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """How often each kind of record counts: (kinds, 1 + resamples), the data themselves first.

        A resample draws as many records as there are, with replacement: multinomial counts.
        """
        weights = np.empty((len(self.counts), 1 + resamples))
        weights[:, 0] = self.counts
        if len(self.counts):
            total = self.counts.sum()
            weights[:, 1:] = rng.multinomial(total, self.counts / total, size=resamples).T
        return weights

    def state(self) -> dict[str, object]:
        """The numbers of the records of every kind, and the rewards."""
        kinds = {kind.hex(): numbers for kind, numbers in sorted(self._kinds.items())}
        return {"records": kinds, "rewards": self.rewards.tolist()}

    def _first(self, size: int) -> tuple[Integers, Integers]:
        """The kinds of the first so many records, those first seen first, and their counts."""
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
        """Of all records: the sum of the hashes of each, so it is kept up to date one by one."""
        return self._sum.to_bytes(32, "little")

    def _change(self, record: Record, kind: bytes, number: int, step: int) -> None:
        """Something has changed; of what is settled, if it is no newer than that."""
        self.rewards[record.reward] += step
        one = sha256(kind + f"{record.reward} {number}".encode()).digest()
        self._sum = (self._sum + step * int.from_bytes(one, "little")) % 2**256
        self.is_new = True
        self._is_older |= number <= self._last

    def _kind(self, record: Record) -> bytes:
        return record.codes[self._variables].astype("<i8").tobytes()


Floats = NDArray[np.float64]

_NEEDS = "the z² policies need the context and every variable that their estimators use"
_NEEDS_NUMBER = (
    "the record has no number, and this policy tells its records apart by those of their "
    "decisions: problem.record(arm, outcome, number)"
)

_kernels = lazy_kernels("dowise.model.kernels")
_pooling = lazy_kernels("dowise.identification.pooling")


@dataclass(eq=False)
class Pooled:
    """θ̂ and s² of every arm in one context; NaN where no estimator is defined."""

    means: Floats
    variances: Floats
    weights: Floats
    """Of every estimator, in the order of the circuit's results."""


@dataclass(eq=False)
class ContextData:
    """Of one context: each arm's records with their resamples, and what follows from them."""

    seen: NDArray[np.int64]
    """How often each arm brought each value of the reward: (arms, values)."""
    arms: list[BootstrapData]
    weights: list[Floats]
    pooled: Pooled | None = field(default=None)

    def plays(self) -> Floats:
        """How often each arm was played."""
        plays: Floats = self.seen.sum(axis=1).astype(np.float64)
        return plays

    def rewards(self, scaled: Floats) -> Floats:
        """What each arm brought in all, values of the reward being worth so much."""
        totals: Floats = self.seen @ scaled
        return totals


class Z2Policy(RecordPolicy):
    """What the z² policies share: data, estimators, weights."""

    def __init__(
        self, problem: Problem, resamples: int = 100, refresh: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__(problem)
        self.resamples = check_integer("resamples", resamples, 2, 100_000)
        self.seed = check_integer("seed", seed, 0)
        self.refresh = check_number("refresh", refresh, 0)
        self.estimates = compile_estimators(problem)
        self._undefined = np.repeat([0.0, 1.0], 1 + self.resamples)
        self._needed = sorted({*problem.context_positions, *self.estimates.variables})
        self._data: dict[Codes, ContextData] = {}

    def learn(self, record: Record) -> None:
        """Learn from the whole record: every variable that an estimator looks at must be seen."""
        why = self.lacks(record)
        if why is not None:
            raise DowiseError(why)
        arm = self.problem.arm_positions[record.arm]
        self._data_of(record.context).arms[arm].add(record)

    def retract(self, record: Record) -> None:
        """One record less."""
        why = self._lacks_values(record)
        if why is not None:
            raise DowiseError(why)
        data = self._data_of(record.context)
        data.arms[self.problem.arm_positions[record.arm]].remove(record)
        if not data.plays().any():
            del self._data[record.context]

    def lacks(self, record: Record) -> str | None:
        """Whether something was not seen, it is of no arm, or its number is not new."""
        why = self._lacks_values(record)
        if why is None and record.number is None:
            return _NEEDS_NUMBER
        if why is None and record.number is not None and self._has(record, record.number):
            return _known_already(record.number, record.arm)
        return why

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Those with all that estimators use, of an arm, and with numbers that are new."""
        check_batch(self.problem, records, numbers)
        found = RecordMask.all_of(len(records))
        found.need(records, self._needed, _NEEDS)
        found.need_arms(records)
        if numbers is None:
            found.leave_out(np.ones(len(records), dtype=bool), _NEEDS_NUMBER)
            return found
        rows, known = np.flatnonzero(found.mask), set()
        for i, record in zip(rows.tolist(), records.take(rows).each(numbers[rows]), strict=True):
            assert record.number is not None
            key = record.context, record.arm, record.number
            if key in known or self._has(record, record.number):
                found.leave_out_one(i, _known_already(record.number, record.arm))
            known.add(key)
        return found

    def _lacks_values(self, record: Record) -> str | None:
        check_record(record, self.problem)
        why = record.lacking(self._needed, _NEEDS)
        if why is None and record.arm not in self.problem.arm_positions:
            return self.problem.not_an_arm(record.arm)
        return why

    def _has(self, record: Record, number: int) -> bool:
        data = self._data.get(record.context)
        return data is not None and data.arms[self.problem.arm_positions[record.arm]].has(number)

    def fingerprint(self) -> bytes:
        """Of the records of every context and arm."""
        if type(self).state is not Z2Policy.state:
            return super().fingerprint()
        digest = sha256()
        for context, data in sorted(self._data.items()):
            for i, arm in enumerate(data.arms):
                if arm.total:
                    digest.update(f"{context} {i} {arm.total} ".encode() + arm.digest())
        return digest.digest()

    def state(self) -> Mapping[str, object]:
        """The records of every context and arm."""
        return {
            str(context): [arm.state() for arm in data.arms]
            for context, data in sorted(self._data.items())
            if data.plays().any()
        }

    def pooled(self, context: Context = None) -> Pooled:
        """θ̂ and s² of every arm in this context, from all the data of the context."""
        return self._pooled(self.problem.context_codes(context))

    def _data_of(self, context: Codes) -> ContextData:
        if context not in self._data:
            arms, values = len(self.problem.arms), len(self.problem.payoff.values)
            seen = np.zeros((arms, values), dtype=np.int64)
            data = [BootstrapData(row, self.estimates.variables, self.refresh) for row in seen]
            weights = [np.empty((0, 1 + self.resamples))] * arms
            self._data[context] = ContextData(seen, data, weights)
        return self._data[context]

    def _pooled(self, context: Codes) -> Pooled:
        data = self._data_of(context)
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
        """The resamples of an arm's data depend on nothing but the seed and which data they are."""
        place = 0
        for name, code in zip(self.problem.context, context, strict=True):
            place = place * len(self.problem.domains[name]) + code
        return stream(self.seed, place, arm, records)

    def _combined(self, data: ContextData) -> Pooled:
        circuit = self.estimates.circuit
        values = np.empty((circuit.slots, len(self._undefined)))
        values[: len(circuit.constants)] = circuit.constants[:, None]
        for tables, arm, drawn in zip(
            self.estimates.marginals, data.arms, data.weights, strict=True
        ):
            rows = arm.rows.reshape(len(arm.counts), len(self.estimates.variables))
            _pooling.fill_marginals(values, tables, rows, drawn)
        _kernels.run_circuit(values, values.shape[1], circuit.operations, self._undefined)
        means, variances = np.empty(len(data.arms)), np.empty(len(data.arms))
        weights = np.empty(len(circuit.results))
        _pooling.pool_estimates(
            values, 1 + self.resamples, circuit.results, self.estimates.offsets, means, variances,
            weights,
        )  # fmt: skip
        return Pooled(means, variances, weights)


def _known_already(number: int, arm: Intervention) -> str:
    return f"a record number {number} of {arm} was learned already"


_KNOWN = "what the plays of all arms say of it"


class Z2ThompsonSampling(Z2Policy):
    """z²-TS: one draw from Beta(κθ̂, κ(1 − θ̂)), κ = θ̂(1 − θ̂)/s² − 1, for each arm; the best wins.

    The best, that is, net of what the arms cost.

    Where θ̂ or s² is degenerate (nothing seen yet, or always the same) the draw is from
    Beta(1 + rewards, 1 + what they fell short) of the arm's own data. `resamples` (B) is the number
    of bootstrap samples, `seed` theirs. With `refresh` = 0.05 an arm's data are resampled, and
    weights computed anew, only when they have grown by 5 %.

    As for `ts`, with `propensity_samples` the winner of one of so many draws is played, and
    `decision.probabilities` are the shares of the winners; with 0 they are None. Applies to graphs
    with bidirected edges too. Needs every variable that the estimators use.
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
        self.propensity_samples = checked_propensity_samples(propensity_samples)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Draw from each arm's Beta distribution, play the best."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        pooled = self._pooled(codes)
        alpha, beta = self._betas(pooled, self._data_of(codes))
        net = problem.payoff.net_scaled
        figures: dict[str, object] = {"means": net(pooled.means), "variances": pooled.variances}
        if self.propensity_samples:
            many = net(source.beta(alpha, beta, (self.propensity_samples, len(alpha))))
            picked = pick_winner(problem, arms, many[:, arms].argmax(axis=1), source)
            chosen, probabilities = picked.arm, picked.probabilities
            figures |= {"index": many[picked.draw].copy()}
            figures |= {"best": probabilities, "samples": self.propensity_samples}
            reason = picked.in_words(_KNOWN)
        else:
            drawn = net(source.beta(alpha, beta))
            chosen, probabilities = int(arms[drawn[arms].argmax()]), None
            figures |= {"index": drawn}
            reason = drawn_by_lot(_KNOWN)
        seen = problem.context_labels(codes)
        return Decision(problem.arms[chosen], probabilities, reason, Figures(figures), seen)

    def _betas(self, pooled: Pooled, data: ContextData) -> tuple[Floats, Floats]:
        won, played = data.rewards(self.problem.payoff.scaled), data.plays()
        alpha, beta = 1 + won, 1 + played - won
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (pooled.variances < spread)
        kappa = spread[sound] / pooled.variances[sound] - 1
        alpha[sound] = kappa * pooled.means[sound]
        beta[sound] = kappa * (1 - pooled.means[sound])
        return alpha, beta


class Z2KLUCB(Z2Policy):
    """z²-kl-UCB: kl-UCB with the effective number of plays θ̂(1 − θ̂)/s² in place of the number.

    Each arm is played once first. t is the sum of the effective numbers, and the index the largest
    μ with kl(θ̂, μ) ≤ f(t)/n, f(t) = ln t + c ln ln t, less what the arm costs. Where θ̂ or s² is
    degenerate, the arm's own mean and number stand in. Other options as for z²-TS.

    Plays that are under way (`expect`) are added to an arm's effective number, its mean staying
    what it is (`dowise.policies.arm_rewards`): the figure `counts` is without them, `pending` has them.
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
        self.pending = Pending(problem)
        """The plays that are under way."""

    def expect(self, arm: ArmLike, context: Context = None, times: int = 1) -> None:
        """Count so many more plays of an arm as under way, or fewer."""
        self.pending.add(arm, context, times)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what was never played, or else the arm of the largest index."""
        generator(rng)  # nothing is drawn, but every policy wants one
        problem = self.problem
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        data, pending = self._data_of(codes), self.pending.of(codes)
        new = arms[(data.plays() + pending)[arms] == 0]
        if len(new):
            chosen, figures = int(new[0]), Figures({"pending": pending})
            reason = not_played_before(bool(problem.context))
        else:
            means, counts = self._effective(self._pooled(codes), data)
            net = problem.payoff.net_scaled
            index, means = net(self._index(means, counts, pending)), net(means)
            chosen = int(arms[index[arms].argmax()])
            figures = Figures(
                {"means": means, "counts": counts, "pending": pending, "index": index}
            )
            reason = (
                f"its mean reward is reckoned as {format_number(problem.payoff.unscale(means[chosen]))} "
                f"from {_KNOWN}, which is worth about {pluralize(round(counts[chosen]), 'play')}"
                f"{under_way(int(pending[chosen]))}, {BEST_BY_CHANCE}"
            )
        sure, seen = certainly(problem, chosen), problem.context_labels(codes)
        return Decision(problem.arms[chosen], sure, reason, figures, seen)

    def _index(self, means: Floats, counts: Floats, pending: NDArray[np.int64]) -> Floats:
        if pending.any():
            means = np.where(counts > 0, means, UNKNOWN_MEAN)
            counts = counts + pending
        level, known = exploration_level(counts.sum(), self.c), counts > 0
        index = np.full(len(counts), np.inf)
        index[known] = bernoulli_upper_bound(means[known], level / counts[known])
        return index

    def _effective(self, pooled: Pooled, data: ContextData) -> tuple[Floats, Floats]:
        counts = data.plays()
        means = data.rewards(self.problem.payoff.scaled) / np.maximum(counts, 1)
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (spread > 0)
        means[sound] = pooled.means[sound]
        counts[sound] = spread[sound] / pooled.variances[sound]
        return means, counts
