"""Which policies have a compiled loop, and what it is handed.

A loop does what `trial.play` does, round by round, with the same kernels and the same random
numbers, so that its decisions are the same; it only leaves out the Python objects in between.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dowise.environments import Environment
from dowise.policies import Policy
from dowise.policies.bernoulli import BernoulliThompsonSampling
from dowise.policies.ids import InformationDirectedSampling
from dowise.policies.tabular import TabularPolicy
from dowise.policies.thompson import ThompsonSampling
from dowise.policies.ucb import UCB

__all__ = ["compiled_loop"]

Integers = NDArray[np.int64]
Known = list[tuple[int, ...]]
Loop = Callable[
    [Policy, Environment, Known, Integers, np.random.Generator, np.random.Generator], Integers
]


def compiled_loop(policy: Policy) -> Loop | None:
    """The loop of a policy, or None where it has to be played round by round."""
    kind: type = type(policy)  # a subclass may do anything
    if kind is UCB:
        return _ucb
    if kind is InformationDirectedSampling:
        return _ids
    if kind is ThompsonSampling and not policy.propensity_samples:  # type: ignore[attr-defined]
        return _thompson
    two_valued = len(policy.problem.domains[policy.problem.reward]) == 2
    if kind is BernoulliThompsonSampling and two_valued:
        return None if policy.propensity_samples else _bernoulli  # type: ignore[attr-defined]
    return None


def _ids(
    policy: Policy,
    world: Environment,
    known: Known,
    numbers: Integers,
    outcomes: np.random.Generator,
    own: np.random.Generator,
) -> Integers:
    """`decide` as it is, its time being that of the draws; the rest of a round is compiled."""
    from dowise.simulation.kernels import play_and_count

    assert isinstance(policy, InformationDirectedSampling)
    belief, problem = policy.belief, policy.problem
    tables, arrays = belief.tables, world.arrays(known)
    contexts = [problem.context_labels(codes) for codes in known]
    codes = np.array(known, dtype=np.int64)
    own_fixed = np.array([tables.fixed(arm) for arm in problem.arms])
    place = {arm: i for i, arm in enumerate(problem.arms)}
    uniforms = _uniforms(outcomes, numbers, arrays.order)
    chosen = np.empty(len(numbers), dtype=np.int64)
    for t, number in enumerate(numbers.tolist()):
        best = chosen[t] = place[policy.decide(contexts[number], own).arm]
        play_and_count(
            belief.counts, arrays.cpts[min(number, len(arrays.cpts) - 1)], *arrays[1:6],
            codes[number], arrays.fixed[best], uniforms[t], arrays.observed, own_fixed[best],
            tables.starts, tables.strides,
        )  # fmt: skip
    return chosen


def _thompson(
    policy: Policy,
    world: Environment,
    known: Known,
    numbers: Integers,
    outcomes: np.random.Generator,
    own: np.random.Generator,
) -> Integers:
    from dowise.simulation.kernels import run_thompson

    assert isinstance(policy, ThompsonSampling)
    belief, problem = policy.belief, policy.problem
    program, tables, arrays = belief.program, belief.tables, world.arrays(known)
    rows = np.array([belief.rewards.row_entries(problem.context_labels(codes)) for codes in known])
    chosen = np.empty(len(numbers), dtype=np.int64)
    run_thompson(
        _keys(own, len(numbers)), belief.counts, rows, program.row_slots, program.row_sizes,
        program.outputs, program.starts, program.lefts, program.rights, program.results,
        program.slots, belief.rewards.worth,
        *arrays[:6], numbers, np.array(known, dtype=np.int64), arrays.fixed,
        _uniforms(outcomes, numbers, arrays.order), arrays.observed,
        np.array([tables.fixed(arm) for arm in problem.arms]), tables.starts, tables.strides,
        chosen,
    )  # fmt: skip
    return chosen


def _ucb(
    policy: Policy,
    world: Environment,
    known: Known,
    numbers: Integers,
    outcomes: np.random.Generator,
    _own: np.random.Generator,
) -> Integers:
    from dowise.simulation.kernels import run_ucb

    assert isinstance(policy, UCB)
    return _tabular(policy, world, known, numbers, outcomes, run_ucb, policy.exploration)


def _bernoulli(
    policy: Policy,
    world: Environment,
    known: Known,
    numbers: Integers,
    outcomes: np.random.Generator,
    own: np.random.Generator,
) -> Integers:
    from dowise.simulation.kernels import run_bernoulli

    assert isinstance(policy, BernoulliThompsonSampling)
    keys, prior = _keys(own, len(numbers)), np.array(policy.prior)
    return _tabular(policy, world, known, numbers, outcomes, run_bernoulli, keys, prior)


def _tabular(
    policy: TabularPolicy,
    world: Environment,
    known: Known,
    numbers: Integers,
    outcomes: np.random.Generator,
    run: Callable[..., None],
    *first: object,
) -> Integers:
    arrays = world.arrays(known)
    reward = arrays.observed[list(policy.problem.domains).index(policy.problem.reward)]
    tables = [policy.table(codes) for codes in known]
    chosen = np.empty(len(numbers), dtype=np.int64)
    run(
        *first, np.array([table.plays for table in tables]),
        np.array([table.totals for table in tables]), np.array(policy.problem.scaled_rewards),
        reward,
        *arrays[:6], numbers, np.array(known, dtype=np.int64), arrays.fixed,
        _uniforms(outcomes, numbers, arrays.order), chosen,
    )  # fmt: skip
    return chosen


def _keys(own: np.random.Generator, rounds: int) -> NDArray[np.uint64]:
    """The two words that each round's `decide` draws from the policy's generator."""
    return own.bit_generator.random_raw(2 * rounds).reshape(rounds, 2)


def _uniforms(
    outcomes: np.random.Generator, numbers: Integers, order: Integers
) -> NDArray[np.float64]:
    """The uniforms that each round's `play` draws."""
    return outcomes.random((len(numbers), len(order)))
