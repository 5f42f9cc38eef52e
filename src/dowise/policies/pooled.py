"""The data of the z² policies: records of every arm, resampled, and estimates pooled from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dowise.checks import real_number, whole_number
from dowise.compiling import kernels_of
from dowise.errors import DowiseError
from dowise.identification.circuit import compile_estimators
from dowise.model import Codes
from dowise.policies.arm_data import ArmData
from dowise.policies.record_policy import RecordPolicy
from dowise.policies.usable import Numbers, Usable, check_batch
from dowise.problem import Intervention, Problem, Record
from dowise.problem.problem import Context
from dowise.problem.record import RecordBatch, check_record
from dowise.randomness import stream

__all__ = ["ContextData", "Floats", "Pooled", "PooledPolicy"]

Floats = NDArray[np.float64]

_NEEDS = "the z² policies need the context and every variable that their estimators use"
_NEEDS_NUMBER = (
    "the record has no number, and this policy tells its records apart by those of their "
    "decisions: problem.record(arm, outcome, number)"
)

_kernels = kernels_of("dowise.model.kernels")
_pooling = kernels_of("dowise.identification.pooling")


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
    arms: list[ArmData]
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


class PooledPolicy(RecordPolicy):
    """What the z² policies share: data, estimators, weights."""

    def __init__(
        self, problem: Problem, resamples: int = 100, refresh: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__(problem)
        self.resamples = whole_number("resamples", resamples, 2, 100_000)
        self.seed = whole_number("seed", seed, 0)
        self.refresh = real_number("refresh", refresh, 0)
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

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> Usable:
        """Those with all that estimators use, of an arm, and with numbers that are new."""
        check_batch(self.problem, records, numbers)
        found = Usable.all_of(len(records))
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
        if type(self).state is not PooledPolicy.state:
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
            data = [ArmData(row, self.estimates.variables, self.refresh) for row in seen]
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
