"""Fingerprints of user code change with its file, its base classes and its package."""

import importlib
import linecache
import sys
from textwrap import dedent
from types import ModuleType

import pytest

from dowise import Environment
from dowise.policies.thompson import ThompsonSampling
from dowise.simulation.source_fingerprint import source_fingerprint

FILES = {
    "custom_policies.py": """\
        import custom_base
        from custom_numbers import RATE
        from custom_package import tools
        class Policy(custom_base.Base):
            def decide(self):
                from custom_lazy import late
                return late(), RATE, tools
        def make(problem):
            return Policy(problem)
        """,
    "custom_base.py": """\
        class Base:
            def __init__(self, problem):
                pass
            @classmethod
            def create(cls, problem):
                return cls(problem)
        """,
    "custom_numbers.py": "RATE = 3\n",
    "custom_lazy.py": "import json, numpy\ndef late(): return 1\n",
    "custom_package/__init__.py": "",
    "custom_package/tools.py": "from . import deep\n",
    "custom_package/deep.py": "import custom_policies\n",  # a circular import
    "custom_package/policy.py": "def make(problem): pass\n",
    "custom_unused.py": "",
}


@pytest.fixture
def fingerprint(tmp_path, monkeypatch):
    """Return a function that imports all modules again and fingerprints a class or function."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text))

    def remove_modules():
        for name in [name for name in sys.modules if name.startswith("custom_")]:
            del sys.modules[name]

    def fingerprint(name, module="custom_policies"):
        remove_modules()
        importlib.invalidate_caches()
        value = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
        return source_fingerprint(value)

    yield fingerprint
    remove_modules()


@pytest.mark.parametrize("name", ["Policy", "make", "Policy.create"])
def test_a_fingerprint_changes_with_its_own_file_and_base_classes(fingerprint, tmp_path, name):
    before = fingerprint(name)
    assert len(before) == 16 and fingerprint(name) == before
    changed = set()
    for file in FILES:
        text = (tmp_path / file).read_text()
        (tmp_path / file).write_text(text + "\nMORE = 1\n")
        if fingerprint(name) != before:
            changed.add(file)
        (tmp_path / file).write_text(text)
    assert changed == {"custom_policies.py", *(["custom_base.py"] if name != "make" else [])}
    assert "custom_lazy" not in sys.modules


def test_a_fingerprint_changes_with_any_file_of_its_package(fingerprint, tmp_path):
    before = fingerprint("make", "custom_package.policy")
    (tmp_path / "custom_package" / "deep.py").write_text("RATE = 3\n")
    assert fingerprint("make", "custom_package.policy") != before


def test_functions_of_one_file_have_different_fingerprints():
    def first(problem):
        return problem

    def second(problem):
        return [problem]

    assert source_fingerprint(first) == source_fingerprint(first) != source_fingerprint(second)


def test_builtins_and_code_without_a_source_have_no_fingerprint():
    assert source_fingerprint(ThompsonSampling) is source_fingerprint(Environment) is None
    namespace = {"__name__": "nowhere"}
    exec("def make(problem): pass", namespace)
    assert source_fingerprint(namespace["make"]) is None


def test_the_fingerprint_of_a_class_in_a_notebook_changes_with_its_methods(monkeypatch):
    def fingerprint_of_cell(text, number):
        name = f"<cell {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        monkeypatch.setitem(sys.modules, "cells", module := ModuleType("cells"))
        exec(compile(text, name, "exec"), vars(module))
        return source_fingerprint(module.Policy)

    text = "class Base:\n    def decide(self):\n        return 1\nclass Policy(Base):\n    pass\n"
    first = fingerprint_of_cell(text, 1)
    assert first is not None and fingerprint_of_cell(text, 2) == first
    assert fingerprint_of_cell(text.replace("1", "2"), 3) != first
