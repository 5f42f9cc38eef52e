"""Expected regret: what each round of a trial cost by the lights of all that was seen before it.

A race has a belief of its own, with the prior that its worlds are drawn from, and learns every
record of a trial. In each round, before it learns, it draws CPTs from its posterior and asks how
far the arm that was played is from the best: E[max_b μ_b − μ_a | history]. By the tower rule the
sum over the rounds has the same mean over worlds as the regret under the true CPTs, whoever chose
the arms, and without the noise of which world it was; the draws add little, for that of one round
has nothing to do with that of the next. All policies of a trial have the same keys of draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, njit

from dowise._core.kernels import kernel
from dowise._core.rng import draw_keys
from dowise._core.types import FloatArray, IntArray
from dowise.belief import Belief, Posterior
from dowise.belief.draw_kernels import count_record, draw_block, workspace
from dowise.belief.mixture_kernels import (
    draw_mixed_block,
    lane_buffers,
    learn_mixed,
    weigh,
    with_entries,
)
from dowise.model.draws import Draws
from dowise.model.kernels import observe_round, unrolled
from dowise.model.sampler import TrialScript
from dowise.policies.thompson import Learned, arms_of, mixed_of
from dowise.problem import Payoff, Record

DRAWS = 32
"""From the posterior in every round: they add less than a per cent to the variance over worlds."""


class RewardScale(NamedTuple):
    """Net worth of rewards and arms, scaled to [0, 1]."""

    least: FloatArray
    """Of each arm where the reward has its first value."""
    more: FloatArray
    """What the reward's other values are worth beyond that."""


def _worth(payoff: Payoff, arms: int) -> RewardScale:
    scaled = payoff.scaled
    return RewardScale(payoff.net_scaled(np.full(arms, scaled[0])), scaled[1:] - scaled[0])


