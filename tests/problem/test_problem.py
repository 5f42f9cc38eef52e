"""Problems: the paper's problems, options, copies and errors."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Intervention, Problem, load_problem


def sets_of(problem):
    return [sorted(names) for names in problem.intervention_sets]


@pytest.mark.parametrize(
    ("name", "sets", "arms"),
    [
        ("task1", [[], ["X"]], ["do()", "do(X=0)", "do(X=1)"]),
        ("task2", [["X1"], ["X2"]], ["do(X1=0)", "do(X1=1)", "do(X2=0)", "do(X2=1)"]),
        (
            "task3",
            [[], ["X1"], ["X2"], ["X1", "X2"]],
            [
                "do()",
                "do(X1=0)",
                "do(X1=1)",
                "do(X2=0)",
                "do(X2=1)",
                "do(X1=0, X2=0)",
                "do(X1=0, X2=1)",
                "do(X1=1, X2=0)",
                "do(X1=1, X2=1)",
            ],
        ),
        (
            "healthcare",
            [["Diet", "Treatment"]],
            [
                "do(Diet=0, Treatment=0)",
                "do(Diet=0, Treatment=1)",
                "do(Diet=1, Treatment=0)",
                "do(Diet=1, Treatment=1)",
            ],
        ),
        ("figure1-g2", [[], ["W"]], ["do()", "do(W=0)", "do(W=1)"]),
    ],
)
def test_the_papers_problems_have_their_arms(name, sets, arms):
    problem = load_problem(name)
    assert sets_of(problem) == sets
    assert [str(arm) for arm in problem.arms] == arms
    assert all(isinstance(arm, Intervention) for arm in problem.arms)


def test_roles_domains_and_arms_of_an_example():
    graph = CausalGraph.parse("C -> X; Z -> X; Z -> Y; X -> Y")
    problem = Problem(
        graph,
        reward="Y",
        context=("C",),
        non_manipulable=("Z",),
        domains={"X": ("low", "high")},
        reward_values={"bad": 0.0, "good": 1.0},
    )
    assert problem.domains["X"] == ("low", "high") and problem.domains["C"] == ("0", "1")
    assert problem.domains["Y"] == ("bad", "good")
    assert [dict(arm) for arm in problem.arms] == [{}, {"X": "low"}, {"X": "high"}]
    assert problem.manipulable == ("X",)


def test_arms_follow_the_order_of_the_domains():
    graph = CausalGraph.parse("A -> Y; B -> Y")
    problem = Problem(graph, "Y", domains={"A": ["z", "a"], "B": [2, 10, 1]})
    assert [tuple(arm.values()) for arm in problem.arms] == [
        ("z", "2"),
        ("z", "10"),
        ("z", "1"),
        ("a", "2"),
        ("a", "10"),
        ("a", "1"),
    ]


def test_default_reward_values_are_scaled_indices():
    graph = CausalGraph.parse("X -> Y")
    problem = Problem(graph, "Y", domains={"Y": ["none", "some", "full"]})
    assert dict(problem.reward_values) == {"none": 0.0, "some": 0.5, "full": 1.0}


def test_all_arms_are_the_interventions_on_every_subset():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", arms="all")
    assert sets_of(problem) == [[], ["X"], ["Z"], ["X", "Z"]] and len(problem.arms) == 9


def test_custom_arms_are_put_in_order():
    graph = CausalGraph.parse("X -> Y")
    problem = Problem(graph, "Y", arms=["do(X=1)", {"X": 0}, Intervention()])
    assert [str(arm) for arm in problem.arms] == ["do()", "do(X=0)", "do(X=1)"]
    assert sets_of(problem) == [[], ["X"]]
    assert problem.arm_index({"X": 1.0}) == 2


def test_a_reward_without_causes_has_a_single_arm():
    problem = Problem(CausalGraph.parse("Y -> X; Z -> Y"), "Y", non_manipulable="Z")
    assert [str(arm) for arm in problem.arms] == ["do()"]


def test_problems_are_immutable_and_can_be_copied():
    for problem in (
        load_problem("task3"),
        Problem(
            CausalGraph.parse("X -> Y"), "Y", arms=["do()", "do(X=1)"], max_arms=7, max_program=99
        ),
        Problem(CausalGraph.parse("X -> Y"), "Y", minimise=True),
    ):
        for copied in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
            assert copied == problem and copied.max_arms == problem.max_arms
            assert copied.max_program == problem.max_program
        with pytest.raises(AttributeError, match="Problem is immutable"):
            problem.reward = "X"
        with pytest.raises(TypeError):
            problem.domains["X"] = ("a", "b")


def test_problems_differ_by_each_option():
    graph = CausalGraph.parse("X -> Y; W -> X")
    problems = [
        Problem(graph, "Y"),
        Problem(graph, "X"),
        Problem(graph, "Y", context="W"),
        Problem(graph, "Y", non_manipulable="W"),
        Problem(graph, "Y", domains={"X": ["a", "b"]}),
        Problem(graph, "Y", reward_values={"0": 0, "1": 2}),
        Problem(graph, "Y", minimise=True),
        Problem(graph, "Y", arms="all"),
        Problem(graph, "Y", forbidden="do(X=1)"),
        Problem(graph, "Y", prior=0.5),
        Problem(graph, "Y", prior={"W": [3, 1]}),
    ]
    for i, problem in enumerate(problems):
        assert [problem == other for other in problems].count(True) == 1, i


def test_names_do_not_matter_for_equality():
    graph = CausalGraph.parse("X -> Y")
    assert Problem(graph, "Y", name="ward") == Problem(graph, "Y", description="the other")


def test_reward_values_define_the_domain_of_the_reward():
    for values, domain in (
        ({"bad": 0, "good": 1}, ("bad", "good")),
        ({"1": 0, "0": 1}, ("1", "0")),
        ({5: 0, 6.0: 1}, ("5", "6")),
    ):
        assert Problem("X -> Y", "Y", reward_values=values).domains["Y"] == domain
    values = {"0": 0, "1": 1, "2": 5}
    problem = Problem("X -> Y", "Y", domains={"Y": [0, 1, 2]}, reward_values=values)
    assert problem.reward_values == values


def test_misspelt_keywords_get_suggestions():
    for name, right in (("minimize", "minimise"), ("contexts", "context"), ("rewrd", "reward")):
        with raises_code("unknown-option", f"'{name}' (did you mean '{right}'?)"):
            Problem("X -> Y", **{"reward": "Y", name: "Y"})
    parameters = inspect.signature(Problem).parameters
    assert list(parameters)[:3] == ["graph", "reward", "context"] and "minimise" in parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def test_priors_are_kept_in_copies():
    prior = {"X": [[1, 2], [3, 4]], "Z": 5}
    problem = Problem("Z -> X -> Y", "Y", prior=prior)
    for copied in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert copied == problem and copied.prior == problem.prior
    assert Problem("X -> Y", "Y").prior == 1.0 and "prior={…}" in repr(problem)
    hidden = Problem("X -> Y; X <-> Y!", "Y", prior={"Y | X": 7.0, "Y": [1, 3]})
    assert dict(hidden.prior) == {"Y": (1.0, 3.0), "Y | X": 7.0}


@pytest.mark.parametrize(
    ("prior", "code", "mentioned"),
    [
        (True, "invalid-number", "prior=True"),
        ([1, 2], "invalid-type", "[1, 2]"),
        ({"X": [[1, 2], [3]]}, "invalid-number", "the prior of X"),
        ({"X": []}, "invalid-number", "the prior of X"),
        ({3: 1}, "unknown-variable", "3"),
    ],
)
def test_invalid_priors_are_refused(prior, code, mentioned):
    with raises_code(code, mentioned):
        Problem("C -> X -> Y; U -> Y", "Y", hidden="U", prior=prior)


def test_every_variable_has_a_role():
    problem = load_problem("task2")
    roles = {name: problem.role(name) for name in problem.graph}
    assert roles == {
        "C": "context",
        "X1": "manipulable",
        "X2": "manipulable",
        "Y": "reward",
        "Z": "non_manipulable",
    }


def test_options_may_be_numpy_numbers_or_none():
    problem = Problem(
        CausalGraph.parse("X -> Y"), "Y", reward_values={0: np.int64(3), 1: np.float32(0.5)}
    )
    assert dict(problem.reward_values) == {"0": 3.0, "1": 0.5}
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", context=None, non_manipulable=None)
    assert problem.context == problem.non_manipulable == ()
    truth = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": [False, True]})
    assert truth.arm_index(Intervention({"X": True})) == truth.arm_index({"X": True}) == 1


def test_equal_problems_have_equal_hashes_and_a_short_repr():
    assert load_problem("task1") == load_problem("task1") != load_problem("task2")
    assert hash(load_problem("task1")) == hash(load_problem("task1"))
    assert repr(load_problem("task1")) == (
        "<Problem task1: 3 variables, reward='Y', non_manipulable=('Z',), 3 arms>"
    )
    down = Problem(CausalGraph.parse("X -> Y"), "Y", minimise=np.True_)
    assert repr(down) == "<Problem 2 variables, reward='Y', minimise=True, 2 arms>"
    assert down.minimise is True and not load_problem("task1").minimise


GRAPH = CausalGraph.parse("Cause -> C -> X -> Y; Z -> Y; X -> Z")
Y01 = {"domains": {"Y": [0, 1]}}


@pytest.mark.parametrize(
    ("options", "code", "mentioned"),
    [
        ({"context": [["C"]]}, "unknown-variable", "['C']"),
        ({"reward_values": {"0": 0, 0: 1, "1": 1}, **Y01}, "duplicate-name", "0"),
        ({"reward_values": {"0": 0, "1": 10**400}}, "invalid-number", "'1'"),
        ({"reward_values": [0, 1]}, "invalid-type", "[0, 1]"),
        ({"arms": ["do(X=1)", {"X": 1}]}, "duplicate-name", "do(X=1)"),
        ({"arms": ["do(X=0)", "do(X=1)"], "max_arms": 1}, "too-large", "2 arms"),
        ({"arms": "all", "max_arms": 80}, "too-large", "81 arms, and max_arms is 80"),
        ({"max_program": 10**12}, "invalid-number", "1,000,000,000"),
    ],
)
def test_invalid_options_are_refused(options, code, mentioned):
    with raises_code(code, mentioned):
        Problem(**{"graph": GRAPH, "reward": "Y", **options})


def test_too_many_arms_are_refused_before_they_are_built():
    many = CausalGraph([(f"X{i}", "Y") for i in range(60)])
    with raises_code("too-large", "1 intervention set ", "about 10^18 arms"):
        Problem(many, "Y")


def test_arm_index_refuses_interventions_that_are_not_arms():
    problem = load_problem("task2")
    with raises_code("unknown-arm", "do(X1=0, X2=0)", "4 arms"):
        problem.arm_index({"X1": 0, "X2": 0})
    with raises_code("missing-value", "X1"):
        problem.arm_index({"X1": None})


def test_codes_are_indices_of_labels():
    domains = {"X": ["low", "1", "0"], "Y": ["False", "True"]}
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", domains=domains)
    for value, code in (
        ("low", 0),
        ("1", 1),
        (1, 1),
        (1.0, 1),
        (True, 1),
        (0, 2),
        (np.int64(0), 2),
    ):
        assert problem.code("X", value) == code
    for value, code in ((True, 1), (1, 1), (np.False_, 0), (None, -1), (float("nan"), -1)):
        assert problem.code("Y", value) == code
    with raises_code("unknown-value", "X has no value '2'"):
        problem.code("X", 2)


def test_interventions_are_validated():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    with raises_code("unknown-value", "X has no value '7'"):
        problem.intervention(Intervention({"X": 7}))
