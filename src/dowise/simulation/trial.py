"""One trial: a policy plays T rounds in a world, and what each round cost is written down.

Everything random is keyed by (seed, trial, purpose): the world, its contexts, the uniforms that
drive outcomes, and the policy's own draws. So within a trial every policy faces the same world and
the same contexts, and the same arm in the same round has the same outcome; and no trial depends on
any other, on their order, or on who runs them.

An `Environment` has its contexts drawn, and its rounds played by policies that can, in compiled
loops; a world of somebody else's is asked one `draw_context` and one `play` at a time, with the
same random numbers.

A policy may have another problem in mind than the world's (`On` in `entrants.py`): it decides among
its own arms, which are found again among the world's, and regret is the world's word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.environments import Environment, World, Worlds, worlds_of
from dowise.errors import DowiseError, kind_of
from dowise.model.sampling import Script
from dowise.policies import Policy
from dowise.policies.policy import BayesianPolicy, Loop, RecordPolicy
from dowise.problem import Intervention, Problem
from dowise.randomness import stream
from dowise.simulation.entrants import places_of_arms

__all__ = ["Purpose", "Trial", "make_world", "play", "run_trial", "seed_of"]

_FEW = 2**16  # contexts, for each of which there may be a place of its own

Factory = Callable[[Problem], Policy]
Integers = NDArray[np.int64]


class Purpose(IntEnum):
    """What a stream of random numbers is for."""

    WORLD = 0
    CONTEXTS = 1
    OUTCOMES = 2
    POLICY = 3
    RECORDS = 4
    SEED = 5
    EXPECTED = 6


@dataclass(frozen=True, eq=False)
class Trial:
    """Of every round which arm was played, by its position, and what it cost in expectation."""

    problem: Problem
    arms: Integers
    regrets: NDArray[np.float64]
    expected: NDArray[np.float64] | None = None
    """What it cost by the posterior, where that was asked for (`dowise.simulation.expected`)."""


def make_world(given: str | Problem | World | Worlds, seed: int, trial: int) -> World:
    """The world of a trial, the same for every policy."""
    return worlds_of(given).draw(stream(seed, trial, Purpose.WORLD))


def seed_of(seed: int, trial: int) -> int:
    """For a policy that has a seed of its own: another one in every trial."""
    return int(stream(seed, trial, Purpose.SEED).integers(2**31))


def run_trial(
    world: World,
    make: Factory,
    horizon: int,
    seed: int,
    trial: int,
    observational: int = 0,
    expected: bool = False,
) -> Trial:
    """Let a fresh policy play in a world, after so many observational records.

    Where regret is `expected` too, the world is one that was drawn from its problem's prior.
    """
    policy = make(world.problem)
    places = places_of_arms(world.problem, getattr(policy, "problem", world.problem))
    if observational:
        _warm_up(policy, world, observational, stream(seed, trial, Purpose.RECORDS))
    contexts = _draw_contexts(world, horizon, seed, trial)
    kinds, numbers = _distinct(contexts)
    known: list[tuple[int, ...]] = [tuple(row) for row in kinds.tolist()]
    outcomes = stream(seed, trial, Purpose.OUTCOMES)
    own = stream(seed, trial, Purpose.POLICY)
    loop = _compiled_loop(policy, world)
    if loop is not None and isinstance(world, Environment):
        uniforms = outcomes.random((horizon, len(world.graph)))
        mechanism = world.mechanism(known)
        mechanism = mechanism._replace(fixed=mechanism.fixed[places])
        chosen = places[loop(Script(mechanism, numbers, kinds, uniforms), own)]
    else:
        chosen = play(policy, world, known, numbers, outcomes, own)
    regrets = world.problem.payoff.regrets(_means(world, known))[numbers, chosen]
    if not expected:
        return Trial(world.problem, chosen, regrets)
    assert isinstance(world, Environment)
    uniforms = stream(seed, trial, Purpose.OUTCOMES).random((horizon, len(world.graph)))
    script = Script(world.mechanism(known), numbers, kinds, uniforms)
    shown = _shown(world, observational, stream(seed, trial, Purpose.RECORDS))
    rng = stream(seed, trial, Purpose.EXPECTED)
    return Trial(
        world.problem, chosen, regrets, _expected(world.problem, shown, script, chosen, rng)
    )


def _expected(
    problem: Problem,
    shown: Iterable[Mapping[str, object]],
    script: Script,
    chosen: Integers,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """What each round cost by a belief that learns what was shown first, and then the rounds."""
    from dowise.simulation.expected import expected_regrets

    belief = Belief(problem)
    for outcome in shown:
        belief.update(Intervention(), outcome)
    return expected_regrets(belief, script, chosen, rng)


def play(
    policy: Policy,
    world: World,
    known: list[tuple[int, ...]],
    numbers: Integers,
    outcomes: np.random.Generator,
    own: np.random.Generator,
) -> Integers:
    """Round by round, through `decide` and `observe`: numbers[t] is the context of round t."""
    contexts = [world.problem.context_labels(codes) for codes in known]
    chosen = np.empty(len(numbers), dtype=np.int64)
    for t, number in enumerate(numbers.tolist()):
        context = contexts[number]
        decision = policy.decide(context, own)
        if not hasattr(decision, "arm"):
            raise DowiseError(
                f"decide must return a Decision, not {kind_of(decision)}: Decision(arm, …)"
            )
        arm = decision.arm
        policy.observe(arm, world.play(arm, context, outcomes))
        chosen[t] = world.problem.arm_index(arm)
    return chosen


def _compiled_loop(policy: Policy, world: World) -> Loop | None:
    """What plays whole trials of this policy in this world, or None where it has to be stepped."""
    if not isinstance(policy, RecordPolicy) or not _keeps(world, "play"):
        return None
    return policy.compiled_loop()


def _keeps(world: World, method: str) -> bool:
    """Whether this method is the `Environment`'s own, so that its compiled twin may stand in."""
    return getattr(getattr(world, method), "__func__", None) is getattr(Environment, method)


