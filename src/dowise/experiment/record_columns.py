"""Imported records as compressed columns of codes, which a journal holds as JSON."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from dowise._core.types import AnyArray, BoolArray, IntArray
from dowise.errors import DowiseError
from dowise.experiment.storage.base import Storage
from dowise.problem import Intervention, Problem
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch

FORMAT = 1
MAX_ROWS = 100_000_000
MAX_COMPRESSION = 1040  # deflate compresses to 1/1032 at best, plus a few bytes
MAX_NAMED = 5  # rows or decisions that an error names

# Records are almost independent draws: repetitions occur only by chance. For a million random bits
# looking only for runs compresses 20 % better than level 1, in the same time.
_STRATEGY = zlib.Z_RLE


class Unpacked(NamedTuple):
    """Imported records under a problem."""

    batch: RecordBatch
    """Records that can be used, in their order."""
    left_out: dict[str, int]
    """Number of the other records, by reason."""


class _Column(NamedTuple):
    """Codes of all rows: indices of `texts`, or `len(texts)` for a missing value."""

    texts: tuple[str, ...]
    codes: AnyArray

    def to_json(self) -> dict[str, Any]:
        return {"texts": list(self.texts), "codes": compress(self.codes.tobytes())}


def pack(batch: RecordBatch) -> dict[str, Any]:
    """Return records as compressed columns, ready for JSON."""
    if len(batch) > MAX_ROWS:
        raise DowiseError(
            f"{len(batch):,} records are too many for one import: split them, at most "
            f"{MAX_ROWS:,} at a time",
            code="too-large",
        )
    columns = {}
    for v, (name, domain) in enumerate(batch.problem.domains.items()):
        column = _to_column(domain, np.where(batch.was_set[v], MISSING, batch.codes[v]))
        if column.texts:
            columns[name] = column.to_json()
    arms, indices = _distinct_arms(batch)
    return {
        "format": FORMAT,
        "rows": len(batch),
        "arms": _to_column([str(arm) for arm in arms], indices).to_json(),
        "columns": columns,
    }


def unpack(packed: Mapping[str, Any], problem: Problem) -> Unpacked:
    """Inverse of `pack`, perhaps under another problem.

    Variables that the problem lacks are ignored, and those that the columns lack are missing. A
    label that a domain has lost is an error. A record whose arm set a variable that has left the
    graph, is hidden or is the reward can't be used: it is left out and counted. A record whose arm
    set a variable that can no longer be set is used.
    """
    rows, arm_column, columns = _parse_columns(packed)
    arms = []
    for text in arm_column.texts:
        try:
            arms.append(Intervention.parse(text))
        except DowiseError as error:
            raise _damaged(str(error)) from None
    reasons = [_rejection_reason(problem, arm) for arm in arms]
    left_out: Counter[str] = Counter()
    for reason, times in zip(
        reasons, np.bincount(arm_column.codes, minlength=len(arms)).tolist(), strict=True
    ):
        if reason is not None:
            left_out[reason] += times
    usable = np.array([reason is None for reason in reasons], dtype=bool)[arm_column.codes]
    shape = len(problem.graph), rows
    codes, was_set = np.full(shape, MISSING, dtype=np.int64), np.zeros(shape, dtype=bool)
    for v, name in enumerate(problem.graph.variables):
        if name in columns:
            codes[v] = _to_codes(problem, name, columns[name], usable)
        if any(name in arm for arm in arms):
            column = _set_by_arms(name, arms, arm_column.codes)
            set_to = _to_codes(problem, name, column, usable)
            was_set[v] = set_to != MISSING
            if (was_set[v] & (codes[v] != MISSING)).any():
                raise _damaged(f"{name} was both set and seen")
            np.copyto(codes[v], set_to, where=was_set[v])
    batch = RecordBatch(problem, codes, was_set)
    if not usable.all():
        batch = batch.take(np.flatnonzero(usable))
    return Unpacked(batch, dict(left_out))


def read_import(storage: Storage, name: str, number: int) -> dict[str, Any]:
    """Return the columns that an event of an experiment imported, as `pack` made them."""
    (event,) = storage.read(name, after=number - 1, upto=number)
    columns: dict[str, Any] = event.payload["columns"]
    return columns


def digest(packed: Mapping[str, Any]) -> str:
    """Return a hash of records in their order, which does not depend on the compression."""
    rows, arms, columns = _parse_columns(packed)
    result = sha256(json.dumps([FORMAT, rows]).encode())
    for name, column in [("", arms), *sorted(columns.items())]:
        result.update(json.dumps([name, column.texts, str(column.codes.dtype)]).encode())
        result.update(column.codes.tobytes())
    return result.hexdigest()


def compress(content: bytes) -> str:
    """Return bytes as compressed text."""
    compressor = zlib.compressobj(strategy=_STRATEGY)
    return b64encode(compressor.compress(content) + compressor.flush()).decode("ascii")


def decompress(text: object, size: int) -> bytes:
    """Inverse of `compress` for a known number of bytes. Raises ValueError for a damaged text.

    Memory is limited to `size` bytes, and to what a text of this length can hold.
    """
    if not isinstance(text, str):
        raise ValueError("the codes are not a text")
    try:
        content = b64decode(text, validate=True)
    except ValueError:
        raise ValueError("the codes are not base64") from None
    if size > MAX_COMPRESSION * len(content):
        raise ValueError(f"the codes can't be those of {size:,} bytes")
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(content, size + 1)
    except zlib.error:
        raise ValueError("the codes can't be decompressed") from None
    if len(content) != size or not decompressor.eof or decompressor.unused_data:
        raise ValueError(f"the codes are not those of {size:,} bytes")
    return content


def _to_column(texts: Sequence[str], codes: IntArray) -> _Column:
    """Return a column of the texts in use, sorted, from codes that are indices of all texts."""
    times = np.bincount(codes + 1, minlength=len(texts) + 1)[1:]
    used = sorted((texts[i], i) for i in np.flatnonzero(times).tolist())
    table = np.full(len(texts) + 1, len(used), dtype=_width(len(used)))
    table[[i for _, i in used]] = np.arange(len(used))
    return _Column(tuple(text for text, _ in used), np.take(table, codes, mode="wrap"))


def _distinct_arms(batch: RecordBatch) -> tuple[list[Intervention], IntArray]:
    """Return the distinct arms of records, and the index of each record's arm among them."""
    keys, bound = np.zeros(len(batch), dtype=np.int64), 1  # keys are below the bound
    for v, domain in enumerate(batch.problem.domains.values()):
        if batch.was_set[v].any():
            keys = keys * (len(domain) + 1) + np.where(batch.was_set[v], batch.codes[v] + 1, 0)
            bound *= len(domain) + 1
            if bound > 2**20:  # renumber them, so that arrays over all keys stay small
                _, keys = np.unique(keys, return_inverse=True)
                bound = int(keys.max()) + 1
    first_rows = np.full(bound, len(batch), dtype=np.int64)
    np.minimum.at(first_rows, keys, np.arange(len(batch)))
    used = np.flatnonzero(first_rows < len(batch))
    indices = np.full(bound, MISSING, dtype=np.int64)
    indices[used] = np.arange(len(used))
    variables, domains = batch.problem.graph.variables, batch.problem.domains
    arms = []
    for row in first_rows[used].tolist():
        names = [variables[v] for v in np.flatnonzero(batch.was_set[:, row])]
        codes = batch.codes[batch.was_set[:, row], row].tolist()
        arms.append(
            Intervention({name: domains[name][i] for name, i in zip(names, codes, strict=True)})
        )
    return arms, indices[keys]


