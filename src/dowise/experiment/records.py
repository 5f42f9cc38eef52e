"""Records of an experiment: import, column codec, readability after a revision, export.

An import is refused if a row is bad, unless bad rows are skipped explicitly, and if the same table
was imported before.
"""

from __future__ import annotations

import csv
import io
import json
import warnings
import zlib
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dowise._core.files import write_bytes
from dowise._core.validation import check_flag
from dowise.belief.belief import no_reward_note as no_reward_note
from dowise.belief.belief import warn_of_no_reward
from dowise.errors import ConflictError, DowiseError, DowiseWarning, import_extra
from dowise.experiment.case import Case
from dowise.experiment.event import Event, as_text
from dowise.experiment.state import ExperimentState
from dowise.problem import Intervention, Problem
from dowise.problem.arms import forbidden_in
from dowise.problem.domains import MISSING
from dowise.problem.problem import ArmLike
from dowise.problem.record import RecordBatch, check_same_problem
from dowise.problem.tables import EXPORT_COLUMNS, CheckedRecords, export_name

# Records are near to independent draws: repetitions are found only by chance. Measured on a million
# of them, looking for runs alone makes a fifth less of fair bits than level 1 in the same time.
_STRATEGY = zlib.Z_RLE
MAX_COMPRESSION = 1040  # deflate makes nothing smaller than 1/1032, and a few bytes


def compress(content: bytes) -> str:
    """Return bytes as compressed text."""
    writer = zlib.compressobj(strategy=_STRATEGY)
    return b64encode(writer.compress(content) + writer.flush()).decode("ascii")


def decompress(text: object, size: int) -> bytes:
    """Inverse of `compress`, for a known number of bytes. Raises ValueError for a damaged text.

    It never makes more than `size` bytes, nor more than a text of this length can hold.
    """
    if not isinstance(text, str):
        raise ValueError("the codes are not a text")
    try:
        packed = b64decode(text, validate=True)
    except ValueError:
        raise ValueError("the codes are not base64") from None
    if size > MAX_COMPRESSION * len(packed):
        raise ValueError(f"the codes can't be those of {size:,} bytes")
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(packed, size + 1)
    except zlib.error:
        raise ValueError("the codes can't be decompressed") from None
    if len(content) != size or not reader.eof or reader.unused_data:
        raise ValueError(f"the codes are not those of {size:,} bytes")
    return content


Integers = NDArray[np.int64]
Codes = NDArray[np.unsignedinteger[Any]]

FORMAT = 1
MAX_ROWS = 100_000_000

_MAX_NAMED = 5  # rows that an error names


class Unpacked(NamedTuple):
    """Imported records under a problem."""

    batch: RecordBatch
    """The records that can be used, in their order."""
    notes: dict[str, int]
    """Number of other records, by the reason why they can't be used."""


class _Column(NamedTuple):
    """Codes with a text each; the code after the last one means missing."""

    texts: tuple[str, ...]
    codes: Codes


