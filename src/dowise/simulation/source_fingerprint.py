"""Fingerprints of the sources of user code, so that a change of a policy or world is noticed."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from dowise.errors import is_user_code


def is_builtin(factory: Callable[..., Any]) -> bool:
    """Return True if a class or function belongs to dowise."""
    return factory.__module__.partition(".")[0] == "dowise"


def source_fingerprint(factory: Callable[..., Any]) -> str | None:
    """Return a digest of the sources of user code, so that a change is noticed.

    The digest covers the files of the class or function and of its base classes, and all files of
    their packages, but no other imports. It is None for built-ins, which the version identifies,
    and for code without a source.
    """
    if is_builtin(factory):
        return None
    owner = getattr(factory, "__self__", factory)  # the class of a class method
    classes = (owner if isinstance(owner, type) else type(owner)).__mro__
    parts = [text for part in (factory, *classes) for text in _source_texts(part)]
    package = factory.__module__.partition(".")[0]
    files: set[Path] = set()
    for name in {factory.__module__, *(base.__module__ for base in classes)}:
        module, root = sys.modules.get(name), name.partition(".")[0]
        file = getattr(module, "__file__", None)
        if file is None or root == "dowise" or not (is_user_code(file) or root == package):
            continue
        files.add(Path(file))
        for folder in getattr(sys.modules.get(root), "__path__", ()):
            files.update(Path(folder).rglob("*.py"))
    for path in sorted(files):
        with suppress(OSError):
            parts += [path.name.encode(), path.read_bytes()]
    if not parts:
        return None
    digest = sha256()
    for part in parts:
        digest.update(b"%d\n" % len(part) + part)
    return digest.hexdigest()[:16]


def _source_texts(part: Any) -> Iterator[bytes]:
    """Yield the source of a function, or of the methods of a class that is not in a file."""
    module = sys.modules.get(part.__module__)
    if isinstance(part, type):
        if module is None or getattr(module, "__file__", None) or module.__name__ == "builtins":
            return
        for method in filter(inspect.isfunction, vars(part).values()):
            yield from _source_texts(method)
        return
    # Code compiled from a string has the file name of `python -c`, but another text.
    is_string = getattr(getattr(part, "__code__", None), "co_filename", "") == "<string>"
    if is_string and part.__module__ != "__main__":
        return
    with suppress(OSError, TypeError):
        yield inspect.getsource(part).encode()
