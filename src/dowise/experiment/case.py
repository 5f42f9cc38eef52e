"""Cases: decisions with the values that have been told.

Values are labels; None means that a value is permanently missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dowise.experiment.event import as_text
from dowise.problem import Intervention, Problem

Labels = dict[str, str | None]
CaseStatus = Literal["pending", "done", "withdrawn", "erased"]


@dataclass(slots=True)
class Case:
    """A decision of a live experiment, with the values that have been told.

    It is pending until its reward is told (or known to be missing), or until it is withdrawn.
    `tell`, `amend` and `withdraw` of an experiment return one.

    Examples
    --------
    >>> from dowise import Experiment
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", "random", seed=1)
    >>> case = experiment.tell(experiment.ask().id, {"Y": 1})
    >>> case.id, case.status, case.values, case.changed
    (1, 'done', {'Y': '1'}, True)
    """

    id: int
    event: int
    """Number of the event that recorded the decision."""
    asked_at: str
    context: dict[str, str]
    asked: Intervention
    """The arm that was chosen."""
    is_restricted: bool = False
    """True if some arms were not allowed."""
    request_id: str | None = None
    values: Labels = field(default_factory=dict)
    """Values that were told; None if a value is permanently missing."""
    told_at: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Number of the event that first told each value, missing values and the context left out.

    A value that is corrected keeps its event.
    """
    superseded: dict[str, list[str | None]] = field(default_factory=dict)
    """Earlier values of the context, the arm or the outcome that were corrected, oldest first."""
    played: Intervention | None = None
    """The arm that was played instead of `asked`, if any."""
    is_unrelated: bool = False
    """True if the reason to play another arm had nothing to do with the unit."""
    status: CaseStatus = "pending"
    last_event: int = 0
    """Number of the last event that changed the case."""
    previous: Case | None = field(default=None, compare=False, repr=False)
    """The case before the call that returned this one, if the call changed it."""
    changed: bool = field(default=False, compare=False, repr=False)
    """True if the call that returned this case changed it."""

    @property
    def arm(self) -> Intervention:
        """The arm that was played: the chosen one, unless another one was told."""
        return self.asked if self.played is None else self.played

    @property
    def known(self) -> Labels:
        """Known values: the context, the outcome, and the settings of the arm."""
        return {**self.context, **self.values, **self.arm}

    def missing_variables(self, problem: Problem) -> tuple[str, ...]:
        """Return the variables that have not been told."""
        known = self.known
        return tuple(name for name in problem.graph.variables if name not in known)

    def copy(self) -> Case:
        """Return an independent copy."""
        return Case(
            self.id,
            self.event,
            self.asked_at,
            {**self.context},
            self.asked,
            self.is_restricted,
            self.request_id,
            {**self.values},
            {**self.told_at},
            {name: [*labels] for name, labels in self.superseded.items()},
            self.played,
            self.is_unrelated,
            self.status,
            self.last_event,
        )

    def superseded_values(self, labels: Labels) -> dict[str, str]:
        """Return a sentence for each of these values that was recorded and has been amended."""
        current = self.known
        return {
            name: f"{name}={label_text(label)} was told before and amended to "
            f"{label_text(current[name])} since"
            for name, label in labels.items()
            if label in self.superseded.get(name, ()) and current[name] != label
        }

    def changes_from(self, previous: Case) -> list[str]:
        """Return a sentence for each value that differs from an earlier state of the case."""
        current = self.known
        return [
            f"{name} changed from {label_text(label)} to {label_text(current[name])}"
            for name, label in previous.known.items()
            if name in current and current[name] != label
        ]

    def tell(self, name: str, label: str | None, event: int) -> None:
        """Record a value outside the context that an event told or corrected."""
        self.values[name] = label
        if label is None:
            self.told_at.pop(name, None)
        else:
            self.told_at.setdefault(name, event)

    def snapshot_row(self) -> str:
        """Return the case as a line of a snapshot; equal cases have equal lines.

        Digests of a journal's cases are sums of hashes of these lines, so `told_at` is not in them:
        older journals must still be verified.
        """
        if self.status == "erased":
            return as_text([self.id, self.event, "erased", self.last_event])
        return as_text(
            [
                self.id,
                self.event,
                self.status,
                self.last_event,
                self.asked_at,
                self.context,
                dict(self.asked),
                self.is_restricted,
                self.request_id,
                self.values,
                self.superseded,
                None if self.played is None else dict(self.played),
                self.is_unrelated,
            ]
        )

    @classmethod
    def from_snapshot_row(
        cls,
        row: list[Any],
        told_at: dict[str, int],
        arm_of: Callable[[dict[str, str]], Intervention],
    ) -> Case:
        """Inverse of `snapshot_row`; `arm_of` returns the intervention with some settings."""
        number, event, status, last, *parts = row
        if status == "erased":
            return cls(number, event, "", {}, Intervention(), status="erased", last_event=last)
        at, context, arm, restricted, request_id, values, superseded, played, unrelated = parts
        return cls(
            number,
            event,
            at,
            context,
            arm_of(arm),
            restricted,
            request_id,
            values,
            told_at,
            superseded,
            None if played is None else arm_of(played),
            unrelated,
            status,
            last,
        )

    def as_dict(self, problem: Problem) -> dict[str, Any]:
        """Return plain data for JSON."""
        events = {"event": self.event, "last_event": self.last_event}
        if self.status == "erased":
            return {"id": self.id, "status": "erased", **events}
        return {
            "id": self.id,
            "status": self.status,
            "asked_at": self.asked_at,
            "context": self.context,
            "arm": dict(self.arm),
            "text": str(self.arm),
            "played": None if self.played is None else str(self.played),
            "values": self.values,
            "open": list(self.missing_variables(problem)),
            "asked": dict(self.asked),
            "restricted": self.is_restricted,
            "unrelated": self.is_unrelated,
            "before": self.superseded,
            "request_id": self.request_id,
            **events,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Case:
        """Inverse of `as_dict`."""
        number, event, last = data["id"], data["event"], data["last_event"]
        if data["status"] == "erased":
            return cls(number, event, "", {}, Intervention(), status="erased", last_event=last)
        played = data["played"]
        return cls(
            number,
            event,
            data["asked_at"],
            dict(data["context"]),
            Intervention(data["asked"]),
            data["restricted"],
            data["request_id"],
            dict(data["values"]),
            {},
            {name: [*labels] for name, labels in data["before"].items()},
            None if played is None else Intervention.parse(played),
            data["unrelated"],
            data["status"],
            last,
            cls.from_dict(data["earlier"]) if data.get("earlier") else None,
            data.get("changed", False),
        )

    def __str__(self) -> str:
        values = ", ".join(f"{name}={label_text(label)}" for name, label in self.values.items())
        return f"decision {self.id}, {self.arm}, {self.status}{': ' if values else ''}{values}"


def label_text(label: str | None) -> str:
    """Return a label, or "missing" for a value that was not observed."""
    return "missing" if label is None else label
