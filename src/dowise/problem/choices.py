"""What can be set, and which interventions are arms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.problem.forbidden import forbidden_in
from dowise.problem.intervention import Intervention
from dowise.problem.positions import Positions
from dowise.problem.values import label_of

__all__ = ["ArmLike", "Choices", "Role"]

ArmLike = Intervention | Mapping[str, object] | str
Role = Literal["reward", "context", "non_manipulable", "manipulable"]


class Choices(Positions):
    """The arms among all interventions on manipulable variables."""

    arms: tuple[Intervention, ...]
    forbidden: tuple[Intervention, ...]
    """The assignments that no arm may contain."""
    non_manipulable: tuple[str, ...]
    _fixed: dict[Intervention, NDArray[np.int64]]  # only of what was checked

    @cached_property
    def manipulable(self) -> tuple[str, ...]:
        """The variables that can be set, sorted by name."""
        others = {self.reward, *self.context, *self.non_manipulable}
        return tuple(name for name in self.graph.variables if name not in others)

    def role(self, name: str) -> Role:
        """The role of a variable."""
        self._known(name, "variable")
        if name == self.reward:
            return "reward"
        if name in self.context:
            return "context"
        return "non_manipulable" if name in self.non_manipulable else "manipulable"

    def intervention(self, arm: ArmLike) -> Intervention:
        """An intervention on manipulable variables, checked: an arm, a mapping or `do(X=1)`."""
        if isinstance(arm, Intervention) and arm in self.arm_positions:
            return arm
        return self._checked_intervention(arm)

    def _checked_intervention(self, arm: ArmLike) -> Intervention:
        settings: Mapping[str, object]
        if isinstance(arm, str):
            settings = Intervention.parse(arm)
        elif isinstance(arm, Mapping):
            settings = arm
        else:
            raise DowiseError(
                f"{arm!r} is not an intervention: give a mapping such as {{'X': 1}} or 'do(X=1)'"
            )
        labels: dict[str, object] = {}
        for name, value in settings.items():
            self._known(name, "variable")
            if name not in self.manipulable:
                role = self.role(name).replace("_", "-").replace("reward", "the reward")
                raise DowiseError(f"{name} can't be set: it is {role}")
            labels[name] = label_of(name, value, self.domains[name])
        return Intervention(labels)

    def arm_index(self, arm: ArmLike) -> int:
        """Where an arm stands in `arms`."""
        checked = self.intervention(arm)
        if checked not in self.arm_positions:
            raise DowiseError(self.not_an_arm(checked))
        return self.arm_positions[checked]

    def not_an_arm(self, arm: Intervention) -> str:
        """That an intervention is none of the arms, in words."""
        never = forbidden_in(arm, self.forbidden)
        if never is not None:
            return f"{arm} is forbidden" + (f": it contains {never}" if arm != never else "")
        return (
            f"{arm} is not one of the {len(self.arms)} arms of this problem; "
            "`dowise arms` lists them"
        )

    def fixed(self, arm: Intervention) -> NDArray[np.int64]:
        """For each variable the position of the value that the arm sets, MISSING where none.

        The arm must be one that `intervention` has checked.
        """
        found = self._fixed.get(arm)
        if found is None:
            found = np.array([self.code(name, arm.get(name)) for name in self.graph.variables])
            found.setflags(write=False)
            self._fixed[arm] = found
        return found

    @cached_property
    def arm_positions(self) -> Mapping[Intervention, int]:
        """Where each arm stands in `arms`; other interventions are not among them."""
        return {arm: i for i, arm in enumerate(self.arms)}
