"""What can be asked of an experiment without changing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import DowiseError, NotFoundError, import_extra
from dowise.experiment.arms import Came
from dowise.experiment.asking import Asked
from dowise.experiment.audit import Audit, audit, head_of
from dowise.experiment.by_arm import ArmByArm
from dowise.experiment.case import Case
from dowise.experiment.counted import Counted, ended_with_values
from dowise.experiment.evaluation import Evaluation, NothingToEvaluateError, evaluate
from dowise.experiment.evaluation.targets import TargetLike
from dowise.experiment.event import Event, Head
from dowise.experiment.explain import Explanation
from dowise.experiment.export import columns_of, export
from dowise.experiment.facts import Facts
from dowise.experiment.history import POINTS, History, history
from dowise.experiment.idle import Idle
from dowise.experiment.journal import Journal
from dowise.experiment.learner import Learner, barred
from dowise.experiment.logged import Log
from dowise.experiment.looking import continued, evidence_seconds, looker
from dowise.experiment.plan import Plan
from dowise.experiment.status import Status, looked_at, summary
from dowise.experiment.tracking import Track, tracked
from dowise.picture.drawing import check_path
from dowise.policies.continuing import Continuing, value_of_continuing
from dowise.policies.registry import is_known, policy_info
from dowise.problem import Problem
from dowise.problem.problem import Context

__all__ = ["Views"]

_PATIENCE = 1.0  # seconds that a look may take for evidence nobody asked for


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
    def store(self) -> str:
        """Where the experiment is kept, without a password."""
        return str(self._journal.storage)

    @property
    def is_one_of_many(self) -> bool:
        """Whether the store holds other experiments too, so that a name must be given."""
        return len(self._journal.storage.experiments()) > 1

    @property
    def problem(self) -> Problem:
        """What is decided, as of now."""
        return self._journal.facts().plan.problem

    @property
    def policy(self) -> str:
        """The name of the policy that decides, as of now."""
        return self._journal.facts().plan.policy

    @property
    def options(self) -> dict[str, Any]:
        """Those of the policy, the prior among them, as of now."""
        return deepcopy(dict(self._journal.facts().plan.options))

    @property
    def learn_restricted(self) -> bool:
        """Whether decisions among fewer than all arms are learned from, as of now."""
        return self._journal.facts().plan.learn_restricted

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
            self._journal.facts()
            return self._journal.belief().copy()

    # -- looking ------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """How many decisions there are of each kind."""
        with self._journal.lock:
            return summary(self._journal.facts().cases)

    def pending(self) -> tuple[Case, ...]:
        """The decisions whose reward was not told yet, oldest first."""
        with self._journal.lock:
            return _pending(self._journal.facts())

    def records(self) -> tuple[Case, ...]:
        """All decisions, with what was told of them."""
        with self._journal.lock:
            return tuple(case.copy() for case in self._journal.facts().cases.values())

    def case(self, id: int) -> Case:  # noqa: A002 (what decisions call it)
        """One decision, with what was told of it."""
        with self._journal.lock:
            return self._journal.facts().case(id).copy()

    def decision(self, id: int) -> Asked:  # noqa: A002 (what decisions call it)
        """One decision as it was made: how likely each arm was to be chosen, and why this one."""
        with self._journal.lock:
            facts = self._journal.facts()
            case = facts.case(id)
            if case.status == "erased":
                raise NotFoundError(f"decision {id} was erased: there is nothing left to see")
            return Asked(self._journal.event(case.event), facts.plan_at(case.event).problem)

    def idle(self, id: int) -> list[str]:  # noqa: A002 (what decisions call it)
        """What was told of a decision and does not count, or not yet, and why: sentences."""
        with self._journal.lock:
            facts = self._journal.facts()
            plan, case = facts.plan, facts.case(id)
            why = barred(case, plan)
            if why is not None:
                return [f"Nothing is learned from it: {why}"]
            return Idle(plan.problem).in_words(case) if _learns_from_all(plan) else []

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        """The journal itself: what happened, event by event."""
        return self._journal.storage.read(self.name, after, upto)

    def status(
        self, context: Context = None, evidence: bool | None = None, rounds: int | None = None
    ) -> Status:
        """What each arm is expected to bring in a context, or in each of them, and what is lacking.

        `evidence` also looks at what the records say against the graph; where that would take more
        than about a second it is left out, with a note, unless you say True. With `rounds` it also
        says what so many rounds more are worth (`value_of_continuing`).
        """
        with self._journal.lock:
            facts, learner = self._journal.facts(), self._journal.learner()
            plan, imported, counts = facts.plan, facts.imported, summary(facts.cases)
            came = Came(plan.problem, facts.cases.values())
            pending = _pending(facts)
            belief, left_out = self._journal.belief().copy(), learner.left_out
            idle = Idle(plan.problem)
            unused = _without(belief.lacking(), idle.times(pending))
            incomplete = tuple(
                case.copy() for case in facts.cases.values() if idle.may_still_count(case)
            )
            if evidence is None and isinstance(belief.posterior, ArmByArm):
                evidence = False  # what keeps it from the graph's posterior keeps it from these too
            found, note = self._evidence(evidence, facts)
        arms, notes = looked_at(belief, context, came)
        more, why = continued(belief, rounds)
        is_one = context is not None or not plan.problem.context
        return Status(
            self.name, plan.problem, plan.policy, arms, is_one, counts, pending, belief.edges(),
            found, imported, unused, left_out, (*notes, *note, *why), bool(came.times), incomplete,
            more,
        )  # fmt: skip

    def evidence(self, wanted: bool | None = None) -> tuple[Evidence | None, str]:
        """What the records say against the graph, and else why that was not looked at.

        Where it would take more than about a second it is left out, unless it is wanted.
        """
        with self._journal.lock:
            posterior = self._journal.belief().posterior
            if isinstance(posterior, ArmByArm) and not wanted:
                return None, f"The graph is too large for that: {posterior.why}"
            found, why = self._evidence(wanted, self._journal.facts())
            return found, " ".join(why)

    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        """What so many rounds more are expected to gain over staying with what looks best now.

        In all contexts, as the belief expects them; `dowise.policies.continuing` says how.
        """
        return value_of_continuing(self.belief, rounds, worlds)

    def counted(self) -> Counted:
        """How many past records the policy that holds learns from, and why not from the others."""
        with self._journal.lock:
            facts, learner = self._journal.facts(), self._journal.learner()
            ended, problem = ended_with_values(facts.cases.values()), facts.plan.problem
            unused = {}
            if _learns_from_all(facts.plan):
                lacking = self._journal.belief().lacking()
                unused = _without(lacking, Idle(problem).times(_pending(facts)))
            return Counted(ended, facts.imported, learner.left_out, problem.reward, unused)

    def _evidence(self, wanted: bool | None, facts: Facts) -> tuple[Evidence | None, list[str]]:
        """What the records say against the graph, or why that was not looked at."""
        if wanted is False:
            return None, []
        records = facts.imported + len(facts.cases)
        if wanted is None and evidence_seconds(facts.plan.problem, records) > _PATIENCE:
            why = "with so many records it takes a while (evidence=True, --evidence)"
        else:
            try:
                return self._journal.belief(evidence=True).evidence(), []
            except DowiseError as error:
                if wanted:
                    raise
                why = str(error)
        return None, [f"What the records say against the graph was not looked at: {why}"]

    def history(
        self, context: Context = None, points: int = POINTS, track: Track | None = None
    ) -> History:
        """How sure the experiment was along its journal, at so many points of it."""
        with self._journal.lock:
            facts = self._journal.facts()
            plan, head, came = (
                facts.plan,
                facts.head,
                Came(facts.plan.problem, facts.cases.values()),
            )
        assert head is not None
        events = tracked(self.events(upto=head.number), head.number, track)
        learner = Learner(plan, looker(plan), self._journal.columns)
        return history(self.name, learner, events, head.number, came, context, points)

    def figure(
        self,
        path: str | Path,
        context: Context = None,
        tolerance: float | None = None,
        track: Track | None = None,
    ) -> None:
        """Draw where the experiment stands, and how it came there, to a .png, .svg or .pdf file."""
        from dowise.experiment.figures import draw, figure_data

        check_path(path)
        status = self.status(context, evidence=False)
        past = self.history(context, track=track)
        draw(figure_data(status, past, self.records(), tolerance), path)

    def explain(
        self,
        id: int,  # noqa: A002 (what decisions call it)
        track: Track | None = None,
    ) -> Explanation:
        """What was known when a decision was made, and why it came out as it did."""
        with self._journal.lock:
            facts = self._journal.facts()
            case = facts.case(id).copy()
            if case.status == "erased":
                raise DowiseError(f"decision {id} was erased: there is nothing left to explain")
            event, plan = self._journal.event(case.event), facts.plan_at(case.event)
        then = Facts(self.name)
        then.apply_all(tracked(self.events(upto=event.number - 1), event.number - 1, track))
        policy = looker(plan)
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
            looked_at(policy.belief, event.says["context"], Came(plan.problem, cases))[0][0],
            event.says["known"]["cases"] == f"{then.marks:032x}",
        )

    def evaluate(
        self,
        policy: TargetLike,
        options: Mapping[str, Any] | None = None,
        level: float = 0.9,
        track: Track | None = None,
    ) -> Evaluation:
        """What another policy, or always the same arm, would have earned on the same decisions.

        `options` are those of a policy that is given by its name.
        """
        events = self.events()
        facts = Facts(self.name)  # of its own: others may go on writing
        facts.apply_all(events)
        log = Log(facts, tracked(events, len(events), track), self._journal.columns)
        model = looker(facts.plan).belief
        try:
            found = evaluate(facts.plan.problem, log.steps(), policy, options, level, model)
        except NothingToEvaluateError as error:
            why = "; ".join(f"{times:,}: {why}" for why, times in log.left_out.items())
            raise DowiseError(f"{error}{f' ({why})' if why else ''}") from None
        return replace(found, left_out=dict(log.left_out))

    def export(self, path: str | Path) -> int:
        """Write all decisions to a .csv or .parquet file; the number of rows."""
        with self._journal.lock:
            return export(self._journal.facts(), self._asked(), path)

    def frame(self) -> Any:
        """The same table for pandas."""
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(self.table())

    def table(self) -> dict[str, list[Any]]:
        """The same table as columns by name."""
        with self._journal.lock:
            return columns_of(self._journal.facts(), self._asked())

    def _asked(self) -> list[Event]:
        return self._journal.storage.read(self.name, kinds=("asked",))

    def audit(self, head: object = None, track: Track | None = None) -> Audit:
        """Whether the journal is whole, and every decision follows from what was known then.

        `head` is one that was kept elsewhere, `experiment.head` or its text.
        """
        return audit(self._journal.storage, self.name, head_of(head), track)


def _learns_from_all(plan: Plan) -> bool:
    """Whether its policy learns from whatever was seen; not known of one that is not registered."""
    return is_known(plan.policy) and policy_info(plan.policy).learns_from == "everything"


def _pending(facts: Facts) -> tuple[Case, ...]:
    return tuple(case.copy() for case in facts.cases.values() if case.status == "pending")


def _without(
    lacking: dict[str, dict[str, int]], pending: Counter[tuple[str, str]]
) -> dict[str, dict[str, int]]:
    """What was seen and could not be used, but for what may still come to count."""
    unused: dict[str, dict[str, int]] = {}
    for name, others in lacking.items():
        for other, times in others.items():
            left = times - pending[name, other]
            if other and other != name and left > 0:  # what no arm needs is no loss
                unused.setdefault(name, {})[f"{other} was not seen"] = left
    return unused
