"""Records: outcomes with their arms, parsed and checked once, one by one or in batches.

Everything that learns, learns from records. A record that is completed later replaces the earlier
one: the earlier one is retracted, the later one is learned.

>>> from dowise.problem import load_problem
>>> record = load_problem("task1").record("do(X=1)", {"Y": 0})
>>> record.labels, record.missing
({'X': '1', 'Y': '0'}, ('Z',))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.types import AnyArray, BoolArray, IntArray
from dowise.errors import DowiseError, suggestion
from dowise.graph.adjacency import mask_of
from dowise.problem.domains import MISSING, as_mapping, label_of, refuse_hidden
from dowise.problem.intervention import Intervention

if TYPE_CHECKING:
    from dowise.problem.problem import Problem


class Record:
    """Outcome with its arm. Equal outcomes of two decisions are two records.

    Records are made by `Problem.record`, which checks the values.

    Parameters
    ----------
    problem : Problem
        Problem that the record belongs to.
    arm : Intervention
        Intervention that was played.
    codes : array of int
        For each variable, in the order of names, the index of its value in the domain, or MISSING.
    fixed : array of int
        For each variable, the code that the arm set, or MISSING.
    number : int, optional
        Number of the decision, for policies that need to tell records apart.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> load_problem("task1").record("do(X=1)", {"Y": 0, "Z": 1}).as_dict()
    {'number': None, 'arm': {'X': '1'}, 'values': {'X': '1', 'Y': '0', 'Z': '1'}}
    """

    __slots__ = ("arm", "codes", "fixed", "number", "problem")

    def __init__(
        self,
        problem: Problem,
        arm: Intervention,
        codes: IntArray,
        fixed: IntArray,
        number: int | None = None,
    ) -> None:
        self.problem, self.arm, self.number = problem, arm, number
        self.codes, self.fixed = codes, fixed

    @property
    def context(self) -> tuple[int, ...]:
        """Codes of the context's values, in the order of names; MISSING if not observed."""
        return tuple(self.codes[self.problem.context_positions].tolist())

    @property
    def reward(self) -> int:
        """Code of the reward's value, or MISSING."""
        return int(self.codes[self.problem.reward_position])

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything that was observed or set, by name."""
        pairs = zip(self.problem.domains.items(), self.codes.tolist(), strict=True)
        return {name: domain[code] for (name, domain), code in pairs if code != MISSING}

    @property
    def missing(self) -> tuple[str, ...]:
        """Variables that were not observed."""
        return tuple(
            name
            for name, code in zip(self.problem.domains, self.codes.tolist(), strict=True)
            if code == MISSING
        )

    def as_dict(self) -> dict[str, object]:
        """Return the arm and the label of everything that was observed or set, for JSON."""
        return {"number": self.number, "arm": dict(self.arm), "values": self.labels}

    def __repr__(self) -> str:
        return f"<Record of {self.arm}: {self.labels}>"


def check_record(record: object, problem: Problem) -> None:
    """Raise `DowiseError` unless this is a record of this problem."""
    if not isinstance(record, Record):
        raise DowiseError(
            f"{record!r} is not a record: make one with problem.record(arm, outcome)",
            code="invalid-type",
        )
    check_same_problem(record, problem)


def check_same_problem(records: Record | RecordBatch, problem: Problem) -> None:
    """Raise `DowiseError` unless a record or batch belongs to this problem."""
    if records.problem is not problem and records.problem != problem:
        raise DowiseError(
            f"{records!r} belongs to another problem, {records.problem!r}: make it with record or "
            "records of this problem",
            code="wrong-problem",
        )


def without_value(problem: Problem, position: int, purpose: str) -> str:
    """Return the message that a required variable was not observed."""
    return f"the outcome has no value for {problem.graph.variables[position]}: {purpose}"


def past_record(
    problem: Problem,
    settings: Mapping[str, object],
    labels: Mapping[str, object],
    number: int | None = None,
) -> Record:
    """Return a record of any intervention, such as an arm of an earlier version of the problem.

    `settings` are the values that were set, for any variables except the reward, context variables
    included; `labels` are the observed values. A context variable that was set counts like an
    observed one. A factor is learned if some arm has it too, which is not the case if a hidden
    cause joins its variable to one that was set.

    >>> from dowise.problem import load_problem
    >>> past_record(load_problem("task1"), {"Z": 1}, {"X": 0, "Y": 1})
    <Record of do(Z=1): {'X': '0', 'Y': '1', 'Z': '1'}>
    """
    checked: dict[str, object] = {}
    for name, value in settings.items():
        if name == problem.reward:
            raise DowiseError(
                f"{name} is the reward and can't have been set: leave the record out",
                code="not-manipulable",
            )
        if name not in problem.positions:
            refuse_hidden(name, problem.hidden, "a hidden variable can't have been set: ")
            close = suggestion(str(name), problem.graph.variables)
            raise DowiseError(
                f"{name!r} was set, which is not a variable of the problem{close}",
                code="unknown-variable",
            )
        checked[name] = label_of(name, value, problem.domains[name])
    arm = Intervention(checked)
    fixed = _read_only([problem.code(name, arm.get(name)) for name in problem.graph.variables])
    return Record(problem, arm, parse_outcome(problem, arm, fixed, labels), fixed, number)


def parse_outcome(
    problem: Problem, arm: Intervention, fixed: IntArray, outcome: Mapping[str, object]
) -> IntArray:
    """Return the codes of an outcome, with the values that the arm set, whose codes are `fixed`."""
    if outcome is None:
        raise DowiseError(
            "an outcome must map variables to values, such as {'X': 1}, not None",
            code="invalid-type",
        )
    values = outcome if type(outcome) is dict else as_mapping(outcome, "an outcome")
    codes = fixed.tolist()
    positions, tables = problem.positions, problem.label_codes
    for name, value in values.items():
        v = positions.get(name)
        if v is None:
            refuse_hidden(name, problem.hidden, "the outcome has a value for a hidden variable: ")
            raise DowiseError(
                f"the outcome names {name!r}, which is not a variable of the problem"
                f"{suggestion(str(name), problem.graph.variables)}",
                code="unknown-variable",
            )
        plain: Any = value if type(value) is str or type(value) is int else None
        code = tables[name].get(plain)  # most values are labels, or ints
        if code is None:
            code = problem.code(name, value)
        if codes[v] < 0:
            codes[v] = code
        elif code not in (MISSING, codes[v]):
            raise DowiseError(
                f"{arm} set {name}={arm[name]}, but the outcome has "
                f"{name}={problem.domains[name][code]}",
                code="contradictory-record",
            )
    return _read_only(codes)


def _read_only(codes: Any) -> IntArray:
    array = np.array(codes)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class RecordBatch:
    """Records as arrays: a row per variable, in the order of names, and a column per record.

    Examples
    --------
    >>> from dowise.problem import load_problem
    >>> batch = load_problem("task1").records({"X": [0, 1, 1], "Z": [0, 0, 1], "Y": [1, 0, None]})
    >>> batch, batch.codes.tolist()
    (<RecordBatch of 3 records>, [[0, 1, 1], [1, 0, -1], [0, 0, 1]])
    """

    problem: Problem
    codes: IntArray
    """Index of each value in its domain, or MISSING."""
    was_set: BoolArray
    """True if the arm set the variable."""

    @classmethod
    def from_record(cls, record: Record) -> RecordBatch:
        """Return a batch of one record."""
        return cls(record.problem, record.codes[:, None], record.fixed[:, None] != MISSING)

    def by_set(self) -> tuple[list[int], IntArray]:
        """Return the distinct sets of variables that were set, as bits, and each record's set."""
        packed = np.ascontiguousarray(np.packbits(self.was_set, axis=0).T)
        words = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, inverse = np.unique(words, return_index=True, return_inverse=True)
        sets = [mask_of(np.flatnonzero(self.was_set[:, i]).tolist()) for i in first]
        return sets, inverse.astype(np.int64)

    def take(self, rows: AnyArray) -> RecordBatch:
        """Return the records at these indices, or selected by this mask."""
        return RecordBatch(self.problem, self.codes[:, rows], self.was_set[:, rows])

    def arms(self) -> tuple[list[Intervention], IntArray]:
        """Return the distinct interventions, and the index of each record's intervention.

        They need not be arms, nor on manipulable variables.
        """
        names = self.problem.graph.variables
        targets = np.flatnonzero(self.was_set.any(axis=1)).tolist()
        values = [np.where(self.was_set[v], self.codes[v], MISSING) for v in targets]
        first, inverse = equal_columns([np.zeros(len(self), dtype=np.int64), *values])
        arms = []
        for i in first.tolist():
            codes = {names[v]: int(row[i]) for v, row in zip(targets, values, strict=True)}
            labels = {u: self.problem.domains[u][c] for u, c in codes.items() if c != MISSING}
            arms.append(Intervention(labels))
        return arms, inverse

    def each(self, numbers: IntArray | None = None) -> Iterator[Record]:
        """Yield the records one by one; `numbers` are those of their decisions, if any."""
        arms, inverse = self.arms()
        for i, arm in enumerate(inverse.tolist()):
            codes = _read_only(self.codes[:, i])
            fixed = _read_only(np.where(self.was_set[:, i], codes, MISSING))
            number = None if numbers is None else int(numbers[i])
            yield Record(self.problem, arms[arm], codes, fixed, number)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"<RecordBatch of {len(self):,} records>"


def equal_columns(rows: Iterable[IntArray]) -> tuple[IntArray, IntArray]:
    """Return (first, inverse): columns i and j are equal if inverse[i] == inverse[j].

    first[k] is the first column of group k. The rows have integers from −1 on, the first row from
    0 on.
    """
    kinds: IntArray | None = None
    room = 1
    for row in rows:  # a single integer encodes all values, as long as it fits
        if kinds is None:
            kinds, room = row, int(row.max(initial=0)) + 1
            continue
        size = int(row.max(initial=0)) + 2
        if room * size > 2**62:
            distinct, kinds = np.unique(kinds, return_inverse=True)
            room = len(distinct)
        kinds, room = kinds * size + row + 1, room * size
    assert kinds is not None
    _, first, inverse = np.unique(kinds, return_index=True, return_inverse=True)
    return first, inverse.astype(np.int64)
