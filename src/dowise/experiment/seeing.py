"""What a look takes of an experiment: all of one moment, so that others may go on meanwhile.

What is cheap to copy is copied while the journal's lock is held, and worked with afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import DowiseError
from dowise.experiment.arms import Came
from dowise.experiment.by_arm import ArmByArm
from dowise.experiment.case import Case
from dowise.experiment.facts import Facts
from dowise.experiment.idle import Idle
from dowise.experiment.journal import Journal
from dowise.experiment.looking import evidence_seconds
from dowise.experiment.plan import Plan
from dowise.policies.policy import BayesianPolicy

__all__ = ["Seen", "believed", "seen"]

_PATIENCE = 1.0  # seconds that a look may take for evidence nobody asked for

Taken = TypeVar("Taken")


class Seen(NamedTuple):
    """Where an experiment stood at some moment, but for what is believed."""

    plan: Plan
    imported: int
    counts: dict[str, int]
    """How many decisions there are of each kind."""
    ended_with_values: int
    came: Came
    pending: tuple[Case, ...]
    incomplete: tuple[Case, ...]
    left_out: dict[str, int]
    idle: Idle

    @classmethod
    def of(cls, journal: Journal, facts: Facts) -> Seen:
        """As of now, under the journal's lock."""
        tally = journal.tally()
        return cls(
            facts.plan, facts.imported, tally.counts(), tally.ended_with_values, tally.came.copy(),
            tuple(facts.pending.values()), tally.incomplete(), journal.learner().left_out,
            tally.idle,
        )  # fmt: skip

    def unused(self, belief: Belief) -> dict[str, dict[str, int]]:
        """What was seen and could not be used, but for what may still come to count."""
        pending, unused = self.idle.times(self.pending), dict[str, dict[str, int]]()
        for name, others in belief.lacking().items():
            for other, times in others.items():
                left = times - pending[name, other]
                if other and other != name and left > 0:  # what no arm needs is no loss
                    unused.setdefault(name, {})[f"{other} was not seen"] = left
        return unused


def believed(journal: Journal, take: Callable[[Facts], Taken]) -> tuple[Taken, Belief]:
    """What is known as of now, a copy, and what `take` takes of the facts at that moment."""
    with journal.looker.held() as looker:
        with journal.looking() as facts:
            taken, policy = take(facts), journal.learner().policy
            if isinstance(policy, BayesianPolicy):
                return taken, policy.belief.copy()
            news = looker.news(facts)
        return taken, looker.learn(news).copy()


def seen(
    journal: Journal, evidence: bool | None
) -> tuple[Seen, Belief, Evidence | None, list[str]]:
    """The same with what the records say against the graph, or why that was not looked at."""
    wanted, note = _wants_evidence(journal, evidence)
    if wanted:
        try:
            return *_weighed(journal), []
        except DowiseError as error:
            if evidence:
                raise
            note = [_not_looked_at(str(error))]
    return *believed(journal, lambda facts: Seen.of(journal, facts)), None, note


def _wants_evidence(journal: Journal, wanted: bool | None) -> tuple[bool, list[str]]:
    """Whether to weigh the records; where that was left open, whether it takes too long."""
    if wanted is not None:
        return wanted, []
    (problem, records), belief = believed(
        journal, lambda facts: (facts.plan.problem, facts.imported + len(facts.cases))
    )
    if isinstance(belief.posterior, ArmByArm):
        return False, []  # what keeps it from the graph's posterior keeps it from these too
    if evidence_seconds(problem, records) > _PATIENCE:
        why = "with so many records it takes a while (evidence=True, --evidence)"
        return False, [_not_looked_at(why)]
    return True, []


def _weighed(journal: Journal) -> tuple[Seen, Belief, Evidence]:
    with journal.weigher.held() as weigher:
        (found, news), belief = believed(
            journal, lambda facts: (Seen.of(journal, facts), weigher.news(facts))
        )
        return found, belief, weigher.learn(news).evidence()


def _not_looked_at(why: str) -> str:
    return f"What the records say against the graph was not looked at: {why}"
