"""What we recommend, by evidence: docs/beyond.md, evidence/beyond.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dowise.belief.prior import Prior
from dowise.problem import Problem

if TYPE_CHECKING:
    from dowise.belief import Belief, Posterior
    from dowise.policies.policy import BayesianPolicy

__all__ = ["best", "best_name", "real_name"]

FEW_ARMS = 12  # with more of them commit-kg was not better than ids


def best_name(problem: Problem) -> str:
    """The name of the policy that we recommend for a problem."""
    return "commit-kg" if len(problem.arms) <= FEW_ARMS else "ids"


def real_name(policy: str, problem: Problem) -> str:
    """The name itself, or what "best" means for this problem."""
    return best_name(problem) if policy == "best" else policy


def best(
    problem: Problem,
    prior: Prior | None = None,
    belief: Belief | Posterior | None = None,
    widen: bool | float = False,
) -> BayesianPolicy:
    """What we recommend today: `commit-kg` with up to twelve arms, `ids` with more."""
    if best_name(problem) == "ids":
        from dowise.policies.ids import InformationDirectedSampling

        return InformationDirectedSampling(problem, prior=prior, belief=belief, widen=widen)
    from dowise.policies.commit_kg import CommitKG

    return CommitKG(problem, prior, belief, widen)
