"""A trial in which choices are made one by one, while the rest of each round is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Dirichlet, Mixture
from dowise.compiling import kernel
from dowise.model.kernels import observe_round
from dowise.model.sampling import Script
from dowise.policies.policy import BayesianPolicy

__all__ = ["play_out"]


def play_out(
    policy: BayesianPolicy, script: Script, choose: Callable[[int, tuple[int, ...]], int]
) -> NDArray[np.int64]:
    """Play a script to its end; `choose` gives the arm of a round, by its number and context."""
    problem, posterior = policy.problem, policy.belief.posterior
    assert isinstance(posterior, Dirichlet | Mixture)
    known = [tuple(codes) for codes in script.known.tolist()]
    fixed = np.array([problem.fixed(arm) for arm in problem.arms])
    factors = posterior.model.factors
    place = [factors.place(arm) for arm in problem.arms]
    seen = np.empty(len(script.mechanism.observed), dtype=np.int64)
    chosen = np.empty(len(script.contexts), dtype=np.int64)
    for t, number in enumerate(script.contexts.tolist()):
        arm = chosen[t] = choose(t, known[number])
        _observe(script, t, arm, seen)
        posterior.count_at(place[arm], seen, fixed[arm])
    policy.next_number += len(chosen)
    return chosen


@kernel()
def _observe(script: Any, t: Any, arm: Any, seen: Any) -> None:
    """A round after the choice: the world runs."""
    codes = np.empty(len(script.mechanism.order), dtype=np.int64)
    observe_round(script, t, arm, codes, seen)
