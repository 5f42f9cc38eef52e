"""Several decisions before any of their outcomes is known.

A Thompson draw is made for each of them. A policy whose choice is a function of what it has learned
would ask for the same arm each time: index policies count what they asked for (`expect`), and those
that reckon with what a play teaches *imagine* its outcome. It is drawn from the posterior
predictive distribution, given all that was imagined before, and learned by a stand-in for the
policy, which makes the next decision. So imagined outcomes are to the stand-in what real ones are
to the policy: on average they leave its means where they are, and what was asked for before has
less to teach.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dowise.belief import Belief, Dirichlet, Mixture
from dowise.belief.predictive import can_imagine, imagine
from dowise.checks import whole_number
from dowise.errors import DowiseError
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context

if TYPE_CHECKING:
    from dowise.policies.decision import Decision
    from dowise.policies.policy import BayesianPolicy

__all__ = ["StandIn", "contexts_of_batch", "decide_imagining", "has_stand_in"]


def contexts_of_batch(problem: Problem, contexts: int | Iterable[Context]) -> list[dict[str, str]]:
    """A checked context for each decision; a number of them where the problem has no context."""
    if isinstance(contexts, bool) or not isinstance(contexts, Iterable):
        count = whole_number("contexts", contexts, 1)
        if problem.context:
            raise DowiseError(
                f"contexts={count}: give a list of contexts, one for each decision, because this "
                f"problem has a context ({', '.join(problem.context)})"
            )
        return [{} for _ in range(count)]
    if isinstance(contexts, str | Mapping):
        raise DowiseError("decide_many takes a list of contexts, one for each decision")
    checked = [problem.context_labels(problem.context_codes(one)) for one in contexts]
    if not checked:
        raise DowiseError("decide_many takes a list of contexts, one at least")
    return checked


class StandIn:
    """A policy as it would decide if what it asked for had the outcomes that are imagined."""

    def __init__(self, policy: BayesianPolicy) -> None:
        own = policy.belief
        self.policy = copy(policy)
        self.policy.belief = Belief(own.problem, posterior=own.posterior.copy())
        self.policy.began_to_stand_in()

    def suppose(self, arm: ArmLike, context: Context, source: np.random.Generator) -> None:
        """Imagine the outcome of an arm that is being played in this context, and learn it."""
        belief = self.policy.belief
        posterior, problem = belief.posterior, belief.problem
        assert isinstance(posterior, Dirichlet | Mixture)
        codes = problem.context_codes(context)
        record = imagine(posterior, problem.arm_index(arm), codes, source)
        posterior.learn(record)
        self.policy.note(record, 1)


def has_stand_in(policy: BayesianPolicy) -> bool:
    """Whether a policy imagines outcomes, and its posterior can."""
    return policy.imagines and can_imagine(policy.belief.posterior)


def decide_imagining(
    policy: BayesianPolicy,
    contexts: list[dict[str, str]],
    source: np.random.Generator,
    allowed: Iterable[ArmLike] | None,
) -> list[Decision]:
    """A decision for each context, with the outcomes of those before it imagined."""
    decisions, stand_in = [policy.decide(contexts[0], source, allowed)], None
    for before, context in pairwise(contexts):
        stand_in = StandIn(policy) if stand_in is None else stand_in
        stand_in.suppose(decisions[-1].arm, before, source)
        decisions.append(stand_in.policy.decide(context, source, allowed))
    return decisions
