"""What says what a folder of ours has: a JSON file with a checksum over all that it says.

A folder without one is ours only if it is new or empty; so nothing of anybody's is overwritten.
Drafts, which a stop in the middle of writing may leave behind (`dowise.files`), do not count.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from dowise.errors import DowiseError
from dowise.files import DRAFT, write_text

__all__ = ["check_same", "contents", "digest_of", "make_folder", "read_manifest", "write_manifest"]

_CHECKSUM = "sha256"
_PLAYERS = ("dowise", "sources")
_SEVERAL = ("trials", "samples")


def read_manifest(path: Path) -> dict[str, Any] | None:
    """What the file says, once its checksum fits; None where there is no such file."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # the latter: a name that can't be
        reason = getattr(error, "strerror", None) or error
        raise DowiseError(f"{path}: can't be read ({reason})") from None
    try:
        said = json.loads(text)
        checksum = said.pop(_CHECKSUM, None)
    except (ValueError, TypeError, AttributeError, RecursionError):  # no JSON, or no object
        said = checksum = None
    if said is not None and checksum is None:
        raise DowiseError(
            f"{path} has no checksum, so an earlier version of dowise wrote it, and what is there "
            "can't be verified: name another folder as out"
        )
    if said is None or digest_of(said) != checksum:
        raise DowiseError(
            f"{path} is damaged, its checksum does not fit: put a copy of it back, or name another "
            "folder as out"
        )
    return dict(said)


def write_manifest(path: Path, said: dict[str, Any], lasting: bool = True) -> None:
    """Write it with its checksum, whole or not at all; `lasting` as in `write_text`."""
    text = json.dumps({**said, _CHECKSUM: digest_of(said)}, indent=2, ensure_ascii=False)
    write_text(path, text + "\n", lasting)


def digest_of(said: Any) -> str:
    """Of data as JSON has it."""
    return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def contents(folder: Path) -> list[Path]:
    """What is in a folder, drafts aside; nothing where it is not there yet."""
    try:
        return [path for path in folder.iterdir() if path.suffix != DRAFT]
    except FileNotFoundError:
        return []
    except NotADirectoryError:
        raise DowiseError(f"{folder} is a file, or lies in one: name a new folder as out") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DowiseError(f"{folder}: can't be read ({reason})") from None


def make_folder(folder: Path) -> None:
    """Make a folder and those that it lies in, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DowiseError(f"{folder}: can't be made ({error.strerror})") from None


def check_same(folder: Path, what: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise where what is to be done differs from what a folder has, in words."""
    if any(found[part] != wanted[part] for part in _PLAYERS):
        raise DowiseError(
            f"{folder} has {what} by other sources of dowise ({found['dowise']}), which may play "
            "otherwise: name another folder as out"
        )
    differs = _difference(found, wanted)
    if differs:
        raise DowiseError(
            f"{folder} has another {what.removeprefix('a ')}: its {differs}; name another folder "
            "as out, or remove this one"
        )


def _difference(found: Any, wanted: Any) -> str:
    """The first place where two specifications differ; empty where they do not."""
    for key in [*found, *(key for key in wanted if key not in found)]:
        if key not in found or key not in wanted:
            return f"{'lack' if key not in found else 'have'} {key}"
        here, there = found[key], wanted[key]
        if isinstance(here, dict) and isinstance(there, dict):
            inner = _difference(here, there)
            if inner:
                return f"{key} {inner}"
        elif here != there:
            return f"{key} {'are' if key in _SEVERAL else 'is'} {here!r}, not {there!r}"
    return ""
