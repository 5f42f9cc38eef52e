"""Compiled kernels: circuits forward and in reverse mode, forward sampling, best arms of draws.

Lanes are innermost: a slot of a circuit is a row of `values`, and a column is one draw. The inputs
of sampling are in `dowise.model.sampler`.

Reverse mode works on `Model.trace`, P(Y = y | do(a), c) through all variables that are observed, a
polynomial whose monomials have one entry of each factor. One forward pass computes all its values;
one backward pass from the results of an arm computes the derivatives by every input. If it starts
with the reward of every value y, these are ∂μ_a/∂θ. If it starts with ones, they are
∂Σ_y P(Y = y)/∂θ_{x|u} = P(scope of X is u | do(a), c), the same for every x: the probability that
arm a visits the row, 0 if it sets X. Lanes are then contexts and sets of edges.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint64

from dowise._core.hashing import GOLDEN, mix
from dowise._core.kernels import kernel
from dowise.model.circuit import QUOTIENT, Circuit, Operations
from dowise.model.model import model_of
from dowise.problem import Problem


class Program(NamedTuple):
    """A circuit as kernels read it from its tape."""

    slots: int
    constants: Any
    block_slots: Any
    block_sizes: Any
    operations: Operations
    results: Any


@njit(inline="always")
def unrolled(tape):
    """Return the circuit of a tape, for other kernels; all arrays are views of it."""
    slots, constants, blocks, count, pairs = tape[0], tape[1], tape[2], tape[3], tape[4]
    a = 7 + constants
    b = a + 2 * blocks
    c = b + 2 * count
    d = c + count + 1
    operations = Operations(
        tape[b : b + count],
        tape[b + count : c],
        tape[c:d],
        tape[d : d + pairs],
        tape[d + pairs : d + 2 * pairs],
    )
    results = tape[d + 2 * pairs :].reshape(tape[5], tape[6])
    numbers = tape[7:a].view(np.float64)
    return Program(slots, numbers, tape[a : a + blocks], tape[a + blocks : b], operations, results)


@kernel()
def run_circuit(values, lanes, operations, undefined):
    """Run every operation on `lanes` columns of `values`, whose rows are the slots.

    A quotient by 0 is set to undefined[lane].
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
    """Fill contexts[t] with a context drawn by uniforms[t]; only its ancestors are drawn."""
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
            mechanism.entries[0],
            codes,
            order,
            mechanism.starts,
            strides,
            mechanism.sizes,
            uniforms[t],
        )
        for k in range(len(mechanism.context)):
            contexts[t, k] = codes[mechanism.context[k]]


@kernel()
def play_round(script, t, arm, codes):
    """Fill `codes` with the values of all variables of a world in round t under an arm."""
    mechanism, c = script.mechanism, script.contexts[t]
    for v in range(len(codes)):
        codes[v] = mechanism.fixed[arm, v]
    for k in range(len(mechanism.context)):
        codes[mechanism.context[k]] = script.context_codes[c, k]
    entries = mechanism.entries[min(c, len(mechanism.entries) - 1)]
    sample_record(
        entries,
        codes,
        mechanism.order,
        mechanism.starts,
        mechanism.strides,
        mechanism.sizes,
        script.uniforms[t],
    )


@kernel()
def observe_round(script, t, arm, codes, observed):
    """Play round t and fill `observed` with the problem's variables, in its order."""
    play_round(script, t, arm, codes)
    for v in range(len(observed)):
        observed[v] = codes[script.mechanism.observed[v]]


class Trace(NamedTuple):
    """Circuit that keeps all its values, for reverse mode; operation i has slot first + i."""

    slots: int
    first: int
    constants: Any
    block_slots: Any
    block_sizes: Any
    starts: Any
    lefts: Any
    rights: Any
    results: Any
    """results[arm, y], all values of the reward."""
    cones: Any
    """Operations that each arm's results depend on, last one first, arm after arm."""
    cone_starts: Any


@lru_cache(maxsize=32)
def trace_of(problem: Problem) -> Trace:
    """Return the trace of a problem, built once."""
    circuit: Circuit = model_of(problem).trace
    operations = circuit.operations
    first = len(circuit.constants) + int(circuit.block_sizes.sum())
    cones = [
        _cone(first, operations.starts, operations.lefts, operations.rights, results)
        for results in circuit.results
    ]
    return Trace(
        slots=circuit.slots,
        first=first,
        constants=circuit.constants,
        block_slots=circuit.block_slots,
        block_sizes=circuit.block_sizes,
        starts=operations.starts,
        lefts=operations.lefts,
        rights=operations.rights,
        results=circuit.results,
        cones=np.concatenate(cones),
        cone_starts=np.cumsum([0, *map(len, cones)]),
    )


