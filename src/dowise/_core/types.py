"""Aliases of types. Importing this module loads NumPy; `dowise.graph` does without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
Int32Array = NDArray[np.int32]  # registers and rows inside kernels
UInt64Array = NDArray[np.uint64]  # bit sets, and keys of counter-based random streams

ShowProgress = Callable[[str, int, int], None]
"""Function of a label, the number of finished steps and the total."""
