"""The yardstick: what a competent researcher writes in an afternoon with NumPy.

Gammas for every row, under the current context, of every variable that is no context itself,
normalised to Dirichlet draws; then one `einsum` for each arm over the CPTs of the reward and its
ancestors, the arm's variables held at their values. Contraction paths are found once. Nothing here
is slow on purpose.
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
        self.paths: dict[int, list] = {}

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
        graph, reward = self.problem.graph, self.problem.reward
        fixed = {name: self.position[name][label] for name, label in arm.items()}
        terms, operands = [], []
        for name in graph.cut(arm).ancestors(reward):
            if name in fixed or name in self.problem.context:
                continue
            family = [m for m in (*graph.parents(name), name) if m not in self.problem.context]
            index = tuple(fixed.get(member, slice(None)) for member in family)
            operands.append(cpts[name][(slice(None), *index)])
            terms.append("Z" + "".join(self.letter[m] for m in family if m not in fixed))
        operands.append(self.worth)
        formula = ",".join([*terms, self.letter[reward]]) + "->Z"
        if number not in self.paths:
            self.paths[number] = np.einsum_path(formula, *operands, optimize="greedy")[0]
        return np.einsum(formula, *operands, optimize=self.paths[number])
