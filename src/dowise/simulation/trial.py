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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.environments import DrawnWorlds, Environment, World, Worlds, worlds_of
from dowise.environments.environment import means_of_worlds
from dowise.errors import DowiseError, kind_of
from dowise.model.sampling import Script
from dowise.policies import Policy
from dowise.policies.policy import BayesianPolicy, Loop, RecordPolicy
from dowise.problem import Intervention, Problem
from dowise.randomness import stream, streams
from dowise.simulation.entrants import places_of_arms

__all__ = ["Purpose", "Scene", "Trial", "make_world", "play", "prepared", "run_trial", "seed_of"]

_FEW = 2**16  # contexts, for each of which there may be a place of its own
_AT_ONCE = 2**20  # regrets, at most, of trials that are prepared together

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


class Scene(NamedTuple):
    """What a trial has besides its world before anybody plays."""

    kinds: Integers
    """The different contexts by their codes, in rows."""
    numbers: Integers
    """Which of them each round has."""
    known: list[tuple[int, ...]]
    """The different contexts once more, as worlds and policies take them."""
    regrets: NDArray[np.float64]
    """What each arm costs in each of them."""
    outcomes: np.random.Generator
    own: np.random.Generator


def make_world(given: str | Problem | World | Worlds, seed: int, trial: int) -> World:
    """The world of a trial, the same for every policy."""
    return worlds_of(given).draw(stream(seed, trial, Purpose.WORLD))


def seed_of(seed: int, trial: int) -> int:
    """For a policy that has a seed of its own: another one in every trial."""
    return int(stream(seed, trial, Purpose.SEED).integers(2**31))


def prepared(
    given: Worlds, horizon: int, seed: int, trials: Sequence[int]
) -> Iterator[tuple[World, Scene | None]]:
    """The world of each trial, with its scene where worlds are drawn: some trials at once.

    A world that is there already, and perhaps somebody else's, is asked when its trial comes.
    """
    if not isinstance(given, DrawnWorlds):
        yield from ((make_world(given, seed, trial), None) for trial in trials)
        return
    together = max(1, _AT_ONCE // (horizon * len(given.problem.arms)))
    for start in range(0, len(trials), together):
        some = trials[start : start + together]
        worlds = given.draw_many(streams(seed, [(trial, Purpose.WORLD) for trial in some]))
        yield from zip(worlds, _scenes(worlds, horizon, seed, some), strict=True)


def _scenes(worlds: Sequence[World], horizon: int, seed: int, trials: Sequence[int]) -> list[Scene]:
    """Those of these trials, which have these worlds, all of one problem."""
    contexts = _contexts_of(worlds, horizon, seed, trials)
    known = [[tuple(codes) for codes in kinds.tolist()] for kinds, _ in contexts]
    ours = [world for world in worlds if isinstance(world, Environment) and _keeps(world, "means")]
    if len(ours) == len(worlds):
        means = means_of_worlds(ours, known)
    else:
        means = np.concatenate([_means_of_own(*each) for each in zip(worlds, known, strict=True)])
    regrets = worlds[0].problem.payoff.regrets(means)
    ends = [0, *accumulate(map(len, known))]
    purposes = Purpose.OUTCOMES, Purpose.POLICY
    made = iter(streams(seed, [(trial, purpose) for trial in trials for purpose in purposes]))
    return [
        Scene(*seen, own, regrets[start:end], next(made), next(made))
        for seen, own, (start, end) in zip(contexts, known, pairwise(ends), strict=True)
    ]


def _contexts_of(
    worlds: Sequence[World], rounds: int, seed: int, trials: Sequence[int]
) -> list[tuple[Integers, Integers]]:
    """The different contexts of each of these trials, and which of them each round has."""
    if all(_draws_contexts(world) and not world.problem.context for world in worlds):
        nothing = np.empty((rounds, 0), dtype=np.int64)  # for which nothing need be drawn
        return [_distinct(nothing)] * len(worlds)
    rngs = streams(seed, [(trial, Purpose.CONTEXTS) for trial in trials])
    return [
        _distinct(_draw_contexts(world, rounds, rng))
        for world, rng in zip(worlds, rngs, strict=True)
    ]


def run_trial(
    world: World,
    make: Factory,
    horizon: int,
    seed: int,
    trial: int,
    observational: int = 0,
    expected: bool = False,
    scene: Scene | None = None,
) -> Trial:
    """Let a fresh policy play in a world, after so many observational records.

    Where regret is `expected` too, the world is one that was drawn from its problem's prior. A
    scene that was prepared is played once: its random numbers are used up.
    """
    policy = make(world.problem)
    places = _places_of(policy, world.problem)
    if observational:
        _warm_up(policy, world, observational, stream(seed, trial, Purpose.RECORDS))
    if scene is None:
        (scene,) = _scenes([world], horizon, seed, [trial])
    kinds, numbers, known, regrets, outcomes, own = scene
    loop = _compiled_loop(policy, world)
    if loop is not None and isinstance(world, Environment):
        uniforms = outcomes.random((horizon, len(world.graph)))
        mechanism = world.mechanism(known)
        if places is not None:
            mechanism = mechanism._replace(fixed=mechanism.fixed[places])
        chosen = loop(Script(mechanism, numbers, kinds, uniforms), own)
        chosen = chosen if places is None else places[chosen]
    else:
        chosen = play(policy, world, known, numbers, outcomes, own)
    regrets = regrets.take(numbers * regrets.shape[1] + chosen)
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


def _places_of(policy: Policy, world: Problem) -> Integers | None:
    """Where the arms of a policy stand among those of the world; None where they are the same."""
    own = getattr(policy, "problem", world)
    return None if own is world else places_of_arms(world, own)


def _compiled_loop(policy: Policy, world: World) -> Loop | None:
    """What plays whole trials of this policy in this world, or None where it has to be stepped."""
    if not isinstance(policy, RecordPolicy) or not _keeps(world, "play"):
        return None
    return policy.compiled_loop()


def _keeps(world: World, method: str) -> bool:
    """Whether this method is the `Environment`'s own, so that its compiled twin may stand in."""
    return getattr(getattr(world, method), "__func__", None) is getattr(Environment, method)


def _draws_contexts(world: World) -> TypeGuard[Environment]:
    """Whether contexts of a world can be drawn by the `Environment`'s compiled twin."""
    return isinstance(world, Environment) and _keeps(world, "draw_context")


def _draw_contexts(world: World, rounds: int, rng: np.random.Generator) -> Integers:
    """The contexts of all rounds as positions of labels: (rounds, context variables)."""
    if _draws_contexts(world):
        return world.draw_contexts(rounds, rng)
    codes = [world.problem.context_codes(world.draw_context(rng)) for _ in range(rounds)]
    return np.array(codes, dtype=np.int64).reshape(rounds, len(world.problem.context))


def _means_of_own(world: World, known: list[tuple[int, ...]]) -> NDArray[np.float64]:
    """What every arm is worth in these contexts, as a world of one's own says: (contexts, arms)."""
    problem = world.problem
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
