"""Compiled loops over the rounds of a trial.

They have a module of their own, loaded when first called, because `import dowise` and the commands
of live experiments import this package and must not load numba.
"""

from __future__ import annotations

import numpy as np

from dowise.compiling import kernel


@kernel()
def keep_rounds(rounds, regrets, arms, first, totals, places):
    """Fill in the cumulative regret and the arm at each of these rounds, counted from 1.

    `regrets` and `arms` have all rounds of a trial; `first` is the position of its arm 0.
    """
    total, start = 0.0, 0
    for k in range(len(rounds)):
        for t in range(start, rounds[k]):
            total += regrets[t]
        totals[k], start = total, rounds[k]
        places[k] = first + arms[start - 1]


@kernel()
def number_by_first(positions, used, numbers):
    """Number positions in order of first occurrence; return the number of distinct ones.

    used[i] becomes the position of number i, numbers[t] the number of positions[t]; `used` has
    room for all possible positions.
    """
    ranks, count = np.full(len(used), -1), 0
    for t in range(len(positions)):
        position = positions[t]
        if ranks[position] < 0:
            ranks[position], used[count] = count, position
            count += 1
        numbers[t] = ranks[position]
    return count
