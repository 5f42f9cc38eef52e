"""Roles, domains and labels of a problem's variables.

A domain is an ordered tuple of labels, which are text. An int matches its text, an integral float
matches that int, a bool matches 1 or 0 unless the domain has True or False, and None or NaN mean
that the value is missing. The same holds for their text: 12.0 matches the label 12, true matches
True.

>>> label_of("X", 1.0, ("0", "1")), label_of("X", True, ("False", "True"))
('1', 'True')
>>> label_of("X", "12.0", ("7", "12")), label_of("X", 12, ("7.0", "12.0"))
('12', '12.0')

Every variable has one role:

>>> from dowise.graph import CausalGraph
>>> graph = CausalGraph.parse("C -> X -> Y; U -> X; U -> Y; Z -> Y")
>>> roles_from_user(graph, "Y", context="C", manipulable="X", hidden="U")
Roles(reward='Y', context=('C',), non_manipulable=('Z',), hidden=('U',))

The domain of the reward defaults to the labels of `reward_values`, other domains to 0 and 1:

>>> graph = CausalGraph.parse("X -> Y")
>>> dict(domains_from_user(graph, "Y", {"X": ["low", "high"]}, {"bad": 0, "good": 1}))
{'X': ('low', 'high'), 'Y': ('bad', 'good')}
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from numbers import Integral, Real
from typing import Any, SupportsIndex

from dowise.errors import DowiseError, join_names, suggestion, type_name
from dowise.graph import CausalGraph

MISSING = -1  # code of a value that was not observed

_MANY = 100  # labels; a tuple of this size finds its last label in a microsecond
_PANDAS_MISSING = ("NAType", "NaTType")  # by name: pandas need not be installed


class _ManyLabels(tuple[str, ...]):
    """Domain of many labels with lookup in constant time."""

    @cached_property
    def _indices(self) -> dict[object, int]:
        return {label: index for index, label in enumerate(self)}

    def __contains__(self, label: object) -> bool:
        return label in self._indices

    def index(self, label: object, *bounds: SupportsIndex) -> int:
        """Return the index of a label."""
        simple = label in self and not bounds
        return self._indices[label] if simple else super().index(label, *bounds)


def as_mapping(value: object, name: str) -> Mapping[str, object]:
    """Return a mapping from variable to value; a pandas Series is converted, None is empty."""
    if type(value) is dict:  # the common case; isinstance with Mapping is slower
        return value
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "to_dict") and getattr(value, "ndim", 0) == 1:
        return dict(value.to_dict())
    raise DowiseError(
        f"{name} must map variables to values, such as {{'X': 1}}, not {type_name(value)}",
        code="invalid-type",
    )


def text_of(value: object) -> str | None:
    """Return the text of a value by the rules above, a bool as 1 or 0; None if missing."""
    if isinstance(value, str):
        return str(value)
    try:
        text = str(value)  # of a NumPy float32 this is the short form, "0.1"
    except ValueError:  # Python refuses to print thousands of digits
        raise DowiseError(
            "a number with thousands of digits is not a value", code="too-large"
        ) from None
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
    raise DowiseError(
        f"{value!r} is not a value: use a text, a number, a truth value or None",
        code="invalid-type",
    )


def label_of(variable: str, value: object, domain: tuple[str, ...]) -> str | None:
    """Return the label of `domain` that a value denotes, or None if the value is missing."""
    try:
        text = text_of(value)
    except DowiseError as error:
        raise DowiseError(f"{variable}: {error}", code=error.code) from None
    label = None if text is None else find_label(text, domain)
    if text is None or label is not None:
        return label
    raise DowiseError(
        f"{variable} has no value {text!r}{suggestion(text, domain)}: "
        f"its values are {join_names(domain)}",
        code="unknown-value",
    )


def find_label(text: str, domain: tuple[str, ...]) -> str | None:
    """Return the label of `domain` that a text denotes, or None if there is no such label."""
    if text in domain:
        return text
    # An Intervention made from a bool has no domain, so it has 1 or 0 as well.
    truth = {"1": "true", "0": "false"}.get(text, text.lower())
    whole = re.fullmatch(r"(-?\d+)(?:\.0*)?", text)
    spellings = [truth, truth.title(), truth.upper()] if truth in ("true", "false") else []
    spellings += [whole[1], f"{whole[1]}.0"] if whole else []
    return next((label for label in spellings if label in domain), None)


def check_domain(variable: str, labels: Iterable[object]) -> tuple[str, ...]:
    """Return the labels as text. There must be at least two, all different and not empty."""
    if isinstance(labels, str | Set | Mapping) or not isinstance(labels, Iterable):
        raise DowiseError(
            f"the domain of {variable} must be a list of labels in order, such as "
            f'["low", "high"], not {labels!r}',
            code="invalid-domain",
        )
    domain: dict[str, None] = {}  # in order
    for value in labels:
        try:
            is_bool = isinstance(value, bool) or type(value).__name__ == "bool"
            label = str(value) if is_bool else text_of(value)
        except DowiseError:
            raise DowiseError(
                f"the domain of {variable} has {value!r}, which is not a label: use str or numbers",
                code="invalid-domain",
            ) from None
        if not label:
            raise DowiseError(
                f"the domain of {variable} has an empty label: name every value",
                code="invalid-domain",
            )
        if label in domain:
            raise DowiseError(
                f"the domain of {variable} has the label {label!r} twice: keep one",
                code="duplicate-name",
            )
        domain[label] = None
    if len(domain) < 2:
        raise DowiseError(
            f"the domain of {variable} is {list(domain)}: a variable needs at least two values; "
            f"take {variable} out of the graph if it can't vary",
            code="invalid-domain",
        )
    return _ManyLabels(domain) if len(domain) > _MANY else tuple(domain)


Names = str | Iterable[str] | None

_WHEN = {  # why two roles exclude each other
    "context": "context is known before the choice",
    "non-manipulable": "non-manipulable variables after it",
    "manipulable": "manipulable variables are set by it",
    "hidden": "hidden variables are never observed or set",
}


@dataclass(frozen=True)
class Roles:
    """Roles of the variables, names sorted; variables without one of these roles can be set."""

    reward: str
    context: tuple[str, ...]
    non_manipulable: tuple[str, ...]
    hidden: tuple[str, ...]


def roles_from_user(
    graph: CausalGraph,
    reward: str,
    context: Names = (),
    non_manipulable: Names = (),
    manipulable: Names = None,
    hidden: Names = (),
) -> Roles:
    """Validate the roles; with `manipulable`, all other variables become non-manipulable."""
    known_variable(graph, reward, "reward")
    names = {
        "context": _names(graph, reward, "context", context),
        "non-manipulable": _names(graph, reward, "non-manipulable", non_manipulable),
        "manipulable": _names(graph, reward, "manipulable", manipulable),
        "hidden": _names(graph, reward, "hidden", hidden),
    }
    for late in sorted({*names["context"]} & graph.descendants(reward)):
        raise DowiseError(
            f"{late} can't be context: it is an effect of the reward {reward}, so it is not known "
            "before the choice; remove it from the context, or reverse the edge",
            code="invalid-context",
        )
    if manipulable is not None and names["non-manipulable"]:
        raise DowiseError(
            "pass either manipulable or non_manipulable, not both: each implies the other",
            code="conflicting-roles",
        )
    for first, second in combinations(names, 2):
        for name in sorted({*names[first]} & {*names[second]}):
            raise DowiseError(
                f"{name} can't be both {first} and {second}: {_WHEN[first]}, {_WHEN[second]}; "
                "keep it in one of the two",
                code="conflicting-roles",
            )
    if manipulable is not None:
        assigned = {reward, *names["context"], *names["hidden"], *names["manipulable"]}
        names["non-manipulable"] = tuple(name for name in graph if name not in assigned)
    return Roles(reward, names["context"], names["non-manipulable"], names["hidden"])


def known_variable(graph: CausalGraph, name: str, role: str, hidden: Container[object] = ()) -> str:
    """Return the name. Raises `DowiseError` if it is not in the graph; `role` names its use."""
    if isinstance(name, str) and name in graph:
        return name
    refuse_hidden(name, hidden)
    raise DowiseError(
        f"unknown {role} {name!r}{suggestion(str(name), graph.variables)}: "
        f"the graph's variables are {', '.join(graph.variables)}",
        code="unknown-variable",
    )


def refuse_hidden(name: object, hidden: Container[object], prefix: str = "") -> None:
    """Raise `DowiseError` if a variable is hidden, since it has no values to record or set."""
    if isinstance(name, str) and name in hidden:
        raise DowiseError(
            f"{prefix}{name} is declared hidden, so it is never recorded or set: "
            f"leave it out, or remove {name!r} from hidden",
            code="hidden-variable",
        )


def not_settable(name: str, role: str) -> str:
    """Return the message that a variable with this role can't be set."""
    return f"{name} can't be set: it is {'the reward' if role == 'reward' else role}".replace(
        "non_manipulable", "non-manipulable"
    )


