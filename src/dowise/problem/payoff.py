"""What the values of the reward are worth: in the user's units, and on the scale of the bounds.

The paper's rewards are 0 and 1. Here the worst value is 0 and the best is 1 on the scale on which
policies compare arms and the bounds hold; what users see is in their own units. Where the reward is
something like a cost, smaller is better. Nobody but this class needs to know: whoever compares
means in the user's units asks it for the best of them, or for their regrets.

Arms may have costs. What counts is then the *net* reward, value less cost (or more, where smaller
is better), and nobody but this class takes costs off: `net` in the user's units, `net_scaled` on
the scale, where a net reward may be below 0. Kernels take `scaled_costs`.

>>> payoff = Payoff.of("Y", ("bad", "good"), {"bad": -10.0, "good": 30.0})
>>> payoff.scaled.tolist(), payoff.span, payoff.in_units(0.25)
([0.0, 1.0], 40.0, 0.0)
>>> deaths = Payoff.of("Y", ("0", "1", "2"), None, minimise=True)
>>> deaths.scaled.tolist(), deaths.best_of(means := np.array([0.5, 0.25])), deaths.regrets(means)
([1.0, 0.5, 0.0], 1, array([0.25, 0.  ]))
>>> dear = deaths.with_costs(np.array([0.0, 0.5]))
>>> dear.net(means), float(dear.net(0.25, 1)), dear.net_scaled(np.array([0.5, 0.75]))
(array([0.5 , 0.75]), 0.75, array([0.5 , 0.25]))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dowise.checks import true_or_false
from dowise.errors import DowiseError
from dowise.problem.values import label_of

__all__ = ["Payoff"]

Worth = TypeVar("Worth", float, NDArray[Any])


@dataclass(frozen=True, eq=False)
class Payoff:
    """What each value of the reward is worth, in the order of its domain."""

    values: NDArray[np.float64]
    """In the user's units."""
    minimise: bool = False
    """Whether smaller values are better."""
    costs: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """What each arm costs, in the user's units, never negative; of a problem one for each arm."""

    @classmethod
    def of(
        cls,
        reward: str,
        domain: tuple[str, ...],
        given: Mapping[str, float] | None,
        minimise: bool = False,
    ) -> Payoff:
        """From what the user gave for each label; without anything, the position in the domain."""
        minimise = true_or_false("minimise", minimise)
        if given is None:
            return cls(np.arange(len(domain)) / (len(domain) - 1), minimise)
        return cls(np.array(_checked(reward, domain, given)), minimise)

    def __post_init__(self) -> None:
        self.values.setflags(write=False)
        self.costs.setflags(write=False)

    def with_costs(self, costs: NDArray[np.float64]) -> Payoff:
        """The same where arms cost so much."""
        return replace(self, costs=np.array(costs, dtype=np.float64))

    @cached_property
    def has_costs(self) -> bool:
        """Whether some arm costs something."""
        return bool(self.costs.any())

    @cached_property
    def scaled_costs(self) -> NDArray[np.float64]:
        """What each arm costs, as a share of the span: so much less it is worth on the scale."""
        scaled: NDArray[np.float64] = self.costs / self.span
        scaled.setflags(write=False)
        return scaled

    def net(self, rewards: Worth, arms: Any = None) -> Worth:
        """Rewards in the user's units net of what the arms cost.

        Arms are the last axis: all of them, or those at these positions. With one position the
        rewards are all of that arm.
        """
        if not self.has_costs:
            return rewards
        costs: Any = self.costs if arms is None else self.costs[arms]
        net: Worth = rewards - self.turned(costs)
        return net

    def net_scaled(self, rewards: Worth, arms: Any = None) -> Worth:
        """The same on the scale on which the worst value is 0 and the best 1."""
        if not self.has_costs:
            return rewards
        costs: Any = self.scaled_costs if arms is None else self.scaled_costs[arms]
        net: Worth = rewards - costs
        return net

    def turned(self, worth: Worth) -> Worth:
        """What is in the user's units with a sign such that more is better; and the way back."""
        return 0.0 - worth if self.minimise else worth  # not −worth, which makes a −0 of a 0

    def best_of(self, means: NDArray[Any]) -> int:
        """The position of the best of some net means, in the user's units; the first of equals."""
        return int(self.turned(means).argmax())

    def regrets(self, means: NDArray[Any]) -> NDArray[Any]:
        """How far each net mean is from the best one: never negative. Arms are the last axis."""
        turned = self.turned(means)
        regrets: NDArray[Any] = turned.max(axis=-1, keepdims=True) - turned
        return regrets

    @property
    def worst(self) -> float:
        """The worst value: the largest where smaller is better."""
        return float(self.values.max() if self.minimise else self.values.min())

    @cached_property
    def span(self) -> float:
        """How far the best and worst values are apart: what a regret in [0, 1] is multiplied by."""
        return float(self.values.max()) - float(self.values.min())

    @property
    def largest_regret(self) -> float:
        """The most that the choice of an arm can cost, in the user's units."""
        return self.span + (float(np.ptp(self.costs)) if self.has_costs else 0.0)

    @cached_property
    def scaled(self) -> NDArray[np.float64]:
        """The values scaled so that the worst is 0 and the best 1."""
        scaled: NDArray[np.float64] = self.turned(self.values - self.worst) / self.span
        scaled.setflags(write=False)
        return scaled

    @cached_property
    def is_plain(self) -> bool:
        """Whether the values are 0 and 1, in this order: then a mean is a probability."""
        return bool(self.values.tolist() == [0.0, 1.0])

    def in_units(self, scaled: float) -> float:
        """A reward in [0, 1], or a net one, in the user's units."""
        return self.worst + self.turned(self.span * float(scaled))


def _checked(reward: str, domain: tuple[str, ...], given: Mapping[str, float]) -> list[float]:
    if not isinstance(given, Mapping):
        raise DowiseError(
            f"reward_values must map each label of {reward} to a number, not {given!r}"
        )
    worth: dict[str, float] = {}
    for key, value in given.items():
        label = label_of(reward, key, domain)
        if label is None or label in worth:
            raise DowiseError(f"reward_values names {key!r} more than once or not by a label")
        worth[label] = _finite(value, label)
    for label in domain:
        if label not in worth:
            raise DowiseError(f"reward_values has no number for {reward}={label}: add one")
    if len(set(worth.values())) == 1:
        raise DowiseError(
            f"every value of {reward} is worth the same: there is nothing to decide; "
            "give its labels different reward_values"
        )
    span, largest = max(worth.values()) - min(worth.values()), max(map(abs, worth.values()))
    if not math.isfinite(span) or span < 1e-9 * largest:
        raise DowiseError(
            f"the reward values of {reward} are too far from 0 for their differences to "
            "be told apart, or too far apart: shift or scale them"
        )
    return [worth[label] for label in domain]


def _finite(value: object, label: str) -> float:
    """A number of any kind, NumPy's among them, as a float."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    shown = str(value)[:40]
    raise DowiseError(f"the reward value of {label!r} must be a finite number, not {shown!r}")
