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
    from dowise.model import model_of

    few = len(problem.arms) <= FEW_ARMS
    return "commit-kg" if few and model_of(problem).has_trace else "ids"


def real_name(policy: str, problem: Problem) -> str:
    """The name itself, or what "best" means for this problem."""
    return best_name(problem) if policy == "best" else policy


def best(
    problem: Problem,
    prior: Prior | None = None,
    belief: Belief | Posterior | None = None,
) -> BayesianPolicy:
    """What we recommend today: `commit-kg` with up to twelve arms, `ids` with more.

    It is `ids`, too, where `commit-kg` can't be: with a posterior of one's own, or where its
    circuit would be too large.
    """
    if best_name(problem) == "ids" or not _counts(belief):
        from dowise.policies.ids import InformationDirectedSampling

        return InformationDirectedSampling(problem, prior=prior, belief=belief)
    from dowise.policies.commit_kg import CommitKG

    return CommitKG(problem, prior, belief)


def _counts(belief: Belief | Posterior | None) -> bool:
    """Whether a posterior that was given counts, as ours do."""
    from dowise.belief import Dirichlet, Mixture

    posterior = getattr(belief, "posterior", belief)
    return posterior is None or isinstance(posterior, Dirichlet | Mixture)
