"""Kernels of the evidence against a graph.

All evidence is counted in integer numbers of 2⁻³⁶ nats, as in `dowise.belief.mixture_kernels`: it
is a function of the counts, to the last bit, whatever the order of the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit

from dowise._core.kernels import kernel, lazy_kernels
from dowise._core.types import IntArray
from dowise.belief.variates import log64
from dowise.model.missing_edges import Contrasts

NAT = float(2**36)  # one nat
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
    """Return nats as an integer number of 2⁻³⁶ nats."""
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
    """Return the entry of a table that was seen, or −1 if a value is missing."""
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
def _count(told, tables, t, entry, code, step):
    """Count an entry; returns the changes of the three logarithms of the table.

    These are of the evidence under the concentration 1, of the mean over all concentrations, and of
    the largest likelihood, Π (c_k / Σc)^c_k over all rows.
    """
    size = tables.sizes[tables.axes[tables.first[t + 1] - 1]]
    if step < 0:
        told.counts[entry] += step
    seen, total = told.counts[entry], int64(0)
    for k in range(entry - code, entry - code + size):
        total += told.counts[k]
    plain = int64(0)
    for i in range(len(LEVELS)):
        alpha = LEVELS[i]
        gained = _nats(log64(alpha + seen)) - _nats(log64(size * alpha + total))
        told.levels[t, i] += step * gained
        if i == PLAIN:
            plain = step * gained
    before = told.mixed[t]
    told.mixed[t] = _nats(_log_mean(told.levels[t], NAT))
    if step > 0:
        told.counts[entry] += step
    return plain, told.mixed[t] - before, step * (_likeliest(seen) - _likeliest(total))


@kernel()
def watch_record(told, tables, under, codes, step):
    """Count (`step` 1) or retract (−1) a record, in every contrast that was seen completely.

    under[i] are the two tables of contrast i under the arm. The table with the edge needs all
    values that the one without it needs, so both count the same records. Returns True if any did.
    """
    is_told = False
    for i in range(len(under)):
        without, having = under[i]
        if without < 0:
            continue
        entry = _entry(tables, having, codes)
        if entry < 0:
            continue
        a, other = tables.owners[i], _entry(tables, without, codes)
        code = codes[tables.axes[tables.first[having + 1] - 1]]
        plain, mixed, _ = _count(told, tables, having, entry, code, step)
        null_plain, null_mixed, null_most = _count(told, tables, without, other, code, step)
        told.totals[0, a] += plain - null_plain
        told.totals[1, a] += mixed - null_mixed
        told.totals[2, a] += mixed - null_most
        told.scored[a] += step
        is_told = True
    return is_told


@kernel()
def watch_many(told, tables, under, codes, place, path):
    """Count many records: record i has codes[:, i], and its tables are under[place[i]].

    path[kind, i] becomes the logarithm of the mean e-value over all alternatives after record i,
    of the mixture and of the strict one; −∞ if the record counted nowhere, so that it is unchanged.
    """
    one = codes.ndim - 1  # a literal would be compiled again as its own type
    seen = np.empty(len(codes), dtype=np.int64)
    for i in range(len(place)):
        for v in range(len(seen)):
            seen[v] = codes[v, i]
        is_told = watch_record(told, tables, under[place[i]], seen, one)
        for kind in range(len(path)):
            if not is_told:
                path[kind, i] = -np.inf
                continue
            largest, now = told.largest[kind], told.totals[kind + 1]
            for a in range(len(now)):
                largest[a] = max(largest[a], now[a])
            path[kind, i] = _log_mean(now, NAT)


# -- the same from counts, see `recount` --------------------------------------------------------


@kernel()
def count_times(told, tables, under, codes, place, times):
    """Count record i times[i] times: only counts, and numbers of values compared."""
    seen = np.empty(len(codes), dtype=np.int64)
    for r in range(len(place)):
        for v in range(len(seen)):
            seen[v] = codes[v, r]
        for i in range(len(tables.owners)):
            without, having = under[place[r], i]
            if without < 0:
                continue
            entry = _entry(tables, having, seen)
            if entry >= 0:
                told.counts[entry] += times[r]
                told.counts[_entry(tables, without, seen)] += times[r]
                told.scored[tables.owners[i]] += times[r]


@kernel()
def evidence_sums(points, alpha):
    """Return log(alpha) + log(alpha + 1) + …, n terms, for each n of ascending points."""
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
    """Return n log n, as `watch_record` adds it up, for each n of ascending points."""
    sums = np.empty(len(points), dtype=np.int64)
    total, count = int64(0), int64(0)
    for i in range(len(points)):
        while count < points[i]:
            total += _likeliest(count)
            count += 1
        sums[i] = total
    return sums


@kernel()
def mix(told):
    """Compute the logarithm of each table's mean evidence over all concentrations."""
    for t in range(len(told.mixed)):
        told.mixed[t] = _nats(_log_mean(told.levels[t], NAT))


_kernels = lazy_kernels("dowise.belief.monitor_kernels")


def recount(
    told: Any, tables: Any, contrasts: Contrasts, codes: IntArray, place: IntArray, times: IntArray
) -> None:
    """Fill in the evidence of records: codes[:, i], times[i] times, under tables[place[i]].

    Nothing may have been counted before; the largest values so far are left unchanged.
    """
    if not len(times) or not len(contrasts.alternatives):
        return
    _kernels.count_times(told, tables, contrasts.tables, codes, place, times)
    layout = contrasts.layout
    entries = np.flatnonzero(told.counts)
    counts = told.counts[entries]
    table = np.searchsorted(layout.starts, entries, side="right") - 1
    size = layout.sizes[layout.targets[table]]
    rows, first, which = np.unique(
        entries - (entries - layout.starts[table]) % size, return_index=True, return_inverse=True
    )
    totals = np.zeros(len(rows), dtype=np.int64)
    np.add.at(totals, which, counts)
    row_table, row_size = table[first], size[first]
    for i, alpha in enumerate(_kernels.LEVELS):
        level = told.levels[:, i]
        np.add.at(level, table, _at(counts, _kernels.evidence_sums, alpha))
        for own in np.unique(row_size).tolist():
            of = row_size == own
            lost = _at(totals[of], _kernels.evidence_sums, own * alpha)
            np.subtract.at(level, row_table[of], lost)
    most = np.zeros(len(told.mixed), dtype=np.int64)
    np.add.at(most, table, _at(counts, _kernels.likeliest_sums))
    np.subtract.at(most, row_table, _at(totals, _kernels.likeliest_sums))
    _kernels.mix(told)
    _add_up(told, contrasts, most)


def _at(points: IntArray, sums: Callable[..., IntArray], *given: float) -> IntArray:
    """Return the running sums at these points."""
    distinct, which = np.unique(points, return_inverse=True)
    return sums(distinct, *given)[which]


def _add_up(told: Any, contrasts: Contrasts, most: IntArray) -> None:
    """Compute the totals of all alternatives from the tables of both sides."""
    for side, sign in ((0, -1), (1, 1)):
        tables = contrasts.tables[:, :, side]
        places, contrast = np.nonzero(tables >= 0)
        own, first = np.unique(tables[places, contrast], return_index=True)
        owners = contrasts.owners[contrast[first]]
        plain, mixed = told.levels[own, _kernels.PLAIN], told.mixed[own]
        for kind, logs in enumerate((plain, mixed, mixed if side else most[own])):
            np.add.at(told.totals[kind], owners, sign * logs)
