"""Value of continuing an experiment, compared with staying with the arms that look best now.

Worlds are drawn from the posterior. In each world a policy continues for m of T rounds; in the
remaining rounds the arm is fixed that looks best by then: â_m(c), the arm with the best posterior
mean in context c. If the prior is right, the average over worlds is unbiased for

    V(m) = E[Σ_{t≤m} μ(a_t, C_t) + Σ_{t>m} μ(â_m(C_t), C_t) − Σ_t μ(â_0(C_t), C_t)].

Half of the worlds choose m among some numbers, including 0; the other half estimate V(m) without
bias. This is the gain of one way to continue, and so, up to the standard error, a lower bound on
the gain of the best possible play. No play gains more than
E[Σ_t max_a μ(a, C_t) − μ(â_0(C_t), C_t)], the expected regret of stopping over these rounds: the
`limit`. (Value of information; Raiffa & Schlaifer 1961.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import ceil, prod, sqrt
from typing import Any

import numpy as np

from dowise._core.rng import Random, generator
from dowise._core.types import FloatArray, IntArray
from dowise._core.validation import check_integer
from dowise.belief import Belief, Posterior
from dowise.belief.predictive import draw_worlds
from dowise.errors import DowiseError, type_name
from dowise.model import Codes
from dowise.model.sampler import Sampler, TrialScript, sample_outcome, sampler_of
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.registry import make_policy
from dowise.problem import Problem, Record

POLICY = "ts"  # policy that continues: one whose rounds are compiled
HALVINGS = 6  # m is all rounds, half of them, a quarter, …, or none
MAX_ROUNDS = 1_000_000
MAX_PLAYS = 20_000_000  # over all worlds: some minutes
MAX_WORLDS, MIN_WORLDS = 1000, 50
MAX_ENTRIES = 2**23  # of the worlds that are drawn at a time
# Work in multiplications:
_WORK_LIMIT = 1e9  # takes a second or two
_WORK_PER_ROUND = 1000  # in addition to the circuit's
_WORK_PER_ROW = 50  # to draw it
_WORK_PER_BEST_ARM = 5e4  # of a context


@dataclass(frozen=True)
class Continuing:
    """Value of continuing, in the user's units; more is better, also for problems that minimise.

    Examples
    --------
    >>> Continuing(100, value=2.0, error=0.5, limit=4.0, explore=25, worlds=50).as_dict()["limit"]
    4.0
    """

    rounds: int
    value: float
    """Expected total gain over staying with the arms that look best now."""
    error: float
    """Standard error of the value, over worlds."""
    limit: float
    """Upper bound on the gain of any play in the same worlds: the expected regret of stopping."""
    explore: int
    """Number of rounds that the policy plays before arms are fixed; 0 if no number pays off."""
    worlds: int
    policy: str = POLICY
    """Policy that continues."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, and value and limit per round."""
        per_round = {
            "value_a_round": self.value / self.rounds,
            "limit_a_round": self.limit / self.rounds,
        }
        return asdict(self) | per_round

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Continuing:
        """Inverse of `as_dict`."""
        return cls(**{field.name: data[field.name] for field in fields(cls)})


