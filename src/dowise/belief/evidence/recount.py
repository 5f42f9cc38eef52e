"""The evidence worked out from distinct records with their counts, not record by record.

All evidence is a function of how often each entry was seen, in whole numbers: it is the same here,
to the last bit, as what the kernels add up when records come one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.compiling import kernels_of
from dowise.model.alternatives import Contrasts

__all__ = ["recount"]

Integers = NDArray[np.int64]
_kernels = kernels_of("dowise.belief.evidence.kernels")


def recount(
    told: Any, tables: Any, contrasts: Contrasts, codes: Integers, place: Integers, times: Integers
) -> None:
    """Fill in what records say: codes[:, i] was seen times[i] under contrasts.tables[place[i]].

    Nothing may have been counted before; how large the evidence has been is left as it is.
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


def _at(points: Integers, sums: Callable[..., Integers], *given: float) -> Integers:
    """The running sums at these points."""
    distinct, which = np.unique(points, return_inverse=True)
    return sums(distinct, *given)[which]


def _add_up(told: Any, contrasts: Contrasts, most: Integers) -> None:
    """The totals of all alternatives, from the tables of both sides."""
    for side, sign in ((0, -1), (1, 1)):
        tables = contrasts.tables[:, :, side]
        places, contrast = np.nonzero(tables >= 0)
        own, first = np.unique(tables[places, contrast], return_index=True)
        owners = contrasts.owners[contrast[first]]
        plain, mixed = told.levels[own, _kernels.PLAIN], told.mixed[own]
        for kind, logs in enumerate((plain, mixed, mixed if side else most[own])):
            np.add.at(told.totals[kind], owners, sign * logs)
