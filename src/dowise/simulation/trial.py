"""Trials: a policy plays T rounds in a world, and the regret of each round is recorded.

Everything random is keyed by (seed, trial, purpose): the world, its contexts, the uniforms that
drive outcomes, and the draws of the policy. So within a trial every policy faces the same world and
the same contexts, and the same arm in the same round has the same outcome; and no trial depends on
any other, on their order, or on the process that runs them.

In an `Environment`, contexts are drawn together, and a compiled loop plays all rounds if the policy
has one; the methods `draw_context` and `play` of a custom world are called once per round, with the
same random numbers. If a policy's problem differs from the world's (`On`), it decides among its own
arms, which are mapped to the world's, and the world determines regret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple, TypeGuard

import numpy as np

from dowise._core.rng import stream, streams
from dowise._core.types import FloatArray, Int32Array, IntArray
from dowise.belief import Belief
from dowise.environments import Environment, SampledWorlds, World, Worlds, resolve_worlds
from dowise.environments.environment import means_in_worlds
from dowise.errors import DowiseError, type_name
from dowise.model.sampler import TrialScript
from dowise.policies.base import MinimalPolicy, Policy, TrialLoop
from dowise.policies.bayesian import BayesianPolicy
from dowise.problem import Intervention, Problem
from dowise.simulation.run_directory import CodedStrings, JobResult

MAX_DENSE_CONTEXTS = 2**16  # combinations of context values with a table of their own
MAX_PREPARED_REGRETS = 2**20  # regrets of the trials that are prepared together

Factory = Callable[[Problem], MinimalPolicy]


class Purpose(IntEnum):
    """Purpose of a random stream."""

    WORLD = 0
    CONTEXTS = 1
    OUTCOMES = 2
    POLICY = 3
    RECORDS = 4
    SEED = 5
    EXPECTED = 6


@dataclass(frozen=True, eq=False)
class Trial:
    """Arm, regret and, if requested, expected regret of every round.

    Arms are positions among those of the world's problem.
    """

    problem: Problem
    arms: IntArray
    regrets: FloatArray
    expected: FloatArray | None = None


class TrialInputs(NamedTuple):
    """Contexts, regrets and random streams of a trial, prepared before a policy plays."""

    distinct: IntArray
    """Codes of the distinct contexts: (contexts, context variables)."""
    rows: IntArray
    """Index of each round's context among the distinct ones."""
    contexts: list[tuple[int, ...]]
    """The distinct contexts as tuples of codes."""
    regrets: FloatArray
    """Regret of each arm in each distinct context: (contexts, arms)."""
    outcome_rng: np.random.Generator
    policy_rng: np.random.Generator


class TrialCollector:
    """Collects the kept rounds of the trials of a job.

    Arms remain positions until all trials are added, so that strings are created once per job.
    """

    def __init__(self, trials: list[int], rounds: Int32Array, expected: bool) -> None:
        shape = len(trials), len(rounds)
        self._trials, self._rounds, self._count = trials, rounds, 0
        first, last = int(rounds[0]), int(rounds[-1])
        # Their positions among all rounds; a slice is several times as fast as an index.
        self._kept: slice | IntArray = slice(first - 1, last, first)
        if last % first:
            self._kept = rounds.astype(np.int64) - 1
        self._regrets = np.empty(shape)
        self._expected = np.empty(shape) if expected else None
        self._positions = np.empty(shape, dtype=np.int64)  # among the arms of all problems
        self._arms: list[Intervention] = []
        self._problem: Problem | None = None  # of the last trial
        self._start = 0  # position of that problem's first arm

    def add(self, trial: Trial) -> None:
        """Add the next trial."""
        if trial.problem is not self._problem:  # the first trial, or a random problem
            self._problem, self._start = trial.problem, len(self._arms)
            self._arms += trial.problem.arms
        i, self._count = self._count, self._count + 1
        self._regrets[i] = trial.regrets.cumsum()[self._kept]
        np.add(trial.arms[self._kept], self._start, out=self._positions[i])
        if self._expected is not None and trial.expected is not None:
            self._expected[i] = trial.expected.cumsum()[self._kept]

    def result(self) -> JobResult:
        """Return the result once all trials are added."""
        arms = CodedStrings.from_positions(self._arms, self._positions)
        return JobResult(self._trials, self._rounds, self._regrets, arms, self._expected)


