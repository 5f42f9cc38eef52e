"""Information gains beyond the paper's: from other observations, about other questions.

The paper's gain is I(A*; Y_a): what the reward of arm a tells about the best arm A* of the present
context. Here

- of what is seen, "all" takes all variables: I(A*; V_a). "rows" takes Σ_r v_r(a) I(A*; X_r): for
  each row r of a factor what one value X_r drawn from it would tell, times the probability v_r(a)
  that arm a visits it, at the posterior mean factors (an outcome visits one row of each factor).
- "map" asks for the best arms of all contexts: Σ_c' p(c') I(A*_c'; ·) in place of I(A*; ·), with
  p(c') the posterior probability that the next context is c'. That is I(A*_C; · | C), what is told
  about the best arm of the next context C.

All of it is for the posterior that gives each of the N draws the probability 1/N. I(A*; V_a) and
v_r(a) are exact then as long as the outcomes can be enumerated (`MAX_OUTCOMES`, `MAX_WALKS`, of
all arms together). Beyond that they are means over outcomes that are sampled, whose expectation is
the exact value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dowise._core.kernels import kernel, lazy_kernels
from dowise._core.rng import draw_key
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise.belief import Posterior
from dowise.belief.posterior import MAX_CONTEXTS, Key, RowDraws
from dowise.errors import DowiseError
from dowise.information.estimates import Estimate, estimate_of, sum_by_winner
from dowise.model import Codes
from dowise.model.model import Model
from dowise.problem import Problem


class Paths(NamedTuple):
    """Arm a has the steps from first[a] to first[a + 1], one a variable.

    At step s the value x of the l-th variable has the entry bases[s] + Σ strides[s, k]·codes[k]
    + x, k < l being the steps before it and codes[k] the values there.
    """

    first: IntArray
    bases: IntArray
    sizes: IntArray
    strides: IntArray


class OutcomePaths:
    """Steps of all arms, and the rows that they read, in any context."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._context = frozenset(model.problem.context_positions.tolist())
        self._starts: dict[int, int] = {}
        self._rows: list[IntArray] = []
        self._informative = self._informative_rows()
        self.paths = self._paths()
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.int64)
        sizes = model.factors.row_sizes[rows]
        starts = np.cumsum(sizes) - sizes
        told = self._informative[rows]
        self.told_starts: IntArray = starts[told]
        """The first entry of every row that is drawn, among the entries here."""
        self.told_sizes: IntArray = sizes[told]
        self.entries = int(sizes.sum())
        first, steps = self.paths.first.tolist(), self.paths.sizes.tolist()
        bounds = pairwise(first)
        self._counts = np.array([prod(map(float, steps[a:b])) for a, b in bounds])
        self._rows_here = rows
        self._starts_here, self._sizes_here = starts, sizes
        self._places: dict[Codes, IntArray] = {}
        self._drawn = np.repeat(told, sizes)
        self._row_draws = RowDraws(model, rows[told]) if told.any() else None

    def count(self, arms: IntArray) -> float:
        """Return the number of outcomes of these arms together."""
        return float(self._counts[arms].sum())

    @property
    def longest(self) -> int:
        """Number of steps of the arm that has most, at least one."""
        return int(self.paths.strides.shape[1])

    def draw(
        self, posterior: Posterior, key: Key, codes: Codes, samples: int
    ) -> NDArray[np.float32]:
        """Return the entries of all rows under draws, in a context: (entries, samples)."""
        if self._row_draws is not None and self._drawn.all():
            return self._row_draws.draw(posterior, key, codes, samples)
        values = np.empty((self.entries, samples), dtype=np.float32)
        values[:] = self.means(posterior, codes)[:, None]
        if self._row_draws is not None:
            values[self._drawn] = self._row_draws.draw(posterior, key, codes, samples)
        return values

    def means(self, posterior: Posterior, codes: Codes) -> FloatArray:
        """Return the posterior means of all entries, in a context."""
        places = self._places.get(codes)
        if places is None:
            first = self.model.first_entries(self._rows_here, codes)
            within = np.arange(self.entries) - np.repeat(self._starts_here, self._sizes_here)
            if len(self._places) >= MAX_CONTEXTS:
                self._places.clear()
            places = self._places[codes] = np.repeat(first, self._sizes_here) + within
        if not posterior.is_settled:
            found: FloatArray = posterior.mean_entries()[places]
            return found
        parameters = posterior.prior[places] + posterior.counts[places]
        sums = np.add.reduceat(parameters, self._starts_here)
        means: FloatArray = parameters / np.repeat(sums, self._sizes_here)
        return means

    def _informative_rows(self) -> BoolArray:
        """Those that some arm's reward reads, or whose variable's edges are doubtful."""
        factors = self.model.factors
        found = np.zeros(len(factors.row_starts), dtype=bool)
        found[self.model.circuit.blocks] = True
        if self.model.problem.edge_priors:
            structures = self.model.structures
            is_open = np.array([structures.is_open(v) for v in range(len(factors.sizes))])
            found |= is_open[factors.targets[factors.row_tables]]
        return found

    def _paths(self) -> Paths:
        problem, factors = self.model.problem, self.model.factors
        first, bases, sizes, strides = [0], list[int](), list[int](), list[dict[int, int]]()
        for arm in problem.arms:
            fixed, cut = problem.fixed(arm), problem.graph.mask(arm)
            under = factors.under(cut)
            variables = self._variables(cut, under)
            level = {v: k for k, v in enumerate(variables)}
            for v in variables:
                steps = self._strides(int(under[v]))
                held = sum(fixed[u] * step for u, step in steps.items() if cut >> u & 1)
                bases.append(self._start(int(under[v])) + int(held))
                sizes.append(int(factors.sizes[v]))
                strides.append({level[u]: s for u, s in steps.items() if u in level and u != v})
            first.append(len(bases))
        most = max(np.diff(first).tolist(), default=0)
        table = np.zeros((len(bases), max(most, 1)), dtype=np.int64)
        for s, steps in enumerate(strides):
            for k, step in steps.items():
                table[s, k] = step
        return Paths(np.array(first), np.array(bases, np.int64), np.array(sizes, np.int64), table)

    def _variables(self, cut: int, under: IntArray) -> list[int]:
        """Those that tell something where these are set, and those that their rows depend on."""
        factors = self.model.factors
        is_telling = np.zeros(len(factors.families), dtype=bool)
        is_telling[factors.row_tables[self._informative]] = True
        found = set[int]()
        waiting = [
            v
            for v in range(len(under))
            if not cut >> v & 1 and v not in self._context and is_telling[under[v]]
        ]
        while waiting:
            v = waiting.pop()
            if v not in found and not cut >> v & 1 and v not in self._context:
                found.add(v)
                waiting += factors.families[int(under[v])]
        return [v for v in factors.order.variables if v in found]

    def _strides(self, f: int) -> dict[int, int]:
        """How far a step of each variable of a factor moves among the entries here."""
        factors, step, found = self.model.factors, 1, dict[int, int]()
        for u in reversed([u for u in factors.families[f] if u not in self._context]):
            found[u] = step
            step *= int(factors.sizes[u])
        return found

    def _start(self, f: int) -> int:
        """The first entry of a factor here; its rows in the context of all first values."""
        if f not in self._starts:
            factors = self.model.factors
            *scope, _ = factors.families[f]
            *shape, _ = factors.shapes[f]
            every = np.searchsorted(factors.row_starts, factors.starts[f]) + np.arange(prod(shape))
            here = tuple(0 if u in self._context else slice(None) for u in scope)
            self._starts[f] = sum(int(factors.row_sizes[rows].sum()) for rows in self._rows)
            self._rows.append(np.asarray(every.reshape(shape)[here]).ravel())
        return self._starts[f]