def _width(texts: int) -> str:
    """Return the smallest unsigned type that holds the codes of this many texts, and missing."""
    return "<u1" if texts < 2**8 else "<u2" if texts < 2**16 else "<u4"


def _damaged(problem: str) -> DowiseError:
    return DowiseError(f"the imported columns are damaged: {problem}", code="damaged-file")


def _parse_columns(packed: Mapping[str, Any]) -> tuple[int, _Column, dict[str, _Column]]:
    """Return the number of rows, the arms and the variables, after validating all of them."""
    if not isinstance(packed, Mapping) or not isinstance(packed.get("columns"), Mapping):
        raise _damaged("they are not columns")
    if packed.get("format") != FORMAT:
        raise DowiseError(
            f"the imported columns are of format {packed.get('format')!r}, which this version of "
            f"dowise can't read (it knows {FORMAT}): install a newer one",
            code="other-version",
        )
    rows = packed.get("rows")
    if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
        raise _damaged(f"they can't have {rows!r} rows")
    arms = _parse_column("the arms", packed.get("arms"), rows)
    if (arms.codes == len(arms.texts)).any():
        raise _damaged("a row has no arm")
    columns = packed["columns"].items()
    return rows, arms, {name: _parse_column(name, column, rows) for name, column in columns}


def _parse_column(name: str, column: Any, rows: int) -> _Column:
    texts = column.get("texts") if isinstance(column, Mapping) else None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise _damaged(f"{name} has no list of texts")
    if len(set(texts)) < len(texts):
        raise _damaged(f"{name} has a text twice")
    width = np.dtype(_width(len(texts)))
    try:
        content = decompress(column.get("codes"), rows * width.itemsize)
    except ValueError as error:
        raise _damaged(f"{name}: {error}") from None
    codes = np.frombuffer(content, width)
    if rows and codes.max() > len(texts):
        raise _damaged(f"{name} has a code without a text")
    return _Column(tuple(texts), codes)


def _set_by_arms(name: str, arms: list[Intervention], indices: AnyArray) -> _Column:
    """Return the values that the arms set a variable to; `indices` has the arm of each row."""
    texts = tuple(sorted({arm[name] for arm in arms if name in arm}))
    codes = [texts.index(arm[name]) if name in arm else len(texts) for arm in arms]
    return _Column(texts, np.array(codes, dtype="<u4")[indices])


def _rejection_reason(problem: Problem, arm: Intervention) -> str | None:
    """Return why a record of this arm can't be used; None if it can."""
    for name in arm:
        if name == problem.reward:
            return f"the arm set {name}, which is the reward now"
        if name in problem.hidden:
            return f"the arm set {name}, which is hidden now"
        if name not in problem.graph:
            return f"the arm set {name}, which is not a variable now"
    return None


def _to_codes(problem: Problem, name: str, column: _Column, usable: BoolArray) -> IntArray:
    """Return the codes of a column under a problem; a usable row with another label is an error."""
    codes = []
    for i, text in enumerate(column.texts):
        code = problem.find_code(name, text)
        codes.append(MISSING if code is None else code)
        if code is None and len(rows := np.flatnonzero(usable & (column.codes == i))):
            raise DowiseError(
                f"{name} has no value {text!r} any more, which {len(rows):,} imported "
                f"{'row has' if len(rows) == 1 else 'rows have'} ({list_some(rows)}; counted from "
                f"0): keep {text!r} in the domain of {name}",
                code="unknown-value",
            )
    return np.take(np.array([*codes, MISSING], dtype=np.int64), column.codes)


def list_some(numbers: Sequence[int] | IntArray) -> str:
    """Return the first numbers as text."""
    return ", ".join(map(str, numbers[:MAX_NAMED])) + (", …" if len(numbers) > MAX_NAMED else "")
