"""The constraints of `make check-lowest` name every library that pyproject.toml has a bound for."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_bound_is_a_constraint():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {*project["dependencies"]}.union(*project["optional-dependencies"].values())
    needed = {entry for entry in needed if not entry.startswith("dowise[")}
    shown = subprocess.run(
        [sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True, check=True
    )
    lines = shown.stdout.splitlines()
    assert "numpy==2.0" in lines and "lark==1.2.1" in lines and "psycopg==3.1.4" in lines
    named = {line.split("==")[0] for line in lines}
    left_out = {entry for entry in needed if re.split(r"[\[>=]", entry)[0] not in named}
    assert left_out == {"causalrl==3.0.0", "types-networkx"}
