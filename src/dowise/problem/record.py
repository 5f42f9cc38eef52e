"""A record: what was seen after an arm was played, parsed and checked once.

Whoever learns, learns from records. A record that is completed later replaces its earlier self: the
earlier one is retracted, the later one learned.

>>> from dowise.problem import load_problem
>>> record = load_problem("task1").record("do(X=1)", {"Y": 0})
>>> record.labels, record.missing
({'X': '1', 'Y': '0'}, ('Z',))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, suggestion
from dowise.problem.intervention import Intervention
from dowise.problem.roles import refuse_hidden
from dowise.problem.values import MISSING, as_mapping, label_of

if TYPE_CHECKING:
    from dowise.problem.frame import RecordBatch
    from dowise.problem.problem import Problem

__all__ = [
    "Record", "check_record", "check_same_problem", "parse_outcome", "past_record",
    "refuse_contradiction", "without_value",
]  # fmt: skip

Integers = NDArray[np.int64]


class Record:
    """An outcome with its arm. Equal outcomes of two decisions are two records.

    `codes` has for each variable, in the order of names, the position of its value in the domain,
    or MISSING; `fixed` likewise what the arm set. `number` is that of the decision that it follows,
    which tells records apart for policies that need it; None where there was no decision.
    """

    __slots__ = ("arm", "codes", "fixed", "number", "problem")

    def __init__(
        self,
        problem: Problem,
        arm: Intervention,
        codes: Integers,
        fixed: Integers,
        number: int | None = None,
    ) -> None:
        self.problem, self.arm, self.number = problem, arm, number
        self.codes, self.fixed = codes, fixed

    @property
    def context(self) -> tuple[int, ...]:
        """The positions of the context's values, in the order of names; MISSING where not seen."""
        return tuple(self.codes[self.problem.context_positions].tolist())

    @property
    def reward(self) -> int:
        """The position of the reward's value, or MISSING."""
        return int(self.codes[self.problem.reward_position])

    @property
    def labels(self) -> dict[str, str]:
        """What was seen or set, by name."""
        pairs = zip(self.problem.domains.items(), self.codes.tolist(), strict=True)
        return {name: domain[code] for (name, domain), code in pairs if code != MISSING}

    @property
    def missing(self) -> tuple[str, ...]:
        """The variables that were not seen."""
        return tuple(
            name
            for name, code in zip(self.problem.domains, self.codes.tolist(), strict=True)
            if code == MISSING
        )

    def lacking(self, positions: Iterable[int], why: str) -> str | None:
        """That one of these variables, given by their positions, was not seen; None if all were.

        `why` is the end of the sentence: what it is needed for.
        """
        for v in positions:
            if self.codes[v] == MISSING:
                return without_value(self.problem, v, why)
        return None

    def need(self, positions: Iterable[int], why: str) -> None:
        """Raise unless these variables, given by their positions, were seen."""
        text = self.lacking(positions, why)
        if text is not None:
            raise DowiseError(text)

    def as_dict(self) -> dict[str, object]:
        """For JSON: the arm, and the label of everything that was seen or set."""
        return {"number": self.number, "arm": dict(self.arm), "values": self.labels}

    def __repr__(self) -> str:
        return f"<Record of {self.arm}: {self.labels}>"


def check_record(record: object, problem: Problem) -> None:
    """Raise unless this is a record of this problem: positions mean nothing in another one."""
    if not isinstance(record, Record):
        raise DowiseError(f"{record!r} is no record: make one with problem.record(arm, outcome)")
    check_same_problem(record, problem)


def check_same_problem(records: Record | RecordBatch, problem: Problem) -> None:
    """Raise unless one or many records are of this problem."""
    if records.problem is not problem and records.problem != problem:
        raise DowiseError(
            f"{records!r} is of another problem, {records.problem!r}: make it with problem.record "
            "or problem.records of its own"
        )


def without_value(problem: Problem, position: int, why: str) -> str:
    """That a variable which was needed was not seen, in words."""
    return f"the outcome has no value for {problem.graph.variables[position]}: {why}"


def past_record(
    problem: Problem,
    settings: Mapping[str, object],
    labels: Mapping[str, object],
    number: int | None = None,
) -> Record:
    """What was seen after something was set that may be no arm, or can't be set any more.

    So a record that was made under another version of the problem counts in this one. `settings`
    has what was set, any variables but the reward, context variables among them; `labels` what was
    seen. What a context variable was set to is known like one that was seen, and each factor
    counts if it is that of some arm too: not where a hidden cause ties it to what was set.

    >>> from dowise.problem import load_problem
    >>> past_record(load_problem("task1"), {"Z": 1}, {"X": 0, "Y": 1})
    <Record of do(Z=1): {'X': '0', 'Y': '1', 'Z': '1'}>
    """
    known: dict[str, object] = {}
    for name, value in settings.items():
        if name == problem.reward:
            raise DowiseError(f"{name} is the reward and can't have been set: leave the record out")
        if name not in problem.positions:
            refuse_hidden(name, problem.hidden, "a hidden variable can't have been set: ")
            close = suggestion(str(name), problem.graph.variables)
            raise DowiseError(f"{name!r} was set, which is no variable of the problem{close}")
        known[name] = label_of(name, value, problem.domains[name])
    arm = Intervention(known)
    fixed = np.array([problem.code(name, arm.get(name)) for name in problem.graph.variables])
    fixed.setflags(write=False)
    return Record(problem, arm, parse_outcome(problem, arm, fixed, labels), fixed, number)


def parse_outcome(
    problem: Problem, arm: Intervention, fixed: Integers, outcome: Mapping[str, object]
) -> Integers:
    """The codes of what was seen, with the values that the arm set, whose codes are `fixed`."""
    if outcome is None:
        raise DowiseError("an outcome must map variables to values, such as {'X': 1}; this is None")
    seen = outcome if type(outcome) is dict else as_mapping(outcome, "an outcome")
    codes = fixed.tolist()
    positions, tables = problem.positions, problem.label_codes
    for name, value in seen.items():
        v = positions.get(name)
        if v is None:
            refuse_hidden(name, problem.hidden, "the outcome has a value for a hidden variable: ")
            raise DowiseError(
                f"the outcome names {name!r}, which is no variable of the problem"
                f"{suggestion(str(name), problem.graph.variables)}"
            )
        plain: Any = value if type(value) is str or type(value) is int else None
        code = tables[name].get(plain)  # most values are labels, or their numbers
        if code is None:
            code = problem.code(name, value)
        if codes[v] < 0:
            codes[v] = code
        elif code not in (MISSING, codes[v]):
            refuse_contradiction(arm, name, problem.domains[name][code])
    found = np.array(codes)
    found.setflags(write=False)
    return found


def refuse_contradiction(arm: Intervention, name: str, label: str, where: str = "") -> None:
    """What was seen is not what the arm set."""
    raise DowiseError(f"{where}{arm} set {name}={arm[name]}, but the outcome has {name}={label}")