def kept_rounds(horizon: int, every: int) -> Int32Array:
    """Return the rounds to keep: multiples of `every`, and the last one."""
    rounds = np.arange(every, horizon + 1, every, dtype=np.int32)
    return rounds if horizon % every == 0 else np.append(rounds, np.int32(horizon))


def make_world(source: str | Problem | World | Worlds, seed: int, trial: int) -> World:
    """Return the world of a trial, the same for every policy."""
    return resolve_worlds(source).draw(stream(seed, trial, Purpose.WORLD))


def seed_of(seed: int, trial: int) -> int:
    """Return the seed of a trial for a policy with a seed."""
    return int(stream(seed, trial, Purpose.SEED).integers(2**31))


def prepare_trials(
    source: Worlds, horizon: int, seed: int, trials: Sequence[int]
) -> Iterator[tuple[World, TrialInputs | None]]:
    """Yield the world of each trial with its inputs, several trials at a time.

    Fixed worlds, which may be user code, get no inputs: their methods are called in their trial.
    """
    if not isinstance(source, SampledWorlds):
        yield from ((make_world(source, seed, trial), None) for trial in trials)
        return
    block = max(1, MAX_PREPARED_REGRETS // (horizon * len(source.problem.arms)))
    for start in range(0, len(trials), block):
        batch = trials[start : start + block]
        worlds = source.draw_many(streams(seed, [(trial, Purpose.WORLD) for trial in batch]))
        yield from zip(worlds, _prepare_inputs(worlds, horizon, seed, batch), strict=True)


def _prepare_inputs(
    worlds: Sequence[World], horizon: int, seed: int, trials: Sequence[int]
) -> list[TrialInputs]:
    """Return the inputs of trials in worlds of one problem."""
    distinct = _distinct_contexts(worlds, horizon, seed, trials)
    contexts = [[tuple(row) for row in codes.tolist()] for codes, _ in distinct]
    environments = [
        world for world in worlds if isinstance(world, Environment) and _keeps(world, "means")
    ]
    if len(environments) == len(worlds):
        means = means_in_worlds(environments, contexts)
    else:
        means = np.concatenate(
            [_means(world, x) for world, x in zip(worlds, contexts, strict=True)]
        )
    regrets = worlds[0].problem.payoff.regrets(means)
    ends = [0, *accumulate(map(len, contexts))]
    purposes = Purpose.OUTCOMES, Purpose.POLICY
    rngs = iter(streams(seed, [(trial, purpose) for trial in trials for purpose in purposes]))
    return [
        TrialInputs(codes, rows, tuples, regrets[start:end], next(rngs), next(rngs))
        for (codes, rows), tuples, (start, end) in zip(
            distinct, contexts, pairwise(ends), strict=True
        )
    ]


def _distinct_contexts(
    worlds: Sequence[World], rounds: int, seed: int, trials: Sequence[int]
) -> list[tuple[IntArray, IntArray]]:
    """Return the distinct contexts of each trial, and the index of each round's context."""
    if all(_draws_contexts(world) and not world.problem.context for world in worlds):
        empty = np.empty((rounds, 0), dtype=np.int64)  # needs no random numbers
        return [_distinct(empty)] * len(worlds)
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
    inputs: TrialInputs | None = None,
) -> Trial:
    """Run a new policy in a world.

    Parameters
    ----------
    world
        The world. For `expected` it must be drawn from its problem's prior.
    make
        Factory of the policy.
    horizon, seed, trial
        Rounds, random seed and number of the trial.
    observational
        Number of observational records that the policy gets before the first round.
    expected
        Compute the expected regret too.
    inputs
        Prepared inputs. They can be used only once, since they contain random streams.
    """
    policy = make(world.problem)
    own_problem = getattr(policy, "problem", world.problem)
    positions = None if own_problem is world.problem else arm_positions(world.problem, own_problem)
    if observational:
        _show_records(policy, world, observational, stream(seed, trial, Purpose.RECORDS))
    if inputs is None:
        (inputs,) = _prepare_inputs([world], horizon, seed, [trial])
    distinct, rows, contexts, regrets, outcome_rng, policy_rng = inputs
    loop = _compiled_loop(policy, world)
    if loop is not None and isinstance(world, Environment):
        uniforms = outcome_rng.random((horizon, len(world.graph)))
        mechanism = world.mechanism(contexts)
        if positions is not None:
            mechanism = mechanism._replace(fixed=mechanism.fixed[positions])
        chosen = loop(TrialScript(mechanism, rows, distinct, uniforms), policy_rng)
        chosen = chosen if positions is None else positions[chosen]
    else:
        chosen = play(policy, world, contexts, rows, outcome_rng, policy_rng)
    regrets = regrets.take(rows * regrets.shape[1] + chosen)
    if not expected:
        return Trial(world.problem, chosen, regrets)
    from dowise.simulation.expected_regret import expected_regrets  # loads numba

    assert isinstance(world, Environment)
    uniforms = stream(seed, trial, Purpose.OUTCOMES).random((horizon, len(world.graph)))
    script = TrialScript(world.mechanism(contexts), rows, distinct, uniforms)
    belief = Belief(world.problem)
    for outcome in _records(world, observational, stream(seed, trial, Purpose.RECORDS)):
        belief.update(Intervention(), outcome)
    rng = stream(seed, trial, Purpose.EXPECTED)
    return Trial(world.problem, chosen, regrets, expected_regrets(belief, script, chosen, rng))


