"""Kernels of a posterior with open edges: learning, weighing sets of edges, and drawing.

Each version of a variable has its own tables (`dowise.model.edge_structures`), and every record
counts in every version. Every lane of a draw has one version of each variable. Lanes with the same
version are drawn together, next to each other, and then scattered to their positions: so the random
numbers of a row are the same whatever else is drawn, and in every context.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, int64, njit, uint64

from dowise._core.hashing import GOLDEN, mix
from dowise._core.kernels import kernel
from dowise.belief.draw_kernels import PADDING, draw_logs, draw_row, normalise, unpack, workspace
from dowise.belief.variates import log64, stream_key
from dowise.model.kernels import run_circuit, unrolled
from dowise.model.reward_circuit import Reading

NAT = float(2**36)  # one nat of evidence, which is counted in integers


class VersionIndex(NamedTuple):
    """Positions of the versions' tables; see `Structures`."""

    first: Any
    starts: Any
    strides: Any
    sizes: Any
    scored: Any


@njit
def _nats(x):
    """Return the logarithm as an integer number of 2⁻³⁶ nats."""
    return int64(np.rint(log64(x) * NAT))


@kernel()
def learn_mixed(state, tables, own, under, strides, codes, fixed, step):
    """Learn (`step` 1) or retract (−1) a record, in every version of every variable.

    own[m] is the table of version m under the arm, and under[v] the factor of the full graph, which
    must have been seen whole; strides are the factors'. The evidence of a row of counts c with
    prior α is Π Γ(α_k + c_k)/Γ(α_k) · Γ(Σα)/Γ(Σα + Σc): one more multiplies it by
    (α_k + c_k)/Σ(α + c). Each logarithm is rounded to an integer number of 2⁻³⁶ nats, so that
    records learned in any order, or retracted, add up to the same bits.
    """
    size = len(codes)
    for v in range(size):
        if fixed[v] >= 0:
            continue
        f = under[v]
        lacking = -1 if f >= 0 else size
        if f >= 0 and codes[v] < 0:
            lacking = v
        for u in range(size):
            if lacking < 0 and strides[f, u] > 0 and codes[u] < 0:
                lacking = u
        if lacking >= 0:
            state.unused[v, lacking] += step
            continue
        for m in range(tables.first[v], tables.first[v + 1]):
            t = own[m]
            entry = tables.starts[t]
            for u in range(size):
                entry += tables.strides[t, u] * codes[u]
            if step < 0:
                state.counts[entry] += step
            if tables.scored[v]:
                alpha, seen, row = 0.0, int64(0), entry - codes[v]
                for k in range(tables.sizes[v]):
                    alpha += state.prior[row + k]
                    seen += state.counts[row + k]
                gained = _nats(state.prior[entry] + state.counts[entry]) - _nats(alpha + seen)
                state.evidence[m] += step * gained
            if step > 0:
                state.counts[entry] += step


@kernel()
def learn_mixed_many(state, tables, own, under, strides, codes, was_set, place):
    """Learn many records: record i has codes[:, i], and its factors are those of place[i]."""
    one = codes.ndim - 1  # a literal would be compiled again as its own type
    fixed = np.empty(len(codes), dtype=np.int64)
    seen = np.empty(len(codes), dtype=np.int64)
    for i in range(len(place)):
        unpack(codes, was_set, i, seen, fixed)
        p = place[i]
        learn_mixed(state, tables, own[p], under[p], strides, seen, fixed, one)


@kernel()
def evidence_of(prior, counts, rows, sizes):
    """Return the evidence of these rows together, the same that `learn_mixed` adds up."""
    told = int64(0)
    for r in range(len(rows)):
        alpha, seen = 0.0, int64(0)
        for entry in range(rows[r], rows[r] + sizes[r]):
            alpha += prior[entry]
            for c in range(counts[entry]):
                told += _nats(prior[entry] + c)
            seen += counts[entry]
        for c in range(seen):
            told -= _nats(alpha + c)
    return told


@kernel()
def weigh(evidence, options, weights):
    """Compute the weights, prior times evidence: alternatives first, then patterns."""
    totals = np.empty(len(options.first) - 1)
    for d in range(len(totals)):
        start, stop = options.first[d], options.first[d + 1]
        for a in range(start, stop):
            told = options.alternative_priors[a]
            for i in range(options.alternatives[a], options.alternatives[a + 1]):
                told += evidence[options.versions[i]] / NAT
            weights.alternatives[a] = told
        totals[d] = _normalised(weights.alternatives, start, stop)
    for c in range(len(options.components) - 1):
        start, stop = options.components[c], options.components[c + 1]
        for p in range(start, stop):
            told = options.pattern_priors[p]
            for i in range(options.patterns[p], options.patterns[p + 1]):
                told += totals[options.districts[i]]
            weights.patterns[p] = told
        _normalised(weights.patterns, start, stop)


