"""What can be asked of an experiment without changing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import DowiseError, NotFoundError
from dowise.experiment.advice import RecordUsage
from dowise.experiment.ask import LiveDecision
from dowise.experiment.audit import Audit, audit, head_of
from dowise.experiment.base import Shown
from dowise.experiment.case import Case
from dowise.experiment.case import Status as CaseStatus
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.counters import UnusedValues
from dowise.experiment.evaluation import Evaluation, NothingToEvaluateError, evaluate
from dowise.experiment.evaluation.replay import EvaluationLog, TargetLike
from dowise.experiment.event import Event, Head
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import POINTS, History, history
from dowise.experiment.journal import Journal
from dowise.experiment.progress import Track, tracked
from dowise.experiment.read_model import (
    IndependentArmsPosterior,
    continued,
    evidence_seconds,
    policy_for_looks,
)
from dowise.experiment.records import columns_of
from dowise.experiment.replay import PolicyReplay, exclusion_reason
from dowise.experiment.state import ExperimentState, Outline
from dowise.experiment.status import PlayCounts, Status, looked_at
from dowise.policies.base import BayesianPolicy
from dowise.policies.registry import is_known, policy_info
from dowise.policies.value_of_continuing import Continuing, value_of_continuing
from dowise.problem import Problem
from dowise.problem.problem import Context

_PATIENCE = 1.0  # seconds that a look may take for evidence nobody asked for

Taken = TypeVar("Taken")


class Seen(NamedTuple):
    """Where an experiment stood at some moment, but for what is believed."""

    config: ExperimentConfig
    imported: int
    counts: dict[str, int]
    """How many decisions there are of each kind."""
    ended_with_values: int
    came: PlayCounts
    pending: tuple[Case, ...]
    incomplete: tuple[Case, ...]
    left_out: dict[str, int]
    idle: UnusedValues

    @classmethod
    def of(cls, journal: Journal, state: ExperimentState) -> Seen:
        """As of now, under the journal's lock."""
        tally = journal.tally()
        return cls(
            state.config, state.imported, tally.counts(), tally.ended_with_values,
            tally.came.copy(), tuple(state.pending.values()), tally.incomplete(),
            journal.learner().left_out, tally.idle,
        )  # fmt: skip

    def unused(self, belief: Belief) -> dict[str, dict[str, int]]:
        """What was seen and could not be used, but for what may still come to count."""
        pending, unused = self.idle.times(self.pending), dict[str, dict[str, int]]()
        for name, others in belief.lacking().items():
            for other, times in others.items():
                left = times - pending[name, other]
                if other and other != name and left > 0:  # what no arm needs is no loss
                    unused.setdefault(name, {})[f"{other} was not seen"] = left
        return unused


def believed(journal: Journal, take: Callable[[ExperimentState], Taken]) -> tuple[Taken, Belief]:
    """What is known as of now, a copy, and what `take` takes of the state at that moment."""
    with journal.looker.held() as looker:
        with journal.looking() as state:
            taken, policy = take(state), journal.learner().policy
            if isinstance(policy, BayesianPolicy):
                return taken, policy.belief.copy()
            news = looker.news(state)
        return taken, looker.learn(news).copy()


def seen(
    journal: Journal, evidence: bool | None
) -> tuple[Seen, Belief, Evidence | None, list[str]]:
    """The same with what the records say against the graph, or why that was not looked at."""
    wanted, note = _wants_evidence(journal, evidence)
    if wanted:
        try:
            return *_weighed(journal), []
        except DowiseError as error:
            if evidence:
                raise
            note = [_not_looked_at(str(error))]
    return *believed(journal, lambda state: Seen.of(journal, state)), None, note


def _wants_evidence(journal: Journal, wanted: bool | None) -> tuple[bool, list[str]]:
    """Whether to weigh the records; where that was left open, whether it takes too long."""
    if wanted is not None:
        return wanted, []
    (problem, records), belief = believed(
        journal, lambda state: (state.config.problem, state.imported + len(state.cases))
    )
    if isinstance(belief.posterior, IndependentArmsPosterior):
        return False, []  # what keeps it from the graph's posterior keeps it from these too
    if evidence_seconds(problem, records) > _PATIENCE:
        why = "with so many records it takes a while (evidence=True, --evidence)"
        return False, [_not_looked_at(why)]
    return True, []


