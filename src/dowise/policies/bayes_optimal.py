"""`bayes-optimal`: the best possible policy on average, for problems small enough to plan.

`Outcomes` enumerates the records of a round, `StatePlan` values every state of the posterior by
backward induction, and `BayesOptimal` looks its decisions up in the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import comb, prod

import numpy as np

from dowise._core.document import pluralize
from dowise._core.rng import Random, generator
from dowise._core.types import FloatArray, Int32Array, IntArray
from dowise._core.validation import check_integer
from dowise.belief import Belief, Posterior
from dowise.errors import DowiseError
from dowise.model import Codes, FactorLayout, model_of
from dowise.policies.base import Choice, one_hot, validate_contexts
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import Decision, DecisionTrace
from dowise.policies.requirements import Numbers, RecordMask, RecordRequirements
from dowise.problem import Problem, Record
from dowise.problem.prior import Prior
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch

_BITS = 62  # used of each word of a key


def relevant_variables(problem: Problem) -> tuple[str, ...]:
    """Return the variables that can matter, sorted.

    These are the reward and, of each relevant variable, the parents that some arm leaves alone
    together with it. Other variables influence neither rewards nor what can be learned about them.
    """
    sets = {arm.variables for arm in problem.arms}
    relevant, waiting = {problem.reward}, [problem.reward]
    while waiting:
        name = waiting.pop()
        parents = {
            parent
            for variables in sets
            if name not in variables
            for parent in problem.graph.parents(name)
            if parent not in variables
        }
        waiting += parents - relevant
        relevant |= parents
    return tuple(sorted(relevant))


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Possible records of one round, ordered by context, then arm.

    `hits[r]` are the entries that record r adds 1 to, one for each relevant variable; for variables
    that the arm sets it is `len(entries)`, one past the last.
    """

    variables: tuple[str, ...]
    contexts: IntArray
    """Number of each record's context: its codes in mixed radix."""
    arms: IntArray
    rewards: FloatArray
    """Net of the arm's cost, in the user's units, with the sign such that more is better."""
    hits: IntArray
    entries: IntArray
    """Flat CPT entries of all rows that some record hits, rising."""
    rows: IntArray
    """Start of each row among `entries`."""

    @classmethod
    def from_problem(cls, problem: Problem, factors: FactorLayout) -> Outcomes:
        """Enumerate all possible records."""
        variables = relevant_variables(problem)
        numbers = [problem.positions[name] for name in variables]
        context = [problem.positions[name] for name in variables if name in problem.context]
        parts = []
        for position, arm in enumerate(problem.arms):
            fixed = problem.fixed(arm)
            free = [v for v in numbers if fixed[v] < 0]
            sizes = [int(factors.sizes[v]) for v in free]
            codes = np.repeat(np.maximum(fixed, 0)[:, None], prod(sizes), axis=1)
            codes[free] = np.indices(sizes).reshape(len(free), -1)
            indices = [
                factors.starts[v] + factors.strides[v] @ codes
                if v in free
                else np.full(codes.shape[1], factors.entries)
                for v in numbers
            ]
            number = np.zeros(codes.shape[1], dtype=np.int64)
            for v in context:
                number = number * factors.sizes[v] + codes[v]
            values = problem.payoff.oriented(problem.payoff.net(problem.payoff.values, position))
            rewards = values[codes[problem.reward_position]]
            parts.append(
                (number, np.full_like(number, position), rewards, np.stack(indices, axis=1))
            )
        contexts, arms, rewards, all_hits = (np.concatenate(x) for x in zip(*parts, strict=True))
        order = np.lexsort((arms, contexts))
        entries = np.unique(all_hits)
        entries = entries[entries < factors.entries]
        rows = np.flatnonzero(np.isin(entries, factors.row_starts))
        hits = np.searchsorted(entries, all_hits[order])
        return cls(variables, contexts[order], arms[order], rewards[order], hits, entries, rows)

    @cached_property
    def choices(self) -> list[list[range]]:
        """Records that each arm can lead to in each context: choices[context][arm]."""
        new = np.diff(self.contexts, prepend=-1) | np.diff(self.arms, prepend=-1)
        starts = np.flatnonzero(new).tolist()
        runs = [range(*ends) for ends in zip(starts, [*starts[1:], len(new)], strict=True)]
        arms = int(self.arms.max()) + 1
        return [runs[i : i + arms] for i in range(0, len(runs), arms)]

    @staticmethod
    def count(problem: Problem) -> int:
        """Return the number of possible records without enumerating them."""
        variables = relevant_variables(problem)
        return sum(
            prod(len(problem.domains[name]) for name in variables if name not in arm)
            for arm in problem.arms
        )


