"""What an arm tells about which arm is best, by all that is seen after it: compiled loops.

`paths` is described in `dowise.information.outcomes`, and values[entry, draw] are its entries.
Several questions may be asked at once, such as which arm is best in each of several contexts:
ranks[q, draw] is the place of the answer to question q under a draw, shares[q, k] the share of
draws with the k-th answer, and weights[q] what the question counts for. Draws are innermost.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dowise.compiling import kernel
from dowise.information.summary import sum_by_winner

__all__ = [
    "add_all", "add_rewards", "add_row_information", "add_rows", "add_sampled", "add_sampled_rows",
    "rank_answers",
]  # fmt: skip


@kernel()
def rank_answers(best, arms, ranks, shares):
    """Fill in ranks and shares where best[q, draw] is one of so many arms.

    Answers are ranked as arms are. Returns the largest number of different ones.
    """
    most = 0
    places = np.empty(arms, dtype=np.int64)
    for q in range(len(best)):
        for a in range(arms):
            places[a] = 0
        for i in range(best.shape[1]):
            places[best[q, i]] += 1
        count = 0
        for a in range(arms):
            if places[a] > 0:
                shares[q, count] = places[a] / best.shape[1]
                places[a] = count
                count += 1
        for i in range(best.shape[1]):
            ranks[q, i] = places[best[q, i]]
        most = max(most, count)
    return most


@njit
def _told(row, ranks, shares, weights, parts):
    """Σ_q weights[q] Σ_k P(k, o) log(P(k, o) / (P(k) P(o))) for one outcome o, times the draws.

    `row` has P(o) under every draw.
    """
    told = 0.0
    for q in range(len(weights)):
        sum_by_winner(row, ranks[q], parts)
        total = 0.0
        for k in range(parts.shape[1]):
            parts[0, k] += parts[1, k] + parts[2, k] + parts[3, k]
            total += parts[0, k]
        for k in range(parts.shape[1]):
            if parts[0, k] > 0:
                told += weights[q] * parts[0, k] * np.log(parts[0, k] / (shares[q, k] * total))
    return told


@kernel()
def add_rewards(rewards, ranks, shares, weights, gain):
    """gain[i] is what the reward of arm i tells; rewards[i, y, draw] is P(Y_i = y)."""
    arms, values, draws = rewards.shape
    parts = np.empty((4, shares.shape[1]))
    for i in range(arms):
        told = 0.0
        for y in range(values):
            told += _told(rewards[i, y], ranks, shares, weights, parts)
        gain[i] = max(told / draws, 0.0)


@njit(inline="always")
def _entry_at(paths, step, level, codes):
    """The first entry of the row that a step reads after these values."""
    entry = paths.bases[step]
    for k in range(level):
        entry += paths.strides[step, k] * codes[k]
    return entry


@kernel()
def add_all(paths, arms, values, ranks, shares, weights, gain):
    """gain[i] is what all outcomes of arms[i] tell: every one of them is looked at.

    They are walked through as an odometer counts; products[l] are the probabilities of what was
    seen in the first l steps.
    """
    draws = values.shape[1]
    most = paths.strides.shape[1]
    products = np.ones((most + 1, draws), dtype=np.float32)
    codes, parts = np.zeros(most, dtype=np.int64), np.empty((4, shares.shape[1]))
    for i in range(len(arms)):
        first, told = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        level = 0 if levels > 0 else -1
        codes[0] = -1
        while level >= 0:
            codes[level] += 1
            if codes[level] == paths.sizes[first + level]:
                level -= 1
                continue
            here = values[_entry_at(paths, first + level, level, codes) + codes[level]]
            before, after = products[level], products[level + 1]
            for lane in range(draws):
                after[lane] = before[lane] * here[lane]
            if level + 1 == levels:
                told += _told(after, ranks, shares, weights, parts)
            else:
                level += 1
                codes[level] = -1
        gain[i] = max(told / draws, 0.0)


@njit(inline="always")
def _pick(entries, first, size, u):
    """The value that a uniform number picks of a row."""
    value, below = 0, np.float64(entries[first])
    while below <= u and value < size - 1:
        value += 1
        below += entries[first + value]
    return value


@kernel()
def add_sampled(paths, arms, values, ranks, shares, weights, uniforms, gain):
    """The same from outcomes that are sampled, as many as `uniforms` has rows.

    An outcome is drawn from one of the draws, these in strata. It tells KL(P(k | o) ‖ P(k)) ≥ 0,
    whose mean over outcomes is the gain: the estimate has the mean that `add_all` gives.
    """
    draws, samples, most = values.shape[1], len(uniforms), paths.strides.shape[1]
    product = np.empty(draws)
    codes, parts = np.zeros(most, dtype=np.int64), np.empty((4, shares.shape[1]))
    for i in range(len(arms)):
        first, told = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        for s in range(samples):
            lane = min(int((s + uniforms[s, most]) * draws / samples), draws - 1)
            own = values[:, lane]
            for lane in range(draws):
                product[lane] = 1.0
            for level in range(levels):
                entry = _entry_at(paths, first + level, level, codes)
                size = paths.sizes[first + level]
                codes[level] = _pick(own, entry, size, uniforms[s, level])
                here = values[entry + codes[level]]
                for lane in range(draws):
                    product[lane] *= here[lane]
            total = 0.0
            for lane in range(draws):
                total += product[lane]
            if total > 0:
                told += _told(product, ranks, shares, weights, parts) / total
        gain[i] = max(told / samples, 0.0)


@kernel()
def add_row_information(starts, sizes, values, ranks, shares, weights, told):
    """told[starts[r]] = Σ_q weights[q] I(answer to q; one value drawn from row r)."""
    draws, parts = values.shape[1], np.empty((4, shares.shape[1]))
    for r in range(len(starts)):
        found = 0.0
        for x in range(starts[r], starts[r] + sizes[r]):
            found += _told(values[x], ranks, shares, weights, parts)
        told[starts[r]] = max(found / draws, 0.0)


@kernel()
def add_rows(paths, arms, means, told, gain):
    """gain[i] = Σ_r v_r told[r], v_r being how likely arms[i] is to visit row r at the means.

    A walk as in `add_all`; chances[l] is the probability of what was seen in the first l steps.
    """
    most = paths.strides.shape[1]
    chances, codes = np.ones(most + 1), np.zeros(most, dtype=np.int64)
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        level = 0 if levels > 0 else -1
        codes[0] = -1
        while level >= 0:
            codes[level] += 1
            if codes[level] == paths.sizes[first + level]:
                level -= 1
                continue
            entry = _entry_at(paths, first + level, level, codes)
            if codes[level] == 0:
                total += chances[level] * told[entry]
            chances[level + 1] = chances[level] * means[entry + codes[level]]
            if level + 1 < levels:
                level += 1
                codes[level] = -1
        gain[i] = total


@kernel()
def add_sampled_rows(paths, arms, means, told, uniforms, gain):
    """The same from walks that are sampled at the means."""
    samples, most = len(uniforms), paths.strides.shape[1]
    codes = np.zeros(most, dtype=np.int64)
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        for s in range(samples):
            for level in range(levels):
                entry = _entry_at(paths, first + level, level, codes)
                total += told[entry]
                size = paths.sizes[first + level]
                codes[level] = _pick(means, entry, size, uniforms[s, level])
        gain[i] = total / samples
