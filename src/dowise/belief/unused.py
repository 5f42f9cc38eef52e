"""What was seen and could not be used, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dowise.belief.dirichlet import Dirichlet
    from dowise.belief.mixture import Mixture

__all__ = ["lacking"]


def lacking(posterior: Dirichlet | Mixture) -> dict[str, dict[str, int]]:
    """How often a variable could not be counted, by what was lacking, "" where no arm needs it."""
    names = posterior.model.factors.variables
    return {
        name: {(*names, "")[u]: int(row[u]) for u in np.flatnonzero(row)}
        for name, row in zip(names, posterior.unused, strict=True)
        if row.any()
    }