def value_of_continuing(
    belief: Belief, rounds: int, worlds: int | None = None, rng: Random = 0
) -> Continuing:
    """Estimate the expected gain of more rounds over staying with the arms that look best now.

    Parameters
    ----------
    belief : Belief
        Current belief. It is not changed.
    rounds : int
        Number of rounds to continue for. Contexts are drawn from the belief.
    worlds : int, optional
        Number of worlds to draw. By default from 50 to 1,000, such that it takes a second or two.
    rng : int or numpy.random.Generator
        Seed or source of randomness.

    Returns
    -------
    Continuing

    Raises
    ------
    DowiseError
        If an argument is invalid, or if the belief is not a posterior of the graph.

    Examples
    --------
    >>> from dowise import Belief, load_problem
    >>> continuing = value_of_continuing(Belief(load_problem("task1")), rounds=20, worlds=20)
    >>> continuing.value <= continuing.limit + 3 * continuing.error
    True
    """
    if not isinstance(belief, Belief):
        raise DowiseError(f"belief must be a Belief, not {type_name(belief)}", code="invalid-type")
    if not belief.has_factors:
        raise DowiseError(
            f"{belief!r} knows rewards of arms only: the value of continuing needs a posterior of "
            "the graph",
            code="unsupported-belief",
        )
    posterior = belief.posterior
    rounds = check_integer("rounds", rounds, 1, MAX_ROUNDS)
    count = _worlds_for(posterior, rounds, worlds)
    source, continuation = generator(rng), _Continuation(posterior, rounds)
    block = max(1, MAX_ENTRIES // posterior.model.factors.entries)
    results: list[FloatArray] = []
    for start in range(0, count, block):
        drawn = draw_worlds(posterior, min(block, count - start), source)
        results += [continuation.compare(entries, source) for entries in drawn]
    gains = np.array(results)
    chosen = int(gains[: count // 2, 1:].mean(axis=0).argmax())
    values = gains[count // 2 :, 1 + chosen]
    return Continuing(
        rounds,
        value=float(values.mean()),
        error=float(values.std(ddof=1)) / sqrt(len(values)),
        limit=float(gains[:, 0].mean()),
        explore=continuation.stops[chosen],
        worlds=count,
    )


def _worlds_for(posterior: Posterior, rounds: int, worlds: int | None) -> int:
    if worlds is not None:
        count = check_integer("worlds", worlds, 4)
        if count * rounds > MAX_PLAYS:
            raise DowiseError(
                f"{count:,} worlds of {rounds:,} rounds are {count * rounds:,} plays, and the "
                f"limit is {MAX_PLAYS:,}: use fewer worlds or fewer rounds",
                code="too-large",
            )
        return count
    circuit, problem = posterior.model.circuit, posterior.problem
    work = _WORK_PER_ROUND + _WORK_PER_ROW * len(circuit.blocks)
    work += sum(array.size for array in circuit.operations)
    contexts = prod(len(problem.domains[name]) for name in problem.context)
    per_world = rounds * work + HALVINGS * min(contexts, rounds) * _WORK_PER_BEST_ARM
    limit = min(MAX_WORLDS, MAX_PLAYS // rounds)
    return int(np.clip(_WORK_LIMIT / per_world, min(MIN_WORLDS, limit), limit))


def _stops(rounds: int) -> tuple[int, ...]:
    """Return the numbers of rounds to continue for, rising from none to all."""
    return (0, *sorted({ceil(rounds / 2**i) for i in range(HALVINGS)}))


class _Continuation:
    """Continuation of an experiment by the policy, in any number of worlds."""

    def __init__(self, posterior: Posterior, rounds: int) -> None:
        self.problem: Problem = posterior.problem
        self.posterior, self.rounds, self.stops = posterior, rounds, _stops(rounds)
        self.sampler: Sampler = sampler_of(self.problem)
        self._best_now: dict[Codes, int] = {}

    def compare(self, entries: FloatArray, source: np.random.Generator) -> FloatArray:
        """Return the limit and V(m) for each m in the world of these entries."""
        payoff, world = self.problem.payoff, self.sampler.at(entries)
        drawn = self.sampler.contexts(world, self.rounds, source)
        if drawn.shape[1]:
            distinct, numbers = np.unique(drawn, axis=0, return_inverse=True)
            numbers = numbers.ravel()
        else:
            distinct, numbers = drawn[:1], np.zeros(self.rounds, dtype=np.int64)
        contexts = [tuple(codes) for codes in distinct.tolist()]
        shares = self.posterior.model.distributions_in([entries] * len(contexts), contexts)
        regrets = payoff.regrets(payoff.net(np.concatenate([x @ payoff.values for x in shares])))
        uniforms = source.random((self.rounds, len(world.order)))
        limit = regrets[numbers, self._arms_now(contexts)[numbers]].sum()
        policy, cost, results = self._policy(), 0.0, [limit, 0.0]
        for begin, end in zip(self.stops, self.stops[1:], strict=False):
            current, later = numbers[begin:end], numbers[end:]
            script = TrialScript(world, current, distinct, uniforms[begin:end])
            cost += regrets[current, self._play(policy, script, entries, source)].sum()
            remaining = 0.0
            if len(later):
                remaining = regrets[later, self._best_arms(policy, contexts)[later]].sum()
            results.append(limit - cost - remaining)
        return np.array(results)

    def _policy(self) -> BayesianPolicy:
        policy = make_policy(
            POLICY, self.problem, belief=Belief(self.problem, posterior=self.posterior.copy())
        )
        assert isinstance(policy, BayesianPolicy)
        policy.suppress_warnings = True
        return policy

    def _arms_now(self, contexts: list[Codes]) -> IntArray:
        """Return the arm that looks best now in each of these contexts."""
        new = [codes for codes in contexts if codes not in self._best_now]
        if new:
            arms = self._best_arms(self._policy(), new).tolist()
            self._best_now |= zip(new, arms, strict=True)
        return np.array([self._best_now[codes] for codes in contexts])

    def _best_arms(self, policy: BayesianPolicy, contexts: list[Codes]) -> IntArray:
        """Return the arm with the best posterior mean in each of these contexts."""
        payoff = self.problem.payoff
        shares = map(policy.belief.posterior.mean_distributions, contexts)
        return np.array([payoff.best_of(payoff.net(x @ payoff.values)) for x in shares])

    def _play(
        self,
        policy: BayesianPolicy,
        script: TrialScript,
        entries: FloatArray,
        source: np.random.Generator,
    ) -> IntArray:
        """Return the arms of these rounds, stepped if there is no compiled trial."""
        loop = policy.compiled_trial()
        if loop is not None:
            return loop(script, source)
        problem, chosen = self.problem, np.empty(len(script.contexts), dtype=np.int64)
        for t, number in enumerate(script.contexts.tolist()):
            codes = tuple(script.context_codes[number].tolist())
            arm = policy.decide(problem.context_labels(codes), source).arm
            chosen[t] = problem.arm_index(arm)
            seen = sample_outcome(problem, entries, int(chosen[t]), codes, source)
            policy.learn(Record(problem, arm, seen, problem.fixed(arm)))
        return chosen
