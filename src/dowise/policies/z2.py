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
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from dowise.belief.observe import encode_outcome
from dowise.belief.randomness import Random, generator
from dowise.errors import DowiseError
from dowise.identification.circuit import compile_circuit
from dowise.policies.decision import Decision, Figures
from dowise.policies.kl_ucb import bernoulli_upper_bound, checked_c, exploration_level
from dowise.policies.policy import (
    allowed_arms,
    checked_number,
    checked_propensity_samples,
    estimated_probabilities,
)
from dowise.policies.records import Records
from dowise.problem import Problem
from dowise.problem.problem import ArmLike, Context
from dowise.problem.values import MISSING

__all__ = ["Z2KLUCB", "Z2ThompsonSampling"]

Floats = NDArray[np.float64]
Codes = tuple[int, ...]

MOST_UNDEFINED = 0.1  # an estimator that is undefined on more of the resamples is left out


@dataclass(eq=False)
class Pooled:
    """θ̂ and s² of every arm in one context; NaN where no estimator is defined."""

    means: Floats
    variances: Floats
    weights: Floats
    """Of every estimator, in the order of the circuit's results."""


@dataclass(eq=False)
class _Data:
    """Of one context: each arm's records with their resamples, and what follows from them."""

    records: list[Records]
    weights: list[Floats]
    stale: set[int]
    """The arms whose data have to be resampled."""
    pooled: Pooled | None = field(default=None)


class _Z2Policy:
    """What both policies share: data, estimators, weights."""

    def __init__(
        self, problem: Problem, resamples: int = 100, refresh: float = 0.0, seed: int = 0
    ) -> None:
        self.resamples = checked_number("resamples", resamples, 2, 100_000)
        self.seed = checked_number("seed", seed, 0)
        is_number = isinstance(refresh, Real) and not isinstance(refresh, bool)
        if not is_number or not 0 <= refresh < np.inf:
            raise DowiseError(f"refresh={refresh!r} must be a share such as 0.05, or 0")
        self.problem = problem
        self.refresh = float(refresh)
        self.circuit = compile_circuit(problem)
        names = problem.graph.variables
        self._reward = names.index(problem.reward)
        self._context = [names.index(name) for name in problem.context]
        strides = np.concatenate([tables.strides for tables in self.circuit.marginals])
        self._variables = np.flatnonzero(strides.any(axis=0))
        self._values = np.empty((self.circuit.slots, 2 * (1 + self.resamples)))
        for slot, value in self.circuit.constants:
            self._values[slot] = value
        self._data: dict[Codes, _Data] = {}

    def observe(self, arm: ArmLike, outcome: Mapping[str, object]) -> None:
        """Learn from the whole record: every variable that an estimator looks at must be seen."""
        position = self.problem.arm_index(arm)
        codes = np.array(encode_outcome(self.problem, self.problem.arms[position], outcome))
        needed = [*self._context, *self._variables]
        for v in needed:
            if codes[v] == MISSING:
                name = self.problem.graph.variables[v]
                raise DowiseError(
                    f"the outcome has no value for {name}: the z² policies need the context and "
                    "every variable that their estimators use"
                )
        context = tuple(codes[self._context].tolist())
        data = self._data_of(context)
        if data.records[position].add(codes, self.problem.scaled_rewards[codes[self._reward]]):
            data.stale.add(position)

    def pooled(self, context: Context = None) -> Pooled:
        """θ̂ and s² of every arm in this context, from all the data of the context."""
        return self._pooled(self.problem.context_codes(context))

    def _data_of(self, context: Codes) -> _Data:
        if context not in self._data:
            arms = len(self.problem.arms)
            width = len(self.problem.graph)
            records = [Records(width, self._variables, self.refresh) for _ in range(arms)]
            nothing = np.empty((0, 1 + self.resamples))
            self._data[context] = _Data(records, [nothing] * arms, set())
        return self._data[context]

    def _pooled(self, context: Codes) -> Pooled:
        data = self._data_of(context)
        if data.stale or data.pooled is None:
            for i in data.stale:
                rng = self._rng(context, i, data.records[i])
                data.weights[i] = data.records[i].weights(self.resamples, rng)
            data.stale.clear()
            data.pooled = self._combined(data)
        return data.pooled

    def _rng(self, context: Codes, arm: int, records: Records) -> np.random.Generator:
        """The resamples of an arm's data depend on nothing but the seed and which data they are."""
        place = 0
        for name, code in zip(self.problem.context, context, strict=True):
            place = place * len(self.problem.domains[name]) + code
        which = (place, arm, int(records.settled.sum()))
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=which))

    def _combined(self, data: _Data) -> Pooled:
        from dowise.identification.kernels import fill_marginals, run_circuit
        from dowise.policies.kernels import combine_estimates

        circuit, values, lanes = self.circuit, self._values, 1 + self.resamples
        for tables, records, drawn in zip(
            circuit.marginals, data.records, data.weights, strict=True
        ):
            fill_marginals(
                values, tables.firsts, tables.sizes, tables.strides, records.rows(), drawn
            )
        run_circuit(
            values, lanes, circuit.kinds, circuit.outputs, circuit.starts, circuit.lefts,
            circuit.rights,
        )  # fmt: skip
        means, variances = np.empty((2, len(data.records)))
        weights = np.empty(len(circuit.results))
        combine_estimates(
            values, lanes, circuit.results, circuit.offsets, MOST_UNDEFINED, means, variances,
            weights,
        )  # fmt: skip
        return Pooled(means, variances, weights)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.problem!r}>"


