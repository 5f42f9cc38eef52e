"""Advice before an experiment begins.

>>> from dowise.problem import load_problem
>>> advice = soft_advice(load_problem("task2"))
>>> len(advice.edges), advice.arms, advice.more_arms, advice.times
(8, 9, 5, 9)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dowise._core.document import pluralize
from dowise.belief import Belief
from dowise.errors import DowiseError, DowiseWarning
from dowise.graph.edges import EdgeName
from dowise.policies.registry import is_deterministic, policy_info
from dowise.problem import Problem

SOFT = 0.1
"""Prior probability of an edge that was not drawn, as measured in docs/hidden.md."""
MAX_EDGES = 12
"""With more edges, building the posterior takes seconds, and a round more than milliseconds."""


@dataclass(frozen=True)
class SoftAdvice:
    """Effects of a soft graph on a problem: edges, arms and time."""

    edges: tuple[str, ...]
    """Edges that would become doubtful."""
    arms: int
    """Number of arms with the soft graph."""
    more_arms: int
    """Number of arms that it adds."""

    @property
    def times(self) -> int:
        """Factor by which a round takes longer; measured with `ids` and up to 10 edges."""
        return len(self.edges) + 1

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "soft": SOFT,
            "edges": list(self.edges),
            "arms": self.arms,
            "times_as_long": self.times,
        }

    def __str__(self) -> str:
        more = pluralize(self.more_arms, "more arm")
        arms = f", {more} to choose from" if self.more_arms else ""
        return (
            f"Could an arrow be missing in the graph? With soft = {SOFT:g} in the problem file, "
            "edges that are not drawn may exist after all, and the data decide. In our simulations "
            "a missing arrow then cost ten times less. The price: about 10 % more regret if the "
            f"graph is right{arms}, and a round takes about {self.times} times as long "
            "(docs/hidden.md)."
        )


def soft_advice(problem: Problem, policy: str = "best") -> SoftAdvice | None:
    """Return the effects of a soft graph, or None if it is not an option.

    It is not an option if the graph is soft already, if the policy does not use the graph or can't
    handle doubtful edges, if no arrow could be missing (a soft graph for hidden causes alone had no
    measurable benefit), or if the problem is too large: more than `MAX_EDGES` edges, or so many
    sets of edges that some are left out.
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
            if not arrows or len(edges) > MAX_EDGES:
                return None
            posterior = Belief(soft).posterior
    except (DowiseError, DowiseWarning):
        return None
    if posterior.is_settled or posterior.shared.structures.cut:
        return None
    return SoftAdvice(edges, len(soft.arms), len({*soft.arms} - {*problem.arms}))


def floor_advice(policy: str, options: Mapping[str, Any]) -> str | None:
    """Return the advice to use a floor, if the policy is deterministic; otherwise None."""
    always_one_arm = is_deterministic(policy) or options.get("choice") == "deterministic"
    if not always_one_arm or options.get("floor"):
        return None
    return (
        "This policy is deterministic. The option floor=0.1 gives every arm that may be the best a "
        "chance, which the evaluation of other policies needs."
    )


def softened(problem: Problem, soft: float = SOFT) -> Problem:
    """Return the problem with a prior for edges that were not drawn."""
    _, (options,) = problem.__reduce__()
    return Problem(**{**options, "soft": soft})
