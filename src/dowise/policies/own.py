"""Policies of one's own by "module:Class": a class, or a function that makes one from a problem.

A module is imported when the user asks for it, by such a name or by `import_policies`. A journal
may hold such a name too, and must not run code: it gets policies of modules that were asked for.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from dowise.errors import (
    FAILURES,
    DowiseError,
    OwnCodeError,
    described,
    kind_of,
    listed,
    suggestion,
)

__all__ = ["asked_for", "import_policies", "is_asked_for", "own_factory"]

_MODULES: dict[str, Any] = {}  # those that were asked for


def asked_for() -> tuple[str, ...]:
    """The names of the modules that were asked for, so that workers can have them too."""
    return tuple(_MODULES)


def is_asked_for(policy: str) -> bool:
    """Whether a name is "module:Class", of a module that was asked for."""
    module, colon, _ = policy.partition(":")
    return bool(colon) and module in _MODULES


def import_policies(module: str, asked_by: str = "") -> None:
    """Import a module that has policies of one's own, by its name as `import` has it.

    What it registers is known then (`register_policy`), and its classes and functions can be named
    as "module:Class". `asked_by` stands first in an error, such as "--policy-module mine".
    """
    refused = f"{asked_by or f'the module {module!r}'} can't be imported"
    remedy = "give its name as import does, my_policies"
    if module.endswith(".py"):
        remedy = f"give its name as import does, {module.removesuffix('.py').rpartition('/')[2]}"
    if not all(part.isidentifier() for part in module.split(".")):
        raise DowiseError(f"{refused}: {module!r} is no name of a module; {remedy}")
    importlib.invalidate_caches()
    try:
        _MODULES[module] = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise OwnCodeError(f"{refused}: {described(error)}") from error
        raise DowiseError(
            f"{refused}: there is no such module in this folder or where Python looks; {remedy}"
        ) from None
    except DowiseError as error:
        raise OwnCodeError(f"{refused}: {described(error)}") from error
    except FAILURES as error:
        raise OwnCodeError(f"{refused}: {described(error)}") from error


def own_factory(policy: str) -> Callable[..., Any]:
    """What "module:Class" names, of a module that was asked for."""
    name, _, inside = policy.partition(":")
    module = _MODULES[name]
    try:
        factory = attrgetter(inside)(module)
    except AttributeError:
        made_here = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        close = suggestion(inside, made_here)
        known = f": it has {listed(made_here)}" if made_here else ""
        lacking = f"has no {inside!r}" if inside else "has what? Say which class or function it is"
        raise DowiseError(f"the policy {policy!r}: {name} {lacking}{close}{known}") from None
    if not callable(factory) or not hasattr(factory, "__qualname__"):
        raise DowiseError(
            f"{policy} is {kind_of(factory)}, and no policy: name a class or a function that makes "
            "one from a problem (docs/own-policy.md)"
        )
    try:
        inspect.signature(factory)
    except (TypeError, ValueError):
        raise DowiseError(
            f"{policy} takes nobody knows what, so it is no policy: name a class or a function "
            "that makes one from a problem (docs/own-policy.md)"
        ) from None
    made: Callable[..., Any] = factory
    return made
