"""The compiled loops of a model: running a circuit, and letting a world run.

Lanes are innermost: a slot of a circuit is a row of `values`, and a column is one draw. What a
world's loops are handed is in `dowise.model.sampling`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dowise.compiling import kernel
from dowise.model.circuit import QUOTIENT, Operations

__all__ = [
    "observe_round",
    "play_round",
    "run_circuit",
    "sample_contexts",
    "sample_record",
    "unrolled",
]


class Program(NamedTuple):
    """A circuit as kernels read it off its tape."""

    slots: int
    constants: Any
    block_slots: Any
    block_sizes: Any
    operations: Operations
    results: Any


@njit(inline="always")
def unrolled(tape):
    """The circuit of a tape; all arrays are views of it. For other kernels only."""
    slots, constants, blocks, count, pairs = tape[0], tape[1], tape[2], tape[3], tape[4]
    a = 7 + constants
    b = a + 2 * blocks
    c = b + 2 * count
    d = c + count + 1
    operations = Operations(
        tape[b : b + count], tape[b + count : c], tape[c:d], tape[d : d + pairs],
        tape[d + pairs : d + 2 * pairs],
    )  # fmt: skip
    results = tape[d + 2 * pairs :].reshape(tape[5], tape[6])
    numbers = tape[7:a].view(np.float64)
    return Program(slots, numbers, tape[a : a + blocks], tape[a + blocks : b], operations, results)


@kernel()
def run_circuit(values, lanes, operations, undefined):
    """Run every operation on `lanes` columns of `values`, whose rows are the slots.

    A quotient by 0 is undefined: undefined[lane] is what it then shall be.
    """
    for i in range(len(operations.outputs)):
        out = values[operations.outputs[i]]
        start, stop = operations.starts[i], operations.starts[i + 1]
        a, b = values[operations.lefts[start]], values[operations.rights[start]]
        if operations.kinds[i] == QUOTIENT:
            for lane in range(lanes):
                out[lane] = a[lane] / b[lane] if b[lane] > 0 else undefined[lane]
            continue
        if stop - start == 1:
            for lane in range(lanes):
                out[lane] = a[lane] * b[lane]
            continue
        c, d = values[operations.lefts[start + 1]], values[operations.rights[start + 1]]
        for lane in range(lanes):
            out[lane] = a[lane] * b[lane] + c[lane] * d[lane]
        for k in range(start + 2, stop):
            a, b = values[operations.lefts[k]], values[operations.rights[k]]
            for lane in range(lanes):
                out[lane] += a[lane] * b[lane]


@kernel()
def sample_record(entries, codes, order, starts, strides, sizes, uniforms):
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
        value, below = 0, entries[row]
        while below <= uniforms[i] and value < sizes[v] - 1:
            value += 1
            below += entries[row + value]
        codes[v] = value


@kernel()
def sample_contexts(mechanism, uniforms, contexts):
    """contexts[t] = what is seen before the choice when the world runs by itself on uniforms[t].

    Only the context and what comes before it is drawn, for nothing else is looked at.
    """
    order, strides = mechanism.order, mechanism.strides
    needed = np.zeros(len(order), dtype=np.bool_)
    for k in range(len(mechanism.context)):
        needed[mechanism.context[k]] = True
    for i in range(len(order) - 1, -1, -1):
        for u in range(len(order)):
            if needed[order[i]] and strides[order[i], u] > 0:
                needed[u] = True
    codes = np.empty(len(order), dtype=np.int64)
    for t in range(len(uniforms)):
        for v in range(len(codes)):
            codes[v] = -1 if needed[v] else 0
        sample_record(
            mechanism.entries[0], codes, order, mechanism.starts, strides, mechanism.sizes,
            uniforms[t],
        )  # fmt: skip
        for k in range(len(mechanism.context)):
            contexts[t, k] = codes[mechanism.context[k]]


@kernel()
def play_round(script, t, arm, codes):
    """Let the world run in round t under an arm; `codes` comes back with all of its variables."""
    mechanism, c = script.mechanism, script.contexts[t]
    for v in range(len(codes)):
        codes[v] = mechanism.fixed[arm, v]
    for k in range(len(mechanism.context)):
        codes[mechanism.context[k]] = script.known[c, k]
    entries = mechanism.entries[min(c, len(mechanism.entries) - 1)]
    sample_record(
        entries, codes, mechanism.order, mechanism.starts, mechanism.strides, mechanism.sizes,
        script.uniforms[t],
    )  # fmt: skip


@kernel()
def observe_round(script, t, arm, codes, seen):
    """The same; `seen` comes back with the observed variables, in the problem's order."""
    play_round(script, t, arm, codes)
    for v in range(len(seen)):
        seen[v] = codes[script.mechanism.observed[v]]
