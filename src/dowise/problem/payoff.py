"""Values of the reward and costs of arms, in the user's units and on the scale of the bounds.

The paper's rewards are 0 and 1. Here the worst value is 0 and the best is 1 on the scale on which
policies compare arms and the bounds hold; users see their own units. If the reward is something
like a cost, smaller is better. Only `Payoff` knows that: code that compares means in the user's
units asks it for the best of them, or for their regrets.

Arms may have costs. Then the *net* reward counts, the value minus the cost (plus the cost if
smaller is better), and only `Payoff` subtracts costs: `net` in the user's units, `net_scaled` on
the scale, where a net reward may be below 0. Kernels take `scaled_costs`.

>>> payoff = Payoff.from_user("Y", ("bad", "good"), {"bad": -10.0, "good": 30.0})
>>> payoff.scaled.tolist(), payoff.span, payoff.unscale(0.25)
([0.0, 1.0], 40.0, 0.0)
>>> deaths = Payoff.from_user("Y", ("0", "1", "2"), None, minimise=True)
>>> deaths.scaled.tolist(), deaths.best_of(means := np.array([0.5, 0.25])), deaths.regrets(means)
([1.0, 0.5, 0.0], 1, array([0.25, 0.  ]))
>>> costly = deaths.with_costs(np.array([0.0, 0.5]))
>>> costly.net(means), float(costly.net(0.25, 1)), costly.net_scaled(np.array([0.5, 0.75]))
(array([0.5 , 0.75]), 0.75, array([0.5 , 0.25]))

The cost of a variable counts whenever an arm sets it to any value. The cost of an arm,
specified by its text, replaces that sum for exactly this arm.

>>> single, both = Intervention({"X": 1}), Intervention({"X": 1, "Z": 0})
>>> costs = Costs({"X": 0.5, "Z": 0.25}, {single: 2.0})
>>> costs.of(both), costs.of(single), costs.of(Intervention()), dict(costs)
(0.75, 2.0, 0.0, {'X': 0.5, 'Z': 0.25, 'do(X=1)': 2.0})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dowise._core.types import AnyArray, FloatArray
from dowise._core.validation import check_flag
from dowise.errors import DowiseError, join_names, suggestion
from dowise.graph.pomis import is_minimal
from dowise.problem.arms import find_forbidden, settable_arm
from dowise.problem.domains import label_of, not_settable, refuse_hidden
from dowise.problem.intervention import Intervention

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

Worth = TypeVar("Worth", float, AnyArray)


@dataclass(frozen=True, eq=False)
class Payoff:
    """Worth of each reward value, in the order of the domain, and costs of the arms."""

    values: FloatArray
    """Value of each label, in the user's units."""
    minimise: bool = False
    """True if smaller values are better."""
    costs: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Cost of each arm, in the user's units, never negative; empty without a problem."""

    @classmethod
    def from_user(
        cls,
        reward: str,
        domain: tuple[str, ...],
        values: Mapping[str, float] | None,
        minimise: bool = False,
    ) -> Payoff:
        """Build from numbers by label; by default, the index in the domain."""
        minimise = check_flag("minimise", minimise)
        if values is None:
            return cls(np.arange(len(domain)) / (len(domain) - 1), minimise)
        return cls(np.array(_values_from_user(reward, domain, values)), minimise)

    def __post_init__(self) -> None:
        self.values.setflags(write=False)
        self.costs.setflags(write=False)

    def with_costs(self, costs: FloatArray) -> Payoff:
        """Return a payoff with these costs of the arms."""
        return replace(self, costs=np.array(costs, dtype=np.float64))

    @cached_property
    def has_costs(self) -> bool:
        """True if some arm has a cost."""
        return bool(self.costs.any())

    @cached_property
    def scaled_costs(self) -> FloatArray:
        """Cost of each arm as a share of the span, which is subtracted on the scale."""
        scaled: FloatArray = self.costs / self.span
        scaled.setflags(write=False)
        return scaled

    def net(self, rewards: Worth, arms: Any = None) -> Worth:
        """Return rewards in the user's units minus the costs of their arms.

        Arms are the last axis: all of them, or those at these positions. If `arms` is a single
        position, all rewards are of that arm.
        """
        if not self.has_costs:
            return rewards
        costs: Any = self.costs if arms is None else self.costs[arms]
        net: Worth = rewards - self.oriented(costs)
        return net

    def net_scaled(self, rewards: Worth, arms: Any = None) -> Worth:
        """Return net rewards on the scale on which the worst value is 0 and the best 1."""
        if not self.has_costs:
            return rewards
        costs: Any = self.scaled_costs if arms is None else self.scaled_costs[arms]
        net: Worth = rewards - costs
        return net

    def oriented(self, worth: Worth) -> Worth:
        """Return values with the sign for which more is better. It is its own inverse."""
        return 0.0 - worth if self.minimise else worth  # not −worth, which makes a −0 of a 0

    def best_of(self, means: AnyArray) -> int:
        """Return the index of the best net mean; ties go to the first."""
        return int(self.oriented(means).argmax())

    def regrets(self, means: AnyArray) -> AnyArray:
        """Return the distance of each net mean from the best one. Arms are the last axis."""
        oriented = self.oriented(means)
        regrets: AnyArray = oriented.max(axis=-1, keepdims=True) - oriented
        return regrets

    @property
    def worst(self) -> float:
        """Worst value: the largest if the reward is minimised."""
        return float(self.values.max() if self.minimise else self.values.min())

    @cached_property
    def span(self) -> float:
        """Distance between the best and the worst value: the unit of regrets in [0, 1]."""
        return float(self.values.max()) - float(self.values.min())

    @property
    def largest_regret(self) -> float:
        """Largest possible regret of one choice, in the user's units."""
        return self.span + (float(np.ptp(self.costs)) if self.has_costs else 0.0)

    @cached_property
    def scaled(self) -> FloatArray:
        """Values scaled so that the worst is 0 and the best 1."""
        scaled: FloatArray = self.oriented(self.values - self.worst) / self.span
        scaled.setflags(write=False)
        return scaled

    @cached_property
    def is_plain(self) -> bool:
        """True if the values are 0 and 1, in this order: then a mean is a probability."""
        return bool(self.values.tolist() == [0.0, 1.0])

    def unscale(self, scaled: float) -> float:
        """Return a scaled reward, gross or net, in the user's units."""
        return self.worst + self.oriented(self.span * float(scaled))


