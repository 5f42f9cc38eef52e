"""Arithmetic circuits: sums of products and quotients of numbered values, as flat arrays.

A circuit is data: one compiled kernel (`kernels.run_circuit`) runs any of them over any number of
lanes, in single or double precision. The builder works on arrays of *values* (constants, inputs and
the results of operations, each identified by a number) and simplifies as it builds: products with 0
are dropped, a product with 1 is the other factor, and equal operations are done once.

>>> circuit = Builder()
>>> a, b = circuit.inputs(2)
>>> circuit.sums([[a, b]], [[b, ONE]]) == circuit.sums([[b, b]], [[ONE, a]])     # ab + b
array([ True])
>>> circuit.sums([[a, b]], [[ZERO, ONE]]).tolist() == [b]
True
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dowise._core.types import BoolArray, FloatArray, IntArray

_NEVER = np.iinfo(np.int64).max


ZERO, ONE = 0, 1  # values that every circuit has
SUM, QUOTIENT = 0, 1
_SHIFT = 31  # a pair of values is one integer: 31 bits for each
_LOWER = (1 << _SHIFT) - 1


class TooLargeError(Exception):
    """Raised if a circuit would have more values than its limit."""


class Operations(NamedTuple):
    """Operations of a circuit; operation i computes slot outputs[i].

    kinds[i] is SUM, Σ lefts·rights over its pairs, or QUOTIENT, left/right of its only pair. Its
    pairs are those from starts[i] to starts[i + 1].
    """

    kinds: IntArray
    outputs: IntArray
    starts: IntArray
    lefts: IntArray
    rights: IntArray


class Circuit(NamedTuple):
    """Circuit over *slots*, each of which holds one value at a time.

    The first slots hold the constants. A block of inputs has neighbouring slots:
    block k has block_sizes[k] of them from block_slots[k] on, and is the builder's block number
    blocks[k]; blocks that no result needs are left out. Slots of operations are used again as soon
    as their value is no longer needed.
    """

    slots: int
    constants: FloatArray
    blocks: IntArray
    block_slots: IntArray
    block_sizes: IntArray
    operations: Operations
    results: IntArray
    """Slots of the results, in the shape that was passed to `Builder.finish`."""

    tape: IntArray
    """The whole circuit in one array, for kernels that are called often: see `kernels.unrolled`."""

    @property
    def multiplications(self) -> int:
        """Number of multiplications and divisions per lane."""
        return len(self.operations.lefts)


class Builder:
    """Builder of a circuit: numbers constants, inputs and operations, each distinct one once."""

    def __init__(self) -> None:
        self.limit = sys.maxsize
        """Maximum number of values; beyond it `TooLargeError` is raised."""
        self.count = 2
        self._constants: dict[float, int] = {0.0: ZERO, 1.0: ONE}
        self._blocks: list[tuple[IntArray, IntArray]] = []  # first values and sizes
        self._values: tuple[dict[bytes, int], ...] = ({}, {})  # of each kind of operation
        self._batches: list[tuple[int, int, IntArray]] = []  # kind, first value, pairs of each

    def constant(self, number: float) -> int:
        """Return the value of a constant."""
        if number not in self._constants:
            self._constants[number] = self._new(1)
        return self._constants[number]

    def inputs(self, size: int) -> IntArray:
        """Return the values of a new block of inputs."""
        return self.input_blocks(np.array([size]))

    def input_blocks(self, sizes: IntArray) -> IntArray:
        """Return the values of new blocks of inputs, one block after the other."""
        ends = np.cumsum(sizes)
        first = self._new(int(ends[-1]))
        self._blocks.append((first + ends - sizes, sizes))
        return np.arange(first, first + ends[-1])

    def sums(self, lefts: ArrayLike, rights: ArrayLike) -> IntArray:
        """Return the sum of products of each row of pairs: arrays (rows, pairs) -> (rows,)."""
        left, right = np.asarray(lefts, np.int64), np.asarray(rights, np.int64)
        codes = (np.minimum(left, right) << _SHIFT) | np.maximum(left, right)
        if codes.shape[1] > 1:
            codes.sort(axis=1)
        # ZERO is the smallest value, so pairs with it come first.
        dropped = (codes < ONE << _SHIFT).sum(axis=1)
        if not dropped.any():
            return self._sums_of(codes)
        values = np.empty(len(codes), dtype=np.int64)
        for zeros in np.unique(dropped).tolist():
            rows = np.flatnonzero(dropped == zeros)
            values[rows] = self._sums_of(codes[rows, zeros:])
        return values

    def products(self, lefts: ArrayLike, rights: ArrayLike) -> IntArray:
        """Return products, element by element, of two arrays of the same shape."""
        left, right = np.asarray(lefts, np.int64), np.asarray(rights, np.int64)
        return self.sums(left.reshape(-1, 1), right.reshape(-1, 1)).reshape(left.shape)

    def quotients(self, tops: ArrayLike, bottoms: ArrayLike) -> IntArray:
        """Return quotients, element by element; the kernel has a parameter for quotients by 0."""
        top, bottom = np.asarray(tops, np.int64), np.asarray(bottoms, np.int64)
        codes = ((top << _SHIFT) | bottom).reshape(-1, 1)
        return self._operations(QUOTIENT, codes).reshape(top.shape)

    def finish(self, results: ArrayLike, keep: bool = False) -> Circuit:
        """Return the circuit that computes these values and nothing else.

        With `keep` no slot is used twice, so that all values exist after a run: operation i has the
        i-th slot after the inputs.
        """
        results = np.asarray(results, np.int64)
        needed = np.zeros(self.count, dtype=bool)
        needed[results] = True
        kinds, outputs, starts, lefts, rights = self._live(needed)
        constants = [(value, x) for x, value in self._constants.items() if needed[value]]
        firsts, sizes = map(np.concatenate, zip(*self._blocks, strict=True))
        needed_before = np.concatenate([[0], np.cumsum(needed)])
        blocks = np.flatnonzero(needed_before[firsts + sizes] > needed_before[firsts])
        firsts, sizes = firsts[blocks], sizes[blocks]
        ends = len(constants) + np.cumsum(sizes)
        inputs = np.repeat(firsts - (ends - sizes), sizes) + np.arange(sizes.sum()) + len(constants)
        slot_of = np.zeros(self.count, dtype=np.int64)
        slot_of[[value for value, _ in constants]] = np.arange(len(constants))
        slot_of[inputs] = len(constants) + np.arange(len(inputs))
        slots = len(constants) + len(inputs)
        if keep:
            slot_of[outputs] = slots + np.arange(len(outputs))
            slots += len(outputs)
        else:
            slots = assign_slots(slot_of, slots, outputs, starts, lefts, rights, results)
        operations = Operations(kinds, slot_of[outputs], starts, slot_of[lefts], slot_of[rights])
        numbers = np.array([x for _, x in constants])
        tape = _tape(slots, numbers, ends - sizes, sizes, operations, slot_of[results])
        return Circuit(
            slots, numbers, blocks, ends - sizes, sizes, operations, slot_of[results], tape
        )

    def _live(self, needed: BoolArray) -> Operations:
        """Return the operations that are needed, on values.

        `needed` marks the results and is extended by everything they need. No operation depends on
        another one of its batch, so that a batch is handled at once.
        """
        none = np.zeros(0, dtype=np.int64)
        parts = []
        for kind, first, codes in reversed(self._batches):
            live = np.flatnonzero(needed[first : first + len(codes)])
            pairs = codes[live]
            needed[pairs >> _SHIFT] = needed[pairs & _LOWER] = True
            terms = np.full(len(live), codes.shape[1])
            parts.append((np.full(len(live), kind), first + live, terms, pairs.ravel()))
        parts.append((none, none, none, none))
        kinds, outputs, terms, codes = map(np.concatenate, zip(*reversed(parts), strict=True))
        starts = np.concatenate([[0], np.cumsum(terms)])
        return Operations(kinds, outputs, starts, codes >> _SHIFT, codes & _LOWER)

    def _sums_of(self, codes: IntArray) -> IntArray:
        """Return the sums of rows of pairs, none of which has ZERO."""
        terms = codes.shape[1]
        if terms > 1:
            return self._operations(SUM, codes)
        if terms == 0:
            return np.full(len(codes), ZERO)
        values = codes[:, 0] & _LOWER  # the other one of a pair with ONE
        proper = np.flatnonzero(codes[:, 0] >> _SHIFT != ONE)
        if len(proper):
            values[proper] = self._operations(SUM, codes[proper])
        return values

    def _operations(self, kind: int, codes: IntArray) -> IntArray:
        """Return the value of each row of pairs, a new one if there is no such operation yet."""
        codes = np.ascontiguousarray(codes)
        rows = codes.view(np.dtype((np.void, 8 * codes.shape[1])))
        keys: list[bytes] = rows.ravel().tolist()  # type: ignore[assignment] # of void
        value_of, values, new = self._values[kind], [], []
        count = self.count
        for row, key in enumerate(keys):
            value = value_of.get(key)
            if value is None:
                value = value_of[key] = count
                new.append(row)
                count += 1
            values.append(value)
        if count > self.limit:
            for row in new:
                del value_of[keys[row]]
            raise TooLargeError
        if new:
            self._batches.append((kind, self.count, codes if len(new) == len(keys) else codes[new]))
            self.count = count
        return np.array(values, dtype=np.int64)

    def _new(self, size: int) -> int:
        if self.count + size > self.limit:
            raise TooLargeError
        self.count += size
        return self.count - size


def _tape(
    slots: int,
    constants: FloatArray,
    block_slots: IntArray,
    block_sizes: IntArray,
    operations: Operations,
    results: IntArray,
) -> IntArray:
    """Return seven sizes, then the arrays one after the other, the constants as bits.

    Passing a tuple of arrays to a kernel takes more than a microsecond, one array a fifth of that.
    """
    table = np.atleast_2d(results)
    sizes = [
        slots,
        len(constants),
        len(block_slots),
        len(operations.outputs),
        len(operations.lefts),
        *table.shape,
    ]
    parts = [np.array(sizes), constants.view(np.int64), block_slots, block_sizes]
    return np.concatenate([*parts, *operations, table.ravel()])


def assign_slots(
    slot_of: IntArray,
    slots: int,
    outputs: IntArray,
    starts: IntArray,
    lefts: IntArray,
    rights: IntArray,
    results: IntArray,
) -> int:
    """Assign a slot to every operation, reusing free ones, and return the number of slots.

    `slot_of` has the slots of constants and inputs, which stay, and is filled in. An output never
    shares a slot with an operand of its operation: the kernel writes before it has read everything.
    """
    owners = np.repeat(np.arange(len(outputs)), np.diff(starts))
    last_use = np.full(len(slot_of), -1, dtype=np.int64)
    last_use[lefts] = owners  # owners are ascending, so the last one wins
    last_use[rights] = np.maximum(last_use[rights], owners)
    last_use[results] = _NEVER
    # Values in the order of the operation that uses them last.
    used_up = outputs[np.argsort(last_use[outputs], kind="stable")]
    ends = np.searchsorted(last_use[used_up], np.arange(len(outputs)), side="right").tolist()
    begin = int(np.searchsorted(last_use[used_up], 0))
    by_last_use, assigned = used_up.tolist(), {}
    free: list[int] = []
    for i, value in enumerate(outputs.tolist()):
        if free:
            assigned[value] = free.pop()
        else:
            assigned[value] = slots
            slots += 1
        free += [assigned[x] for x in by_last_use[begin : ends[i]]]
        begin = ends[i]
    slot_of[list(assigned)] = list(assigned.values())
    return slots
