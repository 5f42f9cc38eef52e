"""A whole trial of information-directed sampling, compiled: the decisions that stepping makes.

For a Dirichlet posterior in single precision, driven by the estimates themselves. Every round draws
all rewards, finds Δ and g, the pair of arms, one of the two, and counts what the world then shows:
the kernels are those that `decide` calls one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Dirichlet
from dowise.belief.kernels import count_record, draw_results
from dowise.compiling import kernel
from dowise.information.pairs import best_pair
from dowise.information.ratio import NOTHING
from dowise.information.summary import find_and_count, summarise
from dowise.model.kernels import observe_round
from dowise.model.sampling import Script
from dowise.policies.thompson import Learned, arms_of
from dowise.problem import Problem
from dowise.randomness import keys_and_coins

__all__ = ["play_trial"]


def play_trial(
    problem: Problem,
    posterior: Dirichlet,
    samples: int,
    script: Script,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The arm of every round; the posterior has learned them."""
    model, rounds = posterior.model, len(script.contexts)
    rows = np.array([model.rows(tuple(codes)) for codes in script.known.tolist()])
    chosen = np.empty(rounds, dtype=np.int64)
    drawn = np.empty((*model.circuit.results.shape, samples), dtype=np.float32)
    learned = Learned(posterior.prior, posterior.counts, posterior.unused)
    circuit = model.circuit.tape, posterior.block, problem.payoff.scaled
    _play_rounds(
        *keys_and_coins(rng, rounds), learned, arms_of(problem, model.factors), rows, circuit,
        drawn, script, chosen,
    )  # fmt: skip
    return chosen


@kernel()
def _play_rounds(
    keys: Any, coins: Any, own: Any, arms: Any, rows: Any, circuit: Any, drawn: Any, script: Any,
    chosen: Any,
) -> None:  # fmt: skip
    """Each round a decision and one more record; `circuit` is (tape, block, what values are worth).

    rows[c] are the rows of the circuit under context c; `drawn` is room for the draws.
    """
    tape, block, scaled = circuit
    count, others, samples = drawn.shape
    one = script.contexts.ndim  # a literal would have everything compiled anew for it
    winners = np.empty(samples, dtype=np.int64)
    winning = np.empty(count, dtype=np.int64)
    best, means = np.empty(count), np.empty(count)
    regret, gain = np.empty(count), np.empty(count)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    for t in range(len(chosen)):
        here = rows[script.contexts[t]]
        draw_results(keys[t], own.prior, own.counts, here, tape, block, one - one, drawn)
        peak, several = find_and_count(drawn, scaled, arms.costs, winners, best, winning)
        joint = np.empty((count, several, others + 1))
        for a in range(count):
            means[a] = -arms.costs[a]
        summarise(drawn, scaled, peak, winners, winning[:several], best, joint, means, regret, gain)
        first, second, probability = best_pair(regret, gain, NOTHING)
        arm = chosen[t] = first if coins[t] < probability else second
        observe_round(script, t, chosen[t], codes, seen)
        p = arms.place[arm]
        count_record(
            own.counts, own.unused, seen, arms.fixed[arm], arms.under[p], arms.starts,
            arms.strides, one,
        )  # fmt: skip