@lru_cache(maxsize=32)
def outcome_paths(model: Model) -> OutcomePaths:
    """Return the outcome paths of a model, built once."""
    return OutcomePaths(model)


Seen = Literal["reward", "all", "rows"]
About = Literal["arm", "map"]

MAX_OUTCOMES = 4096  # a hundredth of a second at a thousand draws
MAX_WALKS = 2**17  # at the means alone: a millisecond
SAMPLED_OUTCOMES = 64  # of each arm
SAMPLED_WALKS = 256
MAX_MAP_CONTEXTS = 64  # contexts that a map is made of
MAX_ENUMERATED_CONTEXTS = 2**16  # whose probabilities are computed to find these

_kernels = lazy_kernels("dowise.information.gains")


@dataclass(frozen=True)
class Gains:
    """Definition of a gain: from what is `seen`, `about` which question."""

    seen: Seen
    about: About

    def check(self, problem: Problem) -> None:
        """Raise an error if these gains can't be computed."""
        contexts = prod(len(problem.domains[name]) for name in problem.context)
        if self.about == "map" and contexts > MAX_ENUMERATED_CONTEXTS:
            raise DowiseError(
                f'about="map": there are {contexts:,} contexts, and the limit is '
                f'{MAX_ENUMERATED_CONTEXTS:,}; use about="arm", or fewer context variables',
                code="too-large",
            )

    def estimate(
        self,
        posterior: Posterior,
        codes: Codes,
        samples: int,
        arms: IntArray,
        source: np.random.Generator,
    ) -> Estimate:
        """Δ and p* of these arms as in Lemma 2, and the gains that are asked for.

        The best arm of the present context is one of these arms, that of another one any.
        """
        key, payoff = draw_key(source), posterior.problem.payoff
        draws = posterior.draw_lanes(key, codes, 0, samples)
        if len(arms) < len(posterior.problem.arms):
            draws = draws.among(arms)
        found = estimate_of(draws, payoff)
        questions = self._questions(posterior, key, codes, found.winners)
        if self.seen == "reward":
            gain = np.empty(len(arms))
            _kernels.add_rewards(draws.distributions(), *questions, gain)
        else:
            told = _told_by_all if self.seen == "all" else _told_by_rows
            gain = told(posterior, key, codes, samples, arms, questions, source)
        return replace(found, gain=gain)

    def _questions(
        self, posterior: Posterior, key: Key, codes: Codes, winners: IntArray
    ) -> Questions:
        """Return which arm is best, in this or in each context, with weights."""
        if self.about == "arm":
            return Questions.of([winners], np.ones(1))
        contexts, chances = likely_contexts(posterior, codes)
        payoff = posterior.problem.payoff
        best = [
            winners
            if context == codes
            else posterior.draw_lanes(key, context, 0, len(winners)).winners(payoff)[0]
            for context in contexts
        ]
        return Questions.of(best, chances)


