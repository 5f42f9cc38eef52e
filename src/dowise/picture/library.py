"""Matplotlib, once it has a folder to write to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import ModuleType

from dowise.compiling import private_folder
from dowise.errors import import_extra

__all__ = ["matplotlib_part"]

_PLACES = (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))


def matplotlib_part(name: str, purpose: str = "a picture") -> ModuleType:
    """A module of matplotlib, such as "figure", or an error that says how to install it.

    Where it could not write to its folders, those of an account without a home say, it would warn
    at length each time and begin anew: there it gets a folder beside our compiled kernels.
    """
    if not os.environ.get("MPLCONFIGDIR") and not all(map(_is_writable, _own_folders())):
        folder = private_folder("matplotlib")
        if folder is not None:
            os.environ["MPLCONFIGDIR"] = str(folder)
    return import_extra(f"matplotlib.{name}", "simulate", purpose)


def _own_folders() -> list[Path | None]:
    """Where matplotlib keeps its settings and what it works out; None where there is no home."""
    return [_own_folder(variable, usual) for variable, usual in _PLACES]


def _own_folder(variable: str, usual: str) -> Path | None:
    given = os.environ.get(variable)
    try:
        return Path(given or Path.home() / usual) / "matplotlib"
    except RuntimeError:
        return None


def _is_writable(folder: Path | None) -> bool:
    if folder is None:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
