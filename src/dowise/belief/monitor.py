"""Monitor of the evidence against the graph, updated record by record.

For each edge that the graph lacks there are three logarithms (docs/evidence.md):

- the *Bayes factor*, Dirichlet(1) rows with the edge against such rows without it, for ranking;
- the *e-value*, in which each table's evidence is averaged over several concentrations, on both
  sides. If all values are about as likely, a larger table, which has learned less about each row
  and stays nearer to even odds, predicts better, so plain Bayes factors alarm far too often;
- the *strict* e-value, which divides by the largest likelihood under the graph instead: universal
  inference (Wasserman, Ramdas & Balakrishnan 2020).

The alarm depends on the mean over all alternatives after every record. The history of new largest
means gives the time of the first crossing for every level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite, log
from typing import Any, Self

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.types import FloatArray, IntArray
from dowise._core.validation import check_flag, check_fraction
from dowise.belief.evidence import Evidence
from dowise.belief.posterior import Posterior
from dowise.errors import DowiseError
from dowise.graph.adjacency import bits
from dowise.model.missing_edges import Contrasts, alternatives_of
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, equal_columns, past_record

MAX_COUNT = 10**8
"""Maximum number of records in a file: the evidence of more may not fit into 64 bits."""


@dataclass
class KeptRecords:
    """Records with their counts, in the order in which each was first seen."""

    problem: Problem
    counts: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """Count by (bit set of the variables that were set, bytes of the codes)."""

    def add(self, cut: int, codes: IntArray, times: int = 1) -> None:
        """Add a record `times` times."""
        key = cut, codes.tobytes()
        self.counts[key] = self.counts.get(key, 0) + times

    def add_many(self, batch: RecordBatch, sets: list[int], place: IntArray) -> None:
        """Add all records of a batch; `batch.by_set()` returned `sets` and `place`."""
        first, group = equal_columns([place, *batch.codes])
        counts = np.bincount(group)
        for i in np.argsort(first):
            self.add(sets[place[first[i]]], batch.codes[:, first[i]], int(counts[i]))

    def remove(self, record: Record, cut: int) -> None:
        """Remove a record. Raises `DowiseError` if there is no such record."""
        self.check_has(record, cut)
        key = cut, record.codes.tobytes()
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]

    def check_has(self, record: Record, cut: int) -> None:
        """Raise `DowiseError` if there is no such record."""
        if (cut, record.codes.tobytes()) not in self.counts:
            raise DowiseError(
                f"{record!r} can't be retracted: it was not learned", code="not-learned"
            )

    def __len__(self) -> int:
        """Return the number of records, equal ones included."""
        return sum(self.counts.values())

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.problem, dict(self.counts))

    def batch(self, problem: Problem | None = None) -> RecordBatch:
        """Return all records, equal ones next to each other.

        They may be records of another `problem` with the same variables and values.
        """
        codes, cuts, times = self.distinct()
        return self._batch(problem or self.problem, codes, cuts, times)

    def distinct(self) -> tuple[IntArray, list[int], IntArray]:
        """Return (codes, cuts, times): times[i] records with codes[:, i] that set cuts[i]."""
        codes = np.empty((len(self.problem.graph), len(self.counts)), dtype=np.int64)
        for i, (_, raw) in enumerate(self.counts):
            codes[:, i] = np.frombuffer(raw, dtype=np.int64)
        times = np.array(list(self.counts.values()), dtype=np.int64)
        return codes, [cut for cut, _ in self.counts], times

    def by_bits(self) -> Iterator[tuple[int, RecordBatch]]:
        """Yield (times, batch): all records are the batches, each repeated `times` times."""
        codes, cuts, times = self.distinct()
        for b in range(int(times.max(initial=0)).bit_length()):
            yield 1 << b, self._batch(self.problem, codes, cuts, times >> b & 1)

    def _batch(
        self, problem: Problem, codes: IntArray, cuts: list[int], times: IntArray
    ) -> RecordBatch:
        was_set = np.zeros(codes.shape, dtype=bool)
        for i, cut in enumerate(cuts):
            was_set[list(bits(cut)), i] = True
        return RecordBatch(
            problem, np.repeat(codes, times, axis=1), np.repeat(was_set, times, axis=1)
        )

    # -- JSON --------------------------------------------------------------------------------------

    def to_json(self) -> list[dict[str, Any]]:
        """Return names of the variables set, labels of the values, and the count of each record."""
        data = []
        for (cut, raw), count in self.counts.items():
            codes = np.frombuffer(raw, dtype=np.int64).tolist()
            pairs = zip(self.problem.domains.items(), codes, strict=True)
            values = {name: domain[code] for (name, domain), code in pairs if code != MISSING}
            names = self.problem.graph.names(cut)
            data.append({"set": sorted(names), "values": values, "count": count})
        return data

    @classmethod
    def from_json(cls, data: Any, problem: Problem) -> Self:
        """Inverse of `to_json`."""
        records = cls(problem)
        for entry in data if isinstance(data, list) else [data]:
            try:
                values, names = dict(entry["values"]), list(entry["set"])
                arm = {name: values[name] for name in names}
                count = entry["count"]
            except (TypeError, KeyError, ValueError):
                raise DowiseError(
                    f"the belief is damaged: not a record: {str(entry)[:80]}", code="damaged-file"
                ) from None
            if type(count) is not int or not 1 <= count <= MAX_COUNT:
                raise DowiseError(
                    f"the belief is damaged: a record was seen {count!r:.30} times",
                    code="damaged-file",
                )
            try:
                record = past_record(problem, arm, values)
            except DowiseError as error:
                raise DowiseError(
                    f"the belief is damaged: a record does not fit: {error}", code="damaged-file"
                ) from None
            records.add(problem.graph.mask(names), record.codes, count)
        if len(records) > MAX_COUNT:
            raise DowiseError(
                f"the belief is damaged: it has {len(records):.1e} records", code="damaged-file"
            )
        return records

    def check_counted_by(self, posterior: Posterior) -> None:
        """Raise `DowiseError` unless these records are those that a posterior has counted."""
        counts, unused = np.zeros_like(posterior.counts), np.zeros_like(posterior.unused)
        for times, batch in self.by_bits():
            fresh = Posterior(self.problem)
            fresh.learn_many(batch)
            counts += times * fresh.counts
            unused += times * fresh.unused
        if (counts != posterior.counts).any() or (unused != posterior.unused).any():
            raise DowiseError(
                "the belief is damaged: its counts are not those of its records",
                code="damaged-file",
            )


Steps = list[tuple[int, float]]
"""(number of a record, logarithm of the mean e-value after it), for each new largest mean."""

SetIndex = tuple[list[int], IntArray]
"""Bit sets of variables that records set, and the index of each record's set."""

