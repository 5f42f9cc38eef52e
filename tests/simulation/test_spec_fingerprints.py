"""Fingerprints of user code: a change of its file, its base classes or its package."""

import importlib
import sys
from textwrap import dedent

import pytest

from dowise import Environment
from dowise.policies.thompson import ThompsonSampling
from dowise.simulation.spec import source_fingerprint as fingerprint

FILES = {
    "policies_of_mine.py": """\
        import base_of_mine
        from numbers_of_mine import RATE
        from pack_of_mine import tools
        LOCAL = 1
        class Sub(base_of_mine.Own):
            def decide(self):
                from late_of_mine import late
                return late(), RATE, tools
        def make(problem):
            return Sub(problem)
        """,
    "base_of_mine.py": """\
        class Own:
            def __init__(self, problem):
                pass
            @classmethod
            def made(cls, problem):
                return cls(problem)
        """,
    "numbers_of_mine.py": "RATE = 3\n",
    "late_of_mine.py": "import json, numpy\ndef late(): return 1\n",
    "pack_of_mine/__init__.py": "",
    "pack_of_mine/tools.py": "from . import deep\ndef f(): from .... import beyond\n",
    "pack_of_mine/deep.py": "import policies_of_mine\n",  # in a circle
    "other_of_mine.py": "",
}


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """What names a class or function of modules that are imported anew, and its fingerprint."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(dedent(text))

    def forget():
        for name in [name for name in sys.modules if "_of_mine" in name]:
            del sys.modules[name]

    def found(name):
        forget()
        importlib.invalidate_caches()
        thing = importlib.import_module("policies_of_mine")
        for part in name.split("."):
            thing = getattr(thing, part)
        return fingerprint(thing)

    yield found
    forget()


@pytest.mark.parametrize("name", ["Sub", "make", "Sub.made"])
@pytest.mark.parametrize("file", [*FILES])
def test_a_change_of_its_own_file_or_a_base_class_is_another_policy(fresh, tmp_path, name, file):
    before = fresh(name)
    assert len(before) == 16 and fresh(name) == before
    with (tmp_path / file).open("a") as text:
        text.write("\nMORE = 1\n")
    files = (
        {"policies_of_mine.py", "base_of_mine.py"} if name != "make" else {"policies_of_mine.py"}
    )
    is_part = file in files
    assert (fresh(name) != before) == is_part
    assert "late_of_mine" not in sys.modules  # it is found, and not imported


def test_two_functions_of_one_file_are_told_apart():
    def one(problem):
        return problem

    def other(problem):
        return [problem]

    assert fingerprint(one) == fingerprint(one) != fingerprint(other)


def test_ours_have_none_and_neither_has_what_has_no_source():
    assert fingerprint(ThompsonSampling) is None and fingerprint(Environment) is None
    made = {"__name__": "nowhere"}
    exec("def make(problem): pass", made)
    assert fingerprint(made["make"]) is None


def test_a_class_of_a_notebook_is_told_by_its_methods(monkeypatch):
    import linecache
    from types import ModuleType

    def made(text, number):
        name = f"<cell {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        monkeypatch.setitem(sys.modules, "cells", module := ModuleType("cells"))
        exec(compile(text, name, "exec"), vars(module))
        return fingerprint(module.Sub)

    text = "class Own:\n    def decide(self):\n        return 1\nclass Sub(Own):\n    pass\n"
    first = made(text, 1)
    assert first is not None and made(text, 2) == first
    assert made(text.replace("1", "2"), 3) != first


def test_a_change_anywhere_in_its_package_is_another_policy(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "package_of_mine"
    folder.mkdir()
    for name in ("__init__", "policy", "tools"):
        (folder / f"{name}.py").write_text("def make(problem): pass\n")
    make = importlib.import_module("package_of_mine.policy").make
    before = fingerprint(make)
    (folder / "tools.py").write_text("RATE = 3\n")
    assert fingerprint(make) != before
    for name in [name for name in sys.modules if "_of_mine" in name]:
        del sys.modules[name]
