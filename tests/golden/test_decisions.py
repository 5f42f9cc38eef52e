"""Policies decide as they did when the golden files were recorded."""

import pytest
from golden.decisions import CASES, SMALL_PRIORS, WORLDS, decisions, outcome_of, policies_of
from golden.record import as_recorded, assert_close, recorded

PARTS = [(name, policy) for name in WORLDS for policy in policies_of(name)]
RECORDED = {part: recorded(part) for part in ("decisions", "decision_cases", "small_priors")}


@pytest.mark.parametrize(("name", "policy"), PARTS)
def test_arms_of_long_runs_are_as_recorded(name, policy):
    assert decisions(name, policy) == RECORDED["decisions"][name][policy]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_decisions_are_as_recorded(case):
    assert_close(as_recorded(outcome_of(case)), RECORDED["decision_cases"][case.name])


@pytest.mark.parametrize("case", SMALL_PRIORS, ids=lambda case: case.name)
def test_decisions_with_small_priors_are_as_recorded(case):
    assert_close(as_recorded(outcome_of(case)), RECORDED["small_priors"][case.name])


def test_every_recorded_case_is_played():
    assert [case.name for case in CASES] == [*RECORDED["decision_cases"]]
    assert [case.name for case in SMALL_PRIORS] == [*RECORDED["small_priors"]]