def play(
    policy: MinimalPolicy,
    world: World,
    contexts: list[tuple[int, ...]],
    rows: IntArray,
    outcome_rng: np.random.Generator,
    policy_rng: np.random.Generator,
) -> IntArray:
    """Play with `decide` and `observe`, in context `contexts[rows[t]]` in round t."""
    labels = [world.problem.context_labels(codes) for codes in contexts]
    chosen = np.empty(len(rows), dtype=np.int64)
    for t, row in enumerate(rows.tolist()):
        context = labels[row]
        decision = policy.decide(context, policy_rng)
        if not hasattr(decision, "arm"):
            raise DowiseError(
                f"decide must return a Decision, not {type_name(decision)}: Decision(arm, …)",
                code="invalid-type",
            )
        arm = decision.arm
        policy.observe(arm, world.play(arm, context, outcome_rng))
        chosen[t] = world.problem.arm_index(arm)
    return chosen


def arm_positions(world: Problem, problem: Problem) -> IntArray:
    """Return the position among the world's arms of each arm of a policy's own problem.

    Raises `DowiseError` if the two problems do not fit together.
    """
    if problem is world:
        return np.arange(len(world.arms))
    pairs: tuple[tuple[str, object, object], ...] = (
        ("recorded variables", problem.graph.variables, world.graph.variables),
        ("context", problem.context, world.context),
        ("reward", problem.reward, world.reward),
        ("domains", dict(problem.domains), dict(world.domains)),
        ("reward_values", dict(problem.reward_values), dict(world.reward_values)),
        ("minimise", problem.minimise, world.minimise),
    )
    for name, value, world_value in pairs:
        if value != world_value:
            raise DowiseError(
                f"its own problem and that of the world differ in {name}, {value!r} against "
                f"{world_value!r}: only edges, arms and manipulable variables may differ",
                code="wrong-problem",
            )
    index = {arm: i for i, arm in enumerate(world.arms)}
    for arm in problem.arms:
        for name in arm:
            if name not in world.manipulable:
                raise DowiseError(
                    f"{arm} is an arm of its own problem, but {name} can't be set in the world's: "
                    "remove the arm, or make the variable manipulable there",
                    code="not-manipulable",
                )
        if arm not in index:
            raise DowiseError(
                f'{arm} is an arm of its own problem, not of the world\'s: use arms="all" there',
                code="unknown-arm",
            )
    positions = np.array([index[arm] for arm in problem.arms])
    costs = zip(problem.arms, problem.payoff.costs, world.payoff.costs[positions], strict=True)
    for arm, cost, world_cost in costs:
        if cost != world_cost:
            raise DowiseError(
                f"{arm} costs {cost:g} in its own problem and {world_cost:g} in the world's: use "
                "the same costs",
                code="wrong-problem",
            )
    return positions


