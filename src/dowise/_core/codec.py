"""JSON in both directions: plain data from results, and results from plain data.

`to_json` turns dataclasses, mappings and arrays into what `json.dumps` takes: infinity becomes the
text "inf" and NaN becomes null, since JSON has neither. `from_json` is its inverse for dataclasses,
guided by their annotations. A field whose key differs from its name says so in its metadata:
`field(metadata={"key": "from"})`. A class with methods `to_json` and `from_json` of its own is
asked for them.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isinf, isnan
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from dowise._core.types import FloatArray
from dowise.errors import DowiseError

ResultT = TypeVar("ResultT")


def to_json(value: Any) -> Any:
    """Convert a value to plain data: arrays to lists, infinity to "inf", NaN to None.

    >>> to_json({"regret": (0.5, float("inf")), "best": None})
    {'regret': [0.5, 'inf'], 'best': None}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if not isinf(value) and not isnan(value) else _special_float(value)
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        plain = value.tolist()
        kind = value.dtype.kind
        is_simple = kind in "iub" or (kind == "f" and bool(np.isfinite(value).all()))
        return plain if is_simple else to_json(plain)
    if isinstance(value, Mapping):
        return {str(name): to_json(part) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_json"):
            return value.to_json()
        return dataclass_to_json(value)
    if isinstance(value, Iterable):
        return [to_json(part) for part in value]
    return str(value)


def dataclass_to_json(value: Any) -> dict[str, Any]:
    """Convert a dataclass field by field, under the keys of its metadata."""
    return {
        field.metadata.get("key", field.name): to_json(getattr(value, field.name))
        for field in fields(value)
    }


def from_json(cls: type[ResultT], data: Any) -> ResultT:
    """Inverse of `to_json` for dataclasses and what their annotations name.

    Raises `DowiseError` if a field is missing or has another type.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Interval:
    ...     low: float
    ...     high: float
    >>> from_json(Interval, {"low": 0, "high": "inf"})
    Interval(low=0.0, high=inf)
    """
    try:
        return _decode(cls, data)  # type: ignore[no-any-return]
    except (KeyError, TypeError, ValueError) as error:
        raise DowiseError(
            f"the data do not describe a {cls.__name__}: {error}", code="malformed-data"
        ) from error


def float_from_json(value: Any) -> float:
    """Return the float that `to_json` encoded.

    >>> float_from_json(0.1), float_from_json("-inf"), float_from_json(None)
    (0.1, -inf, nan)
    """
    return float("nan") if value is None else float(value)


def array_from_json(values: Any) -> FloatArray:
    """Return the float array, of any shape, that `to_json` encoded."""
    return np.array(values, dtype=np.float64)  # reads None as NaN, and "inf"


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _decode(annotation: Any, data: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if data is None and type(None) in arguments:
            return None
        (annotation,) = [part for part in arguments if part is not type(None)]
        return _decode(annotation, data)
    if annotation is float:
        return float_from_json(data)
    if origin is np.ndarray:
        return array_from_json(data)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return tuple(_decode(arguments[0], part) for part in data)
        pairs = zip(arguments, data, strict=True)
        return tuple(_decode(part, value) for part, value in pairs)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _decode(arguments[1], value) for key, value in data.items()}
    if origin is not None and issubclass(origin, Sequence):
        return [_decode(arguments[0], part) for part in data]
    if hasattr(annotation, "from_json"):
        return annotation.from_json(data)
    if is_dataclass(annotation):
        return _decode_dataclass(annotation, data)
    return data


def _decode_dataclass(cls: Any, data: Any) -> Any:
    hints, values = _hints(cls), {}
    for field in fields(cls):
        key = field.metadata.get("key", field.name)
        if key in data:
            values[field.name] = _decode(hints[field.name], data[key])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise KeyError(key)
    return cls(**values)


def _special_float(value: float) -> str | None:
    return None if isnan(value) else "inf" if value > 0 else "-inf"
