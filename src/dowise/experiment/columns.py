"""The columns of an import: many records as one page of JSON, compressed, by label.

A page stands by itself: for each variable that was seen its labels and, row by row, which one it
was; likewise the distinct arms as texts. What an arm set is said by the arm only. Labels, arms and
variables are sorted, so that a page says the same however the problem orders its domains; it can be
read under another problem, such as a revised one. Positions are the smallest unsigned integers that
hold them, little-endian, compressed by zlib, in base64; one more than the last position is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.experiment.compressed import compress, decompress
from dowise.problem import Intervention, Problem
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch

__all__ = ["MOST_ROWS", "Unpacked", "digest", "pack", "unpack"]

Integers = NDArray[np.int64]
Codes = NDArray[np.unsignedinteger[Any]]

FORMAT = 1
MOST_ROWS = 100_000_000

_SHOWN = 5  # rows that an error names


class Unpacked(NamedTuple):
    """What a page says under a problem."""

    batch: RecordBatch
    """The records that count, in their order."""
    notes: dict[str, int]
    """Why others can't be counted, and how many."""


class _Column(NamedTuple):
    """A text for each code; the code after the last one is missing."""

    texts: tuple[str, ...]
    codes: Codes


def pack(batch: RecordBatch) -> dict[str, Any]:
    """The page of these records."""
    if len(batch) > MOST_ROWS:
        raise DowiseError(
            f"{len(batch):,} records are too many for one import: split them, at most "
            f"{MOST_ROWS:,} at a time"
        )
    columns = {}
    for v, (name, domain) in enumerate(batch.problem.domains.items()):
        seen = np.where(batch.was_set[v], MISSING, batch.codes[v])
        column = _sorted(domain, seen)
        if column.texts:
            columns[name] = _as_json(column)
    kinds, arms = _arms(batch)
    return {
        "format": FORMAT,
        "rows": len(batch),
        "arms": _as_json(_sorted([str(arm) for arm in arms], kinds)),
        "columns": columns,
    }


def unpack(page: Mapping[str, Any], problem: Problem) -> Unpacked:
    """The records of a page under a problem, perhaps another one than they were packed under.

    Variables that the problem lacks are ignored, and those that the page lacks are missing. A label
    that a domain has lost is an error. A record whose arm set a variable that is not in the graph
    any more, or is hidden or the reward, can't be counted: it is left out, and noted. One whose arm
    set a variable that can no longer be set counts.
    """
    rows, arms, columns = _parts(page)
    settings = [_arm(text) for text in arms.texts]
    reasons = [_reason(problem, arm) for arm in settings]
    notes = {reason: 0 for reason in reasons if reason is not None}
    for reason, times in zip(reasons, np.bincount(arms.codes, minlength=len(reasons)), strict=True):
        if reason is not None:
            notes[reason] += int(times)
    kept = np.array([reason is None for reason in reasons], dtype=bool)[arms.codes]
    shape = len(problem.graph), rows
    codes, was_set = np.full(shape, MISSING, dtype=np.int64), np.zeros(shape, dtype=bool)
    for v, name in enumerate(problem.graph.variables):
        if name in columns:
            codes[v] = _codes(problem, name, columns[name], kept)
        column = _set_by(name, settings, arms.codes)
        if column.texts:
            set_to = _codes(problem, name, column, kept)
            was_set[v] = set_to != MISSING
            if (was_set[v] & (codes[v] != MISSING)).any():
                raise _damaged(f"{name} was both set and seen")
            np.copyto(codes[v], set_to, where=was_set[v])
    batch = RecordBatch(problem, codes, was_set)
    return Unpacked(batch if kept.all() else batch.take(np.flatnonzero(kept)), notes)


def digest(page: Mapping[str, Any]) -> str:
    """The same for the same records in the same order, whatever compressed them."""
    rows, arms, columns = _parts(page)
    found = sha256(json.dumps([FORMAT, rows]).encode())
    for name, column in [("", arms), *sorted(columns.items())]:
        found.update(json.dumps([name, column.texts, str(column.codes.dtype)]).encode())
        found.update(column.codes.tobytes())
    return found.hexdigest()


# -- writing ----------------------------------------------------------------------------------


def _sorted(texts: tuple[str, ...] | list[str], codes: Integers) -> _Column:
    """The texts that are used, sorted, and the codes by their places then."""
    times = np.bincount(codes + 1, minlength=len(texts) + 1)[1:]
    used = sorted((texts[i], i) for i in np.flatnonzero(times).tolist())
    table = np.full(len(texts) + 1, len(used), dtype=_width(len(used)))
    table[[i for _, i in used]] = np.arange(len(used))
    return _Column(tuple(text for text, _ in used), np.take(table, codes, mode="wrap"))