def expected_regrets(
    belief: Belief, script: TrialScript, chosen: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return E[max_b μ_b − μ_a | history] of the played arm in every round, in the user's units.

    `belief` is one of the world's own problem, and has learned what was shown before the first
    round; it learns all rounds of the trial. `chosen` has positions among the problem's arms.
    """
    problem, posterior = belief.problem, belief.posterior
    worth = _worth(problem.payoff, len(problem.arms))
    if posterior.is_settled and posterior.is_single_precision:
        gaps = _with_dirichlet(posterior, worth, script, chosen, rng)
    elif posterior.is_single_precision:
        gaps = _with_mixture(posterior, worth, script, chosen, rng)
    else:
        gaps = stepped(belief, worth, script, chosen, rng)
    return problem.payoff.span * gaps


def stepped(
    belief: Belief,
    worth: RewardScale,
    script: TrialScript,
    chosen: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Round by round, with any belief: what the compiled loops do."""
    problem, gaps = belief.problem, np.empty(len(chosen))
    known = [tuple(codes) for codes in script.known.tolist()]
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    for t, arm in enumerate(chosen.tolist()):
        drawn = belief.draw(known[script.contexts[t]], DRAWS, rng)
        gaps[t] = _gap_of(drawn, worth, arm)
        seen = np.empty(len(problem.graph), dtype=np.int64)
        observe_round(script, t, arm, codes, seen)
        played = problem.arms[arm]
        belief.learn(Record(problem, played, seen, problem.fixed(played)))
    return gaps


def _gap_of(drawn: Draws, worth: RewardScale, arm: int) -> float:
    rewards = worth.least[:, None] + np.einsum("avs,v->as", drawn.others, worth.more)
    return float((rewards.max(axis=0) - rewards[arm]).mean())


def _with_dirichlet(
    posterior: Posterior,
    worth: RewardScale,
    script: TrialScript,
    chosen: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    model, gaps = posterior.model, np.empty(len(chosen))
    rows = np.array([model.rows(tuple(codes)) for codes in script.known.tolist()])
    _expect_rounds(
        draw_keys(rng, len(chosen)),
        Learned(posterior.prior, posterior.counts, posterior.unused),
        arms_of(posterior.problem, model.factors),
        rows,
        model.circuit.tape,
        worth,
        script,
        chosen,
        np.empty((2, DRAWS)),
        gaps,
    )
    return gaps


def _with_mixture(
    posterior: Posterior,
    worth: RewardScale,
    script: TrialScript,
    chosen: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    model, gaps = posterior.model, np.empty(len(chosen))
    own, entries = mixed_of(posterior, script.known)
    _expect_mixed_rounds(
        draw_keys(rng, len(chosen)),
        own,
        arms_of(posterior.problem, model.factors),
        entries,
        model.circuit.tape,
        worth,
        script,
        chosen,
        np.empty((2, DRAWS)),
        gaps,
    )
    return gaps


@njit(inline="always")
def _gap(values: Any, results: Any, worth: Any, played: Any, rewards: Any) -> Any:
    """Return the distance of an arm from the best one, averaged over the lanes.

    There are as many lanes as rewards[0] and rewards[1] are long: room for those of an arm, and of
    the best so far.
    """
    own, best = rewards[0], rewards[1]
    total = 0.0
    for lane in range(len(best)):
        best[lane] = -np.inf
    for arm in range(results.shape[0]):
        for lane in range(len(own)):
            own[lane] = worth.least[arm]
        for y in range(results.shape[1]):
            row = values[results[arm, y]]
            for lane in range(len(own)):  # rounding may have carried a sum beyond 1
                own[lane] += worth.more[y] * min(row[lane], float32(1))
        for lane in range(len(best)):
            best[lane] = own[lane] if own[lane] > best[lane] else best[lane]
        if arm == played:
            for lane in range(len(own)):
                total -= own[lane]
    for lane in range(len(best)):
        total += best[lane]
    return total / len(best)


@kernel()
def _expect_rounds(
    keys: Any,
    own: Any,
    arms: Any,
    rows: Any,
    tape: Any,
    worth: Any,
    script: Any,
    chosen: Any,
    rewards: Any,
    found: Any,
) -> None:
    """For each round, draw all rewards, take the mean gap of the played arm, and learn the record.

    rows[c] are the rows of the circuit under context c.
    """
    circuit = unrolled(tape)
    one, lanes = script.contexts.ndim, rewards.shape[1]  # a literal would be compiled anew
    work = workspace(circuit, lanes)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    for t in range(len(chosen)):
        arm, here = chosen[t], rows[script.contexts[t]]
        draw_block(keys[t], own.prior, own.counts, here, circuit, one - one, lanes, work)
        found[t] = _gap(work.values, circuit.results, worth, arm, rewards)
        observe_round(script, t, arm, codes, seen)
        p = arms.place[arm]
        count_record(
            own.counts,
            own.unused,
            seen,
            arms.fixed[arm],
            arms.under[p],
            arms.starts,
            arms.strides,
            one,
        )


@kernel()
def _expect_mixed_rounds(
    keys: Any,
    own: Any,
    arms: Any,
    entries: Any,
    tape: Any,
    worth: Any,
    script: Any,
    chosen: Any,
    rewards: Any,
    found: Any,
) -> None:
    """Compute expected regrets for a mixture; entries[c] is what versions read under context c."""
    circuit = unrolled(tape)
    one, lanes = script.contexts.ndim, rewards.shape[1]
    work, room = workspace(circuit, lanes), lane_buffers(own.tables, own.reading, lanes)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    for t in range(len(chosen)):
        arm, here = chosen[t], with_entries(own.reading, entries[script.contexts[t]])
        weigh(own.learned.evidence, own.options, own.weights)
        draw_mixed_block(
            keys[t],
            own.learned,
            own.tables,
            own.options,
            own.weights,
            here,
            circuit,
            (one - one, lanes),
            work,
            room,
        )
        found[t] = _gap(work.values, circuit.results, worth, arm, rewards)
        observe_round(script, t, arm, codes, seen)
        p = arms.place[arm]
        learn_mixed(
            own.learned,
            own.tables,
            own.under[p],
            arms.under[p],
            arms.strides,
            seen,
            arms.fixed[arm],
            one,
        )
