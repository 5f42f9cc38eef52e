"""Slow, obvious twins of what an arm teaches: every outcome of every variable is written down."""

from __future__ import annotations

from itertools import product

import numpy as np

from dowise._core.rng import draw_key, generator
from dowise.belief.posterior import RowDraws
from dowise.problem.domains import MISSING


def all_entries(posterior, codes, samples, seed):
    """Draws of all entries of the full graph's factors, (entries, samples).

    With doubtful edges those of one context alone, and NaN elsewhere.
    """
    if posterior.is_settled:
        return posterior.draw_entries(samples, seed).astype(float)
    model = posterior.model
    factors, context = model.factors, model.problem.context_positions
    rows = np.arange(len(factors.row_starts))
    shifts = factors.strides[factors.row_tables][:, context]
    here = [r for r in rows if not _context_part(factors, context, r)]
    drawn = RowDraws(model, np.array(here)).draw(
        posterior, draw_key(generator(seed)), codes, samples
    )
    found, at = np.full((factors.entries, samples), np.nan), 0
    for r in here:
        start, size = factors.row_starts[r] + shifts[r] @ np.array(codes, int), factors.row_sizes[r]
        found[start : start + size] = drawn[at : at + size]
        at += size
    return found


def _context_part(factors, context, row):
    """How much of a row's place is due to the values of the context."""
    offset = factors.row_starts[row] - factors.starts[factors.row_tables[row]]
    family = factors.families[factors.row_tables[row]]
    shape = factors.shapes[factors.row_tables[row]]
    codes = np.unravel_index(offset, shape)
    return sum(int(codes[i]) for i, v in enumerate(family) if v in context)


def outcomes(problem, factors, arm, codes):
    """All that may be seen after an arm in a context: (values by name, entries of its factors).

    Entries of the context's own factors are left out: its values are known.
    """
    context = dict(zip(sorted(problem.context), codes, strict=True))
    free = [name for name in problem.graph if name not in arm and name not in context]
    labels = problem.domains
    for places in product(*(range(len(labels[name])) for name in free)):
        seen = {name: labels[name][i] for name, i in zip(free, places, strict=True)}
        seen |= {name: labels[name][i] for name, i in context.items()} | dict(arm)
        record = problem.record(arm, seen)
        assert (record.codes != MISSING).all()
        entries = factors.entries_of(record)
        factor = np.searchsorted(factors.starts, entries, side="right") - 1
        own = ~np.isin(factors.targets[factor], problem.context_positions)
        yield seen, entries[own]


def rewards(problem, factors, entries, codes):
    """P(Y = y | do(arm), c) at columns of entries: (arms, values of Y, columns)."""
    found = np.zeros((len(problem.arms), len(problem.payoff.values), entries.shape[1]))
    for a, arm in enumerate(problem.arms):
        for seen, own in outcomes(problem, factors, arm, codes):
            y = problem.domains[problem.reward].index(seen[problem.reward])
            found[a, y] += entries[own].prod(axis=0)
    return found


def best_arms(problem, factors, entries, codes):
    """The best arm of each column."""
    means = np.einsum("ayi,y->ai", rewards(problem, factors, entries, codes), problem.payoff.scaled)
    return means.argmax(axis=0)


def entries_that_matter(problem, factors, codes, is_open=()):
    """Which entries the reward of some arm depends on in this context, or edges are doubtful at."""
    rng = np.random.default_rng(0)
    base = factors.normalised(rng.uniform(0.5, 1, factors.entries))
    before = rewards(problem, factors, base[:, None], codes)
    found = np.zeros(factors.entries, dtype=bool)
    rows = zip(factors.row_starts, factors.row_sizes, factors.row_tables, strict=True)
    for start, size, table in rows:
        own = slice(start, start + size)
        changed = base.copy()
        changed[own] = rng.dirichlet(np.ones(size))
        differ = np.abs(rewards(problem, factors, changed[:, None], codes) - before).max()
        found[own] = differ > 1e-9 or factors.targets[table] in is_open
    return found


def mutual_information(joint):
    """Of a table (answers, outcomes) of probabilities."""
    p, q = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / (p * q)[there])).sum())


def grouped(columns, best):
    """(answers, outcomes) from P(outcome | draw), an array (outcomes, draws)."""
    return np.stack([columns[:, best == k].sum(axis=1) for k in np.unique(best)]) / len(best)


def context_chance(problem, factors, means, codes):
    """How likely a context is at the mean entries: the product of its own factors' entries."""
    labels = {v: problem.domains[v][0] for v in problem.graph}
    context = zip(sorted(problem.context), codes, strict=True)
    labels |= {name: problem.domains[name][i] for name, i in context}
    record = problem.record({}, labels)
    entries = factors.entries_of(record)
    factor = np.searchsorted(factors.starts, entries, side="right") - 1
    own = np.isin(factors.targets[factor], problem.context_positions)
    return float(means[entries[own]].prod())
