"""The best that any policy can do: dynamic programming over everything that may be learned.

What is known after t rounds is how often each CPT entry was seen, a vector of counts. One round in
context c with arm a shows one *record*, the values of the relevant variables, and adds 1 to one
entry of each of them that the arm did not set. A record's predictive probability is the product of
(α + count) / (sum over the row) over the entries that it hits, because it hits a row at most once.
So with V = 0 after the last round, and sums over contexts c and over the records o of (c, a), whose
reward is net of what arm a costs,

    V_t(n) = Σ_c max_a Σ_o P(c, o | n) · (reward(a, o) + V_{t+1}(n + hits(o))).

States are found layer by layer going forward, values going back. A state is packed into as few
64-bit words as its counts need, so that equal states are found by sorting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.model import Factors
from dowise.problem import Problem

__all__ = ["Outcomes", "Plan", "relevant_variables"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_BITS = 62  # of a word of a key


def relevant_variables(problem: Problem) -> tuple[str, ...]:
    """The variables that can matter, sorted: the reward, and whatever a relevant one depends on.

    A relevant variable that an arm leaves alone depends on those of its parents that the arm leaves
    alone too. Variables outside don't touch the rewards nor what can be learned of them.
    """
    sets = {arm.variables for arm in problem.arms}
    found, waiting = {problem.reward}, [problem.reward]
    while waiting:
        name = waiting.pop()
        parents = {
            parent
            for variables in sets
            if name not in variables
            for parent in problem.graph.parents(name)
            if parent not in variables
        }
        waiting += parents - found
        found |= parents
    return tuple(sorted(found))


@dataclass(frozen=True, eq=False)
class Outcomes:
    """All that one round can show, ordered by context, then arm.

    `hits[r]` are the entries that record r adds 1 to, one for each relevant variable; where the arm
    set the variable it is `len(entries)`, one past the last.
    """

    variables: tuple[str, ...]
    contexts: Integers
    """The number of each record's context: the positions of its values in mixed radix."""
    arms: Integers
    rewards: Floats
    """Net of what the arm costs, in the user's units, with a sign such that more is better."""
    hits: Integers
    entries: Integers
    """The flat CPT entries that some record hits: whole rows, rising."""
    rows: Integers
    """Where each row starts among `entries`."""

    @classmethod
    def of(cls, problem: Problem, factors: Factors) -> Outcomes:
        """Enumerate them."""
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
            where = [
                factors.starts[v] + factors.strides[v] @ codes
                if v in free
                else np.full(codes.shape[1], factors.entries)
                for v in numbers
            ]
            number = np.zeros(codes.shape[1], dtype=np.int64)
            for v in context:
                number = number * factors.sizes[v] + codes[v]
            worth = problem.payoff.oriented(problem.payoff.net(problem.payoff.values, position))
            rewards = worth[codes[problem.reward_position]]
            parts.append((number, np.full_like(number, position), rewards, np.stack(where, axis=1)))
        contexts, arms, rewards, all_hits = (np.concatenate(x) for x in zip(*parts, strict=True))
        order = np.lexsort((arms, contexts))
        found = np.unique(all_hits)
        entries = found[found < factors.entries]
        rows = np.flatnonzero(np.isin(entries, factors.row_starts))
        hits = np.searchsorted(entries, all_hits[order])
        return cls(variables, contexts[order], arms[order], rewards[order], hits, entries, rows)

    @cached_property
    def choices(self) -> list[list[range]]:
        """For each context and each arm the numbers of the records that it can lead to."""
        new = np.diff(self.contexts, prepend=-1) | np.diff(self.arms, prepend=-1)
        starts = np.flatnonzero(new).tolist()
        runs = [range(*ends) for ends in zip(starts, [*starts[1:], len(new)], strict=True)]
        arms = int(self.arms.max()) + 1
        return [runs[i : i + arms] for i in range(0, len(runs), arms)]

    @staticmethod
    def count(problem: Problem) -> int:
        """How many there are, before any is made."""
        variables = relevant_variables(problem)
        return sum(
            prod(len(problem.domains[name]) for name in variables if name not in arm)
            for arm in problem.arms
        )


