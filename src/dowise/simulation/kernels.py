"""Kernels of races."""

from __future__ import annotations

import numpy as np

from dowise.compiling import kernel

__all__ = ["keep_rounds", "number_by_first"]


@kernel()
def keep_rounds(rounds, regrets, arms, first, totals, places):
    """Of these rounds, counted from 1, the regret up to then and the place of the arm.

    `regrets` and `arms` have all rounds of a trial, whose arm 0 has the place `first`.
    """
    total, start = 0.0, 0
    for k in range(len(rounds)):
        for t in range(start, rounds[k]):
            total += regrets[t]
        totals[k], start = total, rounds[k]
        places[k] = first + arms[start - 1]


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
