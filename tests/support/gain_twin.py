"""Slow twin of information gains: it enumerates the outcomes of all variables."""

from __future__ import annotations

from itertools import product

import numpy as np

from dowise._core.rng import draw_key, generator
from dowise.belief.posterior import RowDraws
from dowise.problem.domains import MISSING


def all_entries(posterior, codes, samples, seed):
    """Draw all entries of the full graph's factors, (entries, samples).

    With doubtful edges they are NaN in other contexts.
    """
    if posterior.is_settled:
        return posterior.draw_entries(samples, seed).astype(float)
    model = posterior.model
    factors, context = model.factors, model.problem.context_positions
    rows = np.arange(len(factors.row_starts))
    shifts = factors.strides[factors.row_tables][:, context]
    first = [r for r in rows if not _context_codes(factors, context, r)]
    key = draw_key(generator(seed))
    drawn = RowDraws(model, np.array(first)).draw(posterior, key, codes, samples)
    entries, position = np.full((factors.entries, samples), np.nan), 0
    for r in first:
        start, size = factors.row_starts[r] + shifts[r] @ np.array(codes, int), factors.row_sizes[r]
        entries[start : start + size] = drawn[position : position + size]
        position += size
    return entries


def _context_codes(factors, context, row):
    """Return the sum of the codes of the context variables in a row."""
    offset = factors.row_starts[row] - factors.starts[factors.row_tables[row]]
    family = factors.families[factors.row_tables[row]]
    shape = factors.shapes[factors.row_tables[row]]
    codes = np.unravel_index(offset, shape)
    return sum(int(codes[i]) for i, v in enumerate(family) if v in context)


def outcomes(problem, factors, arm, codes):
    """Yield all outcomes of an arm in a context: (values by name, entries of its factors).

    Entries of the factors of the context are left out, because its values are known.
    """
    context = dict(zip(sorted(problem.context), codes, strict=True))
    free = [name for name in problem.graph if name not in arm and name not in context]
    labels = problem.domains
    for places in product(*(range(len(labels[name])) for name in free)):
        values = {name: labels[name][i] for name, i in zip(free, places, strict=True)}
        values |= {name: labels[name][i] for name, i in context.items()} | dict(arm)
        record = problem.record(arm, values)
        assert (record.codes != MISSING).all()
        entries = factors.entries_of(record)
        factor = np.searchsorted(factors.starts, entries, side="right") - 1
        yield values, entries[~np.isin(factors.targets[factor], problem.context_positions)]


def rewards(problem, factors, entries, codes):
    """Return P(Y = y | do(arm), c) at columns of entries: (arms, values of Y, columns)."""
    rewards = np.zeros((len(problem.arms), len(problem.payoff.values), entries.shape[1]))
    for a, arm in enumerate(problem.arms):
        for values, positions in outcomes(problem, factors, arm, codes):
            y = problem.domains[problem.reward].index(values[problem.reward])
            rewards[a, y] += entries[positions].prod(axis=0)
    return rewards


def best_arms(problem, factors, entries, codes):
    """Return the best arm of each column."""
    means = np.einsum("ayi,y->ai", rewards(problem, factors, entries, codes), problem.payoff.scaled)
    return means.argmax(axis=0)


def informative_entries(problem, factors, codes, is_open=()):
    """Return a mask of entries that a reward depends on in this context, or with doubtful edges."""
    rng = np.random.default_rng(0)
    base = factors.normalised(rng.uniform(0.5, 1, factors.entries))
    before = rewards(problem, factors, base[:, None], codes)
    mask = np.zeros(factors.entries, dtype=bool)
    rows = zip(factors.row_starts, factors.row_sizes, factors.row_tables, strict=True)
    for start, size, table in rows:
        changed = base.copy()
        changed[start : start + size] = rng.dirichlet(np.ones(size))
        change = np.abs(rewards(problem, factors, changed[:, None], codes) - before).max()
        mask[start : start + size] = change > 1e-9 or factors.targets[table] in is_open
    return mask


def mutual_information(joint):
    """Return the mutual information of a table (answers, outcomes) of probabilities."""
    p, q = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True)
    positive = joint > 0
    return float((joint[positive] * np.log(joint[positive] / (p * q)[positive])).sum())


def grouped(columns, best):
    """Return P(answer, outcome) from P(outcome | draw), an array (outcomes, draws)."""
    return np.stack([columns[:, best == k].sum(axis=1) for k in np.unique(best)]) / len(best)


def context_chance(problem, factors, means, codes):
    """Return the probability of a context at the mean entries."""
    labels = {v: problem.domains[v][0] for v in problem.graph}
    context = zip(sorted(problem.context), codes, strict=True)
    labels |= {name: problem.domains[name][i] for name, i in context}
    record = problem.record({}, labels)
    entries = factors.entries_of(record)
    factor = np.searchsorted(factors.starts, entries, side="right") - 1
    of_context = np.isin(factors.targets[factor], problem.context_positions)
    return float(means[entries[of_context]].prod())
