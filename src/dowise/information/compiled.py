"""The kernels of this package, loaded when first needed; see `dowise.belief.compiled`."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np

from dowise.belief.compiled import announced

__all__ = ["kernels"]


@cache
def kernels() -> ModuleType:
    """`dowise.information.kernels`, compiled for the types that it is called with."""
    with announced():
        from dowise.information import kernels

        half, joint = np.full(2, 0.5), np.full((2, 2, 2), 0.25)
        for precision in (np.float32, np.float64):
            drawn = np.full((2, 1, 1), 0.5, precision)
            kernels.summarise(drawn, half, joint * 0, *np.empty((4, 2)))
        kernels.best_pair(half, half, 0.0)
        kernels.box_divergence(half, half, half, half)
        kernels.gain_bounds(joint, half, 0.1, 0.1, 0.1, *np.empty((2, 2)))
    return kernels
