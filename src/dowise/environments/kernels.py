"""The compiled loops that let a world run."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["sample_contexts", "sample_record"]


@njit(cache=True)
def sample_record(cpts, codes, order, starts, strides, sizes, uniforms):
    """Draw every variable whose code is negative, in an order with causes before effects.

    codes[v] is the position of v's value; variable order[i] uses uniforms[i].
    """
    for i in range(len(order)):
        v = order[i]
        if codes[v] >= 0:
            continue
        row = starts[v]
        for u in range(len(codes)):
            if u != v and strides[v, u] > 0:
                row += codes[u] * strides[v, u]
        value, below = 0, cpts[row]
        while below <= uniforms[i] and value < sizes[v] - 1:
            value += 1
            below += cpts[row + value]
        codes[v] = value


@njit(cache=True)
def sample_contexts(cpts, order, starts, strides, sizes, uniforms, places, contexts):
    """contexts[t] = the codes at `places` when the world runs by itself on uniforms[t]."""
    codes = np.empty(len(order), dtype=np.int64)
    for t in range(len(uniforms)):
        codes[:] = -1
        sample_record(cpts, codes, order, starts, strides, sizes, uniforms[t])
        for k in range(len(places)):
            contexts[t, k] = codes[places[k]]
