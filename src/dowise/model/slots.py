"""Where the values of a circuit are kept: slots are used again once their value is used up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["spread_slots"]

Integers = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max


def spread_slots(
    slot_of: Integers,
    slots: int,
    outputs: Integers,
    starts: Integers,
    lefts: Integers,
    rights: Integers,
    results: Integers,
) -> int:
    """Give every operation a slot, reusing those whose value is used up; how many there are.

    `slot_of` has the slots of constants and inputs, which stay, and is filled in. An output never
    shares a slot with an operand of its own operation: the kernel writes before it has read
    everything.
    """
    owners = np.repeat(np.arange(len(outputs)), np.diff(starts))
    last_use = np.full(len(slot_of), -1, dtype=np.int64)
    last_use[lefts] = owners  # of several the last one counts, and they rise
    last_use[rights] = np.maximum(last_use[rights], owners)
    last_use[results] = _NEVER
    # The values that are used up by each operation, in the order of operations.
    used_up = outputs[np.argsort(last_use[outputs], kind="stable")]
    ends = np.searchsorted(last_use[used_up], np.arange(len(outputs)), side="right").tolist()
    begin = int(np.searchsorted(last_use[used_up], 0))
    waiting, assigned = used_up.tolist(), {}
    free: list[int] = []
    for i, value in enumerate(outputs.tolist()):
        if free:
            assigned[value] = free.pop()
        else:
            assigned[value] = slots
            slots += 1
        free += [assigned[x] for x in waiting[begin : ends[i]]]
        begin = ends[i]
    slot_of[list(assigned)] = list(assigned.values())
    return slots
