"""Belief that has only rewards per arm."""

from support.errors import raises_code

from dowise import load_problem
from dowise.policies.independent_arms import IndependentArmsBelief

TASK1 = load_problem("task1")


def test_a_belief_of_another_format_is_refused_with_a_remedy():
    data = IndependentArmsBelief(TASK1).as_dict() | {"format": "dowise-belief"}
    with raises_code("other-version", "'dowise-belief'", "use the version of dowise"):
        IndependentArmsBelief.from_dict(data, TASK1)


def test_factors_are_refused_with_the_reason_why_there_are_none():
    with raises_code("unsupported-belief", "too many tables"):
        IndependentArmsBelief(TASK1, "too many tables").mean_cpts()
