"""Kernels of a posterior with open edges: learning, weighing sets of edges, and drawing.

Each version of a variable has its own tables (`dowise.model.edge_structures`), and every record
counts in every version. Every lane of a draw has one version of each variable. Lanes with the same
version are drawn together, next to each other, and then scattered to their positions: the random
numbers of a row depend neither on the context nor on the other rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit, uint64

from dowise._core.hashing import GOLDEN, mix
from dowise._core.kernels import kernel
from dowise.belief.draw_kernels import (
    PADDING,
    copy_results,
    draw_row,
    locate,
    unpack,
    workspace,
)
from dowise.belief.pooled_kernels import add_count, log_in_nats
from dowise.belief.pooling import NAT
from dowise.belief.variates import stream_key
from dowise.model.kernels import run_circuit, unrolled
from dowise.model.reward_circuit import Reading


class VersionIndex(NamedTuple):
    """Positions of the versions' tables; see `Structures`."""

    first: Any
    starts: Any
    strides: Any
    sizes: Any
    scored: Any


@kernel()
def learn_mixed(state, tables, version_tables, under, strides, codes, fixed, step):
    """Learn (`step` 1) or retract (−1) a record, in every version of every variable.

    version_tables[m] is the table of version m under the arm, under[v] the factor of v in the graph
    with all edges, whose scope must be complete, and `strides` those of the factors. The evidence
    of a row with counts c and prior α is Γ(Σα)/Γ(Σ(α + c)) · Π Γ(α_k + c_k)/Γ(α_k), so that another
    count of value k multiplies it by (α_k + c_k)/Σ(α + c). Each logarithm is rounded to an integer
    number of 2⁻³⁶ nats, so that the sum does not depend on the order in which records were learned
    or retracted.
    """
    for v in range(len(codes)):
        if fixed[v] >= 0:
            continue
        _, missing = locate(codes, v, under[v], strides)
        if missing >= 0:
            state.unused[v, missing] += step
            continue
        for m in range(tables.first[v], tables.first[v + 1]):
            t = version_tables[m]
            entry = tables.starts[t]
            for u in range(len(codes)):
                entry += tables.strides[t, u] * codes[u]
            if step < 0:
                add_count(state, t, entry, codes[v], step)
            if tables.scored[v]:
                alpha, count, row = 0.0, int64(0), entry - codes[v]
                for k in range(tables.sizes[v]):
                    alpha += state.base[row + k]
                    count += state.counts[row + k]
                gain = log_in_nats(state.base[entry] + state.counts[entry])
                state.evidence[m] += step * (gain - log_in_nats(alpha + count))
            if step > 0:
                add_count(state, t, entry, codes[v], step)


@kernel()
def learn_mixed_many(state, tables, version_tables, under, strides, codes, was_set, place):
    """Learn many records: record i has codes[:, i], and its tables are those of place[i]."""
    step = codes.ndim - 1  # a literal 1 would be compiled again as its own type
    fixed = np.empty(len(codes), dtype=np.int64)
    record = np.empty(len(codes), dtype=np.int64)
    for i in range(len(place)):
        unpack(codes, was_set, i, record, fixed)
        p = place[i]
        learn_mixed(state, tables, version_tables[p], under[p], strides, record, fixed, step)


@kernel()
def evidence_of(prior, counts, rows, sizes):
    """Return the log evidence of these rows together, equal to the sums of `learn_mixed`."""
    evidence = int64(0)
    for r in range(len(rows)):
        alpha, count = 0.0, int64(0)
        for entry in range(rows[r], rows[r] + sizes[r]):
            alpha += prior[entry]
            for c in range(counts[entry]):
                evidence += log_in_nats(prior[entry] + c)
            count += counts[entry]
        for c in range(count):
            evidence -= log_in_nats(alpha + c)
    return evidence


@kernel()
def weigh(evidence, options, weights):
    """Compute the weights of alternatives, then of patterns: prior times evidence, normalised."""
    totals = np.empty(len(options.first) - 1)
    for d in range(len(totals)):
        start, stop = options.first[d], options.first[d + 1]
        for a in range(start, stop):
            log_weight = options.alternative_priors[a]
            for i in range(options.alternatives[a], options.alternatives[a + 1]):
                log_weight += evidence[options.versions[i]] / NAT
            weights.alternatives[a] = log_weight
        totals[d] = _normalised(weights.alternatives, start, stop)
    for c in range(len(options.components) - 1):
        start, stop = options.components[c], options.components[c + 1]
        for p in range(start, stop):
            log_weight = options.pattern_priors[p]
            for i in range(options.patterns[p], options.patterns[p + 1]):
                log_weight += totals[options.districts[i]]
            weights.patterns[p] = log_weight
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


class LaneBuffers(NamedTuple):
    """Buffers for the versions of a block of lanes, and for the draws of one row."""

    versions: Any
    """versions[v, lane]."""
    tally: Any
    """Number of lanes of each version, for the variable of the last `_group`."""
    distinct: Any
    """The versions that some lane has."""
    sorted: Any
    """The lanes, version by version."""
    row: Any
    """Draws of one row."""


@njit
def _pick_share(stream, lane, shares, start, stop):
    """Return the index of the share that a lane draws, among shares[start:stop]."""
    u = np.float64(mix(stream + uint64(lane) * GOLDEN) >> uint64(11)) * 2.0**-53
    for i in range(start, stop - 1):
        u -= shares[i]
        if u < 0:
            return i
    return stop - 1