class Questions(NamedTuple):
    """Which arm is best in each of some contexts, as the kernels take it."""

    ranks: IntArray
    """ranks[q, draw]: the place of the best arm among those that win some draw."""
    shares: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, best: list[IntArray], weights: FloatArray) -> Questions:
        """From the best arm of every draw in each context."""
        every = np.array(best)
        arms = int(every.max()) + 1
        ranks, shares = np.empty_like(every), np.zeros((len(every), arms))
        most = _kernels.rank_answers(every, arms, ranks, shares)
        return cls(ranks, np.ascontiguousarray(shares[:, :most]), weights)


def _told_by_all(
    posterior: Posterior,
    key: Key,
    codes: Codes,
    samples: int,
    arms: IntArray,
    questions: Questions,
    source: np.random.Generator,
) -> FloatArray:
    outcomes, gain = outcome_paths(posterior.model), np.zeros(len(arms))
    values = outcomes.draw(posterior, key, codes, samples)
    if outcomes.count(arms) <= MAX_OUTCOMES:
        _kernels.add_all(outcomes.paths, arms, values, *questions, gain)
    else:
        uniforms = source.random((SAMPLED_OUTCOMES, outcomes.longest + 1))
        _kernels.add_sampled(outcomes.paths, arms, values, *questions, uniforms, gain)
    return gain


def _told_by_rows(
    posterior: Posterior,
    key: Key,
    codes: Codes,
    samples: int,
    arms: IntArray,
    questions: Questions,
    source: np.random.Generator,
) -> FloatArray:
    outcomes, gain = outcome_paths(posterior.model), np.zeros(len(arms))
    values, told = outcomes.draw(posterior, key, codes, samples), np.zeros(outcomes.entries)
    means = outcomes.means(posterior, codes)
    starts, sizes = outcomes.told_starts, outcomes.told_sizes
    _kernels.add_row_information(starts, sizes, values, *questions, told)
    if outcomes.count(arms) <= MAX_WALKS:
        _kernels.add_rows(outcomes.paths, arms, means, told, gain)
    else:
        uniforms = source.random((SAMPLED_WALKS, outcomes.longest))
        _kernels.add_sampled_rows(outcomes.paths, arms, means, told, uniforms, gain)
    return gain


