"""The policy that no other can beat on average, for problems that are small enough to plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from dowise._core.document import pluralize
from dowise._core.rng import Random, generator
from dowise._core.validation import check_integer
from dowise.belief import Belief, Posterior
from dowise.belief.prior import Prior
from dowise.errors import DowiseError
from dowise.model import FactorLayout, model_of
from dowise.policies.base import (
    BayesianPolicy,
    Numbers,
    RecordMask,
    allowed_arms,
    certainly,
    check_batch,
    contexts_of_batch,
)
from dowise.policies.decision import Decision, Figures
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import RecordBatch, check_record

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
    def of(cls, problem: Problem, factors: FactorLayout) -> Outcomes:
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


class StatePlan:
    """The value of every state that `horizon` rounds can lead to, the last round's included.

    `counts` are the prior's, for all CPT entries. Values are those of `Outcomes.rewards`: more is
    better.
    """

    def __init__(
        self, problem: Problem, factors: FactorLayout, counts: Floats, horizon: int, max_states: int
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


MAX_STATES = 5_000_000
_ROUNDING = 1e-12


class BayesOptimal(BayesianPolicy):
    """The best expected total reward over `horizon` rounds, exactly.

    The expectation is over CPTs from the prior, the contexts included; the plan takes into account
    all that later rounds may teach (Bellman's dynamic programming over posterior states; Berry &
    Fristedt 1985). A yardstick: no policy has a smaller Bayesian regret over these rounds. The
    number of states grows fast, so it is for small problems: a two-arm X -> Y up to a horizon of
    about 100, the paper's task 1 up to 10. Beyond `max_states` it refuses, with an estimate.

    Applies when no bidirected or doubtful edge touches what the reward needs, to `horizon` rounds
    and no more, with every relevant variable seen afterwards. Where only some arms are `allowed` it
    plays the best of them on the assumption that all are allowed later. Nothing is random: the
    chosen arm has probability 1. Figures: `values`, what each arm is expected to bring from this
    round to the end, in the user's units, and `rounds_left`. Plans are kept for the next policies
    of the same kind. The plan is for one round at a time. In a batch (`decide_many`) each decision
    is made as if those before it had had an outcome, which counts as a round of the plan.
    """

    imagines = True

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
        _refuse_what_is_open(problem, posterior)
        self._start = Belief(problem, posterior=posterior.copy())
        self._learned, self._known = posterior, posterior.counts.copy()
        parameters = posterior.parameters.tobytes()
        states = check_integer("max_states", max_states, 1)
        self._plan = _plan(problem, parameters, self.horizon, states)
        self._needed = [problem.positions[name] for name in self._plan.outcomes.variables]
        self._needs = (
            "this policy plans with complete outcomes, so give all of "
            f"{', '.join(self._plan.outcomes.variables)}"
        )
        starts = posterior.model.factors.starts
        self._reward = slice(*starts[problem.reward_position : problem.reward_position + 2])

    @property
    def value(self) -> float:
        """The expected total reward over all rounds, net of cost, in the user's units."""
        return self.problem.payoff.oriented(self._plan.value)

    def expected_regret(self, samples: int, rng: Random) -> tuple[float, float]:
        """How far the value is from horizon · E[max_a μ(a, C)], and the standard error of that.

        Where smaller is better, from that of the minimum. The value is exact, and so is the mean
        reward of all arms, E[Σ_a μ(a, C)] / K; what the best arm has over it is a mean over draws
        from the prior. The rows of the context and those that the rewards depend on are
        independent, so that the expectation over contexts is exact too.
        """
        source, best, variance = generator(rng), 0.0, 0.0
        turned = self.problem.payoff.oriented
        for context, chance in self._contexts():
            drawn = turned(self._start.draw_rewards(context, samples, source))
            over = drawn.max(axis=0) - drawn.mean(axis=0, dtype=np.float64)
            best += chance * float(turned(self._start.mean_rewards(context)).mean() + over.mean())
            variance += chance**2 * float(over.var()) / samples
        error = self.horizon * float(np.sqrt(variance))
        return self.horizon * best - self._plan.value, error

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play the arm that is best for this round and all that are left."""
        generator(rng)  # nothing is drawn, but every policy wants one
        problem = self.problem
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        seen = self._learned.counts - self._known
        rounds = int(seen[self._reward].sum())
        if rounds >= self.horizon:
            raise DowiseError(self._is_over())
        counts = seen[self._plan.outcomes.entries]
        values = self._plan.arm_values(counts, rounds, self._number_of(codes))
        if values is None:
            raise DowiseError(
                "the belief holds what no play of this problem's arms can have shown: it must "
                "learn from complete outcomes of arms, by `observe`"
            )
        offered = values[arms]
        # Arms that are alike differ by rounding, and the first of them is to be played.
        tied = offered >= offered.max() - _ROUNDING * max(1.0, float(np.abs(values).max()))
        chosen = int(arms[tied.argmax()])
        left, worth = self.horizon - rounds, problem.payoff.oriented(values)
        reason = (
            f"no arm is a better start into the {pluralize(left, 'round')} left: played as well as "
            f"can be, they are expected to bring {worth[chosen]:.4g} in all"
        )
        figures = Figures({"values": worth, "rounds_left": left})
        sure, known = certainly(problem, chosen), problem.context_labels(codes)
        return Decision(problem.arms[chosen], sure, reason, figures, known)

    def decide_many(
        self,
        contexts: int | Iterable[Context],
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> list[Decision]:
        """A decision for each context; no more of them than there are rounds left."""
        checked = contexts_of_batch(self.problem, contexts)
        if len(checked) > self._rounds_left():
            raise DowiseError(
                f"of {self.horizon:,} rounds {self._rounds_left():,} are left, too few for "
                f"{len(checked):,} decisions: make a policy with a longer horizon"
            )
        return super().decide_many(checked, rng, allowed)

    def began_to_stand_in(self) -> None:
        """The plan is followed by what is learned from here on."""
        posterior = self.belief.posterior
        self._learned = posterior

    def lacks(self, record: Record) -> str | None:
        """Whether it is of no arm, a variable that matters is missing, or no round is left."""
        check_record(record, self.problem)
        if record.arm not in self.problem.arm_positions:
            return self.problem.not_an_arm(record.arm)
        why = record.lacking(self._needed, self._needs) or super().lacks(record)
        return why if why is not None or self._rounds_left() else self._is_over()

    def usable(self, records: RecordBatch, numbers: Numbers = None) -> RecordMask:
        """Those that the plan can follow, and no more of them than there are rounds left."""
        check_batch(self.problem, records, numbers)
        found = RecordMask.all_of(len(records))
        found.need_arms(records)
        found.need(records, self._needed, self._needs)
        found.need_context(records)
        too_late = np.cumsum(found.mask) > self._rounds_left()
        found.leave_out(too_late, self._is_over())
        return found

    def _rounds_left(self) -> int:
        seen = self._learned.counts[self._reward] - self._known[self._reward]
        return max(self.horizon - int(seen.sum()), 0)

    def _is_over(self) -> str:
        return (
            f"the horizon of {self.horizon:,} rounds is over: "
            "make a policy with a longer one for more"
        )

    def _number_of(self, codes: tuple[int, ...]) -> int:
        """The number of a context among those that matter."""
        number = 0
        for name, code in zip(self.problem.context, codes, strict=True):
            if name in self._plan.outcomes.variables:
                number = number * len(self.problem.domains[name]) + code
        return number

    def _contexts(self) -> list[tuple[dict[str, str], float]]:
        """A context for each number, with its probability under the prior."""
        problem = self.problem
        names = [name for name in problem.context if name in self._plan.outcomes.variables]
        others = {name: problem.domains[name][0] for name in problem.context}
        values = product(*(problem.domains[name] for name in names))
        chances = self._plan.context_chances().tolist()
        return [
            (others | dict(zip(names, labels, strict=True)), chance)
            for labels, chance in zip(values, chances, strict=True)
        ]


def _refuse_what_is_open(problem: Problem, posterior: Posterior) -> None:
    """Hidden causes and doubtful edges make more factors than a plan can follow."""
    if posterior.is_settled and posterior.model.factors.is_plain:
        return
    from dowise.policies.registry import names_with_hidden_causes

    edges = [*problem.edge_priors, *(f"{a} <-> {b}" for a, b in problem.graph.bidirected_edges)]
    raise DowiseError(
        "bayes-optimal can't plan with hidden common causes or doubtful edges, here "
        f"{', '.join(dict.fromkeys(edges))}: its plan follows the counts of one CPT for each "
        f"variable. Policies that do apply: {', '.join(names_with_hidden_causes())}"
    )


@lru_cache(maxsize=2)
def _plan(problem: Problem, parameters: bytes, horizon: int, max_states: int) -> StatePlan:
    """Trials of one problem share their plan."""
    flat: NDArray[np.float64] = np.frombuffer(parameters)
    return StatePlan(problem, model_of(problem).factors, flat, horizon, max_states)
