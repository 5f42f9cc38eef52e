"""Where an experiment stands: what each arm is expected to bring, how sure that is, what is open.

Everything follows from the posterior as of now (`dowise.experiment.arms`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import prod
from typing import TYPE_CHECKING, Any

from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.checks import real_number
from dowise.errors import import_extra
from dowise.experiment.arms import ArmsStatus, Came, arms_status, contexts_of, draws_for
from dowise.experiment.by_arm import ArmByArm
from dowise.experiment.case import Case
from dowise.experiment.maker import now
from dowise.plain import amount, number_from, plain
from dowise.problem import Problem
from dowise.problem.problem import Context

if TYPE_CHECKING:
    from dowise.policies.continuing import Continuing

__all__ = ["Status", "looked_at", "waiting"]


@dataclass(frozen=True, eq=False)
class Status:
    """Where an experiment stands; `str(status)` says it in words."""

    name: str
    problem: Problem
    policy: str
    contexts: tuple[ArmsStatus, ...]
    is_one_context: bool
    """Whether it was asked for one context only, or there is only one."""
    counts: dict[str, int]
    """How many decisions are pending, done, withdrawn, erased; restricted; played otherwise."""
    pending: tuple[Case, ...]
    """The decisions whose reward was not told yet, oldest first."""
    edges: dict[str, float]
    """How likely each doubtful edge is to be there."""
    evidence: Evidence | None
    """What the records say against the graph; None where that was not looked at."""
    imported: int
    """How many records were brought in."""
    unused: dict[str, dict[str, int]] = field(default_factory=dict)
    """What was seen and could not be used, by variable and reason: how often."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Records that the policy left out as a whole, by the reason."""
    notes: tuple[str, ...] = ()
    """What to know about these numbers."""
    has_contexts: bool = True
    """Whether any decision had one of these contexts; without any all weigh alike."""
    incomplete: tuple[Case, ...] = ()
    """Decisions whose reward was told, but of which something does not count until more is."""
    continuing: Continuing | None = None
    """What so many rounds more are worth; None where that was not asked for."""

    @property
    def stopping(self) -> float:
        """What stopping now is expected to cost a round, over the contexts as they came."""
        return float(sum(one.weight * one.stopping for one in self.contexts))

    @property
    def expected_regret_of_stopping(self) -> float:
        """The same as `stopping`."""
        return self.stopping

    @property
    def alarms(self) -> tuple[str, ...] | None:
        """Edges that the graph seems to lack; None where the evidence was not looked at."""
        return None if self.evidence is None else self.evidence.alarms

    def should_stop(self, tolerance: float) -> bool:
        """Whether the advice is to stop."""
        return self.stopping <= real_number("tolerance", tolerance, 0)

    def advice(self, tolerance: float) -> str:
        """Whether to stop, if a loss of `tolerance` a round does not matter."""
        cost, limit = f"{amount(self.stopping)} a round", f"your tolerance of {tolerance:g}"
        if self.should_stop(tolerance):
            return (
                "You can stop: playing what looks best from now on is expected to cost "
                f"{cost}, which is within {limit}.{self._but_not_everywhere(tolerance)}"
            )
        return f"Go on: stopping now is expected to cost {cost}, which is above {limit}."

    def not_yet(self, tolerance: float) -> tuple[ArmsStatus, ...]:
        """The contexts in which stopping now is expected to cost more than the tolerance."""
        return tuple(one for one in self.contexts if one.stopping > tolerance)

    def _but_not_everywhere(self, tolerance: float) -> str:
        above = self.not_yet(tolerance)
        if not above:
            return ""
        worst = max(above, key=lambda one: one.stopping)
        where = ", ".join(f"{name}={label}" for name, label in worst.context.items())
        more = f", and above it in {len(above) - 1} more contexts" if len(above) > 1 else ""
        came = f", which {worst.weight:.0%} of decisions had" if self.has_contexts else ""
        return f" But not where {where}{came}: there it is {amount(worst.stopping)}{more}."

    def in_words(self, tolerance: float | None = None) -> str:
        """All of it in sentences."""
        from dowise.experiment.status_words import status_in_words

        return status_in_words(self, tolerance)

    def __str__(self) -> str:
        return self.in_words()

    def frame(self) -> Any:
        """A pandas table: arm, mean, low, high, best, plays; the context first, where several."""
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The same rows as mappings."""
        names = ("mean", "low", "high", "best", "plays")
        return [
            {
                **({} if self.is_one_context else one.context),
                "arm": str(arm),
                **{name: getattr(one, name)[i].item() for name in names},
            }
            for one in self.contexts
            for i, arm in enumerate(one.arms)
        ]

    def as_dict(self, tolerance: float | None = None) -> dict[str, Any]:
        """For JSON."""
        advice = {} if tolerance is None else {
            "tolerance": tolerance, "stop": self.should_stop(tolerance),
            "advice": self.advice(tolerance),
            "not_yet": [one.context for one in self.not_yet(tolerance)],
        }  # fmt: skip
        evidence = self.evidence
        page: dict[str, Any] = plain(
            {
                "name": self.name,
                "policy": self.policy,
                "decisions": self.counts,
                "imported": self.imported,
                "expected_regret_of_stopping": self.stopping,
                **({} if self.continuing is None else {"continuing": self.continuing.as_dict()}),
                **advice,
                "contexts": [one.as_dict(self.problem) for one in self.contexts],
                "pending": [
                    self._case_page(case) | {"waiting_seconds": waiting(case)}
                    for case in self.pending
                ],
                "incomplete": [self._case_page(case) for case in self.incomplete],
                "edges": self.edges,
                "alarms": self.alarms,
                "suspected": None if evidence is None else evidence.suspected,
                "unused": self.unused,
                "left_out": self.left_out,
                "notes": self.notes,
                "evidence": None if evidence is None else evidence.as_dict(),
                "is_one_context": self.is_one_context,
                "has_contexts": self.has_contexts,
            }
        )
        return page

    def _case_page(self, case: Case) -> dict[str, Any]:
        """A decision in a list: its arm as a text."""
        return case.as_dict(self.problem) | {"arm": str(case.arm)}

    @classmethod
    def from_dict(cls, page: Mapping[str, Any], problem: Problem) -> Status:
        """The way back from `as_dict`, under the same problem."""
        from dowise.policies.continuing import Continuing

        evidence, more = page["evidence"], page.get("continuing")
        return cls(
            page["name"],
            problem,
            page["policy"],
            tuple(ArmsStatus.from_dict(one, problem) for one in page["contexts"]),
            page["is_one_context"],
            dict(page["decisions"]),
            tuple(map(Case.from_dict, page["pending"])),
            {edge: number_from(chance) for edge, chance in page["edges"].items()},
            None if evidence is None else Evidence.from_dict(evidence, problem),
            page["imported"],
            {name: dict(reasons) for name, reasons in page["unused"].items()},
            dict(page["left_out"]),
            tuple(page["notes"]),
            page["has_contexts"],
            tuple(map(Case.from_dict, page["incomplete"])),
            None if more is None else Continuing.from_dict(more),
        )


def looked_at(
    belief: Belief, context: Context, came: Came
) -> tuple[tuple[ArmsStatus, ...], list[str]]:
    """The arms in this context, or in each of them, and what to know about the numbers."""
    problem, notes = belief.problem, []
    if context is None and problem.context:
        contexts = contexts_of(problem, came)
        there = prod(len(problem.domains[name]) for name in problem.context)
        if len(contexts) < there:
            which = "that came most often" if came.times else "that come first"
            notes.append(
                f"There are {there:,} contexts: these are the {len(contexts)} {which}. Ask for any "
                "other by name."
            )
    else:
        contexts = [problem.context_labels(problem.context_codes(context))]
    if isinstance(belief.posterior, ArmByArm):
        notes.append(
            "The graph is too large for a posterior, so each arm is judged by its own rewards in "
            f"each context, whatever else was seen: {belief.posterior.why}."
        )
    draws = draws_for(belief, len(contexts))
    found = tuple(
        arms_status(belief, one, came.plays(one), draws, share)
        for one, share in zip(contexts, came.shares(contexts), strict=True)
    )
    return found, notes


def usual_tolerance(problem: Problem) -> float:
    """A loss a round that matters little, unless somebody says otherwise.

    It is a hundredth of what lies between the best and the worst reward: 0.01 from 0 to 1, and 30
    from 0 to 3,000.
    """
    return problem.payoff.span / 100


def waiting(case: Case) -> float:
    """For how many seconds a decision has been pending."""
    return max((now() - datetime.fromisoformat(case.asked_at)).total_seconds(), 0.0)
