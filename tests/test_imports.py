"""Public names are loaded when they are first used."""

import sys

import pytest
from support.cli_runner import run_program

import dowise


def test_importing_dowise_loads_no_library():
    heavy = {"numpy", "numba", "pandas", "networkx", "scipy"}
    code = f"import sys, dowise; sys.exit(' '.join({heavy!r} & set(sys.modules)) or None)"
    assert run_program(code)[0] == 0


def test_a_name_that_cannot_be_loaded_reports_the_cause(monkeypatch):
    class Broken:
        def __getattr__(self, name):
            raise AttributeError("numba is too old for this NumPy")

    monkeypatch.setitem(sys.modules, "dowise.belief", Broken())
    with pytest.raises(ImportError, match=r"dowise\.Belief can't be loaded: numba is too old"):
        _ = dowise.Belief
    with pytest.raises(AttributeError, match="has no attribute 'Belieff'"):
        _ = dowise.Belieff
