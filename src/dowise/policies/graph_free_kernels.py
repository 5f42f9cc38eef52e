"""Kernels of the graph-free hypothesis: scoring predictions of rewards, and its weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from dowise._core.kernels import kernel
from dowise.belief.draw_kernels import count_record, mean_results
from dowise.belief.pooled_kernels import log_in_nats
from dowise.belief.pooling import NAT
from dowise.belief.variates import exp64

_LEAST = 1e-9  # smallest predicted probability: rounding of sums in the circuit


@kernel()
def prediction_gain(counts: Any, predicted: Any, value: Any) -> Any:
    """Return how much better an arm's own rewards predict a value than the graph does.

    `counts` are those of the arm's rewards so far, with a Dirichlet(1) prior; `predicted` are the
    probabilities of the reward's values by the graph. The unit is 2⁻³⁶ nats.
    """
    total = 0.0
    for y in range(len(counts)):
        total += counts[y] + 1.0
    by_graph = min(max(predicted[value], _LEAST), 1.0)
    return log_in_nats((counts[value] + 1.0) / total) - log_in_nats(by_graph)


@kernel()
def weight_of(prior: Any, gain: Any) -> Any:
    """Return the posterior probability of the graph-free hypothesis; `gain` is in 2⁻³⁶ nats."""
    odds_of_graph = exp64(min(max(-gain / NAT, -700.0), 700.0))
    return prior / (prior + (1.0 - prior) * odds_of_graph)


@kernel()
def score_pieces(
    state: Any,
    order: Any,
    codes: Any,
    earlier: Any,
    continues: Any,
    fixed: Any,
    under: Any,
    plays: Any,
    layout: Any,
    rows: Any,
    tape: Any,
    counts: Any,
    gains: Any,
) -> None:
    """Score the reward of each piece, then learn the piece; fill `gains`.

    The distinct pieces are numbered: codes[d] are the values that are known with piece d,
    earlier[d] those that its record was learned with before if continues[d], fixed[d] its settings,
    under[d] its factors, and plays[d] its arm and context, a negative arm if no reward is scored.
    `layout` has the starts and strides of the factors and the position of the reward; rows[c] are
    the circuit's rows and counts[c] the rewards of all arms in context c.
    """
    starts, strides, position = layout
    predicted = np.empty(counts.shape[1:])
    step = codes.ndim - 1  # a literal 1 would be compiled again as its own type
    for i in range(len(order)):
        d = order[i]
        if continues[d]:
            count_record(state, earlier[d], fixed[d], under[d], starts, strides, -step)
        arm, context = plays[d, 0], plays[d, 1]
        gains[i] = 0
        if arm >= 0:
            value = codes[d, position]
            mean_results(state.prior, state.counts, rows[context], tape, predicted)
            gains[i] = prediction_gain(counts[context, arm], predicted[arm], value)
            counts[context, arm, value] += 1
        count_record(state, codes[d], fixed[d], under[d], starts, strides, step)