@njit
def _normalised(logs, start, stop):
    """Turn logarithms into shares of their sum, in place; returns the logarithm of the sum."""
    top = logs[start]
    for i in range(start + 1, stop):
        top = max(top, logs[i])
    total = 0.0
    for i in range(start, stop):
        logs[i] = np.exp(logs[i] - top)
        total += logs[i]
    for i in range(start, stop):
        logs[i] /= total
    return top + np.log(total)


class Lanes(NamedTuple):
    """Arrays for the versions of a block of lanes, and for the draws of one row."""

    versions: Any
    """versions[v, lane]."""
    tally: Any
    distinct: Any
    sorted: Any
    row: Any
    whole: Any
    """Draws of one row in double precision."""


@njit
def _pick(stream, lane, shares, start, stop):
    """Return the index of the share that a lane draws."""
    u = np.float64(mix(stream + uint64(lane) * GOLDEN) >> uint64(11)) * 2.0**-53
    for i in range(start, stop - 1):
        u -= shares[i]
        if u < 0:
            return i
    return stop - 1


@kernel()
def choose(key, streams, options, weights, first, lanes, versions):
    """Draw a pattern for every component and lane, and an alternative for each district."""
    components = len(options.components) - 1
    for c in range(components):
        start, stop = options.components[c], options.components[c + 1]
        stream = stream_key(key[0], key[1], streams + c)
        if stop - start == 1:
            for i in range(options.patterns[start], options.patterns[stop]):
                d = options.districts[i]
                own = stream_key(key[0], key[1], streams + components + d)
                for lane in range(lanes):
                    a = _alternative(own, options, weights, d, first + lane)
                    for j in range(options.alternatives[a], options.alternatives[a + 1]):
                        versions[options.variables[j], lane] = options.versions[j]
            continue
        for lane in range(lanes):
            p = _pick(stream, first + lane, weights.patterns, start, stop)
            for i in range(options.patterns[p], options.patterns[p + 1]):
                d = options.districts[i]
                a = options.first[d]
                if options.first[d + 1] - a > 1:
                    own = stream_key(key[0], key[1], streams + components + d)
                    a = _alternative(own, options, weights, d, first + lane)
                for j in range(options.alternatives[a], options.alternatives[a + 1]):
                    versions[options.variables[j], lane] = options.versions[j]


@njit
def _alternative(stream, options, weights, d, lane):
    """Return the alternative of a district that a lane draws."""
    return _pick(stream, lane, weights.alternatives, options.first[d], options.first[d + 1])


@njit(inline="always")
def read_from(reading, entries):
    """Return the reading with the entries of another context."""
    return Reading(
        reading.variables,
        reading.reads,
        entries,
        reading.sizes,
        reading.targets,
        reading.slots,
        reading.blocks,
        reading.shifts,
    )


@njit(inline="always")
def room_for(tables, reading, block):
    """Return arrays for `block` lanes."""
    variables, versions = len(tables.first) - 1, tables.first[-1]
    widest, width = 0, block + PADDING
    for i in range(len(reading.sizes)):
        widest = max(widest, reading.sizes[i])
    return Lanes(
        np.zeros((variables, block), dtype=np.int64),
        np.zeros(versions, dtype=np.int64),
        np.empty(versions, dtype=np.int64),
        np.empty(block, dtype=np.int64),
        np.empty((widest, width), dtype=np.float32),
        np.empty((widest, width)),
    )


@kernel()
def _group(tables, v, lanes, room):
    """Sort the lanes of a block by the version of v; returns the number of versions.

    room.distinct has these, room.tally the number of lanes of each, and room.sorted the lanes,
    version by version.
    """
    if tables.first[v + 1] - tables.first[v] == 1:
        room.distinct[0], room.tally[tables.first[v]] = tables.first[v], lanes
        return int64(1)
    count = int64(0)
    for lane in range(lanes):
        m = room.versions[v, lane]
        if room.tally[m] == 0:
            room.distinct[count] = m
            count += 1
        room.tally[m] += 1
    start = 0
    for i in range(count):
        m = room.distinct[i]
        start += room.tally[m]
        room.tally[m] = start - room.tally[m]
    for lane in range(lanes):
        m = room.versions[v, lane]
        room.sorted[room.tally[m]] = lane
        room.tally[m] += 1
    start = 0
    for i in range(count):
        m = room.distinct[i]
        stop = room.tally[m]
        room.tally[m] = stop - start
        start = stop
    return count


