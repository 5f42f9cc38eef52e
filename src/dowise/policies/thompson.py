"""Thompson Sampling for causal bandits: Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import float32, njit
from numpy.typing import NDArray

from dowise._core.kernels import kernel
from dowise._core.rng import Random, draw_key, draw_keys, generator
from dowise.belief import Belief, Posterior
from dowise.belief.draw_kernels import count_record, draw_block, workspace
from dowise.belief.mixture_kernels import draw_mixed_block, learn_mixed, read_from, room_for, weigh
from dowise.belief.prior import Prior
from dowise.model import FactorLayout
from dowise.model.kernels import observe_round, unrolled
from dowise.model.sampler import TrialScript
from dowise.policies.base import (
    BayesianPolicy,
    EdgeTrace,
    Loop,
    allowed_arms,
    checked_propensity_samples,
    pick_winner,
)
from dowise.policies.decision import Decision, Figures, drawn_by_lot
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context

__all__ = ["Learned", "ThompsonSampling", "arms_of", "mixed_of"]


class ThompsonSampling(BayesianPolicy):
    """Draw CPTs θ from the posterior, play argmax_a E[Y_a | θ, c], less what arms cost.

    So each arm is played with the probability that it is the best. That probability has no closed
    form, and with `propensity_samples` = 0, the default, `decision.probabilities` are None. With N
    of them the policy makes N draws and plays the winner of one that it picks at random: the arms
    are as likely as before, and the shares of the winners are their exact probabilities given the
    draws, to be logged. Bayesian regret is at most Γ√(H(Π*)T) (Theorem 1), and Γ ≤ √(K/2)
    (Corollary 1).

    Applies to every graph, with hidden common causes and doubtful edges too (docs/hidden.md), as
    long as its factors fit into memory. A variable teaches where it was seen with its factor's
    whole scope.
    """

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        propensity_samples: int = 0,
        belief: Belief | None = None,
    ) -> None:
        super().__init__(problem, prior, belief)
        self.propensity_samples = checked_propensity_samples(propensity_samples)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what a fresh draw from the posterior says is best."""
        problem, source = self.problem, generator(rng)
        codes = problem.context_codes(context)
        arms = None if allowed is None else allowed_arms(problem, allowed)
        if self.propensity_samples:
            arms = allowed_arms(problem, None) if arms is None else arms
            winners = self._winners(codes, arms, self.propensity_samples, source)
            picked = pick_winner(problem, arms, winners, source)
            chosen, probabilities = picked.arm, picked.probabilities
            figures = {"best": probabilities, "samples": self.propensity_samples}
            reason = picked.in_words()
        else:
            chosen, probabilities, figures = self._winner(codes, arms, source), None, {}
            reason = drawn_by_lot()
        edges, seen = self._edges(), problem.context_labels(codes)
        known = Figures(figures, None if edges is None else EdgeTrace(edges))
        return Decision(problem.arms[chosen], probabilities, reason, known, seen)

    def _winner(
        self, codes: tuple[int, ...], arms: NDArray[np.int64] | None, source: np.random.Generator
    ) -> int:
        """The best of these arms, or of all, under one draw: in one kernel where it can be."""
        posterior, problem = self.belief.posterior, self.problem
        if arms is None and posterior.is_settled and posterior.is_single_precision:
            model = posterior.model
            best: int = _draw_best(
                draw_key(source), posterior.prior, posterior.counts, model.rows(codes),
                model.circuit.tape, problem.payoff.scaled, problem.payoff.scaled_costs,
            )  # fmt: skip
            return best
        arms = allowed_arms(problem, None) if arms is None else arms
        return int(arms[self._winners(codes, arms, 1, source)[0]])

    def _winners(
        self,
        codes: tuple[int, ...],
        arms: NDArray[np.int64],
        samples: int,
        source: np.random.Generator,
    ) -> NDArray[np.int64]:
        """The best of these arms under each of so many draws."""
        draws = self.belief.posterior.draw(codes, samples, source)
        if len(arms) < len(self.problem.arms):
            draws = draws.among(arms)
        return draws.winners(self.problem.payoff)[0]

    def compiled_loop(self) -> Loop | None:
        """For our own posteriors in single precision, without propensities."""
        posterior = self.belief.posterior
        if type(self) is not ThompsonSampling or self.propensity_samples:
            return None
        if self.belief.monitor is not None:
            return None
        if posterior.is_settled and posterior.is_single_precision:
            return self._play
        return self._play_mixed if posterior.is_single_precision else None

    def _play(self, script: TrialScript, rng: np.random.Generator) -> NDArray[np.int64]:
        problem, posterior = self.problem, self.belief.posterior
        model, rounds = posterior.model, len(script.contexts)
        rows = np.array([model.rows(tuple(codes)) for codes in script.known.tolist()])
        chosen = np.empty(rounds, dtype=np.int64)
        learned = Learned(posterior.prior, posterior.counts, posterior.unused)
        _play_rounds(
            draw_keys(rng, rounds), learned, arms_of(problem, model.factors), rows,
            model.circuit.tape, problem.payoff.scaled, script, chosen,
        )  # fmt: skip
        self.next_number += rounds
        return chosen

    def _play_mixed(self, script: TrialScript, rng: np.random.Generator) -> NDArray[np.int64]:
        problem, posterior = self.problem, self.belief.posterior
        model, rounds = posterior.model, len(script.contexts)
        own, entries = mixed_of(posterior, script.known)
        chosen = np.empty(rounds, dtype=np.int64)
        _play_mixed_rounds(
            draw_keys(rng, rounds), own, arms_of(problem, model.factors), entries,
            model.circuit.tape, problem.payoff.scaled, script, chosen,
        )  # fmt: skip
        self.next_number += rounds
        return chosen


