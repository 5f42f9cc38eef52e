"""A run on disk: `manifest.json` says what it is, `results/` has a Parquet file for each job done.

A job is some trials of one policy on one problem. Its file is there whole or not at all
(`dowise.files`); a run that was killed goes on with the jobs whose
files are missing. The columns are problem, policy, trial, round (from 1), regret (cumulative) and
arm; problem, policy and arm are dictionary-encoded texts.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, import_extra
from dowise.files import DRAFT, write_bytes, write_text

__all__ = ["Job", "Rounds", "Store", "jobs_of"]

MANIFEST = "manifest.json"
RESULTS = "results"
TRIALS_PER_JOB = 10


@dataclass(frozen=True, order=True)
class Job:
    """Trials `first` to `last` of one policy on one problem, by their names in the run."""

    problem: str
    policy: str
    first: int
    last: int

    @property
    def file(self) -> str:
        """The name of its Parquet file."""
        problem, policy = (quote(name, safe="") for name in (self.problem, self.policy))
        return f"{problem}+{policy}+{self.first:06}-{self.last:06}.parquet"


def jobs_of(problems: Iterable[str], policies: Iterable[str], trials: int) -> list[Job]:
    """All jobs of a race; the first trials of all policies come first."""
    names = list(policies)
    return [
        Job(problem, policy, first, min(first + TRIALS_PER_JOB, trials) - 1)
        for problem in problems
        for first in range(0, trials, TRIALS_PER_JOB)
        for policy in names
    ]


@dataclass(frozen=True, eq=False)
class Rounds:
    """What a job found: for each trial kept rounds, cumulative regrets, and arms as texts."""

    trials: list[int]
    rounds: NDArray[np.int32]
    regrets: list[NDArray[np.float64]]
    arms: list[list[str]]


class Store:
    """A run directory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, spec: Mapping[str, Any]) -> None:
        """Start the run, or go on with one of the same manifest; refuse any other."""
        wanted = json.loads(json.dumps(spec))
        there, results = self.path / MANIFEST, self.path / RESULTS
        if there.exists():
            results.mkdir(exist_ok=True)
            found = self.spec()
            difference = _difference(found, wanted)
            if difference:
                raise DowiseError(
                    f"{self.path} has another run: its {difference}; name another folder as out, "
                    "or remove this one"
                )
            return
        strange = self.path.exists() and not self.path.is_dir()
        there_already = {*self.path.iterdir()} if self.path.is_dir() else set()
        # A draft is what a stop in the middle of writing the manifest has left.
        if strange or {x for x in there_already if x.suffix != DRAFT} - {results}:
            raise DowiseError(
                f"{self.path} is there already, and no run of ours: name a new folder"
            )
        results.mkdir(parents=True, exist_ok=True)
        manifest = {
            "spec": wanted,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {
                "python": platform.python_version(),
                "system": platform.system(),
                "processor": platform.machine(),
                "cores": os.cpu_count(),
            },
        }
        write_text(there, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")

    def spec(self) -> dict[str, Any]:
        """What is run, from the manifest."""
        try:
            manifest = json.loads((self.path / MANIFEST).read_text("utf-8"))
            spec: dict[str, Any] = dict(manifest["spec"])
        except FileNotFoundError:
            raise DowiseError(f"{self.path} is no run: it has no {MANIFEST}") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DowiseError(f"{self.path / MANIFEST} can't be read: {error}") from None
        return spec

    def is_done(self, job: Job) -> bool:
        """Whether the job's file is there, and whole."""
        file = self.path / RESULTS / job.file
        if not file.exists():
            return False
        pyarrow = import_extra("pyarrow", "simulate", "a race")
        parquet = import_extra("pyarrow.parquet", "simulate", "a race")
        try:
            parquet.read_metadata(file)
        except (OSError, pyarrow.ArrowInvalid):
            return False
        return True

    def write(self, job: Job, found: Rounds) -> None:
        """Keep what a job found."""
        pyarrow = import_extra("pyarrow", "simulate", "a race")
        parquet = import_extra("pyarrow.parquet", "simulate", "a race")
        kept, trials = len(found.rounds), len(found.trials)

        def repeated(text: str) -> Any:
            zeros = pyarrow.array(np.zeros(kept * trials, np.int32))
            return pyarrow.DictionaryArray.from_arrays(zeros, pyarrow.array([text]))

        table = pyarrow.table(
            {
                "problem": repeated(job.problem),
                "policy": repeated(job.policy),
                "trial": np.repeat(np.array(found.trials, np.int32), kept),
                "round": np.tile(found.rounds, trials),
                "regret": np.concatenate(found.regrets),
                "arm": pyarrow.array(
                    [arm for trial in found.arms for arm in trial]
                ).dictionary_encode(),
            }
        )
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table, sink, compression="zstd")
        write_bytes(self.path / RESULTS / job.file, sink.getvalue().to_pybytes())

    def table(
        self, jobs: Iterable[Job], columns: list[str] | None = None, only_round: int | None = None
    ) -> Any:
        """The results of these jobs, in their order, as one Arrow table."""
        pyarrow = import_extra("pyarrow", "simulate", "a race")
        parquet = import_extra("pyarrow.parquet", "simulate", "a race")
        parts = [
            parquet.read_table(
                self.path / RESULTS / job.file,
                columns=columns,
                filters=None if only_round is None else [("round", "==", only_round)],
                partitioning=None,
            )
            for job in jobs
            if self.is_done(job)
        ]
        if not parts:
            raise DowiseError(f"{self.path} has no results yet")
        return pyarrow.concat_tables(parts).unify_dictionaries()


def _difference(found: Any, wanted: Any) -> str:
    """The first place where two specifications differ, in words; empty where they do not."""
    if not (isinstance(found, dict) and isinstance(wanted, dict)):
        return "" if found == wanted else f"is {found!r}, not {wanted!r}"
    for key in [*found, *(key for key in wanted if key not in found)]:
        if key not in found or key not in wanted:
            return f"{'lack' if key not in found else 'have'} {key}"
        inner = _difference(found[key], wanted[key])
        if inner:
            return f"{key} {inner}"
    return ""