def _weighed(journal: Journal) -> tuple[Seen, Belief, Evidence]:
    with journal.weigher.held() as weigher:
        (found, news), belief = believed(
            journal, lambda state: (Seen.of(journal, state), weigher.news(state))
        )
        return found, belief, weigher.learn(news).evidence()


def _not_looked_at(why: str) -> str:
    return f"What the records say against the graph was not looked at: {why}"


class Views(Shown):
    """An experiment as one looks at it; every look first takes in what was written since.

    A look takes what it needs in a moment. While it works with that, others may ask, tell and look.
    """

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
        return self._config.problem

    @property
    def policy(self) -> str:
        """The name of the policy that decides, as of now."""
        return self._config.policy

    @property
    def options(self) -> dict[str, Any]:
        """Those of the policy, the prior among them, as of now."""
        return deepcopy(dict(self._config.options))

    @property
    def _config(self) -> ExperimentConfig:
        with self._journal.looking() as state:
            return state.config

    @property
    def learn_restricted(self) -> bool:
        """Whether decisions among fewer than all arms are learned from, as of now."""
        return self._config.learn_restricted

    @property
    def head(self) -> Head:
        """Number and hash of the last event; kept elsewhere, they find a cut or rewritten journal.

        `str(head)` is what `audit` takes.
        """
        with self._journal.looking() as state:
            assert state.head is not None
            return state.head

    def outline(self) -> Outline:
        """What holds, and how far the journal is, all of one moment."""
        with self._journal.looking() as state:
            return state.outline()

    @property
    def belief(self) -> Belief:
        """What is known as of now, whatever the policy makes of it: a copy, yours to play with."""
        _, belief = believed(self._journal, lambda _: None)
        return belief

    # -- looking ------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """How many decisions there are of each kind."""
        with self._journal.looking():
            return self._journal.tally().counts()

    def pending(self) -> tuple[Case, ...]:
        """The decisions whose reward was not told yet, oldest first."""
        with self._journal.looking() as state:
            cases = [*state.pending.values()]
        return _copies(cases)

    def records(self) -> tuple[Case, ...]:
        """All decisions, with what was told of them."""
        with self._journal.looking() as state:
            cases = [*state.cases.values()]
        return _copies(cases)

    def decisions(
        self, after: int = 0, limit: int | None = None, status: CaseStatus | None = None
    ) -> tuple[Case, ...]:
        """The first of them behind a number, of one kind where that is asked for: no more than
        these are copied, however many there are."""
        with self._journal.looking() as state:
            cases = state.cases
            numbers = state.pending if status == "pending" else range(after + 1, len(cases) + 1)
            found = (
                cases[number] for number in numbers
                if number > after and status in (None, cases[number].status)
            )  # fmt: skip
            some = [*islice(found, limit)]
        return _copies(some)

    def case(self, id: int) -> Case:  # noqa: A002 (what decisions call it)
        """One decision, with what was told of it."""
        with self._journal.looking() as state:
            return state.case(id).copy()

    def decision(self, id: int) -> LiveDecision:  # noqa: A002 (what decisions call it)
        """One decision as it was made: how likely each arm was to be chosen, and why this one."""
        _, event, config = self._as_made(id, "see")
        return LiveDecision(event, config.problem)

    def _as_made(self, number: int, verb: str) -> tuple[Case, Event, ExperimentConfig]:
        """A decision, the event by which it was made, and what held then."""
        with self._journal.looking() as state:
            case = state.case(number)
            config = state.config_at(case.event)
        event = self._journal.event(case.event)
        if event.is_erased:
            raise NotFoundError(f"decision {number} was erased: there is nothing left to {verb}")
        return case.copy(), event, config

    def idle(self, id: int) -> list[str]:  # noqa: A002 (what decisions call it)
        """What was told of a decision and does not count, or not yet, and why: sentences."""
        with self._journal.looking() as state:
            config, case = state.config, state.case(id)
        why = exclusion_reason(case, config)
        if why is not None:
            return [f"Nothing is learned from it: {why}"]
        return UnusedValues(config.problem).in_words(case) if _learns_from_all(config) else []

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
        then, belief, found, note = seen(self._journal, evidence)
        problem = then.config.problem
        arms, notes = looked_at(belief, context, then.came)
        more, why = continued(belief, rounds)
        return Status(
            self.name, problem, then.config.policy, arms,
            context is not None or not problem.context, then.counts, _copies(then.pending),
            belief.edges(), found, then.imported,
            then.unused(belief), then.left_out, (*notes, *note, *why), bool(then.came.times),
            _copies(then.incomplete), more,
        )  # fmt: skip

    def judged(self, evidence: bool | None = None) -> tuple[Belief, Evidence | None, str]:
        """What is known as of now, and what the records say against the graph, or why that was not
        looked at; as in `status`, without working out what arms are expected to bring."""
        _, belief, found, note = seen(self._journal, evidence)
        return belief, found, " ".join(note)

    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        """What so many rounds more are expected to gain over staying with what looks best now.

        In all contexts, as the belief expects them; `dowise.policies.value_of_continuing` says how.
        """
        return value_of_continuing(self.belief, rounds, worlds)

    def counted(self) -> RecordUsage:
        """How many past records the policy that holds learns from, and why not from the others."""
        then, belief = believed(self._journal, lambda state: Seen.of(self._journal, state))
        return RecordUsage(
            then.ended_with_values,
            then.imported,
            then.left_out,
            then.config.problem.reward,
            then.unused(belief) if _learns_from_all(then.config) else {},
        )

    def history(
        self, context: Context = None, points: int = POINTS, track: Track | None = None
    ) -> History:
        """How sure the experiment was along its journal, at so many points of it."""
        with self._journal.looking() as state:
            config, head, came = state.config, state.head, self._journal.tally().came.copy()
        assert head is not None
        events = tracked(self.events(upto=head.number), head.number, track)
        learner = PolicyReplay(config, policy_for_looks(config), self._journal.columns)
        return history(self.name, learner, events, head.number, came, context, points)

    def explain(
        self,
        id: int,  # noqa: A002 (what decisions call it)
        track: Track | None = None,
    ) -> Explanation:
        """What was known when a decision was made, and why it came out as it did."""
        case, event, config = self._as_made(id, "explain")
        then = ExperimentState(self.name)
        then.apply_all(tracked(self.events(upto=event.number - 1), event.number - 1, track))
        policy = policy_for_looks(config)
        learner = PolicyReplay(config, policy, self._journal.columns)
        learner.sync(then)
        cases = then.cases.values()
        return Explanation(
            LiveDecision(event, config.problem),
            config.policy,
            case,
            sum(one.status == "done" for one in cases),
            sum(one.status == "pending" for one in cases),
            then.imported,
            looked_at(policy.belief, event.payload["context"], PlayCounts(config.problem, cases))[
                0
            ][0],
            event.payload["known"]["cases"] == then.digest(),
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
        state = ExperimentState(self.name)  # of its own: others may go on writing
        state.apply_all(events)
        log = EvaluationLog(state, tracked(events, len(events), track), self._journal.columns)
        model = policy_for_looks(state.config).belief
        try:
            found = evaluate(state.config.problem, log.steps(), policy, options, level, model)
        except NothingToEvaluateError as error:
            why = "; ".join(f"{times:,}: {why}" for why, times in log.left_out.items())
            raise DowiseError(f"{error}{f' ({why})' if why else ''}") from None
        return replace(found, left_out=dict(log.left_out))

    def table(self) -> dict[str, list[Any]]:
        """All decisions by columns, as they are exported (`dowise.experiment.records`)."""
        with self._journal.looking() as state:
            then = state.copy()  # first, so that every decision of it has its event
        return columns_of(then, self._journal.storage.read(self.name, kinds=("asked",)))

    def audit(self, head: object = None, track: Track | None = None) -> Audit:
        """Whether the journal is whole, and every decision follows from what was known then.

        `head` is one that was kept elsewhere, `experiment.head` or its text, of whose hash the
        first 12 digits will do (see the audit's notes for what these prove).
        """
        return audit(self._journal.storage, self.name, head_of(head), track)


def _learns_from_all(config: ExperimentConfig) -> bool:
    """Whether its policy learns from whatever was seen; not known of one that is not registered."""
    return is_known(config.policy) and policy_info(config.policy).learns_from == "everything"


def _copies(cases: Iterable[Case]) -> tuple[Case, ...]:
    """For handing out: those of the fold are not to be changed."""
    return tuple(case.copy() for case in cases)
