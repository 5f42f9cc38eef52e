"""Verbs and arguments as they are typed, in what an experiment says."""

from __future__ import annotations

import re

import click

__all__ = ["spelled"]


def spelled(said: str) -> str:
    """What is said for the command that runs: `amend` is dowise amend, `skip_bad` --skip-bad.

    Names of the command's own options come first, then commands, then options of other commands:
    a status says what telling with `unrelated` would have done.
    """
    running = click.get_current_context(silent=True)
    if running is None:
        return said
    root = running.find_root()
    commands = root.command.commands if isinstance(root.command, click.Group) else {}
    names: dict[str, str] = {}
    for command in commands.values():
        names |= _options(command)
    names |= {name: f"`dowise {name}`" for name in commands}
    if (given := commands.get(root.invoked_subcommand or "")) is not None:
        names |= _options(given)
    return re.sub(r"`(\w+)`", lambda name: names.get(name[1], name[0]), said)


def _options(command: click.Command) -> dict[str, str]:
    options = (one for one in command.params if isinstance(one, click.Option))
    return {option.name: option.opts[-1] for option in options if option.name}
