"""What to consider before an experiment begins: a graph in which an arrow may be missing.

>>> from dowise.problem import load_problem
>>> advice = soft_advice(load_problem("task2"))
>>> len(advice.edges), advice.arms, advice.more_arms, advice.times
(7, 9, 5, 8)
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dowise._core.document import pluralize
from dowise.belief import Belief
from dowise.errors import DowiseError, DowiseWarning
from dowise.graph.edges import EdgeName
from dowise.policies.registry import policy_info
from dowise.problem import Problem

SOFT = 0.1
"""The prior of an edge that was not drawn, as docs/hidden.md measured it."""
MOST_EDGES = 12
"""With so many, building the posterior takes a fraction of a second, and a round milliseconds."""

_SURE = ("bayes-optimal", "commit-kg", "kl-ucb", "ucb", "z2-kl-ucb")
"""Policies that play one arm with probability 1."""


@dataclass(frozen=True)
class SoftAdvice:
    """What the soft graph of a problem would add, and cost."""

    edges: tuple[str, ...]
    """The edges that would be doubtful besides those that are."""
    arms: int
    """How many arms there would be."""
    more_arms: int
    """How many of them there are not now."""

    @property
    def times(self) -> int:
        """About how many times as long a round takes; measured with `ids` and up to 10 edges."""
        return len(self.edges) + 1

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "soft": SOFT,
            "edges": list(self.edges),
            "arms": self.arms,
            "times_as_long": self.times,
        }

    def __str__(self) -> str:
        plural = "" if self.more_arms == 1 else "s"
        arms = f", {self.more_arms} more arm{plural} to choose from" if self.more_arms else ""
        return (
            f"Is an arrow missing in the graph? Write soft = {SOFT:g} into the problem file, and "
            "edges that are not drawn may be there after all: the data decide. In our "
            "worlds a missing arrow cost ten times less that way. The price: about a tenth more "
            f"regret where the graph is right{arms}, and a round takes about {self.times} times as "
            "long (docs/hidden.md)."
        )


def soft_advice(problem: Problem, policy: str = "best") -> SoftAdvice | None:
    """What the soft graph would mean, or None where it is no option.

    It is none where there is one already, where the policy does not learn by the graph or can't
    have doubtful edges, where no arrow could be missing (for hidden causes alone it did not help
    measurably), and where the problem is too large for it: above `MOST_EDGES`, or where some sets
    of edges would have to be left out.
    """
    info = policy_info(policy)
    if problem.soft is not None or info.learns_from != "everything" or info.needs_all_causes:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DowiseWarning)
            soft = softened(problem)
            edges = tuple(edge for edge in soft.edge_priors if edge not in problem.edge_priors)
            arrows = [edge for edge in edges if not EdgeName.parse(edge).is_bidirected]
            if not arrows or len(edges) > MOST_EDGES:
                return None
            posterior = Belief(soft).posterior
    except (DowiseError, DowiseWarning):
        return None
    if posterior.is_settled or posterior.shared.structures.cut:
        return None
    return SoftAdvice(edges, len(soft.arms), len({*soft.arms} - {*problem.arms}))


def floor_advice(policy: str, options: Mapping[str, Any]) -> str | None:
    """What a floor is for, where a policy plays without chance; None where there is some."""
    is_sure = policy in _SURE or options.get("choice") == "deterministic"
    if not is_sure or options.get("floor"):
        return None
    return (
        "It leaves nothing to chance. With the option floor=0.1 every arm that may be the best "
        "has one, which `evaluate` needs."
    )


def softened(problem: Problem, soft: float = SOFT) -> Problem:
    """The same problem with a prior for edges that were not drawn."""
    _, (options,) = problem.__reduce__()
    return Problem(**{**options, "soft": soft})


@dataclass(frozen=True)
class RecordUsage:
    """How many past records there are, and how many the policy that holds can't learn from."""

    decisions: int
    """The decisions that have an outcome, or were withdrawn after something was told."""
    imported: int
    left_out: dict[str, int] = field(default_factory=dict)
    """How many are not learned from, by the reason."""
    reward: str = ""
    unused: dict[str, dict[str, int]] = field(default_factory=dict)
    """What was seen in the others and could not be used, by variable and reason: how often."""

    @property
    def all(self) -> int:
        """Decisions and imported records together."""
        return self.decisions + self.imported

    @property
    def used(self) -> int:
        """How many of them are learned from."""
        return self.all - sum(self.left_out.values())

    @property
    def is_in_vain(self) -> bool:
        """Whether there are records, and none of their rewards counts."""
        lost = sum(self.unused.get(self.reward, {}).values())
        return self.all > 0 and self.used <= lost

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "decisions": self.decisions,
            "imported": self.imported,
            "used": self.used,
            "left_out": dict(self.left_out),
            "unused": {name: dict(reasons) for name, reasons in self.unused.items()},
            "reward": self.reward,
        }

    @classmethod
    def from_dict(cls, page: Mapping[str, Any]) -> RecordUsage:
        """The way back from `as_dict`."""
        unused = {name: dict(reasons) for name, reasons in page["unused"].items()}
        left_out = dict(page["left_out"])
        return cls(page["decisions"], page["imported"], left_out, page["reward"], unused)

    def in_words(self) -> str:
        """What counts, in one sentence, and a line for each reason why others don't."""
        if not self.all:
            return "There are no past records yet."
        decided = pluralize(self.decisions, "decision")
        brought = f" and {self.imported:,} imported" if self.imported else ""
        of = f"{self.all:,} past records ({decided}{brought})"
        if not self.left_out:
            first = f"All {of} count under it."
        elif self.used:
            first = f"{self.used:,} of {of} count under it. Left out:"
        else:
            first = f"NONE of {of} counts under it, so nothing is known. Left out:"
        reasons = (f"  {n:,}: {why}" for why, n in self.left_out.items())
        return "\n".join([first, *reasons, *self.unused_in_words()])

    def unused_in_words(self) -> Iterator[str]:
        """A sentence for each variable that could not be used, and why; the reward first."""
        for name, reasons in sorted(self.unused.items(), key=lambda one: one[0] != self.reward):
            for why, times in reasons.items():
                many = pluralize(times, "record")
                whole = "NOT USED in any of" if times >= self.used else "not used in"
                lost = ", so nothing is known of the arms" if name == self.reward else ""
                yield f"{name} is {whole} {many}: {why}{lost if times >= self.used else ''}."
