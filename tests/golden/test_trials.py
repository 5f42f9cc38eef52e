"""Simulated trials are as recorded."""

import pytest
from golden.record import recorded
from golden.trials import RUNS, digest

RECORDED = recorded("trials")


@pytest.mark.parametrize("name", RUNS)
def test_trials_are_as_recorded(name):
    assert digest(name) == RECORDED[name]
