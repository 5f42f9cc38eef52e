"""Information gains beyond the paper's: from other observations, about other questions.

The paper's gain is I(A*; Y_a), the information in the reward of arm a about the best arm A* of the
present context. This module computes generalisations of both sides.

- Observation: "all" takes all variables V_a, I(A*; V_a). "rows" takes Σ_r v_r(a) I(A*; X_r), where
  X_r is one value drawn from row r of a factor, and v_r(a) the probability that arm a visits the
  row, at the posterior mean factors (an outcome visits one row of each factor).
- Question: "map" asks for the best arms of all contexts, Σ_c' p(c') I(A*_c'; ·), with p(c') the
  posterior probability that the next context C is c'. This is I(A*_C; · | C), the information about
  the best arm of the next context.

The posterior is the empirical distribution of N draws. For it I(A*; V_a) and v_r(a) are exact as
long as the outcomes can be enumerated (`MAX_OUTCOMES`, `MAX_WALKS`, of all arms together). Beyond
that they are unbiased estimates from sampled outcomes.
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
from dowise.model.factors import offsets_in_blocks
from dowise.model.model import Model
from dowise.problem import Problem


class Paths(NamedTuple):
    """Steps of each arm: those of arm a are first[a] to first[a + 1], one for each variable.

    If step s is the l-th of its arm, the value x of its variable has the entry
    bases[s] + Σ_{k<l} strides[s, k]·codes[k] + x, codes[k] being the values at the steps before.
    """

    first: IntArray
    bases: IntArray
    sizes: IntArray
    strides: IntArray


class OutcomePaths:
    """Steps of all arms, and the rows that they read.

    The rows are copied next to each other; entries are numbered within this copy.
    """

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
        is_informative = self._informative[rows]
        self.informative_starts: IntArray = starts[is_informative]
        """First entry of every informative row."""
        self.informative_sizes: IntArray = sizes[is_informative]
        self.entries = int(sizes.sum())
        first, steps = self.paths.first.tolist(), self.paths.sizes.tolist()
        bounds = pairwise(first)
        self._counts = np.array([prod(map(float, steps[a:b])) for a, b in bounds])
        self._all_rows = rows
        self._row_starts, self._row_sizes = starts, sizes
        self._places: dict[Codes, IntArray] = {}
        self._drawn = np.repeat(is_informative, sizes)
        self._row_draws = RowDraws(model, rows[is_informative]) if is_informative.any() else None

    def count(self, arms: IntArray) -> float:
        """Return the number of outcomes of these arms together."""
        return float(self._counts[arms].sum())

    @property
    def longest(self) -> int:
        """Largest number of steps of an arm, at least one."""
        return int(self.paths.strides.shape[1])

    def draw(
        self, posterior: Posterior, key: Key, codes: Codes, samples: int
    ) -> NDArray[np.float32]:
        """Draw the entries of all rows in a context, (entries, samples).

        Rows that are not informative have their posterior means.
        """
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
            first = self.model.first_entries(self._all_rows, codes)
            offsets = offsets_in_blocks(self._row_sizes)
            if len(self._places) >= MAX_CONTEXTS:
                self._places.clear()
            places = self._places[codes] = np.repeat(first, self._row_sizes) + offsets
        if not posterior.is_settled:
            return np.asarray(posterior.mean_entries()[places])
        parameters = posterior.prior[places] + posterior.counts[places]
        sums = np.add.reduceat(parameters, self._row_starts)
        means: FloatArray = parameters / np.repeat(sums, self._row_sizes)
        return means

    def _informative_rows(self) -> BoolArray:
        """Return a mask of the rows that a reward reads, or whose variable has doubtful edges."""
        factors = self.model.factors
        mask = np.zeros(len(factors.row_starts), dtype=bool)
        mask[self.model.circuit.blocks] = True
        if self.model.problem.edge_priors:
            structures = self.model.structures
            is_open = np.array([structures.is_open(v) for v in range(len(factors.sizes))])
            mask |= is_open[factors.targets[factors.row_tables]]
        return mask

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
                offset = sum(fixed[u] * step for u, step in steps.items() if cut >> u & 1)
                bases.append(self._start(int(under[v])) + int(offset))
                sizes.append(int(factors.sizes[v]))
                strides.append({level[u]: s for u, s in steps.items() if u in level and u != v})
            first.append(len(bases))
        longest = max(np.diff(first).tolist(), default=0)
        table = np.zeros((len(bases), max(longest, 1)), dtype=np.int64)
        for s, steps in enumerate(strides):
            for k, step in steps.items():
                table[s, k] = step
        return Paths(np.array(first), np.array(bases, np.int64), np.array(sizes, np.int64), table)

    def _variables(self, cut: int, under: IntArray) -> list[int]:
        """Return the variables with informative rows, and those that their rows depend on.

        Variables that are set (`cut`) or part of the context are left out.
        """
        factors = self.model.factors
        is_informative = np.zeros(len(factors.families), dtype=bool)
        is_informative[factors.row_tables[self._informative]] = True
        free = {v for v in range(len(under)) if not cut >> v & 1} - self._context
        needed = set[int]()
        waiting = [v for v in free if is_informative[under[v]]]
        while waiting:
            v = waiting.pop()
            if v in free and v not in needed:
                needed.add(v)
                waiting += factors.families[int(under[v])]
        return [v for v in factors.order.variables if v in needed]

    def _strides(self, f: int) -> dict[int, int]:
        """Return the stride of each variable of a factor, except for the context."""
        factors, step, strides = self.model.factors, 1, dict[int, int]()
        for u in reversed([u for u in factors.families[f] if u not in self._context]):
            strides[u] = step
            step *= int(factors.sizes[u])
        return strides

    def _start(self, f: int) -> int:
        """Return the first entry of a factor, after adding its rows in the first context."""
        if f not in self._starts:
            factors = self.model.factors
            *scope, _ = factors.families[f]
            *shape, _ = factors.shapes[f]
            rows = np.searchsorted(factors.row_starts, factors.starts[f]) + np.arange(prod(shape))
            in_context = tuple(0 if u in self._context else slice(None) for u in scope)
            self._starts[f] = sum(int(factors.row_sizes[rows].sum()) for rows in self._rows)
            self._rows.append(np.asarray(rows.reshape(shape)[in_context]).ravel())
        return self._starts[f]


@lru_cache(maxsize=32)
def outcome_paths(model: Model) -> OutcomePaths:
    """Return the outcome paths of a model, built once."""
    return OutcomePaths(model)


GainSource = Literal["reward", "all", "rows"]
GainTarget = Literal["arm", "map"]

MAX_OUTCOMES = 4096  # takes a hundredth of a second with a thousand draws
MAX_WALKS = 2**17  # takes a millisecond: at the means alone
SAMPLED_OUTCOMES = 64  # per arm
SAMPLED_WALKS = 256
MAX_MAP_CONTEXTS = 64  # contexts of a map
MAX_ENUMERATED_CONTEXTS = 2**16  # contexts among which these are the likeliest

_kernels = lazy_kernels("dowise.information.gains")


@dataclass(frozen=True)
class Gains:
    """Definition of a gain: the information in what is `seen` about a question."""

    seen: GainSource
    about: GainTarget

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
        """Estimate Δ and p* of these arms as in Lemma 2, and these gains.

        The best arm of the present context is one of these arms, that of another context any arm.
        """
        key, payoff = draw_key(source), posterior.problem.payoff
        draws = posterior.draw_lanes(key, codes, 0, samples)
        if len(arms) < len(posterior.problem.arms):
            draws = draws.among(arms)
        estimate = estimate_of(draws, payoff)
        questions = self.questions(posterior, key, codes, estimate.winners)
        gain = np.zeros(len(arms))
        if self.seen == "reward":
            _kernels.add_rewards(draws.distributions(), *questions, gain)
            return replace(estimate, gain=gain)
        paths = outcome_paths(posterior.model)
        values = paths.draw(posterior, key, codes, samples)
        if self.seen == "all":
            _add_all(paths, arms, values, questions, source, gain)
        else:
            _add_rows(paths, arms, values, paths.means(posterior, codes), questions, source, gain)
        return replace(estimate, gain=gain)

    def questions(
        self, posterior: Posterior, key: Key, codes: Codes, winners: IntArray
    ) -> Questions:
        """Return the best arm of every draw, in this or in each context, with weights."""
        if self.about == "arm":
            return Questions.from_best_arms([winners], np.ones(1))
        contexts, chances = likely_contexts(posterior, codes)
        payoff = posterior.problem.payoff
        best = [
            winners
            if context == codes
            else posterior.draw_lanes(key, context, 0, len(winners)).winners(payoff)[0]
            for context in contexts
        ]
        return Questions.from_best_arms(best, chances)


class Questions(NamedTuple):
    """The best arms in some contexts, as kernels read them: question q is about context q."""

    ranks: IntArray
    """ranks[q, draw]: index of the best arm among the arms that win some draw."""
    shares: FloatArray
    """shares[q, k]: share of the draws that the k-th of these arms wins."""
    weights: FloatArray
    """Probability of each context."""

    @classmethod
    def from_best_arms(cls, best: list[IntArray], weights: FloatArray) -> Questions:
        """Return the questions of these best arms: best[q][draw]."""
        arms_of = np.array(best)
        arms = int(arms_of.max()) + 1
        ranks, shares = np.empty_like(arms_of), np.zeros((len(arms_of), arms))
        answers = _kernels.rank_answers(arms_of, arms, ranks, shares)
        return cls(ranks, np.ascontiguousarray(shares[:, :answers]), weights)


def _add_all(
    outcomes: OutcomePaths,
    arms: IntArray,
    values: NDArray[np.float32],
    questions: Questions,
    source: np.random.Generator,
    gain: FloatArray,
) -> None:
    if outcomes.count(arms) <= MAX_OUTCOMES:
        _kernels.add_all(outcomes.paths, arms, values, *questions, gain)
    else:
        uniforms = source.random((SAMPLED_OUTCOMES, outcomes.longest + 1))
        _kernels.add_sampled(outcomes.paths, arms, values, *questions, uniforms, gain)


def _add_rows(
    outcomes: OutcomePaths,
    arms: IntArray,
    values: NDArray[np.float32],
    means: FloatArray,
    questions: Questions,
    source: np.random.Generator,
    gain: FloatArray,
) -> None:
    starts, sizes = outcomes.informative_starts, outcomes.informative_sizes
    of_rows = np.zeros(outcomes.entries)
    _kernels.add_row_information(starts, sizes, values, *questions, of_rows)
    if outcomes.count(arms) <= MAX_WALKS:
        _kernels.add_rows(outcomes.paths, arms, means, of_rows, gain)
    else:
        uniforms = source.random((SAMPLED_WALKS, outcomes.longest))
        _kernels.add_sampled_rows(outcomes.paths, arms, means, of_rows, uniforms, gain)


def likely_contexts(posterior: Posterior, present: Codes) -> tuple[list[Codes], FloatArray]:
    """Return the contexts of a map, and the probability that each is the next one.

    If there are more than `MAX_MAP_CONTEXTS`, they are the likeliest ones and the present one.
    """
    chances = context_probabilities(posterior)
    flat = chances.ravel()
    if len(flat) <= MAX_MAP_CONTEXTS:
        return list(product(*map(range, chances.shape))), flat
    now = int(np.ravel_multi_index(present, chances.shape))
    places = np.union1d(np.argsort(-flat, kind="stable")[:MAX_MAP_CONTEXTS], now)
    codes = np.stack(np.unravel_index(places, chances.shape), axis=1)
    return [tuple(context) for context in codes.tolist()], flat[places]


def context_probabilities(posterior: Posterior) -> FloatArray:
    """Return the posterior probability of every context: an axis for each context variable.

    The context is closed under ancestors, so the probability is the product of one entry of each
    of its factors, and its mean is the product of the mean entries.
    """
    problem, factors = posterior.problem, posterior.model.factors
    positions = problem.context_positions.tolist()
    axes, chances = {v: i for i, v in enumerate(positions)}, np.ones(())
    if not positions:
        return chances
    means, under = posterior.mean_entries(), factors.under(0).tolist()
    for v in positions:
        family = [axes[u] for u in factors.families[under[v]]]
        table = factors.table(means, under[v])
        spread = tuple(slice(None) if i in family else None for i in range(len(positions)))
        chances = chances * np.transpose(table, np.argsort(family))[spread]
    return chances


@kernel()
def rank_answers(best, arms, ranks, shares):
    """Fill `ranks` and `shares` of `Questions` from best[q, draw], an index of an arm.

    Returns the largest number of distinct best arms of a question.
    """
    most_answers = 0
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
        most_answers = max(most_answers, count)
    return most_answers


@njit
def _information(row, ranks, shares, weights, parts):
    """Return N Σ_q weights[q] Σ_k P(k, o) log(P(k, o) / (P(k) P(o))) for one outcome o.

    row[draw] is P(o) under each of the N draws, and k an answer to question q.
    """
    information = 0.0
    for q in range(len(weights)):
        sum_by_winner(row, ranks[q], parts)
        total = 0.0
        for k in range(parts.shape[1]):
            parts[0, k] += parts[1, k] + parts[2, k] + parts[3, k]
            total += parts[0, k]
        for k in range(parts.shape[1]):
            if parts[0, k] > 0:
                ratio = parts[0, k] / (shares[q, k] * total)
                information += weights[q] * parts[0, k] * np.log(ratio)
    return information


@kernel()
def add_rewards(rewards, ranks, shares, weights, gain):
    """Fill gain[i] with the information in the reward of arm i; rewards[i, y, draw] is P(Y = y)."""
    arms, values, draws = rewards.shape
    parts = np.empty((4, shares.shape[1]))
    for i in range(arms):
        total = 0.0
        for y in range(values):
            total += _information(rewards[i, y], ranks, shares, weights, parts)
        gain[i] = max(total / draws, 0.0)


@njit(inline="always")
def _entry_at(paths, step, level, codes):
    """Return the first entry of the row that a step reads after the values `codes`."""
    entry = paths.bases[step]
    for k in range(level):
        entry += paths.strides[step, k] * codes[k]
    return entry


@njit
def _advance(paths, first, level, codes):
    """Move to the next value at a level, or at the last level before it that has one.

    Returns the level, −1 after the last outcome. Outcomes are visited like the numbers of an
    odometer: a value at one level, then all values at the levels below it.
    """
    codes[level] += 1
    while codes[level] == paths.sizes[first + level]:
        level -= 1
        if level < 0:
            break
        codes[level] += 1
    return level


@kernel()
def add_all(paths, arms, values, ranks, shares, weights, gain):
    """Fill gain[i] with the information in all variables under arms[i], outcome by outcome.

    products[l] are the probabilities of the values at the first l steps.
    """
    draws = values.shape[1]
    longest = paths.strides.shape[1]
    products = np.ones((longest + 1, draws), dtype=np.float32)
    codes, parts = np.zeros(longest, dtype=np.int64), np.empty((4, shares.shape[1]))
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        level, codes[0] = 0, -1
        while levels > 0:
            level = _advance(paths, first, level, codes)
            if level < 0:
                break
            row = values[_entry_at(paths, first + level, level, codes) + codes[level]]
            before, after = products[level], products[level + 1]
            for lane in range(draws):
                after[lane] = before[lane] * row[lane]
            if level + 1 == levels:
                total += _information(after, ranks, shares, weights, parts)
            else:
                level += 1
                codes[level] = -1
        gain[i] = max(total / draws, 0.0)


@njit(inline="always")
def _pick(entries, first, size, u):
    """Return the value of a row that a uniform number selects."""
    value, below = 0, np.float64(entries[first])
    while below <= u and value < size - 1:
        value += 1
        below += entries[first + value]
    return value


@kernel()
def add_sampled(paths, arms, values, ranks, shares, weights, uniforms, gain):
    """Fill gain[i] like `add_all`, from one sampled outcome for each row of `uniforms`.

    An outcome o is sampled under one of the draws, which are stratified. Its information is
    KL(P(k | o) ‖ P(k)) ≥ 0, whose mean over outcomes is the gain: the estimate is unbiased.
    """
    draws, samples, longest = values.shape[1], len(uniforms), paths.strides.shape[1]
    product = np.empty(draws)
    codes, parts = np.zeros(longest, dtype=np.int64), np.empty((4, shares.shape[1]))
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        for s in range(samples):
            lane = min(int((s + uniforms[s, longest]) * draws / samples), draws - 1)
            world = values[:, lane]
            for lane in range(draws):
                product[lane] = 1.0
            for level in range(levels):
                entry = _entry_at(paths, first + level, level, codes)
                size = paths.sizes[first + level]
                codes[level] = _pick(world, entry, size, uniforms[s, level])
                row = values[entry + codes[level]]
                for lane in range(draws):
                    product[lane] *= row[lane]
            mass = 0.0
            for lane in range(draws):
                mass += product[lane]
            if mass > 0:
                total += _information(product, ranks, shares, weights, parts) / mass
        gain[i] = max(total / samples, 0.0)


@kernel()
def add_row_information(starts, sizes, values, ranks, shares, weights, of_rows):
    """Fill of_rows[starts[r]] with Σ_q weights[q] I(answer to q; one value drawn from row r)."""
    draws, parts = values.shape[1], np.empty((4, shares.shape[1]))
    for r in range(len(starts)):
        total = 0.0
        for x in range(starts[r], starts[r] + sizes[r]):
            total += _information(values[x], ranks, shares, weights, parts)
        of_rows[starts[r]] = max(total / draws, 0.0)


@kernel()
def add_rows(paths, arms, means, of_rows, gain):
    """Fill gain[i] with Σ_r v_r of_rows[r]; v_r: how likely arms[i] visits row r at the means.

    chances[l] is the probability of the values at the first l steps.
    """
    longest = paths.strides.shape[1]
    chances, codes = np.ones(longest + 1), np.zeros(longest, dtype=np.int64)
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        level, codes[0] = 0, -1
        while levels > 0:
            level = _advance(paths, first, level, codes)
            if level < 0:
                break
            entry = _entry_at(paths, first + level, level, codes)
            if codes[level] == 0:
                total += chances[level] * of_rows[entry]
            chances[level + 1] = chances[level] * means[entry + codes[level]]
            if level + 1 < levels:
                level += 1
                codes[level] = -1
        gain[i] = total


@kernel()
def add_sampled_rows(paths, arms, means, of_rows, uniforms, gain):
    """Fill gain[i] like `add_rows`, from outcomes that are sampled at the means."""
    samples, longest = len(uniforms), paths.strides.shape[1]
    codes = np.zeros(longest, dtype=np.int64)
    for i in range(len(arms)):
        first, total = paths.first[arms[i]], 0.0
        levels = paths.first[arms[i] + 1] - first
        for s in range(samples):
            for level in range(levels):
                entry = _entry_at(paths, first + level, level, codes)
                total += of_rows[entry]
                size = paths.sizes[first + level]
                codes[level] = _pick(means, entry, size, uniforms[s, level])
        gain[i] = total / samples
