"""Policies of one's own on the command line: module:Class where one is named, --policy-module.

Their modules are looked for in the current folder first, as `python -m` does.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

__all__ = ["named_policies", "named_policy", "policy_module_option"]


def named_policy(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """A callback of options and arguments that name a policy: it imports one of the user's own."""
    if name is not None and ":" in name and not name.strip().startswith("do("):  # that is an arm
        from dowise.policies.registry import import_named

        look_here()
        import_named(name)
    return name


def named_policies(context: click.Context, option: click.Parameter, listed: str) -> dict[str, str]:
    """A callback for NAME,LABEL=NAME,…: the policies by their names in the race."""
    from dowise.errors import DowiseError

    policies: dict[str, str] = {}
    for part in (part.strip() for part in listed.split(",")):
        label, _, name = (x.strip() for x in part.rpartition("="))
        if label in policies or (not label and name in policies):
            raise DowiseError(f"two policies are called {label or name!r}: name each once")
        if name:
            named_policy(context, option, name)
            policies[label or name] = name
        elif part:
            raise DowiseError(f"--policies {part}: say which policy it is, {part}ids")
    return policies


def _import_all(_context: click.Context, _option: click.Parameter, modules: tuple[str]) -> Any:
    for module in modules:
        from dowise.policies.own import import_policies

        look_here()
        import_policies(module, f"--policy-module {module}")


def look_here() -> None:
    """Let modules of the current folder be imported, here and in worker processes."""
    with suppress(OSError):  # the folder may be gone
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.insert(0, here)


policy_module_option = click.option(
    "--policy-module", multiple=True, metavar="MODULE", expose_value=False, callback=_import_all,
    help="Import a Python module that has policies of your own.",
)  # fmt: skip
