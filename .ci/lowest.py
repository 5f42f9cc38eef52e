"""Prints constraints for the lowest versions that pyproject.toml names, for `make check-lowest`."""

import re
import tomllib
from pathlib import Path

text = (Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8")
project = tomllib.loads(text)["project"]
groups = [project["dependencies"], *project["optional-dependencies"].values()]
for requirement in sorted({entry for group in groups for entry in group}):
    bound = re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\w.]+)", requirement)
    if bound:
        print(f"{bound[1]}=={bound[2]}")
