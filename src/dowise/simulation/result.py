"""What a race found, read from disk when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, import_extra
from dowise.simulation.analysis import differences, standings
from dowise.simulation.jobs import Job
from dowise.simulation.store import Store

if TYPE_CHECKING:
    import pandas

__all__ = ["Result"]


class Result:
    """A run, finished or not: its results live on disk."""

    def __init__(self, store: Store, jobs: Sequence[Job], trials: int | None = None) -> None:
        self._store, self._trials = store, trials
        # However the trials were cut into jobs: problem by problem, policy by policy.
        problems = list(dict.fromkeys(job.problem for job in jobs))
        self._policies = list(dict.fromkeys(job.policy for job in jobs))
        self._jobs = sorted(
            jobs,
            key=lambda job: (
                problems.index(job.problem), self._policies.index(job.policy), job.first,
            ),
        )  # fmt: skip

    @classmethod
    def open(cls, path: str | Path, horizon: int | None = None) -> Result:
        """A run that is there already, by its folder: all that it has of trials of one length.

        Where it has races of several horizons, it is that of which most is done, and the longest of
        those, unless `horizon` says which.
        """
        store = Store(Path(path))
        store.read()
        races = store.races
        jobs: dict[int, dict[Job, None]] = {}
        for race in races:
            jobs.setdefault(race.horizon, {}).update(dict.fromkeys(race.jobs(races)))
        if horizon is not None and horizon not in jobs:
            known = " and ".join(str(known) for known in sorted(jobs))
            raise DowiseError(f"{path} has no race of {horizon} rounds: it has {known}")

        def done(rounds: int) -> tuple[int, int]:
            return sum(map(store.is_there, jobs[rounds])), rounds

        return cls(store, [*jobs[max(jobs, key=done) if horizon is None else horizon]])

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._store.path

    def frame(self) -> pandas.DataFrame:
        """Everything: problem, policy, trial, round (from 1), regret (cumulative), arm."""
        import_extra("pandas", "simulate", "a data frame")
        frame: pandas.DataFrame = self._store.table(self._jobs, trials=self._trials).to_pandas()
        return frame

    def final(self) -> pandas.DataFrame:
        """The cumulative regret after the last round: a row for each problem and trial, a column
        for each policy, so that differences between columns are paired."""
        import_extra("pandas", "simulate", "a data frame")
        columns = ["problem", "policy", "trial", "regret"]
        last = self._store.table(self._jobs, columns, self._trials, only_last=True).to_pandas()
        wide: pandas.DataFrame = last.pivot(
            index=["problem", "trial"], columns="policy", values="regret"
        )
        return wide[self._policies]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the final regret of each policy on each problem with its standard error, and
        every other policy's less that of the first, paired, with a 95 % interval."""
        final = self.final()
        return {
            "final": [standing.as_dict() for standing in standings(final)],
            "differences": [difference.as_dict() for difference in differences(final)],
        }

    def __repr__(self) -> str:
        done = sum(self._store.is_there(job) for job in self._jobs)
        return f"<Result in {self.path}: {done} of {len(self._jobs)} jobs done>"
