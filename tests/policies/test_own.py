"""Policies of one's own by "module:Class", in Python."""

import sys

import pytest
from support.custom_policies import GREEDY

from dowise import load_problem, make_policy, simulate
from dowise.errors import DowiseError, UserCodeError
from dowise.policies import import_policies, registry
from dowise.policies import registry as own
from dowise.policies.registry import is_known, policy_info


@pytest.fixture
def name(tmp_path, monkeypatch):
    """A class in a module that can be imported, until the test is over."""
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    monkeypatch.setattr(own, "_MODULES", {})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "python_mine.py").write_text(GREEDY)
    yield "python_mine:Greedy"
    sys.modules.pop("python_mine", None)


def test_only_what_was_asked_for_is_imported(name):
    problem = load_problem("task1")
    with pytest.raises(DowiseError, match=r"import its module first, .*import_policies\('python_"):
        make_policy(name, problem)
    assert not is_known(name) and "python_mine" not in sys.modules
    import_policies("python_mine")
    assert is_known(name) and is_known("any-of-mine")
    policy = make_policy(name, problem, explore=0.3)
    assert type(policy).__name__ == "Greedy" and policy.explore == 0.3
    assert policy_info(name).help == "The arm with the best posterior mean."
    with pytest.raises(DowiseError, match=r"has no option 'explor' \(did you mean 'explore'\?\)"):
        make_policy(name, problem, explor=0.3)


def test_a_race_asks_for_it_by_its_name(name):
    result = simulate(["task1"], [name, ("mine", name)], horizon=3, trials=2)
    assert result.final().columns.tolist() == [name, "mine"]


def test_an_error_in_it_says_where_and_keeps_the_original(name):
    failing = name.replace("Greedy", "Failing")
    with pytest.raises(UserCodeError, match=r"python_mine.py, line \d+\)$") as raised:
        simulate(["task1"], [failing], horizon=3, trials=2)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_an_error_of_ours_has_no_place_in_own_code():
    error = DowiseError("wrong")
    from dowise.errors import describe_error, user_code_error

    assert describe_error(error) == "wrong" and user_code_error(error) is None
    assert user_code_error(ValueError("never raised")) is None