@kernel()
def choose(key, streams, options, weights, first, lanes, versions):
    """Draw versions[v, lane]: a pattern for each component, an alternative for each district."""
    components = len(options.components) - 1
    for c in range(components):
        start, stop = options.components[c], options.components[c + 1]
        stream = stream_key(key[0], key[1], streams + c)
        if stop - start == 1:
            for i in range(options.patterns[start], options.patterns[stop]):
                d = options.districts[i]
                district_stream = stream_key(key[0], key[1], streams + components + d)
                for lane in range(lanes):
                    a = _alternative(district_stream, options, weights, d, first + lane)
                    for j in range(options.alternatives[a], options.alternatives[a + 1]):
                        versions[options.variables[j], lane] = options.versions[j]
            continue
        for lane in range(lanes):
            p = _pick_share(stream, first + lane, weights.patterns, start, stop)
            for i in range(options.patterns[p], options.patterns[p + 1]):
                d = options.districts[i]
                a = options.first[d]
                if options.first[d + 1] - a > 1:
                    district_stream = stream_key(key[0], key[1], streams + components + d)
                    a = _alternative(district_stream, options, weights, d, first + lane)
                for j in range(options.alternatives[a], options.alternatives[a + 1]):
                    versions[options.variables[j], lane] = options.versions[j]


@njit
def _alternative(stream, options, weights, d, lane):
    """Return the alternative of a district that a lane draws."""
    return _pick_share(stream, lane, weights.alternatives, options.first[d], options.first[d + 1])


@njit(inline="always")
def with_entries(reading, entries):
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
def lane_buffers(tables, reading, block):
    """Return buffers for `block` lanes."""
    variables, versions = len(tables.first) - 1, tables.first[-1]
    widest, width = 0, block + PADDING
    for i in range(len(reading.sizes)):
        widest = max(widest, reading.sizes[i])
    return LaneBuffers(
        np.zeros((variables, block), dtype=np.int64),
        np.zeros(versions, dtype=np.int64),
        np.empty(versions, dtype=np.int64),
        np.empty(block, dtype=np.int64),
        np.empty((widest, width), dtype=np.float32),
    )


@kernel()
def _group(tables, v, lanes, buffers):
    """Sort the lanes of a block by the version of v, and return the number of distinct versions.

    Fills `distinct`, `tally` and `sorted`.
    """
    if tables.first[v + 1] - tables.first[v] == 1:
        buffers.distinct[0], buffers.tally[tables.first[v]] = tables.first[v], lanes
        return int64(1)
    count = int64(0)
    for lane in range(lanes):
        m = buffers.versions[v, lane]
        if buffers.tally[m] == 0:
            buffers.distinct[count] = m
            count += 1
        buffers.tally[m] += 1
    start = 0
    for i in range(count):
        m = buffers.distinct[i]
        start += buffers.tally[m]
        buffers.tally[m] = start - buffers.tally[m]
    for lane in range(lanes):
        m = buffers.versions[v, lane]
        buffers.sorted[buffers.tally[m]] = lane
        buffers.tally[m] += 1
    start = 0
    for i in range(count):
        m = buffers.distinct[i]
        stop = buffers.tally[m]
        buffers.tally[m] = stop - start
        start = stop
    return count


@kernel()
def _scatter(rows, first, reading, read, values, selected, count, lanes):
    """Copy the draws of a row, rows[first : first + size], to all slots that read it.

    `selected` are the lanes of the block that they belong to. If these are all lanes, the draws are
    already in the first of the slots.
    """
    start = reading.targets[read] + (1 if count == lanes else 0)
    for i in range(start, reading.targets[read + 1]):
        slot = reading.slots[i]
        for k in range(reading.sizes[read]):
            source, target = rows[first + k], values[slot + k]
            if count == lanes:
                for lane in range(lanes):
                    target[lane] = source[lane]
            else:
                for j in range(count):
                    target[selected[j]] = source[j]


@kernel()
def draw_mixed_block(key, state, tables, options, weights, reading, circuit, lanes, work, buffers):
    """Draw the versions and rows of `lanes`, (first, number), and run the circuit."""
    first, width = lanes
    choose(key, len(state.counts), options, weights, first, width, buffers.versions)
    for i in range(len(reading.variables)):
        start = 0
        for d in range(_group(tables, reading.variables[i], width, buffers)):
            m = buffers.distinct[d]
            count = buffers.tally[m]
            buffers.tally[m] = 0
            for read in range(reading.reads[m], reading.reads[m + 1]):
                entry, size = reading.entries[read], reading.sizes[read]
                for k in range(size):
                    work.shapes[k] = state.prior[entry + k] + state.counts[entry + k]
                shapes = work.shapes[:size]
                into, slot = buffers.row, int64(0)
                if count == width:  # all lanes: directly to their slots
                    into, slot = work.values, reading.slots[reading.targets[read]]
                draw_row(key, entry, first, shapes, into, slot, work.total, work.real, count)
                selected = buffers.sorted[start : start + count]
                _scatter(into, slot, reading, read, work.values, selected, count, width)
            start += count
    run_circuit(work.values, width, circuit.operations, work.total)


@kernel()
def draw_mixed(key, state, tables, options, weights, reading, tape, block, begin, out, any_shape):
    """Fill out[arm, y − 1, draw] with P(Y = y | do(arm), c), and `weights`; see `draw_results`."""
    circuit = unrolled(tape)
    work, buffers = workspace(circuit, block, any_shape), lane_buffers(tables, reading, block)
    weigh(state.evidence, options, weights)
    draws = out.shape[2]
    for first in range(0, draws, block):
        lanes = min(block, draws - first)
        span = begin + first, lanes
        draw_mixed_block(
            key, state, tables, options, weights, reading, circuit, span, work, buffers
        )
        copy_results(work.values, circuit.results, lanes, out, first)
