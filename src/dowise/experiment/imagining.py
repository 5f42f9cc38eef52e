"""Within a batch: a decision that is made as if those before it had had an outcome.

The outcome of decision n is imagined on the random stream (n, 2³²) of the experiment's seed, from
what was known then and was imagined of earlier decisions of the same batch. So an audit imagines
the same. It is no record: nothing of it is kept or learned.
"""

from __future__ import annotations

from dowise.experiment.case import Case
from dowise.experiment.facts import Facts
from dowise.experiment.plan import Plan
from dowise.policies.batches import StandIn, has_stand_in
from dowise.policies.policy import BayesianPolicy, RecordPolicy
from dowise.randomness import stream

__all__ = ["Ahead", "imagines"]

_IMAGINED = 2**32  # in the key of a stream, behind the decision's number


def imagines(policy: RecordPolicy) -> bool:
    """Whether a policy imagines the outcomes of what it asked for before in the same batch."""
    return isinstance(policy, BayesianPolicy) and has_stand_in(policy)


class Ahead:
    """A policy's stand-in, and up to which decision of the batch it has imagined outcomes."""

    def __init__(self, policy: RecordPolicy, first: int) -> None:
        assert isinstance(policy, BayesianPolicy)
        self._stand_in, self._known = StandIn(policy), policy.fingerprint()
        self._first = self._next = first

    def suits(self, policy: RecordPolicy, first: int, upto: int) -> bool:
        """Whether it can go on to a later decision of a batch that begins with this one."""
        is_same = self._first == first and self._next <= upto
        return is_same and policy.fingerprint() == self._known

    def go_on(self, facts: Facts, upto: int, plan: Plan) -> BayesianPolicy:
        """Imagine the outcomes of all decisions of the batch before this one."""
        for number in range(self._next, upto):
            case = facts.cases[number]
            if _teaches(case, plan):
                source = stream(facts.seed, number, _IMAGINED)
                self._stand_in.suppose(case.arm, case.context, source)
        self._next = upto
        return self._stand_in.policy


def _teaches(case: Case, plan: Plan) -> bool:
    """Whether something will be learned of a pending decision once it is told."""
    return case.status == "pending" and (plan.learn_restricted or not case.is_restricted)
