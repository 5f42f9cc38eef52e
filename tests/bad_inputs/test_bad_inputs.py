"""Every bad input of the corpus is refused with its code and message, and nothing is changed.

`make snapshots` renews the messages (`messages.json`); read the difference before you commit it.
"""

import sys

import pytest
from bad_inputs.cases import cases, messages, refusal

from dowise.policies import registry


@pytest.fixture(autouse=True)
def forget_modules(monkeypatch):
    """A case does not see the policy modules that an earlier one imported."""
    monkeypatch.setattr(registry, "_MODULES", {})
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.mark.parametrize("name", cases())
def test_refusal_has_code_and_message(name, tmp_path):
    case = cases()[name]
    message, code = refusal(case, tmp_path)
    assert code == case.get("code")
    if "mentions" in case:
        assert all(word in message for word in case["mentions"]), message
    else:
        assert message == messages()[name]


def test_corpus_is_large_and_messages_are_one_line():
    assert len(cases()) >= 200
    assert {*messages()} == {name for name, case in cases().items() if "mentions" not in case}
    for name, message in messages().items():
        _, *details = message.split("\n")
        assert all(line.startswith(("  line ", "Hint: ")) for line in details), name  # bad rows
