"""A case: a decision that was asked for, and what was told of it so far.

Told values are labels; None says that a value is missing for good. What a case may still be told is
decided here, by what it was told before: the journal only keeps what passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dowise.errors import ConflictError, DowiseError, suggestion
from dowise.experiment.event import as_text
from dowise.problem import Intervention, Problem
from dowise.problem.domains import as_mapping, label_of, refuse_hidden, text_of

__all__ = ["Case", "Labels", "Status", "labels_of"]

Labels = dict[str, str | None]
Status = Literal["pending", "done", "withdrawn", "erased"]


@dataclass(slots=True)
class Case:
    """One decision: pending until its reward is told, or known to be missing, or withdrawn."""

    id: int
    event: int
    """The number of the event by which it was asked for."""
    asked_at: str
    context: dict[str, str]
    asked: Intervention
    """The arm that was decided on."""
    is_restricted: bool = False
    """Whether some arms were not allowed."""
    request_id: str | None = None
    values: Labels = field(default_factory=dict)
    """What was told, by name; None where a value is missing for good."""
    superseded: dict[str, list[str | None]] = field(default_factory=dict)
    """What was told, seen in the context or set by the arm once, and corrected since."""
    played: Intervention | None = None
    """What was done instead, if anything."""
    is_unrelated: bool = False
    """Whether it was said that what was done instead had nothing to do with the unit."""
    status: Status = "pending"
    last_event: int = 0
    """The number of the last event that changed it."""
    previous: Case | None = field(default=None, compare=False, repr=False)
    """What it was before, in the answer to a call that changed it."""
    changed: bool = field(default=False, compare=False, repr=False)
    """Whether the call that this answers changed it."""

    @property
    def arm(self) -> Intervention:
        """What was done: the arm that was decided on, unless something else was told."""
        return self.asked if self.played is None else self.played

    @property
    def known(self) -> Labels:
        """All that is known of it: the context, what was set, what was told."""
        return {**self.context, **self.values, **self.arm}

    def missing_variables(self, problem: Problem) -> tuple[str, ...]:
        """The variables that have not been told."""
        known = self.known
        return tuple(name for name in problem.graph.variables if name not in known)

    def copy(self) -> Case:
        """A case of its own, for handing out."""
        return Case(
            self.id,
            self.event,
            self.asked_at,
            {**self.context},
            self.asked,
            self.is_restricted,
            self.request_id,
            {**self.values},
            {name: [*old] for name, old in self.superseded.items()},
            self.played,
            self.is_unrelated,
            self.status,
            self.last_event,
        )

    # -- what it may be told ------------------------------------------------------------------

    def check_open(self, verb: str) -> None:
        """Raise unless something can still be said of it."""
        if self.status == "erased":
            raise ConflictError(
                f"decision {self.id} was erased: nothing of it can be {verb} any more"
            )
        if self.status == "withdrawn":
            raise ConflictError(
                f"decision {self.id} was withdrawn: nothing of it can be {verb} any more. "
                "`import` brings what was seen in as a record of its own"
            )

    def repeats(self, values: Mapping[str, object], problem: Problem) -> bool:
        """Whether all of this was told or known before, perhaps corrected since.

        What an arm set that was not played after all leaves its variable open: a value of it is
        news, even the one that the arm set. Variables that the problem no longer has are compared
        by their texts.
        """
        known = self.known
        for name, value in values.items():
            domain = problem.domains.get(name)
            label = text_of(value) if domain is None else label_of(name, value, domain)
            if name not in known or label not in (known[name], *self.superseded.get(name, ())):
                return False
        return bool(values)

    def new_values(self, labels: Labels, played: Intervention | None) -> Labels:
        """What of this is new; what contradicts what was told is an error that names both."""
        arm = self.arm if played is None else played
        self._check_set(labels, arm)
        fresh, old = {}, False
        for name, label in labels.items():
            known = self.context.get(name) if name in self.context else self.values.get(name)
            if name in arm or (name in (*self.context, *self.values) and known == label):
                continue
            if name in self.context:
                raise ConflictError(self._conflict(name, known, label, "asked with"))
            if name not in self.values:
                fresh[name] = label
            elif label in self.superseded.get(name, ()):
                old = True
            else:
                raise ConflictError(self._conflict(name, known, label, "told"))
        if old and fresh:  # no mere repetition of an earlier tell
            name = next(x for x in labels if labels[x] in self.superseded.get(x, ()))
            raise ConflictError(self._conflict(name, self.values[name], labels[name], "amended to"))
        return fresh

    def superseded_values(self, labels: Labels) -> dict[str, str]:
        """What of this was told once and is another value now, in words."""
        return {
            name: f"{name}={_shown(label)} was told before and amended to "
            f"{_shown(self.known[name])} since"
            for name, label in labels.items()
            if label in self.superseded.get(name, ()) and self.known[name] != label
        }

    def changes_from(self, earlier: Case) -> list[str]:
        """What was known of it earlier and is otherwise now, context included, in words."""
        now = self.known
        return [
            f"{name} is {_shown(now[name])} now; it was {_shown(label)}"
            for name, label in earlier.known.items()
            if name in now and now[name] != label
        ]

    def changed_values(self, labels: Labels, arm: Intervention) -> Labels:
        """What an amendment changes, where `arm` was done."""
        self._check_set({**self.values, **labels}, arm)
        for name, label in labels.items():
            if name in self.context and label is None:
                raise DowiseError(f"{name} is context, which is always seen: give its value")
            if name not in (*self.context, *self.values, *self.arm, *arm):
                raise DowiseError(
                    f"{name} of decision {self.id} has not been told: `tell` tells it, `amend` "
                    "corrects what was told"
                )
        known = {**self.context, **self.values, **arm}
        return {
            name: label
            for name, label in labels.items()
            if name not in arm and (name not in known or known[name] != label)
        }

    def check_played(self, played: Intervention, is_unrelated: bool) -> bool:
        """Whether it is news that this was done instead; a contradiction is an error."""
        if self.played is None and played == self.asked:
            return False
        if self.played == played and self.is_unrelated == is_unrelated:
            return False
        if self.played is not None:
            raise ConflictError(
                f"decision {self.id}: it was told that {self.played} was played"
                f"{' for an unrelated reason' if self.is_unrelated else ''}, and now {played}"
                f"{' for an unrelated reason' if is_unrelated else ''}: `amend` corrects it"
            )
        self._check_set(self.values, played)
        return True

    def _check_set(self, labels: Labels, arm: Intervention) -> None:
        for name, label in labels.items():
            if name in arm and label not in (None, arm[name]):
                raise DowiseError(
                    f"decision {self.id}: {arm} set {name}={arm[name]}, but {name}={label} was "
                    "told; if something else was done, say what (`played`)"
                )

    def _conflict(self, name: str, known: str | None, label: str | None, how: str) -> str:
        return (
            f"decision {self.id}: {name} was {how} {_shown(known)}, and now {_shown(label)}: "
            "`amend` corrects it"
        )

    # -- keeping it ---------------------------------------------------------------------------

    def row(self) -> str:
        """The case as a line of a snapshot: the same text for the same case."""
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
        cls, row: list[Any], arm_of: Callable[[dict[str, str]], Intervention]
    ) -> Case:
        """The way back from `row`; `arm_of` gives the intervention with some settings."""
        number, event, status, last, *rest = row
        if status == "erased":
            return cls(number, event, "", {}, Intervention(), status="erased", last_event=last)
        at, context, asked, restricted, request, values, before, played, unrelated = rest
        return cls(
            number,
            event,
            at,
            context,
            arm_of(asked),
            restricted,
            request,
            values,
            before,
            None if played is None else arm_of(played),
            unrelated,
            status,
            last,
        )

    def as_dict(self, problem: Problem) -> dict[str, Any]:
        """For JSON."""
        where = {"event": self.event, "last_event": self.last_event}
        if self.status == "erased":
            return {"id": self.id, "status": "erased", **where}
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
            **where,
        }

    @classmethod
    def from_dict(cls, page: Mapping[str, Any]) -> Case:
        """The way back from `as_dict`."""
        number, event, last = page["id"], page["event"], page["last_event"]
        if page["status"] == "erased":
            return cls(number, event, "", {}, Intervention(), status="erased", last_event=last)
        played = page["played"]
        return cls(
            number,
            event,
            page["asked_at"],
            dict(page["context"]),
            Intervention(page["asked"]),
            page["restricted"],
            page["request_id"],
            dict(page["values"]),
            {name: [*old] for name, old in page["before"].items()},
            None if played is None else Intervention.parse(played),
            page["unrelated"],
            page["status"],
            last,
            cls.from_dict(page["earlier"]) if page.get("earlier") else None,
            page.get("changed", False),
        )

    def __str__(self) -> str:
        seen = ", ".join(f"{name}={_shown(label)}" for name, label in self.values.items())
        return f"decision {self.id}, {self.arm}, {self.status}{': ' if seen else ''}{seen}"


def _shown(label: str | None) -> str:
    return "missing" if label is None else label


def labels_of(problem: Problem, values: Mapping[str, object] | None, what: str) -> Labels:
    """What a user gives, as labels of the problem's variables."""
    labels: Labels = {}
    for name, value in as_mapping(values, what).items():
        if name not in problem.domains:
            refuse_hidden(name, problem.hidden, f"{what} has a value for a hidden variable: ")
            raise DowiseError(
                f"{what} names {name!r}, which is no variable of the problem"
                f"{suggestion(str(name), problem.graph.variables)}"
            )
        labels[name] = label_of(name, value, problem.domains[name])
    return labels
