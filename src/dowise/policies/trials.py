"""Building blocks of compiled trials: the arms and the posterior as kernels see them.

A loop is written once for all posteriors: a posterior without open edges has no `Mixture`, and
numba leaves out the branch for it when it compiles the loop. The steps of a round are inlined:
passing all these arrays to them would take as long as a cheap round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dowise._core.kernels import kernel
from dowise._core.types import FloatArray, IntArray
from dowise.belief import Posterior
from dowise.belief.draw_kernels import (
    count_record,
    draw_block,
    draw_results,
    smallest_parameter,
)
from dowise.belief.mixture_kernels import (
    draw_mixed_block,
    lane_buffers,
    learn_mixed,
    weigh,
    with_entries,
)
from dowise.belief.posterior import SMALL_PARAMETER, State
from dowise.model import Codes
from dowise.model.draws import first_of_each_kind
from dowise.model.kernels import find_winners, find_winners_by_odds, observe_round
from dowise.model.sampler import TrialScript
from dowise.policies.bayesian import BayesianPolicy
from dowise.problem import Record


class TrialArms(NamedTuple):
    """Settings, factors and costs of the arms."""

    fixed: IntArray
    """fixed[arm]: the codes that an arm sets, negative for other variables."""
    place: IntArray
    """place[arm]: the row of `under` for an arm."""
    under: IntArray
    """under[place, v]: the factor of variable v."""
    starts: IntArray
    strides: IntArray
    costs: FloatArray


class Mixture(NamedTuple):
    """Versions of the tables and weights of the edge sets, for a posterior with open edges."""

    tables: Any
    under: IntArray
    """under[place, version]: the table of each version."""
    options: Any
    weights: Any
    reading: Any


class TrialPosterior(NamedTuple):
    """Posterior that a compiled trial draws from and learns into."""

    state: State
    rows: IntArray
    """rows[c]: entries where the circuit's rows start in context c."""
    mixture: Mixture | None


class WholeDraws(NamedTuple):
    """Draws of all values of the reward, for rounds with small parameters."""

    tape: IntArray
    rows: IntArray
    """rows[c]: entries where this circuit's rows start in context c."""
    compared: IntArray
    """Arms that are not always alike."""


class Outcome(NamedTuple):
    """Room for the outcome of a round."""

    codes: Any
    """Codes of all variables of the world."""
    seen: Any
    """Codes of the observed variables, in the problem's order."""


def trial_arms(posterior: Posterior) -> TrialArms:
    """Return what compiled trials need to know of the arms."""
    problem, factors = posterior.problem, posterior.model.factors
    return TrialArms(
        fixed=np.array([problem.fixed(arm) for arm in problem.arms]),
        place=np.array([factors.place(arm) for arm in problem.arms]),
        under=factors.under_arms,
        starts=factors.starts,
        strides=factors.strides,
        costs=problem.payoff.scaled_costs,
    )


def trial_posterior(posterior: Posterior, contexts: IntArray) -> TrialPosterior:
    """Return a posterior for a compiled trial with these contexts, given by their codes."""
    codes = [tuple(context) for context in contexts.tolist()]
    if posterior.is_settled:
        rows = np.array([posterior.model.rows(context) for context in codes])
        return TrialPosterior(posterior.state(), rows, None)
    shared = posterior.shared
    readings = [shared.reading(context) for context in codes]
    mixture = Mixture(
        tables=shared.tables,
        under=shared.under,
        options=shared.edge_weights.options,
        weights=posterior.weights(),
        reading=readings[0],
    )
    rows = np.array([reading.entries for reading in readings])
    return TrialPosterior(posterior.state(), rows, mixture)


def whole_draws(posterior: Posterior, contexts: IntArray) -> WholeDraws | None:
    """Return what rounds with small parameters need, or None if all shapes are whole numbers."""
    if posterior.any_shape is None:
        return None
    codes = [tuple(context) for context in contexts.tolist()]
    model, costs = posterior.model, posterior.problem.payoff.scaled_costs
    if not posterior.may_be_small:  # never used
        rows = np.array([model.rows(context) for context in codes])
        return WholeDraws(model.circuit.tape, rows, np.arange(1))
    return WholeDraws(
        model.whole_circuit.tape,
        np.array([model.whole_rows(context) for context in codes]),
        first_of_each_kind(model.kinds, costs),
    )


