"""How a race is cut into jobs: some trials of one policy on one problem, of so many rounds.

A folder may have several races, each an extension of those before: more trials, more rounds, more
policies, more problems. Jobs that are done stay as they are, so where a race ended at 23 trials
there is a cut, and the next one goes on behind it.

>>> first = Extent(("task1",), ("ts",), horizon=40, trials=23)
>>> [(job.first, job.last) for job in first.jobs([first])]
[(0, 9), (10, 19), (20, 22)]
>>> more = Extent(("task1",), ("ts",), horizon=40, trials=31)
>>> [(job.first, job.last) for job in more.jobs([first, more])]
[(0, 9), (10, 19), (20, 22), (23, 29), (30, 30)]

Jobs of quick policies have more trials, fifty; else most of the time would pass around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

__all__ = ["Extent", "Job", "kept_rounds"]

TRIALS_PER_JOB = 10
QUICK_TRIALS_PER_JOB = 50
"""Of policies whose trials take less time than what stands around a job."""


@dataclass(frozen=True, order=True)
class Job:
    """Trials `first` to `last` of one policy on one problem, by their names in the run."""

    problem: str
    policy: str
    first: int
    last: int
    horizon: int
    known: tuple[int, str] | None = field(default=None, compare=False)
    """What a shorter race found: its horizon, and the digest of its rounds."""

    @property
    def file(self) -> str:
        """The name of its Parquet file."""
        problem, policy = (quote(name, safe="") for name in (self.problem, self.policy))
        return f"{problem}+{policy}+{self.first:06}-{self.last:06}+{self.horizon}.parquet"


@dataclass(frozen=True)
class Extent:
    """What a race spans: its problems and policies, by their names, its rounds and its trials."""

    problems: tuple[str, ...]
    policies: tuple[str, ...]
    horizon: int
    trials: int
    quick: tuple[str, ...] = ()
    """Those of the policies whose jobs have more trials."""

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Extent:
        """As a manifest has it."""
        return cls(
            tuple(given["problems"]), tuple(given["policies"]), given["horizon"],
            given["trials"], tuple(given["quick"]),
        )  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """For a manifest."""
        return asdict(self)

    def jobs(self, there: Sequence[Extent]) -> list[Job]:
        """All its jobs, in a folder that has these races; the first trials of all come first.

        The last job of a policy may have more trials than the race, where another has more of it.
        """
        found = []
        for problem in self.problems:
            of_problem = [
                Job(problem, policy, first, last, self.horizon)
                for policy in self.policies
                for first, last in _blocks(
                    (
                        race.trials
                        for race in there
                        if problem in race.problems and policy in race.policies
                    ),
                    QUICK_TRIALS_PER_JOB if policy in self.quick else TRIALS_PER_JOB,
                )
                if first < self.trials
            ]
            found += sorted(of_problem, key=lambda job: job.first)
        return found


def _blocks(trials: Iterable[int], size: int) -> list[tuple[int, int]]:
    """The trials of each job: so many, cut also where a race ended before a longer one."""
    cuts, most = {0}, 0
    for count in trials:
        if count > most:
            most = count
            cuts.add(most)
    cuts |= {*range(0, most, size)}
    return [(first, end - 1) for first, end in pairwise(sorted(cuts))]


def kept_rounds(horizon: int, every: int) -> NDArray[np.int32]:
    """The rounds that are kept of a trial: every so many, and the last."""
    kept = np.arange(every, horizon + 1, every, dtype=np.int32)
    if not len(kept) or kept[-1] != horizon:
        kept = np.append(kept, np.int32(horizon))
    return kept
