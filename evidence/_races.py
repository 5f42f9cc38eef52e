"""Paired trials of policies in the families of _worlds.py, for robust.py."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _stroke import Replay
from _worlds import FAMILIES, Family, Setting

from dowise import Environment, make_policy
from dowise._core.rng import stream
from dowise.model.kernels import observe_round
from dowise.model.sampler import TrialScript
from dowise.problem import Record
from dowise.simulation.trial import Trial, arm_positions, run_trial

SEED = 27
CHUNK = 4  # trials of a task of a worker process
COVERAGE_TRIALS, COVERAGE_ROUNDS, LEVEL, DRAWS = 30, 200, 0.9, 1000


class Rounds(NamedTuple):
    """Everything random of a trial but the policy."""

    contexts: list[dict[str, str]]
    """Labels of the distinct contexts."""
    numbers: np.ndarray
    """Number of each round's context among them."""
    regrets: np.ndarray
    """Regret of each arm of the drawn problem, by context."""
    outcome: Callable[[int, int], np.ndarray]
    """Codes of the outcome of an arm in a round."""


def rounds_of(setting: Setting, horizon: int, trial: int) -> Rounds:
    """Draw the contexts and outcomes of a trial."""
    world, drawn = setting.world, setting.drawn
    context_rng, outcome_rng = stream(SEED, trial, 1), stream(SEED, trial, 2)
    if isinstance(world, Replay):
        numbers = world.draw_contexts(horizon, context_rng)
        labels = [drawn.context_labels(tuple(codes)) for codes in world.kinds.tolist()]
        regrets = drawn.payoff.regrets(world.means)
        return Rounds(labels, numbers, regrets, world.outcomes(numbers, outcome_rng))
    drawn_contexts = world.draw_contexts(horizon, context_rng)
    distinct, numbers = np.unique(drawn_contexts, axis=0, return_inverse=True)
    numbers, codes = numbers.ravel(), [tuple(row) for row in distinct.tolist()]
    positions = arm_positions(world.problem, drawn)
    mechanism = world.mechanism(codes)
    mechanism = mechanism._replace(fixed=mechanism.fixed[positions])
    uniforms = outcome_rng.random((horizon, len(world.graph)))
    script = TrialScript(mechanism, numbers, distinct, uniforms)
    regrets = drawn.payoff.regrets(world.means_in(codes))[:, positions]
    room = np.empty(len(mechanism.order), dtype=np.int64)

    def outcome(t: int, arm: int) -> np.ndarray:
        seen = np.empty(len(mechanism.observed), dtype=np.int64)
        observe_round(script, t, arm, room, seen)
        return seen

    return Rounds([drawn.context_labels(c) for c in codes], numbers, regrets, outcome)


def play(policy: Any, rounds: Rounds, late: int, trial: int) -> np.ndarray:
    """Return the regret of each round; outcomes are learned `late` rounds after the decision."""
    problem, rng = policy.problem, stream(SEED, trial, 3)
    waiting: deque[Record] = deque()
    regrets = np.empty(len(rounds.numbers))
    for t, number in enumerate(rounds.numbers.tolist()):
        context = rounds.contexts[number]
        arm = policy.decide(context, rng).arm
        index = problem.arm_index(arm)
        regrets[t] = rounds.regrets[number, index]
        waiting.append(Record(problem, arm, rounds.outcome(t, index), problem.fixed(arm), t))
        if late:
            policy.add_pending(arm, context, 1)
        if t >= late:
            record = waiting.popleft()
            if late:
                context = rounds.contexts[rounds.numbers[t - late]]
                policy.add_pending(record.arm, context, -1)
            policy.learn(record)
    return regrets


def new_policy(name: str, setting: Setting, trial: int) -> Any:
    """Make a policy that decides in the drawn problem."""
    options = {"seed": trial} if name == "bernoulli-ts" else {}
    return make_policy(name, setting.drawn, **options)


def run_policy(family: Family, setting: Setting, name: str, trial: int, horizon: int) -> Trial:
    """Play one trial; only the regrets are filled in where outcomes are late or replayed."""
    policy = new_policy(name, setting, trial)
    if isinstance(setting.world, Environment) and not family.late:
        return run_trial(
            setting.world, lambda _: policy, horizon, SEED, trial, expected=family.expected
        )
    regrets = play(policy, rounds_of(setting, horizon, trial), family.late, trial)
    return Trial(setting.drawn, np.empty(0, dtype=np.int64), regrets)


def coverage(setting: Setting, trial: int) -> float:
    """Return the share of arms' means in their 90 % interval after 200 rounds of `best`.

    All arms count, in every context that came, but those whose reward is certain: a mean at the end
    of the range is in no equal-tailed interval, whatever the prior.
    """
    policy = new_policy("best", setting, trial)
    run_trial(setting.world, lambda _: policy, COVERAGE_ROUNDS, SEED, trial)
    contexts = rounds_of(setting, COVERAGE_ROUNDS, trial).contexts
    values, hits = setting.drawn.payoff.values, []
    for context in contexts:
        low, high = intervals(policy, context, trial).T
        means = setting.world.means(context)
        is_open = (values.min() < means) & (means < values.max())
        hits += ((low <= means) & (means <= high))[is_open].tolist()
    return float(np.mean(hits))


def intervals(policy: Any, context: dict[str, str], seed: int) -> np.ndarray:
    """Return the 90 % interval of every arm's mean, by everything that the policy decides by."""
    return policy.knowledge.belief.reward_intervals(context, LEVEL, DRAWS, seed)


def run_trials(name: str, first: int, last: int, horizon: int | None = None) -> dict[str, Any]:
    """Race all policies in the worlds `first` to `last` of a family."""
    family, begin = FAMILIES[name], time.process_time()
    horizon = family.horizon if horizon is None else horizon
    fifth, out = max(1, horizon // 5), {"random": [], "coverage": [], "policies": {}}
    for trial in range(first, last):
        setting = family.make(trial)
        rounds = rounds_of(setting, horizon, trial)
        out["random"].append(float(rounds.regrets[rounds.numbers].mean(axis=1).sum()))
        for policy in family.policies:
            result = run_policy(family, setting, policy, trial, horizon)
            early, end = result.regrets[:fifth].sum(), result.regrets[-fifth:].sum()
            total = result.regrets if result.expected is None else result.expected
            data = out["policies"].setdefault(policy, {"regret": [], "locked": []})
            data["regret"].append(float(total.sum()))
            data["locked"].append(bool(end >= early and end > 1e-9))
        is_covered = family.is_right and not family.late and isinstance(setting.world, Environment)
        if is_covered and trial < COVERAGE_TRIALS:
            out["coverage"].append(coverage(setting, trial))
    return out | {"seconds": time.process_time() - begin}


def race(family: Family, trials: int, workers: int, pool: Any, horizon: int | None = None) -> Any:
    """Return the regrets of all policies of a family."""
    chunk = max(1, min(CHUNK, -(-trials // workers)))
    starts = range(0, trials, chunk)
    ends = [min(start + chunk, trials) for start in starts]
    run = map if pool is None else pool.map
    parts = list(run(run_trials, [family.name] * len(ends), starts, ends, [horizon] * len(ends)))
    policies = {
        name: {
            key: [x for part in parts for x in part["policies"][name][key]]
            for key in ("regret", "locked")
        }
        for name in family.policies
    }
    return {
        "trials": trials,
        "horizon": family.horizon if horizon is None else horizon,
        "random": [x for part in parts for x in part["random"]],
        "coverage": [x for part in parts for x in part["coverage"]],
        "policies": policies,
        "seconds": sum(part["seconds"] for part in parts),
    }
