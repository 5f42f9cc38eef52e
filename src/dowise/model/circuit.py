"""Arithmetic circuits: sums of products and quotients of numbered values, as flat arrays.

A circuit is data: one compiled kernel (`kernels.run_circuit`) runs any of them over any number of
lanes, in single or double precision. The builder works on arrays of *values* (constants, inputs and
the results of operations, each known by its number) and simplifies as it builds: a product with 0
is gone, one with 1 is its other factor, and equal operations are done once.

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
from numpy.typing import ArrayLike, NDArray

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


ZERO, ONE = 0, 1  # the values that every circuit has
SUM, QUOTIENT = 0, 1
_SHIFT = 31  # a pair of values is one whole number: 31 bits for each
_LOWER = (1 << _SHIFT) - 1


class TooLargeError(Exception):
    """A circuit that would have more values than its limit."""


class Operations(NamedTuple):
    """Operation i computes slot outputs[i]: kinds[i] is SUM, Σ lefts·rights over its pairs, or
    QUOTIENT, left/right of its only pair; its pairs stand from starts[i] to starts[i + 1]."""

    kinds: Integers
    outputs: Integers
    starts: Integers
    lefts: Integers
    rights: Integers


class Circuit(NamedTuple):
    """A circuit over *slots*, each of which holds one value at a time.

    Slot i holds constants[i], for as many as there are. A block of inputs has neighbouring slots:
    block k has block_sizes[k] of them from block_slots[k] on, and is the builder's block number
    blocks[k]; blocks that no result needs are left out. Slots of operations are used again as soon
    as their value is no longer needed.
    """

    slots: int
    constants: NDArray[np.float64]
    blocks: Integers
    block_slots: Integers
    block_sizes: Integers
    operations: Operations
    results: Integers
    """The slots of the results, in the shape in which they were asked for."""

    tape: Integers
    """All of it in one array, for kernels that are called often: `kernels.unrolled` reads it."""

    @property
    def multiplications(self) -> int:
        """The multiplications and divisions of one lane."""
        return len(self.operations.lefts)


class Builder:
    """Gives numbers to constants, inputs and operations, to equal ones the same."""

    def __init__(self) -> None:
        self.limit = sys.maxsize
        """So many values may there be; beyond it `TooLargeError` is raised."""
        self.count = 2
        self._constants: dict[float, int] = {0.0: ZERO, 1.0: ONE}
        self._blocks: list[tuple[Integers, Integers]] = []  # first values and sizes
        self._known: tuple[dict[bytes, int], ...] = ({}, {})  # of each kind of operation
        self._made: list[tuple[int, int, Integers]] = []  # kind, first value, pairs of each

    def constant(self, number: float) -> int:
        """The value of a number."""
        if number not in self._constants:
            self._constants[number] = self._new(1)
        return self._constants[number]

    def inputs(self, size: int) -> Integers:
        """The values of a new block of inputs."""
        return self.input_blocks(np.array([size]))

    def input_blocks(self, sizes: Integers) -> Integers:
        """The values of new blocks of inputs, one block behind the other."""
        ends = np.cumsum(sizes)
        first = self._new(int(ends[-1]))
        self._blocks.append((first + ends - sizes, sizes))
        return np.arange(first, first + ends[-1])

    def sums(self, lefts: ArrayLike, rights: ArrayLike) -> Integers:
        """For each row of pairs the sum of their products: arrays (rows, pairs) -> (rows,)."""
        one, other = np.asarray(lefts, np.int64), np.asarray(rights, np.int64)
        codes = (np.minimum(one, other) << _SHIFT) | np.maximum(one, other)
        if codes.shape[1] > 1:
            codes.sort(axis=1)
        # ZERO is the smallest value, so pairs with it come first.
        gone = (codes < ONE << _SHIFT).sum(axis=1)
        if not gone.any():
            return self._sums_of(codes)
        found = np.empty(len(codes), dtype=np.int64)
        for lost in np.unique(gone).tolist():
            rows = np.flatnonzero(gone == lost)
            found[rows] = self._sums_of(codes[rows, lost:])
        return found

    def products(self, ones: ArrayLike, others: ArrayLike) -> Integers:
        """Element by element; arrays of one shape."""
        one, other = np.asarray(ones, np.int64), np.asarray(others, np.int64)
        return self.sums(one.reshape(-1, 1), other.reshape(-1, 1)).reshape(one.shape)

    def quotients(self, tops: ArrayLike, bottoms: ArrayLike) -> Integers:
        """Element by element; the kernel is told what a quotient by 0 shall be."""
        top, bottom = np.asarray(tops, np.int64), np.asarray(bottoms, np.int64)
        codes = ((top << _SHIFT) | bottom).reshape(-1, 1)
        return self._operations(QUOTIENT, codes).reshape(top.shape)

    def finish(self, results: ArrayLike, keep: bool = False) -> Circuit:
        """The circuit of these values, without whatever they do not need.

        With `keep` no slot is used twice, so that all values are there when it has run: operation
        i has the i-th slot behind the inputs.
        """
        wanted = np.asarray(results, np.int64)
        needed = np.zeros(self.count, dtype=bool)
        needed[wanted] = True
        kinds, outputs, starts, lefts, rights = self._live(needed)
        constants = [(value, x) for x, value in self._constants.items() if needed[value]]
        firsts, sizes = map(np.concatenate, zip(*self._blocks, strict=True))
        so_many = np.concatenate([[0], np.cumsum(needed)])
        blocks = np.flatnonzero(so_many[firsts + sizes] > so_many[firsts])
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
            slots = spread_slots(slot_of, slots, outputs, starts, lefts, rights, wanted)
        operations = Operations(kinds, slot_of[outputs], starts, slot_of[lefts], slot_of[rights])
        numbers = np.array([x for _, x in constants])
        tape = _tape(slots, numbers, ends - sizes, sizes, operations, slot_of[wanted])
        return Circuit(
            slots, numbers, blocks, ends - sizes, sizes, operations, slot_of[wanted], tape
        )

    def _live(self, needed: NDArray[np.bool_]) -> Operations:
        """The operations that are needed, on values; `needed` marks the results, and comes back
        with everything that they need.

        No operation depends on another one of its own batch, so that a batch is done at once.
        """
        none = np.zeros(0, dtype=np.int64)
        kept = []
        for kind, first, codes in reversed(self._made):
            live = np.flatnonzero(needed[first : first + len(codes)])
            pairs = codes[live]
            needed[pairs >> _SHIFT] = needed[pairs & _LOWER] = True
            terms = np.full(len(live), codes.shape[1])
            kept.append((np.full(len(live), kind), first + live, terms, pairs.ravel()))
        kept.append((none, none, none, none))
        kinds, outputs, terms, codes = map(np.concatenate, zip(*reversed(kept), strict=True))
        starts = np.concatenate([[0], np.cumsum(terms)])
        return Operations(kinds, outputs, starts, codes >> _SHIFT, codes & _LOWER)

    def _sums_of(self, codes: Integers) -> Integers:
        """The sums of rows of pairs, none of which has ZERO."""
        terms = codes.shape[1]
        if terms > 1:
            return self._operations(SUM, codes)
        if terms == 0:
            return np.full(len(codes), ZERO)
        found = codes[:, 0] & _LOWER  # of a pair with ONE the other one
        proper = np.flatnonzero(codes[:, 0] >> _SHIFT != ONE)
        if len(proper):
            found[proper] = self._operations(SUM, codes[proper])
        return found

    def _operations(self, kind: int, codes: Integers) -> Integers:
        """The value of each row of pairs, a new one where it was never asked for."""
        codes = np.ascontiguousarray(codes)
        rows = codes.view(np.dtype((np.void, 8 * codes.shape[1])))
        keys: list[bytes] = rows.ravel().tolist()  # type: ignore[assignment] # of void
        known, found, new = self._known[kind], [], []
        count = self.count
        for row, key in enumerate(keys):
            value = known.get(key)
            if value is None:
                value = known[key] = count
                new.append(row)
                count += 1
            found.append(value)
        if count > self.limit:
            for row in new:
                del known[keys[row]]
            raise TooLargeError
        if new:
            self._made.append((kind, self.count, codes if len(new) == len(keys) else codes[new]))
            self.count = count
        return np.array(found, dtype=np.int64)

    def _new(self, size: int) -> int:
        if self.count + size > self.limit:
            raise TooLargeError
        self.count += size
        return self.count - size


def _tape(
    slots: int,
    constants: NDArray[np.float64],
    block_slots: Integers,
    block_sizes: Integers,
    operations: Operations,
    results: Integers,
) -> Integers:
    """Seven sizes, then the arrays one behind the other, the constants by their bits.

    A kernel takes a microsecond and more to be handed a tuple of arrays, and a fifth of that for
    one array.
    """
    table = np.atleast_2d(results)
    sizes = [slots, len(constants), len(block_slots), len(operations.outputs),
             len(operations.lefts), *table.shape]  # fmt: skip
    parts = [np.array(sizes), constants.view(np.int64), block_slots, block_sizes]
    return np.concatenate([*parts, *operations, table.ravel()])
