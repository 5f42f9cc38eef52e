"""Adapter of worlds to Gymnasium (extra `gym`).

>>> from dowise import make_environment
>>> env = CausalBanditEnv(make_environment("task2", seed=0), horizon=100)
>>> env.observation_space, env.action_space
(MultiDiscrete([2]), Discrete(4))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dowise._core.validation import check_integer
from dowise.environments.environment import World
from dowise.errors import DowiseError, import_extra

if TYPE_CHECKING:
    import gymnasium
else:
    gymnasium = import_extra("gymnasium", "gym", "dowise.environments.gym")


class CausalBanditEnv(gymnasium.Env[Any, Any]):
    """Contextual bandit in which each step plays an arm and shows the next context.

    An observation is the context: the index of each label in its domain, in the order of
    `problem.context`; without context it is always 0. An action is the index of an arm in
    `problem.arms`. The reward is in the user's units, negated if the problem has `minimise`,
    because agents maximise. `info` has the `outcome`, all observed variables by name, and the
    `regret` of the step.

    Parameters
    ----------
    environment : World
    horizon : int
        Number of steps of an episode.

    Raises
    ------
    DowiseError
        If `environment` is not a world ("invalid-type") or the horizon is not positive
        ("invalid-number").
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, environment: World, horizon: int) -> None:
        self.horizon = check_integer("horizon", horizon, 1)
        if not hasattr(environment, "problem"):
            raise DowiseError(
                f"{environment!r} is not a world; create one with make_environment(problem, seed)",
                code="invalid-type",
            )
        self.environment = environment
        problem = environment.problem
        self.action_space = gymnasium.spaces.Discrete(len(problem.arms))
        self.observation_space = (
            gymnasium.spaces.MultiDiscrete([len(problem.domains[v]) for v in problem.context])
            if problem.context
            else gymnasium.spaces.Discrete(1)
        )
        self._context: dict[str, str] | None = None
        self._played = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; a seed makes everything that follows repeatable."""
        super().reset(seed=seed, options=options)
        self._played = 0
        return self._next_context(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play an arm in the current context."""
        if self._context is None or self._played == self.horizon:
            raise DowiseError("the episode is over or has not started: call reset first")
        if not self.action_space.contains(action):
            raise DowiseError(
                f"unknown action {action!r} (expected the index of one of "
                f"{len(self.environment.problem.arms)} arms)",
                code="unknown-arm",
            )
        problem, context = self.environment.problem, self._context
        arm = problem.arms[int(action)]
        outcome = self.environment.play(arm, context, self.np_random)
        info = {"outcome": outcome, "regret": self.environment.regret(arm, context)}
        gross = problem.reward_values[outcome[problem.reward]]
        reward = float(problem.payoff.oriented(problem.payoff.net(gross, int(action))))
        self._played += 1
        return self._next_context(), reward, False, self._played == self.horizon, info

    def _next_context(self) -> Any:
        problem = self.environment.problem
        self._context = self.environment.draw_context(self.np_random)
        if not problem.context:
            return np.int64(0)
        return np.array([problem.code(v, self._context[v]) for v in problem.context])
