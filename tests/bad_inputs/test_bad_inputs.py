"""Every bad input of the corpus is refused with the message beside it, and nothing is changed.

A message that was improved is written into the corpus by `record.py`, and read there.
"""

import sys

import pytest
from bad_inputs.cases import cases, tried

from dowise.policies import registry as own


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """The modules that a case asked for are asked for no more after it."""
    monkeypatch.setattr(own, "_MODULES", {})
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.parametrize("name", cases())
def test_it_says(name, tmp_path):
    case = cases()[name]
    said = tried(case, tmp_path)
    if "says" in case:
        assert said == case["says"]
    else:
        assert all(word in said for word in case["mentions"]), said


def test_the_corpus_is_large_and_messages_are_one_line():
    assert len(cases()) >= 200
    for name, case in cases().items():
        assert ("says" in case) != ("mentions" in case), name
        lines = case.get("says", "").split("\n")
        assert all(line.startswith("  line ") for line in lines[1:]), name  # bad rows of a table
