"""What is kept of the trials of a job, while they are played."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dowise.compiling import kernels_of
from dowise.problem import Intervention, Problem
from dowise.simulation.results import Rounds, Texts
from dowise.simulation.trial import Trial

__all__ = ["Keeper"]

_kernels = kernels_of("dowise.simulation.kernels")


class Keeper:
    """Takes the trials of a job one after the other, and keeps some rounds of each.

    Numbers alone, until all trials are there: texts are made once, for the whole job.
    """

    def __init__(self, trials: list[int], rounds: NDArray[np.int32], expected: bool) -> None:
        shape = len(trials), len(rounds)
        self._trials, self._rounds, self._done = trials, rounds, 0
        self._regrets = np.empty(shape)
        self._expected = np.empty(shape) if expected else None
        self._places = np.empty(shape, dtype=np.int32)  # among the arms of all problems
        self._arms: list[Intervention] = []
        self._problem: Problem | None = None  # the last one, and where its arms begin
        self._start = 0

    def keep(self, played: Trial) -> None:
        """What the next trial was."""
        if played.problem is not self._problem:  # the first, or one that was drawn for this trial
            self._problem, self._start = played.problem, len(self._arms)
            self._arms += played.problem.arms
        i, self._done = self._done, self._done + 1
        _kernels.keep_rounds(
            self._rounds, played.regrets, played.arms, self._start, self._regrets[i],
            self._places[i],
        )  # fmt: skip
        if self._expected is not None and played.expected is not None:
            self._expected[i] = played.expected.cumsum()[self._rounds - 1]

    def found(self) -> Rounds:
        """All of it, once all trials are there."""
        arms = Texts.of(self._arms, self._places)
        return Rounds(self._trials, self._rounds, self._regrets, arms, self._expected)
