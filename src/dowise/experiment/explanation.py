"""Explanation of a decision: what was known then, and what each arm was expected to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from dowise._core.codec import JsonResult, to_json
from dowise._core.document import (
    Block,
    BulletList,
    Document,
    Documented,
    Heading,
    Table,
    format_number,
    pluralize,
)
from dowise.experiment.ask import LiveDecision
from dowise.experiment.case import Case
from dowise.experiment.status import MAX_SHOWN_ARMS, ArmSummary

_COMMON = ("delta", "gain", "best", "pair")
_REWARDS = ("means", "index")  # of the arms, scaled


@dataclass(frozen=True, eq=False)
class Explanation(JsonResult, Documented):
    """A decision, and what was known when it was made.

    `str(explanation)` is a readable summary.
    """

    decision: LiveDecision
    policy: str
    case: Case
    """The decision with what was told of it since."""
    records: int
    """Number of decisions with an outcome at the time."""
    pending: int
    """Number of pending decisions at the time."""
    imported: int
    """Number of imported records at the time."""
    then: ArmSummary
    """The arms in its context, by what was known then."""
    is_complete: bool
    """True if nothing that was known then was erased since."""

    def rows(self) -> list[dict[str, Any]]:
        """Return for each arm its probability, and what it was expected to earn, cost and teach.

        `bits` is the expected information about which arm is best, None if the policy did not use
        it. `own` has the policy's other figures of each arm, rewards in the user's units.
        """
        decision, then = self.decision, self.then
        chances, figures = decision.probabilities, decision.figures
        none: list[float | None] = [None] * len(then.arms)
        costs, gains = figures.get("delta") or none, figures.get("gain") or none
        allowed = {*decision.allowed}
        rows = []
        for i, arm in enumerate(then.arms):
            cost, gain = costs[i], gains[i]
            rows.append({
                "arm": str(arm),
                "allowed": arm in allowed,
                "probability": None if chances is None else float(chances[i]),
                "mean": float(then.mean[i]),
                "low": float(then.low[i]),
                "high": float(then.high[i]),
                "best": float(then.best[i]),
                "cost": self._cost(i, cost),
                "bits": None if gain is None else gain / log(2),
                "own": {name: self._in_units(name, figures[name][i]) for name in self.own},
            })  # fmt: skip
        return rows

    def _cost(self, i: int, cost: float | None) -> float | None:
        """Return the expected loss against the best allowed arm, if it is known."""
        if cost is not None:
            return cost * self.decision.problem.payoff.span
        is_restricted = len(self.decision.allowed) < len(self.then.arms)
        return None if is_restricted else float(self.then.regret[i])

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the policy's figures of each arm, apart from cost, gain and P(best)."""
        arms = len(self.then.arms)
        return tuple(
            name
            for name, value in self.decision.figures.items()
            if name not in _COMMON and isinstance(value, list) and len(value) == arms
        )

    def _in_units(self, name: str, value: Any) -> Any:
        # Policies use rewards in [0, 1]; a figure that is not a number stays as it is.
        if name not in _REWARDS or not isinstance(value, int | float):
            return value
        return self.decision.problem.payoff.unscale(value)

    def figure(self, path: str | Path) -> None:
        """Draw the intervals as they were then to a .png, .svg or .pdf file."""
        from dowise.experiment.plots import draw, intervals_then

        draw(intervals_then(self), path)

    def sentences(self) -> list[str]:
        """Return the explanation in sentences."""
        decision, case = self.decision, self.case
        context = ", ".join(f"{name}={label}" for name, label in decision.context.items())
        known = f"the outcomes of {pluralize(self.records, 'decision')}"
        if self.imported:
            known += f" and {pluralize(self.imported, 'imported record')}"
        lines = [
            f"Decision {decision.id} was asked for at {decision.at}"
            f"{f', in the context {context}' if context else ''}.",
            f"Known then: {known}; {self.pending} pending.",
        ]
        if not self.is_complete:
            lines.append(
                "Something that was known then was erased since, so the arms may have looked "
                "different to the policy."
            )
        if len(decision.allowed) < len(self.then.arms):
            lines.append(
                f"{len(decision.allowed)} of {pluralize(len(self.then.arms), 'arm')} were allowed."
            )
        if decision.imagined:
            lines.append(
                "It is part of a batch: the policy imagined outcomes of "
                f"{pluralize(decision.imagined, 'decision')} before it in the batch, and decided "
                "as if they were known. Its reason and its own figures include them; means, "
                "intervals and P(best) do not."
            )
        chance = decision.probability
        with_chance = "" if chance is None else f" with probability {chance:.3g}"
        why = f": {decision.reason}" if decision.reason else ""
        lines.append(f"The policy {self.policy} chose {decision.arm}{with_chance}{why}.")
        lines.append(f"Since then: {case}.")
        lines += [
            f"Its context was amended since: {name} changed from {decision.context[name]} to {now}."
            for name, now in case.context.items()
            if decision.context.get(name, now) != now
        ]
        return lines

    def document(self) -> Document:
        """Return the sentences, and a table of the arms as they looked then."""
        return Document(tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        first, *rest = self.sentences()
        yield Heading(first)
        yield BulletList(tuple(rest))
        rows, names = self.rows(), self.own
        if len(rows) > MAX_SHOWN_ARMS:
            rows = sorted(rows, key=lambda row: (-(row["probability"] or 0.0), -row["best"]))
        bits = ("bits",) if any(row["bits"] is not None for row in rows) else ()
        columns = ("arm", "probability", "mean", "90 % interval", "P(best)", "cost", *bits)
        yield Heading("The arms, by what was known then")
        yield Table(
            (*columns, *names),
            tuple(
                (
                    row["arm"],
                    _format(row["probability"]) if row["allowed"] else "not allowed",
                    format_number(row["mean"]),
                    f"{format_number(row['low'])} to {format_number(row['high'])}",
                    f"{row['best']:.2f}",
                    _format(row["cost"]),
                    *(_format(row[name]) for name in bits),
                    *map(_format, row["own"].values()),
                )
                for row in rows
            ),
            right=("probability", "mean", "P(best)", "cost", "bits", *names),
        )
        notes = ["cost: expected loss of one play against the best allowed arm"]
        if bits:
            notes.append("bits: expected information about which arm is best")
        if names:
            notes.append(f"{', '.join(names)}: figures of the policy")
        yield BulletList(tuple(notes))

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        decision = self.decision
        data: dict[str, Any] = to_json(
            {
                **decision.to_json(),
                "policy": self.policy,
                "known": {
                    "event": decision.event - 1,
                    "records": self.records,
                    "pending": self.pending,
                    "imported": self.imported,
                    "complete": self.is_complete,
                    "imagined": decision.imagined,
                },
                "arms": self.rows(),
                "then": self.then.as_dict(),
                "now": self.case.as_dict(decision.problem),
            }
        )
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Any = None) -> Explanation:
        """Inverse of `as_dict`, under the problem that held then."""
        known = data["known"]
        return cls(
            LiveDecision.from_dict(data, problem),
            data["policy"],
            Case.from_dict(data["now"]),
            known["records"],
            known["pending"],
            known["imported"],
            ArmSummary.from_dict(data["then"], problem),
            known["complete"],
        )


def _format(value: object) -> str:
    if isinstance(value, int | float):
        return format_number(value)
    return "" if value is None else str(value)
