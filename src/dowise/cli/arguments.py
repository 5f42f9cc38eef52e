"""NAME=VALUE on the command line: what was seen, the context, options."""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.main import json_option
from dowise.errors import DowiseError, join_names, suggestion
from dowise.graph.edges import bare_text, quoted

if TYPE_CHECKING:
    from dowise.client import Client
    from dowise.experiment.experiment import Experiment
    from dowise.problem import Problem

    Live = Experiment | Client
    """An experiment in a store that is opened here, or on a server: they have the same methods."""


def named_policy(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """A callback of options and arguments that name a policy: it imports one of the user's own."""
    if name is not None and ":" in name and not name.strip().startswith("do("):  # that is an arm
        from dowise.policies.registry import import_named

        look_here()
        import_named(name)
    return name


def named_policies(
    context: click.Context, option: click.Parameter, join_names: str
) -> dict[str, str]:
    """A callback for NAME,LABEL=NAME,…: the policies by their names in the race."""
    from dowise.errors import DowiseError

    policies: dict[str, str] = {}
    for part in (part.strip() for part in join_names.split(",")):
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
        from dowise.policies.registry import import_policies

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


Command = Callable[..., None]

_WHICH = "Which experiment, where the store has several."
_WHO = ("actor", "accept_clock")

reason_option = click.option(
    "--reason", default="", metavar="TEXT",
    help="Why; it is kept in the journal, so name no person.",
)  # fmt: skip


@dataclass(frozen=True)
class StoreTarget:
    """A store as it was named on the command line, and who acts."""

    store: str
    name: str | None
    actor: str | None = None
    accept_clock: bool = False

    @property
    def is_server(self) -> bool:
        """Whether it is the URL of a server, which knows by itself who acts."""
        from dowise.client.transport import is_url

        if not is_url(self.store):
            return False
        if self.actor is not None or self.accept_clock:
            option = "--accept-clock" if self.actor is None else "--actor"
            raise DowiseError(
                f"{option} is not for a server, which knows the time, and by the token who acts: "
                "leave it out"
            )
        return True

    def open(self) -> Live:
        """The experiment; a store that is not there is an error, never made."""
        if self.is_server:
            from dowise.client import Client

            return Client(self.store, name=self.name, insecure=_is_insecure())
        from dowise.experiment.experiment import Experiment

        return Experiment.open(
            self.store, self.name, actor=self.actor, accept_clock=self.accept_clock
        )

    def create(self, problem: Problem, **rest: Any) -> Live:
        """A new experiment, which has the problem's name unless told."""
        if self.is_server:
            from dowise.client import Client
            from dowise.client.transport import address_of

            name = self.name or address_of(self.store).name or str(problem.name)
            return Client.create(self.store, name, problem, **rest, insecure=_is_insecure())
        from dowise.experiment.experiment import Experiment

        name = self.name or str(problem.name)
        who: dict[str, Any] = {"actor": self.actor, "accept_clock": self.accept_clock}
        return Experiment.create(self.store, name, problem, **rest, **who)

    def command(self, experiment: Live, verb: str, *rest: str) -> str:
        """A command on the same experiment, as one would type it; it shows no password."""
        is_hidden = "://" in self.store and not self.is_server  # a server's URL has no password
        store = experiment.store if is_hidden else self.store
        is_said = self.name is None or (self.is_server and "/experiments/" in store)
        named = [] if is_said else ["--name", str(self.name)]
        return " ".join(map(as_typed, ["dowise", verb, store, *rest, *named]))


def _is_insecure() -> bool:
    """Whether a token may cross a network unencrypted."""
    return os.environ.get("DOWISE_INSECURE", "") == "1"


def as_typed(word: str) -> str:
    """A word as a shell wants it; … stands for what is to be filled in."""
    rest = word.replace("…", "")
    return word if shlex.quote(rest) == rest else shlex.quote(word)


def on_store(
    acts: bool = True, policies: bool = False, name: str = _WHICH
) -> Callable[[Command], Command]:
    """Gives a command the argument STORE and its options, as `where`, and --json, as `as_json`.

    `acts` says that it writes, so that somebody acts; `policies` that it needs to know them; `name`
    is the help of --name.
    """

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def called(store: str, name: str | None, **rest: Any) -> None:
            if name is not None and not name.strip():  # a variable of a script that is not set
                raise DowiseError("--name is empty: give the experiment's name, or leave it out")
            where = StoreTarget(
                store, name, **{part: rest.pop(part) for part in _WHO if part in rest}
            )
            function(where=where, **rest)

        with_options: Command = called
        for option in reversed(_options(acts, policies, name)):
            with_options = option(with_options)
        return with_options

    return decorate


def _options(acts: bool, policies: bool, name: str) -> list[Callable[[Command], Command]]:
    found = [click.argument("store"), click.option("--name", metavar="N", help=name)]
    if policies:
        found.append(policy_module_option)
    if acts:
        found += [
            click.option("--actor", metavar="WHO", show_default="the system's user",
                         help="Who does this; it is kept in the journal."),
            click.option("--accept-clock", is_flag=True,
                         help="Go on although this clock is behind the last event's time."),
        ]  # fmt: skip
    return [*found, json_option]


def decision_number(text: str) -> int:
    """The number of a decision, as `ask` printed it."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise DowiseError(
            f"{text!r:.80} is no decision: give the number that `dowise ask` printed, such as 1"
        )
    return int(text)


def is_terminal() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Ask on a terminal whether something is meant; elsewhere nobody could answer: an error."""
    if not is_terminal():
        raise DowiseError(f"{question}, and nobody is here to be asked: if it is meant, say --yes")
    try:
        is_meant = click.confirm(question, err=True)
    except click.Abort:
        raise KeyboardInterrupt from None
    if not is_meant:
        raise DowiseError("nothing was changed")


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
            f"the context has no value for {join_names(lacking)}: say what is seen before the choice, "
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


class WholeNumber(click.IntRange):
    """From a least to a largest one, where they are given."""

    name = "whole number"


class Number(click.FloatRange):
    """From a least to a largest one, where they are given."""

    name = "number"