def _compiled_loop(policy: MinimalPolicy, world: World) -> TrialLoop | None:
    """Return the policy's compiled loop, if it has one and the world does not override `play`."""
    if isinstance(policy, Policy) and _keeps(world, "play"):
        return policy.compiled_trial()
    return None


def _keeps(world: World, method: str) -> bool:
    """Return True if a method is not overridden, so that compiled code may replace it."""
    return getattr(getattr(world, method), "__func__", None) is getattr(Environment, method)


def _draws_contexts(world: World) -> TypeGuard[Environment]:
    return isinstance(world, Environment) and _keeps(world, "draw_context")


def _draw_contexts(world: World, rounds: int, rng: np.random.Generator) -> IntArray:
    """Return the context codes of all rounds: (rounds, context variables)."""
    if _draws_contexts(world):
        return world.draw_contexts(rounds, rng)
    codes = [world.problem.context_codes(world.draw_context(rng)) for _ in range(rounds)]
    return np.array(codes, dtype=np.int64).reshape(rounds, len(world.problem.context))


def _means(world: World, contexts: list[tuple[int, ...]]) -> FloatArray:
    """Return the means of a custom world: (contexts, arms)."""
    problem = world.problem
    rows = [
        np.asarray(world.means(problem.context_labels(codes)), dtype=float) for codes in contexts
    ]
    for row in rows:
        if row.shape != (len(problem.arms),) or not np.isfinite(row).all():
            raise DowiseError(
                f"means returned {row!r}, not one number for each of {len(problem.arms)} arms: see "
                "check_environment",
                code="invalid-shape",
            )
    return np.array(rows)


def _distinct(contexts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows in order of their codes, and the index of each row among them."""
    if not contexts.shape[1]:  # without context variables there is one context, ()
        return contexts[:1], np.zeros(len(contexts), dtype=np.int64)
    sizes = contexts.max(axis=0) + 1
    if prod(sizes.tolist()) > MAX_DENSE_CONTEXTS:
        distinct, rows = np.unique(contexts, axis=0, return_inverse=True)
        return distinct, rows.ravel()
    numbers = np.ravel_multi_index(tuple(contexts.T), tuple(sizes))
    occurs = np.zeros(prod(sizes.tolist()), dtype=np.bool_)
    occurs[numbers] = True
    distinct = np.stack(np.unravel_index(np.flatnonzero(occurs), tuple(sizes)), axis=1)
    return distinct, (occurs.cumsum() - 1)[numbers]


def _show_records(
    policy: MinimalPolicy, world: World, count: int, rng: np.random.Generator
) -> None:
    """Show observational records to a policy that can learn from them.

    A policy that learns each arm separately can if do() is an arm.
    """
    nothing = Intervention()
    arms = getattr(policy, "problem", world.problem).arms
    if isinstance(policy, BayesianPolicy) or nothing in arms:
        for outcome in _records(world, count, rng):
            policy.observe(nothing, outcome)


def _records(world: World, count: int, rng: np.random.Generator) -> Iterator[Mapping[str, object]]:
    for _ in range(count):
        yield world.play(Intervention(), world.draw_context(rng), rng)
