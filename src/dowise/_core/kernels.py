"""Kernels: how they are compiled, where they are kept, and what is said meanwhile.

Numba compiles a kernel when it is first called, and keeps the result on disk. It looks at the file
of a kernel to see whether that is still right, not at what the kernel calls or takes from other
files. So the folder of our kernels is named by a digest of all sources that a kernel can depend on:
what was compiled from other sources is never found. Compiled kernels are executable code: a folder
that belongs to somebody else, or that others may write to, is not used.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]
_NO_KERNELS = ("cli", "client", "experiment", "testing")  # layers: docs/architecture.md
_LONG = 7 * 24 * 3600.0  # seconds
_NOTICE = (
    "dowise: compiling what is needed here, which takes a while; each part is compiled once and "
    "kept …\n"
)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, kept in our folder and without Python's lock while it runs."""
    import numba

    _listen()
    # Python's own checks of every division would cost time to compile and to run.
    settings: dict[str, Any] = {"nogil": True, "error_model": "numpy"} | options

    def decorate(function: Callable[..., Any]) -> Any:
        folder = cache_directory()
        if folder is None:
            return numba.njit(**settings)(function)
        with _kept_in(folder):
            return numba.njit(cache=True, **settings)(function)

    return decorate


class Kernels:
    """The kernels of a module, which is imported when the first of them is asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._module), name)
        setattr(self, name, found)
        return found


def lazy_kernels(module: str) -> Any:
    """The kernels of this module; numba is not loaded before one of them is needed."""
    return Kernels(module)


@cache
def cache_directory() -> Path | None:
    """Where compiled kernels are kept: beside the sources, else at the user's, else for a while.

    NUMBA_CACHE_DIR, where it is set, goes first. None where nothing at all can be written.
    """
    name = f"kernels-{kernel_digest()}"
    for base in _bases():
        folder = base / name
        if _is_ours(folder):
            _clear_away(folder)
            return folder
    try:
        fresh = Path(tempfile.mkdtemp(prefix="dowise-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return fresh


def private_directory(name: str) -> Path | None:
    """A folder of this name beside that of the kernels; None where nothing can be written."""
    kernels = cache_directory()
    if kernels is None:
        return None
    # A folder that lasts is one of ours among others; one for a while stands in everybody's.
    folder = (kernels.parent if kernels.name.startswith("kernels-") else kernels) / name
    return folder if _is_ours(folder) else None


def _bases() -> Iterator[Path]:
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        yield Path(given) / "dowise"
    yield _PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dowise"
    who = os.geteuid() if hasattr(os, "geteuid") else os.environ.get("USERNAME", "user")
    yield Path(tempfile.gettempdir()) / f"dowise-{who}"


def _is_ours(folder: Path) -> bool:
    """Whether the folder is there, or could be made, and nobody but this user can change it."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(folder.parent):
            return False
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            os.utime(folder)
        return _is_private(folder)
    except OSError:
        return False


def _clear_away(folder: Path) -> None:
    """Remove what was kept of other sources and not used for long; every start marks its folder."""
    for other in folder.parent.glob("kernels-*"):
        with suppress(OSError):
            if other != folder and time.time() - other.stat().st_mtime > _LONG:
                shutil.rmtree(other, ignore_errors=True)


def _is_private(folder: Path) -> bool:
    if not hasattr(os, "geteuid"):  # Windows keeps these folders to their users by itself
        return True
    found = folder.lstat()
    is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_own and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def source_digest() -> str:
    """Of all sources of the package, in short."""
    return _digest(sorted(_PACKAGE.rglob("*.py")))


@cache
def kernel_digest() -> str:
    """Of the sources that a kernel can take anything from; the layers right of them are none."""
    every = sorted(_PACKAGE.rglob("*.py"))
    return _digest([p for p in every if p.relative_to(_PACKAGE).parts[0] not in _NO_KERNELS])


def _digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Numba takes the folder from its settings when a function is decorated."""
    import numba

    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def _listen() -> None:
    """Say so, once, when one of our kernels has to be compiled."""
    from numba.core import event

    class Herald(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            compiled = event.data["dispatcher"].py_func.__module__
            if not self.said and compiled.startswith("dowise."):
                self.said = True
                sys.stderr.write(_NOTICE)
                sys.stderr.flush()

        def on_end(self, event: Any) -> None:
            pass

    register: Callable[[str, event.Listener], None] = event.register
    register("numba:compile", Herald())
