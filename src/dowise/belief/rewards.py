"""A problem's CPTs and its reward program together: rewards of all arms at given CPTs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief.compiled import kernels
from dowise.belief.program import Program, compile_program
from dowise.belief.tables import Tables
from dowise.problem import Problem
from dowise.problem.problem import Context

__all__ = ["Context", "Rewards", "rewards_of", "with_first_value"]


class Rewards:
    """Everything about rewards that does not depend on what is known: built once per problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.tables = Tables(problem)
        self.program: Program = compile_program(problem, self.tables)
        labels = problem.domains[problem.reward]
        self.worth = np.array([problem.reward_values[label] for label in labels])
        """What each value of the reward is worth, in the order of its domain."""
        self._strides = self.tables.strides[self.program.row_variables]
        self._row_entries: dict[tuple[int, ...], NDArray[np.int64]] = {}

    def row_entries(self, context: Context) -> NDArray[np.int64]:
        """Where the program's rows start among all CPT entries under this context.

        The context-conditioned posterior of section 4 differs from the posterior only in the rows
        of the context variables themselves, and no arm's reward depends on those.
        """
        codes = self.problem.context_codes(context)
        if codes not in self._row_entries:
            numbers = [self.tables.number[name] for name in self.problem.context]
            shift = self._strides[:, numbers] @ np.array(codes, dtype=np.int64)
            self._row_entries[codes] = self.program.row_entries + shift
        return self._row_entries[codes]

    def distributions(
        self, cpts: NDArray[np.float64], context: Context = None
    ) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c) at these CPTs, flat: an array (arms, values of Y)."""
        program = self.program
        values = np.empty((program.slots, 1))
        values[0] = 1.0
        rows = self.row_entries(context)
        for entry, slot, size in zip(rows, program.row_slots, program.row_sizes, strict=True):
            values[slot : slot + size, 0] = cpts[entry : entry + size]
        kernels().run_program(
            values, 1, program.outputs, program.starts, program.lefts, program.rights
        )
        return with_first_value(values[program.results, 0])


@lru_cache(maxsize=32)
def rewards_of(problem: Problem) -> Rewards:
    """The rewards of a problem, built once however many beliefs and worlds there are of it."""
    return Rewards(problem)


def with_first_value(others: NDArray[Any]) -> NDArray[Any]:
    """Put the probability of the reward's first value, one minus the others, in front."""
    first = 1 - others.sum(axis=1, keepdims=True)
    return np.concatenate([np.maximum(first, 0), others], axis=1)
