"""Kernels of races."""

from __future__ import annotations

import numpy as np

from dowise.compiling import kernel

__all__ = ["number_by_first"]


@kernel()
def number_by_first(positions, used, numbers):
    """Number positions in the order of their first rounds; say how many are different.

    used[i] becomes the position of number i, numbers[t] the number of that of round t; `used` has
    room for all positions that there may be.
    """
    ranks, count = np.full(len(used), -1), 0
    for t in range(len(positions)):
        here = positions[t]
        if ranks[here] < 0:
            ranks[here], used[count] = count, here
            count += 1
        numbers[t] = ranks[here]
    return count
