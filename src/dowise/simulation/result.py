"""What a race found, read from disk when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dowise.errors import import_extra
from dowise.simulation.analysis import differences, standings
from dowise.simulation.store import Job, Store, jobs_of

if TYPE_CHECKING:
    import pandas

__all__ = ["Result"]


class Result:
    """A run, finished or not: its results live on disk."""

    def __init__(self, store: Store, jobs: Sequence[Job]) -> None:
        self._store, self._jobs = store, tuple(jobs)

    @classmethod
    def open(cls, path: str | Path) -> Result:
        """A run that is there already, by its folder."""
        store = Store(Path(path))
        spec = store.spec()
        return cls(store, jobs_of(spec["problems"], spec["policies"], spec["trials"]))

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._store.path

    def frame(self) -> pandas.DataFrame:
        """Everything: problem, policy, trial, round (from 1), regret (cumulative), arm."""
        import_extra("pandas", "simulate", "a data frame")
        frame: pandas.DataFrame = self._store.table(self._jobs).to_pandas()
        return frame

    def final(self) -> pandas.DataFrame:
        """The cumulative regret after the last round: a row for each problem and trial, a column
        for each policy, so that differences between columns are paired."""
        import_extra("pandas", "simulate", "a data frame")
        columns, horizon = ["problem", "policy", "trial", "regret"], self._store.spec()["horizon"]
        last = self._store.table(self._jobs, columns, only_round=horizon).to_pandas()
        wide: pandas.DataFrame = last.pivot(
            index=["problem", "trial"], columns="policy", values="regret"
        )
        policies = list(dict.fromkeys(job.policy for job in self._jobs))
        return wide[policies]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the final regret of each policy on each problem with its standard error, and
        every other policy's less that of the first, paired, with a 95 % interval."""
        final = self.final()
        return {
            "final": [standing.as_dict() for standing in standings(final)],
            "differences": [difference.as_dict() for difference in differences(final)],
        }

    def __repr__(self) -> str:
        done = sum(self._store.is_done(job) for job in self._jobs)
        return f"<Result in {self.path}: {done} of {len(self._jobs)} jobs done>"
