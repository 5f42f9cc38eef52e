"""Belief for graphs that are too large for a posterior: rewards of arms only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.rng import Random, generator
from dowise.belief import Belief
from dowise.errors import DowiseError
from dowise.model import Codes
from dowise.model.draws import Draws
from dowise.policies.arm_rewards import ArmRewards, RewardCounts
from dowise.problem import Problem, Record
from dowise.problem.problem import Context
from dowise.problem.record import RecordBatch

FORMAT = "dowise-arm-by-arm"


class IndependentArmsBelief(Belief):
    """Belief that uses no graph: each arm has its own reward distribution in each context.

    The prior of each distribution is Dirichlet(1). A record counts for one arm in one context; it
    does not count if its reward or context is missing, or if its settings are not one of the arms.
    `why` is the reason why there is no posterior of the graph.
    """

    has_factors = False

    def __init__(self, problem: Problem, why: str = "") -> None:
        self.problem, self.why, self.monitor = problem, why, None
        self._rewards = ArmRewards(problem)

    def learn(self, record: Record) -> None:
        """Learn from a record if it counts."""
        if self._rewards.can_learn(record):
            self._rewards.learn(record)

    def retract(self, record: Record) -> None:
        """Undo `learn`."""
        if self._rewards.can_learn(record):
            self._rewards.retract(record)

    def learn_many(self, records: RecordBatch) -> None:
        """Learn from the records that count."""
        usable = self._rewards.requires.mask(records, None).mask
        self._rewards.learn_many(records.take(np.flatnonzero(usable)))

    def lacking(self) -> dict[str, dict[str, int]]:
        """Return nothing: there are no factors."""
        return {}

    def never_used(self) -> dict[str, tuple[str, ...]]:
        """Return nothing: there are no factors."""
        return {}

    def times_learned(self) -> dict[str, int]:
        """Raise `DowiseError`: there are no factors."""
        raise self._no_factors()

    def mean_cpts(self) -> dict[str, NDArray[np.float64]]:
        """Raise `DowiseError`: there are no factors."""
        raise self._no_factors()

    @property
    def parameters(self) -> NDArray[np.float64]:
        """Raises `DowiseError`: there are no factors."""
        raise self._no_factors()

    def _no_factors(self) -> DowiseError:
        return DowiseError(
            "This belief has only rewards per arm, because the graph is too large for a posterior"
            f"{f': {self.why}' if self.why else ''}",
            code="unsupported-belief",
        )

    def edges(self) -> dict[str, float]:
        """Return the priors of the doubtful edges."""
        return dict(self.problem.edge_priors)

    def edge_snapshot(self) -> Callable[[], dict[str, float]]:
        """Return a function that returns the priors of the doubtful edges."""
        return self.edges

    @property
    def undecidable_edges(self) -> tuple[str, ...]:
        """All doubtful edges."""
        return tuple(self.problem.edge_priors)

    def draw(self, codes: Codes, samples: int, rng: Random) -> Draws:
        """Draw the distribution of the reward under every arm."""
        seed = int(generator(rng).integers(2**63))
        parameters = self._parameters(codes)[..., None]
        gammas = np.random.default_rng([seed, *codes]).standard_gamma(
            parameters, (*self._shape, samples)
        )
        gammas /= gammas.sum(axis=1, keepdims=True)
        return Draws(gammas[:, 1:].astype(np.float32))

    def draw_in_blocks(self, codes: Codes, samples: int, rng: Random) -> Iterator[Draws]:
        """Make all draws in one block."""
        yield self.draw(codes, samples, rng)

    def mean_distributions(self, context: Context = None) -> NDArray[np.float64]:
        """Return P(Y = y | do(arm), c) on average: (arms, values of Y)."""
        parameters = self._parameters(self.problem.context_codes(context))
        means: NDArray[np.float64] = parameters / parameters.sum(axis=1, keepdims=True)
        return means

    def copy(self) -> IndependentArmsBelief:
        """Return an independent copy."""
        copied = IndependentArmsBelief(self.problem, self.why)
        copied._rewards = self._rewards.copy()
        return copied

    def as_dict(self) -> dict[str, Any]:
        """Return how often each reward of each arm was seen, by context (as codes)."""
        tallies = [
            {"context": [*codes], "seen": rewards.counts.tolist()}
            for codes, rewards in sorted(self._rewards.by_context.items())
        ]
        return {"format": FORMAT, "why": self.why, "tallies": tallies}

    @classmethod
    def from_dict(cls, data: dict[str, Any], problem: Problem) -> IndependentArmsBelief:
        """Inverse of `as_dict`."""
        if data.get("format") != FORMAT:
            raise DowiseError(
                f"the data have the format {data.get('format')!r}, not {FORMAT!r}: use the version "
                "of dowise that wrote them",
                code="other-version",
            )
        belief = cls(problem, data["why"])
        for tally in data["tallies"]:
            seen = np.array(tally["seen"], dtype=np.int64).reshape(belief._shape)
            counts = RewardCounts.from_counts(seen, problem.payoff.scaled)
            belief._rewards.by_context[tuple(tally["context"])] = counts
        return belief

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.problem.arms), len(self.problem.payoff.values)

    def _parameters(self, codes: Codes) -> NDArray[np.float64]:
        return 1 + self._rewards.in_context(codes).counts.astype(np.float64)

    def __repr__(self) -> str:
        return f"<IndependentArmsBelief about {self.problem!r}>"
