"""What commands on a store share: where it is, who acts, and how it is opened."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.group import json_option
from dowise.cli.own_policies import policy_module_option
from dowise.errors import DowiseError

if TYPE_CHECKING:
    from dowise.client import Client
    from dowise.experiment.experiment import Experiment
    from dowise.problem import Problem

    Live = Experiment | Client
    """An experiment in a store that is opened here, or on a server: they have the same methods."""

__all__ = ["Where", "as_typed", "confirm", "decision_number", "on_store", "reason_option"]

Command = Callable[..., None]

_WHICH = "Which experiment, where the store has several."
_WHO = ("actor", "accept_clock")

reason_option = click.option(
    "--reason", default="", metavar="TEXT",
    help="Why; it is kept in the journal, so name no person.",
)  # fmt: skip


@dataclass(frozen=True)
class Where:
    """A store as it was named on the command line, and who acts."""

    store: str
    name: str | None
    actor: str | None = None
    accept_clock: bool = False

    @property
    def is_server(self) -> bool:
        """Whether it is the URL of a server, which knows by itself who acts."""
        from dowise.client.address import is_url

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
            from dowise.client.address import address_of

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
            where = Where(store, name, **{part: rest.pop(part) for part in _WHO if part in rest})
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
