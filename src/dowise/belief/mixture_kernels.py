"""The compiled kernels of a mixture that learn: counts, evidence, and how likely edges are.

A version of a variable has tables of its own (`dowise.model.structures`), and every record counts
in every version.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import int64, njit

from dowise.belief.kernels import unpack
from dowise.belief.variates import log64
from dowise.compiling import kernel

__all__ = [
    "Learned", "Tables", "evidence_of", "learn_mixed", "learn_mixed_many", "weigh",
]  # fmt: skip

NAT = float(2**36)  # one nat of evidence, which is counted in whole numbers


class Learned(NamedTuple):
    """What a mixture has learned: prior and counts of all entries, and what follows from them."""

    prior: Any
    counts: Any
    evidence: Any
    """Of each version, in 2⁻³⁶ nats."""
    unused: Any


class Tables(NamedTuple):
    """Where the versions' tables stand; see `Structures`."""

    first: Any
    starts: Any
    strides: Any
    sizes: Any
    scored: Any


@njit
def _nats(x):
    """The logarithm as a whole number of 2⁻³⁶ nats."""
    return int64(np.rint(log64(x) * NAT))


@kernel()
def learn_mixed(learned, tables, own, under, strides, codes, fixed, step):
    """One record more (`step` 1) or less (−1), in every version of every variable.

    own[m] is the table of version m under the arm, and under[v] the factor of the full graph, which
    must have been seen whole; strides are the factors'. The evidence of a row of counts c with
    prior α is Π Γ(α_k + c_k)/Γ(α_k) · Γ(Σα)/Γ(Σα + Σc): one more multiplies it by
    (α_k + c_k)/Σ(α + c). Each logarithm is rounded to a whole number of 2⁻³⁶ nats, so that what was
    learned in any order, or forgotten again, adds up to the same bits.
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
            learned.unused[v, lacking] += step
            continue
        for m in range(tables.first[v], tables.first[v + 1]):
            t = own[m]
            entry = tables.starts[t]
            for u in range(size):
                entry += tables.strides[t, u] * codes[u]
            if step < 0:
                learned.counts[entry] += step
            if tables.scored[v]:
                alpha, seen, row = 0.0, int64(0), entry - codes[v]
                for k in range(tables.sizes[v]):
                    alpha += learned.prior[row + k]
                    seen += learned.counts[row + k]
                gained = _nats(learned.prior[entry] + learned.counts[entry]) - _nats(alpha + seen)
                learned.evidence[m] += step * gained
            if step > 0:
                learned.counts[entry] += step


@kernel()
def learn_mixed_many(learned, tables, own, under, strides, codes, was_set, place):
    """Many records more: record i has codes[:, i], and its factors are those of place[i]."""
    one = codes.ndim - 1  # a literal would have everything compiled anew for it
    fixed = np.empty(len(codes), dtype=np.int64)
    seen = np.empty(len(codes), dtype=np.int64)
    for i in range(len(place)):
        unpack(codes, was_set, i, seen, fixed)
        p = place[i]
        learn_mixed(learned, tables, own[p], under[p], strides, seen, fixed, one)


@kernel()
def evidence_of(prior, counts, rows, sizes):
    """The evidence of these rows together, the same that `learn_mixed` adds up."""
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
    """Fill in the weights: prior times evidence, alternatives first, then the sums as patterns."""
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
    """From logarithms to shares of their sum, in place; returns the logarithm of the sum."""
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
