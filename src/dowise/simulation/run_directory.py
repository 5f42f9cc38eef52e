"""Results of a simulation on disk: a content-addressed cache of Parquet files.

A job is a block of trials of one policy on one problem. Its digest covers everything its numbers
depend on: world, policy, options, user code, seed, trials, horizon and version. The job's file is
`results/<digest>.parquet`, so resuming a run, extending it or running two at the same time only
requires looking which files exist. `calls/<digest>.json` lists the jobs of each call for
`Result.open`; each call writes a separate file, so that concurrent calls need no lock.

All files are written atomically (`dowise._core.files`) and carry a checksum over all their bytes,
which is verified whenever they are read. The columns of a Parquet file are problem, policy, trial,
round (from 1), regret (cumulative), arm and, if requested, expected (cumulative); problem, policy
and arm are dictionary-encoded.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dowise._core.files import TEMPORARY_SUFFIX, remove_stale_temporaries, write_bytes, write_text
from dowise._core.types import FloatArray, Int32Array, IntArray
from dowise.errors import DowiseError, import_extra

RESULTS = "results"
CALLS = "calls"

_CHECKSUM = "sha256"
_BLANK_DIGEST = b"0" * 64
_SEAL = re.compile(rb"job=([0-9a-f]{64}) sha256=([0-9a-f]{64})")
_WRITE_BATCH_ROWS = 2**16
_DICTIONARY_COLUMNS = ["problem", "policy", "arm"]


class DamagedError(DowiseError):
    """A file whose contents are not those that a simulation wrote."""

    code = "damaged-file"


@dataclass(frozen=True)
class Job:
    """Trials `first` to `last` of one policy on one problem, by their labels."""

    problem: str
    policy: str
    first: int
    last: int
    horizon: int
    digest: str
    """Digest of everything the results depend on; the name of the file."""

    @property
    def trials(self) -> range:
        """The trial numbers."""
        return range(self.first, self.last + 1)


class CodedStrings(NamedTuple):
    """Array of strings: the distinct strings in order of first occurrence, and codes for them."""

    distinct: list[str]
    codes: Int32Array

    @classmethod
    def from_positions(cls, values: Sequence[object], positions: IntArray) -> CodedStrings:
        """Return `str(values[i])` for each `i` in `positions`; values may share a string."""
        flat = positions.ravel()
        first = np.full(len(values), flat.size)
        first[flat[::-1]] = np.arange(flat.size)[::-1]  # of equal positions the first one remains
        used = np.argsort(first)[: np.count_nonzero(first < flat.size)]
        numbers: dict[str, int] = {}
        codes = np.empty(len(values), dtype=np.int32)
        codes[used] = [numbers.setdefault(str(values[i]), len(numbers)) for i in used.tolist()]
        return cls([*numbers], codes.take(positions))


@dataclass(frozen=True, eq=False)
class JobResult:
    """Results of a job at the kept rounds: arrays with a row for each trial.

    `regrets` are cumulative, and so are `expected` regrets, which are None unless requested.
    """

    trials: list[int]
    rounds: Int32Array
    regrets: FloatArray
    arms: CodedStrings
    expected: FloatArray | None = None

    def to_table(self, job: Job) -> Any:
        """Return an Arrow table without nulls, so that Parquet stores no validity per row."""
        pyarrow = import_extra("pyarrow", "simulate", "a simulation")
        trials, rounds = self.regrets.shape

        def strings(distinct: list[str], codes: Int32Array) -> Any:
            return pyarrow.DictionaryArray.from_arrays(
                codes.ravel(), pyarrow.array(distinct), safe=False
            )

        zeros = np.zeros(trials * rounds, np.int32)
        columns = {
            "problem": strings([job.problem], zeros),
            "policy": strings([job.policy], zeros),
            "trial": pyarrow.array(np.repeat(np.array(self.trials, np.int32), rounds)),
            "round": pyarrow.array(np.tile(self.rounds, trials)),
            "regret": pyarrow.array(self.regrets.ravel()),
            "arm": strings(self.arms.distinct, self.arms.codes),
        }
        if self.expected is not None:
            columns["expected"] = pyarrow.array(self.expected.ravel())
        fields = [pyarrow.field(name, x.type, nullable=False) for name, x in columns.items()]
        return pyarrow.Table.from_arrays([*columns.values()], schema=pyarrow.schema(fields))


def to_parquet(table: Any, digest: str) -> bytes:
    """Return a Parquet file sealed with the job's digest and a checksum over the whole file.

    The seal is part of the file's metadata. The checksum is computed with a blank in its place.
    """
    pyarrow = import_extra("pyarrow", "simulate", "a simulation")
    parquet = import_extra("pyarrow.parquet", "simulate", "a simulation")
    sink = pyarrow.BufferOutputStream()
    seal = f"job={digest} sha256={_BLANK_DIGEST.decode()}"
    # lz4 and a single batch of rows take half the time of zstd; files are a fifth larger.
    with parquet.ParquetWriter(
        sink,
        table.schema,
        compression="lz4",
        use_dictionary=_DICTIONARY_COLUMNS,
        write_statistics=False,
        write_batch_size=_WRITE_BATCH_ROWS,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"dowise": seal})
    content: bytes = sink.getvalue().to_pybytes()
    end = content.rindex(seal.encode()) + len(seal)
    checksum = sha256(content).hexdigest().encode()
    return content[: end - len(_BLANK_DIGEST)] + checksum + content[end:]


def verify(content: bytes, digest: str) -> None:
    """Raise `DamagedError` if a Parquet file is damaged or belongs to another job."""
    seals = [*_SEAL.finditer(content)]
    if not seals:
        raise DamagedError("is damaged (it has no checksum)")
    seal = seals[-1]  # metadata follow the data, whatever the labels of arms look like
    start, end = seal.span(2)
    checksum = sha256(content[:start])
    checksum.update(_BLANK_DIGEST)
    checksum.update(content[end:])
    if checksum.hexdigest().encode() != seal[2]:
        raise DamagedError("is damaged (its checksum does not match)")
    if seal[1].decode() != digest:
        raise DamagedError("belongs to another job")


def from_parquet(content: bytes, columns: list[str] | None = None) -> Any:
    """Return the Arrow table in a verified Parquet file."""
    pyarrow = import_extra("pyarrow", "simulate", "a simulation")
    parquet = import_extra("pyarrow.parquet", "simulate", "a simulation")
    return parquet.ParquetFile(pyarrow.BufferReader(content)).read(columns, use_threads=False)


class InMemoryResults:
    """Results of a simulation without `out`: Arrow tables in memory."""

    path: Path | None = None

    def __init__(self) -> None:
        self._tables: dict[str, Any] = {}

    def add(self, job: Job, result: JobResult) -> None:
        """Keep the results of a job."""
        self._tables[job.digest] = result.to_table(job)

    def __contains__(self, job: Job) -> bool:
        return job.digest in self._tables

    def table(self, job: Job, columns: list[str] | None = None) -> Any:
        """Return the results of a job as an Arrow table."""
        table = self._tables[job.digest]
        return table if columns is None else table.select(columns)


@dataclass(frozen=True)
class Call:
    """Call of `simulate`: its specification and its jobs."""

    spec: dict[str, Any]
    horizon: int
    trials: int
    jobs: list[Job]
    started: str = ""

    @property
    def settings(self) -> str:
        """Digest of what the results of calls must share to be shown together."""
        shared = {key: x for key, x in self.spec.items() if key not in ("problems", "policies")}
        return digest_of_json([shared, self.horizon])

    def pair(self, job: Job) -> str:
        """Digest of the problem and the policy of a job, which a label alone does not identify."""
        return digest_of_json(
            [self.spec["problems"][job.problem], self.spec["policies"][job.policy]]
        )


class RunDirectory:
    """Results of simulations in a directory.

    Parameters
    ----------
    path
        The directory. Nothing is created before `begin`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, call: Call) -> None:
        """Create the directory and list the jobs of a call in it.

        Raises
        ------
        DowiseError
            If the directory has contents but is not a run directory.
        """
        names = {path.name for path in list_directory(self.path)}
        if CALLS not in names and names - {RESULTS}:
            raise DowiseError(
                f"{self.path} already exists and is not a run directory: choose a new directory",
                code="directory-in-use",
            )
        for name in (RESULTS, CALLS):
            make_directory(self.path / name)
            remove_stale_temporaries(self.path / name)
        jobs = [asdict(job) for job in call.jobs]
        content = {
            "spec": call.spec,
            "horizon": call.horizon,
            "trials": call.trials,
            "jobs": jobs,
        }
        file = self.path / CALLS / f"{digest_of_json(content)}.json"
        try:
            is_listed = read_checked_json(file) is not None
        except DamagedError:
            is_listed = False
        if not is_listed:
            machine = {
                "python": platform.python_version(),
                "system": platform.system(),
                "processor": platform.machine(),
                "cores": os.cpu_count(),
            }
            started = datetime.now(UTC).isoformat()
            write_checked_json(file, {**content, "started": started, "machine": machine})

    def calls(self) -> list[Call]:
        """Return the calls listed in this directory, oldest first."""
        files = [x for x in list_directory(self.path / CALLS) if x.suffix == ".json"]
        if not files:
            raise DowiseError(f"{self.path} is not a run directory", code="no-results")
        calls = []
        for file in files:
            content = read_checked_json(file)
            if content is None:
                continue
            try:
                jobs = [Job(**job) for job in content["jobs"]]
                call = Call(
                    content["spec"],
                    content["horizon"],
                    content["trials"],
                    jobs,
                    content["started"],
                )
                for job in jobs:
                    call.pair(job)
            except (KeyError, TypeError, AttributeError):
                raise DowiseError(
                    f"{file} has an unknown layout: open it with the version of dowise that wrote "
                    "it, or choose another directory",
                    code="other-version",
                ) from None
            calls.append(call)
        return sorted(calls, key=lambda call: call.started)

    def add(self, job: Job, result: JobResult) -> None:
        """Write the results of a job."""
        write_bytes(self._file(job), to_parquet(result.to_table(job), job.digest))

    def __contains__(self, job: Job) -> bool:
        """Return True if the job's file exists; its contents are not verified."""
        try:
            return self._file(job).exists()
        except OSError as error:
            raise DowiseError(
                f"{self._file(job)}: can't be read ({error.strerror})", code="unreadable-file"
            ) from None

    def missing(self, jobs: Iterable[Job]) -> tuple[list[Job], list[str]]:
        """Return the jobs to run, and a message for each of their files that is damaged."""
        missing, damages = [], []
        for job in jobs:
            try:
                if job in self:
                    self._read(job)
                    continue
            except DamagedError as error:
                damages.append(str(error))
            missing.append(job)
        return missing, damages

    def table(self, job: Job, columns: list[str] | None = None) -> Any:
        """Return the verified results of a job as an Arrow table."""
        try:
            return from_parquet(self._read(job), columns)
        except DamagedError as error:
            raise DamagedError(
                f"{error}: run the same simulation in this directory to repeat its trials"
            ) from None

    def _file(self, job: Job) -> Path:
        return self.path / RESULTS / f"{job.digest}.parquet"

    def _read(self, job: Job) -> bytes:
        file = self._file(job)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise DowiseError(
                f"{file}: can't be read ({error.strerror})", code="unreadable-file"
            ) from None
        try:
            verify(content, job.digest)
        except DamagedError as error:
            raise DamagedError(f"{file} {error}") from None
        return content


