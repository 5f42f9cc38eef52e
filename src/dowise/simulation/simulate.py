"""Simulations: problems × policies × trials, on any number of workers, with reproducible bits.

>>> result = simulate(["task1"], ["ts", "ucb"], horizon=50, trials=4, seed=0)
>>> result.frame().columns.tolist()
['problem', 'policy', 'trial', 'round', 'regret', 'arm']
>>> len(result.frame())
400
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from dowise.environments import WorldOptions
from dowise.environments.random_worlds import EdgeSampling
from dowise.errors import DowiseWarning, import_extra
from dowise.simulation.executors import check_workers, run_jobs
from dowise.simulation.result import Result
from dowise.simulation.run_directory import Call, InMemoryResults, RunDirectory
from dowise.simulation.spec import PolicyLike, ProblemLike, SimulationSpec

Progress = Callable[[int, int], None]


def simulate(
    problems: Iterable[ProblemLike],
    policies: Iterable[PolicyLike],
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
    edges: EdgeSampling = "all",
    expected: bool = False,
) -> Result:
    """Compare policies in simulated trials.

    Within a trial all policies face the same world and the same contexts, so differences are
    paired. The results are the same bits for any number of workers.

    Parameters
    ----------
    problems
        Names ("task1"; "chordal-15-0.2" draws a random graph for every trial), paths of problem
        files or Problems: every trial draws new CPTs from the problem's prior or Dirichlet(1). A
        world, such as an `Environment` or anything that passes `check_environment`, is the same in
        every trial. A pair (label, problem or world) sets the label.
    policies
        Names, factories (classes or functions of a problem), pairs (label, policy), or
        `On(problem, policy, label)` for a policy whose problem differs from the world's.
    horizon
        Rounds per trial.
    trials
        Trials per problem and policy.
    seed
        Random seed.
    workers
        Number of processes on this machine.
    options
        Options of each policy by its label. By default an option `seed` differs in every trial, and
        an option `horizon` is that of the simulation.
    out
        Directory for the results, written job by job. Jobs whose files exist are not run again, so
        the same call resumes a run that was stopped, and a larger one extends it. Without `out`
        results stay in memory.
    every
        Keep every n-th round and the last one.
    observational
        Number of observational records shown to every policy before the first round.
    cluster
        Address of a Dask scheduler, used instead of `workers`.
    progress
        Called with the number of finished jobs and the number of all jobs.
    strong, edges
        Options of `make_environment`: strong hidden causes; doubtful edges drawn by their priors.
    expected
        Add the column `expected`: cumulative regret as the posterior expects it, with the same
        mean and less noise. Requires worlds drawn from the prior.

    Returns
    -------
    Result
        Regret curves, final regrets and paired differences.

    Raises
    ------
    DowiseError
        If an argument is invalid, a policy fails, or `out` is not a run directory.

    Examples
    --------
    >>> from dowise import simulate
    >>> simulate(["task1"], ["ts", "ucb"], horizon=20, trials=3).final().shape
    (3, 2)
    """
    import_extra("pyarrow", "simulate", "a simulation")
    spec = SimulationSpec.from_user(
        problems,
        policies,
        horizon=horizon,
        trials=trials,
        seed=seed,
        options=options or {},
        every=every,
        observational=observational,
        world_options=WorldOptions(strong=strong, edges=edges),
        expected=expected,
    )
    workers = check_workers(workers, cluster)
    if workers > 1 or cluster is not None:
        spec.check_picklable()
    data = json.loads(json.dumps(spec.to_json()))
    jobs = missing = spec.jobs(data)
    results: RunDirectory | InMemoryResults = InMemoryResults()
    if out is not None:
        results = RunDirectory(Path(out))
        results.begin(Call(data, spec.horizon, spec.trials, jobs))
        missing, damages = results.missing(jobs)
        if damages:
            count = f" (and {len(damages) - 1} more files)" if len(damages) > 1 else ""
            warnings.warn(
                f"{damages[0]}: its trials are run again{count}", DowiseWarning, stacklevel=2
            )
    finished_count = len(jobs) - len(missing)
    progress(finished_count, len(jobs))
    with closing(run_jobs(spec.run, missing, workers, cluster)) as finished:
        for job, result in finished:
            results.add(job, result)
            finished_count += 1
            progress(finished_count, len(jobs))
    return Result(results, jobs, has_expected=spec.expected)
