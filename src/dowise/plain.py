"""Data as JSON has it: what `as_dict` hands out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from math import isinf, isnan
from typing import Any

import numpy as np

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, infinity as the text "inf", NaN as null.

    >>> plain({"regret": (0.5, float("inf")), "best": None})
    {'regret': [0.5, 'inf'], 'best': None}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if not isinf(value) and not isnan(value) else _odd(value)
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers
        listed = value.tolist()
        is_simple = value.dtype.kind in "iub" or (value.dtype.kind == "f" and _is_finite(value))
        return listed if is_simple else plain(listed)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Iterable):
        return [plain(part) for part in value]
    return str(value)


def _is_finite(array: Any) -> bool:
    return bool(np.isfinite(array).all())


def _odd(value: float) -> str | None:
    return None if isnan(value) else "inf" if value > 0 else "-inf"
