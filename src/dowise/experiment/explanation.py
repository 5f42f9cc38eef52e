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
from dowise.experiment.status import MAX_SHOWN_ARMS, ArmSummary, context_text
from dowise.policies.graph_free import prediction_sentence

_SHOWN_APART = ("delta", "gain", "best", "pair")  # figures that have a column, or none
_SCALED_REWARDS = ("means", "index")  # figures in [0, 1], as policies use rewards


@dataclass(frozen=True, eq=False)
class Explanation(JsonResult, Documented):
    """A decision, and what was known when it was made.

    `str(explanation)` is a readable summary.

    Examples
    --------
    >>> from dowise import Experiment
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", "random", seed=1)
    >>> experiment.explain(experiment.ask().id).sentences()[1]
    'Known at that time: the outcomes of 0 decisions; 0 decisions were pending.'
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
    """Summary of the arms in its context, with what was known at the time."""
    is_complete: bool
    """True if nothing that was known at the time has been erased since."""
    graph_free_log_ratio: float | None = None
    """Log likelihood ratio of the rewards predicted until then, without the graph against with it;
    None if the graph decides alone."""
    graph_free_rewards: Mapping[str, int] | None = None
    """Number of rewards until then, as in `Status`."""

    def rows(self) -> list[dict[str, Any]]:
        """Return for each arm its probability, and what it was expected to earn, cost and teach.

        `bits` is the expected information about which arm is best, None if the policy did not use
        it. `own` has the policy's other figures of each arm, rewards in the user's units.
        """
        decision, then = self.decision, self.then
        chances, figures = decision.probabilities, decision.figures
        unknown: list[float | None] = [None] * len(then.arms)
        costs, gains = figures.get("delta") or unknown, figures.get("gain") or unknown
        is_restricted = len(decision.allowed) < len(then.arms)
        rows = []
        for i, arm in enumerate(then.arms):
            cost, gain = costs[i], gains[i]
            if cost is not None:
                cost *= decision.problem.payoff.span
            elif not is_restricted:  # as the best of all arms is allowed
                cost = float(then.regret[i])
            rows.append(
                {
                    "arm": str(arm),
                    "allowed": arm in decision.allowed,
                    "probability": None if chances is None else float(chances[i]),
                    "mean": float(then.mean[i]),
                    "low": float(then.low[i]),
                    "high": float(then.high[i]),
                    "best": float(then.best[i]),
                    "is_assumption": bool(then.is_assumption[i]),
                    "cost": cost,
                    "bits": None if gain is None else gain / log(2),
                    "own": {name: self._policy_figure(name, i) for name in self.policy_figures},
                }
            )
        return rows

    @property
    def policy_figures(self) -> tuple[str, ...]:
        """Names of the policy's figures of each arm, apart from cost, gain and P(best)."""
        return tuple(
            name
            for name, value in self.decision.figures.items()
            if name not in _SHOWN_APART
            and isinstance(value, list)
            and len(value) == len(self.then.arms)
        )

    def _policy_figure(self, name: str, i: int) -> Any:
        value = self.decision.figures[name][i]
        if name in _SCALED_REWARDS and isinstance(value, int | float):
            return self.decision.problem.payoff.unscale(value)
        return value

    def figure(self, path: str | Path) -> None:
        """Draw the intervals of that time to a .png, .svg or .pdf file."""
        from dowise.experiment.plots import draw_intervals, explanation_chart

        draw_intervals(explanation_chart(self), path)

    def sentences(self) -> list[str]:
        """Return the explanation in sentences."""
        decision, case = self.decision, self.case
        context = f", in the context {context_text(self.then)}" if decision.context else ""
        known = f"the outcomes of {pluralize(self.records, 'decision')}"
        if self.imported:
            known += f" and {pluralize(self.imported, 'imported record')}"
        was = "was" if self.pending == 1 else "were"
        lines = [
            f"Decision {decision.id} was made at {decision.at}{context}.",
            f"Known at that time: {known}; {pluralize(self.pending, 'decision')} {was} pending.",
        ]
        if not self.is_complete:
            lines.append(
                "Something that was known at that time has been erased since, so the arms may have "
                "looked different to the policy."
            )
        if len(decision.allowed) < len(self.then.arms):
            lines.append(
                f"{len(decision.allowed)} of {pluralize(len(self.then.arms), 'arm')} were allowed."
            )
        if self.graph_free_log_ratio:
            ratio, rewards = self.graph_free_log_ratio, self.graph_free_rewards
            lines.append(f"{prediction_sentence(decision.problem, ratio, rewards)}.")
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
        lines.append(f"What is recorded of it now: {case}.")
        lines += [
            f"Its context was amended: {name} changed from {decision.context[name]} to {label}."
            for name, label in case.context.items()
            if decision.context.get(name, label) != label
        ]
        return lines

    def document(self) -> Document:
        """Return the sentences, and a table of the arms as they looked at the time."""
        return Document(tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        heading, *details = self.sentences()
        yield Heading(heading)
        yield BulletList(tuple(details))
        rows, names = self.rows(), self.policy_figures
        if len(rows) > MAX_SHOWN_ARMS:
            rows = sorted(rows, key=lambda row: (-(row["probability"] or 0.0), -row["best"]))
        bits = ("bits",) if any(row["bits"] is not None for row in rows) else ()
        columns = ("arm", "probability", "mean", "90 % interval", "P(best)", "cost", *bits)
        yield Heading("The arms, with what was known at that time")
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
                    *([_format(row["bits"])] if bits else []),
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
        if self.graph_free_log_ratio is not None:
            data["graph_free_log_ratio"] = self.graph_free_log_ratio
        if self.graph_free_rewards is not None:
            data["graph_free_rewards"] = to_json(self.graph_free_rewards)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Any = None) -> Explanation:
        """Inverse of `as_dict`, under the problem of the time."""
        known = data["known"]
        return cls(
            decision=LiveDecision.from_dict(data, problem),
            policy=data["policy"],
            case=Case.from_dict(data["now"]),
            records=known["records"],
            pending=known["pending"],
            imported=known["imported"],
            then=ArmSummary.from_dict(data["then"], problem),
            is_complete=known["complete"],
            graph_free_log_ratio=data.get("graph_free_log_ratio"),
            graph_free_rewards=data.get("graph_free_rewards"),
        )


def _format(value: object) -> str:
    if isinstance(value, int | float):
        return format_number(value)
    return "" if value is None else str(value)
