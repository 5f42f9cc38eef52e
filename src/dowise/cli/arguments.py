"""Arguments of commands: NAME=VALUE pairs, numbers, policies, problems and stores."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.errors import DowiseError, join_names, suggestion
from dowise.graph.edges import bare_text, quoted

if TYPE_CHECKING:
    from dowise.experiment.base import ExperimentBase
    from dowise.problem import Problem

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_PAIR = re.compile(rf"\s*({_QUOTED}|[^=\"]+?)\s*=\s*({_QUOTED}|.*?)\s*", re.DOTALL)


def read_problem(source: str) -> Problem:
    """Load a problem file, or the built-in problem of that name."""
    from dowise.problem import load_problem

    if source.lower().endswith((".csv", ".csv.gz", ".parquet", ".pq")):
        raise DowiseError(
            f"{source} looks like a table, not a problem: the problem (.toml) comes first",
            code="wrong-argument-order",
        )
    return load_problem(source)


def import_policy(
    _context: click.Context, _option: click.Parameter, name: str | None
) -> str | None:
    """Callback of options that name a policy: imports a custom one (module:Class)."""
    is_arm = name is not None and name.strip().startswith("do(")
    if name is not None and ":" in name and not is_arm:
        from dowise.policies.registry import import_named

        _add_current_folder_to_path()
        import_named(name)
    return name


def parse_policies(context: click.Context, option: click.Parameter, names: str) -> dict[str, str]:
    """Callback of `NAME,LABEL=NAME,…`: policies by their labels in the simulation."""
    policies: dict[str, str] = {}
    for part in (part.strip() for part in names.split(",")):
        label, _, name = (x.strip() for x in part.rpartition("="))
        if label in policies or (not label and name in policies):
            raise DowiseError(
                f"two policies are called {label or name!r}: name each once", code="duplicate-name"
            )
        if name:
            import_policy(context, option, name)
            policies[label or name] = name
        elif part:
            raise DowiseError(
                f"--policies {part}: the policy is missing (expected {part}ids)",
                code="missing-value",
            )
    return policies


def import_policy_modules(
    _context: click.Context, _option: click.Parameter, modules: tuple[str, ...]
) -> None:
    """Callback of `--policy-module`: import modules with custom policies."""
    for module in modules:
        from dowise.policies.registry import import_policies

        _add_current_folder_to_path()
        import_policies(module, f"--policy-module {module}")


def _add_current_folder_to_path() -> None:
    """Make modules of the current folder importable, in worker processes too."""
    with suppress(OSError):  # the folder may be gone
        folder = str(Path.cwd())
        if folder not in sys.path:
            sys.path.insert(0, folder)


@dataclass(frozen=True)
class StoreTarget:
    """A store as named on the command line, and who acts."""

    store: str
    name: str | None
    actor: str | None = None
    accept_clock: bool = False

    @property
    def is_server(self) -> bool:
        """True if the store is the URL of a server."""
        from dowise.client.transport import is_url

        if not is_url(self.store):
            return False
        if self.actor is not None or self.accept_clock:
            option = "--accept-clock" if self.actor is None else "--actor"
            raise DowiseError(
                f"{option} cannot be used with a server, which knows the time and, by the token, "
                "who acts: leave it out",
                code="unknown-option",
            )
        return True

    def open(self) -> ExperimentBase:
        """Open the experiment. A store that does not exist is an error and is not created."""
        if self.is_server:
            from dowise.client import Client

            return Client(self.store, name=self.name, insecure=_is_insecure_allowed())
        from dowise.experiment.experiment import Experiment

        return Experiment.open(
            self.store, self.name, actor=self.actor, accept_clock=self.accept_clock
        )

    def create(self, problem: Problem, **settings: Any) -> ExperimentBase:
        """Create an experiment; by default it has the name of the problem."""
        if self.is_server:
            from dowise.client import Client
            from dowise.client.transport import parse_address

            name = self.name or parse_address(self.store).name or str(problem.name)
            return Client.create(
                self.store, name, problem, **settings, insecure=_is_insecure_allowed()
            )
        from dowise.experiment.experiment import Experiment

        settings |= {"actor": self.actor, "accept_clock": self.accept_clock}
        return Experiment.create(self.store, self.name or str(problem.name), problem, **settings)

    def command_line(self, experiment: ExperimentBase, verb: str, *arguments: str) -> str:
        """Return a command on the same experiment as it would be typed, without a password."""
        # A server's URL has no password; that of a database may have one.
        has_password = "://" in self.store and not self.is_server
        store = experiment.store if has_password else self.store
        is_named_by_url = self.is_server and "/experiments/" in store
        name = [] if self.name is None or is_named_by_url else ["--name", self.name]
        return " ".join(map(quote_word, ["dowise", verb, store, *arguments, *name]))


def _is_insecure_allowed() -> bool:
    """Return True if a token may cross a network unencrypted."""
    return os.environ.get("DOWISE_INSECURE", "") == "1"


def parse_decision_id(_context: click.Context, _argument: click.Parameter, text: str) -> int:
    """Callback of ID: the number of a decision, as printed by `dowise ask`."""
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise DowiseError(
            f"not a decision: {text!r:.80} (expected the number that `dowise ask` "
            "printed, such as 1)",
            code="invalid-number",
        )
    return int(text)


def is_terminal() -> bool:
    """Return True if standard input is a terminal."""
    return sys.stdin.isatty()


def confirm(question: str) -> None:
    """Ask for confirmation on a terminal; elsewhere raise an error."""
    if not is_terminal():
        raise DowiseError(
            f"{question}: confirmation is required, and there is no terminal; "
            "pass --yes to confirm",
            code="confirmation-required",
        )
    try:
        is_confirmed = click.confirm(question, err=True)
    except click.Abort:
        raise KeyboardInterrupt from None
    if not is_confirmed:
        raise DowiseError("nothing was changed", code="not-confirmed")


def parse_values(pairs: Iterable[str], example: str = "Y=1") -> dict[str, str | None]:
    """Parse values by name; a name without a value (`Z=`) has None: missing for good.

    >>> parse_values(["Z=", "Y=1", '"a = b"="c d"'])
    {'Z': None, 'Y': '1', 'a = b': 'c d'}
    """
    values: dict[str, str | None] = {}
    words = list(pairs)
    for i, text in enumerate(words):
        name, value = _split_pair(text, example, _join_separated_pair(words, i))
        if name in values:
            raise DowiseError(f"{text!r}: {name} is given twice", code="duplicate-name")
        values[name] = _unquote(value) or None
    return values


def parse_context(pairs: Iterable[str], names: Iterable[str]) -> dict[str, str | None]:
    """Parse the context; every context variable needs a value."""
    context, names = parse_values(pairs, "-c C=1"), tuple(names)
    missing = [name for name in names if context.get(name) is None]
    if missing and {*context} <= {*names}:  # another error names a misspelt variable
        options = " ".join(f"-c {quote_word(format_pair(name, '…'))}" for name in missing)
        raise DowiseError(
            f"the context has no value for {join_names(missing)}: add {options}",
            code="missing-value",
        )
    return context


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Parse options by name: numbers, booleans and lists as in TOML, everything else as text.

    >>> parse_options(["samples=1000", "interval=optimistic"])
    {'samples': 1000, 'interval': 'optimistic'}
    """
    options: dict[str, Any] = {}
    for text in pairs:
        name, value = _split_pair(text, "samples=1000")
        if name in options:
            raise DowiseError(f"{text!r}: the option {name} is given twice", code="duplicate-name")
        if not value:
            raise DowiseError(
                f"{text!r}: the value of {name} is missing (expected NAME=VALUE, such as "
                "samples=1000)",
                code="missing-value",
            )
        options[name] = _parse_toml_value(value)
    return options


