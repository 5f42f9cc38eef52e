"""Lanes where edges are doubtful: every context that counts, with every set of edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Mixture
from dowise.belief.edge_sets import edge_sets
from dowise.model import Codes
from dowise.model.backward import Trace
from dowise.model.reading import Reading
from dowise.policies.commit_look import Lanes

__all__ = ["MOST_CONTEXTS", "mixed_lanes", "most_lanes"]

MOST_CONTEXTS = 64  # count, those that were seen most often
MOST_SETS = 64
_ROOM = 2**22  # numbers that a decision may keep at a time: 32 MB

Integers = NDArray[np.int64]


def mixed_lanes(
    mixture: Mixture, contexts: list[Codes], visits: Integers, now: int, every: bool, most: int
) -> Lanes:
    """A lane for each context that counts and each set of edges, about `most` of them."""
    counts = np.ones(len(contexts), dtype=bool) if every else visits > 0
    counts[np.argsort(-visits, kind="stable")[min(MOST_CONTEXTS, most) :]] = False
    counts[now] = True
    kept = np.flatnonzero(counts)
    often = 1.0 + visits[kept]
    versions, chances = edge_sets(mixture, max(1, min(MOST_SETS, most // len(kept))))
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


def most_lanes(trace: Trace) -> int:
    """How many lanes there is room for, at least one."""
    inputs, arms = trace.first - len(trace.constants), len(trace.results)
    size: int = 2 * trace.slots + arms * (inputs + len(trace.block_slots))
    return max(1, _ROOM // size)


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
