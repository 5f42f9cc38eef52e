"""Rehearsal of an experiment in worlds drawn from the prior.

Each world is asked and told by the same code as a live experiment, on a store in memory. It shows
what to expect before anything is done to anybody: how much regret, how certain the result will be
and how rightly so, and after how many rounds the advice is to stop.
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
from numpy.typing import NDArray

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
from dowise.simulation.executors import run_jobs

RANGE = (0.05, 0.95)  # of the worlds
_MAX_POINTS = 11  # of the curves in a document
_EXACT = 1e-12  # a regret below this is none

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A number over worlds: its mean, its median, and the range that holds 90 % of them."""

    mean: float
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Floats) -> Spread:
        """Quantiles are numbers that occurred, so that one that never comes may be infinite."""
        low, median, high = np.quantile(
            numbers, [RANGE[0], 0.5, RANGE[1]], method="inverted_cdf"
        ).tolist()
        return cls(float(np.mean(numbers)), median, low, high)

    @property
    def ends(self) -> str:
        """The range as text."""
        return f"{format_number(self.low)} to {format_number(self.high)}"


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
    rounds: NDArray[np.int64]
    """Rounds at which the status was noted, from 0 to the horizon."""
    regret: Floats
    """True regret of the arms played so far."""
    at_random: Floats
    """Expected regret of choosing all arms with the same probability instead."""
    stopping: Floats
    """Loss per round of stopping then, as the posterior expects it; the advice rests on it."""
    cost: Floats
    """True loss per round of playing the arms that look best then."""
    sure: Floats
    """Posterior probability that the arms that look best are the best."""

    @property
    def worlds(self) -> int:
        """Number of worlds."""
        return len(self.regret)

    @property
    def per_round(self) -> Floats:
        """Regret per round over the last tenth of the rounds, for each world."""
        return self._at_the_end(self.regret)

    @property
    def per_round_at_random(self) -> Floats:
        """Regret per round over the last tenth, had arms been chosen at random."""
        return self._at_the_end(self.at_random)

    def _at_the_end(self, sums: Floats) -> Floats:
        late = max(int(np.searchsorted(self.rounds, 0.9 * self.horizon, "right")) - 1, 0)
        late = min(late, len(self.rounds) - 2)
        found: Floats = (sums[:, -1] - sums[:, late]) / (self.rounds[-1] - self.rounds[late])
        return found

    @property
    def is_best(self) -> NDArray[np.bool_]:
        """Whether what looks best is truly the best, in all contexts that came."""
        return self.cost <= _EXACT

    @property
    def is_nearly_best(self) -> NDArray[np.bool_]:
        """Whether it truly costs no more than the tolerance a round."""
        return self.cost <= max(self.tolerance, _EXACT)

    @cached_property
    def stops(self) -> Floats:
        """The first look of each world at which the advice was to stop; inf where it never was."""
        advised = self.stopping <= self.tolerance
        return np.where(advised.any(axis=1), self.rounds[advised.argmax(axis=1)], np.inf)

    @property
    def stopped_cost(self) -> float | None:
        """What stopping when it was advised truly cost a round, on average; None if it never was.

        It is no surprise that this is within the tolerance: worlds come from the prior that the
        posterior started with.
        """
        places = np.flatnonzero(np.isfinite(self.stops))
        looks = np.searchsorted(self.rounds, self.stops[places])
        return float(self.cost[places, looks].mean()) if len(places) else None

    def curve(self) -> list[dict[str, Any]]:
        """For each look: the round, and what was seen over the worlds."""
        spreads = {
            name: [Spread.of(column) for column in getattr(self, name).T]
            for name in ("regret", "stopping", "cost", "sure")
        }
        return [
            {
                "round": int(number),
                **{name: found[i] for name, found in spreads.items()},
                "at_random": float(self.at_random[:, i].mean()),
                "best": float(self.is_best[:, i].mean()),
                "nearly_best": float(self.is_nearly_best[:, i].mean()),
                "stopped": float((self.stops <= number).mean()),
            }
            for i, number in enumerate(self.rounds)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document; a number of rounds that never came is "inf"."""
        stop = Spread.of(self.stops)
        page: dict[str, Any] = to_json(
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
                "regret": Spread.of(self.regret[:, -1]),
                "regret_at_random": Spread.of(self.at_random[:, -1]),
                "regret_per_round_at_end": Spread.of(self.per_round),
                "regret_per_round_at_random": Spread.of(self.per_round_at_random),
                "sure_at_end": Spread.of(self.sure[:, -1]),
                "best_at_end": float(self.is_best[:, -1].mean()),
                "nearly_best_at_end": float(self.is_nearly_best[:, -1].mean()),
                "rounds_until_stop": {
                    "median": stop.median, "low": stop.low, "high": stop.high,
                    "share_never": float(np.isinf(self.stops).mean()),
                    "true_cost_per_round": self.stopped_cost,
                },
                "looks": self.curve(),
            }
        )  # fmt: skip
        return page

    def sentences(self) -> list[str]:
        """Return the result in sentences."""
        regret, random = Spread.of(self.regret[:, -1]), self.at_random[:, -1].mean()
        end, sure = Spread.of(self.per_round), Spread.of(self.sure[:, -1])
        late = f", outcomes told {pluralize(self.delay, 'round')} late" if self.delay else ""
        chances = f"{_percent(sure.low)} to {_percent(sure.high)}"
        return [
            f"In {pluralize(self.worlds, 'world')} drawn from the prior, {self.policy} over "
            f"{pluralize(self.horizon, 'round')}{late}:",
            f"The total regret is {format_number(regret.mean)}{self._averaged(regret.ends)}; "
            f"choosing at random costs {format_number(random)}.",
            f"At the end a round costs {format_number(end.mean)}{self._averaged()}; at random "
            f"{format_number(self.per_round_at_random.mean())}.",
            "The chance that what looks best then is the best is believed to be "
            f"{_percent(sure.mean)}{self._averaged(chances)}. It is the best{self._everywhere} in "
            f"{_percent(self.is_best[:, -1].mean())} of worlds, and within "
            f"{exact_number(self.tolerance)} of it in "
            f"{_percent(self.is_nearly_best[:, -1].mean())}.",
            self._stopping_sentence(),
        ]

    def document(self) -> Document:
        """Return the result in sentences, and its curves at some rounds."""
        title, *sentences = self.sentences()
        columns = ("round", "regret", "at random", "stopping", "truly", "sure", "right", "advised")
        rows = tuple(
            (
                f"{point['round']:,}",
                format_number(point["regret"].mean),
                format_number(point["at_random"]),
                format_number(point["stopping"].mean),
                format_number(point["cost"].mean),
                f"{100 * point['sure'].mean:.0f} %",
                f"{100 * point['best']:.0f} %",
                f"{100 * point['stopped']:.0f} %",
            )
            for point in _spread_evenly(self.curve(), _MAX_POINTS)
        )
        means = "Means over worlds, as in the figure. " if self.worlds > 1 else ""
        legend = (
            f"{means}stopping: expected loss per round if you stop then; truly: the actual loss; "
            "sure: chance that the arm that looks best is the best, by what is known; right: share "
            "of worlds where it is, in every context; advised: share of worlds where the advice "
            "was to stop by then."
        )
        table = Table(columns, rows, right=columns)
        return Document((Heading(title), BulletList(tuple(sentences)), table, Paragraph(legend)))

    @property
    def _everywhere(self) -> str:
        """Probabilities are averaged over contexts; to be right is to be so in all of them."""
        return " in every context at once" if self.problem.context else ""

    def _averaged(self, ends: str | None = None) -> str:
        """That a number is a mean, and the range over worlds; nothing where there is one world."""
        if self.worlds == 1:
            return ""
        return f" on average{'' if ends is None else f' (90 % of worlds: {ends})'}"

    def _stopping_sentence(self) -> str:
        when_it_came = self.stops[np.isfinite(self.stops)]
        advice = (
            f"The advice to stop, with a tolerance of {exact_number(self.tolerance)} per round,"
        )
        within = f"within {pluralize(self.horizon, 'round')}"
        if self.stopped_cost is None:
            return f"{advice} comes in no world {within}: plan more rounds, or a larger tolerance."
        came, share = Spread.of(when_it_came), len(when_it_came) / self.worlds
        if share == 1:
            when, whose = f"after {pluralize(int(came.median), 'round')}", "worlds"
        else:
            there = f"in {_percent(share)} of worlds {within}"
            when, whose = f"{there}, there after {came.median:,.0f}", "them"
        cost = f"What looks best then truly costs {format_number(self.stopped_cost)} per round"
        if len(when_it_came) == 1:
            return f"{advice} comes {when}. {cost}."
        ends = f"{came.low:,.0f} to {came.high:,.0f}"
        return f"{advice} comes {when} (median; 90 % of {whose}: {ends}). {cost} on average."


def _spread_evenly(points: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return at most `limit` points, evenly spread, including the first and the last."""
    last = len(points) - 1
    if last < limit:
        return points
    return [points[i] for i in sorted({round(i * last / (limit - 1)) for i in range(limit)})]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def exact_number(value: float) -> str:
    """Format a number that a user chose, with all its digits: "1,250.5", "0.01"."""
    return f"{value:,.12g}"


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
    """Play an experiment in worlds drawn from the prior.

    The same seed gives the same numbers with any number of workers. A custom policy is played in
    this process, unless `import_policies` has its module.

    Parameters
    ----------
    problem
        The problem, the path of a problem file, or the name of a built-in problem.
    horizon
        The number of rounds.
    worlds
        The number of worlds.
    policy, options
        The policy and its options.
    prior
        Prior counts, as `Belief` takes them: worlds are drawn from it, doubtful edges with their
        own probabilities, and a policy that has a belief starts from it.
    tolerance
        The loss per round at which the advice is to stop; by default a hundredth of the range of
        rewards.
    delay
        The number of rounds after which outcomes are told.
    looks
        The number of times, evenly spread, that the status is noted, apart from the start.
    seed
        The random seed.
    workers
        The number of processes.
    progress
        Called with the number of worlds that are done, and of all.

    Returns
    -------
    Rehearsal

    Examples
    --------
    >>> result = rehearse("task1", 20, worlds=2, policy="ucb")
    >>> result.worlds, result.horizon
    (2, 20)
    """
    config, drawn_from = _planned(problem, policy, options, prior)
    play = _Play(
        config,
        drawn_from,
        check_integer("horizon", horizon, 1),
        check_integer("delay", delay, 0),
        check_integer("looks", looks, 1),
        check_integer("seed", seed, 0),
        _modules(policy),
    )
    count, limit = check_integer("worlds", worlds, 1), default_tolerance(config.problem)
    if tolerance is not None:
        limit = check_number("tolerance", tolerance, 0)
    crew = min(check_integer("workers", workers, 1), count) if play.modules is not None else 1
    found: dict[int, _Notes] = {}
    with closing(run_jobs(partial(_done, play), range(count), crew, None)) as played:
        for world, notes in played:
            found[world] = notes
            if progress is not None:
                progress(len(found), count)
    columns = zip(*(found[world] for world in range(count)), strict=True)
    return Rehearsal(
        config.problem, config.policy, config.options, drawn_from, play.horizon, limit, play.delay,
        play.seed, play.rounds, *(np.stack(column) for column in columns),
    )  # fmt: skip


def _planned(
    problem: Problem | str | Path, policy: str, options: Mapping[str, Any] | None, prior: Any
) -> tuple[ExperimentConfig, Any]:
    """The config of the experiments, and the prior that worlds are drawn from."""
    config = ExperimentConfig.from_user(problem, policy, options)
    if prior is None:
        return config, prior_of(config)
    Belief(config.problem, prior)  # says what is wrong with it
    if is_bayesian(config.policy):
        config = config.with_changes(options={"prior": prior})
    return config, prior


def _modules(policy: str) -> tuple[str, ...] | None:
    """What has to be imported for the policy of this name; None where it is in no module."""
    home = policy_factory(policy).__module__
    if home.partition(".")[0] == "dowise":
        return ()
    return imported_modules() if home in imported_modules() else None


@dataclass(frozen=True)
class _Play:
    """What is the same for all worlds."""

    config: ExperimentConfig
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
    except USER_CODE_ERRORS as error:  # where it was is known in this process only
        known = user_code_error(error)
        if known is None:
            raise
        raise known from error


def _played(play: _Play, number: int) -> _Notes:
    """One world, by its number."""
    problem, seed = play.config.problem, play.seed
    rng = stream(seed, number, _WORLD)
    world = sample_world(problem, rng, WorldOptions(edges="prior"), play.prior)
    decisions = stream(seed, number, _DECISIONS).integers(2**63)
    experiment = Experiment.create(
        MemoryStorage(), _NAME, problem, play.config.policy, play.config.options, int(decisions),
        learn_restricted=play.config.learn_restricted, actor=_NAME,
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
