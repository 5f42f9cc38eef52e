"""What a job found, as the bytes of a Parquet file that says whose it is and carries a checksum.

The columns are problem, policy, trial, round (from 1), regret (cumulative) and arm, and expected
(cumulative) where it was asked for; problem, policy and arm are dictionary-encoded texts. The
file's own metadata have a word of ours: the job that it belongs to, and the digest of the whole
file with that digest blank. So a byte that changes anywhere is noticed, and so is a file that
belongs to another job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.compiling import kernels_of
from dowise.errors import DowiseError, import_extra
from dowise.simulation.jobs import Job

__all__ = ["DamagedError", "Rounds", "Texts", "pack", "rounds_of", "table_of", "verify"]

_kernels = kernels_of("dowise.simulation.kernels")

_BLANK = b"0" * 64
_ROWS = 2**16  # that are written at once
_TEXTS = ["problem", "policy", "arm"]
_SEAL = re.compile(rb"job=([0-9a-f]{64}) sha256=([0-9a-f]{64})")


class DamagedError(DowiseError):
    """A file of results that is not what a job wrote there."""


class Texts(NamedTuple):
    """Many texts: the different ones, in the order of their first places, and which each is."""

    different: list[str]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, things: Sequence[object], positions: NDArray[np.int32]) -> Texts:
        """The thing at each of these positions, as a text; things may have a text in common."""
        numbers = np.empty(positions.size, dtype=np.int32)
        used = np.empty(len(things), dtype=np.int64)
        count = _kernels.number_by_first(positions.ravel(), used, numbers)
        known: dict[str, int] = {}
        places = [known.setdefault(str(things[i]), len(known)) for i in used[:count].tolist()]
        if len(known) < count:
            numbers = np.array(places, dtype=np.int32)[numbers]
        return cls([*known], numbers.reshape(positions.shape))


@dataclass(frozen=True, eq=False)
class Rounds:
    """What a job found in the rounds that are kept: arrays of a row for each trial."""

    trials: list[int]
    rounds: NDArray[np.int32]
    regrets: NDArray[np.float64]
    """Cumulative."""
    arms: Texts
    expected: NDArray[np.float64] | None = None
    """Cumulative too; nothing where it was not asked for."""

    def digest(self) -> str:
        """Of every bit, so that two runs of the same trials can be compared."""
        found = sha256(np.concatenate([self.trials, self.rounds]).astype("<i8").tobytes())
        found.update(json.dumps(self.arms.different).encode())
        found.update(self.arms.numbers.astype("<i4").tobytes())
        for numbers in (self.regrets, self.expected):
            if numbers is not None:
                found.update(numbers.astype("<f8").tobytes())
        return found.hexdigest()


def pack(job: Job, owner: str, found: Rounds) -> bytes:
    """The file; `owner` is the digest that tells this job of this run from all others."""
    pyarrow = import_extra("pyarrow", "simulate", "a race")
    parquet = import_extra("pyarrow.parquet", "simulate", "a race")
    table, sink = _tabulated(pyarrow, job, found), pyarrow.BufferOutputStream()
    seal = f"job={owner} sha256={_BLANK.decode()}"
    # lz4 and a single batch of rows: half the time of zstd, and files a fifth larger.
    with parquet.ParquetWriter(
        sink, table.schema, compression="lz4", use_dictionary=_TEXTS, write_statistics=False,
        write_batch_size=_ROWS,
    ) as writer:  # fmt: skip
        writer.write_table(table)
        writer.add_key_value_metadata({"dowise": seal})
    content: bytes = sink.getvalue().to_pybytes()
    end = content.rindex(seal.encode()) + len(seal)
    return content[: end - len(_BLANK)] + sha256(content).hexdigest().encode() + content[end:]


def verify(content: bytes, owner: str) -> None:
    """Raise where a file is damaged, or another job's."""
    seal = _last_seal(content)
    start, end = seal.span(2)
    digest = sha256(content[:start])
    digest.update(_BLANK)
    digest.update(content[end:])
    if digest.hexdigest().encode() != seal[2]:
        raise DamagedError("is damaged (its checksum does not fit)")
    if seal[1].decode() != owner:
        raise DamagedError("belongs to another job or another run")


def table_of(content: bytes, columns: list[str] | None) -> Any:
    """What a file says that was verified, as an Arrow table."""
    pyarrow = import_extra("pyarrow", "simulate", "a race")
    parquet = import_extra("pyarrow.parquet", "simulate", "a race")
    return parquet.ParquetFile(pyarrow.BufferReader(content)).read(columns, use_threads=False)


def rounds_of(content: bytes) -> Rounds:
    """What a job found, back from its file, which was verified."""
    table = table_of(content, None)
    trials = np.unique(table["trial"].to_numpy())
    shape = len(trials), table.num_rows // len(trials)
    arms = table["arm"].unify_dictionaries().combine_chunks()
    numbers = {
        name: table[name].to_numpy().reshape(shape)
        for name in ("regret", "expected")
        if name in table.column_names
    }
    return Rounds(
        trials.tolist(),
        table["round"].to_numpy()[: shape[1]],
        numbers["regret"],
        Texts.of(arms.dictionary.to_pylist(), arms.indices.to_numpy().reshape(shape)),
        numbers.get("expected"),
    )


def _last_seal(content: bytes) -> re.Match[bytes]:
    """Ours is the last, whatever the labels of arms look like: metadata come after the data."""
    found = [*_SEAL.finditer(content)]
    if not found:
        raise DamagedError("is damaged (it has no checksum)")
    return found[-1]


def _tabulated(pyarrow: Any, job: Job, found: Rounds) -> Any:
    """As a table in which nothing can be missing: so Parquet need not say of each row what is."""
    trials, kept = found.regrets.shape

    def texts(different: list[str], numbers: NDArray[np.int32]) -> Any:
        words = pyarrow.array(different)
        return pyarrow.DictionaryArray.from_arrays(numbers.ravel(), words, safe=False)

    zeros = np.zeros(trials * kept, np.int32)
    columns = {
        "problem": texts([job.problem], zeros),
        "policy": texts([job.policy], zeros),
        "trial": pyarrow.array(np.repeat(np.array(found.trials, np.int32), kept)),
        "round": pyarrow.array(np.tile(found.rounds, trials)),
        "regret": pyarrow.array(found.regrets.ravel()),
        "arm": texts(*found.arms),
    }
    if found.expected is not None:
        columns["expected"] = pyarrow.array(found.expected.ravel())
    fields = [pyarrow.field(name, x.type, nullable=False) for name, x in columns.items()]
    return pyarrow.Table.from_arrays([*columns.values()], schema=pyarrow.schema(fields))
