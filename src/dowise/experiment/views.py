"""What can be asked of an experiment without changing it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dowise.belief import Belief
from dowise.errors import DowiseError, import_extra
from dowise.experiment.asking import Asked
from dowise.experiment.audit import Audit, audit, head_of
from dowise.experiment.case import Case
from dowise.experiment.evaluation import Evaluation, evaluate
from dowise.experiment.event import Event, Head
from dowise.experiment.explain import Explanation
from dowise.experiment.export import columns_of, export
from dowise.experiment.facts import Facts
from dowise.experiment.journal import Journal
from dowise.experiment.learner import Learner
from dowise.experiment.logged import Log
from dowise.experiment.plan import Plan
from dowise.experiment.status import Status, arms_status, contexts_of, shares, summary
from dowise.policies.policy import BayesianPolicy
from dowise.policies.registry import policy_factory
from dowise.problem import Problem
from dowise.problem.problem import Context

__all__ = ["Views"]


class Views:
    """An experiment as one looks at it; every look first takes in what was written since."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __repr__(self) -> str:
        return f"<Experiment {self.name} in {self._journal.storage}>"

    # -- what holds ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The experiment's name in its store."""
        return self._journal.name

    @property
    def problem(self) -> Problem:
        """What is decided, as of now."""
        return self._journal.facts().plan.problem

    @property
    def policy(self) -> str:
        """The name of the policy that decides, as of now."""
        return self._journal.facts().plan.policy

    @property
    def head(self) -> Head:
        """Number and hash of the last event; kept elsewhere, they find a cut or rewritten journal.

        `str(head)` is what `audit` takes.
        """
        head = self._journal.facts().head
        assert head is not None
        return head

    @property
    def belief(self) -> Belief:
        """What is known as of now, whatever the policy makes of it: a copy, yours to play with."""
        with self._journal.lock:
            return self._belief().copy()

    def _belief(self, evidence: bool = False) -> Belief:
        """The policy's own belief, or one made for the look where it has none."""
        facts, own = self._journal.facts(), self._journal.learner().policy
        if isinstance(own, BayesianPolicy) and not evidence:
            return own.belief
        belief = Belief(facts.plan.problem, _prior_of(facts.plan), evidence=evidence)
        looker = BayesianPolicy(facts.plan.problem, belief=belief)
        self._journal.follower(looker).follow(facts)
        return belief

    # -- looking ------------------------------------------------------------------------------

    def pending(self) -> tuple[Case, ...]:
        """The decisions whose reward was not told yet, oldest first."""
        return tuple(case for case in self.records() if case.status == "pending")

    def records(self) -> tuple[Case, ...]:
        """All decisions, with what was told of them."""
        with self._journal.lock:
            return tuple(case.copy() for case in self._journal.facts().cases.values())

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        """The journal itself: what happened, event by event."""
        return self._journal.storage.read(self.name, after, upto)

    def status(self, context: Context = None, evidence: bool = True) -> Status:
        """What each arm is expected to bring in a context, or in each of them, and what is lacking.

        `evidence` also looks at what the records say against the graph.
        """
        with self._journal.lock:
            facts = self._journal.facts()
            cases = {number: case.copy() for number, case in facts.cases.items()}
            belief, left_out = self._belief().copy(), self._journal.learner().left_out
            alarms = self._belief(evidence=True).evidence().alarms if evidence else None
        problem = facts.plan.problem
        is_one = context is not None or not problem.context
        contexts = [context] if is_one else contexts_of(problem, cases.values())
        found = [arms_status(belief, one, cases.values()) for one in contexts]
        if not is_one:
            weights = shares([one.context for one in found], cases.values())
            found = [replace(one, weight=w) for one, w in zip(found, weights, strict=True)]
        return Status(
            self.name, problem, facts.plan.policy, tuple(found), is_one, summary(cases),
            tuple(case for case in cases.values() if case.status == "pending"),
            belief.edges(), alarms, facts.imported, belief.unused, left_out,
        )  # fmt: skip

    def explain(self, id: int) -> Explanation:  # noqa: A002 (what decisions call it)
        """What was known when a decision was made, and why it came out as it did."""
        with self._journal.lock:
            facts = self._journal.facts()
            case = facts.case(id).copy()
            if case.status == "erased":
                raise DowiseError(f"decision {id} was erased: there is nothing left to explain")
            event, plan = self._journal.event(case.event), facts.plan_at(case.event)
        then = Facts(self.name)
        then.apply_all(self.events(upto=event.number - 1))
        policy = BayesianPolicy(plan.problem, _prior_of(plan))
        learner = Learner(plan, policy, self._journal.columns)
        learner.follow(then)
        cases = then.cases.values()
        return Explanation(
            Asked(event, plan.problem),
            plan.policy,
            case,
            sum(one.status == "done" for one in cases),
            sum(one.status == "pending" for one in cases),
            then.imported,
            arms_status(policy.belief, event.says["context"], cases),
            event.says["known"]["cases"] == f"{then.marks:032x}",
        )

    def evaluate(self, policy: Any, level: float = 0.9, **options: Any) -> Evaluation:
        """What another policy, or always the same arm, would have earned on the same decisions."""
        with self._journal.lock:
            facts = self._journal.facts()
        log = Log(facts, self.events(), self._journal.columns)
        return evaluate(facts.plan.problem, log.steps(), policy, level=level, **options)

    def export(self, path: str | Path) -> int:
        """Write all decisions to a .csv or .parquet file; the number of rows."""
        with self._journal.lock:
            return export(self._journal.facts(), self._asked(), path)

    def frame(self) -> Any:
        """The same table for pandas."""
        pandas = import_extra("pandas", "simulate", "a table")
        with self._journal.lock:
            return pandas.DataFrame(columns_of(self._journal.facts(), self._asked()))

    def _asked(self) -> list[Event]:
        return self._journal.storage.read(self.name, kinds=("asked",))

    def audit(self, head: object = None, track: Any = None) -> Audit:
        """Whether the journal is whole, and every decision follows from what was known then.

        `head` is one that was kept elsewhere, `experiment.head` or its text.
        """
        return audit(self._journal.storage, self.name, head_of(head), track)


def _prior_of(plan: Plan) -> Any:
    """The prior of the tables, where the policy has one; other priors are of other things."""
    factory: Any = policy_factory(plan.policy)
    is_bayesian = isinstance(factory, type) and issubclass(factory, BayesianPolicy)
    return plan.options.get("prior", 1.0) if is_bayesian else 1.0
