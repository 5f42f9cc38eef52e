"""Why a decision came out as it did: what was known then, and what each arm was expected to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from dowise._core.codec import to_json
from dowise.experiment.ask import LiveDecision
from dowise.experiment.case import Case
from dowise.experiment.status import ArmsStatus
from dowise.problem import Problem

_COMMON = ("delta", "gain", "best", "pair")
_REWARDS = ("means", "index")  # of the arms, scaled


@dataclass(frozen=True, eq=False)
class Explanation:
    """A decision, and what was known when it was made."""

    decision: LiveDecision
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
        """For each arm: its probability, what it was expected to bring, to cost and to teach.

        `bits` is what playing it was expected to tell about which arm is best, None where the
        policy did not reckon with that. `own` has what else the policy had of each arm, rewards
        among it in the user's units.
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
        """Against the best of the allowed arms, where that is known."""
        if cost is not None:
            return cost * self.decision.problem.payoff.span
        is_restricted = len(self.decision.allowed) < len(self.then.arms)
        return None if is_restricted else float(self.then.regret[i])

    @property
    def own(self) -> tuple[str, ...]:
        """The names of what the policy had of each arm, besides cost, gain and P(best)."""
        arms = len(self.then.arms)
        return tuple(
            name
            for name, value in self.decision.figures.items()
            if name not in _COMMON and isinstance(value, list) and len(value) == arms
        )

    def _in_units(self, name: str, value: Any) -> Any:
        """Policies reckon with rewards in [0, 1]; a figure that is no number stays what it is."""
        if name not in _REWARDS or not isinstance(value, int | float):
            return value
        return self.decision.problem.payoff.unscale(value)

    def figure(self, path: str | Path) -> None:
        """Draw the intervals as they were then to a .png, .svg or .pdf file."""
        from dowise.experiment.plots import draw, intervals_then

        draw(intervals_then(self), path)

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
            lines.append(
                "Something that was known then was erased since, so what each arm looked like may "
                "differ from what the policy saw."
            )
        if len(decision.allowed) < len(self.then.arms):
            lines.append(
                f"Allowed were {len(decision.allowed)} of {_count(len(self.then.arms), 'arm')}."
            )
        if decision.imagined:
            lines.append(
                f"It is one of a batch: of {_count(decision.imagined, 'decision')} before it in "
                "the batch the policy imagined outcomes, and decided as if they were known. Its "
                "reason and figures of its own count those; means, intervals and P(best) do not."
            )
        chance = decision.probability
        with_chance = "" if chance is None else f" with probability {chance:.3g}"
        why = f": {decision.reason}" if decision.reason else ""
        lines.append(f"The policy {self.policy} chose {decision.arm}{with_chance}{why}.")
        lines.append(f"Since then: {case}.")
        lines += [
            f"Its context was amended since: {name} is {now} now; it was {decision.context[name]}."
            for name, now in case.context.items()
            if decision.context.get(name, now) != now
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.in_words()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        decision = self.decision
        page: dict[str, Any] = to_json(
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
                "then": self.then.as_dict(decision.problem),
                "now": self.case.as_dict(decision.problem),
            }
        )
        return page

    @classmethod
    def from_dict(cls, page: Mapping[str, Any], problem: Problem) -> Explanation:
        """The way back from `as_dict`, under the problem that held then."""
        known = page["known"]
        return cls(
            LiveDecision.from_dict(page, problem),
            page["policy"],
            Case.from_dict(page["now"]),
            known["records"],
            known["pending"],
            known["imported"],
            ArmsStatus.from_dict(page["then"], problem),
            known["complete"],
        )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
