"""NAME=VALUE on the command line: what was seen, the context, options."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Collection, Iterable
from typing import Any

from dowise.cli.store import as_typed
from dowise.errors import DowiseError, listed, suggestion
from dowise.graph.edges import bare_text, quoted

__all__ = ["context_of", "options_by_policy", "options_of", "typed_pair", "values_of"]

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PAIR = re.compile(rf"\s*({_QUOTED}|[^=\"]+?)\s*=\s*({_QUOTED}|.*?)\s*", re.DOTALL)


def values_of(pairs: Iterable[str], example: str = "Y=1") -> dict[str, str | None]:
    """The values by name; a name without one, `Z=`, has None: missing for good.

    >>> values_of(["Z=", "Y=1", '"a = b"="c d"'])
    {'Z': None, 'Y': '1', 'a = b': 'c d'}
    """
    values: dict[str, str | None] = {}
    typed = list(pairs)
    for i, text in enumerate(typed):
        name, value = _split(text, example, _typed_apart(typed, i))
        if name in values:
            raise DowiseError(f"{text!r}: {name} is given twice")
        values[name] = _unquoted(value) or None
    return values


def context_of(pairs: Iterable[str], names: Iterable[str]) -> dict[str, str | None]:
    """What is seen before the choice: a value of each of these variables."""
    seen, names = values_of(pairs, "-c C=1"), tuple(names)
    lacking = [name for name in names if seen.get(name) is None]
    if lacking and {*seen} <= {*names}:  # a name that is misspelt is told otherwise
        words = " ".join(f"-c {as_typed(typed_pair(name, '…'))}" for name in lacking)
        raise DowiseError(
            f"the context has no value for {listed(lacking)}: say what is seen before the choice, "
            f"{words}"
        )
    return seen


def options_of(pairs: Iterable[str]) -> dict[str, Any]:
    """Options by name: numbers, true, false and lists as TOML has them, else texts.

    >>> options_of(["samples=1000", "interval=optimistic"])
    {'samples': 1000, 'interval': 'optimistic'}
    """
    options: dict[str, Any] = {}
    for text in pairs:
        name, value = _split(text, "samples=1000")
        if name in options:
            raise DowiseError(f"{text!r}: the option {name} is given twice")
        if not value:
            raise DowiseError(f"{text!r}: say what {name} is, such as samples=1000")
        options[name] = _toml_value(value)
    return options


def options_by_policy(pairs: Iterable[str], policies: Collection[str]) -> dict[str, dict[str, Any]]:
    """Options of several policies: POLICY.NAME=VALUE, by the names of the policies.

    >>> options_by_policy(["ids.samples=500", "my.own:Class.explore=0.1"], ["ids", "my.own:Class"])
    {'ids': {'samples': 500}, 'my.own:Class': {'explore': 0.1}}
    """
    found: dict[str, list[str]] = {}
    for text in pairs:
        name, _, value = text.partition("=")
        policy, dot, option = name.strip().rpartition(".")
        if not (dot and policy and option):
            raise DowiseError(
                f"--option {text}: say whose option it is, such as {next(iter(policies), 'ids')}."
                f"{option or 'samples'}={value or 1000}"
            )
        if policy not in policies:
            raise DowiseError(
                f"--option {text}: {policy!r} is not among the policies"
                f"{suggestion(policy, policies)}: they are {', '.join(policies)}"
            )
        if not value.strip():
            raise DowiseError(f"--option {text}: say what {option} is, such as {name}=1000")
        found.setdefault(policy, []).append(f"{option}={value}")
    return {policy: options_of(own) for policy, own in found.items()}


def typed_pair(name: str, value: str) -> str:
    """The text that `values_of` reads back, not yet quoted for a shell."""
    plain = '"' not in name and "=" not in name and name == name.strip()
    return f"{name if plain else quoted(name)}={value}"


def _split(text: str, example: str, whole: str = "Length of stay=short") -> tuple[str, str]:
    found = _PAIR.fullmatch(text)
    if found is None:
        raise DowiseError(
            f"{text!r} is not NAME=VALUE, such as {example}; a pair with spaces in it goes in "
            f"quotes, {shlex.quote(whole)}, and a name with = in it in double quotes inside of them"
        )
    return bare_text(found[1]), found[2]


def _typed_apart(words: list[str], place: int) -> str:
    """The pair that a word without = seems to be part of, if a shell took it apart.

    >>> _typed_apart(["Length", "of", "stay=short", "Pain=no"], 1)
    'Length of stay=short'
    >>> _typed_apart(["Pain=no", "Stay=very", "long"], 2)
    'Stay=very long'
    """
    pairs = [i for i, word in enumerate(words) if "=" in word]
    later = next((i for i in pairs if i >= place), None)
    if later is not None:
        first = max((i + 1 for i in pairs if i < later), default=0)
        return " ".join(words[first : later + 1])
    return " ".join(words[pairs[-1] :]) if pairs else "Length of stay=short"


def _unquoted(value: str) -> str:
    return bare_text(value) if re.fullmatch(_QUOTED, value, re.DOTALL) else value


def _toml_value(text: str) -> Any:
    try:
        page = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    is_plain = [*page] == ["value"] and isinstance(page["value"], str | int | float | list | dict)
    return page["value"] if is_plain else text
