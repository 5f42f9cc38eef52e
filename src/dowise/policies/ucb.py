"""UCB1, a baseline that plays the arm with the largest upper confidence bound."""

from __future__ import annotations

from math import isfinite
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.policies.tabular import Floats, IndexPolicy
from dowise.problem import Problem

__all__ = ["UCB"]


class UCB(IndexPolicy):
    """UCB1 (Auer, Cesa-Bianchi & Fischer 2002) on the problem's arms, one table per context.

    Plays the arm with the largest mean + √(c·ln t / n), where n is how often the arm was played in
    this context, t how many rounds the context has had, and c = `exploration`. At c = 2 the regret
    in each context grows like ln t, by their Theorem 1, for rewards of any number of values scaled
    to [0, 1].
    """

    def __init__(self, problem: Problem, exploration: float = 2.0) -> None:
        super().__init__(problem)
        is_number = isinstance(exploration, Real) and not isinstance(exploration, bool)
        if not is_number or not exploration >= 0 or not isfinite(exploration):
            raise DowiseError(f"exploration={exploration!r} must be a number of at least 0")
        self.exploration = float(exploration)

    def index(self, plays: NDArray[np.int64], totals: Floats) -> Floats:
        """The upper confidence bound of each arm."""
        from dowise.policies.kernels import ucb_index

        index = np.empty(len(plays))
        ucb_index(plays, totals, plays.sum(), self.exploration, index)
        return index
