"""Draws in double precision, for Dirichlet parameters so small that single precision saturates.

With a parameter of 0.05 half of the mass of a Beta distribution lies within 1e-7 of 0 or 1 or so:
in single precision many arms have exactly the reward 1, and the first of them would be taken for
the best. Here all values of the reward are kept, so that what is missing to 1 has digits of its
own, and logarithms go to where a double ends, 1e-308. The random numbers are those of the fast
kernel, lane for lane.
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from dowise.belief.gamma import gammas, take_logs
from dowise.belief.kernels import PADDING, by_betas, draw_row
from dowise.belief.variates import log32, stream_key
from dowise.compiling import kernel
from dowise.model.kernels import run_circuit, unrolled

__all__ = ["draw_logs", "draw_whole", "exp64", "normalise"]


@njit(error_model="numpy")
def exp64(x):
    """e^x for x ≤ 0 (0 below −708), to about 2e-16 of its size: Cephes' rational approximation.

    Not libm's, which is another one on another machine.
    """
    if x < -708:
        return 0.0
    k = np.floor(x * 1.4426950408889634073599 + 0.5)
    r = x - k * 6.93145751953125e-1
    r -= k * 1.42860682030941723212e-6
    r2 = r * r
    p = r * ((1.26177193074810590878e-4 * r2 + 3.02994407707441961300e-2) * r2 + 1.0)
    q = 3.00198505138664455042e-6 * r2 + 2.52448340349684104192e-3
    q = (q * r2 + 2.27265548208155028766e-1) * r2 + 2.0
    power = np.int64((int64(k) + int64(1023)) << int64(52)).view(np.float64)
    return (1.0 + 2.0 * (p / (q - p))) * power


@kernel()
def draw_whole(key, prior, counts, rows, tape, block, begin, out):
    """Fill out[arm, y, draw] with P(Y = y | do(arm), c), y = 0 included; see `draw_results`."""
    circuit = unrolled(tape)
    draws = out.shape[2]
    width = block + PADDING
    values = np.empty((circuit.slots, width))
    logs = np.empty((circuit.block_sizes.max(), width), dtype=np.float32)
    undefined = values[0, :0]
    for i in range(len(circuit.constants)):
        values[i, :] = circuit.constants[i]
    for first in range(0, draws, block):
        lanes = min(block, draws - first)
        for r in range(len(rows)):
            entry, size, slot = rows[r], circuit.block_sizes[r], circuit.block_slots[r]
            draw_logs(key, prior, counts, entry, size, begin + first, lanes, logs)
            normalise(logs[:size], values, slot, lanes)
        run_circuit(values, lanes, circuit.operations, undefined)
        for arm in range(out.shape[0]):
            for y in range(out.shape[1]):
                row = values[circuit.results[arm, y]]
                for lane in range(lanes):  # rounding may have carried a sum beyond 1
                    out[arm, y, first + lane] = min(row[lane], 1.0)


@kernel()
def draw_logs(key, prior, counts, entry, size, first, lanes, logs):
    """The logarithms of the entries of a row, but for what is the same for all of them."""
    shapes = np.empty(size)
    for k in range(size):
        shapes[k] = prior[entry + k] + counts[entry + k]
    if by_betas(shapes, lanes):
        total, origin = np.empty(lanes, dtype=np.float32), size - size
        draw_row(key, entry, first, shapes, logs, origin, total, lanes)
    for k in range(size):
        if by_betas(shapes, lanes):
            for lane in range(lanes):
                logs[k, lane] = log32(logs[k, lane])
        else:
            stream = stream_key(key[0], key[1], entry + k)
            gammas(stream, first, shapes[k] + 1 if shapes[k] < 1 else shapes[k], logs[k], lanes)
            take_logs(stream, first, shapes[k], logs[k], lanes)


@kernel()
def normalise(logs, values, slot, lanes):
    """From logarithms to probabilities."""
    for lane in range(lanes):
        largest = logs[0, lane]
        for k in range(1, len(logs)):
            largest = max(largest, logs[k, lane])
        total = 0.0
        for k in range(len(logs)):
            values[slot + k, lane] = exp64(np.float64(logs[k, lane]) - largest)
            total += values[slot + k, lane]
        for k in range(len(logs)):
            values[slot + k, lane] /= total
