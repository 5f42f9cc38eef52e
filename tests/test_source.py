"""Rules that the source keeps: kernels release the GIL."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

import dowise

SOURCES = sorted(Path(dowise.__file__).parent.rglob("*.py"))
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(dowise.__path__, "dowise.")
    if name != "dowise.__main__"
]


def test_kernels_release_the_gil():
    found = {}
    for name in MODULES:
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Dispatcher):
                found[value.py_func.__module__, value.py_func.__name__] = value
    assert len(found) > 40
    for where, kernel in found.items():
        # What is not kept on disk is a part of kernels, and never called by itself.
        assert kernel.targetoptions.get("nogil") or isinstance(kernel._cache, NullCache), where


@pytest.mark.slow
def test_whatever_is_called_of_compiled_code_lets_other_threads_run():
    called = 0
    for name in MODULES:
        module = importlib.import_module(name)
        for function in _in_python(module):
            for kernel in _compiled_in(module, function):
                called += 1
                assert kernel.targetoptions.get("nogil"), (name, function.name, kernel)
    assert called > 40


def _in_python(module):
    """The functions of a module that are not compiled themselves."""
    own = {v.py_func.__name__ for v in vars(module).values() if isinstance(v, Dispatcher)}
    for node in ast.walk(ast.parse(Path(module.__file__).read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name not in own:
            yield node


def _compiled_in(module, function):
    """What a function calls of compiled code, by its name or as a part of something."""
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name):
            found = vars(module).get(called.id)
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            found = getattr(vars(module).get(called.value.id), called.attr, None)
        else:
            continue
        if isinstance(found, Dispatcher):
            yield found


def test_what_experiments_say_is_right_for_commands_methods_and_requests_alike():
    """They name verbs and arguments, which are the same everywhere, not commands and options."""
    both = ("dowise new STORE", "--policy-module", "(evidence=True, --evidence)", "pip install ")
    for path in SOURCES:
        if "experiment" not in path.parts:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        told = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if hasattr(node, "body") and isinstance(node.body, list) and node.body
            and isinstance(node.body[0], ast.Expr)
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                is_said = id(node) not in told and not any(part in node.value for part in both)
                odd = re.search(r"`dowise |dowise new|\s\(?--[a-z]", f" {node.value}")
                assert not (is_said and odd), (path.name, node.value)
