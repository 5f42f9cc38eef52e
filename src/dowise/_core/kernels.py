"""Compiled kernels: decorator, lazy loading and cache directory.

Numba compiles a kernel on its first call and caches the result on disk. It checks the file of the
kernel only, not the files of what the kernel calls. So the cache directory is named by a digest of
all sources on which a kernel can depend: results of other sources are never found. Compiled kernels
are executable code: a directory that another user owns or may write to is not used.
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
_STALE_AFTER = 7 * 24 * 3600.0  # seconds
_NOTICE = "dowise: compiling, which takes a while; the result is cached …\n"


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile with `numba.njit`, cached in our directory, releasing the GIL."""
    import numba

    _announce_compilation()
    # Python's checks of every division would cost time to compile and to run.
    settings: dict[str, Any] = {"nogil": True, "error_model": "numpy"} | options

    def decorate(function: Callable[..., Any]) -> Any:
        folder = cache_directory()
        if folder is None:
            return numba.njit(**settings)(function)
        with _numba_cache(folder):
            return numba.njit(cache=True, **settings)(function)

    return decorate


class Kernels:
    """Kernels of a module, which is imported when the first of them is used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        function = getattr(importlib.import_module(self._module), name)
        setattr(self, name, function)
        return function


def lazy_kernels(module: str) -> Any:
    """Return the kernels of a module; numba is not loaded before one of them is used."""
    return Kernels(module)


@cache
def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, or None if nothing can be written.

    Candidates are NUMBA_CACHE_DIR, the folder of the sources, the user's cache directory, and a
    temporary directory that is removed at exit.
    """
    name = f"kernels-{kernel_digest()}"
    for base in _bases():
        folder = base / name
        if _is_ours(folder):
            _remove_stale(folder)
            return folder
    try:
        fresh = Path(tempfile.mkdtemp(prefix="dowise-"))
    except OSError:
        return None
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return fresh


def private_directory(name: str) -> Path | None:
    """Return a private directory beside that of the kernels; None if nothing can be written."""
    kernels = cache_directory()
    if kernels is None:
        return None
    # A temporary directory has public neighbours, so the new one goes inside it.
    folder = (kernels.parent if kernels.name.startswith("kernels-") else kernels) / name
    return folder if _is_ours(folder) else None


def _bases() -> Iterator[Path]:
    directory = os.environ.get("NUMBA_CACHE_DIR")
    if directory:
        yield Path(directory) / "dowise"
    yield _PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dowise"
    user = os.geteuid() if hasattr(os, "geteuid") else os.environ.get("USERNAME", "user")
    yield Path(tempfile.gettempdir()) / f"dowise-{user}"


def _is_ours(folder: Path) -> bool:
    """Create the folder if necessary; return True if only this user can write to it."""
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


def _remove_stale(folder: Path) -> None:
    """Remove caches of other sources that were not used recently; each start touches its own."""
    for other in folder.parent.glob("kernels-*"):
        with suppress(OSError):
            if other != folder and time.time() - other.stat().st_mtime > _STALE_AFTER:
                shutil.rmtree(other, ignore_errors=True)


def _is_private(folder: Path) -> bool:
    if not hasattr(os, "geteuid"):  # on Windows these folders are private anyway
        return True
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def source_digest() -> str:
    """Return a short digest of all sources of the package."""
    return _digest(sorted(_PACKAGE.rglob("*.py")))


@cache
def kernel_digest() -> str:
    """Return a short digest of the sources on which kernels can depend."""
    paths = sorted(_PACKAGE.rglob("*.py"))
    return _digest([p for p in paths if p.relative_to(_PACKAGE).parts[0] not in _NO_KERNELS])


def _digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


@contextmanager
def _numba_cache(folder: Path) -> Iterator[None]:
    """Set numba's cache directory, which it reads when a function is decorated."""
    import numba

    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def _announce_compilation() -> None:
    """Print a notice, once, when one of our kernels has to be compiled."""
    from numba.core import event

    class Announcer(event.Listener):
        is_done = False

        def on_start(self, event: Any) -> None:
            compiled = event.data["dispatcher"].py_func.__module__
            if not self.is_done and compiled.startswith("dowise."):
                self.is_done = True
                sys.stderr.write(_NOTICE)
                sys.stderr.flush()

        def on_end(self, event: Any) -> None:
            pass

    register: Callable[[str, event.Listener], None] = event.register
    register("numba:compile", Announcer())
