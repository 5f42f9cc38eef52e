"""Races: problems × policies × trials, on any number of workers, resumable, the same bits always.

>>> result = simulate(["task1"], ["ts", "ucb"], horizon=50, trials=4, seed=0)
>>> result.frame().columns.tolist()
['problem', 'policy', 'trial', 'round', 'regret', 'arm']
>>> len(result.frame())
400
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dowise
from dowise.checks import whole_number
from dowise.compiling import source_digest
from dowise.environments import Manner, OneWorld, World, Worlds, worlds_of
from dowise.environments.draw import EdgesOfWorlds
from dowise.errors import (
    DowiseError,
    DowiseWarning,
    OwnCodeError,
    described,
    import_extra,
    own_place,
)
from dowise.problem import Problem
from dowise.simulation.entrants import Entrant, Entry, entrants_of
from dowise.simulation.jobs import Extent, Job, kept_rounds
from dowise.simulation.result import Result
from dowise.simulation.results import DamagedError, Rounds
from dowise.simulation.store import Store
from dowise.simulation.trial import make_world, run_trial, seed_of
from dowise.simulation.workers import check_sendable, checked_workers, run_everywhere

__all__ = ["simulate"]

MOST_ROUNDS = 10_000_000  # of a trial, which is kept in memory

Progress = Callable[[int, int], None]
ProblemOrWorld = str | Path | Problem | World
Raced = ProblemOrWorld | tuple[str, ProblemOrWorld]


@dataclass(frozen=True)
class Race:
    """Everything that decides what comes out: the same race gives the same bits."""

    worlds: Mapping[str, Worlds]
    policies: Mapping[str, Entrant]
    options: Mapping[str, Mapping[str, Any]]
    horizon: int
    trials: int
    seed: int
    every: int
    observational: int

    @property
    def extent(self) -> Extent:
        """What it spans."""
        return Extent(tuple(self.worlds), tuple(self.policies), self.horizon, self.trials)

    def spec(self) -> dict[str, Any]:
        """For the manifest: the worlds' own word, policies with what makes them, and how."""
        return {
            "dowise": dowise.__version__,
            "sources": source_digest(),
            "problems": {label: worlds.spec() for label, worlds in self.worlds.items()},
            "policies": {
                label: entrant.spec()
                | {"options": _plain(dict(self.options.get(label, {})), label)}
                for label, entrant in self.policies.items()
            },
            "seed": self.seed,
            "every": self.every,
            "observational": self.observational,
        }

    def options_of(self, policy: str, trial: int) -> dict[str, Any]:
        """Those given, and the race's own seed and horizon for a policy that has such options."""
        entrant = self.policies[policy]
        own = {"seed": seed_of(self.seed, trial), "horizon": self.horizon}
        return {name: x for name, x in own.items() if entrant.takes(name)} | dict(
            self.options.get(policy, {})
        )

    def heeds_horizon(self, policy: str) -> bool:
        """Whether the first rounds of a policy may depend on how many there are.

        They may where it gets its horizon from the race, unless it says that it decides without.
        """
        entrant = self.policies[policy]
        if not entrant.takes("horizon") or "horizon" in self.options.get(policy, {}):
            return False
        worlds = next(iter(self.worlds.values()))
        problem = make_world(worlds, self.seed, 0).problem
        made = entrant.make(problem, **self.options_of(policy, 0))
        return bool(getattr(made, "heeds_horizon", True))

    def check_sendable(self) -> None:
        """Raise if a world can't be pickled for other processes."""
        for label, worlds in self.worlds.items():
            if isinstance(worlds, OneWorld):
                check_sendable(f"the world {label!r}", worlds)

    def run(self, job: Job) -> Rounds:
        """Play the trials of one job."""
        found = self._kept_of(job, self.horizon)
        shorter = None if job.known is None else self._kept_of(job, job.known[0])
        for trial in found.trials:
            world = make_world(self.worlds[job.problem], self.seed, trial)
            totals, arms = self._played(job, world, trial)
            names = [str(arm) for arm in world.problem.arms]
            for rounds in (found, shorter):
                if rounds is not None:
                    rounds.regrets.append(totals[rounds.rounds - 1])
                    rounds.arms.append([names[i] for i in arms[rounds.rounds - 1].tolist()])
        if shorter is not None and job.known != (int(shorter.rounds[-1]), shorter.digest()):
            raise DowiseError(
                f"{job.policy} on {job.problem}, trials {job.first} to {job.last}: the first "
                f"{shorter.rounds[-1]:,} rounds came out otherwise than those that are there, so "
                "the policy depends on how many rounds there are, or this machine plays otherwise: "
                "name another folder as out"
            )
        return found

    def _kept_of(self, job: Job, horizon: int) -> Rounds:
        trials = list(range(job.first, job.last + 1))
        return Rounds(trials, kept_rounds(horizon, self.every), [], [])

    def _played(
        self, job: Job, world: World, trial: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Of every round of a trial: the cumulative regret, and the arm by its position."""
        make = partial(self.policies[job.policy].make, **self.options_of(job.policy, trial))
        try:
            played = run_trial(world, make, self.horizon, self.seed, trial, self.observational)
        except Exception as error:
            kind = DowiseError if own_place(error) is None else OwnCodeError
            where = f"{job.policy} on {job.problem}, trial {trial}"
            raise kind(f"{where}: {described(error)}") from error
        return played.regrets.cumsum(), played.arms


def simulate(
    problems: Iterable[Raced],
    policies: Iterable[Entry],
    horizon: int = 1000,
    trials: int = 100,
    seed: int = 0,
    workers: int = 1,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    out: str | Path | None = None,
    every: int = 1,
    observational: int = 0,
    cluster: str | None = None,
    progress: Progress = lambda _done, _total: None,
    strong: bool = False,
    edges: EdgesOfWorlds = "all",
) -> Result:
    """Race policies in `trials` worlds of each problem, or so many times in a world of yours.

    Problems are names ("task1", "chordal-15-0.2": a random graph for every trial), paths of problem
    files or Problems: every trial draws CPTs afresh from Dirichlet(1). In their place may stand a
    world: an `Environment`, such as `Environment.from_bif("alarm")`, or anything that passes
    `check_environment`; it is played as it is in every trial. A pair (name in this race, problem or
    world) gives a name. Policies are names, pairs (name in this race, name of the policy), or what
    makes one from a problem; `On(problem, policy, label)` is one that has another problem in mind
    than the world's, such as a wrong graph. `options` has those of a policy by its name in the
    race. Within a trial all policies face the same world and the same contexts, so differences are
    paired.
    A policy with an option `seed` gets another one in every trial, and one with an option
    `horizon` that of the race, unless they are given.
    `observational` records of what the world does by itself are shown to every policy first.
    `every=10` keeps every tenth round only, and the last. `strong` and `edges` are those of
    `make_environment`: worlds with strong hidden causes, or with the edges that priors bring.

    With `out` the results live in that folder, job by job as they finish, and are verified whenever
    they are read. The same call goes on with a run that was stopped; one with more trials, rounds,
    policies or problems extends it, one with less shows that part, and any other is refused.
    `workers` are processes on this machine; `cluster` is the address of a Dask scheduler instead.
    The results are the same bits for any number of workers.
    """
    import_extra("pyarrow", "simulate", "a race")
    manner = Manner(strong=strong, edges=edges)
    race = _checked_race(
        problems, policies, horizon, trials, seed, options or {}, every, observational, manner
    )
    workers = checked_workers(workers, cluster)
    if workers > 1 or cluster is not None:
        race.check_sendable()
    return _run(race, out, workers, cluster, progress)


def _run(
    race: Race, out: str | Path | None, workers: int, cluster: str | None, progress: Progress
) -> Result:
    """Start the race in its folder, or go on with it there."""
    path = Path(tempfile.mkdtemp(prefix="dowise-")) / "run" if out is None else Path(out)
    store = Store(path)
    jobs = store.open(race.spec(), race.extent, race.heeds_horizon)
    result = Result(store, jobs, race.trials)
    if out is None:  # a folder that nobody named goes with the result
        weakref.finalize(result, shutil.rmtree, path.parent, ignore_errors=True)
    _finish(race, store, jobs, workers, cluster, progress)
    return result


def _finish(
    race: Race,
    store: Store,
    jobs: list[Job],
    workers: int,
    cluster: str | None,
    progress: Progress,
) -> None:
    """Do the jobs that are not done yet; this process alone writes."""
    waiting = _not_done(store, jobs)
    done = len(jobs) - len(waiting)
    progress(done, len(jobs))
    with closing(run_everywhere(race.run, waiting, workers, cluster)) as finished:
        for job, found in finished:
            store.write(job, found)
            done += 1
            progress(done, len(jobs))


def _not_done(store: Store, jobs: list[Job]) -> list[Job]:
    """The jobs to do: those that were never done, and those whose results are damaged."""
    waiting: list[Job] = []
    again: list[str] = []
    alone: list[str] = []
    for job in jobs:
        try:
            if store.is_done(job):
                continue
        except DamagedError as error:
            again.append(str(error))
        try:
            waiting.append(store.with_known(job))
        except DamagedError as error:
            alone.append(str(error))
            waiting.append(job)
    _say(again, "its trials are run again")
    _say(alone, "the longer trials can't be compared with it")
    return waiting


def _say(damaged: list[str], what: str) -> None:
    """Once, however many files there are."""
    if damaged:
        others = f" (and {len(damaged) - 1} more files likewise)" if len(damaged) > 1 else ""
        warnings.warn(f"{damaged[0]}: {what}{others}", DowiseWarning, stacklevel=6)


def _checked_race(
    problems: Iterable[Raced],
    policies: Iterable[Entry],
    horizon: int,
    trials: int,
    seed: int,
    options: Mapping[str, Mapping[str, Any]],
    every: int,
    observational: int,
    manner: Manner,
) -> Race:
    horizon, trials = (
        whole_number("horizon", horizon, 1, MOST_ROUNDS),
        whole_number("trials", trials, 1),
    )
    every, seed = whole_number("every", every, 1), whole_number("seed", seed, 0)
    observational = whole_number("observational", observational, 0)
    if not all(
        isinstance(given, Iterable) and not isinstance(given, str | Mapping)
        for given in (problems, policies)
    ):
        raise DowiseError('give lists: simulate(["task1"], ["ids", "ts"], …)')
    raced = dict(_labelled_worlds(problems, None if manner == Manner() else manner))
    makers = {entrant.label: entrant for entrant in entrants_of(policies)}
    if not raced or not makers:
        raise DowiseError("name at least one problem and one policy")
    for label, own in options.items():
        if label not in makers:
            raise DowiseError(f"options for {label!r}, which is not among the policies")
        if not isinstance(own, Mapping):
            raise DowiseError(f"options={options!r}: give {{policy: {{option: value}}}}")
    race = Race(raced, makers, options, horizon, trials, seed, every, observational)
    first = [make_world(worlds, seed, 0).problem for worlds in raced.values()]
    for label, entrant in makers.items():  # whatever is wrong shows here, before anything is run
        for problem in first:
            entrant.check(problem, **race.options_of(label, 0))
    return race


def _plain(value: Any, label: str) -> Any:
    """An option as JSON has it, so that a manifest can be compared; refused where it can't be."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part, label) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, label) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    raise DowiseError(
        f"an option of {label!r} is {value!r}: give numbers, texts, lists or mappings of them, so "
        "that the run can be told from others"
    )


def _labelled_worlds(
    problems: Iterable[Raced], manner: Manner | None
) -> Iterator[tuple[str, Worlds]]:
    seen: set[str] = set()
    for given in problems:
        own, place = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
        worlds = worlds_of(place, manner)
        label = str(own or worlds.label or f"problem {len(seen) + 1}")
        if label in seen:
            raise DowiseError(
                f'two problems are called {label!r}: give them different names (name = "…" in a '
                "problem file), in Python in pairs (name in this race, problem or world)"
            )
        seen.add(label)
        yield label, worlds
