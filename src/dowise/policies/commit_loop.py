"""A whole trial of `commit-kg`, compiled."""

from __future__ import annotations

import numpy as np

from dowise.belief.kernels import count_record
from dowise.compiling import kernel
from dowise.model.kernels import observe_round
from dowise.policies.commit_kernels import choose_in

__all__ = ["play_rounds"]


@kernel()
def play_rounds(known, unused, arms, contexts, numbers, trace, worth, pace, script, chosen):
    """Each round a choice, then one more record.

    numbers[c] is where the script's context c stands among all; pace: how many rounds are to come
    for each one played, how many are added to those, and how many there were before the first.
    """
    one = script.contexts.ndim  # a literal would have everything compiled anew for it
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    may = np.ones(len(arms.place), dtype=np.bool_)
    times, head_start, before = pace
    for t in range(len(chosen)):
        now = numbers[script.contexts[t]]
        rounds = times * (before + t + head_start)
        best = choose_in(known, contexts, now, trace, worth, may, rounds).arm
        chosen[t] = best
        observe_round(script, t, best, codes, seen)
        p = arms.place[best]
        count_record(
            known.counts, unused, seen, arms.fixed[best], arms.under[p], arms.starts, arms.strides,
            one,
        )  # fmt: skip
        contexts.visits[now] += 1