class Plan:
    """The value of every state that `horizon` rounds can lead to, the last round's included.

    `counts` are the prior's, for all CPT entries. Values are those of `Outcomes.rewards`: more is
    better.
    """

    def __init__(
        self, problem: Problem, factors: Factors, counts: Floats, horizon: int, max_states: int
    ) -> None:
        kinds = Outcomes.count(problem)
        size = max(float(min(kinds, 10**300)), _most_states(kinds, horizon))
        if size > max_states:
            raise DowiseError(
                f"planning {horizon:,} rounds of this problem, each with {kinds:,} possible "
                f"records, takes up to {size:.3g} states, and max_states is {max_states:,}: "
                "shorten the horizon, or make the problem smaller"
            )
        self.horizon = horizon
        self.outcomes = Outcomes.of(problem, factors)
        self._prior = counts[self.outcomes.entries]
        self._number_states(horizon)
        successors = self._forward()
        self.layers: list[Floats] = [np.zeros(1)] * horizon
        """The values of the states of each layer: expected rewards from there to the end."""
        for t in reversed(range(horizon)):
            later = self.layers[t + 1] if t + 1 < horizon else None
            self.layers[t] = self._values(self.keys[t], later, successors.pop())

    @property
    def value(self) -> float:
        """The expected total reward from the start, over all rounds."""
        return float(self.layers[0][0])

    def context_chances(self) -> Floats:
        """The probability of each context under the prior."""
        one_arm = self.outcomes.arms == 0
        means = self._means(np.zeros((len(self._prior), 1)))[:, 0]
        chances = means[self.outcomes.hits[one_arm]].prod(axis=1)
        return _sums(self.outcomes.contexts[one_arm], chances)

    def arm_values(self, counts: Integers, rounds: int, context: int) -> Floats | None:
        """What each arm brings in this context, this round and all later ones played best.

        `counts` are how often each of `records.entries` was seen in the rounds so far; None if no
        play of the arms leads there.
        """
        key = counts @ self._weights
        if counts.max() >= self._base or _find(self.keys[rounds], key) < 0:
            return None
        here = np.flatnonzero(self.outcomes.contexts == context)
        means = self._means(counts[:, None].astype(np.float64))
        chances = means[self.outcomes.hits[here], 0].prod(axis=1)
        total = self.outcomes.rewards[here].copy()
        if rounds + 1 < self.horizon:
            after = [_find(self.keys[rounds + 1], key + step) for step in self._steps[here]]
            total += self.layers[rounds + 1][after]
        arms = self.outcomes.arms[here]
        return _sums(arms, chances * total) / _sums(arms, chances)

    def _number_states(self, horizon: int) -> None:
        """Choose the place of each count in the words of a key; counts stay below the horizon."""
        base, entries = max(horizon, 2), len(self.outcomes.entries)
        a_word = max(int(_BITS / np.log2(base)), 1)
        self._base, self._word = base, np.arange(entries) // a_word
        self._weights = np.zeros((entries, int(self._word[-1]) + 1), dtype=np.int64)
        self._place = np.array([base ** (e % a_word) for e in range(entries)], dtype=np.int64)
        self._weights[np.arange(entries), self._word] = self._place
        none = np.zeros_like(self._weights[:1])
        self._steps: Integers = np.vstack([self._weights, none])[self.outcomes.hits].sum(axis=1)
        """What each record adds to a key."""

    def _forward(self) -> list[NDArray[np.int32]]:
        """The keys of every layer, and where each record leads from each state."""
        self.keys: list[Integers] = [np.zeros((1, self._weights.shape[1]), dtype=np.int64)]
        successors = []
        for _ in range(self.horizon - 1):
            reached = (self._steps[:, None] + self.keys[-1]).reshape(-1, self._weights.shape[1])
            keys, places = _distinct(reached)
            self.keys.append(keys)
            successors.append(places.reshape(len(self._steps), -1).astype(np.int32))
        return [*successors, np.zeros((0, 0), dtype=np.int32)]  # after the last round: nowhere

    def _values(
        self, keys: Integers, later: Floats | None, successors: NDArray[np.int32]
    ) -> Floats:
        """One step of the backward induction, for all states of a layer."""
        hits, rewards = self.outcomes.hits, self.outcomes.rewards
        means = self._means(self._counts(keys))
        values = np.zeros(len(keys))
        for choices in self.outcomes.choices:
            best = np.full(len(keys), -np.inf)
            for outcomes in choices:
                brought = np.zeros(len(keys))
                for r in outcomes:
                    future = 0.0 if later is None else later[successors[r]]
                    brought += means[hits[r]].prod(axis=0) * (rewards[r] + future)
                best = np.maximum(best, brought)
            values += best
        return values

    def _counts(self, keys: Integers) -> Floats:
        """How often each entry was seen in each state: (entries, states)."""
        return (keys.T[self._word] // self._place[:, None] % self._base).astype(np.float64)

    def _means(self, counts: Floats) -> Floats:
        """The mean of each entry in each state, and a row of ones: (entries + 1, states)."""
        counts = counts + self._prior[:, None]
        sizes = np.diff(np.append(self.outcomes.rows, len(counts)))
        sums = np.repeat(np.add.reduceat(counts, self.outcomes.rows, axis=0), sizes, axis=0)
        return np.vstack([counts / sums, np.ones((1, counts.shape[1]))])


def _sums(groups: Integers, values: Floats) -> Floats:
    """The sum of the values of each group."""
    return np.asarray(np.bincount(groups, weights=values), dtype=np.float64)


def _most_states(kinds: int, horizon: int) -> float:
    """How many states there are at most before the last round; 1e300 stands for all above."""
    few = min(kinds, horizon - 1)
    # A state is a bag of records; different bags may be the same state.
    return float(min(comb(horizon - 1 + kinds, few), 10**300)) if few < 600 else 1e300


def _distinct(keys: Integers) -> tuple[Integers, Integers]:
    """The distinct keys in order, first word first, and the place of each key among them."""
    code = keys[:, 0]
    for word in keys.T[1:]:
        _, high = np.unique(code, return_inverse=True)
        known, low = np.unique(word, return_inverse=True)
        code = high * len(known) + low
    _, first, places = np.unique(code, return_index=True, return_inverse=True)
    return keys[first], places


def _find(keys: Integers, wanted: Integers) -> int:
    """The place of a key among keys in order, −1 where it is not one of them."""
    low, high = 0, len(keys)
    for column, word in zip(keys.T, wanted, strict=True):
        part = column[low:high]
        low, high = (low + int(np.searchsorted(part, word, side)) for side in ("left", "right"))
    return low if low < high else -1
