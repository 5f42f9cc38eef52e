"""What was seen and could not be used, by name."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from dowise.errors import DowiseWarning
from dowise.plain import counted
from dowise.problem.domains import MISSING

if TYPE_CHECKING:
    from dowise.belief.dirichlet import Dirichlet
    from dowise.belief.mixture import Mixture
    from dowise.problem.record import RecordBatch

__all__ = ["lacking", "warn_of_no_reward"]


def lacking(posterior: Dirichlet | Mixture) -> dict[str, dict[str, int]]:
    """How often a variable could not be counted, by what was lacking, "" where no arm needs it."""
    names = posterior.model.factors.variables
    return {
        name: {(*names, "")[u]: int(row[u]) for u in np.flatnonzero(row)}
        for name, row in zip(names, posterior.unused, strict=True)
        if row.any()
    }


def warn_of_no_reward(records: RecordBatch, stacklevel: int = 3) -> None:
    """Say so where there are records and the reward was seen in none of them."""
    problem = records.problem
    if len(records) and (records.codes[problem.reward_position] == MISSING).all():
        warnings.warn(
            f"{counted(len(records), 'record')}, none with a value of the reward: they teach "
            f"nothing about {problem.reward}; its values belong in a column of that name",
            DowiseWarning,
            stacklevel=stacklevel,
        )
