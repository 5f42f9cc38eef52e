"""Cases of the corpus, and how to run one.

A case is a table in `corpus/*.toml`: a `name`, the `code` of the error, and the input. The input is
one of these: a `graph`, `dot`, `gml`, `dagitty` or `bif` text; a `problem` file, which
`dowise arms` reads; a command to `run`; an expression of `python`. `files` and `hex` are the files
of the folder in which the case runs; `with = "ward"` adds a problem file and a store with two
decisions, `with = "ward.toml"` the problem file alone; `before` are commands that succeed. Usage
errors, which click reports, have no code.

The messages are in `messages.json`, by the name of the case; `make snapshots` renews them. If the
wording is that of another library, the case lists in `mentions` what the message must contain.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import tomllib
from contextlib import chdir, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import networkx
import pandas
from click.testing import CliRunner
from support.cli_runner import WARD

import dowise
from dowise.cli import main as cli
from dowise.errors import DowiseError
from dowise.graph.formats.bif import parse_bif
from dowise.information import estimate, minimise_kl, minimise_ratio

_COMPILING = "dowise: compiling"
CORPUS = Path(__file__).parent / "corpus"
MESSAGES = Path(__file__).parent / "messages.json"

Case = dict[str, Any]
_READERS = {
    "graph": dowise.CausalGraph.parse,
    "dot": dowise.CausalGraph.from_dot,
    "gml": dowise.CausalGraph.from_gml,
    "dagitty": dowise.CausalGraph.from_dagitty,
    "bif": parse_bif,
}
_NAMES = {name: getattr(dowise, name) for name in dowise.__all__} | {
    "estimate": estimate,
    "minimise_kl": minimise_kl,
    "minimise_ratio": minimise_ratio,
    "networkx": networkx,
    "pandas": pandas,
}


class Refusal(NamedTuple):
    """Message and code of the error of a case; usage errors of click have no code."""

    message: str
    code: str | None


@cache
def cases() -> dict[str, Case]:
    """Return all cases by name; names are unique."""
    by_name: dict[str, Case] = {}
    for path in sorted(CORPUS.glob("*.toml")):
        for case in tomllib.loads(path.read_text("utf-8"))["case"]:
            assert case["name"] not in by_name, f"{path.name}: {case['name']!r} is there twice"
            by_name[case["name"]] = case
    return by_name


@cache
def messages() -> dict[str, str]:
    """Return the recorded message of each case."""
    recorded: dict[str, str] = json.loads(MESSAGES.read_text("utf-8"))
    return recorded


def refusal(case: Case, folder: Path) -> Refusal:
    """Run a case in an empty folder: it must fail with one message and change nothing."""
    _prepare(case, folder)
    with chdir(folder):
        for command in case.get("before", ()):
            _succeed(command)
        before = _contents(folder)
        message, code = _refuse(case)
        assert _contents(folder) == before, "something was written"
    return Refusal(message.replace(str(folder), "FOLDER"), code)


def _prepare(case: Case, folder: Path) -> None:
    if "with" in case:
        (folder / "ward.toml").write_text(WARD)
    if case.get("with") == "ward":
        (folder / "ward.db").write_bytes(_store())
    texts = {name: text.encode() for name, text in case.get("files", {}).items()}
    texts |= {name: bytes.fromhex(text) for name, text in case.get("hex", {}).items()}
    if "problem" in case:
        texts["problem.toml"] = case["problem"].encode()
    for name, content in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


@cache
def _store() -> bytes:
    """Return a store with an experiment: decision 1 is told, decision 2 is pending."""
    with TemporaryDirectory() as name, chdir(name):
        Path("ward.toml").write_text(WARD)
        _succeed("new ward.db ward.toml --policy ucb --seed 7")
        _succeed("ask ward.db -c Age=1 --request-id first")
        _succeed("tell ward.db 1 Frailty=0 Recovery=1")
        _succeed("ask ward.db -c Age=0 --allow do(Dose=none)")
        with closing(sqlite3.connect("ward.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path("ward.db").read_bytes()


def _succeed(command: str) -> None:
    result = CliRunner().invoke(cli.main, shlex.split(command), catch_exceptions=False)
    assert result.exit_code == 0, f"{command}: {result.output}"


def _refuse(case: Case) -> Refusal:
    if "problem" in case or "run" in case:
        printed = mock.Mock(wraps=cli._print_error)
        with mock.patch.object(cli, "_print_error", printed):
            arguments = shlex.split(case.get("run", "arms problem.toml"))
            result = CliRunner().invoke(cli.main, arguments, catch_exceptions=False)
        code = printed.call_args.args[1] if printed.called else None
        return Refusal(_printed_message(result), code)
    try:
        if "python" in case:
            eval(case["python"], dict(_NAMES))
        else:
            kind = next(kind for kind in _READERS if kind in case)
            _READERS[kind](case[kind])
    except DowiseError as error:
        return Refusal(str(error), error.code)
    raise AssertionError("no error was raised")


def _printed_message(result: Any) -> str:
    """Return the message of a command that failed: the end of stderr, and the only output."""
    assert result.exit_code == 2 and result.stdout == "", (result.exit_code, result.output)
    lines = result.stderr.splitlines(True)
    text = "".join(line for line in lines if not line.startswith(_COMPILING))
    usage, separator, message = text.partition("Error: ")
    assert separator and (not usage or usage.startswith("Usage: ")), result.stderr
    return str(message).strip()


def _contents(folder: Path) -> dict[str, object]:
    """Return the contents of a folder; for a store its events, since reads may move pages."""
    shown: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith("ward.db"):
            continue
        shown[name] = path.read_bytes() if path.is_file() else None
    if (folder / "ward.db").exists():
        with closing(sqlite3.connect(folder / "ward.db")) as database:
            shown["ward.db"] = database.execute("SELECT hash FROM events ORDER BY hash").fetchall()
    return shown
