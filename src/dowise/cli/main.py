"""The command `dowise`: its subcommands, and how errors, warnings and interrupts end it."""

from __future__ import annotations

import errno
import io
import os
import re
import select
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from dowise.cli import decisions, experiment, problems, queries, serve, simulate
from dowise.cli.console import print_json
from dowise.cli.options import ERROR_DETAILS, is_json_requested
from dowise.cli.signals import is_stopped, report_stop, set_stop_message, stop_on_signals
from dowise.errors import (
    USER_CODE_ERRORS,
    DowiseError,
    DowiseWarning,
    UserCodeError,
    user_code_error,
)

_TRACEBACK = "DOWISE_TRACEBACK"  # environment variable: print the traceback of an error
_SECTIONS = {
    "Before you begin": (
        problems.problems,
        problems.arms,
        problems.formulas,
        problems.check,
        problems.sensitivity,
        simulate.rehearse,
    ),
    "Live experiments": (
        experiment.new,
        experiment.import_records,
        decisions.ask,
        decisions.tell,
        queries.status,
        queries.explain,
        decisions.amend,
        decisions.withdraw,
        experiment.revise,
        decisions.erase,
        queries.evaluate,
        queries.export,
        queries.audit,
        serve.serve,
        serve.token,
    ),
    "Research": (problems.bounds, simulate.simulate, simulate.reproduce),
}
"""Commands by section of the help, in the order in which users need them."""

_TYPED = "dowise.typed"  # in the metadata of a context
_default_showwarning = warnings.showwarning


class FriendlyErrorsGroup(click.Group):
    """Group that ends with one line and exit status 2 on an error."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run as a program: signals stop it."""
        with stop_on_signals():
            return self.main(*arguments, **options)

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section."""
        for title, commands in _SECTIONS.items():
            width = formatter.width - 6 - max(len(str(x.name)) for x in commands)
            with formatter.section(title):
                formatter.write_dl([(str(x.name), x.get_short_help_str(width)) for x in commands])

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Remember what was typed, for errors."""
        context.meta[_TYPED] = {text.partition("=")[0] for text in args}
        return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        """Run the subcommand and translate what it raises."""
        set_stop_message("")
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A terminal without the letter Σ shows a question mark; that is no reason to fail.
            sys.stdout.reconfigure(errors="replace")
        try:
            with warnings.catch_warnings(), _translate_user_code_errors():
                warnings.simplefilter("always", DowiseWarning)
                warnings.showwarning = _make_warning_printer()
                result = super().invoke(context)
            sys.stdout.flush()
            return result
        except DowiseError as error:
            code, message = error.code, self._name_as_typed(str(error), context)
            hint = error.hint and self._name_as_typed(error.hint, context)
            if os.environ.get(_TRACEBACK):
                traceback.print_exception(error)
            elif isinstance(error, UserCodeError) and hint is None:
                hint = f"{_TRACEBACK}=1 shows the traceback"
        except KeyboardInterrupt:
            return context.exit(report_stop())
        except OSError as error:
            if error.errno == errno.EPIPE and _is_pipe_closed(1):
                raise  # the reader has seen enough; click exits quietly
            code, hint = "file-error", None
            target = (
                f"cannot read or write {error.filename}"
                if error.filename
                else ("cannot write the output")
            )
            message = f"{target}: {error.strerror}"
            # What is still in the buffer would fail again when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if is_stopped():
            return context.exit(report_stop())
        _print_error(context, code, message, hint)
        return context.exit(2)

    def _name_as_typed(self, text: str, context: click.Context) -> str:
        """Write verbs and arguments as they are typed: `skip_bad` as --skip-bad.

        At the start of a message, an argument with its value is an option too, if that was typed:
        samples=0 is written as --samples 0, and unrelated=True as --unrelated.
        """
        command = self.commands.get(context.invoked_subcommand or "")
        options = {
            option.name: option.opts[-1]
            for option in (command.params if command else ())
            if isinstance(option, click.Option)
        }
        names = {name: f"`dowise {name}`" for name in self.commands} | options
        text = re.sub(r"`(\w+)`", lambda match: names.get(match[1], match[0]), text)
        argument = re.match(r"(\w+)=(True\b)?", text)
        option = argument and options.get(argument[1])
        if not argument or not option or option not in context.meta[_TYPED]:
            return text
        return option + ("" if argument[2] else " ") + text[argument.end() :]


def _print_error(context: click.Context, code: str, message: str, hint: str | None) -> None:
    if is_json_requested(context):
        data = {**context.meta.get(ERROR_DETAILS, {}), "error": message, "code": code}
        print_json(data if hint is None else {**data, "hint": hint})
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)
    if hint is not None:
        click.echo(f"Hint: {hint}", err=True)


@contextmanager
def _translate_user_code_errors() -> Iterator[None]:
    """Report an error in a custom policy in one line, with its file and line."""
    try:
        yield
    except USER_CODE_ERRORS as error:  # click's own exceptions never pass through user code
        registry = sys.modules.get("dowise.policies.registry")  # loaded if there may be one
        translated = user_code_error(error) if registry and registry.imported_modules() else None
        if translated is None:
            raise
        raise translated from error


def _is_pipe_closed(file: int) -> bool:
    """Return True if the reader of a pipe has left, or if that is unknown."""
    try:
        poll = select.poll()
        poll.register(file, select.POLLOUT)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (AttributeError, OSError, ValueError):
        return True


def _make_warning_printer() -> Callable[..., None]:
    """Return a `showwarning` that prints each of our warnings once, as a line on stderr.

    Once, because a server may repeat what was printed here when the problem was read.
    """
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if not issubclass(category, DowiseWarning):
            _default_showwarning(message, category, *place)
        elif str(message) not in printed:
            printed.add(str(message))
            click.echo(f"Note: {message}", err=True)

    return show


def _print_version(context: click.Context, _option: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        import dowise

        click.echo(f"dowise {dowise.__version__}")
        context.exit()


@click.group(
    cls=FriendlyErrorsGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with:  dowise arms healthcare",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def main() -> None:
    """Decide which intervention to try next when the causal graph is known and the numbers are not.

    PROBLEM is a problem file (.toml) or the name of a built-in problem (see `dowise problems`).
    STORE is where live experiments are kept: a file such as ward.db, or a URL. Custom policies are
    named as module:Class.
    """


for _commands in _SECTIONS.values():
    for _command in _commands:
        main.add_command(_command)