def names_of(option: str, names: object) -> list[Any]:
    """Return a list of names; a str is a single name, None is empty."""
    if names is None or isinstance(names, str):
        return [] if names is None else [names]
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        raise DowiseError(
            f"{option}={names!r} must be a name or a list of names", code="invalid-type"
        )
    return list(names)


def _names(graph: CausalGraph, reward: str, role: str, value: Names) -> tuple[str, ...]:
    names = names_of(role.replace("-", "_"), value)
    for name in names:
        known_variable(graph, name, f"{role} variable")
        if name == reward:
            raise DowiseError(
                f"{name} can't be both reward and {role}: keep one role", code="conflicting-roles"
            )
    return tuple(sorted(set(names)))


DEFAULT_DOMAIN = ("0", "1")
"""Labels of a variable without a domain."""


def domains_from_user(
    drawn: CausalGraph,
    reward: str,
    domains: Mapping[str, Iterable[object]] | None,
    reward_values: object,
) -> dict[str, tuple[str, ...]]:
    """Return the labels of each variable of the graph, hidden ones included."""
    if domains is not None and not isinstance(domains, Mapping):
        raise DowiseError(
            f"domains must map names to lists of labels, not {domains!r}", code="invalid-type"
        )
    labels = dict(domains or {})
    for name in labels:
        known_variable(drawn, name, "variable in domains")
    if reward not in labels and isinstance(reward_values, Mapping):
        labels[reward] = _labels_of_reward(reward, reward_values)
    return {name: check_domain(name, labels.get(name, DEFAULT_DOMAIN)) for name in drawn}


def _labels_of_reward(reward: str, reward_values: Mapping[object, object]) -> tuple[str, ...]:
    """Return the labels of `reward_values`, unless one looks like a typo among 0 and 1."""
    labels = check_domain(reward, list(reward_values))
    unusual = [label for label in labels if label not in DEFAULT_DOMAIN]
    if unusual and len(unusual) < len(labels):
        raise DowiseError(
            f"reward_values has {', '.join(map(repr, unusual))} next to "
            f"{' and '.join(repr(label) for label in labels if label not in unusual)}, and "
            f"{reward} has no domain: correct the label, or add {reward} = {list(labels)} to "
            "domains",
            code="unknown-value",
        )
    return labels
