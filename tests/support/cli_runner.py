"""A command line in a folder, for tests of commands."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

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


class CommandLine:
    """Runs commands in the current folder, which has a problem file `ward.toml`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ward.toml").write_text(WARD)

    def run(self, *arguments, **options):
        return CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False, **options)

    def run_ok(self, *arguments):
        """Return what a command prints that must succeed."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def run_text(self, *arguments):
        """Return what a command prints that must succeed, without line breaks."""
        return " ".join(self.run_ok(*arguments).split())

    def run_json(self, *arguments):
        """Return the JSON document that a command prints."""
        return json.loads(self.run_ok(*arguments, "--json"))

    def error(self, *arguments, **options):
        """Return the message of a command that must fail: one line, and perhaps a hint."""
        result = self.run(*arguments, **options)
        is_json = "--json" in arguments
        assert result.exit_code == 2 and (is_json or result.stdout == ""), result.output
        message, *hints = result.stderr.splitlines(keepends=True)
        assert message.startswith("Error: ") and all(hint.startswith("Hint: ") for hint in hints)
        return message.removeprefix("Error: ")

    def error_code(self, *arguments):
        """Return the code of the error of a command that must fail."""
        result = self.run(*arguments, "--json")
        assert result.exit_code == 2, result.output
        return json.loads(result.stdout)["code"]

    def create(self, *arguments):
        """Create the experiment `ward` in `ward.db`."""
        return self.run_json("new", "ward.db", "ward.toml", "--seed", "7", *arguments)

    def write(self, name, text):
        """Write a file, and return its path."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        return path


def run_program(code):
    """Run code in a new interpreter; return the status, stdout and stderr."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr


def loaded_modules(words, candidates):
    """Return which of these modules a command loads in a new interpreter."""
    status, output, _ = run_program(
        "import sys; from dowise.cli.main import main\n"
        f"try: main({words!r})\n"
        "except SystemExit as end: status = end.code\n"
        f"print('\\n' + ' '.join(sorted({candidates!r} & set(sys.modules))))\n"
        "sys.exit(status)"
    )
    assert status == 0, output
    return output.splitlines()[-1].split()
