"""Values and domains: how what a user hands in becomes a label of a variable's domain.

A domain is an ordered tuple of labels, which are texts. An int is matched by its text, an integral
float as that int, a bool as 1 or 0 unless the domain says True or False, and None or NaN mean that
the value is missing.

>>> label_of("X", 1.0, ("0", "1")), label_of("X", True, ("False", "True"))
('1', 'True')
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real

from dowise.errors import DowiseError, suggestion

__all__ = ["check_domain", "label_of", "text_of"]


def text_of(value: object, domain: tuple[str, ...] = ()) -> str | None:
    """The text of a value by the rules above, or None where the value is missing."""
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()  # a NumPy scalar
    if value is None:
        return None
    if isinstance(value, bool):
        says = {label.lower(): label for label in domain}
        return says.get(str(value).lower(), str(int(value)))
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        if number != number:
            return None
        return str(int(number)) if number.is_integer() else str(value)
    raise DowiseError(f"{value!r} is not a value: use a text, a number, a truth value or None")


def label_of(variable: str, value: object, domain: tuple[str, ...]) -> str | None:
    """The label of `domain` that a value stands for, or None where the value is missing."""
    label = text_of(value, domain)
    if label is not None and label not in domain:
        raise DowiseError(
            f"{variable} has no value {label!r}{suggestion(label, domain)}: "
            f"its values are {', '.join(domain)}"
        )
    return label


def check_domain(variable: str, labels: Iterable[object]) -> tuple[str, ...]:
    """The labels as texts: at least two, all different, none empty."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise DowiseError(
            f"the domain of {variable} must be a list of labels such as "
            f'["low", "high"], not {labels!r}'
        )
    domain: list[str] = []
    for given in labels:
        label = str(given) if isinstance(given, bool) else text_of(given)
        if not label:
            raise DowiseError(f"the domain of {variable} has an empty label: name every value")
        if label in domain:
            raise DowiseError(f"the domain of {variable} has the label {label!r} twice")
        domain.append(label)
    if len(domain) < 2:
        raise DowiseError(
            f"the domain of {variable} is {domain}: a variable needs at least two values; "
            f"take {variable} out of the graph if it can't vary"
        )
    return tuple(domain)