def _values_from_user(
    reward: str, domain: tuple[str, ...], values: Mapping[str, float]
) -> list[float]:
    """Return the value of each label in the order of the domain."""
    if not isinstance(values, Mapping):
        raise DowiseError(
            f"reward_values must map each label of {reward} to a number, not {values!r}",
            code="invalid-type",
        )
    worth: dict[str, float] = {}
    for key, value in values.items():
        label = label_of(reward, key, domain)
        if label is None or label in worth:
            raise DowiseError(
                f"reward_values names {key!r} more than once or not by a label",
                code="duplicate-name",
            )
        worth[label] = _finite(f"reward value of {label!r}", value)
    for label in domain:
        if label not in worth:
            raise DowiseError(
                f"reward_values has no number for {reward}={label}: add one", code="missing-value"
            )
    if len(set(worth.values())) == 1:
        raise DowiseError(
            f"every value of {reward} is worth the same: there is nothing to decide; "
            "use different reward_values",
            code="constant-reward",
        )
    span, largest = max(worth.values()) - min(worth.values()), max(map(abs, worth.values()))
    if not isfinite(span) or span < 1e-9 * largest:
        raise DowiseError(
            f"the reward values of {reward} are too far from 0 for their differences to "
            "be told apart, or too far apart: shift or scale them",
            code="invalid-number",
        )
    return [worth[label] for label in domain]