@kernel()
def _cone(first, starts, lefts, rights, results):
    """Return the operations that these results depend on, last one first."""
    needed = np.zeros(len(starts) - 1, dtype=np.bool_)
    for y in range(len(results)):
        if results[y] >= first:
            needed[results[y] - first] = True
    operations = np.empty(len(needed), dtype=np.int64)
    count = 0
    for i in range(len(needed) - 1, -1, -1):
        if needed[i]:
            operations[count] = i
            count += 1
            for k in range(starts[i], starts[i + 1]):
                if lefts[k] >= first:
                    needed[lefts[k] - first] = True
                if rights[k] >= first:
                    needed[rights[k] - first] = True
    return operations[:count].copy()


@njit
def fill_means(values, totals, prior, counts, rows, trace):
    """Set constants and inputs: the mean entries of the rows that each lane reads.

    rows[lane, block] is the first entry of a row; totals[block, lane] is filled with its sum.
    """
    lanes = len(rows)
    for i in range(len(trace.constants)):
        for lane in range(lanes):
            values[i, lane] = trace.constants[i]
    for r in range(len(trace.block_slots)):
        slot, size = trace.block_slots[r], trace.block_sizes[r]
        for lane in range(lanes):
            entry, total = rows[lane, r], 0.0
            for k in range(size):
                total += prior[entry + k] + counts[entry + k]
            totals[r, lane] = total
            for k in range(size):
                values[slot + k, lane] = (prior[entry + k] + counts[entry + k]) / total


@njit
def forward(values, trace):
    """Run every operation on all lanes."""
    lanes = values.shape[1]
    for i in range(len(trace.starts) - 1):
        out = trace.first + i
        for lane in range(lanes):
            values[out, lane] = 0.0
        for k in range(trace.starts[i], trace.starts[i + 1]):
            a, b = trace.lefts[k], trace.rights[k]
            for lane in range(lanes):
                values[out, lane] += values[a, lane] * values[b, lane]


@njit
def pass_back(values, adjoints, seeds, arm, trace):
    """Compute the derivatives of Σ_y seeds[y]·P(Y = y | do(arm)) by every input, in `adjoints`.

    The rows of operations must be 0, and are 0 again afterwards.
    """
    lanes = values.shape[1]
    for slot in range(trace.first):
        for lane in range(lanes):
            adjoints[slot, lane] = 0.0
    for y in range(len(seeds)):
        for lane in range(lanes):
            adjoints[trace.results[arm, y], lane] += seeds[y]
    for q in range(trace.cone_starts[arm], trace.cone_starts[arm + 1]):
        i = trace.cones[q]
        out = trace.first + i
        for k in range(trace.starts[i], trace.starts[i + 1]):
            a, b = trace.lefts[k], trace.rights[k]
            for lane in range(lanes):
                adjoints[a, lane] += adjoints[out, lane] * values[b, lane]
            for lane in range(lanes):
                adjoints[b, lane] += adjoints[out, lane] * values[a, lane]
        for lane in range(lanes):
            adjoints[out, lane] = 0.0


@kernel()
def find_winners(drawn, scaled, costs, winners):
    """Find the best arm of every draw, ties to the first; return the sum of net rewards.

    drawn[arm, y − 1, draw] is P(Y_arm = y) for all values y but the first; scaled[y] is the
    reward of a value, from 0 to 1, and costs[arm] the cost of an arm, on the same scale.
    """
    arms, values, samples = drawn.shape
    top = np.empty(samples)
    rewards = np.empty(samples)
    for i in range(samples):
        top[i] = -np.inf
    for a in range(arms):
        for i in range(samples):
            rewards[i] = scaled[0] - costs[a]
        for y in range(values):
            extra = scaled[y + 1] - scaled[0]
            for i in range(samples):
                rewards[i] += extra * drawn[a, y, i]
        for i in range(samples):  # branch-free, so that it is vectorised
            better = rewards[i] > top[i]
            top[i] = rewards[i] if better else top[i]
            winners[i] = a if better else winners[i]
    peak = 0.0
    for i in range(samples):
        peak += top[i]
    return peak


