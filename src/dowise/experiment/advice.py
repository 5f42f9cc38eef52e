"""What to consider before an experiment begins: a graph in which an arrow may be missing.

>>> from dowise.problem import load_problem
>>> advice = soft_advice(load_problem("task2"))
>>> len(advice.edges), advice.arms, advice.more_arms, advice.times
(7, 9, 5, 8)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dowise.belief import Belief, Mixture
from dowise.errors import DowiseError, DowiseWarning
from dowise.graph.edges import EdgeName
from dowise.policies.registry import policy_info
from dowise.problem import Problem

__all__ = ["SOFT", "SoftAdvice", "floor_advice", "soft_advice", "softened"]

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
    if not isinstance(posterior, Mixture) or posterior.shared.structures.cut:
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