class Learned(NamedTuple):
    """A posterior as compiled loops see it."""

    prior: NDArray[np.float64]
    counts: NDArray[np.int64]
    unused: NDArray[np.int64]


class Mixed(NamedTuple):
    """A mixture as compiled loops see it."""

    learned: Any
    tables: Any
    under: NDArray[np.int64]
    options: Any
    weights: Any
    reading: Any


class _Arms(NamedTuple):
    """What each arm sets, its place, the factors of a place, where these stand; what it costs."""

    fixed: NDArray[np.int64]
    place: NDArray[np.int64]
    under: NDArray[np.int64]
    starts: NDArray[np.int64]
    strides: NDArray[np.int64]
    costs: NDArray[np.float64]


def mixed_of(posterior: Posterior, known: NDArray[np.int64]) -> tuple[Mixed, NDArray[np.int64]]:
    """A mixture for compiled loops, and what its versions read under each of these contexts."""
    shared = posterior.shared
    readings = [shared.reading(tuple(codes)) for codes in known.tolist()]
    own = Mixed(
        posterior.state(), shared.tables, shared.under, shared.edge_weights.options,
        posterior.weights(), readings[0],
    )  # fmt: skip
    return own, np.array([reading.entries for reading in readings])


def arms_of(problem: Problem, factors: FactorLayout) -> _Arms:
    """What compiled loops need of a problem's arms to learn from them."""
    fixed = np.array([problem.fixed(arm) for arm in problem.arms])
    place = np.array([factors.place(arm) for arm in problem.arms])
    costs = problem.payoff.scaled_costs
    return _Arms(fixed, place, factors.under_arms, factors.starts, factors.strides, costs)


@njit(inline="always")
def _best_of(values: Any, results: Any, scaled: Any, costs: Any) -> Any:
    """The best arm of the first lane, net of cost, the first among equals."""
    best, top = 0, -np.inf
    for arm in range(results.shape[0]):
        reward = scaled[0] - costs[arm]
        for y in range(results.shape[1]):
            chance = min(values[results[arm, y], 0], float32(1))
            reward += (scaled[y + 1] - scaled[0]) * chance
        if reward > top:
            best, top = arm, reward
    return best


@kernel()
def _draw_best(
    key: Any, prior: Any, counts: Any, rows: Any, tape: Any, scaled: Any, costs: Any
) -> Any:
    """The best arm under one draw of all rewards."""
    circuit = unrolled(tape)
    one = rows.ndim
    work = workspace(circuit, one)
    draw_block(key, prior, counts, rows, circuit, one - one, one, work)
    return _best_of(work.values, circuit.results, scaled, costs)


@kernel()
def _play_rounds(
    keys: Any, own: Any, arms: Any, rows: Any, tape: Any, scaled: Any, script: Any, chosen: Any
) -> None:
    """Each round one draw of all rewards, the best arm, one more record.

    rows[c] are the rows of the circuit under context c.
    """
    circuit = unrolled(tape)
    one = script.contexts.ndim  # a literal would have everything compiled anew for it
    work = workspace(circuit, one)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    for t in range(len(chosen)):
        here = rows[script.contexts[t]]
        draw_block(keys[t], own.prior, own.counts, here, circuit, one - one, one, work)
        best = chosen[t] = _best_of(work.values, circuit.results, scaled, arms.costs)
        observe_round(script, t, chosen[t], codes, seen)
        p = arms.place[best]
        count_record(
            own.counts, own.unused, seen, arms.fixed[best], arms.under[p], arms.starts,
            arms.strides, one,
        )  # fmt: skip


@kernel()
def _play_mixed_rounds(
    keys: Any, own: Any, arms: Any, entries: Any, tape: Any, scaled: Any, script: Any, chosen: Any
) -> None:
    """The same for a mixture; entries[c] is what versions read under context c."""
    circuit = unrolled(tape)
    one = script.contexts.ndim
    work, room = workspace(circuit, one), room_for(own.tables, own.reading, one)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    for t in range(len(chosen)):
        here = read_from(own.reading, entries[script.contexts[t]])
        weigh(own.learned.evidence, own.options, own.weights)
        draw_mixed_block(
            keys[t], own.learned, own.tables, own.options, own.weights, here, circuit,
            (one - one, one), work, room,
        )  # fmt: skip
        best = chosen[t] = _best_of(work.values, circuit.results, scaled, arms.costs)
        observe_round(script, t, chosen[t], codes, seen)
        p = arms.place[best]
        learn_mixed(
            own.learned, own.tables, own.under[p], arms.under[p], arms.strides, seen,
            arms.fixed[best], one,
        )  # fmt: skip
