"""Plays that are under way: asked for, and nothing is known of them yet.

A policy whose choice is a function of what it has learned asks for the same arm until it learns
something. Where decisions are made before the outcomes of earlier ones are known, it counts these
plays as if each had brought the arm's mean so far: the mean stays, the bonus for what is not known
shrinks, and the next arm has its turn. (kl-UCB leaves no such bonus to an arm that has brought the
best value every time: that one it asks for as long as nothing else is known.) An arm of which no
play is finished counts as bringing one half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context

__all__ = ["UNKNOWN_MEAN", "Pending"]

Integers = NDArray[np.int64]

UNKNOWN_MEAN = 0.5
"""What a play under way of an arm that has no finished one is taken to bring."""


class Pending:
    """How many plays of each arm are under way, for each context."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._plays: dict[Codes, Integers] = {}

    def add(self, arm: ArmLike, context: Context, times: int) -> None:
        """So many more, or less; what is no arm of the problem has no index, and is passed over."""
        problem = self._problem
        played = arm if isinstance(arm, Intervention) else problem.intervention(arm)
        place, codes = problem.arm_positions.get(played), problem.context_codes(context)
        if place is None:
            return
        plays = self.of(codes)
        if plays[place] + times < 0:
            raise DowiseError(
                f"{-times:,} plays of {played} can't be taken back: {plays[place]:,} are under way"
            )
        plays[place] += times
        if plays.any():
            self._plays[codes] = plays
        else:
            self._plays.pop(codes, None)

    def of(self, codes: Codes) -> Integers:
        """The plays of every arm that are under way in a context, given by positions."""
        found = self._plays.get(codes)
        return np.zeros(len(self._problem.arms), dtype=np.int64) if found is None else found.copy()

    def __bool__(self) -> bool:
        return bool(self._plays)