def select_jobs(
    directory: RunDirectory, horizon: int | None = None
) -> tuple[list[Job], dict[str, Any]]:
    """Return the jobs that `Result.open` shows, with the specification of their last call.

    Calls with the same horizon and settings form a group. The group with the most finished jobs is
    shown, then that with the longest horizon, then the newest. If a label has several problems or
    policies, the newest call decides; of overlapping blocks of trials the longest finished one is
    shown.
    """
    groups: dict[str, list[Call]] = {}
    calls = directory.calls()
    for call in calls:
        if horizon is None or call.horizon == horizon:
            groups.setdefault(call.settings, []).append(call)
    if not groups:
        horizons = " and ".join(str(x) for x in sorted({call.horizon for call in calls}))
        raise DowiseError(
            f"{directory.path} has no simulation with horizon {horizon}: it has {horizons}",
            code="no-results",
        )

    def rank(group: list[Call]) -> tuple[int, int, str]:
        jobs = {job.digest: job for call in group for job in call.jobs}
        finished = sum(job in directory for job in jobs.values())
        return finished, group[-1].horizon, group[-1].started

    group = max(groups.values(), key=rank)
    newest = {(job.problem, job.policy): call.pair(job) for call in group for job in call.jobs}
    blocks: dict[tuple[str, str], dict[int, Job]] = {label: {} for label in newest}
    for call in group:
        for job in call.jobs:
            label = job.problem, job.policy
            if call.pair(job) != newest[label]:
                continue
            by_first = blocks[label]
            block = by_first.get(job.first)
            if block is None or (job in directory, job.last) > (block in directory, block.last):
                by_first[job.first] = job
    return [job for by_first in blocks.values() for job in by_first.values()], group[-1].spec


