"""The cases of the corpus, and how one is tried.

A case is a table in `corpus/*.toml`: a `name`, what is wrong, and what dowise `says`. What is wrong
is one of these: a `graph`, `dot`, `gml`, `dagitty` or `bif` text; a `problem` file, which
`dowise arms` reads; a command to `run`; an expression of `python`. `files` and `hex` stand in the
folder where it is tried; `with = "ward"` puts a problem file and a store with two decisions there,
`with = "ward.toml"` the problem file alone; `before` are commands that go well. Where the words are
those of another library, `mentions` stands for `says`: what must be in the message.
"""

from __future__ import annotations

import shlex
import sqlite3
import tomllib
from contextlib import chdir, closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import networkx
import pandas
from click.testing import CliRunner
from support.cli_runner import WARD

import dowise
from dowise.cli.main import main
from dowise.errors import DowiseError
from dowise.graph.formats.bif import parse_bif
from dowise.information import estimate, minimise_kl, minimise_ratio

_COMPILING = "dowise: compiling"
CORPUS = Path(__file__).parent / "corpus"

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


@cache
def cases() -> dict[str, Case]:
    """All cases by their names, each of which is there once."""
    found: dict[str, Case] = {}
    for path in sorted(CORPUS.glob("*.toml")):
        for case in tomllib.loads(path.read_text("utf-8"))["case"]:
            assert case["name"] not in found, f"{path.name}: {case['name']!r} is there twice"
            found[case["name"]] = case
    return found


def tried(case: Case, folder: Path) -> str:
    """What is said when the case is tried in an empty folder: one message, and nothing changed."""
    _furnish(case, folder)
    with chdir(folder):
        for command in case.get("before", ()):
            _well(command)
        before = _contents(folder)
        said = _said(case)
        assert _contents(folder) == before, "something was written"
    return said.replace(str(folder), "FOLDER")


def _furnish(case: Case, folder: Path) -> None:
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
    """A store with an experiment: decision 1 is told, decision 2 is pending."""
    with TemporaryDirectory() as name, chdir(name):
        Path("ward.toml").write_text(WARD)
        _well("new ward.db ward.toml --policy ucb --seed 7")
        _well("ask ward.db -c Age=1 --request-id first")
        _well("tell ward.db 1 Frailty=0 Recovery=1")
        _well("ask ward.db -c Age=0 --allow do(Dose=none)")
        with closing(sqlite3.connect("ward.db")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path("ward.db").read_bytes()


def _well(command: str) -> None:
    result = CliRunner().invoke(main, shlex.split(command), catch_exceptions=False)
    assert result.exit_code == 0, f"{command}: {result.output}"


def _said(case: Case) -> str:
    if "problem" in case or "run" in case:
        command = case.get("run", "arms problem.toml")
        return _printed(CliRunner().invoke(main, shlex.split(command), catch_exceptions=False))
    try:
        if "python" in case:
            eval(case["python"], dict(_NAMES))
        else:
            kind = next(kind for kind in _READERS if kind in case)
            _READERS[kind](case[kind])
    except DowiseError as error:
        return str(error)
    raise AssertionError("nothing was said")


def _printed(result: Any) -> str:
    """The message of a command that was refused: the last thing on stderr, and all that is said."""
    assert result.exit_code == 2 and result.stdout == "", (result.exit_code, result.output)
    said = "".join(x for x in result.stderr.splitlines(True) if not x.startswith(_COMPILING))
    usage, found, message = said.partition("Error: ")
    assert found and (not usage or usage.startswith("Usage: ")), result.stderr
    return str(message).strip()


def _contents(folder: Path) -> dict[str, object]:
    """All that is in a folder; of a store its events, because looking at one may move pages."""
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
