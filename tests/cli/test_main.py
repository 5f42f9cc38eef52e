"""The command `dowise`: help, errors, warnings, encodings and interrupts."""

import errno
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.cli_runner import loaded_modules, run_program

import dowise
from dowise.cli.main import _make_warning_printer, main
from dowise.errors import DowiseWarning
from dowise.experiment import Experiment

HEAVY = {"numpy", "numba", "networkx", "lark", "rich", "matplotlib", "pandas"}


def test_version_is_that_of_the_project(cli):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    version = project["project"]["version"]
    assert cli.run_ok("--version") == f"dowise {version}\n" and dowise.__version__ == version


def test_help_lists_every_command_once_in_the_order_of_use(cli):
    output = cli.run_ok("--help")
    for name in main.commands:
        assert len(re.findall(rf"^  {name} ", output, re.MULTILINE)) == 1, name
    parts = ("\nBefore you begin:\n", "\n  rehearse ", "\nLive experiments:\n  new ", "\n  ask ")
    parts += ("\n  tell ", "\n  status ", "\n  audit ", "\n  token ", "\nResearch:\n")
    positions = [output.index(part) for part in parts]
    assert positions == sorted(positions)


def test_help_loads_no_heavy_library():
    assert loaded_modules(["--help"], HEAVY) == []


@pytest.mark.parametrize("command", ["arms", "formulas"])
def test_a_terminal_without_greek_letters_and_a_full_disk_show_no_traceback(command):
    program = [sys.executable, "-m", "dowise", command, "task1"]
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run(program, capture_output=True, env=latin, check=False)
    assert result.returncode == 0 and result.stderr == b""
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            result = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, check=False)
        assert result.returncode == 2 and b"cannot write the output" in result.stderr
        assert b"Traceback" not in result.stderr


def test_names_that_look_like_markup_are_printed_as_they_are(cli):
    cli.write("odd.toml", 'graph = \'"[bold]X[/]" -> Y\'\nreward = "Y"\n')
    output = cli.run_text("arms", "odd.toml")
    assert "{[bold]X[/]}" in output and "you can set [bold]X[/]" in output


def test_json_errors_have_a_code_and_the_message(cli):
    result = cli.run("ask", "away.db", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 2 and document["code"] == "not-found"
    assert result.stderr == f"Error: {document['error']}\n"
    assert cli.error_code("tell", "away.db", "first", "Recovery=1") == "invalid-number"


def test_options_in_errors_are_named_as_typed(cli):
    message = cli.error("bounds", "task1", "--horizon", "1000000000000")
    assert message.startswith("--horizon 1000000000000 must be")


def raising(error):
    def function(*_arguments, **_options):
        raise error

    return function


def test_an_interrupt_is_one_line(cli, monkeypatch):
    monkeypatch.setattr("dowise.simulation.bounds", raising(KeyboardInterrupt))
    monkeypatch.setattr(Experiment, "ask_many", raising(KeyboardInterrupt))
    cli.create()
    for words in ("bounds task1 --horizon 10", "ask ward.db -c Age=1"):
        result = cli.run(*words.split())
        assert (result.exit_code, result.stdout) == (130, "") and result.stderr == "\nStopped.\n"


def test_an_error_of_the_operating_system_names_the_file(cli, monkeypatch):
    error = PermissionError(13, "Permission denied", "/runs/first")
    monkeypatch.setattr("dowise.simulation.simulate", raising(error))
    message = cli.error("simulate", "task1", "--policies", "ts")
    assert message == "cannot read or write /runs/first: Permission denied\n"


def test_a_broken_pipe_to_another_process_is_an_error(cli, monkeypatch):
    error = BrokenPipeError(errno.EPIPE, "Broken pipe")
    monkeypatch.setattr("dowise.cli.problems.read_problem", raising(error))
    assert cli.error("arms", "task1") == "cannot write the output: Broken pipe\n"


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_and_those_of_others_pass_through(cli, capsys, monkeypatch):
    others = []
    monkeypatch.setattr("dowise.cli.main._default_showwarning", lambda *args: others.append(args))
    show = _make_warning_printer()
    show("odd", RuntimeWarning, "h.py", 7)
    show("known", DowiseWarning, "h.py", 8)
    show("known", DowiseWarning, "elsewhere.py", 9)  # printed once
    assert others == [("odd", RuntimeWarning, "h.py", 7)]
    assert capsys.readouterr().err == "Note: known\n"
    cli.write("w.toml", 'graph = "C -> X -> Y; C -> Y"\nreward = "Y"\ncontext = "C"\n')
    cli.write("past.csv", "arm,C,Y\ndo(X=1),0,\ndo(X=0),1,\n")
    result = cli.run("new", "w.db", "w.toml", "--data", "past.csv")
    assert "Note: 2 records, none with a value of the reward" in result.stderr


def test_a_missing_extra_is_one_line(cli):
    cli.create()
    status, output, error = run_program(
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from dowise.cli.main import main\n"
        "main(['ask', 'ward.db', '-c', 'Age=1'])"
    )
    assert status == 2 and output == "" and len(error.splitlines()) == 1
    assert "pip install 'dowise[live]'" in error
