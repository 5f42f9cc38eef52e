"""Whole trials in compiled loops, made of the same kernels that `decide`, `play` and `observe` use.

In every loop the world is given by its CPTs, flat, one row for each context that occurs (or one for
all), and by where they stand; `contexts[t]` numbers round t's context, whose codes are
known[contexts[t]]; `uniforms[t]` drive the outcome; `fixed[arm]` are the codes that an arm sets.
Each fills `chosen[t]`, the arm of every round.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dowise.belief.kernels import count_record, draw_results
from dowise.environments.kernels import sample_record
from dowise.policies.kernels import draw_betas, ucb_index

__all__ = ["play_and_count", "run_bernoulli", "run_thompson", "run_ucb"]


@njit(cache=True)
def _play(cpts, order, starts, strides, sizes, places, known, fixed, uniforms, codes):
    """Let the world run in a context under an arm; `codes` come back whole."""
    codes[:] = fixed
    for k in range(len(places)):
        codes[places[k]] = known[k]
    sample_record(cpts, codes, order, starts, strides, sizes, uniforms)


@njit(cache=True)
def play_and_count(
    counts, cpts, order, world_starts, world_strides, sizes, places, known, fixed, uniforms,
    observed, own_fixed, own_starts, own_strides,
):  # fmt: skip
    """One round after the choice: the world runs, and the belief's counts learn what was seen."""
    codes = np.empty(len(order), dtype=np.int64)
    _play(cpts, order, world_starts, world_strides, sizes, places, known, fixed, uniforms, codes)
    seen = np.empty(len(observed), dtype=np.int64)
    for v in range(len(observed)):
        seen[v] = codes[observed[v]]
    count_record(counts, seen, own_fixed, own_starts, own_strides)


@njit(cache=True)
def run_thompson(
    keys, counts, rows, row_slots, row_sizes, outputs, starts, lefts, rights, results, slots,
    worth, cpts, order, world_starts, world_strides, sizes, places, contexts, known, fixed,
    uniforms, observed, own_fixed, own_starts, own_strides, chosen,
):  # fmt: skip
    """Thompson Sampling: one draw of all rewards, the best arm, one more record.

    rows[c] are the belief's CPT rows under context c; worth[y] what a value of the reward is worth;
    `observed` are the places of the observed variables among the world's.
    """
    drawn = np.empty((results.shape[0], results.shape[1], 1), dtype=np.float32)
    codes = np.empty(len(order), dtype=np.int64)
    seen = np.empty(len(observed), dtype=np.int64)
    for t in range(len(chosen)):
        c = contexts[t]
        draw_results(
            keys[t, 0], keys[t, 1], counts, rows[c], row_slots, row_sizes,
            outputs, starts, lefts, rights, results, 1, slots, drawn,
        )  # fmt: skip
        best, top = 0, -np.inf
        for arm in range(len(drawn)):
            reward = worth[0]
            for y in range(drawn.shape[1]):
                reward += (worth[y + 1] - worth[0]) * drawn[arm, y, 0]
            if reward > top:
                best, top = arm, reward
        chosen[t] = best
        _play(
            cpts[min(c, len(cpts) - 1)], order, world_starts, world_strides, sizes, places,
            known[c], fixed[best], uniforms[t], codes,
        )  # fmt: skip
        for v in range(len(observed)):
            seen[v] = codes[observed[v]]
        count_record(counts, seen, own_fixed[best], own_starts, own_strides)


@njit(cache=True)
def run_ucb(
    exploration, plays, totals, worth, reward,
    cpts, order, starts, strides, sizes, places, contexts, known, fixed, uniforms, chosen,
):  # fmt: skip
    """UCB1; plays[c] and totals[c] are the tables of context c, `reward` the reward's place."""
    index = np.empty(plays.shape[1])
    codes = np.empty(len(order), dtype=np.int64)
    for t in range(len(chosen)):
        c = contexts[t]
        ucb_index(plays[c], totals[c], plays[c].sum(), exploration, index)
        best = index.argmax()
        chosen[t] = best
        _play(
            cpts[min(c, len(cpts) - 1)], order, starts, strides, sizes, places, known[c],
            fixed[best], uniforms[t], codes,
        )  # fmt: skip
        plays[c, best] += 1
        totals[c, best] += worth[codes[reward]]


@njit(cache=True)
def run_bernoulli(
    keys, prior, plays, totals, worth, reward,
    cpts, order, starts, strides, sizes, places, contexts, known, fixed, uniforms, chosen,
):  # fmt: skip
    """Bernoulli Thompson Sampling, for rewards of two values."""
    arms = plays.shape[1]
    shapes, drawn = np.empty((arms, 2)), np.empty((arms, 1), dtype=np.float32)
    codes = np.empty(len(order), dtype=np.int64)
    for t in range(len(chosen)):
        c = contexts[t]
        for arm in range(arms):
            shapes[arm, 0] = prior[0] + totals[c, arm]
            shapes[arm, 1] = prior[1] + plays[c, arm] - totals[c, arm]
        draw_betas(keys[t, 0], keys[t, 1], shapes, drawn)
        best = drawn[:, 0].argmax()
        chosen[t] = best
        _play(
            cpts[min(c, len(cpts) - 1)], order, starts, strides, sizes, places, known[c],
            fixed[best], uniforms[t], codes,
        )  # fmt: skip
        plays[c, best] += 1
        totals[c, best] += worth[codes[reward]]
