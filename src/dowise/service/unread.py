"""What is wrong with a request that can't be read, in words: the field, and what would be right.

>>> found = [{"type": "list_type", "loc": ("body", "allowed"), "msg": "Input should be a list"}]
>>> in_words(found)
'allowed must be a list, as in [1, 2]'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["in_words"]

Error = Mapping[str, Any]

_OBJECT = 'an object, as in {"name": "value"}'
_KINDS = {
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "list_type": "a list, as in [1, 2]",
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "none_required": "null",
}
"""What a value must be, by the kind of error."""
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "must be above {}"),
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than": ("lt", "must be below {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "string_too_long": ("max_length", "is too long: it may have {} characters"),
    "string_too_short": ("min_length", "is too short: it needs {} characters"),
    "too_long": ("max_length", "has too many entries: it may have {}"),
    "too_short": ("min_length", "has too few entries: it needs {}"),
    "literal_error": ("expected", "must be {}"),
}
_OTHERS: Mapping[str, str] = {
    "missing": "is lacking: give it",
    "extra_forbidden": "is no field here: correct its name or leave it out (/api/openapi.json "
    "lists all)",
}
# What tells the branches of a union apart, and is no part of what was sent.
_BRANCH = re.compile(
    r"str|int|float|bool|none|(dict|list|tuple|union|nullable)\[.*|(constrained|function|lax)-.*"
)


def in_words(errors: Iterable[Error]) -> str:
    """The first thing that is wrong; where several kinds of values would do, all of them."""
    found = [*errors]
    if not found:
        return "the request can't be read"
    # A value that fits one branch of a union half is told where it does not fit that one.
    field = _field(found[0])
    inside = [one for one in found if _field(one)[: len(field)] == field]
    deepest = max((_field(one) for one in inside), key=len)
    own = [one for one in inside if _field(one) == deepest]
    kinds = [*dict.fromkeys(_KINDS[one["type"]] for one in own if one["type"] in _KINDS)]
    name = _named(deepest, str(found[0]["loc"][0]))
    if len(kinds) == len({one["type"] for one in own}):
        return f"{name} must be {' or '.join(kinds)}"
    return _of_one(name, next(one for one in own if one["type"] not in _KINDS))


def _field(error: Error) -> tuple[str | int, ...]:
    """Where it is, as the sender wrote it."""
    _, *path = error["loc"]
    return tuple(part for part in path if isinstance(part, int) or not _BRANCH.fullmatch(part))


def _named(field: tuple[str | int, ...], part: str) -> str:
    """A field's name: "allowed[0].Dose"; that of the request's part, where it is all of that."""
    if not field:
        return f"the {part}"
    pieces = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in field)
    return "".join(pieces).removeprefix(".")


def _of_one(name: str, error: Error) -> str:
    kind, known = error["type"], error.get("ctx", {})
    if kind == "json_invalid":
        return f"the body is no JSON, by character {error['loc'][-1]}: {known['error'].lower()}"
    if kind == "value_error":
        return str(known["error"])
    if kind == "string_pattern_mismatch":  # ours list the texts that there are
        return f"{name} must be one of {known['pattern'].strip('^()$').replace('|', ', ')}"
    if kind in _LIMITS:
        what, words = _LIMITS[kind]
        limit = known[what]
        return f"{name} {words.format(limit if isinstance(limit, str) else f'{limit:,.16g}')}"
    words = _OTHERS.get(kind, "can't be read: /api/openapi.json says how it must be")
    return f"{name} {words}"
