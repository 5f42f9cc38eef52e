"""Rules for the sources: kernels release the GIL, and names mean one thing."""

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from pathlib import Path

import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import dowise

PACKAGE = Path(dowise.__file__).parent
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(dowise.__path__, "dowise.")
    if name != "dowise.__main__"
]


def test_kernels_release_the_gil():
    kernels = {
        (value.py_func.__module__, value.py_func.__name__): value
        for name in MODULES
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, Dispatcher)
    }
    assert len(kernels) > 40
    for name, kernel in kernels.items():
        # Functions without a cache are parts of kernels and never called from Python.
        assert kernel.targetoptions.get("nogil") or isinstance(kernel._cache, NullCache), name


@pytest.mark.slow
def test_compiled_functions_that_python_calls_release_the_gil():
    calls = [
        (name, function.name, kernel)
        for name in MODULES
        for function in python_functions(importlib.import_module(name))
        for kernel in compiled_calls(importlib.import_module(name), function)
    ]
    assert len(calls) > 40
    for name, function, kernel in calls:
        assert kernel.targetoptions.get("nogil"), (name, function, kernel)


def python_functions(module):
    """Yield the functions of a module that are not compiled."""
    compiled = {v.py_func.__name__ for v in vars(module).values() if isinstance(v, Dispatcher)}
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    for node in ast.walk(tree):  # numba compiles what an overload returns
        if isinstance(node, ast.FunctionDef) and any(
            isinstance(x, ast.Call) and getattr(x.func, "id", "") == "overload"
            for x in node.decorator_list
        ):
            compiled |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name not in compiled:
            yield node


def compiled_calls(module, function):
    """Yield the compiled functions that a function calls, by name or as an attribute."""
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name):
            value = vars(module).get(called.id)
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            value = getattr(vars(module).get(called.value.id), called.attr, None)
        else:
            continue
        if isinstance(value, Dispatcher):
            yield value


def test_class_names_are_unique():
    modules = defaultdict(list)
    for path in sorted(PACKAGE.parent.glob("dowise*/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules[node.name].append(str(path.relative_to(PACKAGE.parent)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_messages_of_experiments_fit_every_surface():
    """They name verbs and arguments in backticks, not commands and options."""
    exceptions = ("dowise new STORE", "--policy-module", "(evidence=True, --evidence)")
    exceptions += ("pip install ",)
    for path in (PACKAGE / "experiment").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(getattr(node, "body", None), list)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if not is_text or id(node) in docstrings:
                continue
            if not any(part in node.value for part in exceptions):
                command = re.search(r"`dowise |dowise new|\s\(?--[a-z]", f" {node.value}")
                assert not command, (path.name, node.value)
