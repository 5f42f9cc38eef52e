"""A run on disk: `manifest.json` says what it is, `results/` has a Parquet file for each job done.

A job's file is there whole or not at all (`dowise.files`), and is verified whenever it is read
(`results.py`); a run that was killed goes on with the jobs whose files are missing. The manifest
has what all races of the folder share, each problem and each policy with what makes it, and the
races themselves in the order in which they were begun: what each spans, when and where. Calls
that change it at once do so one after the other; who only reads waits for nobody.
"""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dowise.errors import DowiseError, DowiseWarning, import_extra, listed
from dowise.files import remove_old_drafts, write_bytes
from dowise.queue_lock import QueueLock
from dowise.simulation.jobs import Extent, Job
from dowise.simulation.manifest import (
    check_same,
    contents,
    digest_of,
    make_folder,
    read_manifest,
    write_manifest,
)
from dowise.simulation.results import DamagedError, Rounds, pack, rounds_of, table_of, verify

__all__ = ["Store"]

MANIFEST = "manifest.json"
RESULTS = "results"
PATIENCE = 30.0  # seconds: whoever changes a manifest is done in a moment
NAMED = ("problems", "policies")
"""What a race may have more of than those before it, by name; all else is the same for all."""


class Store:
    """A run directory."""

    def __init__(self, path: Path, lasting: bool = True) -> None:
        self.path = path
        self._queue = QueueLock(path / MANIFEST)
        self._lasting = lasting  # or gone with this process: then nothing needs the disk's word
        self._spec: dict[str, Any] = {}
        self._races: list[dict[str, Any]] = []
        self._makers: dict[tuple[str, str], str] = {}

    # -- what it has -------------------------------------------------------------------------------

    @property
    def races(self) -> list[Extent]:
        """What was begun here, in that order."""
        return [Extent.from_dict(race) for race in self._races]

    @property
    def has_expected(self) -> bool:
        """Whether its races have expected regret besides."""
        return bool(self._spec.get("expected", False))

    def read(self) -> None:
        """Take over what the manifest says."""
        manifest = read_manifest(self.path / MANIFEST)
        if manifest is None or not {"spec", "races"} <= {*manifest}:
            raise DowiseError(f"{self.path} is no run: it has no {MANIFEST} of one")
        self._spec, self._races = manifest["spec"], manifest["races"]
        try:
            is_known = bool(self.races) and all(isinstance(self._spec[x], dict) for x in NAMED)
        except (AttributeError, KeyError, TypeError, ValueError):
            is_known = False
        if not is_known:
            raise DowiseError(
                f"{self.path}: its {MANIFEST} is not laid out as this version of dowise does it: "
                "read it with the version that wrote it, or name another folder as out"
            )

    def open(
        self, spec: Mapping[str, Any], extent: Extent, heeds_horizon: Callable[[str], bool]
    ) -> list[Job]:
        """Start a run, go on with it or extend it, and say which jobs the race has.

        Any other folder is refused, and nothing is changed. `heeds_horizon` says of a policy
        whether its first rounds depend on how many there are.
        """
        wanted, heeds = json.loads(json.dumps(spec)), cache(heeds_horizon)
        self._check(wanted, extent, heeds)
        make_folder(self.path / RESULTS)
        with self._queue.alone(PATIENCE):
            # Once more, for another call may have been quicker.
            changed = self._check(wanted, extent, heeds)
            self._say_changed(changed)
            for folder in (self.path, self.path / RESULTS):
                remove_old_drafts(folder)
            if changed or not self._has(extent):
                self._add(wanted, extent)
        return extent.jobs(self.races)

    def _add(self, wanted: dict[str, Any], extent: Extent) -> None:
        """Write a race into the manifest."""
        # What is there stays as it is: an option of 1 is equal to 1.0, but not the same text.
        named = {part: wanted[part] | self._spec.get(part, {}) for part in NAMED}
        self._spec = wanted | self._spec | named
        self._races = [*self._races, {**extent.as_dict(), **_when_and_where()}]
        said = {"spec": self._spec, "races": self._races}
        write_manifest(self.path / MANIFEST, said, self._lasting)

    def _has(self, extent: Extent) -> bool:
        """Whether races that are there have all jobs of this one, or longer ones have done them."""
        races = self.races
        there = {job for race in races for job in race.jobs(races)}
        wanted = extent.jobs([*races, extent])
        return bool(there) and all(job in there or self._file(job) in there for job in wanted)

    def _take_out_unplayed(self, wanted: dict[str, Any]) -> list[str]:
        """Forget problems and policies that are others now, but only where they have no results."""
        files = [path.name.split("+") for path in contents(self.path / RESULTS)]
        changed = []
        for place, part in enumerate(NAMED):
            played = {unquote(file[place]) for file in files if len(file) > place}
            for name, given in wanted[part].items():
                if name not in played and self._spec[part].get(name, given) != given:
                    del self._spec[part][name]
                    changed.append(name)
        return changed

    def _say_changed(self, names: list[str]) -> None:
        if names:
            warnings.warn(
                f"{listed(names)} changed since a race was begun in {self.path}, and had no "
                "results there: what is run now is the new",
                DowiseWarning,
                stacklevel=5,
            )

    def _check(
        self, wanted: dict[str, Any], extent: Extent, heeds_horizon: Callable[[str], bool]
    ) -> list[str]:
        """Take over what is there; raise unless the race can begin, go on or be added here.

        What was there by the same name, and has no results, gives way: the names of such.
        """
        if not self._is_begun():
            return []
        self.read()
        changed = self._take_out_unplayed(wanted)
        self._check_shared(wanted)
        self._check_horizons(extent, heeds_horizon)
        return changed

    def _check_shared(self, wanted: dict[str, Any]) -> None:
        """Raise where a race differs in more than its extent from those that are there."""
        found, given = dict(self._spec), dict(wanted)
        for part in NAMED:
            both = found[part].keys() & given[part].keys()
            for side in (found, given):
                side[part] = {name: x for name, x in side[part].items() if name in both}
        check_same(self.path, "a run", found, given)

    def _check_horizons(self, extent: Extent, heeds_horizon: Callable[[str], bool]) -> None:
        """Raise where the rounds of a policy are no beginning of a longer race."""
        for race in self.races:
            for policy in extent.policies:
                if race.horizon == extent.horizon or policy not in race.policies:
                    continue
                if heeds_horizon(policy):
                    raise DowiseError(
                        f"{policy} decides by the horizon of the race, so its {race.horizon:,} "
                        f"rounds in {self.path} are no part of a race of {extent.horizon:,}: name "
                        "another folder as out"
                    )

    def _is_begun(self) -> bool:
        """Whether there is a run; raises where there is anything else.

        What a stop at the very start may have left, or a call that just begins, is nothing.
        """
        manifest, results = self.path / MANIFEST, self.path / RESULTS
        if self._is_there(manifest):
            return True
        there = contents(self.path)
        has_results = results in there and bool(contents(results))
        if self._is_there(manifest):  # another call has begun it while we looked
            return True
        if has_results:
            raise DowiseError(
                f"{self.path} has results without their {MANIFEST}, so nobody knows of which race: "
                "put it back, or name another folder as out"
            )
        if {*there} - {results, self._queue.path}:
            raise DowiseError(
                f"{self.path} is there already, and no run of ours: name a new folder"
            )
        return False

    # -- the jobs ----------------------------------------------------------------------------------

    def is_there(self, job: Job) -> bool:
        """Whether there is a file that has the job's results; nobody has looked into it."""
        return self._file(job) is not None

    def is_done(self, job: Job) -> bool:
        """Whether the job's results are there; raises where they are damaged, or can't be read."""
        file = self._file(job)
        if file is not None:
            self._verified(file)
        return file is not None

    def with_known(self, job: Job) -> Job:
        """The job with the digest of what the longest shorter race found in its trials."""
        for horizon in sorted({race.horizon for race in self.races}, reverse=True):
            shorter = replace(job, horizon=horizon)
            if horizon < job.horizon and self._is_there(self._path(shorter)):
                return replace(job, known=(horizon, rounds_of(self._verified(shorter)).digest()))
        return job

    def write(self, job: Job, found: Rounds) -> None:
        """Keep what a job found."""
        write_bytes(self._path(job), pack(job, self._owner(job), found), self._lasting)

    def table(
        self,
        jobs: Sequence[Job],
        columns: list[str] | None = None,
        trials: int | None = None,
        only_last: bool = False,
    ) -> Any:
        """The results of these jobs, in their order, as one Arrow table.

        Of so many trials, and of all rounds or the last alone. `columns` has trial and round.
        """
        pyarrow = import_extra("pyarrow", "simulate", "a race")
        compute = import_extra("pyarrow.compute", "simulate", "a race")
        parts = []
        for job in jobs:
            file = self._file(job)
            if file is None:
                continue
            try:
                part = table_of(self._verified(file), columns)
            except DamagedError as error:
                raise DamagedError(
                    f"{error}: the same race once more, in this folder, runs its trials again"
                ) from None
            if only_last:
                part = part.filter(compute.equal(part["round"], job.horizon))
            elif file.horizon > job.horizon:
                part = part.filter(compute.less_equal(part["round"], job.horizon))
            if trials is not None and job.last >= trials:
                part = part.filter(compute.less(part["trial"], trials))
            parts.append(part)
        if not parts:
            raise DowiseError(f"{self.path} has no results yet")
        return pyarrow.concat_tables(parts).unify_dictionaries()

    def _file(self, job: Job) -> Job | None:
        """The job whose file has the results: this one, or that of a longer race."""
        longer = {race.horizon for race in self.races if race.horizon > job.horizon}
        if job.horizon % self._spec["every"]:  # its last round is not kept by others
            longer = set()
        for horizon in (job.horizon, *sorted(longer)):
            found = replace(job, horizon=horizon)
            if self._is_there(self._path(found)):
                return found
        return None

    def _verified(self, job: Job) -> bytes:
        """The content of a job's file."""
        path = self._path(job)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DowiseError(f"{path}: can't be read ({error.strerror})") from None
        try:
            verify(content, self._owner(job))
        except DamagedError as error:
            raise DamagedError(f"{path} {error}") from None
        return content

    def _owner(self, job: Job) -> str:
        """What tells this job of this run from all others: everything that its results come of."""
        pair = job.problem, job.policy
        if pair not in self._makers:
            spec = {part: x for part, x in self._spec.items() if part not in NAMED}
            makers = [self._spec[part][name] for part, name in zip(NAMED, pair, strict=True)]
            self._makers[pair] = digest_of([spec, *pair, *makers])
        trials = f"{job.first}-{job.last}"
        return sha256(f"{self._makers[pair]} {trials} {job.horizon}".encode()).hexdigest()

    def _path(self, job: Job) -> Path:
        return self.path / RESULTS / job.file

    @staticmethod
    def _is_there(path: Path) -> bool:
        try:
            return path.exists()
        except (OSError, ValueError) as error:  # a folder that may not be looked into
            reason = getattr(error, "strerror", None) or error
            raise DowiseError(f"{path}: can't be read ({reason})") from None


def _when_and_where() -> dict[str, Any]:
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "python": platform.python_version(),
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
    }
