"""Lanes where edges are doubtful: every context that counts, with every set of edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Mixture
from dowise.belief.edge_sets import edge_sets
from dowise.model import Codes
from dowise.model.reading import Reading
from dowise.policies.commit_look import MOST_CONTEXTS, Lanes

__all__ = ["MOST_SETS", "mixed_lanes"]

MOST_SETS = 64

Integers = NDArray[np.int64]


def mixed_lanes(
    mixture: Mixture, contexts: list[Codes], visits: Integers, now: int, every: bool
) -> Lanes:
    """A lane for each context that counts and each set of edges."""
    counts = np.ones(len(contexts), dtype=bool) if every else visits > 0
    counts[np.argsort(-visits, kind="stable")[MOST_CONTEXTS:]] = False
    counts[now] = True
    kept = np.flatnonzero(counts)
    often = 1.0 + visits[kept]
    versions, chances = edge_sets(mixture, MOST_SETS)
    reading = mixture.shared.trace_reading
    parts = [_rows(reading, own, len(mixture.model.trace.blocks)) for own in versions]
    first, leaders, shifts = (np.array(part) for part in zip(*parts, strict=True))
    codes = np.array([contexts[c] for c in kept], dtype=np.int64).reshape(len(kept), -1)
    rows = first[None] + np.einsum("srx,cx->csr", shifts, codes)
    sets, present = len(versions), int(np.searchsorted(kept, now))
    return Lanes(
        np.ascontiguousarray(rows.reshape(-1, rows.shape[2])),
        np.tile(leaders, (len(kept), 1)),
        np.outer(often / often.sum(), chances / chances.sum()).ravel(),
        np.tile(present * sets + np.arange(sets), len(kept)),
    )


def _rows(reading: Reading, versions: Integers, blocks: int) -> tuple[Integers, Integers, Integers]:
    """Of each block the row that it reads, the first block that reads it, and how contexts move."""
    rows, leaders = np.zeros(blocks, dtype=np.int64), np.arange(blocks)
    shifts = np.zeros((blocks, reading.shifts.shape[1]), dtype=np.int64)
    for m in versions[reading.variables].tolist():
        for r in range(reading.reads[m], reading.reads[m + 1]):
            own = reading.blocks[reading.targets[r] : reading.targets[r + 1]]
            rows[own], leaders[own] = reading.entries[r], own.min()
            shifts[own] = reading.shifts[r]
    return rows, leaders, shifts