def pack(batch: RecordBatch) -> dict[str, Any]:
    """Return records as compressed columns."""
    if len(batch) > MAX_ROWS:
        raise DowiseError(
            f"{len(batch):,} records are too many for one import: split them, at most "
            f"{MAX_ROWS:,} at a time",
            code="too-large",
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
    """Inverse of `pack`, perhaps under another problem.

    Variables that the problem lacks are ignored, and those that the columns lack are missing. A
    label that a domain has lost is an error. A record whose arm set a variable that has left the
    graph, is hidden or is the reward can't be used: it is left out, and noted. A record whose arm
    set a variable that can no longer be set is used.
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
    """Return a hash of records in their order, whatever compressed them."""
    rows, arms, columns = _parts(page)
    found = sha256(json.dumps([FORMAT, rows]).encode())
    for name, column in [("", arms), *sorted(columns.items())]:
        found.update(json.dumps([name, column.texts, str(column.codes.dtype)]).encode())
        found.update(column.codes.tobytes())
    return found.hexdigest()


# -- writing ----------------------------------------------------------------------------------


def _sorted(texts: tuple[str, ...] | list[str], codes: Integers) -> _Column:
    """Return the texts in use, sorted, and the codes of their indices."""
    times = np.bincount(codes + 1, minlength=len(texts) + 1)[1:]
    used = sorted((texts[i], i) for i in np.flatnonzero(times).tolist())
    table = np.full(len(texts) + 1, len(used), dtype=_width(len(used)))
    table[[i for _, i in used]] = np.arange(len(used))
    return _Column(tuple(text for text, _ in used), np.take(table, codes, mode="wrap"))


def _arms(batch: RecordBatch) -> tuple[Integers, list[Intervention]]:
    """Return the distinct arms, and the index of each record's arm."""
    kinds, count = np.zeros(len(batch), dtype=np.int64), 1
    for v, domain in enumerate(batch.problem.domains.values()):
        if batch.was_set[v].any():
            kinds = kinds * (len(domain) + 1) + np.where(batch.was_set[v], batch.codes[v] + 1, 0)
            count *= len(domain) + 1
            if count > 2**20:  # renumbered, before they outgrow a list of all
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
    """Return the smallest unsigned type for this many codes and one for missing."""
    return "<u1" if texts < 2**8 else "<u2" if texts < 2**16 else "<u4"


def _as_json(column: _Column) -> dict[str, Any]:
    return {"texts": list(column.texts), "codes": compress(column.codes.tobytes())}


# -- reading ----------------------------------------------------------------------------------


def _damaged(what: str) -> DowiseError:
    return DowiseError(f"the imported columns are damaged: {what}", code="damaged-file")


def _parts(page: Mapping[str, Any]) -> tuple[int, _Column, dict[str, _Column]]:
    """Return the number of rows, the arms and the variables, after validating all of them."""
    if not isinstance(page, Mapping) or not isinstance(page.get("columns"), Mapping):
        raise _damaged("they are not columns")
    if page.get("format") != FORMAT:
        raise DowiseError(
            f"the imported columns are of format {page.get('format')!r}, which this version of "
            f"dowise can't read (it knows {FORMAT}): install a newer one",
            code="other-version",
        )
    rows = page.get("rows")
    if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
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
    """Return the values that the arms set a variable to, as a column."""
    texts = tuple(sorted({arm[name] for arm in settings if name in arm}))
    places = {text: i for i, text in enumerate(texts)}
    codes = [places[arm[name]] if name in arm else len(texts) for arm in settings]
    return _Column(texts, np.array(codes, dtype="<u4")[kinds] if texts else kinds)


def _reason(problem: Problem, arm: Intervention) -> str | None:
    """Return why a record of this arm can't be used; None if it can."""
    for name in arm:
        if name == problem.reward:
            return f"the arm set {name}, which is the reward now"
        if name in problem.hidden:
            return f"the arm set {name}, which is hidden now"
        if name not in problem.graph:
            return f"the arm set {name}, which is not a variable now"
    return None


def _codes(problem: Problem, name: str, column: _Column, kept: NDArray[np.bool_]) -> Integers:
    """Return a column in codes of the problem's labels, in the rows that are kept."""
    places = []
    for i, text in enumerate(column.texts):
        code = problem.find_code(name, text)
        places.append(MISSING if code is None else code)
        if code is None and len(lost := np.flatnonzero(kept & (column.codes == i))):
            some = ", ".join(map(str, lost[:_MAX_NAMED])) + (
                ", …" if len(lost) > _MAX_NAMED else ""
            )
            raise DowiseError(
                f"{name} has no value {text!r} any more, which {len(lost):,} imported "
                f"{'row has' if len(lost) == 1 else 'rows have'} ({some}; counted from 0): keep "
                f"{text!r} in the domain of {name}",
                code="unknown-value",
            )
    return np.take(np.array([*places, MISSING], dtype=np.int64), column.codes)


class BadRowsError(DowiseError):
    """Some rows of a table are not records; `found` describes them."""

    code = "bad-rows"

    def __init__(self, found: CheckedRecords) -> None:
        self.found = found
        shown = "; ".join(str(bad) for bad in found.bad[:_MAX_NAMED])
        more = (
            f"; and {found.bad_count - _MAX_NAMED:,} more" if found.bad_count > _MAX_NAMED else ""
        )
        super().__init__(f"{self.summary}: {shown}{more}. Correct them, or skip them (`skip_bad`)")

    @property
    def summary(self) -> str:
        """Number of bad rows and of all rows, and the consequence."""
        return (
            f"{self.found.bad_count:,} of {self.found.size:,} rows can't be read, so nothing was "
            "imported"
        )


def checked_import(
    found: CheckedRecords, source: str | None, skip_bad: bool
) -> dict[str, Any] | None:
    """Return the payload of an `imported` event; None if the table is empty."""
    if source is not None and not isinstance(source, str):
        raise DowiseError(
            f"source={source!r} must be a text: where the records are from", code="invalid-type"
        )
    if found.bad_count and not check_flag("skip_bad", skip_bad):
        raise BadRowsError(found)
    if not len(found.batch):
        return None
    warn_of_no_reward(found.batch, stacklevel=4)
    columns = pack(found.batch)
    return {
        "records": len(found.batch),
        "skipped": found.bad_count,
        "source": source,
        "digest": digest(columns),
        "columns": columns,
    }


def checked_rows(problem: Problem, frame: Any, arm: ArmLike | None) -> CheckedRecords:
    """Validate the rows of a table; `frame` may also be a result of `Problem.checked_records`."""
    if not isinstance(frame, CheckedRecords):
        return problem.checked_records(frame, arm)
    if arm is not None:
        raise DowiseError(
            "these records were read with their arms: leave the argument arm out",
            code="unused-option",
        )
    check_same_problem(frame.batch, problem)
    return frame


def refuse_twice(
    state: ExperimentState, page: dict[str, Any], found: CheckedRecords, again: bool
) -> None:
    """Raise if the same records were imported before, unless `again`."""
    if check_flag("again", again):
        return
    times = {case.asked_at for case in state.cases.values() if case.asked_at}
    if times & found.asked_at:
        raise ConflictError(
            "this is an export of the same experiment, which has these records already: use "
            "`again` to count them once more"
        )
    before = state.import_digests.get(page["digest"])
    if before is not None:
        raise ConflictError(
            f"these records were imported before, by event {before}: use `again` to count them "
            "once more"
        )


def check_readable(
    state: ExperimentState, problem: Problem, columns: Callable[[int], dict[str, Any]]
) -> None:
    """Raise if a record has a label that the problem's domains lack."""
    lost: dict[tuple[str, str], list[int]] = defaultdict(list)
    for case in state.cases.values():
        for name, label in case.known.items():
            if label is not None and label not in problem.domains.get(name, (label,)):
                lost[name, label].append(case.id)
    for (name, label), ids in lost.items():
        raise DowiseError(
            f"{name}={label} is in {len(ids)} decisions ({_shown(ids)}), but the new domain of "
            f"{name} is {', '.join(problem.domains[name])}: keep the label",
            code="unknown-value",
        )
    for number in state.imports:
        try:
            unpack(columns(number), problem)
        except DowiseError as error:
            raise DowiseError(f"the records of event {number}: {error}", code=error.code) from None


def warn_of_forbidden(pending: Iterable[Case], problem: Problem) -> None:
    """Warn about pending decisions on arms that are forbidden now."""
    for note in forbidden_note(pending, problem):
        warnings.warn(note, DowiseWarning, stacklevel=3)


def forbidden_note(pending: Iterable[Case], problem: Problem) -> list[str]:
    """Return a note about pending decisions on arms that are forbidden now, if there are any."""
    ids = [case.id for case in pending if forbidden_in(case.asked, problem.forbidden) is not None]
    if not ids:
        return []
    what = "decision is" if len(ids) == 1 else "decisions are"
    return [
        f"{len(ids)} pending {what} on arms that are forbidden from here on ({_shown(ids)}): "
        "withdraw what was not carried out; what was can still be told"
    ]


def _shown(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:_MAX_NAMED])) + (", …" if len(ids) > _MAX_NAMED else "")


