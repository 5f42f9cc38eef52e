"""The causal baseline: bandits whose arms are estimated from one another's data, by z²ID.

Lee & Bareinboim, "Structural Causal Bandits with Non-Manipulable Variables" (AAAI 2019). Each arm
has several estimators, one for each formula that identifies its reward from the other arms'
experiments (`dowise.identification`). The bootstrap tells how they vary together; weighted for the
least variance they give θ̂ and s², which stand for the arm's data in Thompson Sampling (a Beta
distribution of that mean and variance) and in kl-UCB (an effective number of plays).

No posterior over CPTs is involved, so the graph may have bidirected edges. Everything happens
within the current context value: the graph is conditioned on the context, and only its own data
count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dowise.checks import real_number, whole_number
from dowise.compiling import kernels_of
from dowise.identification.circuit import compile_estimators
from dowise.model import Codes
from dowise.policies.arm_data import ArmData
from dowise.policies.decision import Decision, Figures
from dowise.policies.kl_ucb import bernoulli_upper_bound, exploration_level
from dowise.policies.policy import (
    RecordPolicy,
    allowed_arms,
    certainly,
    checked_propensity_samples,
    pick_winner,
)
from dowise.problem import Problem, Record
from dowise.problem.problem import ArmLike, Context
from dowise.problem.record import check_record
from dowise.randomness import Random, generator, stream

__all__ = ["Z2KLUCB", "Z2ThompsonSampling"]

Floats = NDArray[np.float64]

_kernels = kernels_of("dowise.model.kernels")
_pooling = kernels_of("dowise.identification.pooling")


@dataclass(eq=False)
class Pooled:
    """θ̂ and s² of every arm in one context; NaN where no estimator is defined."""

    means: Floats
    variances: Floats
    weights: Floats
    """Of every estimator, in the order of the circuit's results."""


@dataclass(eq=False)
class _ContextData:
    """Of one context: each arm's records with their resamples, and what follows from them."""

    seen: NDArray[np.int64]
    """How often each arm brought each value of the reward: (arms, values)."""
    arms: list[ArmData]
    weights: list[Floats]
    pooled: Pooled | None = field(default=None)

    def plays(self) -> Floats:
        plays: Floats = self.seen.sum(axis=1).astype(np.float64)
        return plays

    def rewards(self, scaled: Floats) -> Floats:
        totals: Floats = self.seen @ scaled
        return totals


