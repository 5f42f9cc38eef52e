"""No policy decides otherwise than it did when the golden file was recorded."""

import json

import pytest
from golden.record import FILE, WORLDS, decisions, policies_of

RECORDED = json.loads(FILE.read_text("utf-8"))
PARTS = [(name, policy) for name in WORLDS for policy in policies_of(name)]


@pytest.mark.parametrize(("name", "policy"), PARTS)
def test_the_decisions_are_those_that_were_recorded(name, policy):
    assert decisions(name, policy) == RECORDED[name][policy]