def columns_of(state: ExperimentState, asked: Iterable[Event]) -> dict[str, list[Any]]:
    """Return the exported table by column: texts, except `id` and `probability`; None is empty.

    `arm` is the arm that was played. If it is not the one that was chosen, there is no probability.
    `probabilities` has those of all arms, `allowed` the arms to choose from if some were not
    allowed, both as JSON.
    """
    names = _variables(state)
    table: dict[str, list[Any]] = {name: [] for name in EXPORT_COLUMNS}
    table |= {export_name(name): [] for name in names}
    by_id = {event.payload["decision"]: event for event in asked if not event.is_erased}
    for case in state.cases.values():
        known = case.known
        row: dict[str, Any] = {"id": case.id, "status": case.status}
        event = by_id.get(case.id)
        if event is not None and case.status != "erased":
            row |= {"asked_at": case.asked_at, "arm": str(case.arm), **_probabilities(state, event)}
            if case.played is not None:
                row["probability"] = None
        for column in EXPORT_COLUMNS:
            table[column].append(row.get(column))
        for name in names:
            table[export_name(name)].append(known.get(name))
    return table


def write_table(table: dict[str, list[Any]], path: str | Path) -> int:
    """Write the table to a .csv or .parquet file, and return the number of rows."""
    ending = Path(path).suffix.lower()
    if ending in (".parquet", ".pq"):
        content = _parquet(table)
    elif ending == ".csv":
        content = _csv(table)
    else:
        raise DowiseError(
            f"{path}: the name must end in .csv or .parquet", code="unsupported-format"
        )
    _check_overwrite(Path(path), ending == ".csv")
    write_bytes(path, content)
    return len(table["id"])


