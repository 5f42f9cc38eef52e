"""Names and options of policies, custom policies, and `best`."""

import inspect
import re
import sys
from pathlib import Path

import pytest
from support.custom_policies import GREEDY
from support.errors import raises_code

from dowise import (
    Belief,
    CausalGraph,
    DowiseError,
    Problem,
    load_problem,
    make_policy,
    register_policy,
    simulate,
)
from dowise.errors import UserCodeError, describe_error, user_code_error
from dowise.policies import best_name, import_policies, policy_names, registry
from dowise.policies.registry import is_known, policy_factory, policy_info

DOCS = Path(__file__).parents[2] / "docs"
TASK1 = load_problem("task1")


@pytest.fixture
def clean_registry(monkeypatch):
    monkeypatch.setattr(registry, "_POLICIES", {**registry._POLICIES})
    monkeypatch.setattr(registry, "_MODULES", {})


@pytest.mark.parametrize(
    ("name", "options", "code", "mentioned"),
    [
        ("idz", {}, "unknown-policy", ["'idz'", "did you mean 'ids'?"]),
        ("ids", {"sample": 3}, "unknown-option", ["'sample'", "did you mean 'samples'?"]),
        ("random", {"seed": 1}, "unknown-option", ["'seed'", "(available: floor)"]),
        ("bayes-optimal", {}, "missing-value", ["'horizon'"]),
    ],
)
def test_unknown_names_and_options_are_refused(name, options, code, mentioned):
    with raises_code(code, *mentioned):
        make_policy(name, TASK1, **options)


def test_a_policy_needs_a_problem():
    with raises_code("invalid-type", "must be a Problem"):
        make_policy("ids", "task1")


@pytest.mark.usefixtures("clean_registry")
def test_names_of_registered_policies_are_distinct_texts():
    with raises_code("duplicate-name", "'ids'"):
        register_policy("ids")(lambda _problem: None)
    for invalid in (3, "", None):
        with raises_code("invalid-type", "is not a name"):
            register_policy(invalid)


def test_the_documentation_lists_all_policies_with_their_options():
    text = (DOCS / "policies.md").read_text("utf-8")
    rows = {x[1]: x[0] for x in re.finditer(r"^\| `([\w-]+)` .*$", text, re.MULTILINE)}
    assert list(rows) == list(policy_names())
    for name in rows:
        for option in list(inspect.signature(policy_info(name).load()).parameters)[1:]:
            assert re.search(rf"`{option}[=`]", rows[name]), (name, option)


@pytest.mark.usefixtures("clean_registry")
def test_the_documented_example_of_a_custom_policy_runs():
    text = (DOCS / "own-policy.md").read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    assert len(code.strip().splitlines()) <= 36
    exec(compile(code, "own-policy.md", "exec"), {"__name__": "example"})
    assert "greedy" in policy_names()


# -- "module:Class" ---------------------------------------------------------------------------


@pytest.fixture
def custom_name(tmp_path, monkeypatch, clean_registry):  # noqa: ARG001
    """Name of a class in a module that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "python_mine.py").write_text(GREEDY)
    yield "python_mine:Greedy"
    sys.modules.pop("python_mine", None)


def test_a_module_is_imported_only_on_request(custom_name):
    with raises_code("unknown-policy", "import_policies('python_mine')"):
        make_policy(custom_name, TASK1)
    assert not is_known(custom_name) and "python_mine" not in sys.modules
    import_policies("python_mine")
    assert is_known(custom_name) and is_known("any-custom")
    policy = make_policy(custom_name, TASK1, explore=0.3)
    assert type(policy).__name__ == "Greedy" and policy.explore == 0.3
    assert policy_info(custom_name).help == "The arm with the best posterior mean."
    with raises_code("unknown-option", "did you mean 'explore'?"):
        make_policy(custom_name, TASK1, explor=0.3)


def test_a_simulation_imports_the_policy_that_it_names(custom_name):
    result = simulate(["task1"], [custom_name, ("mine", custom_name)], horizon=3, trials=2)
    assert result.final().columns.tolist() == [custom_name, "mine"]


def test_an_error_in_a_custom_policy_has_its_line_and_cause(custom_name):
    failing = custom_name.replace("Greedy", "Failing")
    with pytest.raises(UserCodeError, match=r"python_mine.py, line \d+\)$") as raised:
        simulate(["task1"], [failing], horizon=3, trials=2)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_our_own_errors_have_no_line_in_user_code():
    error = DowiseError("wrong")
    assert describe_error(error) == "wrong" and user_code_error(error) is None
    assert user_code_error(ValueError("never raised")) is None


# -- best -------------------------------------------------------------------------------------


MANY_ARMS = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": range(82)})


def test_best_is_commit_kg_or_ids_for_many_arms():
    child = load_problem("child")  # 16 arms
    assert best_name(TASK1) == best_name(child) == "commit-kg" and best_name(MANY_ARMS) == "ids"
    assert best_name(load_problem("alarm")) == "ids"  # 54 arms, and a large circuit


@pytest.mark.parametrize(("graph", "name"), [("X -> Y", "commit-kg"), ("X -> Y; X <-> Y", "ids")])
def test_beyond_sixteen_arms_best_is_commit_kg_where_edges_are_certain(graph, name):
    problem = Problem(CausalGraph.parse(graph), "Y", domains={"X": range(20)})
    assert best_name(problem) == name
    assert type(make_policy("best", TASK1, belief=Belief(TASK1))) is policy_factory("commit-kg")
    assert type(make_policy("best", MANY_ARMS)) is policy_factory("ids")


@pytest.mark.parametrize(("problem", "share"), [(TASK1, 0.05), (MANY_ARMS, 0.25)])
def test_best_pools_rows_and_weighs_a_graph_free_hypothesis(problem, share):
    policy = make_policy("best", problem)
    assert policy.belief.posterior.is_pooled and policy.graph_free_prior == share


def test_best_with_flat_rows_and_the_graph_alone_is_that_of_before():
    child = load_problem("child")
    policy = make_policy("best", TASK1, prior="flat", graph_free_prior=0)
    assert not policy.belief.posterior.is_pooled and policy.mixture is None
    assert not policy.count_pending and policy.uses_fantasies
    flat = make_policy("best", child, prior="flat", graph_free_prior=0)
    assert type(flat) is policy_factory("ids")


def test_best_keeps_the_prior_that_a_problem_states():
    for prior in (0.5, "flat", 1):
        problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", prior=prior)
        policy = make_policy("best", problem)
        assert not policy.belief.posterior.is_pooled and policy.graph_free_prior == 0.05
    by_variable = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", prior={"Z": [3, 1]})
    posterior = make_policy("best", by_variable).belief.posterior
    assert posterior.is_pooled and posterior.base.max() == 3