class StatePlan:
    """Value of every state that can occur within `horizon` rounds.

    `counts` are the prior counts of all CPT entries. Values are sums of `Outcomes.rewards`, so more
    is better.
    """

    def __init__(
        self,
        problem: Problem,
        factors: FactorLayout,
        counts: FloatArray,
        horizon: int,
        max_states: int,
    ) -> None:
        kinds = Outcomes.count(problem)
        size = max(float(min(kinds, 10**300)), _max_states(kinds, horizon))
        if size > max_states:
            raise DowiseError(
                f"planning {horizon:,} rounds of this problem, each with {kinds:,} possible "
                f"records, takes up to {size:.3g} states, and max_states is {max_states:,}: "
                "shorten the horizon or make the problem smaller",
                code="too-large",
            )
        self.horizon = horizon
        self.outcomes = Outcomes.from_problem(problem, factors)
        self._prior = counts[self.outcomes.entries]
        self._number_states(horizon)
        successors = self._forward()
        self.layers: list[FloatArray] = [np.zeros(1)] * horizon
        """Value of each state of each layer: the expected reward from there to the end."""
        for t in reversed(range(horizon)):
            later = self.layers[t + 1] if t + 1 < horizon else None
            self.layers[t] = self._values(self.keys[t], later, successors.pop())

    @property
    def value(self) -> float:
        """Expected total reward from the start, over all rounds."""
        return float(self.layers[0][0])

    def context_chances(self) -> FloatArray:
        """Return the probability of each context under the prior."""
        one_arm = self.outcomes.arms == 0
        means = self._means(np.zeros((len(self._prior), 1)))[:, 0]
        chances = means[self.outcomes.hits[one_arm]].prod(axis=1)
        return _sums(self.outcomes.contexts[one_arm], chances)

    def arm_values(self, counts: IntArray, rounds: int, context: int) -> FloatArray | None:
        """Return the value of each arm in this context if all later rounds are played optimally.

        `counts` are the numbers of times that each of `outcomes.entries` was hit in the rounds so
        far. Returns None if no plays of the arms lead to such counts.
        """
        key = counts @ self._weights
        if counts.max() >= self._base or _find(self.keys[rounds], key) < 0:
            return None
        records = np.flatnonzero(self.outcomes.contexts == context)
        means = self._means(counts[:, None].astype(np.float64))
        chances = means[self.outcomes.hits[records], 0].prod(axis=1)
        total = self.outcomes.rewards[records].copy()
        if rounds + 1 < self.horizon:
            after = [_find(self.keys[rounds + 1], key + step) for step in self._steps[records]]
            total += self.layers[rounds + 1][after]
        arms = self.outcomes.arms[records]
        return _sums(arms, chances * total) / _sums(arms, chances)

    def _number_states(self, horizon: int) -> None:
        """Assign each count a position in the words of a key; counts stay below the horizon."""
        base, entries = max(horizon, 2), len(self.outcomes.entries)
        per_word = max(int(_BITS / np.log2(base)), 1)
        self._base, self._word = base, np.arange(entries) // per_word
        self._weights = np.zeros((entries, int(self._word[-1]) + 1), dtype=np.int64)
        self._place = np.array([base ** (e % per_word) for e in range(entries)], dtype=np.int64)
        self._weights[np.arange(entries), self._word] = self._place
        zero = np.zeros_like(self._weights[:1])
        self._steps: IntArray = np.vstack([self._weights, zero])[self.outcomes.hits].sum(axis=1)
        """Increment of the key by each record: (records, words)."""

    def _forward(self) -> list[Int32Array]:
        """Compute the keys of every layer, and the successor of each state by record."""
        self.keys: list[IntArray] = [np.zeros((1, self._weights.shape[1]), dtype=np.int64)]
        successors = []
        for _ in range(self.horizon - 1):
            reached = (self._steps[:, None] + self.keys[-1]).reshape(-1, self._weights.shape[1])
            keys, indices = _distinct(reached)
            self.keys.append(keys)
            successors.append(indices.reshape(len(self._steps), -1).astype(np.int32))
        return [*successors, np.zeros((0, 0), dtype=np.int32)]  # none after the last round

    def _values(
        self, keys: IntArray, later: FloatArray | None, successors: Int32Array
    ) -> FloatArray:
        """Return the values of all states of a layer: one step of the backward induction."""
        hits, rewards = self.outcomes.hits, self.outcomes.rewards
        means = self._means(self._counts(keys))
        values = np.zeros(len(keys))
        for choices in self.outcomes.choices:
            best = np.full(len(keys), -np.inf)
            for outcomes in choices:
                expected = np.zeros(len(keys))
                for r in outcomes:
                    future = 0.0 if later is None else later[successors[r]]
                    expected += means[hits[r]].prod(axis=0) * (rewards[r] + future)
                best = np.maximum(best, expected)
            values += best
        return values

    def _counts(self, keys: IntArray) -> FloatArray:
        """Return the counts of each entry in each state: (entries, states)."""
        return (keys.T[self._word] // self._place[:, None] % self._base).astype(np.float64)

    def _means(self, counts: FloatArray) -> FloatArray:
        """Return the mean of each entry in each state, and a row of ones: (entries + 1, states)."""
        counts = counts + self._prior[:, None]
        sizes = np.diff(np.append(self.outcomes.rows, len(counts)))
        sums = np.repeat(np.add.reduceat(counts, self.outcomes.rows, axis=0), sizes, axis=0)
        return np.vstack([counts / sums, np.ones((1, counts.shape[1]))])


def _sums(groups: IntArray, values: FloatArray) -> FloatArray:
    """Return the sum of the values of each group."""
    return np.asarray(np.bincount(groups, weights=values), dtype=np.float64)


def _max_states(kinds: int, horizon: int) -> float:
    """Return an upper bound of the number of states before the last round, at most 1e300."""
    smaller = min(kinds, horizon - 1)
    # A state is a multiset of records; different multisets may be the same state.
    return float(min(comb(horizon - 1 + kinds, smaller), 10**300)) if smaller < 600 else 1e300


def _distinct(keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct keys in order, first word first, and the index of each key among them."""
    code = keys[:, 0]
    for word in keys.T[1:]:
        _, high = np.unique(code, return_inverse=True)
        distinct, low = np.unique(word, return_inverse=True)
        code = high * len(distinct) + low
    _, first, indices = np.unique(code, return_index=True, return_inverse=True)
    return keys[first], indices


def _find(keys: IntArray, wanted: IntArray) -> int:
    """Return the index of a key among sorted keys, −1 if it is not one of them."""
    low, high = 0, len(keys)
    for column, word in zip(keys.T, wanted, strict=True):
        words = column[low:high]
        low, high = (low + int(np.searchsorted(words, word, side)) for side in ("left", "right"))
    return low if low < high else -1


MAX_STATES = 5_000_000
_ROUNDING = 1e-12


class BayesOptimal(BayesianPolicy):
    """Maximise the expected total reward over `horizon` rounds, exactly.

    The expectation is over CPTs from the prior, contexts included; the plan accounts for everything
    that later rounds may teach (Bellman's dynamic programming over posterior states; Berry &
    Fristedt 1985). It is a yardstick: no policy has a smaller Bayesian regret over these rounds.
    The number of states grows fast, so it is for small problems: a two-arm X -> Y up to a horizon
    of about 100, the paper's task 1 up to 10. Beyond `max_states` it raises an error with an
    estimate.

    If only some arms are `allowed` it plays the best of them, assuming that all are allowed later.
    It is deterministic: the chosen arm has probability 1. Figures: `values`, the expected reward of
    each arm from this round to the end in the user's units, and `rounds_left`. Policies with the
    same problem, prior and horizon share their plan. In a batch (`decide_many`) each decision is
    made as if the decisions before it had outcomes, which count as rounds of the plan.

    Applies for at most `horizon` rounds, if no bidirected or doubtful edge touches what the reward
    depends on, and if every relevant variable is observed afterwards.
    """

    uses_fantasies = True

    def __init__(
        self,
        problem: Problem,
        horizon: int,
        prior: Prior | None = None,
        max_states: int = MAX_STATES,
        belief: Belief | None = None,
    ) -> None:
        super().__init__(problem, prior, belief)
        self.horizon = check_integer("horizon", horizon, 1)
        posterior = self.belief.posterior
        _refuse_open_edges(problem, posterior)
        posterior.refuse_pooled("bayes-optimal")
        self._start = Belief(problem, posterior=posterior.copy())
        self._counts_at_start = posterior.counts.copy()
        parameters = posterior.parameters.tobytes()
        max_states = check_integer("max_states", max_states, 1)
        self._plan = _plan(problem, parameters, self.horizon, max_states)
        names = self._plan.outcomes.variables
        needed = [*(problem.positions[name] for name in names), *problem.context_positions.tolist()]
        self.requires = RecordRequirements(
            tuple(dict.fromkeys(needed)),
            f"this policy plans with complete outcomes, which include {', '.join(names)}",
            arm=True,
        )
        starts = posterior.model.factors.starts
        self._reward = slice(*starts[problem.reward_position : problem.reward_position + 2])

    @property
    def value(self) -> float:
        """Expected total reward over all rounds, net of cost, in the user's units."""
        return self.problem.payoff.oriented(self._plan.value)

    def expected_regret(self, samples: int, rng: Random) -> tuple[float, float]:
        """Return horizon · E[max_a μ(a, C)] minus the value, and the standard error of that.

        If smaller is better, the maximum is replaced by the minimum. The value is exact, and so is
        the mean reward of all arms, E[Σ_a μ(a, C)] / K; the advantage of the best arm over it is a
        mean over draws from the prior. The rows of the context and the rows that rewards depend on
        are independent, so the expectation over contexts is exact too.
        """
        source, best, variance = generator(rng), 0.0, 0.0
        oriented = self.problem.payoff.oriented
        for context, chance in self._contexts():
            drawn = oriented(self._start.draw_rewards(context, samples, source))
            advantage = drawn.max(axis=0) - drawn.mean(axis=0, dtype=np.float64)
            mean = oriented(self._start.mean_rewards(context)).mean()
            best += chance * float(mean + advantage.mean())
            variance += chance**2 * float(advantage.var()) / samples
        error = self.horizon * float(np.sqrt(variance))
        return self.horizon * best - self._plan.value, error

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the arm that is best for this round and all remaining ones."""
        counts = self._counts_since_start()
        rounds = int(counts[self._reward].sum())
        if rounds >= self.horizon:
            raise DowiseError(self._is_over(), code="horizon-over")
        values = self._plan.arm_values(
            counts[self._plan.outcomes.entries], rounds, self._number_of(codes)
        )
        if values is None:
            raise DowiseError(
                "the belief has learned something that no play of this problem's arms can show: it "
                "must learn from complete outcomes of arms, by `observe`",
                code="unusable-record",
            )
        allowed = values[arms]
        # Equivalent arms differ by rounding; the first of them is played.
        tied = allowed >= allowed.max() - _ROUNDING * max(1.0, float(np.abs(values).max()))
        chosen = int(arms[tied.argmax()])
        remaining, values = self.horizon - rounds, self.problem.payoff.oriented(values)
        reason = (
            f"no arm is a better first play for the {pluralize(remaining, 'round')} left: with "
            f"optimal play they are expected to bring {values[chosen]:.4g} in total"
        )
        trace = DecisionTrace(reason, {"values": values, "rounds_left": remaining})
        return Choice(chosen, one_hot(self.problem, chosen), trace)

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """Make a decision for each context; at most as many as there are rounds left."""
        labels = validate_contexts(self.problem, contexts)
        if len(labels) > self._rounds_left():
            raise DowiseError(
                f"{self._rounds_left():,} of {self.horizon:,} rounds are left, too few for "
                f"{len(labels):,} decisions: use a longer horizon",
                code="horizon-over",
            )
        return super().decide_many(labels, rng, allowed)

    def rejection_reason(self, record: Record) -> str | None:
        """Return why `learn` would refuse a record; None if it would take it."""
        reason = super().rejection_reason(record)
        return reason if reason is not None or self._rounds_left() else self._is_over()

    def usable_mask(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Return the records that the plan can follow; at most as many as rounds are left."""
        usable = super().usable_mask(records, numbers)
        usable.exclude(np.cumsum(usable.mask) > self._rounds_left(), self._is_over())
        return usable

    def _counts_since_start(self) -> IntArray:
        counts: IntArray = self.belief.posterior.counts - self._counts_at_start
        return counts

    def _rounds_left(self) -> int:
        return max(self.horizon - int(self._counts_since_start()[self._reward].sum()), 0)

    def _is_over(self) -> str:
        return f"the horizon of {self.horizon:,} rounds is over: use a longer horizon"

    def _number_of(self, codes: tuple[int, ...]) -> int:
        """Return the number of a context, by the context variables that are relevant."""
        number = 0
        for name, code in zip(self.problem.context, codes, strict=True):
            if name in self._plan.outcomes.variables:
                number = number * len(self.problem.domains[name]) + code
        return number

    def _contexts(self) -> list[tuple[dict[str, str], float]]:
        """Return a context for each number, with its probability under the prior."""
        problem = self.problem
        names = [name for name in problem.context if name in self._plan.outcomes.variables]
        first = {name: problem.domains[name][0] for name in problem.context}
        values = product(*(problem.domains[name] for name in names))
        chances = self._plan.context_chances().tolist()
        return [
            (first | dict(zip(names, labels, strict=True)), chance)
            for labels, chance in zip(values, chances, strict=True)
        ]


def _refuse_open_edges(problem: Problem, posterior: Posterior) -> None:
    """Raise `DowiseError` for hidden causes and doubtful edges, which the plan can't follow."""
    if posterior.is_settled and posterior.model.factors.is_plain:
        return
    from dowise.policies.registry import policies_for_hidden_causes

    edges = [*problem.edge_priors, *(f"{a} <-> {b}" for a, b in problem.graph.bidirected_edges)]
    raise DowiseError(
        "bayes-optimal can't plan with hidden common causes or doubtful edges, here "
        f"{', '.join(dict.fromkeys(edges))}: its plan follows the counts of one CPT per variable "
        f"(policies that apply: {', '.join(policies_for_hidden_causes())})",
        code="unsupported-graph",
    )


@lru_cache(maxsize=2)
def _plan(problem: Problem, parameters: bytes, horizon: int, max_states: int) -> StatePlan:
    """Return the plan, which trials of one problem share."""
    flat: FloatArray = np.frombuffer(parameters)
    return StatePlan(problem, model_of(problem).factors, flat, horizon, max_states)