def _check_overwrite(path: Path, is_csv: bool) -> None:
    """Raise if something other than an earlier export would be overwritten."""
    if not path.is_file() or not path.stat().st_size:
        return
    begins = list(EXPORT_COLUMNS)
    if is_csv:
        with path.open("rb") as file:
            found = file.readline(1000).decode(errors="replace").split(",")[: len(begins)]
    else:
        parquet = import_extra("pyarrow.parquet", "simulate", "writing Parquet")
        try:
            found = parquet.read_schema(path).names[: len(begins)]
        except (OSError, ValueError):
            found = []
    if found != begins:
        raise DowiseError(
            f"{path} exists and is not an export of an experiment: choose another file, or remove "
            "that one first",
            code="conflict",
        )


def _variables(state: ExperimentState) -> list[str]:
    """Return the variables of the problem, and earlier ones that have values."""
    seen = {name for case in state.cases.values() for name in case.known}
    own = state.config.problem.graph.variables
    return [*own, *sorted(seen - {*own})]


def _probabilities(state: ExperimentState, event: Event) -> dict[str, Any]:
    payload, arms = event.payload, state.config_at(event.number).problem.arms
    texts = [str(arm) for arm in arms]
    probabilities = payload["probabilities"]
    row: dict[str, Any] = {}
    if probabilities is not None:
        row["probabilities"] = as_text(dict(zip(texts, probabilities, strict=True)))
        chosen = state.config_at(event.number).problem.arm_index(payload["arm"])
        row["probability"] = probabilities[chosen]
    if payload["allowed"] is not None:
        row["allowed"] = as_text([texts[i] for i in payload["allowed"]])
    return row


def _csv(table: dict[str, list[Any]]) -> bytes:
    page = io.StringIO(newline="")
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(_rows(table))
    return page.getvalue().encode()


def _rows(table: dict[str, list[Any]]) -> Iterator[list[Any]]:
    for row in zip(*table.values(), strict=True):
        yield ["" if value is None else value for value in row]


def _parquet(table: dict[str, list[Any]]) -> bytes:
    pyarrow = import_extra("pyarrow", "simulate", "writing Parquet")
    parquet = import_extra("pyarrow.parquet", "simulate", "writing Parquet")
    kinds = {"id": pyarrow.int64(), "probability": pyarrow.float64()}
    columns = {
        name: pyarrow.array(values, type=kinds.get(name, pyarrow.string()))
        for name, values in table.items()
    }
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()
