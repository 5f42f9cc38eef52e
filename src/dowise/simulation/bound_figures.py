"""What `bounds` found: every figure by its own name, and the paper's bounds made of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.information import corollary_1, corollary_2, theorem_1, theorem_2
from dowise.plain import plain
from dowise.problem import Problem
from dowise.simulation.bound_run import Run
from dowise.simulation.certify import Certified

__all__ = ["Bounds"]

CONFIDENCE = 0.999  # of the radius around p*(a), as in section 6


@dataclass(frozen=True, eq=False)
class Bounds:
    """Every figure by its own name; `as_dict` is what `dowise bounds --json` prints."""

    problem: Problem
    horizon: int
    samples: int
    policy_samples: int
    delta: float
    """δ', with which all intervals of the run together may fail; not the regret Δ."""
    seed: int
    contexts: tuple[dict[str, str], ...]
    p_best: NDArray[np.float64]
    """p*(a) at the prior: (contexts, arms)."""
    entropy: float
    entropy_error: float
    maps_seen: int
    is_joint: bool
    """Whether the entropy is that of the joint map, or else the sum over contexts, at least it."""
    run: Run
    samples_for_some: float
    """The N from which the lower bound on some arm's g is positive, at the prior."""
    samples_for_all: float
    """The N from which all of them are, so that γ_t is finite; infinite where `unresolved`."""
    unresolved: int
    """Arms whose g at the prior is too small to be told from 0 with so many draws."""
    certified: Certified | None = None
    """What `certified-ids` certifies, where that was asked for."""

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return len(self.problem.arms)

    @property
    def p_best_radius(self) -> float:
        """How far p*(a) may be off, all arms of a context at once, at confidence .999."""
        return sqrt(log(2 * self.arms / (1 - CONFIDENCE)) / (2 * self.samples))

    @property
    def reward_span(self) -> float:
        """What a regret in [0, 1] is multiplied by to be in the user's units."""
        return self.problem.payoff.span

    @property
    def worst_entropy(self) -> float:
        """|C| log K."""
        return len(self.contexts) * log(self.arms)

    @property
    def coefficient(self) -> float:
        """√(K/2 · H): what Corollary 2 multiplies √T by."""
        return corollary_2(self.arms, self.entropy, 1)

    @property
    def worst_coefficient(self) -> float:
        """√(K/2 · |C| log K): what Corollary 1 multiplies √T by."""
        return corollary_1(self.arms, len(self.contexts), 1)

    @property
    def saving(self) -> float:
        """By which share the coefficient is below the worst one."""
        return 1 - self.coefficient / self.worst_coefficient if self.worst_coefficient else 0.0

    def values(self) -> dict[str, float]:
        """The bounds on the Bayesian regret after T rounds, by name, for rewards in [0, 1]."""
        k, t = self.arms, self.horizon
        return {
            "corollary_1": corollary_1(k, len(self.contexts), t),
            "theorem_1": theorem_1(sqrt(k / 2), self.entropy, t),
            "theorem_1_run": theorem_1(sqrt(self.run.largest_ratio), self.entropy, t),
            "corollary_2": corollary_2(k, self.entropy, t),
            "theorem_2": theorem_2(k, self.entropy, t, [self.run.gamma_high]),
            "theorem_2_low": theorem_2(k, self.entropy, t, [self.run.gamma_low]),
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON: infinity is the text "inf"."""
        figures = {**self._inputs(), **self._prior_figures(), **self._run_figures()}
        if self.certified is not None:
            figures |= self.certified.as_dict()
        spoken: dict[str, Any] = plain(figures)
        return spoken

    def _inputs(self) -> dict[str, Any]:
        return {
            "problem": self.problem.name,
            "horizon": self.horizon,
            "samples": self.samples,
            "policy_samples": self.policy_samples,
            "delta": self.delta,
            "seed": self.seed,
            "arms": self.arms,
            "contexts": len(self.contexts),
            "arm_names": [str(arm) for arm in self.problem.arms],
        }

    def _prior_figures(self) -> dict[str, Any]:
        values = self.values()
        worst = values["corollary_1"]
        return {
            "p_best": self.p_best.mean(axis=0).tolist(),
            "p_best_by_context": [
                {"context": context, "p_best": row.tolist()}
                for context, row in zip(self.contexts, self.p_best, strict=True)
            ],
            "p_best_radius": self.p_best_radius,
            "reward_span": self.reward_span,
            "entropy": self.entropy,
            "entropy_error": self.entropy_error,
            "entropy_of": "joint map" if self.is_joint else "sum over contexts",
            "maps_seen": self.maps_seen,
            "worst_entropy": self.worst_entropy,
            "coefficient": self.coefficient,
            "worst_coefficient": self.worst_coefficient,
            "saving": self.saving,
            **values,  # for rewards in [0, 1]
            "of_worst_case": {name: x / worst if worst else 1.0 for name, x in values.items()},
        }

    def _run_figures(self) -> dict[str, Any]:
        run = self.run
        return {
            "largest_ratio": run.largest_ratio,
            "worst_ratio": self.arms / 2,
            "gamma_sum": run.gamma_high,
            "gamma_sum_low": run.gamma_low,
            "gamma_infinite_rounds": run.infinite_rounds,
            "vacuous_rounds": run.vacuous_rounds,
            "samples_for_some_lower_bound": self.samples_for_some,
            "samples_for_every_lower_bound": self.samples_for_all,
            "unresolved_arms": self.unresolved,
        }
