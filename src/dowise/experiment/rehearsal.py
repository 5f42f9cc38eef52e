"""Rehearsal of an experiment in worlds drawn from the prior.

Each world is asked and told by the same code as a live experiment, on a store in memory. The result
shows what to expect before anything is done to anyone: the regret, how certain the result will be
and how often it will be right, and after how many rounds the advice is to stop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from dowise._core.codec import to_json
from dowise._core.document import (
    BulletList,
    Document,
    Documented,
    Heading,
    Paragraph,
    Table,
    format_number,
    pluralize,
)
from dowise._core.rng import stream
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise._core.validation import check_integer, check_number
from dowise.belief import Belief
from dowise.environments import Environment, WorldOptions
from dowise.environments.random_worlds import sample_world
from dowise.errors import USER_CODE_ERRORS, user_code_error
from dowise.experiment.config import DEFAULT_POLICY, ExperimentConfig, is_bayesian
from dowise.experiment.experiment import Experiment
from dowise.experiment.read_model import prior_of
from dowise.experiment.status import Status, default_tolerance
from dowise.experiment.storage import MemoryStorage
from dowise.policies.registry import import_policies, imported_modules, policy_factory
from dowise.problem import Problem
from dowise.problem.prior import is_prior_name, read_prior
from dowise.simulation.executors import run_jobs

QUANTILES = (0.05, 0.5, 0.95)  # over worlds: low, median, high
_MAX_POINTS = 11  # of the curves in a document
_ROUNDING = 1e-12  # a regret up to this is none


@dataclass(frozen=True)
class WorldSummary:
    """Summary of a number over worlds: its mean, its median, and the range of 90 % of them."""

    mean: float
    median: float
    low: float
    high: float

    @classmethod
    def from_worlds(cls, numbers: FloatArray) -> WorldSummary:
        """Summarize one number per world; quantiles are numbers that occurred, so inf is fine."""
        low, median, high = np.quantile(numbers, QUANTILES, method="inverted_cdf").tolist()
        return cls(float(np.mean(numbers)), median, low, high)


@dataclass(frozen=True, eq=False)
class Rehearsal(Documented):
    """Result of `rehearse`; arrays are (worlds, looks), in the user's units."""

    problem: Problem
    policy: str
    options: Mapping[str, Any]
    prior: Any
    """Prior of the rows of the worlds' tables."""
    horizon: int
    tolerance: float
    delay: int
    seed: int
    rounds: IntArray
    """Rounds at which the status was noted, from 0 to the horizon."""
    regret: FloatArray
    """True regret of the arms played so far."""
    at_random: FloatArray
    """Expected regret of choosing all arms with the same probability instead."""
    stopping: FloatArray
    """Loss per round of stopping then, as the posterior expects it; the advice rests on it."""
    cost: FloatArray
    """True loss per round of playing the arms that look best then."""
    sure: FloatArray
    """Posterior probability that the arms that look best are the best."""

    @property
    def worlds(self) -> int:
        """Number of worlds."""
        return len(self.regret)

    @property
    def per_round(self) -> FloatArray:
        """Regret per round over the last tenth of the rounds, for each world."""
        return self._late_average(self.regret)

    @property
    def per_round_at_random(self) -> FloatArray:
        """Regret per round over the last tenth, had arms been chosen at random."""
        return self._late_average(self.at_random)

    def _late_average(self, sums: FloatArray) -> FloatArray:
        start = max(int(np.searchsorted(self.rounds, 0.9 * self.horizon, "right")) - 1, 0)
        start = min(start, len(self.rounds) - 2)
        rounds = self.rounds[-1] - self.rounds[start]
        average: FloatArray = (sums[:, -1] - sums[:, start]) / rounds
        return average

    @property
    def is_best(self) -> BoolArray:
        """True where what looks best is truly the best, in all contexts that occurred."""
        return self.cost <= _ROUNDING

    @property
    def is_nearly_best(self) -> BoolArray:
        """True where what looks best truly costs at most the tolerance per round."""
        return self.cost <= max(self.tolerance, _ROUNDING)

    @cached_property
    def stops(self) -> FloatArray:
        """First round of each world at which the advice was to stop; inf if it never was."""
        advised = self.stopping <= self.tolerance
        return np.where(advised.any(axis=1), self.rounds[advised.argmax(axis=1)], np.inf)

    @property
    def stopped_cost(self) -> float | None:
        """Mean true loss per round of stopping when it was advised; None if it never was.

        It is within the tolerance by construction where the posterior started with the prior that
        worlds are drawn from, and the graph decides alone.
        """
        worlds = np.flatnonzero(np.isfinite(self.stops))
        looks = np.searchsorted(self.rounds, self.stops[worlds])
        return float(self.cost[worlds, looks].mean()) if len(worlds) else None

    def curve(self) -> list[dict[str, Any]]:
        """Return for each look the round, and summaries over the worlds."""
        summaries = {
            name: [WorldSummary.from_worlds(column) for column in getattr(self, name).T]
            for name in ("regret", "stopping", "cost", "sure")
        }
        return [
            {
                "round": int(number),
                **{name: columns[i] for name, columns in summaries.items()},
                "at_random": float(self.at_random[:, i].mean()),
                "best": float(self.is_best[:, i].mean()),
                "nearly_best": float(self.is_nearly_best[:, i].mean()),
                "stopped": float((self.stops <= number).mean()),
            }
            for i, number in enumerate(self.rounds)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document; a number of rounds that never came is "inf"."""
        stop = WorldSummary.from_worlds(self.stops)
        data: dict[str, Any] = to_json(
            {
                "problem": self.problem.name,
                "policy": self.policy,
                "options": self.options,
                "prior": self.prior,
                "horizon": self.horizon,
                "worlds": self.worlds,
                "tolerance": self.tolerance,
                "delay": self.delay,
                "seed": self.seed,
                "regret": WorldSummary.from_worlds(self.regret[:, -1]),
                "regret_at_random": WorldSummary.from_worlds(self.at_random[:, -1]),
                "regret_per_round_at_end": WorldSummary.from_worlds(self.per_round),
                "regret_per_round_at_random": WorldSummary.from_worlds(self.per_round_at_random),
                "sure_at_end": WorldSummary.from_worlds(self.sure[:, -1]),
                "best_at_end": float(self.is_best[:, -1].mean()),
                "nearly_best_at_end": float(self.is_nearly_best[:, -1].mean()),
                "rounds_until_stop": {
                    "median": stop.median,
                    "low": stop.low,
                    "high": stop.high,
                    "share_never": float(np.isinf(self.stops).mean()),
                    "true_cost_per_round": self.stopped_cost,
                },
                "looks": self.curve(),
            }
        )
        return data

    def sentences(self) -> list[str]:
        """Return the result in sentences."""
        regret = WorldSummary.from_worlds(self.regret[:, -1])
        late, sure = self.per_round.mean(), WorldSummary.from_worlds(self.sure[:, -1])
        delay = f", outcomes told {pluralize(self.delay, 'round')} late" if self.delay else ""
        average, regrets, chances = "", "", ""
        if self.worlds > 1:
            average = " on average"
            regrets = f" (90 % of worlds: {_range(regret)})"
            chances = f" (90 % of worlds: {_percent(sure.low)} to {_percent(sure.high)})"
        everywhere = " in every context at once" if self.problem.context else ""
        return [
            f"In {pluralize(self.worlds, 'world')} drawn from the prior, {self.policy} over "
            f"{pluralize(self.horizon, 'round')}{delay}:",
            f"The total regret is {format_number(regret.mean)}{average}{regrets}; choosing at "
            f"random costs {format_number(self.at_random[:, -1].mean())}.",
            f"At the end the regret per round is {format_number(late)}{average}; choosing at "
            f"random costs {format_number(self.per_round_at_random.mean())} per round.",
            "At the end what looks best is believed to be the best with probability "
            f"{_percent(sure.mean)}{average}{chances}. It is the best{everywhere} in "
            f"{_percent(self.is_best[:, -1].mean())} of worlds, and within "
            f"{exact_number(self.tolerance)} of it in "
            f"{_percent(self.is_nearly_best[:, -1].mean())}.",
            self._stopping_sentence(),
        ]

    def _stopping_sentence(self) -> str:
        advice = f"With a tolerance of {exact_number(self.tolerance)} per round, the advice to stop"
        within = f"within {pluralize(self.horizon, 'round')}"
        if self.stopped_cost is None:
            return f"{advice} comes in no world {within}: plan more rounds, or a larger tolerance."
        finite = self.stops[np.isfinite(self.stops)]
        stop, stopped_share = WorldSummary.from_worlds(finite), len(finite) / self.worlds
        advice += f" comes after {pluralize(int(stop.median), 'round')}"
        if len(finite) > 1:
            advice += f" (median; 90 % range: {stop.low:,.0f} to {stop.high:,.0f})"
        if stopped_share < 1:
            advice += f" in {_percent(stopped_share)} of worlds, and not {within} in the others"
        average = " on average" if len(finite) > 1 else ""
        cost = f"{format_number(self.stopped_cost)} per round{average}"
        return f"{advice}. What looks best then truly costs {cost}."

    def document(self) -> Document:
        """Return the result in sentences, and its curves at some rounds."""
        heading, *sentences = self.sentences()
        columns = ("round", "regret", "at random", "stopping", "truly", "sure", "right", "advised")
        looks = self.curve()
        shown = np.linspace(0, len(looks) - 1, min(len(looks), _MAX_POINTS)).round().astype(int)
        rows = tuple(
            (
                f"{look['round']:,}",
                format_number(look["regret"].mean),
                format_number(look["at_random"]),
                format_number(look["stopping"].mean),
                format_number(look["cost"].mean),
                _percent(look["sure"].mean),
                _percent(look["best"]),
                _percent(look["stopped"]),
            )
            for look in (looks[i] for i in shown)
        )
        means = "Means over worlds, as in the figure. " if self.worlds > 1 else ""
        legend = (
            f"{means}stopping: expected loss per round if you stop then; truly: the actual loss; "
            "sure: chance that the arm that looks best is the best, by what is known; right: share "
            "of worlds where it is, in every context; advised: share of worlds where the advice "
            "was to stop by then."
        )
        table = Table(columns, rows, right=columns)
        return Document((Heading(heading), BulletList(tuple(sentences)), table, Paragraph(legend)))


def exact_number(value: float) -> str:
    """Format a number that a user chose, with all its digits: "1,250.5", "0.01"."""
    return f"{value:,.12g}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _range(summary: WorldSummary) -> str:
    return f"{format_number(summary.low)} to {format_number(summary.high)}"


_WORLD, _CONTEXTS, _OUTCOMES, _DECISIONS = range(4)  # random streams of a world
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
    """Play an experiment in worlds drawn from the prior.

    The same seed gives the same numbers with any number of workers. A custom policy is played in
    this process, unless `import_policies` has its module.

    Parameters
    ----------
    problem : Problem, str or Path
        The problem, the path of a problem file, or the name of a built-in problem.
    horizon : int
        Number of rounds.
    worlds : int, default 20
        Number of worlds.
    policy, options
        Policy and its options, as for `Experiment.create`.
    prior : float, mapping, path, "flat" or "pooled", optional
        Prior, as `Belief` takes it: worlds are drawn from it, doubtful edges with their
        own probabilities, and a policy that has a belief starts from it.
    tolerance : float, optional
        Loss per round at which the advice is to stop; by default a hundredth of the range of
        rewards.
    delay : int, default 0
        Number of rounds after which outcomes are told.
    looks : int, default 20
        Number of times, evenly spread, that the status is noted, apart from the start.
    seed : int, default 0
        Random seed.
    workers : int, default 1
        Number of processes.
    progress : callable, optional
        Called with the number of finished worlds, and of all.

    Returns
    -------
    Rehearsal

    Raises
    ------
    DowiseError
        If an argument is invalid, or a custom policy fails.

    Examples
    --------
    >>> result = rehearse("task1", 20, worlds=2, policy="ucb")
    >>> result.worlds, result.horizon
    (2, 20)
    """
    config = ExperimentConfig.from_user(problem, policy, options)
    if prior is None:
        prior = prior_of(config)
    else:
        if isinstance(prior, str | Path) and not is_prior_name(prior):
            prior = read_prior(prior)
        Belief(config.problem, prior)  # validates it
        if is_bayesian(config.policy):
            # not `with_changes`: what "best" stands for depends on the prior
            options = {**(options or {}), "prior": prior}
            config = ExperimentConfig.from_user(config.problem, policy, options)
    job = _RehearsalJob(
        config,
        prior,
        check_integer("horizon", horizon, 1),
        check_integer("delay", delay, 0),
        check_integer("looks", looks, 1),
        check_integer("seed", seed, 0),
        _modules_to_import(policy),
    )
    worlds = check_integer("worlds", worlds, 1)
    if tolerance is None:
        tolerance = default_tolerance(config.problem)
    else:
        tolerance = check_number("tolerance", tolerance, 0)
    workers = min(check_integer("workers", workers, 1), worlds)
    if job.modules is None:
        workers = 1
    arrays: dict[int, dict[str, FloatArray]] = {}
    with closing(run_jobs(partial(_play_world, job), range(worlds), workers, None)) as results:
        for world, result in results:
            arrays[world] = result
            if progress is not None:
                progress(len(arrays), worlds)
    return Rehearsal(
        problem=config.problem,
        policy=config.policy,
        options=config.options,
        prior=prior,
        horizon=job.horizon,
        tolerance=tolerance,
        delay=job.delay,
        seed=job.seed,
        rounds=job.rounds,
        **{name: np.stack([arrays[world][name] for world in range(worlds)]) for name in _COLUMNS},
    )


def _modules_to_import(policy: str) -> tuple[str, ...] | None:
    """Return modules that other processes must import for a policy; None if they can't have it."""
    module = policy_factory(policy).__module__
    if module.partition(".")[0] == "dowise":
        return ()
    return imported_modules() if module in imported_modules() else None


@dataclass(frozen=True)
class _RehearsalJob:
    """Settings that are the same for all worlds."""

    config: ExperimentConfig
    prior: Any
    horizon: int
    delay: int
    looks: int
    seed: int
    modules: tuple[str, ...] | None
    """Modules that other processes must import; None if they can't have the policy."""

    @property
    def rounds(self) -> IntArray:
        """Rounds after which the status is noted: the start, the end, and evenly between."""
        return np.unique(np.linspace(0, self.horizon, self.looks + 1).round().astype(np.int64))


_COLUMNS = ("regret", "at_random", "stopping", "cost", "sure")


def _play_world(job: _RehearsalJob, number: int) -> dict[str, FloatArray]:
    """Play the world with this number, in any process; return a value per look of each column."""
    for module in job.modules or ():
        import_policies(module)
    try:
        return _play(job, number)
    except USER_CODE_ERRORS as error:
        # Only this process knows the file and the line.
        translated = user_code_error(error)
        if translated is None:
            raise
        raise translated from error


def _play(job: _RehearsalJob, number: int) -> dict[str, FloatArray]:
    config, problem, seed = job.config, job.config.problem, job.seed
    rng = stream(seed, number, _WORLD)
    world = sample_world(problem, rng, WorldOptions(edges="prior"), job.prior)
    experiment = Experiment.create(
        MemoryStorage(),
        _NAME,
        problem,
        config.policy,
        config.options,
        seed=int(stream(seed, number, _DECISIONS).integers(2**63)),
        learn_restricted=config.learn_restricted,
        actor=_NAME,
    )
    contexts, waiting = stream(seed, number, _CONTEXTS), deque[tuple[int, dict[str, str]]]()
    regret = at_random = 0.0
    rows = [(0.0, 0.0, *_look(experiment.status(evidence=False), world))]
    looks = {*job.rounds.tolist()}
    for now in range(1, job.horizon + 1):
        context = world.draw_context(contexts)
        decision = experiment.ask(context)
        outcome = world.play(decision.arm, context, stream(seed, number, _OUTCOMES, now))
        waiting.append((decision.id, outcome))
        while waiting and waiting[0][0] <= now - job.delay:
            experiment.tell(*waiting.popleft())
        costs = problem.payoff.regrets(world.means(context))
        regret += float(costs[problem.arm_index(decision.arm)])
        at_random += float(costs.mean())
        if now in looks:
            rows.append((regret, at_random, *_look(experiment.status(evidence=False), world)))
    return dict(zip(_COLUMNS, np.array(rows).T, strict=True))


def _look(status: Status, world: Environment) -> tuple[float, float, float]:
    """Return the expected and the true loss of stopping, and the probability to be right."""
    cost = sure = 0.0
    for arms in status.contexts:
        sure += arms.weight * float(arms.best[arms.leader])
        if arms.weight and world.can_occur(arms.context):
            cost += arms.weight * world.regret(arms.arms[arms.leader], arms.context)
    return status.stopping, cost, sure