class Z2ThompsonSampling(_Z2Policy):
    """z²-TS: one draw from Beta(κθ̂, κ(1 − θ̂)), κ = θ̂(1 − θ̂)/s² − 1, for each arm; the best wins.

    Where θ̂ or s² is degenerate (nothing seen yet, or always the same) the draw is from
    Beta(1 + rewards, 1 + what they fell short) of the arm's own data. `resamples` (B) is the number
    of bootstrap samples, `seed` theirs. With `refresh` = 0.05 an arm's data are resampled, and
    weights computed anew, only when they have grown by 5 %.

    As for `ts`, `decision.probabilities` are estimated from `propensity_samples` draws, and None
    with 0. Applies to graphs with bidirected edges too. Needs every variable that the estimators
    use.
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
        source, arms = generator(rng), allowed_arms(self.problem, allowed)
        codes = self.problem.context_codes(context)
        pooled = self._pooled(codes)
        alpha, beta = self._betas(pooled, self._data_of(codes))
        drawn = source.beta(alpha, beta)
        chosen = int(arms[drawn[arms].argmax()])
        figures = {"means": pooled.means, "variances": pooled.variances, "index": drawn}
        reason = "the best arm by one draw from what all arms' data say of each"
        if not self.propensity_samples:
            return Decision(self.problem.arms[chosen], None, reason, Figures(figures, {}))
        size = (self.propensity_samples, len(arms))
        winners = source.beta(alpha[arms], beta[arms], size).argmax(axis=1)
        probabilities = estimated_probabilities(self.problem, arms, winners, chosen)
        behind = Figures({**figures, "best": probabilities, "samples": self.propensity_samples}, {})
        return Decision(self.problem.arms[chosen], probabilities, reason, behind)

    def _betas(self, pooled: Pooled, data: _Data) -> tuple[Floats, Floats]:
        won = np.array([records.reward for records in data.records])
        played = np.array([records.total for records in data.records])
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
        self.c = checked_c(c)

    def decide(
        self,
        context: Context = None,
        rng: Random | None = None,  # noqa: ARG002 (every policy takes it)
        allowed: Iterable[ArmLike] | None = None,
    ) -> Decision:
        """Play what was never played, or else the arm of the largest index."""
        arms = allowed_arms(self.problem, allowed)
        codes = self.problem.context_codes(context)
        data = self._data_of(codes)
        played = np.array([records.total for records in data.records])
        new = arms[played[arms] == 0]
        if len(new):
            return self._decision(int(new[0]), "not played in this context yet", Figures({}, {}))
        means, counts = self._effective(self._pooled(codes), data)
        level, known = exploration_level(counts.sum(), self.c), counts > 0
        index = np.full(len(counts), np.inf)
        index[known] = bernoulli_upper_bound(means[known], level / counts[known])
        chosen = int(arms[index[arms].argmax()])
        figures = Figures({"means": means, "counts": counts, "index": index}, {})
        reason = (
            f"the largest upper confidence bound, {index[chosen]:.3f}, from {counts[chosen]:.0f} "
            "effective plays"
        )
        return self._decision(chosen, reason, figures)

    def _decision(self, chosen: int, reason: str, figures: Figures) -> Decision:
        probabilities = np.zeros(len(self.problem.arms))
        probabilities[chosen] = 1.0
        return Decision(self.problem.arms[chosen], probabilities, reason, figures)

    def _effective(self, pooled: Pooled, data: _Data) -> tuple[Floats, Floats]:
        counts = np.array([float(records.total) for records in data.records])
        means = np.array([records.reward for records in data.records]) / np.maximum(counts, 1)
        spread = pooled.means * (1 - pooled.means)
        sound = (pooled.variances > 0) & (spread > 0)
        means[sound] = pooled.means[sound]
        counts[sound] = spread[sound] / pooled.variances[sound]
        return means, counts
