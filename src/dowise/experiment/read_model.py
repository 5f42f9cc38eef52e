"""Read model of an experiment: what its journal teaches, for queries that decide nothing.

Catching up may take a while: the first time, after a revision, or with evidence. It happens outside
the journal's lock, so that only other queries wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dowise._core.rng import Random, generator
from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.belief.monitor import Monitor
from dowise.errors import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.config import ExperimentConfig, is_bayesian
from dowise.experiment.counters import DecisionCounters, Totals
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import Changes, ExperimentState
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.model.missing_edges import count_alternatives
from dowise.policies.arm_rewards import ArmRewards, RewardCounts
from dowise.policies.base import MinimalPolicy, Numbers
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.value_of_continuing import Continuing, value_of_continuing
from dowise.problem import Intervention, Problem, Record
from dowise.problem.prior import plain_prior
from dowise.problem.problem import Context
from dowise.problem.record import RecordBatch

if TYPE_CHECKING:
    from dowise.experiment.journal import Journal

FORMAT = "dowise-arm-by-arm"


class IndependentArmsBelief(Belief):
    """Belief that uses no graph: each arm has its own reward distribution in each context.

    These are Dirichlet(1) before any record. A record tells of one arm in one context, and of none
    where its reward or context was not seen, or where what was set is none of the arms. `why` says
    why there is no posterior of the graph.
    """

    has_factors = False

    def __init__(self, problem: Problem, why: str = "") -> None:
        self.problem, self.why, self.monitor = problem, why, None
        self._rewards = ArmRewards(problem)

    def learn(self, record: Record) -> None:
        """Learn from a record if it tells of an arm."""
        if self._rewards.can_learn(record):
            self._rewards.learn(record)

    def retract(self, record: Record) -> None:
        """Undo `learn`."""
        if self._rewards.can_learn(record):
            self._rewards.retract(record)

    def learn_many(self, records: RecordBatch) -> None:
        """Learn from those records that tell of an arm."""
        usable = self._rewards.requires.mask(records, None).mask
        self._rewards.learn_many(records.take(np.flatnonzero(usable)))

    def lacking(self) -> dict[str, dict[str, int]]:
        """Return nothing: there are no factors."""
        return {}

    def never_used(self) -> dict[str, tuple[str, ...]]:
        """Return nothing: there are no factors."""
        return {}

    def times_learned(self) -> dict[str, int]:
        """Raise `DowiseError`: there are no factors."""
        raise self._no_factors()

    def mean_cpts(self) -> dict[str, NDArray[np.float64]]:
        """Raise `DowiseError`: there are no factors."""
        raise self._no_factors()

    @property
    def parameters(self) -> NDArray[np.float64]:
        """Raises `DowiseError`: there are no factors."""
        raise self._no_factors()

    def _no_factors(self) -> DowiseError:
        return DowiseError(
            f"{self!r} knows rewards of arms only, nothing of single variables: {self.why}"
        )

    def edges(self) -> dict[str, float]:
        """Return the priors of the doubtful edges."""
        return dict(self.problem.edge_priors)

    def edge_snapshot(self) -> Callable[[], dict[str, float]]:
        """Return a function that returns the priors of the doubtful edges."""
        return self.edges

    @property
    def undecidable_edges(self) -> tuple[str, ...]:
        """All doubtful edges."""
        return tuple(self.problem.edge_priors)

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """Draw the distribution of the reward under every arm."""
        source = generator(rng)
        own = np.random.default_rng([int(source.integers(2**63)), *codes])
        drawn = own.standard_gamma(self._parameters(codes)[..., None], (*self._shape, samples))
        drawn /= drawn.sum(axis=1, keepdims=True)
        return Draws(drawn[:, 1:].astype(np.float32))

    def draw_in_blocks(self, codes: Codes, samples: int, rng: Random) -> Iterator[Draws]:
        """Make all draws in one block."""
        yield self.draw(codes, samples, rng)

    def mean_distributions(self, context: Context = None) -> NDArray[np.float64]:
        """Return P(Y = y | do(arm), c) on average: (arms, values of Y)."""
        parameters = self._parameters(self.problem.context_codes(context))
        means: NDArray[np.float64] = parameters / parameters.sum(axis=1, keepdims=True)
        return means

    def copy(self) -> IndependentArmsBelief:
        """Return a belief that learns independently from here."""
        twin = IndependentArmsBelief(self.problem, self.why)
        twin._rewards = self._rewards.copy()
        return twin

    def as_dict(self) -> dict[str, Any]:
        """Return how often each reward of each arm was seen, by context, as positions."""
        known = sorted(self._rewards.by_context.items())
        tallies = [{"context": [*codes], "seen": tally.counts.tolist()} for codes, tally in known]
        return {"format": FORMAT, "why": self.why, "tallies": tallies}

    @classmethod
    def from_dict(cls, data: dict[str, Any], problem: Problem) -> IndependentArmsBelief:
        """Inverse of `as_dict`."""
        if data.get("format") != FORMAT:
            raise DowiseError(f"the data have the format {data.get('format')!r}, not {FORMAT!r}")
        belief = cls(problem, data["why"])
        for tally in data["tallies"]:
            seen = np.array(tally["seen"], dtype=np.int64).reshape(belief._shape)
            counts = RewardCounts.from_counts(seen, problem.payoff.scaled)
            belief._rewards.by_context[tuple(tally["context"])] = counts
        return belief

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.problem.arms), len(self.problem.payoff.values)

    def _parameters(self, codes: Codes) -> NDArray[np.float64]:
        return 1 + self._rewards.in_context(codes).counts.astype(np.float64)

    def __repr__(self) -> str:
        return f"<IndependentArmsBelief about {self.problem!r}>"


def read_policy(config: ExperimentConfig) -> BayesianPolicy:
    """Return a policy that learns the journal for queries, under the prior of the config.

    If the graph is too large for a posterior, which does not matter to policies that use rewards
    only, it learns from those rewards (`IndependentArmsBelief`).
    """
    problem, prior = config.problem, prior_of(config)
    try:
        return BayesianPolicy(problem, belief=Belief(problem, prior))
    except DowiseError as error:
        if is_bayesian(config.policy):
            raise
        return BayesianPolicy(problem, belief=IndependentArmsBelief(problem, str(error)))


def prior_of(config: ExperimentConfig) -> Any:
    """Return the prior counts of the tables; only Bayesian policies have their own."""
    own = plain_prior(config.problem.prior)
    return config.options.get("prior", own) if is_bayesian(config.policy) else own


def evidence_seconds(problem: Problem, records: int) -> float:
    """Estimate how long it takes to compute the evidence against the graph.

    Each record takes a microsecond per edge that the graph lacks, and the setup of an edge as long
    as 500 records (measured on the built-in problems).
    """
    return 1e-6 * count_alternatives(problem) * (records + 500)


def continuation_value(belief: Belief, rounds: int | None) -> tuple[Continuing | None, list[str]]:
    """Return what more rounds are worth, if asked for, with notes if that is not known."""
    if rounds is None:
        return None, []
    if isinstance(belief, IndependentArmsBelief):
        return None, [
            "What more rounds are worth is not known: that takes worlds from a posterior, and the "
            "graph is too large for one."
        ]
    return value_of_continuing(belief, rounds), []


class MonitorPolicy(BayesianPolicy):
    """Policy that never decides: it lets a `Monitor` follow the records a belief would learn."""

    def __init__(self, problem: Problem) -> None:
        super(BayesianPolicy, self).__init__(problem)
        self.monitor = Monitor(problem)

    def learn(self, record: Record) -> None:
        """Add a record."""
        self.monitor.prepare(record)
        self.monitor.learn(record)

    def retract(self, record: Record) -> None:
        """Remove a record."""
        self.monitor.check_learned(record)
        self.monitor.retract(record)

    def learn_many(self, records: RecordBatch, numbers: Numbers = None) -> None:  # noqa: ARG002
        """Add many records."""
        self.monitor.learn_many(records, self.monitor.prepare(records))


class LearnedState(NamedTuple):
    """What was learned from the records of one state."""

    belief: Belief
    """A copy."""
    left_out: dict[str, int]
    """Number of records that the deciding policy could not use, by reason."""


FollowedT = TypeVar("FollowedT")
ResultT = TypeVar("ResultT")


class Follower(Generic[FollowedT]):
    """Something that is kept at some state, and moved by what differs in the next one.

    Only queries that need the same follower wait for each other.
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
        """Bring it to a state, which may be an earlier one, and return the answer to a query."""
        with self._lock:
            followed, changes = self._followed, self._changes(state)
            self._followed = None  # if stopped half-way it is made again
            if followed is None or changes is None:
                followed = self._make(state)
                changes = _everything(state)
            self._apply(followed, changes)
            self._log, self._config = state.log, state.config
            self._cases, self._imports = state.changes, len(state.imports)
            self._followed = followed
            return query(followed)

    def _changes(self, state: ExperimentState) -> Changes | None:
        """Return what differs, the cases as they are in the state; None if it is made again."""
        if self._log is not state.log or self._config is not state.config:
            return None
        is_later = self._cases <= state.changes and self._imports <= len(state.imports)
        if not is_later and (not self._goes_back or self._imports > len(state.imports)):
            return None
        first, last = sorted((self._cases, state.changes))
        changed = dict.fromkeys(state.log[first:last])
        cases = [state.cases.get(number) or _unasked(number) for number in changed]
        return Changes(cases, state.imports[self._imports :])


