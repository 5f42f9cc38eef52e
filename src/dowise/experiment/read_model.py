"""Read model of an experiment: belief, totals and evidence for queries.

Catching up may take seconds: the first time, after a revision, or with evidence. Totals, evidence
and a separate belief are updated outside the journal's lock, so that only other queries wait for
them. The belief of the policy itself is updated under that lock.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from dowise.belief import Belief
from dowise.belief.arrivals import PLACES_PER_EVENT
from dowise.belief.evidence import Evidence
from dowise.belief.monitor import Monitor
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.config import ExperimentConfig, is_bayesian
from dowise.experiment.counters import DecisionCounters, Totals
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import Changes, ExperimentState
from dowise.model.missing_edges import count_alternatives
from dowise.policies.base import MinimalPolicy
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.graph_free import MixtureBelief
from dowise.policies.independent_arms import IndependentArmsBelief
from dowise.policies.requirements import Numbers
from dowise.policies.value_of_continuing import Continuing, value_of_continuing
from dowise.problem import Intervention, Problem, Record
from dowise.problem.prior import plain_prior
from dowise.problem.record import RecordBatch

if TYPE_CHECKING:
    from dowise.experiment.journal import Journal


def read_policy(config: ExperimentConfig) -> BayesianPolicy:
    """Return a policy that learns the journal for queries, under the prior of the configuration.

    If the graph is too large for a posterior, it learns from rewards only
    (`IndependentArmsBelief`), unless the policy that decides is Bayesian.
    """
    problem, prior = config.problem, prior_of(config)
    share = config.options.get("graph_free_prior", 0.0) if is_bayesian(config.policy) else 0.0
    try:
        return BayesianPolicy(problem, prior, graph_free_prior=share)
    except DowiseError as error:
        if is_bayesian(config.policy):
            raise
        return BayesianPolicy(problem, belief=IndependentArmsBelief(problem, str(error)))


def prior_of(config: ExperimentConfig) -> Any:
    """Return the prior counts: those of a Bayesian policy, or those of the problem."""
    prior = plain_prior(config.problem.prior)
    return config.options.get("prior", prior) if is_bayesian(config.policy) else prior


def evidence_seconds(problem: Problem, records: int) -> float:
    """Estimate how long it takes to compute the evidence against the graph.

    For each edge that the graph lacks, a record takes less than a microsecond, and the setup as
    long as 500 records (measured on the built-in problems).
    """
    return 1e-6 * count_alternatives(problem) * (records + 500)


def continuation_value(belief: Belief, rounds: int | None) -> tuple[Continuing | None, list[str]]:
    """Return the value of more rounds, if requested, with notes if it is not known."""
    if rounds is None:
        return None, []
    if not belief.has_factors:
        return None, [
            "What more rounds are worth is not known: that takes worlds from a posterior, and the "
            "graph is too large for one."
        ]
    return value_of_continuing(graph_of(belief), rounds), []


def graph_of(belief: Belief) -> Belief:
    """Return the belief about the graph alone, without the graph-free hypothesis."""
    return belief.graph if isinstance(belief, MixtureBelief) else belief


def log_ratio_of(belief: Belief) -> float | None:
    """Return the log likelihood ratio of predictions without and with the graph, if it is known."""
    return belief.log_ratio if isinstance(belief, MixtureBelief) else None


def graph_free_weight_of(belief: Belief) -> float | None:
    """Return the probability of the graph-free hypothesis; None if the graph decides alone."""
    return belief.weight if isinstance(belief, MixtureBelief) else None


def reward_counts_of(belief: Belief) -> dict[str, int] | None:
    """Return the numbers of rewards by what they teach; None if the graph decides alone."""
    return belief.reward_counts() if isinstance(belief, MixtureBelief) else None


class MonitorPolicy(BayesianPolicy):
    """Policy that never decides: a `Monitor` follows the records that a belief would learn."""

    def __init__(self, config: ExperimentConfig, judged_from: int | None) -> None:
        super(BayesianPolicy, self).__init__(config.problem)
        self.monitor = Monitor(config.problem, judged_from)
        self.arrivals = self.monitor.arrivals

    def learn(self, record: Record) -> None:
        """Do nothing: the monitor reads the records from `arrivals`."""

    def retract(self, record: Record) -> None:
        """Do nothing."""

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:
        """Do nothing."""


def judged_from(state: ExperimentState) -> int | None:
    """Return the place of the first piece that counts as evidence against the current graph.

    Earlier records are those from which the graph was chosen by a revision; None if there is none.
    """
    event = None
    for (_, before), (number, config) in pairwise(state.configs):
        if config.problem.possible != before.problem.possible:
            event = number
    return None if event is None else event * PLACES_PER_EVENT


class LearnedState(NamedTuple):
    """Belief after the records of one state."""

    belief: Belief
    """A copy."""
    left_out: dict[str, int]
    """Number of records that the deciding policy could not use, by reason."""
    imported_arms: frozenset[Intervention]
    """Interventions with a reward in the imported records."""


FollowedT = TypeVar("FollowedT")
ResultT = TypeVar("ResultT")


class Follower(Generic[FollowedT]):
    """Object that is kept at one state, and brought to others by the changes between the two.

    Only queries that need the same follower wait for each other. A follower that does not go back
    is made again for an earlier state.
    """

    def __init__(
        self,
        make: Callable[[ExperimentState], FollowedT],
        apply: Callable[[FollowedT, Changes], None],
        goes_back: bool = True,
    ) -> None:
        self._make, self._apply, self._goes_back = make, apply, goes_back
        self._lock = Lock()
        self._followed: FollowedT | None = None
        self._config: ExperimentConfig | None = None
        self._log: list[int] = []
        self._cases, self._imports = 0, 0

    def read(self, state: ExperimentState, query: Callable[[FollowedT], ResultT]) -> ResultT:
        """Bring the object to a state, and return the answer to a query."""
        with self._lock:
            followed, changes = self._followed, self._changes(state)
            self._followed = None  # if this is interrupted, it is made again
            if followed is None or changes is None:
                followed = self._make(state)
                changes = _everything(state)
            self._apply(followed, changes)
            self._log, self._config = state.log, state.config
            self._cases, self._imports = state.changes, len(state.imports)
            self._followed = followed
            return query(followed)

    def _changes(self, state: ExperimentState) -> Changes | None:
        """Return the changes that lead to a state, or None if it can't be reached by changes.

        A decision that an earlier state does not have is replaced by an erased case with `event` 0.
        """
        if self._log is not state.log or self._config is not state.config:
            return None
        is_later = self._cases <= state.changes and self._imports <= len(state.imports)
        if not is_later and (not self._goes_back or self._imports > len(state.imports)):
            return None
        first, last = sorted((self._cases, state.changes))
        cases = [
            state.cases.get(number) or Case(number, 0, "", {}, Intervention(), status="erased")
            for number in dict.fromkeys(state.log[first:last])
        ]
        return Changes(cases, state.imports[self._imports :])


def _everything(state: ExperimentState) -> Changes:
    return Changes([*state.cases.values()], state.imports)


class ReadModel:
    """Belief, totals and evidence of an experiment, each brought to the state of a view.

    A policy that has a belief shares it; for other policies one is kept here. Evidence is kept once
    it was requested. A thread takes the lock of a follower before that of the journal.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._counters = Follower(
            lambda state: DecisionCounters(state.config.problem), DecisionCounters.count
        )
        self._belief = Follower(
            lambda state: self._replay(state, read_policy(state.config)), PolicyReplay.learn
        )
        # Evidence depends on the order of the records, so it does not go back.
        self._evidence = Follower(
            lambda state: self._replay(state, MonitorPolicy(state.config, judged_from(state))),
            PolicyReplay.learn,
            goes_back=False,
        )

    def totals(self, state: ExperimentState) -> Totals:
        """Return the totals over the decisions of a state."""
        return self._counters.read(state, DecisionCounters.totals)

    def learned(self, state: ExperimentState) -> LearnedState:
        """Return what was learned from the records of a state."""
        with self._journal.replayed() as (current, replay):
            changed: list[int] = []
            if current.config is not state.config or len(current.imports) != len(state.imports):
                replay = self._replay(state, state.config.make_policy())
                replay.learn(_everything(state))
            elif current.number != state.number:
                changed = [
                    number
                    for number, case in current.cases.items()
                    if case.last_event > state.number
                ]
            belief, left_out = replay.as_of(state.cases, changed)
            imported_arms = frozenset(replay.imported_arms)
        if belief is None:
            belief = self._belief.read(state, _copy_belief)
        return LearnedState(belief, left_out, imported_arms)

    def evidence(self, state: ExperimentState) -> Evidence:
        """Return the evidence against the graph in the records of a state."""
        return self._evidence.read(state, _evidence)

    def _replay(self, state: ExperimentState, policy: MinimalPolicy) -> PolicyReplay:
        return PolicyReplay(state.config, policy, self._journal.read_import)


def _copy_belief(replay: PolicyReplay) -> Belief:
    assert isinstance(replay.policy, BayesianPolicy)
    return replay.policy.deciding_belief.copy()


def _evidence(replay: PolicyReplay) -> Evidence:
    assert isinstance(replay.policy, MonitorPolicy)
    return replay.policy.monitor.evidence()
