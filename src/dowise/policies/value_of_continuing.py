"""Value of continuing an experiment, compared with staying with the arms that look best now.

Worlds are drawn from the posterior. In each a policy continues for m of T rounds from what is known
now; for the rest of the rounds the arm stays that looks best by then, â_m(c), the one of the best
posterior mean in each context. If the prior is right this is unbiased for

    V(m) = E[Σ_{t≤m} μ(a_t, C_t) + Σ_{t>m} μ(â_m(C_t), C_t) − Σ_t μ(â_0(C_t), C_t)].

Half of the worlds choose m among some numbers, including 0, and the other half estimate its value
without bias: the gain of one way to continue, so a lower bound on that of the best possible play up
to the standard error. No play gains more than E[Σ_t max_a μ(a, C_t) − μ(â_0(C_t), C_t)], the
expected regret of stopping over these rounds, which is the `limit`. (Value of
information; Raiffa & Schlaifer 1961.)
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
_WORK = 1e9  # multiplications that are done in a second or two
_WORK_OF_A_ROUND = 1000  # in multiplications, besides the circuit's
_WORK_OF_A_ROW = 50  # to draw it
_WORK_OF_MEANS = 5e4  # to find the best arm of a context
_ROOM = 2**23  # numbers of worlds that are drawn at a time


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
    """Number of rounds that the policy plays before the best arms by then stay; 0 if none pays."""
    worlds: int
    policy: str = POLICY
    """Policy that continues."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, and value and limit per round."""
        each = {
            "value_a_round": self.value / self.rounds,
            "limit_a_round": self.limit / self.rounds,
        }
        return asdict(self) | each

    @classmethod
    def from_dict(cls, page: Mapping[str, Any]) -> Continuing:
        """Inverse of `as_dict`."""
        return cls(**{part.name: page[part.name] for part in fields(cls)})


def value_of_continuing(
    belief: Belief, rounds: int, worlds: int | None = None, rng: Random = 0
) -> Continuing:
    """Estimate what more rounds are expected to gain over staying with what looks best now.

    Parameters
    ----------
    belief : Belief
        What is known now. It is not changed.
    rounds : int
        Number of rounds to continue for. Contexts come as the belief expects them.
    worlds : int, optional
        Number of worlds to draw. Defaults to as many as take a second or two, from 50 to 1,000.
    rng : int or numpy.random.Generator
        Seed or source of randomness.

    Returns
    -------
    Continuing

    Raises
    ------
    DowiseError
        If an argument is invalid, or if the belief knows only rewards of arms.

    Examples
    --------
    >>> from dowise import Belief, load_problem
    >>> found = value_of_continuing(Belief(load_problem("task1")), rounds=20, worlds=20)
    >>> found.value <= found.limit + 3 * found.error
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
    count = check_integer("rounds", rounds, 1, MAX_ROUNDS)
    many = _worlds_for(posterior, count, worlds)
    source, play = generator(rng), _Play(posterior, count)
    together = max(1, _ROOM // posterior.model.factors.entries)
    found: list[FloatArray] = []
    for start in range(0, many, together):
        drawn = draw_worlds(posterior, min(together, many - start), source)
        found += [play.compare(entries, source) for entries in drawn]
    gains = np.array(found)
    chosen = int(gains[: many // 2, 1:].mean(axis=0).argmax())
    rest = gains[many // 2 :, 1 + chosen]
    error = float(rest.std(ddof=1)) / sqrt(len(rest))
    limit = float(gains[:, 0].mean())
    return Continuing(count, float(rest.mean()), error, limit, play.stops[chosen], many)


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
    work = _WORK_OF_A_ROUND + _WORK_OF_A_ROW * len(circuit.blocks)
    work += sum(part.size for part in circuit.operations)
    contexts = prod(len(problem.domains[name]) for name in problem.context)
    means = HALVINGS * min(contexts, rounds) * _WORK_OF_MEANS
    most = min(MAX_WORLDS, MAX_PLAYS // rounds)
    return int(np.clip(_WORK / (rounds * work + means), min(MIN_WORLDS, most), most))


def _stops(rounds: int) -> tuple[int, ...]:
    """Return the numbers of rounds to continue for, rising from none to all."""
    return (0, *sorted({ceil(rounds / 2**i) for i in range(HALVINGS)}))


def _distinct(contexts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct contexts, and the index of each round's context."""
    if not contexts.shape[1]:
        return contexts[:1], np.zeros(len(contexts), dtype=np.int64)
    kinds, numbers = np.unique(contexts, axis=0, return_inverse=True)
    return kinds, numbers.ravel()


class _Play:
    """Plays the policy in one world after the other, each time from what is known now."""

    def __init__(self, posterior: Posterior, rounds: int) -> None:
        self.problem: Problem = posterior.problem
        self.posterior, self.rounds, self.stops = posterior, rounds, _stops(rounds)
        self.sampler: Sampler = sampler_of(self.problem)
        self._now: dict[Codes, int] = {}

    def compare(self, entries: FloatArray, source: np.random.Generator) -> FloatArray:
        """Return the limit and V(m) for each m in the world of these entries."""
        problem, world = self.problem, self.sampler.at(entries)
        kinds, numbers = _distinct(self.sampler.contexts(world, self.rounds, source))
        known = [tuple(codes) for codes in kinds.tolist()]
        parts = self.posterior.model.distributions_in([entries] * len(known), known)
        means = np.concatenate([part @ problem.payoff.values for part in parts])
        regrets = problem.payoff.regrets(problem.payoff.net(means))
        script = TrialScript(world, numbers, kinds, source.random((self.rounds, len(world.order))))
        limit = regrets[numbers, self._best_now(known)[numbers]].sum()
        policy, cost, found = self._policy(), 0.0, [limit, 0.0]
        for begin, end in zip(self.stops, self.stops[1:], strict=False):
            here, later = numbers[begin:end], numbers[end:]
            part = script._replace(contexts=here, uniforms=script.uniforms[begin:end])
            cost += regrets[here, self._played(policy, part, entries, source)].sum()
            by_then = self._best(policy, known) if len(later) else np.zeros(len(known), np.int64)
            found.append(limit - cost - regrets[later, by_then[later]].sum())
        return np.array(found)

    def _policy(self) -> BayesianPolicy:
        policy = make_policy(
            POLICY, self.problem, belief=Belief(self.problem, posterior=self.posterior.copy())
        )
        assert isinstance(policy, BayesianPolicy)
        policy.suppress_warnings = True
        return policy

    def _best_now(self, known: list[Codes]) -> IntArray:
        """Return the arm that looks best now in each of these contexts."""
        new = [codes for codes in known if codes not in self._now]
        if new:
            self._now |= zip(new, self._best(self._policy(), new).tolist(), strict=True)
        return np.array([self._now[codes] for codes in known])

    def _best(self, policy: BayesianPolicy, known: list[Codes]) -> IntArray:
        """Return the arm of the best posterior mean in each of these contexts."""
        posterior, payoff = policy.belief.posterior, self.problem.payoff
        means = [payoff.net(posterior.mean_distributions(codes) @ payoff.values) for codes in known]
        return np.array([payoff.best_of(one) for one in means])

    def _played(
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
            codes = tuple(script.known[number].tolist())
            arm = policy.decide(problem.context_labels(codes), source).arm
            chosen[t] = problem.arm_index(arm)
            seen = sample_outcome(problem, entries, int(chosen[t]), codes, source)
            policy.learn(Record(problem, arm, seen, problem.fixed(arm)))
        return chosen
