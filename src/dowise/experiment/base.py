"""What follows from other looks at an experiment, wherever that is: a picture, a table, a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from dowise.errors import import_extra
from dowise.experiment.case import Case
from dowise.experiment.history import POINTS, History
from dowise.experiment.progress import Track
from dowise.experiment.records import write_table
from dowise.experiment.status import Status
from dowise.plotting.scene import check_path
from dowise.problem.problem import Context


class Shown(ABC):
    """An experiment of which status, history, records and table are known."""

    @abstractmethod
    def status(
        self, context: Context = None, evidence: bool | None = None, rounds: int | None = None
    ) -> Status:
        """What each arm is expected to bring in a context, or in each of them."""

    @abstractmethod
    def history(
        self, context: Context = None, points: int = POINTS, track: Track | None = None
    ) -> History:
        """How sure the experiment was along its journal, at so many points of it."""

    @abstractmethod
    def records(self) -> tuple[Case, ...]:
        """All decisions, with what was told of them."""

    @abstractmethod
    def table(self) -> dict[str, list[Any]]:
        """All decisions by columns, as they are exported (`dowise.experiment.records`)."""

    def figure(
        self,
        path: str | Path,
        context: Context = None,
        tolerance: float | None = None,
        track: Track | None = None,
    ) -> None:
        """Draw where the experiment stands, and how it came there, to a .png, .svg or .pdf file."""
        from dowise.experiment.plots import draw, figure_data

        check_path(path)
        status = self.status(context, evidence=False)
        past = self.history(context, track=track)
        draw(figure_data(status, past, self.records(), tolerance), path)

    def export(self, path: str | Path) -> int:
        """Write all decisions to a .csv or .parquet file; the number of rows."""
        return write_table(self.table(), path)

    def frame(self) -> Any:
        """The same table for pandas."""
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(self.table())