def likely_contexts(posterior: Posterior, present: Codes) -> tuple[list[Codes], FloatArray]:
    """The contexts that a map is made of, and how likely each is to be the next one.

    All of them, or where they are more than `MAX_MAP_CONTEXTS` so many that are likeliest, and the
    present one.
    """
    chances = context_probabilities(posterior)
    flat = chances.ravel()
    if len(flat) <= MAX_MAP_CONTEXTS:
        return list(product(*map(range, chances.shape))), flat
    here = int(np.ravel_multi_index(present, chances.shape))
    places = np.union1d(np.argsort(-flat, kind="stable")[:MAX_MAP_CONTEXTS], here)
    codes = np.stack(np.unravel_index(places, chances.shape), axis=1)
    return [tuple(context) for context in codes.tolist()], flat[places]


def context_probabilities(posterior: Posterior) -> FloatArray:
    """Return the posterior probability of every context: an axis for each context variable.

    The context is closed under ancestors, so that is the product of its own factors' entries,
    whose mean is the product at the mean entries.
    """
    problem, factors = posterior.problem, posterior.model.factors
    positions = problem.context_positions.tolist()
    axes, chances = {v: i for i, v in enumerate(positions)}, np.ones(())
    if not positions:
        return chances
    means, under = posterior.mean_entries(), factors.under(0).tolist()
    for v in positions:
        own = [axes[u] for u in factors.families[under[v]]]
        table = factors.table(means, under[v])
        spread = tuple(slice(None) if i in own else None for i in range(len(positions)))
        chances = chances * np.transpose(table, np.argsort(own))[spread]
    return chances


@kernel()
def rank_answers(best, arms, ranks, shares):
    """Fill in ranks and shares where best[q, draw] is one of so many arms.

    Answers are ranked as arms are. Returns the largest number of different ones.
    """
    most = 0
    places = np.empty(arms, dtype=np.int64)
    for q in range(len(best)):
        for a in range(arms):
            places[a] = 0
        for i in range(best.shape[1]):
            places[best[q, i]] += 1
        count = 0
        for a in range(arms):
            if places[a] > 0:
                shares[q, count] = places[a] / best.shape[1]
                places[a] = count
                count += 1
        for i in range(best.shape[1]):
            ranks[q, i] = places[best[q, i]]
        most = max(most, count)
    return most


@njit
def _told(row, ranks, shares, weights, parts):
    """Σ_q weights[q] Σ_k P(k, o) log(P(k, o) / (P(k) P(o))) for one outcome o, times the draws.

    `row` has P(o) under every draw.
    """
    told = 0.0
    for q in range(len(weights)):
        sum_by_winner(row, ranks[q], parts)
        total = 0.0
        for k in range(parts.shape[1]):
            parts[0, k] += parts[1, k] + parts[2, k] + parts[3, k]
            total += parts[0, k]
        for k in range(parts.shape[1]):
            if parts[0, k] > 0:
                told += weights[q] * parts[0, k] * np.log(parts[0, k] / (shares[q, k] * total))
    return told


@kernel()
def add_rewards(rewards, ranks, shares, weights, gain):
    """gain[i] is what the reward of arm i tells; rewards[i, y, draw] is P(Y_i = y)."""
    arms, values, draws = rewards.shape
    parts = np.empty((4, shares.shape[1]))
    for i in range(arms):
        told = 0.0
        for y in range(values):
            told += _told(rewards[i, y], ranks, shares, weights, parts)
        gain[i] = max(told / draws, 0.0)


@njit(inline="always")
def _entry_at(paths, step, level, codes):
    """The first entry of the row that a step reads after these values."""
    entry = paths.bases[step]
    for k in range(level):
        entry += paths.strides[step, k] * codes[k]
    return entry