MIN_ALPHA = 1e-12  # smallest level of an alarm
MAX_LOG = -log(MIN_ALPHA)  # larger means are not recorded
KINDS = ("mixed", "strict")

_kernels = lazy_kernels("dowise.belief.monitor_kernels")
_contrasts = lru_cache(maxsize=16)(Contrasts)


class _RecordBuffer:
    """Arrays of a single record, in the shapes that kernels expect for many."""

    def __init__(self, variables: int) -> None:
        self.codes = np.empty((variables, 1), dtype=np.int64)
        self.place = np.empty(1, dtype=np.int64)
        self.path = np.empty((len(KINDS), 1))


class Monitor:
    """Records that a belief has learned, and their evidence about edges that the graph lacks."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.records = KeptRecords(problem)
        self.arrived = 0
        """Number of records."""
        self.recomputed = False
        """True if a record was retracted, so that the order of arrival is lost."""
        self.steps: tuple[Steps, Steps] = [], []
        """History of the largest mean e-value, the mixed and the strict one."""
        mask = problem.graph.mask
        self._cuts: dict[Intervention, int] = {}
        self._buffer = _RecordBuffer(len(problem.graph))
        sets = dict.fromkeys([0, *(mask(names) for names in problem.intervention_sets)])
        self._reset(_contrasts(problem, tuple(sets)))

    def _reset(self, contrasts: Contrasts) -> None:
        self._contrasts, layout = contrasts, contrasts.layout
        tables, many = len(layout.families), len(contrasts.alternatives)
        self._tables = _kernels.TableIndex(
            contrasts.owners, layout.starts, *contrasts.axes, layout.sizes
        )
        self._counts = _kernels.EvidenceCounts(
            np.zeros(layout.entries, dtype=np.int64),
            np.zeros((tables, len(_kernels.LEVELS)), dtype=np.int64),
            np.zeros(tables, dtype=np.int64),
            np.zeros((1 + len(KINDS), many), dtype=np.int64),
            np.zeros((len(KINDS), many), dtype=np.int64),
            np.zeros(many, dtype=np.int64),
        )

    # -- learning ----------------------------------------------------------------------------------

    def prepare(self, records: Record | RecordBatch) -> SetIndex | None:
        """Add the tables of the records' intervention sets; raises if they are too large.

        Returns the index of sets, for `learn_many`.
        """
        if isinstance(records, Record):
            self._add_sets([self._cut(records.arm)])
            return None
        if not len(records):
            return None
        sets, place = records.by_set()
        self._add_sets(sets)
        return sets, place

    def learn(self, record: Record) -> None:
        """Learn a record."""
        cut, buffer = self._cut(record.arm), self._buffer
        self._add_sets([cut])
        buffer.codes[:, 0], buffer.place[0] = record.codes, self._contrasts.places[cut]
        self._run(buffer.codes, buffer.place, buffer.path)
        self.arrived += 1
        for steps, (mean,) in zip(self.steps, buffer.path.tolist(), strict=True):
            top = steps[-1][1] if steps else 0.0
            if top < mean and top < MAX_LOG:
                steps.append((self.arrived, mean))
        self.records.add(cut, record.codes)

    def learn_many(self, batch: RecordBatch, prepared: SetIndex | None = None) -> None:
        """Learn many records, with the same result as one by one."""
        prepared = prepared or self.prepare(batch)
        if prepared is not None:
            sets, place = prepared
            places = np.array([self._contrasts.places[cut] for cut in sets])
            path = np.empty((len(KINDS), len(batch)))
            self._run(np.require(batch.codes, requirements=["C", "W"]), places[place], path)
            for steps, means in zip(self.steps, path, strict=True):
                top = steps[-1][1] if steps else 0.0
                heights = np.maximum.accumulate(np.concatenate([[top], means]))
                rises = np.flatnonzero((np.diff(heights) > 0) & (heights[:-1] < MAX_LOG))
                steps += [(self.arrived + int(i) + 1, float(heights[i + 1])) for i in rises]
            self.arrived += len(batch)
            self.records.add_many(batch, sets, place)

    def check_learned(self, record: Record) -> None:
        """Raise `DowiseError` if this record was not learned."""
        self.records.check_has(record, self._cut(record.arm))

    def retract(self, record: Record) -> None:
        """Undo `learn`, and forget the history of the evidence."""
        cut = self._cut(record.arm)
        self.records.remove(record, cut)
        under = self._contrasts.tables[self._contrasts.places[cut]]
        _kernels.watch_record(self._counts, self._tables, under, record.codes.copy(), -1)
        self.arrived -= 1
        self.mark_recomputed()

    def mark_recomputed(self) -> None:
        """Forget the history of the evidence, because the order of arrival is not known."""
        self.recomputed = True
        self._counts.largest[...] = np.maximum(self._counts.totals[1:], 0)
        logs = self._counts.totals[1:] / _kernels.NAT
        for steps, now in zip(self.steps, logs, strict=True):
            mean = _log_mean(now)
            steps[:] = [(self.arrived, mean)] if mean > 0 else []

    def _cut(self, arm: Intervention) -> int:
        cut = self._cuts.get(arm)
        if cut is None:
            cut = self._cuts[arm] = self.problem.graph.mask(arm)
        return cut

    def _add_sets(self, sets: Iterable[int]) -> None:
        """Add the tables of intervention sets that no arm has, and recount all records."""
        new = [cut for cut in sets if cut not in self._contrasts.places]
        if new:
            largest = self._counts.largest
            self._reset(_contrasts(self.problem, (*self._contrasts.sets, *new)))
            self._recount()
            self._counts.largest[...] = largest

    def _recount(self) -> None:
        """Compute the evidence of the kept records from scratch, after a reset."""
        codes, cuts, times = self.records.distinct()
        place = np.array([self._contrasts.places[cut] for cut in cuts], dtype=np.int64)
        _kernels.recount(self._counts, self._tables, self._contrasts, codes, place, times)

    def _run(self, codes: IntArray, place: IntArray, path: FloatArray) -> None:
        _kernels.watch_many(self._counts, self._tables, self._contrasts.tables, codes, place, path)

    # -- queries -----------------------------------------------------------------------------------

    def evidence(self, alpha: float = 0.05, strict: bool = False) -> Evidence:
        """Return the evidence of all records, with the alarm at this level."""
        alpha, kind = check_fraction("alpha", alpha), int(check_flag("strict", strict))
        if alpha < MIN_ALPHA:
            raise DowiseError(
                f"alpha={alpha!r} must be at least {MIN_ALPHA:g}", code="invalid-number"
            )
        threshold = -log(alpha)
        logs, largest = (
            self._counts.totals / _kernels.NAT,
            self._counts.largest[kind] / _kernels.NAT,
        )
        since = next((number for number, top in self.steps[kind] if top >= threshold), None)
        alarmed = largest - log(max(len(largest), 1)) >= threshold
        if since is not None:
            alarmed[largest.argmax()] = True
        return Evidence(
            problem=self.problem,
            edges=tuple(alternative.edge for alternative in self._contrasts.alternatives),
            log_bayes_factors=logs[0],
            log_e_values=logs[1 + kind],
            alarmed=alarmed if since is not None else np.zeros(len(largest), dtype=bool),
            scored=self._counts.scored.copy(),
            records=self.arrived,
            since=since,
            alpha=alpha,
            strict=bool(kind),
            recomputed=self.recomputed,
        )

    # -- copies and files --------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent copy."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        copied._counts = type(self._counts)(*(array.copy() for array in self._counts))
        copied.records, copied._buffer = self.records.copy(), _RecordBuffer(len(self.problem.graph))
        copied.steps = [*self.steps[0]], [*self.steps[1]]
        return copied

    def to_json(self) -> dict[str, Any]:
        """Return records and history, to be merged with the data of the posterior."""
        texts = [alternative.text for alternative in self._contrasts.alternatives]
        kinds = {
            kind: {
                "steps": [list(step) for step in steps],
                "largest": dict(zip(texts, top, strict=True)),
            }
            for kind, steps, top in zip(
                KINDS, self.steps, self._counts.largest.tolist(), strict=True
            )
        }
        return {
            "records": self.records.to_json(),
            "evidence": {"recomputed": self.recomputed} | kinds,
        }

    @classmethod
    def from_records(cls, records: KeptRecords) -> Self:
        """Return the monitor of records in an unknown order."""
        monitor = cls(records.problem)
        monitor._add_sets({cut for cut, _ in records.counts})
        monitor.records, monitor.arrived = records, len(records)
        monitor._recount()
        monitor.mark_recomputed()
        return monitor

    @classmethod
    def from_json(cls, data: dict[str, Any], records: KeptRecords) -> Self:
        """Inverse of `to_json`, given its records."""
        monitor = cls.from_records(records)
        texts = [alternative.text for alternative in alternatives_of(records.problem)]
        try:
            evidence = data["evidence"]
            monitor.recomputed = check_flag("recomputed", evidence["recomputed"])
            for i, kind in enumerate(KINDS):
                monitor.steps[i][:] = _checked_steps(evidence[kind]["steps"], monitor.arrived)
                largest, totals = monitor._counts.largest[i], monitor._counts.totals[i + 1]
                largest[:] = [_checked_log(evidence[kind]["largest"][text]) for text in texts]
                if (largest < np.maximum(totals, 0)).any():
                    raise ValueError("the largest is not the largest")
        except (TypeError, KeyError, ValueError, DowiseError):
            raise DowiseError(
                "the belief is damaged: its evidence does not fit", code="damaged-file"
            ) from None
        return monitor


def _checked_steps(data: Any, arrived: int) -> Steps:
    """Return steps from JSON data, which must rise, at records that have arrived."""
    steps, number, height = [], 0, 0.0
    for n, top in data:
        if type(n) is not int or type(top) is not float or not isfinite(top):
            raise ValueError("not a step")
        if not number < n <= arrived or not height < top:
            raise ValueError("steps must rise")
        steps.append((n, top))
        number, height = n, top
    return steps


def _checked_log(data: Any) -> int:
    if type(data) is not int or not 0 <= data < 2**62:
        raise ValueError("not a logarithm in 2⁻³⁶ nats")
    return data


def _log_mean(logs: FloatArray) -> float:
    if not len(logs):
        return 0.0
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).mean()))
