"""Thompson Sampling for causal bandits: Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import float32, njit

from dowise._core.kernels import kernel
from dowise._core.rng import draw_key, draw_keys
from dowise._core.types import FloatArray, IntArray
from dowise.belief import Belief, Posterior
from dowise.belief.draw_kernels import count_record, draw_block, workspace
from dowise.belief.mixture_kernels import (
    draw_mixed_block,
    lane_buffers,
    learn_mixed,
    weigh,
    with_entries,
)
from dowise.model import Codes, FactorLayout
from dowise.model.kernels import observe_round, unrolled
from dowise.model.sampler import TrialScript
from dowise.policies.base import Choice, TrialLoop, pick_winner, validate_propensity_samples
from dowise.policies.bayesian import BayesianPolicy
from dowise.policies.decision import DecisionTrace, sampled_reason
from dowise.problem import Problem
from dowise.problem.prior import Prior


class ThompsonSampling(BayesianPolicy):
    """Draw CPTs θ from the posterior, play argmax_a E[Y_a | θ, c], net of what the arms cost.

    Each arm is played with the probability that it is the best. That probability has no closed
    form, and with `propensity_samples` = 0, the default, `decision.probabilities` are None. With N
    of them the policy makes N draws and plays the winner of one that it picks at random: the arms
    are as likely as before, and the shares of the winners are their exact probabilities given the
    draws. Bayesian regret is at most Γ√(H(Π*)T) (Theorem 1), and Γ ≤ √(K/2) (Corollary 1).

    Applies to every graph, also with hidden common causes and doubtful edges (docs/hidden.md), as
    long as its factors fit into memory. A variable teaches if its factor's whole scope was
    observed.
    """

    def __init__(
        self,
        problem: Problem,
        prior: Prior | None = None,
        propensity_samples: int = 0,
        belief: Belief | None = None,
    ) -> None:
        super().__init__(problem, prior, belief)
        self.propensity_samples = validate_propensity_samples(propensity_samples)

    def choose(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> Choice:
        """Choose the best arm under a fresh draw from the posterior."""
        samples = self.propensity_samples
        if not samples:
            trace = DecisionTrace(sampled_reason(), edges=self._edges())
            return Choice(self._best_arm(codes, arms, rng), None, trace)
        winners = self.knowledge.winners(codes, arms, samples, rng)
        _, chosen, shares = pick_winner(self.problem, arms, winners, rng)
        figures = {"best": shares, "samples": samples}
        trace = DecisionTrace(sampled_reason(float(shares[chosen])), figures, self._edges())
        return Choice(chosen, shares, trace)

    def _best_arm(self, codes: Codes, arms: IntArray, rng: np.random.Generator) -> int:
        """Return the best of these arms under one draw: in one kernel where possible."""
        posterior, payoff = self.belief.posterior, self.problem.payoff
        is_whole = len(arms) == len(self.problem.arms)
        if is_whole and posterior.is_settled and posterior.is_single_precision:
            model = posterior.model
            best: int = _draw_best(
                draw_key(rng),
                posterior.prior,
                posterior.counts,
                model.rows(codes),
                model.circuit.tape,
                payoff.scaled,
                payoff.scaled_costs,
            )
            return best
        return int(arms[self.knowledge.winners(codes, arms, 1, rng)[0]])

    def compiled_trial(self) -> TrialLoop | None:
        """Return a compiled trial for posteriors in single precision, without propensities."""
        posterior = self.belief.posterior
        is_plain = type(self) is ThompsonSampling and self.belief.monitor is None
        if not is_plain or self.propensity_samples or self.floor:
            return None
        if not posterior.is_single_precision:
            return None
        return self._play if posterior.is_settled else self._play_mixed

    def _play(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        problem, posterior = self.problem, self.belief.posterior
        model, rounds = posterior.model, len(script.contexts)
        chosen = np.empty(rounds, dtype=np.int64)
        _play_rounds(
            draw_keys(rng, rounds),
            Learned(posterior.prior, posterior.counts, posterior.unused),
            arms_of(problem, model.factors),
            np.array([model.rows(tuple(codes)) for codes in script.known.tolist()]),
            model.circuit.tape,
            problem.payoff.scaled,
            script,
            chosen,
        )
        self.next_number += rounds
        return chosen

    def _play_mixed(self, script: TrialScript, rng: np.random.Generator) -> IntArray:
        problem, posterior = self.problem, self.belief.posterior
        model, rounds = posterior.model, len(script.contexts)
        learned, entries = mixed_of(posterior, script.known)
        chosen = np.empty(rounds, dtype=np.int64)
        _play_mixed_rounds(
            draw_keys(rng, rounds),
            learned,
            arms_of(problem, model.factors),
            entries,
            model.circuit.tape,
            problem.payoff.scaled,
            script,
            chosen,
        )
        self.next_number += rounds
        return chosen


def play_steps(
    policy: BayesianPolicy, script: TrialScript, choose: Callable[[int, Codes], int]
) -> IntArray:
    """Play a trial step by step; `choose` returns the arm of a round, by its number and context."""
    problem, posterior = policy.problem, policy.belief.posterior
    contexts = [tuple(codes) for codes in script.known.tolist()]
    fixed = np.array([problem.fixed(arm) for arm in problem.arms])
    factors = posterior.model.factors
    place = [factors.place(arm) for arm in problem.arms]
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    chosen = np.empty(len(script.contexts), dtype=np.int64)
    for t, number in enumerate(script.contexts.tolist()):
        arm = chosen[t] = choose(t, contexts[number])
        _observe(script, t, arm, seen)
        posterior.count_at(place[arm], seen, fixed[arm])
    policy.next_number += len(chosen)
    return chosen


@kernel()
def _observe(script: Any, t: Any, arm: Any, seen: Any) -> None:
    """Run the world after a choice."""
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    observe_round(script, t, arm, codes, seen)


class Learned(NamedTuple):
    """Posterior of a settled graph as compiled trials see it."""

    prior: FloatArray
    counts: IntArray
    unused: IntArray


class Mixed(NamedTuple):
    """Posterior with doubtful edges as compiled trials see it."""

    learned: Any
    tables: Any
    under: IntArray
    options: Any
    weights: Any
    reading: Any


class _Arms(NamedTuple):
    """Settings, factors and costs of the arms, as compiled trials need them."""

    fixed: IntArray
    place: IntArray
    under: IntArray
    starts: IntArray
    strides: IntArray
    costs: FloatArray


def mixed_of(posterior: Posterior, known: IntArray) -> tuple[Mixed, IntArray]:
    """Return a posterior with doubtful edges for compiled trials, and its entries by context."""
    shared = posterior.shared
    readings = [shared.reading(tuple(codes)) for codes in known.tolist()]
    own = Mixed(
        posterior.state(),
        shared.tables,
        shared.under,
        shared.edge_weights.options,
        posterior.weights(),
        readings[0],
    )
    return own, np.array([reading.entries for reading in readings])


def arms_of(problem: Problem, factors: FactorLayout) -> _Arms:
    """Return what compiled trials need to know of the arms to learn from their plays."""
    fixed = np.array([problem.fixed(arm) for arm in problem.arms])
    place = np.array([factors.place(arm) for arm in problem.arms])
    costs = problem.payoff.scaled_costs
    return _Arms(fixed, place, factors.under_arms, factors.starts, factors.strides, costs)


@njit(inline="always")
def _best_of(values: Any, results: Any, scaled: Any, costs: Any) -> Any:
    """Return the best arm of the first lane net of cost, the first of equals."""
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
    """Return the best arm under one draw of all rewards."""
    circuit = unrolled(tape)
    one = rows.ndim
    work = workspace(circuit, one)
    draw_block(key, prior, counts, rows, circuit, one - one, one, work)
    return _best_of(work.values, circuit.results, scaled, costs)


@kernel()
def _play_rounds(
    keys: Any, own: Any, arms: Any, rows: Any, tape: Any, scaled: Any, script: Any, chosen: Any
) -> None:
    """Play each round: draw all rewards, play the best arm, learn.

    rows[c] are the rows of the circuit under context c.
    """
    circuit = unrolled(tape)
    one = script.contexts.ndim  # a literal would compile everything again for it
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
            own.counts,
            own.unused,
            seen,
            arms.fixed[best],
            arms.under[p],
            arms.starts,
            arms.strides,
            one,
        )


@kernel()
def _play_mixed_rounds(
    keys: Any, own: Any, arms: Any, entries: Any, tape: Any, scaled: Any, script: Any, chosen: Any
) -> None:
    """Play each round with doubtful edges; entries[c] are the entries read in context c."""
    circuit = unrolled(tape)
    one = script.contexts.ndim
    work, room = workspace(circuit, one), lane_buffers(own.tables, own.reading, one)
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    for t in range(len(chosen)):
        here = with_entries(own.reading, entries[script.contexts[t]])
        weigh(own.learned.evidence, own.options, own.weights)
        draw_mixed_block(
            keys[t],
            own.learned,
            own.tables,
            own.options,
            own.weights,
            here,
            circuit,
            (one - one, one),
            work,
            room,
        )
        best = chosen[t] = _best_of(work.values, circuit.results, scaled, arms.costs)
        observe_round(script, t, chosen[t], codes, seen)
        p = arms.place[best]
        learn_mixed(
            own.learned,
            own.tables,
            own.under[p],
            arms.under[p],
            arms.strides,
            seen,
            arms.fixed[best],
            one,
        )
