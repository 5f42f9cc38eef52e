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
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from dowise.environments import Manner
from dowise.environments.draw import EdgesOfWorlds
from dowise.errors import DowiseWarning, import_extra
from dowise.simulation.entrants import Entry
from dowise.simulation.jobs import Job
from dowise.simulation.race import Race, Raced, checked_race
from dowise.simulation.result import Result
from dowise.simulation.results import DamagedError
from dowise.simulation.store import Store
from dowise.simulation.workers import checked_workers, run_everywhere

__all__ = ["simulate"]

Progress = Callable[[int, int], None]


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
    expected: bool = False,
) -> Result:
    """Race policies in `trials` worlds of each problem, or so many times in a world of yours.

    Problems are names ("task1", "chordal-15-0.2": a random graph for every trial), paths of problem
    files or Problems: every trial draws CPTs afresh, from the problem's prior or Dirichlet(1). In
    their place may stand a world: an `Environment`, such as `Environment.from_bif("alarm")`, or
    anything that passes `check_environment`; it is played as it is in every trial. A pair (name in
    this race, problem or world) gives a name. Policies are names, pairs (name in this race, name of
    the policy), or what makes one from a problem; `On(problem, policy, label)` is one that has
    another problem in mind than the world's, such as a wrong graph. `options` has those of a policy
    by its name in the race. Within a trial all policies face the same world and the same contexts,
    so differences are paired.
    A policy with an option `seed` gets another one in every trial, and one with an option
    `horizon` that of the race, unless they are given.
    `observational` records of what the world does by itself are shown to every policy first.
    `every=10` keeps every tenth round only, and the last. `strong` and `edges` are those of
    `make_environment`: worlds with strong hidden causes, or with the edges that priors bring.
    `expected` adds the column `expected`: the cumulative regret that the posterior expects, of
    the same mean as the regret and far less noise; its worlds must be drawn from the prior.

    With `out` the results live in that folder, job by job as they finish, and are verified whenever
    they are read. The same call goes on with a run that was stopped; one with more trials, rounds,
    policies or problems extends it, one with less shows that part, and any other is refused.
    `workers` are processes on this machine; `cluster` is the address of a Dask scheduler instead.
    The results are the same bits for any number of workers.
    """
    import_extra("pyarrow", "simulate", "a race")
    manner = Manner(strong=strong, edges=edges)
    race = checked_race(
        problems, policies, horizon, trials, seed, options or {}, every, observational, manner,
        expected,
    )  # fmt: skip
    workers = checked_workers(workers, cluster)
    if workers > 1 or cluster is not None:
        race.check_sendable()
    return _run(race, out, workers, cluster, progress)


def _run(
    race: Race, out: str | Path | None, workers: int, cluster: str | None, progress: Progress
) -> Result:
    """Start the race in its folder, or go on with it there."""
    spec = race.spec()
    path = Path(tempfile.mkdtemp(prefix="dowise-")) / "run" if out is None else Path(out)
    store = Store(path, lasting=out is not None)
    if out is None:  # a folder that nobody named goes with the store, and so with the result
        weakref.finalize(store, shutil.rmtree, path.parent, ignore_errors=True)
    jobs = store.open(spec, race.extent, race.heeds_horizon)
    result = Result(store, jobs, race.trials)
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
