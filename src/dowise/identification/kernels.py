"""The compiled loops of the estimators: counting resampled records, and running the circuit."""

from __future__ import annotations

from numba import njit

__all__ = ["fill_marginals", "run_circuit"]


@njit(cache=True)
def fill_marginals(values, firsts, sizes, strides, records, weights):
    """Count the records of one arm in all its tables, lane by lane; see `circuit.Marginals`.

    records[r] are the positions of a record's values; weights[r, lane] how often it was drawn. The
    second half of the lanes repeats the first.
    """
    lanes = weights.shape[1]
    for k in range(len(firsts)):
        first = firsts[k]
        for slot in range(first, first + sizes[k]):
            values[slot, :] = 0.0
        for r in range(len(records)):
            slot = first
            for v in range(records.shape[1]):
                slot += records[r, v] * strides[k, v]
            out, drawn = values[slot], weights[r]
            for lane in range(lanes):
                out[lane] += drawn[lane]
        for slot in range(first, first + sizes[k]):
            for lane in range(lanes):
                values[slot, lanes + lane] = values[slot, lane]


@njit(cache=True, fastmath={"contract"})
def run_circuit(values, lanes, kinds, outputs, starts, lefts, rights):
    """Run every operation on twice `lanes` columns; kind 0 is a sum of products, 1 a quotient.

    A quotient by 0 is undefined: 0 in the first half of the lanes, 1 in the second.
    """
    for i in range(len(outputs)):
        out = values[outputs[i]]
        start, stop = starts[i], starts[i + 1]
        a, b = values[lefts[start]], values[rights[start]]
        if kinds[i] == 1:
            for lane in range(lanes):
                out[lane] = a[lane] / b[lane] if b[lane] > 0 else 0.0
            for lane in range(lanes, 2 * lanes):
                out[lane] = a[lane] / b[lane] if b[lane] > 0 else 1.0
            continue
        for lane in range(2 * lanes):
            out[lane] = a[lane] * b[lane]
        for k in range(start + 1, stop):
            a, b = values[lefts[k]], values[rights[k]]
            for lane in range(2 * lanes):
                out[lane] += a[lane] * b[lane]
