"""Playing a rehearsal: a world for each, an experiment in it, and a look at it now and then."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.checks import real_number, whole_number
from dowise.environments import Environment, Manner
from dowise.environments.draw import draw_world
from dowise.errors import FAILURES, own_code_error
from dowise.experiment.experiment import Experiment
from dowise.experiment.looking import prior_of
from dowise.experiment.plan import DEFAULT_POLICY, Plan, is_bayesian
from dowise.experiment.rehearsal import Rehearsal
from dowise.experiment.status import Status, usual_tolerance
from dowise.experiment.storage import MemoryStorage
from dowise.policies.own import asked_for, import_policies
from dowise.policies.registry import policy_factory
from dowise.problem import Problem
from dowise.randomness import stream
from dowise.simulation.executors import run_jobs

__all__ = ["rehearse"]

_WORLD, _CONTEXTS, _OUTCOMES, _DECISIONS = range(4)  # the streams of one world
_NAME = "rehearsal"


def rehearse(
    problem: Problem | str | Path,
    horizon: int,
    worlds: int = 20,
    policy: str = DEFAULT_POLICY,
    options: Mapping[str, Any] | None = None,
    *,
    prior: Any = None,
    tolerance: float | None = None,
    delay: int = 0,
    looks: int = 20,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Rehearsal:
    """Play an experiment of so many rounds in worlds drawn from the prior.

    `prior` is what `Belief` takes. Worlds are drawn from it, doubtful edges with theirs, and a
    policy that has a belief starts from it. Outcomes are told `delay` rounds late. At the start and
    at `looks` times along the rounds, evenly spread, it is noted where the experiment stands. The
    `tolerance` is a hundredth of the range of rewards unless you say. The
    same seed gives the same numbers with any number of workers; a policy of your own is played in
    this process, unless `import_policies` has its module.
    """
    plan, drawn_from = _planned(problem, policy, options, prior)
    play = _Play(
        plan,
        drawn_from,
        whole_number("horizon", horizon, 1),
        whole_number("delay", delay, 0),
        whole_number("looks", looks, 1),
        whole_number("seed", seed, 0),
        _modules(policy),
    )
    count, limit = whole_number("worlds", worlds, 1), usual_tolerance(plan.problem)
    if tolerance is not None:
        limit = real_number("tolerance", tolerance, 0)
    crew = min(whole_number("workers", workers, 1), count) if play.modules is not None else 1
    found: dict[int, _Notes] = {}
    with closing(run_jobs(partial(_done, play), range(count), crew, None)) as played:
        for world, notes in played:
            found[world] = notes
            if progress is not None:
                progress(len(found), count)
    columns = zip(*(found[world] for world in range(count)), strict=True)
    return Rehearsal(
        plan.problem, plan.policy, plan.options, drawn_from, play.horizon, limit, play.delay,
        play.seed, play.rounds, *(np.stack(column) for column in columns),
    )  # fmt: skip


def _planned(
    problem: Problem | str | Path, policy: str, options: Mapping[str, Any] | None, prior: Any
) -> tuple[Plan, Any]:
    """The plan of the experiments, and the prior that worlds are drawn from."""
    plan = Plan.of(problem, policy, options)
    if prior is None:
        return plan, prior_of(plan)
    Belief(plan.problem, prior)  # says what is wrong with it
    if is_bayesian(plan.policy):
        plan = plan.changed(options={"prior": prior})
    return plan, prior


def _modules(policy: str) -> tuple[str, ...] | None:
    """What has to be imported for the policy of this name; None where it is in no module."""
    home = policy_factory(policy).__module__
    if home.partition(".")[0] == "dowise":
        return ()
    return asked_for() if home in asked_for() else None


@dataclass(frozen=True)
class _Play:
    """What is the same for all worlds."""

    plan: Plan
    prior: Any
    horizon: int
    delay: int
    looks: int
    seed: int
    modules: tuple[str, ...] | None
    """What other processes have to import; None where they could not find the policy."""

    @property
    def rounds(self) -> NDArray[np.int64]:
        """After how many rounds there is a look: at the start, at the end, evenly between."""
        return np.unique(np.linspace(0, self.horizon, self.looks + 1).round().astype(np.int64))


_Notes = tuple[NDArray[np.float64], ...]
"""Of one world at each look: regret, at_random, stopping, cost, sure."""


def _done(play: _Play, number: int) -> _Notes:
    """One world, by its number, in any process."""
    for module in play.modules or ():
        import_policies(module)
    try:
        return _played(play, number)
    except FAILURES as error:  # where it was is known in this process only
        known = own_code_error(error)
        if known is None:
            raise
        raise known from error


def _played(play: _Play, number: int) -> _Notes:
    """One world, by its number."""
    problem, seed = play.plan.problem, play.seed
    rng = stream(seed, number, _WORLD)
    world = draw_world(problem, rng, Manner(edges="prior"), play.prior)
    decisions = stream(seed, number, _DECISIONS).integers(2**63)
    experiment = Experiment.create(
        MemoryStorage(), _NAME, problem, play.plan.policy, play.plan.options, int(decisions),
        learn_restricted=play.plan.learn_restricted, actor=_NAME,
    )  # fmt: skip
    contexts, waiting = stream(seed, number, _CONTEXTS), deque[tuple[int, dict[str, str]]]()
    regret = at_random = 0.0
    rows = [(0.0, 0.0, *_look(experiment.status(evidence=False), world))]
    looks = {*play.rounds.tolist()}
    for now in range(1, play.horizon + 1):
        context = world.draw_context(contexts)
        asked = experiment.ask(context)
        seen = world.play(asked.arm, context, stream(seed, number, _OUTCOMES, now))
        waiting.append((asked.id, seen))
        while waiting and waiting[0][0] <= now - play.delay:
            experiment.tell(*waiting.popleft())
        costs = problem.payoff.regrets(world.means(context))
        regret += float(costs[problem.arm_index(asked.arm)])
        at_random += float(costs.mean())
        if now in looks:
            rows.append((regret, at_random, *_look(experiment.status(evidence=False), world)))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def _look(status: Status, world: Environment) -> tuple[float, float, float]:
    """The expected cost of stopping, the true one, and the probability to be right."""
    cost = sure = 0.0
    for one in status.contexts:
        leader = one.arms[one.leader]
        sure += one.weight * float(one.best[one.leader])
        if one.weight and world.can_occur(one.context):
            cost += one.weight * world.regret(leader, one.context)
    return status.stopping, cost, sure
