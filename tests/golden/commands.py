"""Golden JSON documents of the commands: a scripted session with fixed seeds.

`documents.json` has the documents; times, hashes, paths and secrets in them are replaced by
placeholders, sentences by `<text>`. The sentences are in `texts.json`, so that a change of wording
renews that file alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import chdir, suppress
from functools import cache
from pathlib import Path

from click.testing import CliRunner

import dowise
from dowise.cli.main import main

WARD = """\
name = "ward"
graph = "Age -> Dose; Age -> Recovery; Dose -> Recovery; Frailty -> Dose; Frailty -> Recovery"
reward = "Recovery"
context = ["Age"]
non_manipulable = ["Frailty"]
[domains]
Dose = ["none", "low", "high"]
"""
OTHER_WARD = WARD + '[reward_values]\n"0" = -10\n"1" = 50\n'
DOUBTFUL = """\
name = "doubtful"
graph = "Z -> X -> Y; Z ?-> Y; X <?> Y"
reward = "Y"
"""
PAST = "arm,Age,Dose,Frailty,Recovery\ndo(),0,low,1,1\ndo(Dose=high),1,high,0,0\ndo(),1,none,1,\n"
RECORDS = "arm,X,Y,Z\n" + "".join(
    f"do(X={x}),{x},{x ^ (z & 1)},{z}\n" for x in (0, 1) for z in (0, 1) for _ in range(6)
)
BAD = PAST.replace("low,1,1", "low,0,1") + "do(Dose=huge),1,huge,0,0\n"

SESSION = """\
problems
arms task2
arms ward.toml
formulas task2
formulas healthcare --all
bounds task1 --horizon 50 --samples 500 --policy-samples 100 --seed 1
bounds task1 --horizon 20 --samples 200 --policy-samples 50 --seed 1 --certify --trials 10
check doubtful.toml records.csv
simulate task1 --policies ids,ts,ucb --horizon 20 --trials 2 --samples 50 --seed 1
simulate task2 --policies ts --horizon 20 --trials 2 --seed 1 --every 10 --expected
rehearse ward.toml --horizon 20 --worlds 3 --policy ids --option samples=50 --seed 1
new ward.db ward.toml --seed 7 --policy ids --option samples=100 --actor ann --data past.csv
ask ward.db -c Age=0 --request-id first --actor ann
ask ward.db -c Age=0 --request-id first --actor ann
tell ward.db 1 Frailty=1 --actor ann
tell ward.db 1 Frailty=1 --actor ann
tell ward.db 1 Recovery=1 --played do(Dose=low) --actor ann
ask ward.db -c Age=1 -n 3 --actor ann
tell ward.db 2 Frailty=0 Recovery=0 --actor ann
amend ward.db 2 Recovery=1 --reason typo --actor bob
withdraw ward.db 3 --reason left --actor bob
ask ward.db -c Age=0 --allow do(Dose=low) --allow do(Dose=high) --actor ann
ask ward.db -c Age=1 --forbid do(Dose=high) --actor ann
status ward.db
status ward.db -c Age=1 --tolerance 0.01
status ward.db --evidence --rounds 50
explain ward.db 1
explain ward.db 2
evaluate ward.db ts
evaluate ward.db do(Dose=low)
import ward.db bad.csv --skip-bad --actor ann
import ward.db past.csv --again --actor ann
revise ward.db --problem other.toml --policy ts --reason euros --actor bob
ask ward.db -c Age=1 --actor ann
tell ward.db 7 Frailty=0 Recovery=1 --actor ann
erase ward.db 2 --reason asked --yes --actor bob
status ward.db
explain ward.db 7
export ward.db ward.csv
audit ward.db
new doubtful.db doubtful.toml --policy best --seed 7 --actor ann
ask doubtful.db --actor ann
tell doubtful.db 1 Y=1 --actor ann
status doubtful.db
explain doubtful.db 1
audit doubtful.db
token ward.db --role ask --name Zoe
token ward.db --role read --name ann --link
token ward.db
token ward.db --revoke 1
sensitivity task2
sensitivity ward.toml past.csv -c Age=1
"""
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?")
_HASH = re.compile(r"\b[0-9a-f]{12,}\b")
_SECRETS = ("secret", "token", "link")


def documents():
    """Return the content of `documents.json`."""
    return _session()[0]


def texts():
    """Return the content of `texts.json`."""
    return _session()[1]


@cache
def _session():
    data, sentences = {}, {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        files = {"ward.toml": WARD, "other.toml": OTHER_WARD, "doubtful.toml": DOUBTFUL}
        files |= {"past.csv": PAST, "bad.csv": BAD, "records.csv": RECORDS}
        for name, text in files.items():
            Path(name).write_text(text, encoding="utf-8")
        for number, line in enumerate(SESSION.splitlines(), 1):
            result = CliRunner().invoke(main, [*line.split(), "--json"], catch_exceptions=False)
            assert result.exit_code == 0, f"{line}: {result.output}"
            key = f"{number} {line}"
            data[key], sentences[key] = separated(json.loads(result.stdout), folder)
            notes = [line for line in result.stderr.splitlines() if line.startswith("Note:")]
            sentences[key] += [_stable(note, folder) for note in notes]
        data["serve"], sentences["serve"] = separated(_serve_document("ward.db"), folder)
        data["export"] = _stable(Path("ward.csv").read_text("utf-8"), folder).splitlines()
    return data, sentences


def _serve_document(store):
    """Return the document that `serve` prints when it is ready."""
    command = [sys.executable, "-m", "dowise", "serve", store, "--port", "0", "--json"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        text = ""
        for line in process.stdout:
            text += line
            with suppress(json.JSONDecodeError):
                return json.loads(text)
    finally:
        process.terminate()  # a shell's background jobs ignore SIGINT
        process.wait(30)
        process.stdout.close()
    raise AssertionError(f"serve printed no document: {text}")


def separated(document, folder, keep=False):
    """Return a document without sentences, and the sentences; `keep` keeps times and hashes."""
    sentences = []

    def strip(value, key=""):
        if isinstance(value, dict):
            return {_stable(str(name), folder): strip(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [strip(part, key) for part in value]
        if key.endswith("_seconds") and isinstance(value, (int, float)):
            return "<seconds>"
        if isinstance(value, float):
            return float(f"{value:.10g}")
        if not isinstance(value, str):
            return "<port>" if key == "port" else value
        if key in _SECRETS:
            return "<secret>"
        value = _stable(value, folder, keep)
        if len(value.split()) < 4 or value.startswith("do("):
            return value
        sentences.append(value)
        return "<text>"

    return strip(document), sentences


def _stable(text, folder, keep=False):
    """Replace what differs between runs and machines."""
    for path in (str(Path(folder).resolve()), folder):
        text = text.replace(path, "<folder>")
    text = text.replace(f"dowise {dowise.__version__}", "dowise <version>")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<port>", text)
    text = re.sub(r"/enter#\S+", "/enter#<secret>", text)
    return text if keep else _HASH.sub("<hash>", _TIME.sub("<time>", text))
