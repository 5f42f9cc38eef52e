"""What a job found, as the bytes of a Parquet file that says whose it is and carries a checksum.

The columns are problem, policy, trial, round (from 1), regret (cumulative) and arm, and expected
(cumulative) where it was asked for; problem, policy and arm are dictionary-encoded texts. The file's own metadata have a word of ours: the job that it
belongs to, the digest of its rounds, and the digest of the whole file with that last digest blank.
So a byte that changes anywhere is noticed, and so is a file that belongs to another job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, import_extra
from dowise.simulation.jobs import Job

__all__ = ["DamagedError", "Rounds", "Texts", "pack", "table_of", "verify"]

_BLANK = b"0" * 64
_TEXTS = ["problem", "policy", "arm"]
_SEAL = re.compile(rb"job=([0-9a-f]{64}) rounds=([0-9a-f]{64}) sha256=([0-9a-f]{64})")


class DamagedError(DowiseError):
    """A file of results that is not what a job wrote there."""


class Texts(NamedTuple):
    """One text a round: the different ones, in the order of their first rounds, and which it is."""

    different: list[str]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, things: Sequence[object], positions: NDArray[np.int64]) -> Texts:
        """The thing at each of these positions, as a text."""
        never = len(positions)
        first = np.full(len(things), never)
        first[positions[::-1]] = np.arange(never - 1, -1, -1)  # what is written last stays
        used = np.flatnonzero(first < never)
        used = used[np.argsort(first[used])]
        rank = np.empty(len(things), np.int32)
        rank[used] = np.arange(len(used))
        return cls([str(things[i]) for i in used.tolist()], rank[positions])


@dataclass(frozen=True, eq=False)
class Rounds:
    """What a job found: for each trial kept rounds, cumulative regrets, and arms as texts."""

    trials: list[int]
    rounds: NDArray[np.int32]
    regrets: list[NDArray[np.float64]]
    arms: list[Texts]
    expected: list[NDArray[np.float64]] = field(default_factory=list)
    """Cumulative too; none where it was not asked for."""

    def digest(self) -> str:
        """Of every bit, so that two runs of the same trials can be compared."""
        found = sha256(np.array([*self.trials, *self.rounds], "<i8").tobytes())
        for regrets, arms in zip(self.regrets, self.arms, strict=True):
            found.update(np.ascontiguousarray(regrets, "<f8").tobytes())
            found.update(json.dumps(arms.different).encode())
            found.update(np.ascontiguousarray(arms.numbers, "<i4").tobytes())
        for expected in self.expected:
            found.update(np.ascontiguousarray(expected, "<f8").tobytes())
        return found.hexdigest()


def pack(job: Job, owner: str, found: Rounds) -> bytes:
    """The file; `owner` is the digest that tells this job of this run from all others."""
    pyarrow = import_extra("pyarrow", "simulate", "a race")
    parquet = import_extra("pyarrow.parquet", "simulate", "a race")
    table, sink = _tabulated(pyarrow, job, found), pyarrow.BufferOutputStream()
    seal = f"job={owner} rounds={found.digest()} sha256={_BLANK.decode()}"
    with parquet.ParquetWriter(
        sink, table.schema, compression="zstd", use_dictionary=_TEXTS, write_statistics=False
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"dowise": seal})
    content: bytes = sink.getvalue().to_pybytes()
    start, end = _last_seal(content).span(3)
    return content[:start] + sha256(content).hexdigest().encode() + content[end:]


def verify(content: bytes, owner: str) -> str:
    """The digest of the rounds in a file; raises where it is damaged, or another job's."""
    seal = _last_seal(content)
    start, end = seal.span(3)
    digest = sha256(content[:start])
    digest.update(_BLANK)
    digest.update(content[end:])
    if digest.hexdigest().encode() != seal[3]:
        raise DamagedError("is damaged (its checksum does not fit)")
    if seal[1].decode() != owner:
        raise DamagedError("belongs to another job or another run")
    return seal[2].decode()


def table_of(content: bytes, columns: list[str] | None) -> Any:
    """What a file says that was verified, as an Arrow table."""
    pyarrow = import_extra("pyarrow", "simulate", "a race")
    parquet = import_extra("pyarrow.parquet", "simulate", "a race")
    return parquet.ParquetFile(pyarrow.BufferReader(content)).read(columns)


def _last_seal(content: bytes) -> re.Match[bytes]:
    """Ours is the last, whatever the labels of arms look like: metadata come after the data."""
    found = [*_SEAL.finditer(content)]
    if not found:
        raise DamagedError("is damaged (it has no checksum)")
    return found[-1]


def _tabulated(pyarrow: Any, job: Job, found: Rounds) -> Any:
    kept, trials = len(found.rounds), len(found.trials)

    def repeated(text: str) -> Any:
        zeros = pyarrow.array(np.zeros(kept * trials, np.int32))
        return pyarrow.DictionaryArray.from_arrays(zeros, pyarrow.array([text]))

    expected = {"expected": np.concatenate(found.expected)} if found.expected else {}
    return pyarrow.table(
        {
            "problem": repeated(job.problem),
            "policy": repeated(job.policy),
            "trial": np.repeat(np.array(found.trials, np.int32), kept),
            "round": np.tile(found.rounds, trials),
            "regret": np.concatenate(found.regrets),
            "arm": _joined(pyarrow, found.arms),
        }
        | expected
    )


def _joined(pyarrow: Any, trials: Sequence[Texts]) -> Any:
    """The texts of all trials, one behind the other, dictionary-encoded."""
    known: dict[str, int] = {}
    parts = []
    for texts in trials:
        places = [known.setdefault(text, len(known)) for text in texts.different]
        parts.append(np.array(places, np.int32)[texts.numbers])
    return pyarrow.DictionaryArray.from_arrays(np.concatenate(parts), pyarrow.array([*known]))
