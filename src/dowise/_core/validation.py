"""Validation of arguments: numbers, flags, texts and keywords."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from math import inf, isfinite
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

import numpy as np

from dowise.errors import DowiseError, suggestion

Parameters = ParamSpec("Parameters")
ResultT = TypeVar("ResultT")


def check_integer(name: str, number: object, minimum: int, maximum: float = inf) -> int:
    """Return a whole number within limits as an int; NumPy integers are valid, bools are not.

    >>> check_integer("horizon", 0, minimum=1)
    Traceback (most recent call last):
    dowise.errors.DowiseError: horizon=0 must be a whole number, 1 or more
    """
    if type(number) is int and minimum <= number <= maximum:
        return number
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < minimum:
        raise DowiseError(
            f"{name}={number!r} must be a whole number, {minimum} or more", code="invalid-number"
        )
    if int(number) > maximum:
        raise DowiseError(f"{name}={number!r} must be at most {maximum:,}", code="invalid-number")
    return int(number)


def check_number(name: str, number: object, minimum: float = -inf) -> float:
    """Return a finite number of at least `minimum` as a float."""
    if isinstance(number, Real) and not isinstance(number, bool):
        value = float(number)
        if isfinite(value) and value >= minimum:
            return value
    limit = "" if minimum == -inf else f" of at least {minimum:g}"
    raise DowiseError(f"{name}={number!r} must be a number{limit}", code="invalid-number")


def check_fraction(name: str, number: object, example: float = 0.05) -> float:
    """Return a number strictly between 0 and 1 as a float."""
    if not isinstance(number, Real) or isinstance(number, bool) or not 0 < float(number) < 1:
        raise DowiseError(
            f"{name}={number!r} must be between 0 and 1, such as {example:g}", code="invalid-number"
        )
    return float(number)


def check_fraction_or_zero(name: str, number: object, example: float = 0.1) -> float:
    """Return a number that is at least 0 and below 1 as a float."""
    if not isinstance(number, Real) or isinstance(number, bool) or not 0 <= float(number) < 1:
        raise DowiseError(
            f"{name}={number!r} must be at least 0 and below 1, such as {example:g}",
            code="invalid-number",
        )
    return float(number)


def check_flag(name: str, value: object) -> bool:
    """Return a bool, also from NumPy; 0, 1 and texts are invalid."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise DowiseError(f"{name}={value!r} must be True or False", code="invalid-type")


def check_optional_text(name: str, value: object) -> str | None:
    """Return a str or None."""
    if value is None or isinstance(value, str):
        return value
    raise DowiseError(f"{name}={value!r} must be a str", code="invalid-type")


def suggest_keywords(function: Callable[Parameters, ResultT]) -> Callable[Parameters, ResultT]:
    """Decorate a function to suggest corrections of misspelt keywords; the signature is kept.

    >>> @suggest_keywords
    ... def paint(colour="red"): ...
    >>> paint(color="blue")
    Traceback (most recent call last):
    dowise.errors.DowiseError: unknown keyword 'color' (did you mean 'colour'?): there are colour
    """
    keywords = [name for name in signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(*positional: Parameters.args, **named: Parameters.kwargs) -> ResultT:
        for name in named:
            if name not in keywords:
                close = suggestion(name, keywords)
                raise DowiseError(
                    f"unknown keyword {name!r}{close}: there are {', '.join(keywords)}",
                    code="unknown-option",
                )
        return function(*positional, **named)

    return checked
