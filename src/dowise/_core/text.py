"""Data as JSON has it, which `as_dict` hands out, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from math import isinf, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST = 1e15  # that is written out


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


def number_from(value: Any) -> float:
    """The number that `plain` gave as JSON.

    >>> number_from(0.1), number_from("-inf"), number_from(None)
    (0.1, -inf, nan)
    """
    return float("nan") if value is None else float(value)


def numbers_from(values: Any) -> NDArray[np.float64]:
    """The same of an array, of any shape."""
    return np.array(values, dtype=np.float64)  # which reads None and "inf" so too


def _is_finite(array: Any) -> bool:
    return bool(np.isfinite(array).all())


def _odd(value: float) -> str | None:
    return None if isnan(value) else "inf" if value > 0 else "-inf"


def amount(value: float) -> str:
    """Three significant digits; tiny and huge numbers in scientific notation.

    >>> amount(2123.4), amount(0.01234), amount(0.00001234)
    ('2,120', '0.0123', '1.23e-05')
    """
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < _LARGEST else f"{rounded:.3g}"


def counted(number: int, thing: str) -> str:
    """So many of a thing.

    >>> counted(1, "arm"), counted(2000, "arm")
    ('1 arm', '2,000 arms')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
