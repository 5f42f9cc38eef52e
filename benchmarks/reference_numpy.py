"""The yardstick: what a competent researcher writes in an afternoon with NumPy.

Gammas for every row, under the current context, of every variable that is no context itself,
normalised to Dirichlet draws; then one `einsum` for each arm over the CPTs of the reward and its
ancestors, the arm's variables held at their values. Formulas and contraction paths are found once.
Nothing here is slow on purpose.
"""

from __future__ import annotations

import string

import numpy as np

from dowise import Problem


class NumpyBelief:
    """Dirichlet counts for each CPT, as arrays with the parents' axes first."""

    def __init__(self, problem: Problem, prior: float = 1.0) -> None:
        self.problem = problem
        self.letter = dict(zip(problem.graph, string.ascii_letters, strict=False))
        self.sizes = {name: len(labels) for name, labels in problem.domains.items()}
        self.counts = {
            name: np.full(
                [self.sizes[member] for member in (*problem.graph.parents(name), name)], prior
            )
            for name in problem.graph
        }
        self.worth = np.array(list(problem.reward_values.values()))
        self.position = {
            name: {label: i for i, label in enumerate(labels)}
            for name, labels in problem.domains.items()
        }
        self.plans: dict[int, tuple] = {}

    def update(self, arm, outcome) -> None:
        seen = {name: self.position[name][str(value)] for name, value in {**outcome, **arm}.items()}
        for name in self.problem.graph:
            if name not in arm:
                family = (*self.problem.graph.parents(name), name)
                self.counts[name][tuple(seen[member] for member in family)] += 1

    def under(self, context):
        """The counts of all variables but the context, in the rows that this context selects."""
        known = {name: self.position[name][str(value)] for name, value in context.items()}
        graph = self.problem.graph
        return {
            name: self.counts[name][
                tuple(known.get(member, slice(None)) for member in (*graph.parents(name), name))
            ]
            for name in graph
            if name not in known
        }

    def draw_rewards(self, context, samples, rng):
        """(arms, samples)."""
        cpts = {}
        for name, alpha in self.under(context).items():
            gammas = rng.standard_gamma(alpha, size=(samples, *alpha.shape))
            cpts[name] = gammas / gammas.sum(axis=-1, keepdims=True)
        return np.stack(
            [self._mean_reward(i, arm, cpts) for i, arm in enumerate(self.problem.arms)]
        )

    def _mean_reward(self, number, arm, cpts):
        if number not in self.plans:
            formula, indices = self._plan(arm)
            operands = [*(cpts[name][index] for name, index in indices), self.worth]
            path = np.einsum_path(formula, *operands, optimize="greedy")[0]
            self.plans[number] = formula, indices, path
        formula, indices, path = self.plans[number]
        operands = [*(cpts[name][index] for name, index in indices), self.worth]
        return np.einsum(formula, *operands, optimize=path)

    def _plan(self, arm):
        """The einsum formula of an arm, and which part of which CPT goes in."""
        graph, reward = self.problem.graph, self.problem.reward
        fixed = {name: self.position[name][label] for name, label in arm.items()}
        terms, indices = [], []
        for name in graph.cut(arm).ancestors(reward):
            if name in fixed or name in self.problem.context:
                continue
            family = [m for m in (*graph.parents(name), name) if m not in self.problem.context]
            index = tuple(fixed.get(member, slice(None)) for member in family)
            indices.append((name, (slice(None), *index)))
            terms.append("Z" + "".join(self.letter[m] for m in family if m not in fixed))
        return ",".join([*terms, self.letter[reward]]) + "->Z", indices


class NumpyThompson(NumpyBelief):
    """Algorithm 1: one draw, the best arm under it."""

    def decide(self, context, rng):
        return self.problem.arms[int(self.draw_rewards(context, 1, rng)[:, 0].argmax())]


class NumpyIDS(NumpyBelief):
    """Algorithm 2 for rewards 0 and 1: Lemma 2 as matrix products, all pairs of arms at once."""

    def __init__(self, problem: Problem, samples: int = 1000) -> None:
        super().__init__(problem)
        self.samples = samples

    def decide(self, context, rng):
        rewards = self.draw_rewards(context, self.samples, rng)
        first, second, q = smallest_ratio(*regret_and_gain(rewards))
        return self.problem.arms[first if rng.random() < q else second]


def regret_and_gain(rewards):
    arms, samples = rewards.shape
    winners = np.zeros((samples, arms))
    winners[np.arange(samples), rewards.argmax(axis=0)] = 1
    best = winners.mean(axis=0)
    ones = rewards @ winners / samples  # p_a(a*, Y = 1)
    joint = np.stack([np.maximum(best - ones, 0), ones], axis=2)
    product = best[None, :, None] * joint.sum(axis=1, keepdims=True)
    seen = joint > 0
    logs = np.log(np.divide(joint, product, out=np.ones_like(joint), where=seen))
    gain = np.maximum((joint * logs).sum(axis=(1, 2)), 0)
    return rewards.max(axis=0).mean() - rewards.mean(axis=1), gain


def smallest_ratio(delta, gain):
    """IDSAction: the inner stationary point of every pair, beside the single arms."""
    gain = np.where(gain <= 1e-12, 0.0, gain)
    if not gain.any():
        cheapest = int(delta.argmin())
        return cheapest, cheapest, 1.0
    d, e = delta[:, None] - delta, gain[:, None] - gain
    bend = d * e
    q = np.divide(e * delta - 2 * d * gain, bend, out=np.ones_like(bend), where=bend != 0)
    q = np.where((q > 0) & (q < 1), q, 1.0)
    cost, taught = q * delta[:, None] + (1 - q) * delta, q * gain[:, None] + (1 - q) * gain
    ratio = np.where(cost > 0, np.inf, 0.0)
    np.divide(cost**2, taught, out=ratio, where=taught > 0)
    first, second = divmod(int(ratio.argmin()), len(delta))
    return first, second, float(q[first, second])
