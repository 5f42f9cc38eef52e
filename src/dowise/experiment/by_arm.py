"""What rewards alone say of each arm: for graphs that are too large for a posterior of theirs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.problem import Problem, Record
from dowise.problem.record import RecordBatch
from dowise.randomness import Random, generator

__all__ = ["FORMAT", "ArmByArm"]

FORMAT = "dowise-arm-by-arm"


class ArmByArm:
    """A posterior that knows nothing of the graph.

    In each context each arm has reward probabilities of its own, Dirichlet(1) before any record.
    So a record tells of one arm in one context only, and not at all where its reward or context was
    not seen, or where what was set is none of the arms. `why` says what stood against a posterior
    of the graph.
    """

    def __init__(self, problem: Problem, why: str = "") -> None:
        # It brings numba, which nobody who only tells something should have to wait for.
        from dowise.policies.tabular import TabularPolicy

        self.problem, self.why = problem, why
        self._policy = TabularPolicy(problem)

    def learn(self, record: Record) -> None:
        """One record more, if it tells of an arm."""
        if self._policy.lacks(record) is None:
            self._policy.learn(record)

    def retract(self, record: Record) -> None:
        """One record less."""
        if self._policy.lacks(record) is None:
            self._policy.retract(record)

    def learn_many(self, records: RecordBatch) -> None:
        """Many records more."""
        self._policy.learn_many(records.take(np.flatnonzero(self._policy.usable(records).mask)))

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """The distribution of the reward under every arm."""
        source = generator(rng)
        own = np.random.default_rng([int(source.integers(2**63)), *codes])
        drawn = own.standard_gamma(self._parameters(codes)[..., None], (*self._shape, samples))
        drawn /= drawn.sum(axis=1, keepdims=True)
        return Draws(drawn[:, 1:].astype(np.float32))

    def mean_distributions(self, codes: Codes) -> NDArray[np.float64]:
        """P(Y = y | do(arm), c) on average: (arms, values of Y)."""
        parameters = self._parameters(codes)
        means: NDArray[np.float64] = parameters / parameters.sum(axis=1, keepdims=True)
        return means

    def copy(self) -> Self:
        """One that learns on its own from here."""
        twin = type(self)(self.problem, self.why)
        twin._policy.tallies = deepcopy(self._policy.tallies)
        return twin

    def as_dict(self) -> dict[str, Any]:
        """How often each reward of each arm was seen, by context: positions in the domains."""
        known = sorted(self._policy.tallies.items())
        tallies = [{"context": [*codes], "seen": tally.seen.tolist()} for codes, tally in known]
        return {"format": FORMAT, "why": self.why, "tallies": tallies}

    @classmethod
    def from_dict(cls, page: dict[str, Any], problem: Problem) -> Self:
        """The way back from `as_dict`."""
        from dowise.policies.tabular import Tally

        if page.get("format") != FORMAT:
            raise DowiseError("this is not what arms brought: a posterior of the graph, perhaps")
        found = cls(problem, page["why"])
        for one in page["tallies"]:
            seen = np.array(one["seen"], dtype=np.int64).reshape(found._shape)
            found._policy.tallies[tuple(one["context"])] = Tally.of(seen, problem.payoff.scaled)
        return found

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.problem.arms), len(self.problem.payoff.values)

    def _parameters(self, codes: Codes) -> NDArray[np.float64]:
        return 1 + self._policy.tally(codes).seen.astype(np.float64)

    def __repr__(self) -> str:
        return f"<ArmByArm about {self.problem!r}>"