@kernel()
def add_all(paths, arms, values, ranks, shares, weights, gain):
    """gain[i] is what all outcomes of arms[i] tell: every one of them is looked at.

    They are walked through as an odometer counts; products[l] are the probabilities of what was
    seen in the first l steps.
    """
    draws = values.shape[1]
    most = paths.strides.shape[1]
    products = np.ones((most + 1, draws), dtype=np.float32)
    codes, parts = np.zeros(most, dtype=np.int64), np.empty((4, shares.shape[1]))
    for i in range(len(arms)):
        first, told = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        level = 0 if levels > 0 else -1
        codes[0] = -1
        while level >= 0:
            codes[level] += 1
            if codes[level] == paths.sizes[first + level]:
                level -= 1
                continue
            here = values[_entry_at(paths, first + level, level, codes) + codes[level]]
            before, after = products[level], products[level + 1]
            for lane in range(draws):
                after[lane] = before[lane] * here[lane]
            if level + 1 == levels:
                told += _told(after, ranks, shares, weights, parts)
            else:
                level += 1
                codes[level] = -1
        gain[i] = max(told / draws, 0.0)


@njit(inline="always")
def _pick(entries, first, size, u):
    """The value that a uniform number picks of a row."""
    value, below = 0, np.float64(entries[first])
    while below <= u and value < size - 1:
        value += 1
        below += entries[first + value]
    return value


@kernel()
def add_sampled(paths, arms, values, ranks, shares, weights, uniforms, gain):
    """Do the same as `add_all` with sampled outcomes, as many as `uniforms` has rows.

    An outcome is drawn from one of the draws, these in strata. It tells KL(P(k | o) ‖ P(k)) ≥ 0,
    whose mean over outcomes is the gain: the estimate has the mean that `add_all` gives.
    """
    draws, samples, most = values.shape[1], len(uniforms), paths.strides.shape[1]
    product = np.empty(draws)
    codes, parts = np.zeros(most, dtype=np.int64), np.empty((4, shares.shape[1]))
    for i in range(len(arms)):
        first, told = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        for s in range(samples):
            lane = min(int((s + uniforms[s, most]) * draws / samples), draws - 1)
            own = values[:, lane]
            for lane in range(draws):
                product[lane] = 1.0
            for level in range(levels):
                entry = _entry_at(paths, first + level, level, codes)
                size = paths.sizes[first + level]
                codes[level] = _pick(own, entry, size, uniforms[s, level])
                here = values[entry + codes[level]]
                for lane in range(draws):
                    product[lane] *= here[lane]
            total = 0.0
            for lane in range(draws):
                total += product[lane]
            if total > 0:
                told += _told(product, ranks, shares, weights, parts) / total
        gain[i] = max(told / samples, 0.0)


@kernel()
def add_row_information(starts, sizes, values, ranks, shares, weights, told):
    """told[starts[r]] = Σ_q weights[q] I(answer to q; one value drawn from row r)."""
    draws, parts = values.shape[1], np.empty((4, shares.shape[1]))
    for r in range(len(starts)):
        found = 0.0
        for x in range(starts[r], starts[r] + sizes[r]):
            found += _told(values[x], ranks, shares, weights, parts)
        told[starts[r]] = max(found / draws, 0.0)


@kernel()
def add_rows(paths, arms, means, told, gain):
    """gain[i] = Σ_r v_r told[r], v_r being how likely arms[i] is to visit row r at the means.

    A walk as in `add_all`; chances[l] is the probability of what was seen in the first l steps.
    """
    most = paths.strides.shape[1]
    chances, codes = np.ones(most + 1), np.zeros(most, dtype=np.int64)
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        level = 0 if levels > 0 else -1
        codes[0] = -1
        while level >= 0:
            codes[level] += 1
            if codes[level] == paths.sizes[first + level]:
                level -= 1
                continue
            entry = _entry_at(paths, first + level, level, codes)
            if codes[level] == 0:
                total += chances[level] * told[entry]
            chances[level + 1] = chances[level] * means[entry + codes[level]]
            if level + 1 < levels:
                level += 1
                codes[level] = -1
        gain[i] = total


@kernel()
def add_sampled_rows(paths, arms, means, told, uniforms, gain):
    """Do the same as `add_rows` with walks that are sampled at the means."""
    samples, most = len(uniforms), paths.strides.shape[1]
    codes = np.zeros(most, dtype=np.int64)
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        for s in range(samples):
            for level in range(levels):
                entry = _entry_at(paths, first + level, level, codes)
                total += told[entry]
                size = paths.sizes[first + level]
                codes[level] = _pick(means, entry, size, uniforms[s, level])
        gain[i] = total / samples