# -- files and directories -------------------------------------------------------------------------


def digest_of_json(data: Any) -> str:
    """Return the SHA-256 digest of JSON data."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def read_checked_json(path: Path) -> dict[str, Any] | None:
    """Return the contents of a JSON file whose checksum matches; None if there is no such file."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # the latter: an impossible name
        reason = getattr(error, "strerror", None) or error
        raise DowiseError(f"{path}: can't be read ({reason})", code="unreadable-file") from None
    try:
        content = json.loads(text)
        checksum = content.pop(_CHECKSUM, None)
    except (ValueError, TypeError, AttributeError, RecursionError):  # not a JSON object
        content = checksum = None
    if content is None or digest_of_json(content) != checksum:
        raise DamagedError(
            f"{path} is damaged, its checksum does not match: restore it, or choose another "
            "directory"
        )
    return dict(content)


def write_checked_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file with a checksum, atomically."""
    text = json.dumps({**content, _CHECKSUM: digest_of_json(content)}, indent=2, ensure_ascii=False)
    write_text(path, text + "\n")


def list_directory(directory: Path) -> list[Path]:
    """Return the contents of a directory without drafts, or an empty list if there is none."""
    try:
        return [path for path in directory.iterdir() if path.suffix != TEMPORARY_SUFFIX]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise DowiseError(
            f"{directory} is a file, or is inside one: choose a new directory",
            code="directory-in-use",
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DowiseError(
            f"{directory}: can't be read ({reason})", code="unreadable-file"
        ) from None


def make_directory(directory: Path) -> None:
    """Create a directory and its parents unless it exists."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DowiseError(
            f"{directory}: can't be created ({error.strerror})", code="unwritable-file"
        ) from None
