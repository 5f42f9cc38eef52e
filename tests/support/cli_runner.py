"""What tests of commands on a live experiment share."""

import json
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


class Desk:
    """A folder with a problem file, in which commands are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ward.toml").write_text(WARD)

    def run(self, *arguments, **more):
        return CliRunner().invoke(main, [*map(str, arguments)], catch_exceptions=False, **more)

    def well(self, *arguments):
        """What a command prints that must succeed."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments):
        """The one document that a command prints."""
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def fails(self, *arguments, **more):
        """Return the message of a command that must fail: one line, and perhaps a hint."""
        result = self.run(*arguments, **more)
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

    def begin(self, *arguments):
        return self.json("new", "ward.db", "ward.toml", "--seed", "7", *arguments)


def one_line(text):
    """What is printed, however it was wrapped."""
    return " ".join(text.split())
