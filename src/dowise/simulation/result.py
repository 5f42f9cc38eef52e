"""Results of a simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dowise._core.document import Block, Document, Heading, Table
from dowise.errors import DowiseError, import_extra
from dowise.plotting.figures import check_path, save_figure
from dowise.simulation.analysis import Measure, RegretCurve, Spread, curves, differences, standings
from dowise.simulation.plots import plot_regret
from dowise.simulation.run_directory import InMemoryResults, Job, RunDirectory, select_jobs

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


class Result:
    """Results of a simulation, finished or not.

    Returned by `simulate`; `Result.open` reads those of a directory.

    Examples
    --------
    >>> from dowise import simulate
    >>> result = simulate(["task1"], ["ts", "ucb"], horizon=20, trials=3)
    >>> result.final().columns.tolist()
    ['ts', 'ucb']
    """

    def __init__(
        self,
        results: RunDirectory | InMemoryResults,
        jobs: Sequence[Job],
        has_expected: bool = False,
    ) -> None:
        self._results, self._has_expected = results, has_expected
        problems = list(dict.fromkeys(job.problem for job in jobs))
        self._policies = list(dict.fromkeys(job.policy for job in jobs))
        self._jobs = sorted(
            jobs,
            key=lambda job: (
                problems.index(job.problem),
                self._policies.index(job.policy),
                job.first,
            ),
        )

    @classmethod
    def open(cls, path: str | Path, horizon: int | None = None) -> Result:
        """Open the results in a directory: all finished jobs of calls with the same settings.

        Parameters
        ----------
        path
            The `out` of `simulate`.
        horizon
            Horizon of the calls. By default, and if calls differ in other settings, those with the
            most finished jobs are shown.

        Returns
        -------
        Result
            The results.

        Raises
        ------
        DowiseError
            If there is no such run, or its list of jobs is damaged.

        Examples
        --------
        >>> import tempfile
        >>> from dowise import simulate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = simulate(["task1"], ["ucb"], horizon=5, trials=2, out=folder)
        ...     Result.open(folder).frame().equals(result.frame())
        True
        """
        directory = RunDirectory(Path(path))
        jobs, spec = select_jobs(directory, horizon)
        return cls(directory, jobs, has_expected=bool(spec.get("expected", False)))

    @property
    def path(self) -> Path | None:
        """The run directory; None if the results are in memory."""
        return self._results.path

    def _table(self, columns: list[str] | None = None, *, only_last: bool = False) -> Any:
        """Return the results of the finished jobs as one Arrow table."""
        pyarrow = import_extra("pyarrow", "simulate", "a simulation")
        compute = import_extra("pyarrow.compute", "simulate", "a simulation")
        parts = []
        for job in self._jobs:
            if job in self._results:
                part = self._results.table(job, columns)
                if only_last:
                    part = part.filter(compute.equal(part["round"], job.horizon))
                parts.append(part)
        if not parts:
            raise DowiseError(f"{self.path} has no results yet", code="no-results")
        return pyarrow.concat_tables(parts).unify_dictionaries()

    def frame(self) -> pandas.DataFrame:
        """Return all rows: problem, policy, trial, round (from 1), regret (cumulative), arm.

        The column `expected` (cumulative) follows if the simulation computed it.
        """
        import_extra("pandas", "simulate", "a data frame")
        frame: pandas.DataFrame = self._table().to_pandas()
        return frame

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures to compare policies by: "regret", and "expected" if it was computed."""
        return ("regret", "expected") if self._has_expected else ("regret",)

    def final(self, measure: Measure = "regret") -> pandas.DataFrame:
        """Return the cumulative regret after the last round.

        There is a row for each problem and trial and a column for each policy, so differences
        between columns are paired. `measure="expected"` is the expected regret.
        """
        import_extra("pandas", "simulate", "a data frame")
        columns = ["problem", "policy", "trial", "round", self._check_measure(measure)]
        last = self._table(columns, only_last=True).to_pandas()
        wide: pandas.DataFrame = last.pivot(
            index=["problem", "trial"], columns="policy", values=measure
        )
        return wide[self._policies]

    def _check_measure(self, measure: Measure) -> Measure:
        if measure in self.measures:
            return measure
        if measure == "expected":
            raise DowiseError(
                "this result has no expected regret: simulate with expected=True", code="no-results"
            )
        raise DowiseError(
            f"measure={measure!r}: expected 'regret' or 'expected'", code="unknown-value"
        )

    def curves(self, measure: Measure = "regret") -> dict[str, list[RegretCurve]]:
        """Return the regret curve of every policy over trials, by problem."""
        import_extra("pandas", "simulate", "a data frame")
        columns = ["problem", "policy", "trial", "round", self._check_measure(measure)]
        frame = self._table(columns).to_pandas()
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
        """Plot `curves`, with a panel for each problem.

        Parameters
        ----------
        path
            File to write (.png, .pdf or .svg). The same results give the same bytes.
        band
            "se" draws bands of two standard errors, "sd" of two standard deviations.
        axes
            Matplotlib axes to draw into, one for each problem.
        measure
            "regret" or "expected".

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which is not registered with pyplot.
        """
        file = None if path is None else check_path(path)
        figure: Figure = plot_regret(self.curves(measure), band, axes)
        if file is not None:
            save_figure(figure, file)
        return figure

    def document(self) -> Document:
        """Return the final regrets, and the paired differences to the first policy."""
        return Document(tuple(_document_blocks(self)))

    def as_dict(self) -> dict[str, Any]:
        """Return the final regrets with standard errors, and the paired differences of policies.

        Differences have 95 % intervals. If expected regret was computed, the key `expected` has
        its tables.
        """
        tables: dict[str, Any] = {}
        for measure in self.measures:
            final = self.final(measure)
            tables[measure] = {
                "final": [standing.as_dict() for standing in standings(final, measure)],
                "differences": [x.as_dict() for x in differences(final, all_pairs=True)],
            }
        regret: dict[str, Any] = tables.pop("regret")
        return regret | tables

    def __repr__(self) -> str:
        finished = sum(job in self._results for job in self._jobs)
        location = "in memory" if self.path is None else f"in {self.path}"
        return f"<Result {location}: {finished} of {len(self._jobs)} jobs done>"