@kernel()
def find_winners_by_odds(whole, scaled, costs, compared, key, first, winners):
    """Find the best arm of draws so close to 0 and 1 that rewards can't be told apart.

    whole[arm, y, draw] has all values of the reward, each with its own digits. The distances of an
    arm's reward from the least and from the greatest value are sums without cancellation, so arms
    are compared by the ratio of the two, their odds: 1 − 1e-30 is more than 1 − 1e-20. Only the
    arms in `compared` are. Those that still tie have equal chances, by a hash of the key (a uint64)
    and the number of the draw, counted from `first`: the k-th of them replaces the previous one
    with probability 1/k.

    Arms with different costs are compared by net rewards: from below if one of them is nearer to
    the least value, from above if both are nearer to the greatest. If these are equal, the cheaper
    arm is better, since rounding has moved one of the rewards; so costs of a whole span never
    depend on chance.
    """
    samples = whole.shape[2]
    least, greatest, same_costs = scaled[0], scaled[0], True
    for y in range(len(scaled)):
        least, greatest = min(least, scaled[y]), max(greatest, scaled[y])
    for k in range(len(compared)):
        same_costs &= costs[compared[k]] == costs[compared[0]]
    highest, is_open = np.empty(samples), np.empty(samples, dtype=np.int64)
    for i in range(samples):
        is_open[i] = 1
    if same_costs:
        _compare_odds(whole, scaled, (least, greatest), compared, winners, highest, is_open)
    peak = 0.0
    for i in range(samples):
        if is_open[i]:
            draw_key = mix(uint64(key) + uint64(first + i) * GOLDEN)
            winners[i], highest[i] = _winner_of_draw(
                whole, i, scaled, (least, greatest), costs, compared, draw_key
            )
        peak += least + highest[i] - costs[winners[i]]
    return peak


@njit(error_model="numpy")
def _compare_odds(whole, scaled, ends, compared, winners, highest, is_tied):
    """Find the arm with the largest odds in every draw, and the draws where arms tie."""
    least, greatest = ends
    samples = whole.shape[2]
    top, brings, lacks = np.empty(samples), np.empty(samples), np.empty(samples)
    for i in range(samples):
        top[i] = -1.0
    for k in range(len(compared)):
        a = compared[k]
        for i in range(samples):
            brings[i], lacks[i] = 0.0, 0.0
        for y in range(len(scaled)):
            high, low = scaled[y] - least, greatest - scaled[y]
            for i in range(samples):
                brings[i] += high * whole[a, y, i]
                lacks[i] += low * whole[a, y, i]
        for i in range(samples):  # branch-free, so that it is vectorised; n/0 is infinite
            odds = brings[i] / lacks[i]
            better = odds > top[i]
            is_tied[i] = 0 if better else is_tied[i] | (odds == top[i])
            winners[i] = a if better else winners[i]
            highest[i] = brings[i] if better else highest[i]
            top[i] = odds if better else top[i]


@njit(error_model="numpy")
def _winner_of_draw(whole, i, scaled, ends, costs, compared, draw_key):
    """Return the best arm of one draw and its distance from the least reward."""
    least, greatest = ends
    best, top, highest, lowest, tied = compared[0], -1.0, 0.0, 0.0, 0
    for k in range(len(compared)):
        a, brings, lacks = compared[k], 0.0, 0.0
        for y in range(len(scaled)):
            brings += (scaled[y] - least) * whole[a, y, i]
            lacks += (greatest - scaled[y]) * whole[a, y, i]
        odds = brings / lacks
        extra = 0.0 if k == 0 else costs[a] - costs[best]
        is_tie = odds == top
        is_better = odds > top
        if extra != 0:
            is_high = brings > lacks and highest > lowest
            over = lowest - lacks if is_high else brings - highest
            is_tie = False
            is_better = over > extra or (over == extra and extra < 0)
        if is_better:
            best, top, highest, lowest, tied = a, odds, brings, lacks, 1
        elif is_tie:
            tied += 1
            coin = mix(draw_key + uint64(tied) * GOLDEN)
            if np.float64(coin >> uint64(11)) * 2.0**-53 * tied < 1:
                best, highest, lowest = a, brings, lacks
    return best, highest