def _draw_contexts(world: World, rounds: int, seed: int, trial: int) -> Integers:
    """The contexts of all rounds as positions of labels: (rounds, context variables)."""
    is_ours = isinstance(world, Environment) and _keeps(world, "draw_context")
    if is_ours and not world.problem.context:
        return np.empty((rounds, 0), dtype=np.int64)
    rng = stream(seed, trial, Purpose.CONTEXTS)
    if is_ours and isinstance(world, Environment):
        return world.draw_contexts(rounds, rng)
    codes = [world.problem.context_codes(world.draw_context(rng)) for _ in range(rounds)]
    return np.array(codes, dtype=np.int64).reshape(rounds, len(world.problem.context))


def _means(world: World, known: list[tuple[int, ...]]) -> NDArray[np.float64]:
    """What every arm is worth in these contexts, as the world says: (contexts, arms)."""
    problem = world.problem
    if isinstance(world, Environment) and _keeps(world, "means"):
        return world.means_in(known)
    rows = [np.asarray(world.means(problem.context_labels(codes)), dtype=float) for codes in known]
    for row in rows:
        if row.shape != (len(problem.arms),) or not np.isfinite(row).all():
            raise DowiseError(
                f"means gave {row!r}, not one number for each of {len(problem.arms)} arms: "
                "check_environment says what a world needs"
            )
    return np.array(rows)


def _distinct(contexts: Integers) -> tuple[Integers, Integers]:
    """The different contexts, in the order of their codes, and which of them each round has."""
    if not contexts.shape[1]:  # without context variables there is one context, ()
        return contexts[:1], np.zeros(len(contexts), dtype=np.int64)
    sizes = contexts.max(axis=0) + 1
    if prod(sizes.tolist()) > _FEW:
        kinds, numbers = np.unique(contexts, axis=0, return_inverse=True)
        return kinds, numbers.ravel()
    places = np.ravel_multi_index(tuple(contexts.T), tuple(sizes))
    is_there = np.zeros(prod(sizes.tolist()), dtype=np.bool_)
    is_there[places] = True
    kinds = np.stack(np.unravel_index(np.flatnonzero(is_there), tuple(sizes)), axis=1)
    return kinds, (is_there.cumsum() - 1)[places]


def _warm_up(policy: Policy, world: World, records: int, rng: np.random.Generator) -> None:
    """Show the policy what the world does by itself, as far as the policy can use it.

    A policy that keeps its data by arm learns from do() only if that is an arm.
    """
    nothing = Intervention()
    arms = getattr(policy, "problem", world.problem).arms
    if not isinstance(policy, BayesianPolicy) and nothing not in arms:
        return
    for outcome in _shown(world, records, rng):
        policy.observe(nothing, outcome)


def _shown(world: World, records: int, rng: np.random.Generator) -> Iterator[Mapping[str, object]]:
    """So many observational records."""
    for _ in range(records):
        yield world.play(Intervention(), world.draw_context(rng), rng)
