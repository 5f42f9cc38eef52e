"""Why a decision came out as it did: what was known then, and what each arm was expected to do."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

from dowise.experiment.arms import ArmsStatus
from dowise.experiment.asking import Asked
from dowise.experiment.case import Case
from dowise.plain import plain

__all__ = ["Explanation"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """A decision, and what was known when it was made."""

    decision: Asked
    policy: str
    case: Case
    """What was told of it since."""
    records: int
    """How many decisions something was known of then."""
    pending: int
    """How many were pending then."""
    imported: int
    then: ArmsStatus
    """The arms in its context, by what was known then."""
    is_complete: bool
    """Whether all that was known then is known still: nothing of it was erased."""

    def rows(self) -> list[dict[str, Any]]:
        """For each arm: its probability, what it was expected to bring, to cost and to teach."""
        decision, then = self.decision, self.then
        figures = decision.figures
        cost, taught = figures.get("delta"), figures.get("gain")
        span = decision.problem.payoff.span
        rows = []
        for i, arm in enumerate(then.arms):
            row: dict[str, Any] = {
                "arm": str(arm),
                "allowed": arm in decision.allowed,
                "probability": None
                if decision.probabilities is None
                else float(decision.probabilities[i]),
                "mean": float(then.mean[i]),
                "low": float(then.low[i]),
                "high": float(then.high[i]),
                "best": float(then.best[i]),
                "cost": float(then.regret[i]),
            }
            if cost is not None and cost[i] is not None:
                row["cost"] = cost[i] * span
            row["bits"] = None if taught is None or taught[i] is None else taught[i] / log(2)
            rows.append(row)
        return rows

    def in_words(self) -> str:
        """A few sentences."""
        decision, case = self.decision, self.case
        seen = ", ".join(f"{name}={label}" for name, label in decision.context.items())
        known = f"the outcomes of {_count(self.records, 'decision')}"
        if self.imported:
            known += f" and {_count(self.imported, 'imported record')}"
        lines = [
            f"Decision {decision.id} was asked for at {decision.at}"
            f"{f', in the context {seen}' if seen else ''}.",
            f"Known then: {known}; {self.pending} pending.",
        ]
        if not self.is_complete:
            lines.append("Something that was known then was erased since, so figures may differ.")
        if len(decision.allowed) < len(self.then.arms):
            lines.append(
                f"Allowed were {len(decision.allowed)} of {_count(len(self.then.arms), 'arm')}."
            )
        chance = decision.probability
        with_chance = "" if chance is None else f" with probability {chance:.3g}"
        lines.append(
            f"The policy {self.policy} chose {decision.arm}{with_chance}: {decision.reason}."
        )
        lines.append(f"Since then: {case}.")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        decision = self.decision
        page: dict[str, Any] = plain(
            {
                **decision.as_dict(),
                "asked_at": decision.at,
                "policy": self.policy,
                "known": {
                    "event": decision.event - 1,
                    "records": self.records,
                    "pending": self.pending,
                    "imported": self.imported,
                    "complete": self.is_complete,
                },
                "arms": self.rows(),
                "figures": decision.figures,
                "now": self.case.as_dict(decision.problem),
            }
        )
        return page


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
