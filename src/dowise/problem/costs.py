"""What arms cost, in the reward's units: by the variables that they set, or by the arm.

A variable's cost counts whenever an arm sets it, whatever the value. The cost of an arm, given by
its text, takes the place of that sum, for exactly this arm.

>>> both, one = Intervention({"X": 1, "Z": 0}), Intervention({"X": 1})
>>> costs = Costs({"X": 0.5, "Z": 0.25}, {one: 2.0})
>>> costs.of(both), costs.of(one), costs.of(Intervention()), dict(costs)
(0.75, 2.0, 0.0, {'X': 0.5, 'Z': 0.25, 'do(X=1)': 2.0})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import fsum, inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, listed, suggestion
from dowise.graph.minimal import is_minimal
from dowise.problem.forbidden import forbidden_in
from dowise.problem.intervention import Intervention
from dowise.problem.roles import refuse_hidden

if TYPE_CHECKING:
    from dowise.problem.problem import Problem

__all__ = ["Costs", "cheaper_way", "checked_costs", "prices"]

# Rewards are told apart to some sixteen digits: beside a larger cost too few would be left.
_MOST_SPANS = 1e6


class Costs(Mapping[str, float]):
    """By variable, and by arm; as a mapping, texts to numbers, as they were given."""

    def __init__(self, variables: Mapping[str, float], arms: Mapping[Intervention, float]) -> None:
        self.variables = dict(sorted(variables.items()))
        self.arms = dict(sorted(arms.items(), key=lambda item: (len(item[0]), str(item[0]))))
        self._texts = {**self.variables, **{str(arm): cost for arm, cost in self.arms.items()}}

    def of(self, arm: Intervention) -> float:
        """What an intervention costs."""
        return self.arms[arm] if arm in self.arms else self.of_variables(arm)

    def of_variables(self, arm: Mapping[str, str]) -> float:
        """The sum of what its variables cost."""
        return fsum(self.variables.get(name, 0.0) for name in arm)

    def __getitem__(self, text: str) -> float:
        return self._texts[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"Costs({self._texts!r})"


def checked_costs(given: Any, problem: Problem, check: Callable[[Any], Intervention]) -> Costs:
    """What was given, by name; `check` reads an arm. Costs that are all 0 are the same as none."""
    if given is None:
        return Costs({}, {})
    if not isinstance(given, Mapping):
        raise DowiseError(
            f"costs={str(given)[:80]}: say what variables or arms cost, such as "
            "{'X': 0.1, 'do(Z=1)': 0.3}"
        )
    variables: dict[str, float] = {}
    arms: dict[Intervention, float] = {}
    for key, cost in given.items():
        is_text = isinstance(key, str)
        if is_text and (key in problem.drawn or not key.lstrip().startswith("do(")):
            variables[_settable(key, problem)] = _amount(key, cost)
            continue
        try:
            arm = check(key)
        except DowiseError as error:
            raise DowiseError(f"costs: {error}; name what arms could set") from None
        if arm in arms:
            raise DowiseError(f"costs has {arm} more than once: give each arm one cost")
        arms[arm] = _amount(str(arm), cost)
    is_free = not any(variables.values()) and not any(arms.values())
    return Costs({}, {}) if is_free else Costs(variables, arms)


def _settable(name: str, problem: Problem) -> str:
    refuse_hidden(name, problem.hidden, "costs: ")
    if name not in problem.graph:
        raise DowiseError(
            f"costs: unknown variable {name!r}{suggestion(name, problem.manipulable)}: what can be "
            f"set is {listed(problem.manipulable) or 'nothing'}; an arm reads 'do(X=1)'"
        )
    if name not in problem.manipulable:
        role = problem.role(name).replace("_", "-").replace("reward", "the reward")
        raise DowiseError(f"costs: {name} can't be set: it is {role}; name what arms could set")
    return name


def _amount(what: str, cost: object) -> float:
    """A number of any kind, NumPy's among them, as a float."""
    number = inf
    if isinstance(cost, Real) and not isinstance(cost, bool):
        try:
            number = float(cost)
        except OverflowError:
            number = inf
    if not isfinite(number):
        raise DowiseError(f"the cost of {what} must be a finite number, not {str(cost)[:40]!r}")
    if number < 0:
        raise DowiseError(
            f"the cost of {what} is {number:g}: costs are 0 or more, also where the reward is to "
            "be minimised; what arms bring besides belongs into the reward"
        )
    return abs(number)  # −0.0 is 0.0


def prices(problem: Problem) -> NDArray[np.float64]:
    """What each of the problem's arms costs."""
    costs, span = problem.costs, problem.payoff.span
    if not costs:
        return np.zeros(len(problem.arms))
    places = problem.arm_positions
    for arm in costs.arms:
        if arm not in places:
            is_never = forbidden_in(arm, problem.forbidden) is not None
            how = "; what is no arm has no cost" if is_never else "; arms = 'all' has every one"
            raise DowiseError(f"costs: {problem.not_an_arm(arm)}{how}")
    found = np.array([costs.of(arm) for arm in problem.arms])
    dearest = int(found.argmax())
    if not found[dearest] <= _MOST_SPANS * span:
        raise DowiseError(
            f"{problem.arms[dearest]} costs {found[dearest]:g}, more than {_MOST_SPANS:g} times "
            f"what the best value of {problem.reward} has over the worst, {span:g}: rule such arms "
            "out with forbidden, or scale the costs"
        )
    return found


def cheaper_way(problem: Problem) -> tuple[Intervention, Intervention] | None:
    """An arm with a cost of its own, and what is no arm, does the same, and costs less; or None.

    Setting a variable without an effect as well makes another intervention of an arm, whose cost is
    that of its variables. Where no single variable does that for less than the arm's own cost, no
    set of them does (docs/problems.md): so minimal sets have a best arm.
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
                if forbidden_in(wider, problem.forbidden) is None:
                    return arm, wider
    return None
