"""Kernels of the evidence against a graph.

All evidence is counted in integer numbers of 2⁻³⁶ nats, as in `dowise.belief.mixture_kernels`, so
it is a function of the counts, to the last bit, in whatever order the records arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit

from dowise._core.kernels import kernel, lazy_kernels
from dowise._core.types import IntArray
from dowise.belief.mixture_kernels import NAT
from dowise.belief.variates import log64
from dowise.model.missing_edges import Contrasts

LEVELS = (0.3, 1.0, 4.0, 16.0, 64.0)
"""Dirichlet concentrations per entry that a table's evidence is averaged over."""
PLAIN = 1  # index of the concentration of the Bayes factor


class TableIndex(NamedTuple):
    """Positions of the tables of all contrasts; see `Contrasts`."""

    owners: Any
    """Alternative of each contrast."""
    starts: Any
    first: Any
    axes: Any
    steps: Any
    sizes: Any


class EvidenceCounts(NamedTuple):
    """Counts and evidence of records; logarithms in 2⁻³⁶ nats."""

    counts: Any
    """Count of each entry of each table."""
    levels: Any
    """levels[t, i]: the evidence of a table under the i-th concentration."""
    mixed: Any
    """mixed[t]: the logarithm of their mean."""
    totals: Any
    """totals[kind, a]: the Bayes factor, the e-value and the strict e-value of an alternative."""
    largest: Any
    """largest[kind − 1, a]: largest values so far of the two e-values."""
    scored: Any
    """scored[a]: number of values that were compared."""


@njit
def _nats(x):
    """Return x nats as an integer number of 2⁻³⁶ nats."""
    return int64(np.rint(x * NAT))


@njit
def _log_mean(logs, unit):
    """Return the logarithm of the mean of numbers given by their logarithms in `unit`.

    It is 0 if there are no numbers.
    """
    if len(logs) == 0:
        return 0.0
    top = logs[0]
    for i in range(1, len(logs)):
        top = max(top, logs[i])
    total = 0.0
    for i in range(len(logs)):
        total += np.exp((logs[i] - top) / unit)
    return top / unit + log64(total / len(logs))


@njit
def _entry(tables, t, codes):
    """Return the entry of a table that a record counts in, or −1 if a value is missing."""
    entry = tables.starts[t]
    for i in range(tables.first[t], tables.first[t + 1]):
        code = codes[tables.axes[i]]
        if code < 0:
            return int64(-1)
        entry += tables.steps[i] * code
    return entry


@njit
def _likeliest(count):
    """Return (n + 1) log(n + 1) − n log n for n = count."""
    if count == 0:
        return int64(0)
    return _nats(log64(count + 1.0) + count * log64(1.0 + 1.0 / count))


@njit
def _count(evidence, tables, t, entry, code, step):
    """Count an entry and return the changes of three logarithms of the table.

    They are the evidence under the concentration 1, its mean over all concentrations, and the
    largest likelihood, Π (c_k / Σc)^c_k over all rows.
    """
    size = tables.sizes[tables.axes[tables.first[t + 1] - 1]]
    if step < 0:
        evidence.counts[entry] += step
    count, total = evidence.counts[entry], int64(0)
    for k in range(entry - code, entry - code + size):
        total += evidence.counts[k]
    plain = int64(0)
    for i in range(len(LEVELS)):
        alpha = LEVELS[i]
        gain = _nats(log64(alpha + count)) - _nats(log64(size * alpha + total))
        evidence.levels[t, i] += step * gain
        if i == PLAIN:
            plain = step * gain
    before = evidence.mixed[t]
    evidence.mixed[t] = _nats(_log_mean(evidence.levels[t], NAT))
    if step > 0:
        evidence.counts[entry] += step
    return plain, evidence.mixed[t] - before, step * (_likeliest(count) - _likeliest(total))


@kernel()
def watch_record(evidence, tables, under, codes, step):
    """Count (`step` 1) or retract (−1) a record, in every contrast that has all its values.

    under[i] are the two tables of contrast i under the arm. The table with the edge needs all
    values that the one without it needs, so both count the same records. Returns True if the record
    counted in any contrast.
    """
    is_counted = False
    for i in range(len(under)):
        null, having = under[i]
        if null < 0:
            continue
        entry = _entry(tables, having, codes)
        if entry < 0:
            continue
        a, null_entry = tables.owners[i], _entry(tables, null, codes)
        code = codes[tables.axes[tables.first[having + 1] - 1]]
        plain, mixed, _ = _count(evidence, tables, having, entry, code, step)
        null_plain, null_mixed, null_max = _count(evidence, tables, null, null_entry, code, step)
        evidence.totals[0, a] += plain - null_plain
        evidence.totals[1, a] += mixed - null_mixed
        evidence.totals[2, a] += mixed - null_max
        evidence.scored[a] += step
        is_counted = True
    return is_counted


