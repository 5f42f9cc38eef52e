"""The belief that a look at an experiment reads, whoever decides in it."""

from __future__ import annotations

from typing import Any

from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment.by_arm import ArmByArm
from dowise.experiment.plan import Plan, is_bayesian
from dowise.model.alternatives import count_alternatives
from dowise.policies.continuing import Continuing, value_of_continuing
from dowise.policies.policy import BayesianPolicy
from dowise.problem import Problem
from dowise.problem.prior import plain_prior

__all__ = ["continued", "evidence_seconds", "policy_for_looks", "prior_of"]


def policy_for_looks(plan: Plan, evidence: bool = False) -> BayesianPolicy:
    """What learns the journal for a look, under the prior of the plan.

    Where the graph is too large for a posterior, which is no obstacle to policies that look at
    rewards only, it is those rewards that it learns from (`ArmByArm`).
    """
    problem, prior = plan.problem, prior_of(plan)
    try:
        return BayesianPolicy(problem, belief=Belief(problem, prior, evidence=evidence))
    except DowiseError as error:
        if evidence or is_bayesian(plan.policy):
            raise
        return BayesianPolicy(
            problem, belief=Belief(problem, posterior=ArmByArm(problem, str(error)))
        )


def prior_of(plan: Plan) -> Any:
    """The prior of the tables, where the policy has one; other priors are of other things."""
    own = plain_prior(plan.problem.prior)
    return plan.options.get("prior", own) if is_bayesian(plan.policy) else own


def evidence_seconds(problem: Problem, records: int) -> float:
    """About how long it takes to weigh so many records against the graph.

    Each takes a microsecond for each edge that the graph lacks, and getting ready for such an edge
    as long as 500 records (measured on the built-in problems).
    """
    return 1e-6 * count_alternatives(problem) * (records + 500)


def continued(belief: Belief, rounds: int | None) -> tuple[Continuing | None, list[str]]:
    """What so many rounds more are worth, if that is asked for, or why that is not known."""
    if rounds is None:
        return None, []
    if isinstance(belief.posterior, ArmByArm):
        return None, [
            "What more rounds are worth is not known: it takes worlds from a posterior of the "
            "graph, which is too large for one."
        ]
    return value_of_continuing(belief, rounds), []
