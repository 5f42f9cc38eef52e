"""What a world can do, for whoever writes one: `Environment` is one such."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context
from dowise.randomness import Random

__all__ = ["World", "lack_of"]

_METHODS = ("draw_context", "play", "means", "best_arm", "regret")


class World(Protocol):
    """The promises that `check_environment` holds a world to."""

    @property
    def problem(self) -> Problem:
        """What is to be decided in it."""

    def draw_context(self, rng: Random) -> dict[str, str]:
        """A label for each context variable."""

    def play(self, arm: ArmLike, context: Context, rng: Random) -> dict[str, str]:
        """A label for each observed variable; the same for the same seed, whatever came before."""

    def means(self, context: Context = None) -> NDArray[np.float64]:
        """The true mean reward of every arm in this context, net: `problem.payoff.net(gross)`."""

    def best_arm(self, context: Context = None) -> Intervention:
        """The first arm with the best net mean: the largest, or the smallest with `minimise`."""

    def regret(self, arm: ArmLike, context: Context = None) -> float:
        """How far the arm's mean is from the best one; never negative."""


def lack_of(world: object) -> str | None:
    """What keeps something from being a world at first sight, in words; None where nothing does.

    Whether it keeps its promises only `check_environment` can say.
    """
    if isinstance(world, type):
        return f"to be made first: {world.__name__}(…), not the class itself"
    if not isinstance(getattr(world, "problem", None), Problem):
        return "a Problem as its attribute problem"
    missing = (name for name in _METHODS if not callable(getattr(world, name, None)))
    return next((f"a method {name}" for name in missing), None)