def _document_blocks(result: Result) -> Iterator[Block]:
    finals = [result.final(measure) for measure in result.measures]
    has_expected = len(finals) > 1
    errors = ("error", "expected regret", "error") if has_expected else ("standard error",)
    columns = ("problem", "policy", "final regret", *errors, "trials")
    yield Table(
        columns,
        tuple(
            (
                row[0].problem,
                row[0].policy,
                *(text for standing in row for text in _format_mean(standing.regret)),
                f"{row[0].regret.trials:,}",
            )
            for row in zip(*map(standings, finals), strict=True)
        ),
        right=columns[2:],
    )
    pairs = zip(*map(differences, finals), strict=True)
    rows = [row for row in pairs if row[0].difference.trials > 1]
    if rows:
        expected = ("expected", "95 % interval") if has_expected else ()
        yield Heading("Paired differences")
        yield Table(
            ("problem", "difference", "mean", "95 % interval", *expected),
            tuple(
                (
                    row[0].problem,
                    f"{row[0].policy} − {row[0].baseline}",
                    *(text for pair in row for text in _format_difference(pair.difference)),
                )
                for row in rows
            ),
            right=("mean", "expected"),
        )


def _format_mean(spread: Spread) -> tuple[str, str]:
    return f"{spread.mean:.2f}", f"{spread.error:.2f}" if spread.trials > 1 else ""


def _format_difference(spread: Spread) -> tuple[str, str]:
    return f"{spread.mean:+.2f}", "{:+.2f} to {:+.2f}".format(*spread.interval)
