"""Golden files: what the present code does, recorded so that a change of structure shows.

    python -m tests.golden.record              # renew all of them
    python -m tests.golden.record decisions    # renew some: the names are those of the files

Run it in the root of the repository. Where a test of this folder fails and the change is meant,
renew that file and say in the commit what changed and why. Every file has one line per entry, so
that `git diff` shows the entries that changed.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PARTS = {  # file without its suffix: module and function that give its content
    "decisions": "decisions:long_runs",
    "decision_cases": "decisions:cases",
    "small_priors": "decisions:small_priors",
    "trials": "trials:digests",
    "surface": "surface:names",
    "openapi": "surface:http",
    "options": "surface:options",
    "help": "surface:helps",
    "documents": "commands:documents",
    "texts": "commands:texts",
    "store_documents": "stores:documents",
    "store_texts": "stores:texts",
    "walks": "walk:walks",
}


def content(part):
    """Compute what a golden file holds."""
    module, _, function = PARTS[part].partition(":")
    return getattr(importlib.import_module(f"golden.{module}"), function)()


def recorded(part):
    """Read a golden file: data from JSON, or a text."""
    file = FOLDER / f"{part}.json"
    if file.exists():
        return json.loads(file.read_text("utf-8"))
    return file.with_suffix(".txt").read_text("utf-8")


def as_recorded(data):
    """Return data as they come back from a golden file: tuples as lists, keys as text."""
    return json.loads(json.dumps(data))


def assert_close(value, expected, name=""):
    """Compare data exactly, but floats within what compilers may do to the last digits."""
    if isinstance(expected, dict):
        assert value.keys() == expected.keys(), name
        for key in expected:
            assert_close(value[key], expected[key], f"{name}/{key}")
    elif isinstance(expected, list):
        assert isinstance(value, list) and len(value) == len(expected), name
        for index, part in enumerate(expected):
            assert_close(value[index], part, f"{name}/{index}")
    elif isinstance(expected, float) and isinstance(value, (int, float)):
        assert abs(value - expected) <= max(1e-9 * abs(expected), 1e-12), name
    else:
        assert value == expected, name


def write(part, data):
    """Write a golden file: a text as it is, data with one line per entry."""
    if isinstance(data, str):
        (FOLDER / f"{part}.txt").write_text(data, encoding="utf-8")
        return
    lines = [
        f"{json.dumps(key, ensure_ascii=False)}:{json.dumps(entry, ensure_ascii=False, **_COMPACT)}"
        for key, entry in data.items()
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (FOLDER / f"{part}.json").write_text(text, encoding="utf-8")


_COMPACT = {"separators": (",", ":")}


def main(parts):
    """Renew golden files."""
    sys.path.insert(0, str(FOLDER.parent))
    unknown = sorted({*parts} - {*PARTS})
    if unknown:
        sys.exit(f"unknown parts: {', '.join(unknown)} (expected {', '.join(PARTS)})")
    for part in parts or PARTS:
        write(part, content(part))
        sys.stdout.write(f"{part}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