def _finite(name: str, value: object) -> float:
    """Return a finite number of any type, such as those of NumPy, as a float."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = inf
        if isfinite(number):
            return number
    raise DowiseError(
        f"the {name} must be a finite number, not {str(value)[:40]!r}", code="invalid-number"
    )


# Rewards have about sixteen digits: next to a larger cost too few of them would be left.
_MAX_SPANS = 1e6


class Costs(Mapping[str, float]):
    """Costs of variables and of arms; as a mapping, numbers by the user's texts."""

    def __init__(self, variables: Mapping[str, float], arms: Mapping[Intervention, float]) -> None:
        self.variables = dict(sorted(variables.items()))
        self.arms = dict(sorted(arms.items(), key=lambda item: (len(item[0]), str(item[0]))))
        self._texts = {**self.variables, **{str(arm): cost for arm, cost in self.arms.items()}}

    def of(self, arm: Intervention) -> float:
        """Return the cost of an intervention."""
        return self.arms[arm] if arm in self.arms else self.of_variables(arm)

    def of_variables(self, arm: Mapping[str, str]) -> float:
        """Return the sum of the costs of the variables that an intervention sets."""
        return fsum(self.variables.get(name, 0.0) for name in arm)

    def __getitem__(self, text: str) -> float:
        return self._texts[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"Costs({self._texts!r})"


def costs_from_user(
    user_costs: Any, problem: Problem, check: Callable[[Any], Intervention]
) -> Costs:
    """Return validated costs; `check` validates an arm. Costs that are all 0 count as none."""
    if user_costs is None:
        return Costs({}, {})
    if not isinstance(user_costs, Mapping):
        raise DowiseError(
            f"costs={str(user_costs)[:80]} must map variables or arms to costs, such as "
            "{'X': 0.1, 'do(Z=1)': 0.3}",
            code="invalid-type",
        )
    variables: dict[str, float] = {}
    arms: dict[Intervention, float] = {}
    for key, cost in user_costs.items():
        is_text = isinstance(key, str)
        if is_text and (key in problem.drawn or not key.lstrip().startswith("do(")):
            variables[_settable(key, problem)] = _amount(key, cost)
            continue
        arm = settable_arm("costs", key, check)
        if arm in arms:
            raise DowiseError(
                f"costs has {arm} more than once: keep one cost per arm", code="duplicate-name"
            )
        arms[arm] = _amount(str(arm), cost)
    is_free = not any(variables.values()) and not any(arms.values())
    return Costs({}, {}) if is_free else Costs(variables, arms)


def _settable(name: str, problem: Problem) -> str:
    refuse_hidden(name, problem.hidden, "costs: ")
    if name not in problem.graph:
        raise DowiseError(
            f"costs: unknown variable {name!r}{suggestion(name, problem.manipulable)}: name a "
            f"manipulable variable ({join_names(problem.manipulable) or 'there are none'}) or an "
            "arm such as 'do(X=1)'",
            code="unknown-variable",
        )
    if name not in problem.manipulable:
        raise DowiseError(
            f"costs: {not_settable(name, problem.role(name))}; name what arms could set",
            code="not-manipulable",
        )
    return name


def _amount(name: str, cost: object) -> float:
    number = _finite(f"cost of {name}", cost)
    if number < 0:
        raise DowiseError(
            f"the cost of {name} is {number:g}: costs are 0 or more, also if the reward is "
            "minimised; put other gains of an arm into the reward",
            code="invalid-number",
        )
    return abs(number)  # −0.0 is 0.0


def arm_costs(problem: Problem) -> FloatArray:
    """Return the cost of each arm of a problem."""
    costs, span = problem.costs, problem.payoff.span
    if not costs:
        return np.zeros(len(problem.arms))
    for arm in costs.arms:
        if arm not in problem.arm_positions:
            is_forbidden = find_forbidden(arm, problem.forbidden) is not None
            remedy = "only arms have costs" if is_forbidden else "arms = 'all' has every one"
            raise DowiseError(f"costs: {problem.not_an_arm(arm)}; {remedy}", code="unknown-arm")
    costs_of_arms = np.array([costs.of(arm) for arm in problem.arms])
    i = int(costs_of_arms.argmax())
    if not costs_of_arms[i] <= _MAX_SPANS * span:
        raise DowiseError(
            f"{problem.arms[i]} costs {costs_of_arms[i]:g}, more than {_MAX_SPANS:g} times the "
            f"difference between the best and the worst value of {problem.reward}, {span:g}: "
            "forbid such arms, or scale the costs",
            code="invalid-number",
        )
    return costs_of_arms


def cheaper_equivalent(problem: Problem) -> tuple[Intervention, Intervention] | None:
    """Return a cheaper intervention with the same effect as an arm with its own cost, or None.

    If an arm also sets a variable without an effect, it becomes another intervention, whose cost is
    the sum over its variables. If no single variable makes that cheaper than the arm's own cost, no
    set of variables does (docs/problems.md), so the minimal sets include a best arm.
    """
    graph, costs = problem.projection(problem.possible), problem.costs
    for arm, cost in costs.arms.items():
        base = costs.of_variables(arm)
        for name in problem.manipulable:
            if name in arm or base + costs.variables.get(name, 0.0) >= cost:
                continue
            if is_minimal(graph, problem.reward, [*arm, name]):
                continue
            for label in problem.domains[name]:
                wider = Intervention({**arm, name: label})
                if find_forbidden(wider, problem.forbidden) is None:
                    return arm, wider
    return None
