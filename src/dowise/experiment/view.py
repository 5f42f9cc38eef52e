"""Immutable views of an experiment, and the queries that start from one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

from dowise._core.validation import check_integer
from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import DowiseError, NotFoundError
from dowise.experiment.ask import LiveDecision
from dowise.experiment.base import ExperimentQueries
from dowise.experiment.case import Case, CaseStatus
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.counters import PlayCounts, Totals, UnusedValues
from dowise.experiment.evaluation import Evaluation, NothingToEvaluateError, evaluate
from dowise.experiment.evaluation.decision_log import EvaluationLog, TargetLike
from dowise.experiment.event import Event, Head, TrackEvents, tracked
from dowise.experiment.explanation import Explanation
from dowise.experiment.history import POINTS, History, compute_history
from dowise.experiment.journal import Journal
from dowise.experiment.prior_check import check_prior
from dowise.experiment.read_model import (
    LearnedState,
    continuation_value,
    evidence_seconds,
    graph_free_weight_of,
    graph_of,
    log_ratio_of,
    prior_of,
    read_policy,
    reward_counts_of,
)
from dowise.experiment.record_export import export_table
from dowise.experiment.record_usage import RecordUsage
from dowise.experiment.replay import PolicyReplay, exclusion_reason
from dowise.experiment.state import ExperimentState
from dowise.experiment.status import Status, summarize_contexts
from dowise.policies.registry import is_known, policy_info
from dowise.policies.value_of_continuing import Continuing, value_of_continuing
from dowise.problem import Problem
from dowise.problem.problem import Context

EVIDENCE_TIMEOUT = 1.0  # seconds that evidence may take if it was not requested


def take_view(journal: Journal, recent: int = 0) -> StateView:
    """Read new events from the store once, and return a view of the experiment.

    The last `recent` events are read along with them, for `StateView.events`.
    """
    events = None
    if recent and journal.last_number:
        events = journal.storage.read(journal.name, max(journal.last_number - recent, 0))
    state = journal.read(events)
    view: StateView | None = journal.last_view
    if view is None or not view.is_of(state):
        view = journal.last_view = StateView(journal, state)
    return view if events is None else view.with_events(events)


class StateView(ExperimentQueries):
    """Immutable view of an experiment at one moment, from one read of the store.

    All results belong to that moment, whatever is written later: they are those at its `head`.
    Results that take long, such as a belief, are computed when they are first needed. The queries
    that go back in time (`explain`, `history`, `evaluate`, `table`, `decision`, `events`) read past
    events, up to the head of the view. Views may be shared between threads.

    Examples
    --------
    >>> from dowise import Experiment, load_problem
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", load_problem("task1"), seed=1)
    >>> view = experiment.view()
    >>> decision = experiment.ask()
    >>> view.counts()["asked"], experiment.view().counts()["asked"]
    (0, 1)
    """

    def __init__(self, journal: Journal, state: ExperimentState) -> None:
        self._journal, self._state = journal, state
        self._events: list[Event] = []

    def __repr__(self) -> str:
        return f"<StateView of {self.name} at {self.head}>"

    def is_of(self, state: ExperimentState) -> bool:
        """Return True if this is the state of the view.

        Parameters
        ----------
        state : ExperimentState
            A state of the journal.

        Returns
        -------
        bool
            True if the view was taken of this very state.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.state import ExperimentState
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> experiment.view().is_of(ExperimentState("ward"))
        False
        """
        return self._state is state

    def with_events(self, events: list[Event]) -> StateView:
        """Return the same view with its last events, so that they need not be read again.

        Parameters
        ----------
        events : list of Event
            The last events of the journal, oldest first; those after the head are ignored.

        Returns
        -------
        StateView
            The view with these events.

        Examples
        --------
        >>> from dowise import Experiment
        >>> from dowise.experiment.storage import MemoryStorage
        >>> experiment = Experiment.create(MemoryStorage(), "ward", "task1", seed=1)
        >>> view = experiment.view().with_events(experiment.events())
        >>> [event.kind for event in view.events()]
        ['created']
        """
        view, last = StateView(self._journal, self._state), self.head.number
        view._events = [event for event in events if event.number <= last]
        for name in ("_totals", "_learned"):
            if name in self.__dict__:
                view.__dict__[name] = self.__dict__[name]
        return view

    # -- properties ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._state.name

    @property
    def config(self) -> ExperimentConfig:
        """Problem, policy and options."""
        return self._state.config

    @property
    def problem(self) -> Problem:
        return self._state.config.problem

    @property
    def earlier_problems(self) -> tuple[Problem, ...]:
        """The problems before each revision, oldest first."""
        return tuple(config.problem for _, config in self._state.configs[:-1])

    @property
    def policy(self) -> str:
        return self._state.config.policy

    @property
    def options(self) -> dict[str, Any]:
        return deepcopy(dict(self._state.config.options))

    @property
    def learn_restricted(self) -> bool:
        """True if the policy learns from decisions for which some arms were not allowed."""
        return self._state.config.learn_restricted

    @property
    def head(self) -> Head:
        assert self._state.head is not None
        return self._state.head

    @cached_property
    def _totals(self) -> Totals:
        return self._journal.read_model.totals(self._state)

    @cached_property
    def _learned(self) -> LearnedState:
        return self._journal.read_model.learned(self._state)

    @property
    def belief(self) -> Belief:
        return graph_of(self._learned.belief).copy()

    # -- decisions ----------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """See `Experiment.counts`."""
        return {**self._totals.counts}

    def pending(self) -> tuple[Case, ...]:
        return _copies(self._state.pending.values())

    def records(self) -> tuple[Case, ...]:
        return _copies(self._state.cases.values())

    def decisions(
        self, after: int = 0, limit: int | None = None, status: CaseStatus | None = None
    ) -> tuple[Case, ...]:
        """See `Experiment.decisions`."""
        after = check_integer("after", after, 0)
        if limit is not None:
            limit = check_integer("limit", limit, 0)
        cases = self._state.cases
        numbers = self._state.pending if status == "pending" else range(after + 1, len(cases) + 1)
        matching = (
            cases[number]
            for number in numbers
            if number > after and status in (None, cases[number].status)
        )
        return _copies(islice(matching, limit))

    def case(self, id: int) -> Case:  # noqa: A002 (what decisions call it)
        return self._state.case(id).copy()

    def decision(self, id: int) -> LiveDecision:  # noqa: A002 (what decisions call it)
        _, event, config = self._as_made(id, "see")
        return LiveDecision(event, config.problem)

    def _as_made(self, number: int, verb: str) -> tuple[Case, Event, ExperimentConfig]:
        """Return a decision, the event that recorded it, and the configuration of that time."""
        case = self._state.case(number)
        (event,) = self.events(case.event - 1, case.event)
        if event.is_erased:
            raise NotFoundError(f"decision {number} was erased: there is nothing left to {verb}")
        return case.copy(), event, self._state.config_at(case.event)

    def idle(self, id: int) -> list[str]:  # noqa: A002 (what decisions call it)
        config, case = self.config, self._state.case(id)
        reason = exclusion_reason(case, config)
        if reason is not None:
            return [f"Nothing is learned from it: {reason}"]
        if not _learns_from_all(config):
            return []
        return UnusedValues(config.problem).describe(case, config.weighs_graph)

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        last = self.head.number if upto is None else min(upto, self.head.number)
        if self._events and self._events[0].number <= after + 1:
            return [event for event in self._events if after < event.number <= last]
        return self._journal.storage.read(self.name, after, last)

    # -- queries ------------------------------------------------------------------------------

    def status(
        self, context: Context = None, evidence: bool | None = None, rounds: int | None = None
    ) -> Status:
        against, evidence_notes = self._evidence(evidence)
        belief, left_out, imported_arms = self._learned
        totals, problem = self._totals, self.problem
        contexts, notes = summarize_contexts(belief, context, totals.plays, imported_arms)
        continuing, continuing_notes = continuation_value(belief, rounds)
        prior_check = None
        if belief.has_factors and not self._state.imported:
            cases = self._state.cases.values()
            prior_check = check_prior(self.config, prior_of(self.config), cases)
        return Status(
            name=self.name,
            problem=problem,
            policy=self.policy,
            contexts=contexts,
            is_one_context=context is not None or not problem.context,
            counts={**totals.counts},
            pending=self.pending(),
            edges=belief.edges(),
            evidence=against,
            imported=self._state.imported,
            unused=self._unused(),
            left_out={**left_out},
            notes=(*notes, *evidence_notes, *continuing_notes),
            has_contexts=bool(totals.plays.times),
            incomplete=_copies(totals.incomplete),
            continuing=continuing,
            prior_check=prior_check,
            graph_free_log_ratio=log_ratio_of(belief),
            graph_free_weight=graph_free_weight_of(belief),
            graph_free_rewards=reward_counts_of(belief),
        )

    def judged(self, evidence: bool | None = None) -> tuple[Belief, Evidence | None, str]:
        """See `Experiment.judged`."""
        against, notes = self._evidence(evidence)
        return self.belief, against, " ".join(notes)

    def value_of_continuing(self, rounds: int, worlds: int | None = None) -> Continuing:
        return value_of_continuing(graph_of(self._learned.belief), rounds, worlds)

    def counted(self) -> RecordUsage:
        rewards = reward_counts_of(self._learned.belief)
        return RecordUsage(
            self._totals.ended_with_values,
            self._state.imported,
            {**self._learned.left_out},
            self.problem.reward,
            self._unused() if _learns_from_all(self.config) else {},
            rewards["of_arms"] if rewards else 0,
        )

    def history(
        self, context: Context = None, points: int = POINTS, track: TrackEvents | None = None
    ) -> History:
        config, last = self.config, self.head.number
        replay = PolicyReplay(config, read_policy(config), self._journal.read_import)
        events = tracked(self.events(), last, track)
        return compute_history(self.name, replay, events, last, self._totals.plays, context, points)

    def explain(
        self,
        id: int,  # noqa: A002 (what decisions call it)
        track: TrackEvents | None = None,
    ) -> Explanation:
        case, event, config = self._as_made(id, "explain")
        past = ExperimentState(self.name)
        past.apply_all(tracked(self.events(upto=event.number - 1), event.number - 1, track))
        policy = read_policy(config)
        replay = PolicyReplay(config, policy, self._journal.read_import)
        replay.sync(past)
        cases = past.cases.values()
        plays, context = PlayCounts(config.problem, cases), event.payload["context"]
        imported = replay.imported_arms
        belief = policy.deciding_belief
        (summary,), _ = summarize_contexts(belief, context, plays, imported)
        return Explanation(
            decision=LiveDecision(event, config.problem),
            policy=config.policy,
            case=case,
            records=sum(other.status == "done" for other in cases),
            pending=len(past.pending),
            imported=past.imported,
            then=summary,
            graph_free_log_ratio=log_ratio_of(belief),
            graph_free_rewards=reward_counts_of(belief),
            is_complete=event.payload["known"]["cases"] == past.digest(),
        )

    def evaluate(
        self,
        policy: TargetLike,
        options: Mapping[str, Any] | None = None,
        level: float = 0.9,
        track: TrackEvents | None = None,
    ) -> Evaluation:
        events = self.events()
        log = EvaluationLog(
            self._state, tracked(events, len(events), track), self._journal.read_import
        )
        model = read_policy(self.config).belief
        try:
            result = evaluate(self.problem, log.steps(), policy, options, level, model)
        except NothingToEvaluateError as error:
            reasons = "; ".join(f"{times:,}: {reason}" for reason, times in log.left_out.items())
            raise DowiseError(f"{error}{f' ({reasons})' if reasons else ''}") from None
        return replace(result, left_out=dict(log.left_out))

    def table(self) -> dict[str, list[Any]]:
        last = self.head.number
        asked = self._journal.storage.read(self.name, upto=last, kinds=("asked",))
        return export_table(self._state, asked)

    def _evidence(self, requested: bool | None) -> tuple[Evidence | None, list[str]]:
        """Return the evidence against the graph, or a note why it was not computed."""
        if requested is False:
            return None, []
        if requested is None:
            if not self._learned.belief.has_factors:
                return None, []  # a graph too large for a posterior is too large for evidence
            records = self._state.imported + len(self._state.cases)
            if evidence_seconds(self.problem, records) > EVIDENCE_TIMEOUT:
                reason = "with so many records it takes a while (evidence=True, --evidence)"
                return None, [_not_computed(reason)]
        try:
            return self._journal.read_model.evidence(self._state), []
        except DowiseError as error:
            if requested:
                raise
            return None, [_not_computed(str(error))]

    def _unused(self) -> dict[str, dict[str, int]]:
        """Count values that were seen and can't be used any more, by variable and reason."""
        pending = self._totals.unused.times(self._state.pending.values())
        unused: dict[str, dict[str, int]] = {}
        for name, lacking in self._learned.belief.lacking().items():
            for other, times in lacking.items():
                lost = times - pending[name, other]
                if other and other != name and lost > 0:  # else no arm needs it
                    unused.setdefault(name, {})[f"{other} was not seen"] = lost
        return unused


def _not_computed(reason: str) -> str:
    return f"The evidence against the graph was not computed: {reason}"


def _learns_from_all(config: ExperimentConfig) -> bool:
    """Return True if the policy is known to learn from all variables."""
    return is_known(config.policy) and policy_info(config.policy).learns_from == "everything"


def _copies(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Copy cases for a caller, who may change them; those of a state never change."""
    return tuple(case.copy() for case in cases)
