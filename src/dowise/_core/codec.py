"""Conversion of results to JSON data, and back.

`to_json` turns dataclasses, mappings and arrays into what `json.dumps` takes: infinity becomes the
text "inf" and NaN becomes null, since JSON has neither. `from_json` is its inverse for dataclasses,
guided by their annotations. `in_json` describes fields whose JSON differs from their value;
`json_extras` lists properties that the JSON document has in addition to the fields.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isinf, isnan
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

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
        return value.as_dict() if isinstance(value, JsonResult) else dataclass_to_json(value)
    if isinstance(value, Iterable):
        return [to_json(part) for part in value]
    return str(value)


def in_json(
    *,
    key: str | None = None,
    encode: Callable[[Any, Any], Any] | None = None,
    decode: Callable[[Any, Any], Any] | None = None,
    omit_none: bool = False,
    is_sent: bool = True,
) -> dict[str, Any]:
    """Return metadata for a field of a dataclass whose document differs from its value.

    Parameters
    ----------
    key
        The key in the document, if it is not the field's name.
    encode
        Takes the value and the whole result, and returns what is sent.
    decode
        Takes what was sent and the problem, and returns the value.
    omit_none
        True leaves the key out if the value is None.
    is_sent
        False leaves the key out; `decode` or a default then provides the value.
    """
    parts = {"key": key, "encode": encode, "decode": decode}
    return parts | {"omit_none": omit_none, "is_sent": is_sent}


class JsonResult:
    """Mixin of dataclasses that are sent as JSON documents."""

    json_extras: ClassVar[tuple[str, ...]] = ()
    """Properties and methods without arguments whose values are sent beside the fields."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document of the result."""
        return dataclass_to_json(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Any = None) -> Self:
        """Inverse of `as_dict`; results that know their problem need it.

        Raises `DowiseError` if the data do not describe such a result.
        """
        return from_json(cls, data, problem)


def dataclass_to_json(value: Any) -> dict[str, Any]:
    """Convert a dataclass field by field; `in_json` describes exceptions."""
    data = {}
    for part in fields(value):
        content, metadata = getattr(value, part.name), part.metadata
        is_omitted = metadata.get("omit_none", False) and content is None
        if not metadata.get("is_sent", True) or is_omitted:
            continue
        encode = metadata.get("encode")
        data[metadata.get("key") or part.name] = to_json(
            content if encode is None or content is None else encode(content, value)
        )
    for name in getattr(value, "json_extras", ()):
        content = getattr(value, name)
        data[name] = to_json(content() if callable(content) else content)
    return data


def from_json(cls: type[ResultT], data: Any, problem: Any = None) -> ResultT:
    """Inverse of `to_json` for dataclasses and what their annotations name.

    Raises `DowiseError` if a field is missing or has another type. `problem` is passed on to
    functions of `in_json`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Interval:
    ...     low: float
    ...     high: float
    >>> from_json(Interval, {"low": 0, "high": "inf"})
    Interval(low=0.0, high=inf)
    """
    try:
        if is_dataclass(cls):
            result: ResultT = _decode_dataclass(cls, data, problem)
        else:
            result = _decode(cls, data, problem)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DowiseError(
            f"the data do not describe a {cls.__name__}: {error}", code="malformed-data"
        ) from error
    return result


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


def _decode(annotation: Any, data: Any, problem: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if data is None and type(None) in arguments:
            return None
        (annotation,) = [part for part in arguments if part is not type(None)]
        return _decode(annotation, data, problem)
    if annotation is float:
        return float_from_json(data)
    if origin is np.ndarray:
        (dtype,) = get_args(arguments[1])
        return array_from_json(data) if dtype is np.float64 else np.array(data, dtype=dtype)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return tuple(_decode(arguments[0], part, problem) for part in data)
        pairs = zip(arguments, data, strict=True)
        return tuple(_decode(part, value, problem) for part, value in pairs)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _decode(arguments[1], value, problem) for key, value in data.items()}
    if origin is not None and issubclass(origin, Sequence):
        return [_decode(arguments[0], part, problem) for part in data]
    if isinstance(annotation, type) and issubclass(annotation, JsonResult):
        return annotation.from_dict(data, problem)
    if is_dataclass(annotation):
        return _decode_dataclass(annotation, data, problem)
    return data


def _decode_dataclass(cls: Any, data: Any, problem: Any) -> Any:
    hints, values = _hints(cls), {}
    for part in fields(cls):
        metadata, key = part.metadata, part.metadata.get("key") or part.name
        decode = metadata.get("decode")
        if not metadata.get("is_sent", True):
            if decode is not None:
                values[part.name] = decode(None, problem)
        elif key in data:
            content = data[key]
            values[part.name] = (
                _decode(hints[part.name], content, problem)
                if decode is None or content is None
                else decode(content, problem)
            )
        elif part.default is MISSING and part.default_factory is MISSING:
            raise KeyError(key)
    return cls(**values)


def _special_float(value: float) -> str | None:
    return None if isnan(value) else "inf" if value > 0 else "-inf"
