"""Evidence against the graph, kept up to date record by record.

For each edge that the graph lacks there are three logarithms (docs/evidence.md):

- the *Bayes factor*, Dirichlet(1) rows with the edge against such rows without it, which ranks;
- the *e-value*, in which each table's evidence is averaged over several concentrations, on both
  sides. Where all values are about as likely, a larger table, which has learned less of each row
  and stays nearer to even odds, predicts better, and plain Bayes factors alarm far too often;
- the *strict* e-value, which divides by the largest likelihood that the graph can give instead:
  universal inference (Wasserman, Ramdas & Balakrishnan 2020).

The alarm looks at the mean over all alternatives after every record, so the moment of the first
crossing is kept, for every level at once: it is a new largest mean.
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
from dowise.errors import DowiseError
from dowise.graph.adjacency import bits
from dowise.model.missing_edges import Contrasts, alternatives_of
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, equal_columns, past_record

MAX_COUNT = 10**8
"""So many records a file may have; beyond them 64 bits are too few for what they say."""


@dataclass
class KeptRecords:
    """In the order in which each was first seen: what was set, as bits, and the codes of values."""

    problem: Problem
    counts: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def add(self, cut: int, codes: IntArray, times: int = 1) -> None:
        """So many more of these."""
        key = cut, codes.tobytes()
        self.counts[key] = self.counts.get(key, 0) + times

    def add_many(self, batch: RecordBatch, sets: list[int], place: IntArray) -> None:
        """All records of a batch, `batch.by_set()` being sets and place."""
        first, which = equal_columns([place, *batch.codes])
        counts = np.bincount(which)
        for i in np.argsort(first):
            self.add(sets[place[first[i]]], batch.codes[:, first[i]], int(counts[i]))

    def remove(self, record: Record, cut: int) -> None:
        """One less; refuses what is not there."""
        self.check_has(record, cut)
        key = cut, record.codes.tobytes()
        self.counts[key] -= 1
        if not self.counts[key]:
            del self.counts[key]

    def check_has(self, record: Record, cut: int) -> None:
        """Raise unless it is there."""
        if (cut, record.codes.tobytes()) not in self.counts:
            raise DowiseError(f"{record!r} can't be retracted: it was not learned")

    def __len__(self) -> int:
        """The number of records, equal ones included."""
        return sum(self.counts.values())

    def copy(self) -> Self:
        """Records that grow on their own from here."""
        return type(self)(self.problem, dict(self.counts))

    def batch(self, problem: Problem | None = None) -> RecordBatch:
        """All of them, equal ones next to each other, perhaps as records of another problem.

        That must have the same variables with the same values.
        """
        codes, cuts, times = self.distinct()
        return self._batch(problem or self.problem, codes, cuts, times)

    def distinct(self) -> tuple[IntArray, list[int], IntArray]:
        """(codes, cuts, times): codes[:, i] was seen times[i] where what cuts[i] says was set."""
        codes = np.empty((len(self.problem.graph), len(self.counts)), dtype=np.int64)
        for i, (_, raw) in enumerate(self.counts):
            codes[:, i] = np.frombuffer(raw, dtype=np.int64)
        times = np.array(list(self.counts.values()), dtype=np.int64)
        return codes, [cut for cut, _ in self.counts], times

    def by_bits(self) -> Iterator[tuple[int, RecordBatch]]:
        """(times, batch): all records are each batch so many times, however many there are."""
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

    # -- for JSON ---------------------------------------------------------------------------------

    def page(self) -> list[dict[str, Any]]:
        """The labels of what was seen, the names of what was set, and how often."""
        return list(self._pages())

    def _pages(self) -> Iterator[dict[str, Any]]:
        for (cut, raw), count in self.counts.items():
            codes = np.frombuffer(raw, dtype=np.int64).tolist()
            pairs = zip(self.problem.domains.items(), codes, strict=True)
            values = {name: domain[code] for (name, domain), code in pairs if code != MISSING}
            names = self.problem.graph.names(cut)
            yield {"set": sorted(names), "values": values, "count": count}

    @classmethod
    def read(cls, page: Any, problem: Problem) -> Self:
        """The way back from `page`."""
        kept = cls(problem)
        for entry in page if isinstance(page, list) else [page]:
            try:
                values, names = dict(entry["values"]), list(entry["set"])
                arm = {name: values[name] for name in names}
                count = entry["count"]
            except (TypeError, KeyError, ValueError):
                raise DowiseError(
                    f"the belief is damaged: {str(entry)[:80]} is no record"
                ) from None
            if type(count) is not int or not 1 <= count <= MAX_COUNT:
                raise DowiseError(f"the belief is damaged: a record was seen {count!r:.30} times")
            try:
                record = past_record(problem, arm, values)
            except DowiseError as error:
                raise DowiseError(
                    f"the belief is damaged: a record does not fit: {error}"
                ) from None
            kept.add(problem.graph.mask(names), record.codes, count)
        if len(kept) > MAX_COUNT:
            raise DowiseError(f"the belief is damaged: it has {len(kept):.1e} records")
        return kept

    def check_counted_by(self, posterior: Any) -> None:
        """Raise unless the counts of a posterior come from just these records."""
        counts, unused = np.zeros_like(posterior.counts), np.zeros_like(posterior.unused)
        for times, batch in self.by_bits():
            fresh = type(posterior)(self.problem)
            fresh.learn_many(batch)
            counts += times * fresh.counts
            unused += times * fresh.unused
        if (counts != posterior.counts).any() or (unused != posterior.unused).any():
            raise DowiseError("the belief is damaged: its counts are not those of its records")


Steps = list[tuple[int, float]]
"""(number of a record, logarithm): each the largest mean so far."""

Ready = tuple[list[int], IntArray]
"""The sets of variables that records set, as bits, and which of them each record has."""

SMALLEST = 1e-12
"""The smallest level of an alarm; nothing beyond it is kept."""
HIGHEST = -log(SMALLEST)
KINDS = ("mixed", "strict")

_kernels = lazy_kernels("dowise.belief.monitor_kernels")
_contrasts = lru_cache(maxsize=16)(Contrasts)


class _RecordBuffer:
    """For one record, as kernels take many."""

    def __init__(self, variables: int) -> None:
        self.codes = np.empty((variables, 1), dtype=np.int64)
        self.place = np.empty(1, dtype=np.int64)
        self.path = np.empty((len(KINDS), 1))


class Monitor:
    """The records that a belief has learned, and what they say about edges that the graph lacks."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.records = KeptRecords(problem)
        self.arrived = 0
        """The number of records."""
        self.recomputed = False
        """Whether a record was retracted, so that the order of arrival is not known any more."""
        self.steps: tuple[Steps, Steps] = [], []
        """How the largest mean e-value has grown, the mixed and the strict one."""
        mask = problem.graph.mask
        self._cuts: dict[Intervention, int] = {}
        self._one = _RecordBuffer(len(problem.graph))
        sets = dict.fromkeys([0, *(mask(names) for names in problem.intervention_sets)])
        self._start_anew(_contrasts(problem, tuple(sets)))

    def _start_anew(self, contrasts: Contrasts) -> None:
        self._contrasts, layout = contrasts, contrasts.layout
        tables, many = len(layout.families), len(contrasts.alternatives)
        self._tables = _kernels.TableIndex(
            contrasts.owners, layout.starts, *contrasts.axes, layout.sizes
        )
        self._told = _kernels.EvidenceCounts(
            np.zeros(layout.entries, dtype=np.int64),
            np.zeros((tables, len(_kernels.LEVELS)), dtype=np.int64),
            np.zeros(tables, dtype=np.int64),
            np.zeros((1 + len(KINDS), many), dtype=np.int64),
            np.zeros((len(KINDS), many), dtype=np.int64),
            np.zeros(many, dtype=np.int64),
        )

    # -- learning -----------------------------------------------------------------------------

    def get_ready(self, records: Record | RecordBatch) -> Ready | None:
        """Make room for what these set; raises where there is too little, and says nothing else.

        What comes back is for `learn_many`, which then need not find it anew.
        """
        if isinstance(records, Record):
            self._know([self._cut(records.arm)])
            return None
        if not len(records):
            return None
        sets, place = records.by_set()
        self._know(sets)
        return sets, place

    def learn(self, record: Record) -> None:
        """One record more."""
        cut, room = self._cut(record.arm), self._one
        self._know([cut])
        room.codes[:, 0], room.place[0] = record.codes, self._contrasts.places[cut]
        self._run(room.codes, room.place, room.path)
        self.arrived += 1
        for steps, (mean,) in zip(self.steps, room.path.tolist(), strict=True):
            top = steps[-1][1] if steps else 0.0
            if top < mean and top < HIGHEST:
                steps.append((self.arrived, mean))
        self.records.add(cut, record.codes)

    def learn_many(self, batch: RecordBatch, ready: Ready | None = None) -> None:
        """Many records more, the same as one by one; `ready` is what `get_ready` gave."""
        ready = ready or self.get_ready(batch)
        if ready is not None:
            sets, place = ready
            places = np.array([self._contrasts.places[cut] for cut in sets])
            path = np.empty((len(KINDS), len(batch)))
            self._run(np.require(batch.codes, requirements=["C", "W"]), places[place], path)
            self._follow(path)
            self.arrived += len(batch)
            self.records.add_many(batch, sets, place)

    def check_learned(self, record: Record) -> None:
        """Raise unless this record was learned."""
        self.records.check_has(record, self._cut(record.arm))

    def retract(self, record: Record) -> None:
        """One record less. All is what there would be without it; only since when is not known."""
        cut = self._cut(record.arm)
        self.records.remove(record, cut)
        under = self._contrasts.tables[self._contrasts.places[cut]]
        _kernels.watch_record(self._told, self._tables, under, record.codes.copy(), -1)
        self.arrived -= 1
        self.mark_recomputed()

    def mark_recomputed(self) -> None:
        """Forget how the evidence has grown, because the order of arrival is not known."""
        self.recomputed = True
        self._told.largest[...] = np.maximum(self._told.totals[1:], 0)
        logs = self._told.totals[1:] / _kernels.NAT
        for steps, now in zip(self.steps, logs, strict=True):
            mean = _log_mean(now)
            steps[:] = [(self.arrived, mean)] if mean > 0 else []

    def _cut(self, arm: Intervention) -> int:
        found = self._cuts.get(arm)
        if found is None:
            found = self._cuts[arm] = self.problem.graph.mask(arm)
        return found

    def _know(self, sets: Iterable[int]) -> None:
        """Make room for interventions that no arm has, and count all records anew where needed."""
        known = self._contrasts.places
        new = [cut for cut in sets if cut not in known]
        if new:
            largest = self._told.largest
            self._start_anew(_contrasts(self.problem, (*self._contrasts.sets, *new)))
            self._recount()
            self._told.largest[...] = largest

    def _recount(self) -> None:
        """Work out what the kept records say; nothing may have been counted."""
        codes, cuts, times = self.records.distinct()
        place = np.array([self._contrasts.places[cut] for cut in cuts], dtype=np.int64)
        _kernels.recount(self._told, self._tables, self._contrasts, codes, place, times)

    def _run(self, codes: IntArray, place: IntArray, path: FloatArray) -> None:
        _kernels.watch_many(self._told, self._tables, self._contrasts.tables, codes, place, path)

    def _follow(self, path: FloatArray) -> None:
        """Keep each new largest mean."""
        for steps, means in zip(self.steps, path, strict=True):
            top = steps[-1][1] if steps else 0.0
            heights = np.maximum.accumulate(np.concatenate([[top], means]))
            rises = np.flatnonzero((np.diff(heights) > 0) & (heights[:-1] < HIGHEST))
            steps += [(self.arrived + int(i) + 1, float(heights[i + 1])) for i in rises]

    # -- what it says -------------------------------------------------------------------------

    def is_alarmed(self, alpha: float) -> bool:
        """Whether `evidence` is an alarm at this level."""
        steps = self.steps[0]
        return bool(steps) and steps[-1][1] >= -log(alpha)

    def evidence(self, alpha: float = 0.05, strict: bool = False) -> Evidence:
        """What the records say by now, and whether that is an alarm at this level."""
        alpha, kind = check_fraction("alpha", alpha), int(check_flag("strict", strict))
        if alpha < SMALLEST:
            raise DowiseError(f"alpha={alpha!r} is too small: {SMALLEST:g} is the least")
        threshold = -log(alpha)
        logs, largest = self._told.totals / _kernels.NAT, self._told.largest[kind] / _kernels.NAT
        since = next((number for number, top in self.steps[kind] if top >= threshold), None)
        named = largest - log(max(len(largest), 1)) >= threshold
        if since is not None:
            named[largest.argmax()] = True
        return Evidence(
            problem=self.problem,
            edges=tuple(one.edge for one in self._contrasts.alternatives),
            log_bayes_factors=logs[0],
            log_e_values=logs[1 + kind],
            alarmed=named if since is not None else np.zeros(len(largest), dtype=bool),
            scored=self._told.scored.copy(),
            records=self.arrived,
            since=since,
            alpha=alpha,
            strict=bool(kind),
            recomputed=self.recomputed,
        )

    # -- keeping it ---------------------------------------------------------------------------

    def copy(self) -> Self:
        """A monitor that learns on its own from here."""
        twin = object.__new__(type(self))
        twin.__dict__ |= self.__dict__
        twin._told = type(self._told)(*(array.copy() for array in self._told))
        twin.records, twin._one = self.records.copy(), _RecordBuffer(len(self.problem.graph))
        twin.steps = [*self.steps[0]], [*self.steps[1]]
        return twin

    def page(self) -> dict[str, Any]:
        """For JSON, beside the page of the posterior."""
        texts = [one.text for one in self._contrasts.alternatives]
        kinds = {
            kind: {
                "steps": [list(step) for step in steps],
                "largest": dict(zip(texts, top, strict=True)),
            }
            for kind, steps, top in zip(KINDS, self.steps, self._told.largest.tolist(), strict=True)
        }
        return {"records": self.records.page(), "evidence": {"recomputed": self.recomputed} | kinds}

    @classmethod
    def of(cls, records: KeptRecords) -> Self:
        """What there is after these records, whose order is not known."""
        monitor = cls(records.problem)
        monitor._know({cut for cut, _ in records.counts})
        monitor.records, monitor.arrived = records, len(records)
        monitor._recount()
        monitor.mark_recomputed()
        return monitor

    @classmethod
    def read(cls, page: dict[str, Any], records: KeptRecords) -> Self:
        """The way back from `page`, once its records are read."""
        monitor = cls.of(records)
        texts = [one.text for one in alternatives_of(records.problem)]
        try:
            kept = page["evidence"]
            monitor.recomputed = check_flag("recomputed", kept["recomputed"])
            for i, kind in enumerate(KINDS):
                monitor.steps[i][:] = _checked_steps(kept[kind]["steps"], monitor.arrived)
                largest, least = monitor._told.largest[i], monitor._told.totals[i + 1]
                largest[:] = [_checked_log(kept[kind]["largest"][text]) for text in texts]
                if (largest < np.maximum(least, 0)).any():
                    raise ValueError("the largest is not the largest")
        except (TypeError, KeyError, ValueError, DowiseError):
            raise DowiseError("the belief is damaged: its evidence does not fit") from None
        return monitor


def _checked_steps(given: Any, arrived: int) -> Steps:
    """Steps that rise, at records that there have been."""
    steps, number, height = [], 0, 0.0
    for n, top in given:
        if type(n) is not int or type(top) is not float or not isfinite(top):
            raise ValueError("no step")
        if not number < n <= arrived or not height < top:
            raise ValueError("steps must rise")
        steps.append((n, top))
        number, height = n, top
    return steps


def _checked_log(given: Any) -> int:
    if type(given) is not int or not 0 <= given < 2**62:
        raise ValueError("no logarithm in 2⁻³⁶ nats")
    return given


def _log_mean(logs: FloatArray) -> float:
    if not len(logs):
        return 0.0
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).mean()))