def parse_policy_options(
    pairs: Iterable[str], policies: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Parse POLICY.NAME=VALUE: options of several policies, by policy.

    >>> parse_policy_options(["ids.samples=500", "my:Class.explore=0.1"], ["ids", "my:Class"])
    {'ids': {'samples': 500}, 'my:Class': {'explore': 0.1}}
    """
    pairs_by_policy: dict[str, list[str]] = {}
    for text in pairs:
        name, _, value = text.partition("=")
        policy, dot, option = name.strip().rpartition(".")
        if not (dot and policy and option):
            raise DowiseError(
                f"--option {text}: the policy is missing (expected "
                f"{next(iter(policies), 'ids')}.{option or 'samples'}={value or 1000})",
                code="missing-value",
            )
        if policy not in policies:
            raise DowiseError(
                f"--option {text}: {policy!r} is not among the policies"
                f"{suggestion(policy, policies)}: they are {', '.join(policies)}",
                code="unknown-policy",
            )
        if not value.strip():
            raise DowiseError(
                f"--option {text}: the value of {option} is missing (expected {name}=1000)",
                code="missing-value",
            )
        pairs_by_policy.setdefault(policy, []).append(f"{option}={value}")
    return {policy: parse_options(options) for policy, options in pairs_by_policy.items()}


def format_pair(name: str, value: str) -> str:
    """Return the text that `parse_values` reads back, not yet quoted for a shell."""
    is_plain = '"' not in name and "=" not in name and name == name.strip()
    return f"{name if is_plain else quoted(name)}={value}"


def quote_word(word: str) -> str:
    """Quote a word for a shell; the placeholder … needs no quotes."""
    plain = word.replace("…", "")
    return word if shlex.quote(plain) == plain else shlex.quote(word)


def _split_pair(text: str, example: str, whole: str = "Length of stay=short") -> tuple[str, str]:
    match = _PAIR.fullmatch(text)
    if match is None:
        raise DowiseError(
            f"{text!r} is not NAME=VALUE, such as {example}; quote a pair that contains spaces, "
            f"{shlex.quote(whole)}, and put a name that contains = in double quotes inside",
            code="syntax-error",
        )
    return bare_text(match[1]), match[2]


def _join_separated_pair(words: list[str], index: int) -> str:
    """Return the pair to which a word without = seems to belong, if a shell split it.

    >>> _join_separated_pair(["Length", "of", "stay=short", "Pain=no"], 1)
    'Length of stay=short'
    >>> _join_separated_pair(["Pain=no", "Stay=very", "long"], 2)
    'Stay=very long'
    """
    pairs = [i for i, word in enumerate(words) if "=" in word]
    later = next((i for i in pairs if i >= index), None)
    if later is not None:
        first = max((i + 1 for i in pairs if i < later), default=0)
        return " ".join(words[first : later + 1])
    return " ".join(words[pairs[-1] :]) if pairs else "Length of stay=short"


def _unquote(value: str) -> str:
    return bare_text(value) if re.fullmatch(_QUOTED, value, re.DOTALL) else value


def _parse_toml_value(text: str) -> Any:
    try:
        data = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    is_plain = [*data] == ["value"] and isinstance(data["value"], str | int | float | list | dict)
    return data["value"] if is_plain else text
