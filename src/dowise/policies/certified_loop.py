"""A whole trial of `certified-ids`, compiled: the decisions and certificates that stepping makes.

For a Dirichlet posterior in single precision and a single draw to fall back on. The kernels are
those that `decide` calls one by one (`information/certificate.py`).
"""

from __future__ import annotations

from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Dirichlet
from dowise.belief.kernels import count_record, draw_results, mean_results
from dowise.compiling import kernel
from dowise.information.betting import certify
from dowise.information.certificate import choosing, least_bound, limit_of
from dowise.information.pairs import best_pair
from dowise.information.ratio import NOTHING
from dowise.information.summary import find_and_count, summarise
from dowise.model.kernels import observe_round
from dowise.model.sampling import Script
from dowise.model.winners import find_winners
from dowise.policies.thompson import Learned, arms_of
from dowise.problem import Problem

__all__ = ["Played", "can_play", "play_trial"]

_MOST_WORDS = 4  # of a round: the key of its draws, then a coin or the key of another draw


class Played(NamedTuple):
    """A trial, round by round."""

    arms: NDArray[np.int64]
    certificates: NDArray[np.float64]
    """cert_t."""
    held: NDArray[np.bool_]
    """Whether draws certified what was played; else Thompson Sampling chose."""


class _Terms(NamedTuple):
    """What certificates are about; see `certificate_of`."""

    worth: NDArray[np.float64]
    scaled: NDArray[np.float64]
    fit: int
    lam: float
    evidence: float
    least: float
    limit: float


class _Source(NamedTuple):
    """Where draws come from: the circuit, and rows[c], its rows under context c."""

    tape: NDArray[Any]
    block: int
    rows: NDArray[np.int64]


def can_play(rng: np.random.Generator) -> bool:
    """Whether the generator makes a uniform of one word; NumPy's all do but one."""
    return not isinstance(rng.bit_generator, np.random.MT19937)


def play_trial(
    problem: Problem,
    posterior: Dirichlet,
    samples: int,
    worth: NDArray[np.float64],
    lam: float,
    failure: float,
    script: Script,
    rng: np.random.Generator,
) -> Played:
    """All rounds; the posterior has learned them, and the generator is where stepping leaves it.

    How many words a round takes is known when it has been played. So as many as there may be are
    made, and the generator is set back to behind those that were taken.
    """
    model, rounds, bits = posterior.model, len(script.contexts), rng.bit_generator
    rows = np.array([model.rows(tuple(codes)) for codes in script.known.tolist()])
    arms, values = worth.shape
    terms = _Terms(
        worth, problem.payoff.scaled, choosing(samples), lam, -log(failure),
        least_bound(lam, values), limit_of(lam, arms),
    )  # fmt: skip
    played = Played(np.empty(rounds, np.int64), np.empty(rounds), np.empty(rounds, np.bool_))
    before = bits.state
    words = bits.random_raw(_MOST_WORDS * rounds)
    taken = _play_rounds(
        words, Learned(posterior.prior, posterior.counts, posterior.unused),
        arms_of(problem, model.factors), _Source(model.circuit.tape, posterior.block, rows), terms,
        np.empty((arms, values - 1, samples), dtype=np.float32), script, played,
    )  # fmt: skip
    bits.state = before
    bits.random_raw(taken, output=False)
    return played


@kernel()
def _play_rounds(
    words: Any, own: Any, arms: Any, source: Any, terms: Any, drawn: Any, script: Any, played: Any
) -> Any:
    """Each round a decision and one more record; how many words they took.

    `drawn` is room for the draws of a round.
    """
    count, others, samples = drawn.shape
    one = script.contexts.ndim  # a literal would have everything compiled anew for it
    winners = np.empty(samples, dtype=np.int64)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    means, early = np.empty((count, others + 1)), np.empty((count, others, terms.fit), np.float32)
    again = np.empty((count, others, one), dtype=np.float32)
    taken = one - one
    for t in range(len(played.arms)):
        here = source.rows[script.contexts[t]]
        key, taken = words[taken : taken + 2], taken + 2
        draw_results(key, own.prior, own.counts, here, source.tape, source.block, one - one, drawn)
        mean_results(own.prior, own.counts, here, source.tape, means)
        action, bound = _certified(drawn, early, winners, means, arms.costs, terms)
        held = bound <= terms.limit
        if held:
            coin, taken = np.float64(words[taken] >> np.uint64(11)) * 2.0**-53, taken + 1
            arm = action[0] if coin < action[2] else action[1]
        else:
            key, taken = words[taken : taken + 2], taken + 2
            draw_results(
                key, own.prior, own.counts, here, source.tape, source.block, one - one, again
            )
            find_winners(again, terms.scaled, arms.costs, winners[:one])
            arm = winners[0]
        played.arms[t], played.held[t] = arm, held
        played.certificates[t] = min(bound, terms.limit)
        observe_round(script, t, arm, codes, seen)
        p = arms.place[arm]
        count_record(
            own.counts, own.unused, seen, arms.fixed[arm], arms.under[p], arms.starts,
            arms.strides, one,
        )  # fmt: skip
    return taken


@kernel()
def _certified(drawn: Any, early: Any, winners: Any, means: Any, costs: Any, terms: Any) -> Any:
    """(π, what certifies it), as `certificate_of`; `early` is room for the draws that choose."""
    count, others, fit = early.shape
    early[:] = drawn[:, :, :fit]
    chosen_by, best = np.empty(fit, dtype=np.int64), np.empty(count)
    winning = np.empty(count, dtype=np.int64)
    peak, several = find_and_count(early, terms.scaled, costs, chosen_by, best, winning)
    winning = winning[:several]
    joint, net = np.empty((count, several, others + 1)), np.empty(count)
    for a in range(count):
        net[a] = 0.0 - costs[a]
    regret, gain = np.empty(count), np.empty(count)
    summarise(early, terms.scaled, peak, chosen_by, winning, best, joint, net, regret, gain)
    action = best_pair(regret, gain, NOTHING)
    find_winners(drawn, terms.scaled, costs, winners)
    bound, _ = certify(
        drawn, terms.worth, winners, means, joint, winning, action, fit, terms.lam, terms.evidence
    )
    return action, max(bound, terms.least)