class _Z2Policy(RecordPolicy):
    """What both policies share: data, estimators, weights."""

    def __init__(
        self, problem: Problem, resamples: int = 100, refresh: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__(problem)
        self.resamples = whole_number("resamples", resamples, 2, 100_000)
        self.seed = whole_number("seed", seed, 0)
        self.refresh = real_number("refresh", refresh, 0)
        self.estimates = compile_estimators(problem)
        self._undefined = np.repeat([0.0, 1.0], 1 + self.resamples)
        self._needed = sorted({*problem.context_positions, *self.estimates.variables})
        self._data: dict[Codes, _ContextData] = {}

    def learn(self, record: Record) -> None:
        """Learn from the whole record: every variable that an estimator looks at must be seen."""
        arm = self._arm(record)
        self._data_of(record.context).arms[arm].add(record)

    def retract(self, record: Record) -> None:
        """One record less."""
        arm = self._arm(record)
        data = self._data_of(record.context)
        data.arms[arm].remove(record)
        if not data.plays().any():
            del self._data[record.context]

    def _arm(self, record: Record) -> int:
        why = "the z² policies need the context and every variable that their estimators use"
        check_record(record, self.problem)
        record.need(self._needed, why)
        return self.problem.arm_index(record.arm)

    def state(self) -> Mapping[str, object]:
        """The records of every context and arm."""
        return {
            str(context): [arm.state() for arm in data.arms]
            for context, data in sorted(self._data.items())
            if data.plays().any()
        }

    def pooled(self, context: Context = None) -> Pooled:
        """θ̂ and s² of every arm in this context, from all the data of the context."""
        return self._pooled(self.problem.context_codes(context))

    def _data_of(self, context: Codes) -> _ContextData:
        if context not in self._data:
            arms, values = len(self.problem.arms), len(self.problem.payoff.values)
            seen = np.zeros((arms, values), dtype=np.int64)
            data = [ArmData(row, self.estimates.variables, self.refresh) for row in seen]
            weights = [np.empty((0, 1 + self.resamples))] * arms
            self._data[context] = _ContextData(seen, data, weights)
        return self._data[context]

    def _pooled(self, context: Codes) -> Pooled:
        data = self._data_of(context)
        changed = data.pooled is None
        for i, arm in enumerate(data.arms):
            if arm.is_new and arm.settle():
                rng = self._rng(context, i, int(arm.counts.sum()))
                data.weights[i] = arm.weights(self.resamples, rng)
                changed = True
        if changed or data.pooled is None:
            data.pooled = self._combined(data)
        return data.pooled

    def _rng(self, context: Codes, arm: int, records: int) -> np.random.Generator:
        """The resamples of an arm's data depend on nothing but the seed and which data they are."""
        place = 0
        for name, code in zip(self.problem.context, context, strict=True):
            place = place * len(self.problem.domains[name]) + code
        return stream(self.seed, place, arm, records)

    def _combined(self, data: _ContextData) -> Pooled:
        circuit = self.estimates.circuit
        values = np.empty((circuit.slots, len(self._undefined)))
        values[: len(circuit.constants)] = circuit.constants[:, None]
        for tables, arm, drawn in zip(
            self.estimates.marginals, data.arms, data.weights, strict=True
        ):
            rows = arm.rows.reshape(len(arm.counts), len(self.estimates.variables))
            _pooling.fill_marginals(values, tables, rows, drawn)
        _kernels.run_circuit(values, values.shape[1], circuit.operations, self._undefined)
        means, variances = np.empty(len(data.arms)), np.empty(len(data.arms))
        weights = np.empty(len(circuit.results))
        _pooling.pool_estimates(
            values, 1 + self.resamples, circuit.results, self.estimates.offsets, means, variances,
            weights,
        )  # fmt: skip
        return Pooled(means, variances, weights)


class Z2ThompsonSampling(_Z2Policy):
    """z²-TS: one draw from Beta(κθ̂, κ(1 − θ̂)), κ = θ̂(1 − θ̂)/s² − 1, for each arm; the best wins.

    Where θ̂ or s² is degenerate (nothing seen yet, or always the same) the draw is from
    Beta(1 + rewards, 1 + what they fell short) of the arm's own data. `resamples` (B) is the number
    of bootstrap samples, `seed` theirs. With `refresh` = 0.05 an arm's data are resampled, and
    weights computed anew, only when they have grown by 5 %.

    As for `ts`, with `propensity_samples` the winner of one of so many draws is played, and
    `decision.probabilities` are the shares of the winners; with 0 they are None. Applies to graphs
    with bidirected edges too. Needs every variable that the estimators use.
    """

    def __init__(
        self,
        problem: Problem,
        resamples: int = 100,
        refresh: float = 0.0,
        seed: int = 0,
        propensity_samples: int = 0,
    ) -> None:
        super().__init__(problem, resamples, refresh, seed)
        self.propensity_samples = checked_propensity_samples(propensity_samples)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Draw from each arm's Beta distribution, play the best."""
        problem, source = self.problem, generator(rng)
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        pooled = self._pooled(codes)
        alpha, beta = self._betas(pooled, self._data_of(codes))
        figures: dict[str, object] = {"means": pooled.means, "variances": pooled.variances}
        if self.propensity_samples:
            many = source.beta(alpha, beta, (self.propensity_samples, len(alpha)))
            picked = pick_winner(problem, arms, many[:, arms].argmax(axis=1), source)
            chosen, probabilities = picked.arm, picked.probabilities
            figures |= {"index": many[picked.draw].copy()}
            figures |= {"best": probabilities, "samples": self.propensity_samples}
            reason = (
                f"picked at random among the winners of {self.propensity_samples:,} draws from "
                f"what all arms' data say of each, {picked.in_words}"
            )
        else:
            drawn = source.beta(alpha, beta)
            chosen, probabilities = int(arms[drawn[arms].argmax()]), None
            figures |= {"index": drawn}
            reason = "the best arm by one draw from what all arms' data say of each"
        seen = problem.context_labels(codes)
        return Decision(problem.arms[chosen], probabilities, reason, Figures(figures), seen)

    def _betas(self, pooled: Pooled, data: _ContextData) -> tuple[Floats, Floats]:
        won, played = data.rewards(self.problem.payoff.scaled), data.plays()
        alpha, beta = 1 + won, 1 + played - won
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (pooled.variances < spread)
        kappa = spread[sound] / pooled.variances[sound] - 1
        alpha[sound] = kappa * pooled.means[sound]
        beta[sound] = kappa * (1 - pooled.means[sound])
        return alpha, beta


class Z2KLUCB(_Z2Policy):
    """z²-kl-UCB: kl-UCB with the effective number of plays θ̂(1 − θ̂)/s² in place of the number.

    Each arm is played once first. t is the sum of the effective numbers, and the index the largest
    μ with kl(θ̂, μ) ≤ f(t)/n, f(t) = ln t + c ln ln t. Where θ̂ or s² is degenerate, the arm's own
    mean and number stand in. Other options as for z²-TS.
    """

    def __init__(
        self,
        problem: Problem,
        resamples: int = 100,
        refresh: float = 0.0,
        seed: int = 0,
        c: float = 3.0,
    ) -> None:
        super().__init__(problem, resamples, refresh, seed)
        self.c = real_number("c", c, 0)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what was never played, or else the arm of the largest index."""
        generator(rng)  # nothing is drawn, but every policy wants one
        problem = self.problem
        codes, arms = problem.context_codes(context), allowed_arms(problem, allowed)
        data = self._data_of(codes)
        new = arms[data.plays()[arms] == 0]
        if len(new):
            chosen, figures = int(new[0]), Figures({})
            reason = "not played in this context yet"
        else:
            means, counts = self._effective(self._pooled(codes), data)
            level, known = exploration_level(counts.sum(), self.c), counts > 0
            index = np.full(len(counts), np.inf)
            index[known] = bernoulli_upper_bound(means[known], level / counts[known])
            chosen = int(arms[index[arms].argmax()])
            figures = Figures({"means": means, "counts": counts, "index": index})
            reason = (
                f"by {counts[chosen]:.0f} effective plays its mean reward may be as good as "
                f"{problem.payoff.in_units(index[chosen]):.3g}, the best of these bounds"
            )
        sure, seen = certainly(problem, chosen), problem.context_labels(codes)
        return Decision(problem.arms[chosen], sure, reason, figures, seen)

    def _effective(self, pooled: Pooled, data: _ContextData) -> tuple[Floats, Floats]:
        counts = data.plays()
        means = data.rewards(self.problem.payoff.scaled) / np.maximum(counts, 1)
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (spread > 0)
        means[sound] = pooled.means[sound]
        counts[sound] = spread[sound] / pooled.variances[sound]
        return means, counts
