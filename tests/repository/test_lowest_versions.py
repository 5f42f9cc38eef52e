"""`make check-lowest` installs the lowest version of every dependency."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_bound_is_a_constraint():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = {*project["dependencies"]}.union(*project["optional-dependencies"].values())
    requirements = {entry for entry in requirements if not entry.startswith("dowise[")}
    result = subprocess.run(
        [sys.executable, ROOT / ".ci" / "lowest.py"], capture_output=True, text=True, check=True
    )
    lines = result.stdout.splitlines()
    assert "numpy==2.0" in lines and "lark==1.2.1" in lines and "psycopg==3.1.4" in lines
    constrained = {line.split("==")[0] for line in lines}
    left_out = {entry for entry in requirements if re.split(r"[\[>=]", entry)[0] not in constrained}
    assert left_out == {"causalrl==3.0.0", "types-networkx"}
