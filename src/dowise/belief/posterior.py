"""What a posterior can do, for whoever writes one: `Dirichlet` is one such.

A posterior knows how likely the numbers of a problem are after some records. It is a function of
these records, not of their order: learning and retracting count up and down by whole numbers.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.problem import Problem, Record
from dowise.problem.record import RecordBatch
from dowise.randomness import Random

__all__ = ["Posterior"]


class Posterior(Protocol):
    """The promises that `Belief`, the policies and the bounds rely on."""

    @property
    def problem(self) -> Problem:
        """What it is about."""

    def learn(self, record: Record) -> None:
        """One record more."""

    def retract(self, record: Record) -> None:
        """One record less: as if it had never been learned. Refuses what was not learned."""

    def learn_many(self, records: RecordBatch) -> None:
        """Many records more, the same as one by one."""

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """The distribution of the reward under every arm, for draws from the posterior.

        Equal seeds give equal entries in every context: draw i under seed s in one context and draw
        i under seed s in another are one world. So the best arms of all contexts under one draw
        make one map from contexts to arms, which the entropy of that map is computed from.
        """

    def mean_distributions(self, codes: Codes) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c) averaged over the posterior, exact: (arms, values of Y)."""

    def copy(self) -> Self:
        """A posterior that learns on its own from here."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with a version."""

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`; refuses what is damaged or about another problem."""