def play_steps(
    policy: BayesianPolicy, script: TrialScript, choose: Callable[[int, Codes], int]
) -> IntArray:
    """Play a trial step by step; `choose` returns the arm of a round, by its number and context."""
    posterior = policy.belief.posterior
    contexts = [tuple(codes) for codes in script.context_codes.tolist()]
    arms, outcome = trial_arms(posterior), new_outcome(script)
    chosen = np.empty(len(script.contexts), dtype=np.int64)
    for t, number in enumerate(script.contexts.tolist()):
        arm = chosen[t] = choose(t, contexts[number])
        observe_round(script, t, arm, outcome.codes, outcome.seen)
        if policy.mixture is None:
            posterior.count_at(int(arms.place[arm]), outcome.seen, arms.fixed[arm])
        else:
            played, number = policy.problem.arms[arm], policy.next_number + t
            values = outcome.seen.copy()
            policy.mixture.learn(Record(policy.problem, played, values, arms.fixed[arm], number))
    policy.next_number += len(chosen)
    return chosen


@kernel()
def new_outcome(script: Any) -> Any:
    """Return room for the outcomes of a trial."""
    mechanism = script.mechanism
    return Outcome(
        np.empty(len(mechanism.order), dtype=np.int64),
        np.empty(len(mechanism.observed), dtype=np.int64),
    )


@njit(forceinline=True)
def mixture_room(mixture: Any, lanes: Any) -> Any:
    """Return room for drawing the versions of `lanes` lanes; None without a mixture."""
    if mixture is None:
        return None
    return lane_buffers(mixture.tables, mixture.reading, lanes)


@njit(forceinline=True)
def draw_rewards(
    key: Any, state: Any, rows: Any, mixture: Any, circuit: Any, lanes: Any, work: Any, room: Any
) -> None:
    """Draw the rewards of all arms in `lanes` lanes, into the values of `work`."""
    first = lanes - lanes  # a literal 0 would compile everything again
    if mixture is None:
        draw_block(key, state.prior, state.counts, rows, circuit, first, lanes, work)
    else:
        weigh(state.evidence, mixture.options, mixture.weights)
        reading = with_entries(mixture.reading, rows)
        draw_mixed_block(
            key,
            state,
            mixture.tables,
            mixture.options,
            mixture.weights,
            reading,
            circuit,
            (first, lanes),
            work,
            room,
        )


@njit(forceinline=True)
def draw_winners(
    key: Any,
    state: Any,
    rows: Any,
    context: Any,
    whole: Any,
    circuit: Any,
    costs: Any,
    drawn: Any,
    winners: Any,
) -> Any:
    """Draw the rewards of all arms as `Posterior.draw` does, and find the best of every draw.

    Returns the sum of the best rewards. `circuit` is (tape, block, scaled reward values), and
    `whole` is None if all shapes are whole numbers.
    """
    tape, block, scaled = circuit
    prior, counts, current, zero = state.prior, state.counts, rows[context], block - block
    if whole is None:
        draw_results(key, prior, counts, current, tape, block, zero, drawn, None)
        return find_winners(drawn, scaled, costs, winners)
    any_shape = whole.rows.ndim > 0  # True; a literal would compile everything again
    if smallest_parameter(prior, counts, current, tape) >= SMALL_PARAMETER:
        draw_results(key, prior, counts, current, tape, block, zero, drawn, any_shape)
        return find_winners(drawn, scaled, costs, winners)
    arms, others, samples = drawn.shape
    out = np.empty((arms, others + 1, samples), dtype=np.float32)
    current = whole.rows[context]
    draw_results(key, prior, counts, current, whole.tape, block, zero, out, any_shape)
    drawn[:] = out[:, 1:]
    return find_winners_by_odds(out, scaled, costs, whole.compared, key[0], zero, winners)


@njit(forceinline=True)
def learn_round(
    state: Any, mixture: Any, arms: Any, script: Any, t: Any, arm: Any, outcome: Any
) -> None:
    """Play an arm in round t, and learn what is observed."""
    observe_round(script, t, arm, outcome.codes, outcome.seen)
    fixed, place = arms.fixed[arm], arms.place[arm]
    one = script.contexts.ndim  # a literal would compile everything again
    if mixture is None:
        count_record(
            state,
            outcome.seen,
            fixed,
            arms.under[place],
            arms.starts,
            arms.strides,
            one,
        )
    else:
        learn_mixed(
            state,
            mixture.tables,
            mixture.under[place],
            arms.under[place],
            arms.strides,
            outcome.seen,
            fixed,
            one,
        )
