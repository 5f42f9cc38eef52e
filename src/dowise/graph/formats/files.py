"""Reading and writing files so that whatever goes wrong is said with the path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dowise.errors import DowiseError

__all__ = ["existing_file", "read_file", "write_file"]

Result = TypeVar("Result")


def existing_file(path: str | Path) -> Path:
    """The path, once it is known to lead to a file."""
    path = _path(path)
    try:
        if path.is_dir():
            raise DowiseError(f"{path} is a folder: give the path of a file in it")
        if not path.exists():
            raise DowiseError(f"{path}: there is no such file")
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise DowiseError(f"{str(path)[:80]}: can't be read ({error.strerror})") from None
    return path


def read_file(path: str | Path, parse: Callable[[str], Result]) -> Result:
    """Parse the text of a file, which must be UTF-8."""
    path = existing_file(path)
    try:
        # Bytes, so that a carriage return inside a quoted name survives; utf-8-sig drops the
        # byte order mark that some editors put first.
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DowiseError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise DowiseError(
            f"{path}: byte {error.start + 1} is not UTF-8 text: save the file as UTF-8"
        ) from None
    if not text.strip():
        raise DowiseError(f"{path}: the file is empty")
    try:
        return parse(text)
    except DowiseError as error:
        error.args = (f"{path}: {error}",)
        raise


def write_file(path: str | Path, text: str) -> None:
    """Write a text as UTF-8, with the line ends that it has."""
    path = _path(path)
    try:
        path.write_bytes(text.encode())
    except UnicodeEncodeError as error:
        raise DowiseError(f"{path}: {error.object[error.start]!r} can't be written") from None
    except OSError as error:
        raise DowiseError(f"{path}: can't be written ({error.strerror})") from None


def _path(given: str | Path) -> Path:
    if not isinstance(given, str | Path):
        raise DowiseError(f"{given!r} is not a path: give a text or a pathlib.Path")
    return Path(given)
