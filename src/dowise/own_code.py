"""Code of the user's own, such as a policy or a world: what it consists of, in short.

A class is more than its own text: it has base classes, and calls what its module and the modules
beside it have. So the digest is over whole files, those of all modules of one's own that can be
reached by imports. It is read off the files; nothing is imported for it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from dowise.errors import is_own

__all__ = ["fingerprint", "is_ours"]


def is_ours(made_by: Callable[..., Any]) -> bool:
    """Whether a class or function is one of dowise's."""
    return made_by.__module__.partition(".")[0] == "dowise"


def fingerprint(made_by: Callable[..., Any]) -> str | None:
    """Of a class or function of one's own: its sources in short, so that a change is noticed.

    None for ours, which the version tells apart, and where there is no source to read.
    """
    if is_ours(made_by):
        return None
    owner = getattr(made_by, "__self__", made_by)  # a class method's is the class
    kinds = (owner if isinstance(owner, type) else type(owner)).__mro__
    parts = [text for part in (made_by, *kinds) for text in _texts(part)]
    modules = {made_by.__module__, *(kind.__module__ for kind in kinds)}
    files = _files(modules, made_by.__module__.partition(".")[0])
    parts += [part for name in sorted(files) for part in (name.encode(), files[name])]
    if not parts:
        return None
    digest = sha256()
    for part in parts:
        digest.update(b"%d\n" % len(part) + part)
    return digest.hexdigest()[:16]


def _texts(part: Any) -> Iterator[bytes]:
    """The source of a function, or of a class of no file's, whose methods alone can be found."""
    module = sys.modules.get(part.__module__)
    if isinstance(part, type):
        if module is None or getattr(module, "__file__", None) or module.__name__ == "builtins":
            return
        for method in filter(inspect.isfunction, vars(part).values()):
            yield from _texts(method)
        return
    # Code that is made from a text has the same file name as `python -c`, whose text is another.
    is_made = getattr(getattr(part, "__code__", None), "co_filename", "") == "<string>"
    if is_made and part.__module__ != "__main__":
        return
    with suppress(OSError, TypeError):
        yield inspect.getsource(part).encode()


def _files(modules: set[str], package: str) -> dict[str, bytes]:
    """The files of these modules and of what they import, by name, as far as they are one's own.

    Those of this package are, even where it is installed.
    """
    found: dict[str, bytes] = {}
    waiting = {*modules}
    while waiting:
        name = waiting.pop()
        file = _file_of(name)
        if name in found or file is None or name.partition(".")[0] == "dowise":
            continue
        if is_own(file) or name.partition(".")[0] == package:
            with suppress(OSError):
                found[name] = Path(file).read_bytes()
                waiting |= {*_imports(name, file, found[name]), *_held(name)}
    return found


def _file_of(name: str) -> str | None:
    """Where a module is, or would be found."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__file__", None)
    spec = _spec_of(name)
    return spec.origin if spec is not None and spec.has_location else None


def _spec_of(name: str) -> ModuleSpec | None:
    """As `import` would find it, but the packages that it lies in are not imported."""
    parent, where = name.rpartition(".")[0], None
    if parent:
        where = getattr(sys.modules.get(parent), "__path__", None)
        if where is None and parent not in sys.modules:
            spec = _spec_of(parent)
            where = spec.submodule_search_locations if spec is not None else None
        if where is None:
            return None
    for finder in sys.meta_path:
        with suppress(Exception):  # whatever finders of others may raise
            spec = finder.find_spec(name, where)
            if spec is not None:
                return spec
    return None


def _imports(name: str, file: str, text: bytes) -> Iterator[str]:
    """What a file imports, wherever that stands in it; names that are no modules among them."""
    package = getattr(sys.modules.get(name), "__package__", None)
    if package is None:
        package = name if Path(file).stem == "__init__" else name.rpartition(".")[0]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # compiled, or changed since it was imported
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # beyond the outermost package
                base = resolve_name("." * node.level + (node.module or ""), package)
                yield from _with_packages(base)
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _with_packages(name: str) -> Iterator[str]:
    """A module's name, and those of the packages that it lies in."""
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _held(name: str) -> Iterator[str]:
    """The modules that a module has under a name, and those of its classes and functions.

    They need not have come by an import statement.
    """
    for value in list(vars(sys.modules[name]).values()) if name in sys.modules else []:
        if inspect.ismodule(value):
            yield value.__name__
        elif inspect.isclass(value) or inspect.isfunction(value):
            yield value.__module__