def _arms(batch: RecordBatch) -> tuple[Integers, list[Intervention]]:
    """Which of the distinct arms each record has."""
    kinds, count = np.zeros(len(batch), dtype=np.int64), 1
    for v, domain in enumerate(batch.problem.domains.values()):
        if batch.was_set[v].any():
            kinds = kinds * (len(domain) + 1) + np.where(batch.was_set[v], batch.codes[v] + 1, 0)
            count *= len(domain) + 1
            if count > 2**20:  # numbered anew, before they outgrow a list of all
                _, kinds = np.unique(kinds, return_inverse=True)
                count = int(kinds.max()) + 1
    firsts = np.full(count, len(batch), dtype=np.int64)
    np.minimum.at(firsts, kinds, np.arange(len(batch)))
    there = np.flatnonzero(firsts < len(batch))
    places = np.full(count, MISSING, dtype=np.int64)
    places[there] = np.arange(len(there))
    variables, domains = batch.problem.graph.variables, batch.problem.domains
    arms = []
    for first in firsts[there].tolist():
        names = [variables[v] for v in np.flatnonzero(batch.was_set[:, first])]
        codes = batch.codes[batch.was_set[:, first], first].tolist()
        arms.append(
            Intervention({name: domains[name][i] for name, i in zip(names, codes, strict=True)})
        )
    return places[kinds], arms


def _width(texts: int) -> str:
    """The smallest unsigned integers that hold this many codes and one for missing."""
    return "<u1" if texts < 2**8 else "<u2" if texts < 2**16 else "<u4"


def _as_json(column: _Column) -> dict[str, Any]:
    return {"texts": list(column.texts), "codes": compress(column.codes.tobytes())}


# -- reading ----------------------------------------------------------------------------------


def _damaged(what: str) -> DowiseError:
    return DowiseError(f"the imported columns are damaged: {what}")


def _parts(page: Mapping[str, Any]) -> tuple[int, _Column, dict[str, _Column]]:
    """The rows, the arms and the variables of a page, once all of it is known to fit."""
    if not isinstance(page, Mapping) or not isinstance(page.get("columns"), Mapping):
        raise _damaged("they are no page of columns")
    if page.get("format") != FORMAT:
        raise DowiseError(
            f"the imported columns are of format {page.get('format')!r}, which this version of "
            f"dowise can't read (it knows {FORMAT}): install a newer one"
        )
    rows = page.get("rows")
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        raise _damaged(f"they can't have {rows!r} rows")
    arms = _column("the arms", page.get("arms"), rows)
    if (arms.codes == len(arms.texts)).any():
        raise _damaged("a row has no arm")
    columns = page["columns"].items()
    return rows, arms, {name: _column(name, column, rows) for name, column in columns}


def _column(name: str, column: Any, rows: int) -> _Column:
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


def _arm(text: str) -> Intervention:
    try:
        return Intervention.parse(text)
    except DowiseError as error:
        raise _damaged(str(error)) from None


def _set_by(name: str, settings: list[Intervention], kinds: Codes) -> _Column:
    """What the arms set a variable to, as if it were a column."""
    texts = tuple(sorted({arm[name] for arm in settings if name in arm}))
    places = {text: i for i, text in enumerate(texts)}
    codes = [places[arm[name]] if name in arm else len(texts) for arm in settings]
    return _Column(texts, np.array(codes, dtype="<u4")[kinds] if texts else kinds)


def _reason(problem: Problem, arm: Intervention) -> str | None:
    """Why a record of this arm can't be counted, if so."""
    for name in arm:
        if name == problem.reward:
            return f"the arm set {name}, which is the reward now"
        if name in problem.hidden:
            return f"the arm set {name}, which is hidden now"
        if name not in problem.graph:
            return f"the arm set {name}, which is no variable now"
    return None


def _codes(problem: Problem, name: str, column: _Column, kept: NDArray[np.bool_]) -> Integers:
    """The codes of a column by the problem's own labels, in the rows that are kept."""
    places = []
    for i, text in enumerate(column.texts):
        code = problem.find_code(name, text)
        places.append(MISSING if code is None else code)
        if code is None and len(lost := np.flatnonzero(kept & (column.codes == i))):
            some = ", ".join(map(str, lost[:_SHOWN])) + (", …" if len(lost) > _SHOWN else "")
            raise DowiseError(
                f"{name} has no value {text!r} any more, which {len(lost):,} imported "
                f"{'row has' if len(lost) == 1 else 'rows have'} ({some}; counted from 0): keep "
                f"{text!r} in the domain of {name}"
            )
    return np.take(np.array([*places, MISSING], dtype=np.int64), column.codes)
