"""`dowise …`: one small function a command; everything heavy is imported inside it."""

from __future__ import annotations

import errno
import io
import json
import os
import select
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.signals import is_stopped, say_kept, say_stopped, stoppable
from dowise.cli.spelling import spelled
from dowise.errors import (
    USER_CODE_ERRORS,
    DowiseError,
    DowiseWarning,
    UserCodeError,
    user_code_error,
)

if TYPE_CHECKING:
    from dowise.problem import Problem


_TRACEBACK = "DOWISE_TRACEBACK"  # a variable of the environment: show where an error came from
_SECTIONS = {
    "Before you begin": ("problems", "arms", "formulas", "check", "rehearse"),
    "Live experiments": (
        "new", "import", "ask", "tell", "status", "explain", "amend", "withdraw", "revise",
        "erase", "evaluate", "export", "audit", "serve", "token",
    ),
    "Research": ("bounds", "simulate", "reproduce"),
}  # fmt: skip
"""The commands in the help, in the order in which one comes to need them."""


class FriendlyErrorsGroup(click.Group):
    """Turns every error of ours into one line and exit status 2, every stop into a word."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """As a program, whose signals are its own."""
        with stoppable():
            return self.main(*arguments, **options)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what they are for."""
        known = {name for names in _SECTIONS.values() for name in names}
        others = tuple(name for name in self.list_commands(context) if name not in known)
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, names in {**_SECTIONS, "Others": others}.items():
            rows = [(n, self.commands[n].get_short_help_str(width)) for n in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def invoke(self, context: click.Context) -> Any:
        say_kept("")
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A terminal that has no Σ shows a question mark; that is no reason to stop.
            sys.stdout.reconfigure(errors="replace")
        try:
            with warnings.catch_warnings(), _own_code_in_one_line():
                warnings.showwarning = _sayer()
                result = super().invoke(context)
            sys.stdout.flush()
            return result
        except DowiseError as error:
            message = spelled(str(error))
            if os.environ.get(_TRACEBACK):
                traceback.print_exception(error)
            elif isinstance(error, UserCodeError):
                message += f"; {_TRACEBACK}=1 shows how it came there"
        except KeyboardInterrupt:
            return context.exit(say_stopped())
        except OSError as error:
            if error.errno == errno.EPIPE and _has_no_reader(1):
                raise  # the reader has seen enough; click leaves quietly
            message = f"the output can't be written: {error.strerror}"
            if error.filename:
                message = f"{error.filename} can't be read or written: {error.strerror}"
            # What is still in the buffer would fail again when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if is_stopped():
            return context.exit(say_stopped())
        click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
        click.echo(message, err=True)
        return context.exit(2)


@contextmanager
def _own_code_in_one_line() -> Iterator[None]:
    """What goes wrong in a policy of the user's own is said in one line, with its place there."""
    try:
        yield
    except (
        USER_CODE_ERRORS
    ) as error:  # click's own ways to leave never come through the user's code
        own = sys.modules.get("dowise.policies.registry")  # loaded where there may be one
        known = user_code_error(error) if own is not None and own.asked_for() else None
        if known is None:
            raise
        raise known from error


def _has_no_reader(file: int) -> bool:
    """Whether nobody reads any more what is written to a pipe; True where that can't be told."""
    try:
        poll = select.poll()
        poll.register(file, select.POLLOUT)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):
        return True


_usual = warnings.showwarning


def _sayer() -> Callable[..., None]:
    """What says a warning of ours as one line on stderr, without the place in the code.

    Once: a server may say what was said here when the problem was read.
    """
    said: set[str] = set()

    def say(message: Warning | str, kind: type[Warning], *where: Any) -> None:
        if not issubclass(kind, DowiseWarning):
            _usual(message, kind, *where)
        elif str(message) not in said:
            said.add(str(message))
            click.echo(f"Note: {spelled(str(message))}", err=True)

    return say


def _print_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        import dowise

        click.echo(f"dowise {dowise.__version__}")
        context.exit()


@click.group(
    cls=FriendlyErrorsGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with:  dowise arms healthcare",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version and leave.",
)  # fmt: skip
def main() -> None:
    """Decide which intervention to try next when the causal graph is known and the numbers are not.

    PROBLEM is a problem file (.toml) or the name of a built-in problem; `dowise problems` lists
    those. STORE is where live experiments are kept: a file such as ward.db, or a URL. A policy of
    your own is named as module:Class.
    """


problem_argument = click.argument("problem")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, nothing else."
)


class _WithPolicies(click.Command):
    """Its help lists the policies, which are looked up when somebody asks."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from dowise.policies.registry import policy_info, policy_names

        super().format_options(context, formatter)
        with formatter.section("Policies"):
            known = [policy_info(name) for name in policy_names()]
            rows = [(info.name, f"{info.help} (learns from {info.learns_from})") for info in known]
            formatter.write_dl([*rows, ("MODULE:CLASS", "one of your own, from a Python module")])


# What many commands have is listed behind what is a command's own.
_LAST = ("name", "policy_module", "actor", "accept_clock", "as_json")


def command(
    epilog: str, policies: bool = False, name: str | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """Makes a function a command with examples, and perhaps the policies, in its help.

    `name` is that of the command, where it can't be that of a function.
    """
    kind = _WithPolicies if policies else click.Command
    make = main.command(name, cls=kind, epilog="\b\nExamples:\n" + epilog)

    def register(function: Callable[..., None]) -> click.Command:
        made = make(function)
        made.params.sort(key=lambda parameter: parameter.name in _LAST)
        return made

    return register


def load(source: str) -> Problem:
    """The problem file, or the built-in problem of that name."""
    from dowise.problem import load_problem

    if source.lower().endswith((".csv", ".csv.gz", ".parquet", ".pq")):
        raise DowiseError(
            f"{source} is a table by its name, and no problem: the problem (.toml) comes first"
        )
    return load_problem(source)


def print_json(document: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