@kernel()
def _scatter(rows, first, reading, read, values, own, count, lanes):
    """Copy the draws of a row to all slots that it feeds, in these lanes of the block.

    They are in rows[first : first + size]. If a version has all lanes, they are already in the
    first of the slots.
    """
    start = reading.targets[read] + (1 if count == lanes else 0)
    for i in range(start, reading.targets[read + 1]):
        slot = reading.slots[i]
        for k in range(reading.sizes[read]):
            here, there = rows[first + k], values[slot + k]
            if count == lanes:
                for lane in range(lanes):
                    there[lane] = here[lane]
            else:
                for j in range(count):
                    there[own[j]] = here[j]


@kernel()
def draw_mixed_block(key, state, tables, options, weights, reading, circuit, lanes, work, room):
    """Draw versions and rows of lanes (first, number), and run the circuit."""
    first, width = lanes
    choose(key, len(state.counts), options, weights, first, width, room.versions)
    for i in range(len(reading.variables)):
        start = 0
        for d in range(_group(tables, reading.variables[i], width, room)):
            m = room.distinct[d]
            count = room.tally[m]
            room.tally[m] = 0
            for read in range(reading.reads[m], reading.reads[m + 1]):
                entry, size = reading.entries[read], reading.sizes[read]
                for k in range(size):
                    work.shapes[k] = state.prior[entry + k] + state.counts[entry + k]
                shapes = work.shapes[:size]
                into, slot = room.row, int64(0)
                if count == width:  # all lanes: directly to their slots
                    into, slot = work.values, reading.slots[reading.targets[read]]
                draw_row(key, entry, first, shapes, into, slot, work.total, count)
                own = room.sorted[start : start + count]
                _scatter(into, slot, reading, read, work.values, own, count, width)
            start += count
    run_circuit(work.values, width, circuit.operations, work.total)


@kernel()
def draw_mixed(key, state, tables, options, weights, reading, tape, block, begin, out):
    """Fill out[arm, y − 1, draw] with P(Y = y | do(arm), c); see `draw_results`.

    `weights` is filled in too.
    """
    circuit = unrolled(tape)
    work, room = workspace(circuit, block), room_for(tables, reading, block)
    weigh(state.evidence, options, weights)
    draws = out.shape[2]
    for first in range(0, draws, block):
        lanes = min(block, draws - first)
        own = begin + first, lanes
        draw_mixed_block(key, state, tables, options, weights, reading, circuit, own, work, room)
        for arm in range(out.shape[0]):
            for y in range(out.shape[1]):
                row = work.values[circuit.results[arm, y]]
                for lane in range(lanes):  # rounding may have carried a sum beyond 1
                    out[arm, y, first + lane] = min(row[lane], float32(1))


@kernel()
def draw_mixed_whole(key, state, tables, options, weights, reading, tape, block, begin, out):
    """Fill out[arm, y, draw] in double precision, y = 0 included; see `draw_whole`."""
    circuit = unrolled(tape)
    room = room_for(tables, reading, block)
    weigh(state.evidence, options, weights)
    values = np.empty((circuit.slots, block + PADDING))
    undefined = values[0, :0]
    for i in range(len(circuit.constants)):
        for lane in range(values.shape[1]):
            values[i, lane] = circuit.constants[i]
    for first in range(0, out.shape[2], block):
        number, lanes = begin + first, min(block, out.shape[2] - first)
        choose(key, len(state.counts), options, weights, number, lanes, room.versions)
        for i in range(len(reading.variables)):
            start = 0
            for d in range(_group(tables, reading.variables[i], lanes, room)):
                m = room.distinct[d]
                count = room.tally[m]
                room.tally[m] = 0
                for read in range(reading.reads[m], reading.reads[m + 1]):
                    entry, size = reading.entries[read], reading.sizes[read]
                    draw_logs(key, state.prior, state.counts, entry, size, number, count, room.row)
                    into, slot = room.whole, int64(0)
                    if count == lanes:
                        into, slot = values, reading.slots[reading.targets[read]]
                    normalise(room.row[:size], into, slot, count)
                    own = room.sorted[start : start + count]
                    _scatter(into, slot, reading, read, values, own, count, lanes)
                start += count
        run_circuit(values, lanes, circuit.operations, undefined)
        for arm in range(out.shape[0]):
            for y in range(out.shape[1]):
                row = values[circuit.results[arm, y]]
                for lane in range(lanes):
                    out[arm, y, first + lane] = min(row[lane], 1.0)