@kernel()
def watch_many(evidence, tables, under, codes, place, path):
    """Count many records: record i has codes[:, i], and its tables are under[place[i]].

    path[kind, i] is set to the logarithm of the mean e-value over all alternatives after record i,
    mixed and strict, or to −∞ if the record counted in no contrast, so that the mean is unchanged.
    """
    step = codes.ndim - 1  # a literal 1 would be compiled again as its own type
    record = np.empty(len(codes), dtype=np.int64)
    for i in range(len(place)):
        for v in range(len(record)):
            record[v] = codes[v, i]
        is_counted = watch_record(evidence, tables, under[place[i]], record, step)
        for kind in range(len(path)):
            if not is_counted:
                path[kind, i] = -np.inf
                continue
            largest, now = evidence.largest[kind], evidence.totals[kind + 1]
            for a in range(len(now)):
                largest[a] = max(largest[a], now[a])
            path[kind, i] = _log_mean(now, NAT)


# -- evidence of counts, see `recount` -----------------------------------------------------------


@kernel()
def count_times(evidence, tables, under, codes, place, times):
    """Count record i times[i] times, and the number of values compared, without the evidence."""
    record = np.empty(len(codes), dtype=np.int64)
    for r in range(len(place)):
        for v in range(len(record)):
            record[v] = codes[v, r]
        for i in range(len(tables.owners)):
            null, having = under[place[r], i]
            if null < 0:
                continue
            entry = _entry(tables, having, record)
            if entry >= 0:
                evidence.counts[entry] += times[r]
                evidence.counts[_entry(tables, null, record)] += times[r]
                evidence.scored[tables.owners[i]] += times[r]


@kernel()
def evidence_sums(points, alpha):
    """Return Σ_{c<n} log(alpha + c) for each n of ascending points."""
    sums = np.empty(len(points), dtype=np.int64)
    total, count = int64(0), int64(0)
    for i in range(len(points)):
        while count < points[i]:
            total += _nats(log64(alpha + count))
            count += 1
        sums[i] = total
    return sums


@kernel()
def likeliest_sums(points):
    """Return n log n for each n of ascending points, equal to the sums of `watch_record`."""
    sums = np.empty(len(points), dtype=np.int64)
    total, count = int64(0), int64(0)
    for i in range(len(points)):
        while count < points[i]:
            total += _likeliest(count)
            count += 1
        sums[i] = total
    return sums


@kernel()
def mix(evidence):
    """Compute the logarithm of each table's mean evidence over all concentrations."""
    for t in range(len(evidence.mixed)):
        evidence.mixed[t] = _nats(_log_mean(evidence.levels[t], NAT))


_kernels = lazy_kernels("dowise.belief.monitor_kernels")


def recount(
    evidence: Any,
    tables: Any,
    contrasts: Contrasts,
    codes: IntArray,
    place: IntArray,
    times: IntArray,
) -> None:
    """Compute the evidence of many records: codes[:, i], times[i] times, under tables[place[i]].

    `evidence` must be empty; its largest values so far are left unchanged.
    """
    if not len(times) or not len(contrasts.alternatives):
        return
    _kernels.count_times(evidence, tables, contrasts.tables, codes, place, times)
    layout = contrasts.layout
    entries = np.flatnonzero(evidence.counts)
    counts = evidence.counts[entries]
    table = np.searchsorted(layout.starts, entries, side="right") - 1
    size = layout.sizes[layout.targets[table]]
    rows, first, row_of = np.unique(
        entries - (entries - layout.starts[table]) % size, return_index=True, return_inverse=True
    )
    totals = np.zeros(len(rows), dtype=np.int64)
    np.add.at(totals, row_of, counts)
    row_table, row_size = table[first], size[first]
    for i, alpha in enumerate(_kernels.LEVELS):
        level = evidence.levels[:, i]
        np.add.at(level, table, _sums_at(counts, _kernels.evidence_sums, alpha))
        for n in np.unique(row_size).tolist():
            is_n = row_size == n
            sums = _sums_at(totals[is_n], _kernels.evidence_sums, n * alpha)
            np.subtract.at(level, row_table[is_n], sums)
    likeliest = np.zeros(len(evidence.mixed), dtype=np.int64)
    np.add.at(likeliest, table, _sums_at(counts, _kernels.likeliest_sums))
    np.subtract.at(likeliest, row_table, _sums_at(totals, _kernels.likeliest_sums))
    _kernels.mix(evidence)
    for side, sign in ((0, -1), (1, 1)):  # the tables without and with the edge
        tables = contrasts.tables[:, :, side]
        places, contrast = np.nonzero(tables >= 0)
        distinct, first = np.unique(tables[places, contrast], return_index=True)
        owners = contrasts.owners[contrast[first]]
        plain, mixed = evidence.levels[distinct, _kernels.PLAIN], evidence.mixed[distinct]
        for kind, logs in enumerate((plain, mixed, mixed if side else likeliest[distinct])):
            np.add.at(evidence.totals[kind], owners, sign * logs)


def _sums_at(points: IntArray, sums: Callable[..., IntArray], *alpha: float) -> IntArray:
    """Return the running sums at points in any order."""
    distinct, index = np.unique(points, return_inverse=True)
    return sums(distinct, *alpha)[index]