def _everything(state: ExperimentState) -> Changes:
    return Changes([*state.cases.values()], state.imports)


def _unasked(number: int) -> Case:
    """Return what stands for a decision that an earlier state does not have."""
    return Case(number, 0, "", {}, Intervention(), status="erased")


class ReadModel:
    """Belief, totals and evidence of an experiment, each brought to the state of a view.

    A policy that has a belief shares it; for others one is kept here. Evidence is kept once it was
    asked for. Locks of followers come before the journal's.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._counters = Follower(
            lambda state: DecisionCounters(state.config.problem), DecisionCounters.count
        )
        self._belief = Follower(
            lambda state: self._replay(state, read_policy(state.config)), PolicyReplay.learn
        )
        # What evidence says depends on the order of the records: it never goes back.
        self._evidence = Follower(
            lambda state: self._replay(state, MonitorPolicy(state.config.problem)),
            PolicyReplay.learn,
            goes_back=False,
        )

    def totals(self, state: ExperimentState) -> Totals:
        """Return the totals over the decisions of a state."""
        return self._counters.read(state, DecisionCounters.totals)

    def learned(self, state: ExperimentState) -> LearnedState:
        """Return what was learned from the records of a state."""
        with self._journal.replayed() as (now, replay):
            if now.config is not state.config or len(now.imports) != len(state.imports):
                replay = self._replay(state, state.config.make_policy())
                replay.learn(_everything(state))
                now = state
            belief, left_out = replay.as_of(state.cases, _changed_since(state, now))
        if belief is None:
            belief = self._belief.read(state, _copy_belief)
        return LearnedState(belief, left_out)

    def evidence(self, state: ExperimentState) -> Evidence:
        """Return the evidence against the graph in the records of a state."""
        return self._evidence.read(state, _evidence)

    def _replay(self, state: ExperimentState, policy: MinimalPolicy) -> PolicyReplay:
        return PolicyReplay(state.config, policy, self._journal.columns)


def _changed_since(state: ExperimentState, now: ExperimentState) -> list[int]:
    """Return the decisions that changed between a state and a later one."""
    if now.head == state.head:
        return []
    last = 0 if state.head is None else state.head.number
    return [number for number, case in now.cases.items() if case.last_event > last]


def _copy_belief(replay: PolicyReplay) -> Belief:
    assert isinstance(replay.policy, BayesianPolicy)
    return replay.policy.belief.copy()


def _evidence(replay: PolicyReplay) -> Evidence:
    assert isinstance(replay.policy, MonitorPolicy)
    return replay.policy.monitor.evidence()
