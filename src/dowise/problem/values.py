"""Values and domains: how what a user hands in becomes a label of a variable's domain.

A domain is an ordered tuple of labels, which are texts. An int is matched by its text, an integral
float as that int, a bool as 1 or 0 unless the domain says True or False, and None or NaN mean that
the value is missing. Their texts count like them: 12.0 stands for the label 12, true for True.

>>> label_of("X", 1.0, ("0", "1")), label_of("X", True, ("False", "True"))
('1', 'True')
>>> label_of("X", "12.0", ("7", "12")), label_of("X", 12, ("7.0", "12.0"))
('12', '12.0')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from numbers import Integral, Real
from typing import SupportsIndex

from dowise.errors import DowiseError, listed, suggestion

__all__ = ["MISSING", "as_mapping", "check_domain", "find_label", "label_of", "text_of"]

MISSING = -1  # the position of a value that was not seen

_MANY = 100  # labels of a domain; a tuple finds the last of so many in a microsecond
_PANDAS_MISSING = ("NAType", "NaTType")  # by name: pandas need not be there


class _ManyLabels(tuple[str, ...]):
    """A domain of many labels, which finds each at once."""

    @cached_property
    def _places(self) -> dict[object, int]:
        return {label: place for place, label in enumerate(self)}

    def __contains__(self, label: object) -> bool:
        return label in self._places

    def index(self, label: object, *bounds: SupportsIndex) -> int:
        """The position of a label."""
        simple = label in self and not bounds
        return self._places[label] if simple else super().index(label, *bounds)


def as_mapping(given: object, what: str) -> Mapping[str, object]:
    """A mapping from variable to value: also a pandas Series, such as a row of a table."""
    if type(given) is dict:  # most are, and asking for a Mapping takes longer
        return given
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    if hasattr(given, "to_dict") and getattr(given, "ndim", 0) == 1:
        return dict(given.to_dict())
    raise DowiseError(
        f"{what} must map variables to values, such as {{'X': 1}}; this is a {type(given).__name__}"
    )


def text_of(value: object) -> str | None:
    """The text of a value by the rules above, a bool as 1 or 0; None where it is missing."""
    if isinstance(value, str):
        return str(value)
    try:
        text = str(value)  # of a NumPy float32 this is its short form, "0.1"
    except ValueError:  # Python writes no number of thousands of digits
        raise DowiseError("a number of thousands of digits is no value") from None
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()  # a NumPy scalar
    if value is None or type(value).__name__ in _PANDAS_MISSING:
        return None
    if isinstance(value, bool | Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        if number != number:
            return None
        return str(int(number)) if number.is_integer() else text
    raise DowiseError(f"{value!r} is not a value: use a text, a number, a truth value or None")


def label_of(variable: str, value: object, domain: tuple[str, ...]) -> str | None:
    """The label of `domain` that a value stands for, or None where the value is missing."""
    try:
        label = text_of(value)
    except DowiseError as error:
        raise DowiseError(f"{variable}: {error}") from None
    own = None if label is None else find_label(label, domain)
    if label is None or own is not None:
        return own
    raise DowiseError(
        f"{variable} has no value {label!r}{suggestion(label, domain)}: "
        f"its values are {listed(domain)}"
    )


def find_label(text: str, domain: tuple[str, ...]) -> str | None:
    """The label of `domain` that a text stands for, or None where there is none."""
    if text in domain:
        return text
    # An Intervention made from a bool knows no domain and has 1 or 0 as well.
    truth = {"1": "true", "0": "false"}.get(text, text.lower())
    whole = re.fullmatch(r"(-?\d+)(?:\.0*)?", text)
    others = [truth, truth.title(), truth.upper()] if truth in ("true", "false") else []
    others += [whole[1], f"{whole[1]}.0"] if whole else []
    return next((own for own in others if own in domain), None)


def check_domain(variable: str, labels: Iterable[object]) -> tuple[str, ...]:
    """The labels as texts: at least two, all different, none empty."""
    if isinstance(labels, str | Set | Mapping) or not isinstance(labels, Iterable):
        raise DowiseError(
            f"the domain of {variable} must be a list of labels in order, such as "
            f'["low", "high"], not {labels!r}'
        )
    domain: dict[str, None] = {}  # in order
    for given in labels:
        try:
            is_bool = isinstance(given, bool) or type(given).__name__ == "bool"
            label = str(given) if is_bool else text_of(given)
        except DowiseError:
            raise DowiseError(
                f"the domain of {variable} has {given!r}, which is no label: use texts or numbers"
            ) from None
        if not label:
            raise DowiseError(f"the domain of {variable} has an empty label: name every value")
        if label in domain:
            raise DowiseError(f"the domain of {variable} has the label {label!r} twice: keep one")
        domain[label] = None
    if len(domain) < 2:
        raise DowiseError(
            f"the domain of {variable} is {list(domain)}: a variable needs at least two values; "
            f"take {variable} out of the graph if it can't vary"
        )
    return _ManyLabels(domain) if len(domain) > _MANY else tuple(domain)
