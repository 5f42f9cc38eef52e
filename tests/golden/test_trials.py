"""Simulated trials are those that were recorded."""

import pytest
from golden.record import recorded
from golden.trials import RUNS, digest

RECORDED = recorded("trials")


@pytest.mark.parametrize("name", RUNS)
def test_the_trials_are_as_recorded(name):
    assert digest(name) == RECORDED[name]
