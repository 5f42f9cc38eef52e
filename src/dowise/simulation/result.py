"""What a race found, read from disk when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dowise.errors import DowiseError, import_extra
from dowise.picture.drawing import check_path
from dowise.simulation.analysis import Measure, RegretCurve, curves, differences, standings
from dowise.simulation.figures import race_figure
from dowise.simulation.jobs import Job
from dowise.simulation.pens import save_figure
from dowise.simulation.store import Store

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

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
        """Everything: problem, policy, trial, round (from 1), regret (cumulative), arm.

        With `expected` (cumulative) behind them where the race was told so.
        """
        import_extra("pandas", "simulate", "a data frame")
        frame: pandas.DataFrame = self._store.table(self._jobs, trials=self._trials).to_pandas()
        return frame

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What there is to compare policies by: "regret", and "expected" if the race has it."""
        return ("regret", "expected") if self._store.has_expected else ("regret",)

    def final(self, measure: Measure = "regret") -> pandas.DataFrame:
        """The cumulative regret after the last round: a row for each problem and trial, a column
        for each policy, so that differences between columns are paired.

        `measure="expected"` is the expected regret of a race that has it.
        """
        import_extra("pandas", "simulate", "a data frame")
        columns = ["problem", "policy", "trial", "round", self._checked(measure)]
        last = self._store.table(self._jobs, columns, self._trials, only_last=True).to_pandas()
        wide: pandas.DataFrame = last.pivot(
            index=["problem", "trial"], columns="policy", values=measure
        )
        return wide[self._policies]

    def _checked(self, measure: Measure) -> Measure:
        if measure in self.measures:
            return measure
        if measure == "expected":
            raise DowiseError(
                f"the run in {self.path} has no expected regret: race with expected=True, in "
                "another folder"
            )
        raise DowiseError(f"measure={measure!r}: give 'regret' or 'expected'")

    def curves(self, measure: Measure = "regret") -> dict[str, list[RegretCurve]]:
        """For each problem the cumulative regret of every policy, round by round, over trials."""
        import_extra("pandas", "simulate", "a data frame")
        columns = ["problem", "policy", "trial", "round", self._checked(measure)]
        frame = self._store.table(self._jobs, columns, self._trials).to_pandas()
        return {
            problem: curves(
                rows, [x for x in self._policies if (rows["policy"] == x).any()], measure
            )
            for problem, rows in frame.groupby("problem", sort=False, observed=True)
        }

    def plot(
        self,
        path: str | Path | None = None,
        *,
        band: Literal["se", "sd"] = "se",
        axes: Any = None,
        measure: Measure = "regret",
    ) -> Figure:
        """Draw `curves`, a panel for each problem, with bands of two standard errors.

        With a path it is written there too, whole, as .png, .pdf or .svg; the same run gives the
        same bytes. `band="sd"` draws two standard deviations. `axes` are matplotlib's, one for each
        problem, to draw into a figure of one's own; `measure` is that of `final`. The figure is
        returned; pyplot knows nothing of it.
        """
        file = None if path is None else check_path(path)
        figure: Figure = race_figure(self.curves(measure), band, axes)
        if file is not None:
            save_figure(figure, file)
        return figure

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the final regret of each policy on each problem with its standard error, and
        of every two policies the paired difference with a 95 % interval.

        Of a race that has expected regret, `expected` has the same two tables of it.
        """
        tables = {measure: self._tables(measure) for measure in self.measures}
        return tables.pop("regret") | tables

    def _tables(self, measure: Measure) -> dict[str, Any]:
        final = self.final(measure)
        return {
            "final": [standing.as_dict() for standing in standings(final, measure)],
            "differences": [one.as_dict() for one in differences(final, all_pairs=True)],
        }

    def __repr__(self) -> str:
        done = sum(self._store.is_there(job) for job in self._jobs)
        return f"<Result in {self.path}: {done} of {len(self._jobs)} jobs done>"
