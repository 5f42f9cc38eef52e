"""Array aliases and the base of immutable classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
Int32Array = NDArray[np.int32]  # registers and rows inside kernels
UInt64Array = NDArray[np.uint64]  # bit sets, and keys of counter-based random streams


class Frozen:
    """Base of immutable classes: `__init__` sets the attributes, then calls `_freeze`."""

    __slots__ = ("_is_frozen",)
    _is_frozen: bool

    def _freeze(self) -> None:
        object.__setattr__(self, "_is_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_is_frozen", False):
            raise AttributeError(f"{type(self).__name__} is immutable: create a new one")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: create a new one")
