"""Options that commands share, and the decorators that make a function a command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dowise.cli.arguments import (
    StoreTarget,
    import_policy,
    import_policy_modules,
    parse_decision_id,
)
from dowise.errors import DowiseError

CommandFunction = Callable[..., None]
Decorator = Callable[[Any], Any]

ERROR_DETAILS = "dowise.error_details"
"""Key of `click.Context.meta`: further keys of the JSON document of an error."""
_AS_JSON = "dowise.as_json"
_ACTOR_OPTIONS = ("actor", "accept_clock")
# Options that many commands share are listed after those of the command itself.
_LISTED_LAST = ("name", "policy_module", *_ACTOR_OPTIONS, "as_json")


class WholeNumber(click.IntRange):
    """Whole number in a range."""

    name = "whole number"


class Number(click.FloatRange):
    """Number in a range."""

    name = "number"


class _CommandWithPolicies(click.Command):
    """Command whose help lists the policies; they are loaded when the help is shown."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from dowise.policies.registry import policy_info, policy_names

        super().format_options(context, formatter)
        with formatter.section("Policies"):
            infos = [policy_info(name) for name in policy_names()]
            rows = [(info.name, f"{info.help} (learns from {info.learns_from})") for info in infos]
            formatter.write_dl([*rows, ("MODULE:CLASS", "a custom policy from a Python module")])


def command(
    name: str | None = None, policies: bool = False
) -> Callable[[CommandFunction], click.Command]:
    """Make a function a command. Its docstring is the help, with "Examples:" at the end.

    Parameters
    ----------
    name : str, optional
        Name of the command, if it differs from that of the function.
    policies : bool
        True lists the policies in the help.
    """
    kind = _CommandWithPolicies if policies else click.Command

    def register(function: CommandFunction) -> click.Command:
        text, _, examples = inspect.cleandoc(function.__doc__ or "").partition("\nExamples:\n")
        epilog = f"\b\nExamples:\n{examples}"
        registered = click.command(name, cls=kind, help=text, epilog=epilog)(function)
        registered.params.sort(key=lambda parameter: parameter.name in _LISTED_LAST)
        return registered

    return register


def integer_option(
    name: str,
    metavar: str,
    description: str,
    *,
    minimum: int = 1,
    maximum: int | None = None,
    **settings: Any,
) -> Decorator:
    """Add an option for a whole number; a default is shown in the help."""
    kind = WholeNumber(minimum, maximum)
    if "default" in settings:
        settings.setdefault("show_default", True)
    return click.option(name, type=kind, metavar=metavar, help=description, **settings)


def file_option(name: str, description: str, metavar: str = "FILE", **settings: Any) -> Decorator:
    """Add an option for a path, which the command gets as a `Path`."""
    kind = click.Path(path_type=Path)
    return click.option(name, type=kind, metavar=metavar, help=description, **settings)


def figure_option(name: str, content: str) -> Decorator:
    """Add an option for the file of a picture."""
    return file_option(name, f"Draw {content} to a .svg, .png or .pdf file.")


def flag_option(name: str, description: str, parameter: str | None = None) -> Decorator:
    """Add an option without a value; `parameter` is the argument, if it has another name."""
    names = (name,) if parameter is None else (name, parameter)
    return click.option(*names, is_flag=True, help=description)


def policy_option(description: str = "Policy to use (listed below).", **settings: Any) -> Decorator:
    """Add `--policy`; a custom policy is imported."""
    return click.option(
        "--policy", metavar="NAME", callback=import_policy, help=description, **settings
    )


def context_option(description: str) -> Decorator:
    """Add `--context`, once for each context variable."""
    names = ("-c", "--context", "context")
    return click.option(*names, multiple=True, metavar="NAME=VALUE", help=description)


def learn_restricted_option(default: bool | None) -> Decorator:
    """Add `--learn-restricted`."""
    return click.option(
        "--learn-restricted/--no-learn-restricted",
        default=default,
        help="Learn from decisions among fewer than all arms.",
    )


def _remember_json(context: click.Context, _option: click.Parameter, as_json: bool) -> bool:
    context.meta[_AS_JSON] = as_json
    return as_json


def is_json_requested(context: click.Context) -> bool:
    """Return True if the running command got `--json`."""
    return bool(context.meta.get(_AS_JSON))


problem_argument = click.argument("problem")
decision_argument = click.argument("number", metavar="ID", callback=parse_decision_id)
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,  # so that errors in other arguments are printed as JSON too
    callback=_remember_json,
    help="Print one JSON document, nothing else.",
)
options_option = click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the policy, such as floor=0.1; may be repeated.",
)
prior_option = click.option(
    "--prior",
    metavar="flat|pooled|NUMBER|FILE",
    help="Prior: flat, pooled, a number of counts, or a TOML file with counts per variable.",
)
seed_option = integer_option("--seed", "S", "Random seed.", minimum=0, default=0)
reason_option = click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Reason. The journal keeps it, so do not name a person.",
)
policy_module_option = click.option(
    "--policy-module",
    multiple=True,
    metavar="MODULE",
    expose_value=False,
    callback=import_policy_modules,
    help="Import a Python module with custom policies.",
)


def store_command(
    writes: bool = True,
    policies: bool = False,
    name_help: str = "Name of the experiment, if the store has several.",
) -> Callable[[CommandFunction], CommandFunction]:
    """Add the argument STORE and its options, passed on as `target`, and `--json`.

    Parameters
    ----------
    writes : bool
        True adds the options that say who acts.
    policies : bool
        True adds `--policy-module`.
    name_help : str
        Help of `--name`.
    """
    options = [click.argument("store"), click.option("--name", metavar="N", help=name_help)]
    if policies:
        options.append(policy_module_option)
    if writes:
        options += [
            click.option(
                "--actor",
                metavar="WHO",
                show_default="the OS user",
                help="Name of the acting user, for the journal.",
            ),
            flag_option(
                "--accept-clock",
                "Continue although this clock is behind the time of the last event.",
            ),
        ]
    options.append(json_option)

    def decorate(function: CommandFunction) -> CommandFunction:
        @functools.wraps(function)
        def run(store: str, name: str | None, **arguments: Any) -> None:
            if name is not None and not name.strip():  # a variable of a script that is not set
                raise DowiseError(
                    "--name is empty: pass the name of the experiment, or leave it out",
                    code="missing-value",
                )
            actor = {key: arguments.pop(key) for key in _ACTOR_OPTIONS if key in arguments}
            function(target=StoreTarget(store, name, **actor), **arguments)

        decorated: CommandFunction = run
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate
