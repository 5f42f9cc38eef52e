"""Monitor of the evidence against the graph: an e-process for each edge that it lacks.

The e-values depend on the order of records. The monitor keeps their sequence (`Arrivals`) and bets
when it is asked, from the first record that it has not seen. After a correction it bets on all
records again, so that its figures are those of a new monitor, to the last bit.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Self

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.types import IntArray
from dowise._core.validation import check_flag, check_fraction
from dowise.belief.arrivals import ALL, Arrivals
from dowise.belief.evidence import Evidence
from dowise.belief.posterior import Posterior
from dowise.errors import DowiseError
from dowise.graph.adjacency import bits, mask_of
from dowise.model.missing_edges import Contrasts, table_axes
from dowise.problem import Intervention, Problem, Record
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, past_record

MAX_RECORDS = 10**8
"""Maximum number of records in a file."""
MIN_ALPHA = 1e-12  # smallest level of an alarm
DEFAULT_ALPHA = 0.05
BLOCK = 2**16  # pieces that are read together

_kernels = lazy_kernels("dowise.belief.monitor_kernels")
_contrasts = lru_cache(maxsize=16)(Contrasts)


class Monitor:
    """Records in their order of arrival, and their evidence about edges that the graph lacks.

    Parameters
    ----------
    problem : Problem
        Problem whose graph is judged.
    judged_from : int, optional
        Place of the first piece that counts (`Arrivals.position`). Pieces before it only train the
        stakes, because the graph was chosen with their help.
    """

    def __init__(self, problem: Problem, judged_from: int | None = None) -> None:
        self.problem = problem
        self.arrivals = Arrivals(problem)
        self.judged_from = judged_from
        self.recomputed = False
        """True if the records are from a file that does not have their order."""
        self._since: dict[float, int] = {DEFAULT_ALPHA: 0}  # record of the alarm at each level
        self._named: dict[float, Any] = {}
        self._withdrawn: dict[float, int] = {}
        self._cuts: dict[Intervention, int] = {}
        self._arm_sets = {problem.graph.mask(names) for names in problem.intervention_sets}
        self._set_contrasts(())

    def _set_contrasts(self, more: Iterable[int]) -> None:
        """Lay out the tables under all intervention sets; raise if they are too large.

        `more` are those that no arm has. They are sorted, so that sums over tables do not depend on
        which of them came first.
        """
        self._contrasts = _contrasts(self.problem, tuple(sorted(self._arm_sets.union(more))))
        self._seen = 0
        """Number of pieces that were bet on."""
        self._bets: Any = None

    # -- learning ----------------------------------------------------------------------------------

    def prepare(self, records: Record | RecordBatch) -> None:
        """Add the tables of the records' intervention sets; raise if they are too large."""
        if isinstance(records, Record):
            sets = [self._cut(records.arm)]
        else:
            sets = records.by_set()[0] if len(records) else []
        if not self._contrasts.places.keys() >= {*sets}:
            self._set_contrasts([*self._contrasts.sets, *sets])

    def learn(self, record: Record) -> None:
        """Add a record; it is bet on when the evidence is asked for."""
        self.arrivals.append(record)

    def learn_many(self, batch: RecordBatch) -> None:
        """Add many records."""
        self.arrivals.extend(batch)

    def check_learned(self, record: Record) -> None:
        """Raise `DowiseError` if this record was not learned."""
        self.arrivals.check_has(record)

    def retract(self, record: Record) -> None:
        """Remove a record; an alarm that was raised before is noted."""
        self.catch_up()
        self.arrivals.remove(record)

    def _cut(self, arm: Intervention) -> int:
        cut = self._cuts.get(arm)
        if cut is None:
            cut = self._cuts[arm] = self.problem.graph.mask(arm)
        return cut

    # -- betting -----------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Bet on all pieces that have arrived, from the first one if an earlier one has changed."""
        arrivals, before, corrected = self.arrivals, {**self._since}, 0
        if arrivals.changed_from < self._seen:
            corrected = arrivals.record_number(arrivals.changed_from)
            self._bets = None
        if self._contrasts.places.keys() != (sets := self._arm_sets.union(arrivals.sets())):
            self._set_contrasts(sets)
        if self._bets is None:
            self._begin()
        judged = 0 if self.judged_from is None else arrivals.position(self.judged_from)
        if self._seen < judged:
            self._watch(judged, is_judged=False)
        if self._seen == judged > 0:
            self._restart()
        self._watch(len(arrivals), is_judged=True)
        arrivals.mark_read()
        for alpha, since in self._since.items():
            if since:
                self._withdrawn.pop(alpha, None)
            elif before.get(alpha):
                self._withdrawn[alpha] = corrected

    def _begin(self) -> None:
        """Forget all bets."""
        contrasts = self._contrasts
        strata, cells, features = (layout.entries for layout in contrasts.layouts)
        many, owners = len(contrasts.alternatives), contrasts.owners
        self._bets = _kernels.Bets(
            np.zeros((strata, _kernels.STICK_COLUMNS)),
            np.zeros((strata, 2)),
            np.zeros(strata, dtype=bool),
            np.zeros((cells, 2)),
            np.zeros((features, 5)),
            np.zeros(contrasts.pair_count, dtype=np.int32),
            np.zeros((len(owners), int(contrasts.sizes.max(initial=2)) - 1, 2)),
            np.zeros((many, 2)),
            np.zeros(many, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )
        tables = (
            _kernels.Tables(layout.starts, *table_axes(layout)) for layout in contrasts.layouts
        )
        with np.errstate(divide="ignore"):
            log_shares = np.log(contrasts.shares)
        self._plan = _kernels.Plan(
            *tables,
            contrasts.tables,
            contrasts.first,
            contrasts.sizes,
            owners,
            contrasts.variables,
            contrasts.later,
            contrasts.feature_rows,
            contrasts.pairs,
            contrasts.slots,
            np.minimum(0.1, 0.5 / np.maximum(contrasts.rows * (contrasts.sizes - 1), 1)),
            log_shares,
        )
        self._of_alternative = np.searchsorted(owners, np.arange(many + 1))
        self._seen = 0
        self._since = dict.fromkeys(self._since, 0)
        self._named = {alpha: np.zeros(many, dtype=bool) for alpha in self._since}

    def _restart(self) -> None:
        """Count from here on; what was learned about rates and shifts stays."""
        bets, k = self._bets, _kernels
        bets.sticks[:, k.TRAINED_ONE] += bets.sticks[:, k.ONE]
        bets.sticks[:, k.TRAINED_ZERO] += bets.sticks[:, k.ZERO]
        bets.sticks[:, [k.ONE, k.ZERO, k.BASE]] = 0
        bets.sticks[:, k.BETTORS :] = 0
        for array in (bets.solved, bets.is_stale, bets.totals, bets.scored):
            array[...] = 0

    def _watch(self, stop: int, is_judged: bool) -> None:
        """Bet on the pieces up to a position."""
        levels = [*self._since]
        alarms = _kernels.Alarms(
            -np.log(levels) if is_judged else np.full(len(levels), np.inf),
            np.array([self._since[alpha] for alpha in levels], dtype=np.int64),
            np.array([self._named[alpha] for alpha in levels]),
        )
        while self._seen < stop:
            end = min(self._seen + BLOCK, stop)
            _kernels.watch_many(
                self._bets,
                self._plan,
                self._of_alternative,
                alarms,
                self._pieces(self._seen, end),
                _kernels.SCALE,
                _kernels.DAMP,
            )
            self._seen = end
        self._since = dict(zip(levels, alarms.since.tolist(), strict=True))
        self._named = dict(zip(levels, alarms.is_named, strict=True))

    def _pieces(self, start: int, stop: int) -> Any:
        """Return pieces for kernels."""
        pieces = self.arrivals.arrays(start, stop)
        told = np.ones(pieces.codes.shape, dtype=bool)
        earlier = np.zeros(pieces.codes.shape, dtype=bool)
        context = mask_of(self.problem.context_positions.tolist())
        for d, (cut, mask) in enumerate(zip(pieces.cuts, pieces.told, strict=True)):
            if mask != ALL:
                for v in range(len(told)):
                    told[v, d] = mask >> v & 1
                    earlier[v, d] = not (mask | cut | context) >> v & 1
        earlier &= pieces.codes != MISSING
        places = np.array([self._contrasts.places[cut] for cut in pieces.cuts], dtype=np.int64)
        return _kernels.Pieces(
            np.ascontiguousarray(pieces.codes),
            places,
            told,
            earlier,
            earlier.any(axis=0),
            pieces.continues,
            pieces.order,
        )

    # -- queries -----------------------------------------------------------------------------------

    def evidence(self, alpha: float = DEFAULT_ALPHA) -> Evidence:
        """Return the evidence of all records, with the alarm at this level."""
        alpha = check_fraction("alpha", alpha)
        if alpha < MIN_ALPHA:
            raise DowiseError(
                f"alpha={alpha!r} must be at least {MIN_ALPHA:g}", code="invalid-number"
            )
        if alpha not in self._since:
            self._since[alpha] = 0
            self._bets = None
        self.catch_up()
        contrasts = self._contrasts
        logs = np.zeros(len(contrasts.alternatives))
        _kernels.solve_all(self._bets, self._plan, self._of_alternative, logs)
        with np.errstate(divide="ignore"):
            needed = 1 / (alpha * contrasts.shares)
        return Evidence(
            problem=self.problem,
            edges=tuple(alternative.edge for alternative in contrasts.alternatives),
            log_e_values=logs,
            needed=needed,
            alarmed=self._named[alpha].copy(),
            scored=self._bets.scored.copy(),
            records=self.arrivals.records,
            since=self._since[alpha] or None,
            alpha=alpha,
            withdrawn=self._withdrawn.get(alpha),
            recomputed=self.recomputed,
        )

    # -- copies and files --------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent copy."""
        copied = object.__new__(type(self))
        copied.__dict__ |= self.__dict__
        copied.arrivals = self.arrivals.copy()
        if self._bets is not None:
            copied._bets = type(self._bets)(*(array.copy() for array in self._bets))
        copied._since, copied._withdrawn = {**self._since}, {**self._withdrawn}
        copied._named = {alpha: named.copy() for alpha, named in self._named.items()}
        return copied

    def to_json(self) -> dict[str, Any]:
        """Return the records and their order, to be merged with the data of the posterior."""
        self.catch_up()
        pieces, graph = self.arrivals.arrays(), self.problem.graph
        first = np.full(len(pieces.cuts), len(pieces.order))
        np.minimum.at(first, pieces.order, np.arange(len(pieces.order)))
        rank = np.argsort(np.argsort(first))  # distinct records by their first occurrence
        counts = np.bincount(pieces.order, minlength=len(pieces.cuts)).tolist()
        records = []
        for d in np.argsort(first).tolist():
            pairs = zip(self.problem.domains.items(), pieces.codes[:, d].tolist(), strict=True)
            values = {name: domain[code] for (name, domain), code in pairs if code != MISSING}
            names = sorted(graph.names(pieces.cuts[d]))
            records.append({"set": names, "values": values, "count": counts[d]})
        order = rank[pieces.order].astype("<i4").tobytes() if len(records) else b""
        evidence = {
            "order": b64encode(zlib.compress(order)).decode("ascii"),
            "recomputed": self.recomputed,
            "withdrawn": [list(item) for item in self._withdrawn.items()],
        }
        return {"records": records, "evidence": evidence}

    @classmethod
    def from_json(cls, data: dict[str, Any], problem: Problem) -> Self:
        """Inverse of `to_json`. Files of earlier versions are read in the order of their list."""
        monitor = cls(problem)
        codes, was_set, counts = _parse_records(data["records"], problem)
        order = np.repeat(np.arange(len(counts)), counts)
        try:
            evidence = data["evidence"]
            monitor.recomputed = check_flag("recomputed", evidence["recomputed"])
            if "order" in evidence:
                order = _parse_order(evidence["order"], counts)
                monitor._withdrawn = {
                    check_fraction("alpha", alpha): int(number)
                    for alpha, number in evidence["withdrawn"]
                }
            else:
                monitor.recomputed = True
        except (TypeError, KeyError, ValueError, zlib.error, DowiseError):
            raise DowiseError(
                "the belief is damaged: its evidence does not fit", code="damaged-file"
            ) from None
        batch = RecordBatch(problem, codes[:, order], was_set[:, order])
        monitor.prepare(batch)
        monitor.learn_many(batch)
        return monitor

    def check_counted_by(self, posterior: Posterior) -> None:
        """Raise `DowiseError` unless these records are those that a posterior has counted."""
        pieces = self.arrivals.arrays()
        times = np.bincount(pieces.order, minlength=len(pieces.cuts))
        was_set = np.zeros(pieces.codes.shape, dtype=bool)
        for d, cut in enumerate(pieces.cuts):
            was_set[list(bits(cut)), d] = True
        counts, unused = np.zeros_like(posterior.counts), np.zeros_like(posterior.unused)
        for b in range(int(times.max(initial=0)).bit_length()):
            rows = np.flatnonzero(times >> b & 1)
            fresh = Posterior(self.problem)
            fresh.learn_many(RecordBatch(self.problem, pieces.codes[:, rows], was_set[:, rows]))
            counts += fresh.counts << b
            unused += fresh.unused << b
        if (counts != posterior.counts).any() or (unused != posterior.unused).any():
            raise DowiseError(
                "the belief is damaged: its counts are not those of its records",
                code="damaged-file",
            )


def _parse_records(data: Any, problem: Problem) -> tuple[IntArray, Any, IntArray]:
    """Return the codes of distinct records, what was set in them, and their counts."""
    entries = data if isinstance(data, list) else [data]
    codes = np.empty((len(problem.graph), len(entries)), dtype=np.int64)
    was_set = np.zeros(codes.shape, dtype=bool)
    counts = np.zeros(len(entries), dtype=np.int64)
    for i, entry in enumerate(entries):
        try:
            values, names = dict(entry["values"]), list(entry["set"])
            arm = {name: values[name] for name in names}
            count = entry["count"]
        except (TypeError, KeyError, ValueError):
            raise DowiseError(
                f"the belief is damaged: not a record: {str(entry)[:80]}", code="damaged-file"
            ) from None
        if type(count) is not int or not 1 <= count <= MAX_RECORDS:
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
        codes[:, i], was_set[:, i], counts[i] = record.codes, record.fixed != MISSING, count
    if counts.sum() > MAX_RECORDS:
        raise DowiseError(
            f"the belief is damaged: it has {counts.sum():.1e} records", code="damaged-file"
        )
    return codes, was_set, counts


def _parse_order(data: Any, counts: IntArray) -> IntArray:
    """Return the index of each record among the distinct ones."""
    size = 4 * int(counts.sum())
    decompressor = zlib.decompressobj()
    content = decompressor.decompress(b64decode(data, validate=True), size + 1)
    if len(content) != size or not decompressor.eof:
        raise ValueError("the order is not that of so many records")
    order = np.frombuffer(content, dtype="<i4").astype(np.int64)
    if size and (order.min() < 0 or (np.bincount(order, minlength=len(counts)) != counts).any()):
        raise ValueError("the order is not that of these records")
    return order
