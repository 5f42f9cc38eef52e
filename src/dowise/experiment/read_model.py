"""A belief that learns the journal for looks alone, beside whoever decides.

It may take a while to catch up: the first time, after a revision, or with evidence. So it learns
outside of the journal's lock, and nobody has to wait for it but others who look by the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dowise._core.rng import Random, generator
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.experiment.config import ExperimentConfig, is_bayesian
from dowise.experiment.replay import PolicyReplay
from dowise.experiment.state import Changes, Cursor, ExperimentState
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.model.missing_edges import count_alternatives
from dowise.policies.base import BayesianPolicy
from dowise.policies.value_of_continuing import Continuing, value_of_continuing
from dowise.problem import Problem, Record
from dowise.problem.prior import plain_prior
from dowise.problem.record import RecordBatch

FORMAT = "dowise-arm-by-arm"


class IndependentArmsPosterior:
    """A posterior that knows nothing of the graph.

    In each context each arm has reward probabilities of its own, Dirichlet(1) before any record.
    So a record tells of one arm in one context only, and not at all where its reward or context was
    not seen, or where what was set is none of the arms. `why` says what stood against a posterior
    of the graph.
    """

    def __init__(self, problem: Problem, why: str = "") -> None:
        # It brings numba, which nobody who only tells something should have to wait for.
        from dowise.policies.arm_rewards import TabularPolicy

        self.problem, self.why = problem, why
        self._policy = TabularPolicy(problem)

    def learn(self, record: Record) -> None:
        """One record more, if it tells of an arm."""
        if self._policy.lacks(record) is None:
            self._policy.learn(record)

    def retract(self, record: Record) -> None:
        """One record less."""
        if self._policy.lacks(record) is None:
            self._policy.retract(record)

    def learn_many(self, records: RecordBatch) -> None:
        """Many records more."""
        self._policy.learn_many(records.take(np.flatnonzero(self._policy.usable(records).mask)))

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """The distribution of the reward under every arm."""
        source = generator(rng)
        own = np.random.default_rng([int(source.integers(2**63)), *codes])
        drawn = own.standard_gamma(self._parameters(codes)[..., None], (*self._shape, samples))
        drawn /= drawn.sum(axis=1, keepdims=True)
        return Draws(drawn[:, 1:].astype(np.float32))

    def mean_distributions(self, codes: Codes) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c) on average: (arms, values of Y)."""
        parameters = self._parameters(codes)
        means: NDArray[np.float64] = parameters / parameters.sum(axis=1, keepdims=True)
        return means

    def copy(self) -> Self:
        """One that learns on its own from here."""
        twin = type(self)(self.problem, self.why)
        twin._policy.tallies = deepcopy(self._policy.tallies)
        return twin

    def as_dict(self) -> dict[str, Any]:
        """How often each reward of each arm was seen, by context: positions in the domains."""
        known = sorted(self._policy.tallies.items())
        tallies = [{"context": [*codes], "seen": tally.seen.tolist()} for codes, tally in known]
        return {"format": FORMAT, "why": self.why, "tallies": tallies}

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`."""
        from dowise.policies.arm_rewards import Tally

        if page.get("format") != FORMAT:
            raise DowiseError("this is not what arms brought: a posterior of the graph, perhaps")
        found = cls(problem, page["why"])
        for one in page["tallies"]:
            seen = np.array(one["seen"], dtype=np.int64).reshape(found._shape)
            found._policy.tallies[tuple(one["context"])] = Tally.of(seen, problem.payoff.scaled)
        return found

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.problem.arms), len(self.problem.payoff.values)

    def _parameters(self, codes: Codes) -> NDArray[np.float64]:
        return 1 + self._policy.tally(codes).seen.astype(np.float64)

    def __repr__(self) -> str:
        return f"<ArmByArm about {self.problem!r}>"


def policy_for_looks(config: ExperimentConfig, evidence: bool = False) -> BayesianPolicy:
    """What learns the journal for a look, under the prior of the config.

    Where the graph is too large for a posterior, which is no obstacle to policies that look at
    rewards only, it is those rewards that it learns from (`IndependentArmsPosterior`).
    """
    problem, prior = config.problem, prior_of(config)
    try:
        return BayesianPolicy(problem, belief=Belief(problem, prior, evidence=evidence))
    except DowiseError as error:
        if evidence or is_bayesian(config.policy):
            raise
        return BayesianPolicy(
            problem, belief=Belief(problem, posterior=IndependentArmsPosterior(problem, str(error)))
        )


def prior_of(config: ExperimentConfig) -> Any:
    """The prior of the tables, where the policy has one; other priors are of other things."""
    own = plain_prior(config.problem.prior)
    return config.options.get("prior", own) if is_bayesian(config.policy) else own


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
    if isinstance(belief.posterior, IndependentArmsPosterior):
        return None, [
            "What more rounds are worth is not known: it takes worlds from a posterior of the "
            "graph, which is too large for one."
        ]
    return value_of_continuing(belief, rounds), []


class ReadModel:
    """Follows an experiment, whatever its config; to be held before the journal's lock is taken."""

    def __init__(self, read_import: Callable[[int], dict[str, Any]], evidence: bool) -> None:
        self._read_import, self._evidence = read_import, evidence
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._config: ExperimentConfig | None = None
        self._learner: PolicyReplay | None = None
        self._place = Cursor()

    @contextmanager
    def held(self) -> Iterator[ReadModel]:
        """For one look: take the `news` under the journal's lock, then `learn` them outside."""
        with self._lock:
            try:
                yield self
            except BaseException:  # perhaps half-way
                self._forget()
                raise

    def news(self, state: ExperimentState) -> Changes:
        """What it does not know yet: all there is where another config holds now."""
        if self._config is not state.config:
            self._forget()
            self._config = state.config
        return self._place.news(state)

    def learn(self, news: Changes) -> Belief:
        """What is known with these: not to be changed, nor kept."""
        assert self._config is not None
        if self._learner is None:
            policy = policy_for_looks(self._config, self._evidence)
            self._learner = PolicyReplay(self._config, policy, self._read_import)
        self._learner.learn(news)
        assert isinstance(self._learner.policy, BayesianPolicy)
        return self._learner.policy.belief
