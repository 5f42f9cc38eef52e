"""Roles, domains and arms: the paper's problems, and what a problem refuses."""

import copy
import inspect
import pickle
import re

import numpy as np
import pytest

from dowise import CausalGraph, DowiseError, Intervention, Problem, load_problem


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
            ["do()", "do(X1=0)", "do(X1=1)", "do(X2=0)", "do(X2=1)", "do(X1=0, X2=0)",
             "do(X1=0, X2=1)", "do(X1=1, X2=0)", "do(X1=1, X2=1)"],
        ),
        (
            "healthcare",
            [["Diet", "Treatment"]],
            ["do(Diet=0, Treatment=0)", "do(Diet=0, Treatment=1)",
             "do(Diet=1, Treatment=0)", "do(Diet=1, Treatment=1)"],
        ),
        ("figure1-g2", [[], ["W"]], ["do()", "do(W=0)", "do(W=1)"]),
    ],
)  # fmt: skip
def test_the_papers_problems(name, sets, arms):
    problem = load_problem(name)
    assert sets_of(problem) == sets
    assert [str(arm) for arm in problem.arms] == arms
    assert all(isinstance(arm, Intervention) for arm in problem.arms)


def test_the_design_example():
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


def test_values_follow_the_order_of_the_domain_not_of_the_alphabet():
    graph = CausalGraph.parse("A -> Y; B -> Y")
    problem = Problem(graph, "Y", domains={"A": ["z", "a"], "B": [2, 10, 1]})
    assert [tuple(arm.values()) for arm in problem.arms] == [
        ("z", "2"), ("z", "10"), ("z", "1"), ("a", "2"), ("a", "10"), ("a", "1"),
    ]  # fmt: skip


def test_default_reward_values_are_positions_scaled():
    graph = CausalGraph.parse("X -> Y")
    problem = Problem(graph, "Y", domains={"Y": ["none", "some", "full"]})
    assert dict(problem.reward_values) == {"none": 0.0, "some": 0.5, "full": 1.0}


def test_all_arms():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), "Y", arms="all")
    assert sets_of(problem) == [[], ["X"], ["Z"], ["X", "Z"]] and len(problem.arms) == 9


def test_arms_of_ones_own_are_put_in_order():
    graph = CausalGraph.parse("X -> Y")
    problem = Problem(graph, "Y", arms=["do(X=1)", {"X": 0}, Intervention()])
    assert [str(arm) for arm in problem.arms] == ["do()", "do(X=0)", "do(X=1)"]
    assert sets_of(problem) == [[], ["X"]]
    assert problem.arm_index({"X": 1.0}) == 2


def test_where_nothing_reaches_the_reward_only_do_nothing_is_left():
    problem = Problem(CausalGraph.parse("Y -> X; Z -> Y"), "Y", non_manipulable="Z")
    assert [str(arm) for arm in problem.arms] == ["do()"]


def test_a_problem_never_changes_and_travels_between_processes():
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


def test_problems_differ_by_each_of_their_parts():
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
    for i, one in enumerate(problems):
        assert [one == other for other in problems].count(True) == 1, i


def test_a_name_is_for_people():
    """So the same file in another folder, or under another name, is the same problem."""
    graph = CausalGraph.parse("X -> Y")
    assert Problem(graph, "Y", name="ward") == Problem(graph, "Y", description="the other")


def test_reward_values_define_the_domain_where_no_label_looks_like_a_slip():
    for given, domain in (
        ({"bad": 0, "good": 1}, ("bad", "good")),
        ({"1": 0, "0": 1}, ("1", "0")),
        ({5: 0, 6.0: 1}, ("5", "6")),
    ):
        assert Problem("X -> Y", "Y", reward_values=given).domains["Y"] == domain
    slip = {"0": 0, "1": 1, "2": 5}
    assert (
        Problem("X -> Y", "Y", domains={"Y": [0, 1, 2]}, reward_values=slip).reward_values == slip
    )


def test_a_misspelt_keyword_is_a_clear_error_and_the_signature_is_there():
    for name, right in (("minimize", "minimise"), ("contexts", "context"), ("rewrd", "reward")):
        with pytest.raises(DowiseError, match=rf"'{name}' \(did you mean '{right}'\?\)"):
            Problem("X -> Y", **{"reward": "Y", name: "Y"})
    parameters = inspect.signature(Problem).parameters
    assert list(parameters)[:3] == ["graph", "reward", "context"] and "minimise" in parameters
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def test_a_prior_travels_with_its_problem():
    prior = {"X": [[1, 2], [3, 4]], "Z": 5}
    problem = Problem("Z -> X -> Y", "Y", prior=prior)
    for copied in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert copied == problem and copied.prior == problem.prior
    assert Problem("X -> Y", "Y").prior == 1.0 and "prior={…}" in repr(problem)
    hidden = Problem("X -> Y; X <-> Y!", "Y", prior={"Y | X": 7.0, "Y": [1, 3]})
    assert dict(hidden.prior) == {"Y": (1.0, 3.0), "Y | X": 7.0}


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (0, "prior=0 must be above 0"),
        (True, "must be numbers"),
        ([1, 2], "must be a number, or a mapping"),
        ({"X": [[1, 2], [3]]}, "the prior of X must be numbers"),
        ({"X": []}, "the prior of X must be numbers"),
        ({"X": [1, 2, 3]}, "pass a number, 2 numbers, or an array of shape (2, 2) (axes C, X)"),
        ({"Q": 1}, "the prior names 'Q', which is not a variable"),
        ({"U": 1}, "U is declared hidden"),
        ({3: 1}, "the prior names 3"),
        ("nowhere.toml", "nowhere.toml: there is no such file"),
    ],
)
def test_a_bad_prior_is_refused_with_the_problem(prior, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        Problem("C -> X -> Y; U -> Y", "Y", hidden="U", prior=prior)


def test_roles():
    problem = load_problem("task2")
    roles = {name: problem.role(name) for name in problem.graph}
    assert roles == {
        "C": "context", "X1": "manipulable", "X2": "manipulable", "Y": "reward",
        "Z": "non_manipulable",
    }  # fmt: skip


def test_numbers_of_numpy_are_numbers():
    problem = Problem(
        CausalGraph.parse("X -> Y"), "Y", reward_values={0: np.int64(3), 1: np.float32(0.5)}
    )
    assert dict(problem.reward_values) == {"0": 3.0, "1": 0.5}
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", context=None, non_manipulable=None)
    assert problem.context == problem.non_manipulable == ()
    truth = Problem(CausalGraph.parse("X -> Y"), "Y", domains={"X": [False, True]})
    assert truth.arm_index(Intervention({"X": True})) == truth.arm_index({"X": True}) == 1


def test_equality():
    assert load_problem("task1") == load_problem("task1") != load_problem("task2")
    assert hash(load_problem("task1")) == hash(load_problem("task1"))
    assert repr(load_problem("task1")) == (
        "<Problem task1: 3 variables, reward='Y', non_manipulable=('Z',), 3 arms>"
    )
    down = Problem(CausalGraph.parse("X -> Y"), "Y", minimise=np.True_)
    assert repr(down) == "<Problem 2 variables, reward='Y', minimise=True, 2 arms>"
    assert down.minimise is True and not load_problem("task1").minimise


GRAPH = CausalGraph.parse("Cause -> C -> X -> Y; Z -> Y; X -> Z")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "y"}, "unknown reward 'y' (did you mean 'Y'?)"),
        ({"context": "Casue"}, "unknown context variable 'Casue' (did you mean 'Cause'?)"),
        ({"non_manipulable": ["Q"]}, "unknown non-manipulable variable 'Q'"),
        ({"context": ["Y"]}, "Y can't be both reward and context"),
        ({"non_manipulable": ["Y"]}, "Y can't be both reward and non-manipulable"),
        (
            {"context": ["Cause"], "non_manipulable": ["Cause"]},
            "Cause can't be both context and non-manipulable",
        ),
        ({"context": ["C"]}, "Cause is a cause of C but is not context; add 'Cause'"),
        ({"domains": {"X": ["a"]}}, "the domain of X is ['a']"),
        ({"domains": {"X": ["a", "a"]}}, "the domain of X has the label 'a' twice"),
        ({"domains": {"XX": ["a", "b"]}}, "unknown variable in domains 'XX' (did you mean 'X'?)"),
        ({"reward_values": {"0": 0.0}, "domains": {"Y": [0, 1]}}, "no number for Y=1"),
        ({"reward_values": {"0": 0, "2": 1}, "domains": {"Y": [0, 1]}}, "Y has no value '2'"),
        ({"reward_values": {"0": 1, "1": 1}}, "worth the same"),
        ({"reward_values": {"0": 0, "1": float("inf")}}, "must be a finite number, not 'inf'"),
        ({"reward_values": {"0": 0, "1": "much"}}, "must be a finite number, not 'much'"),
        ({"arms": "some"}, "arms='some' must be 'pomis', 'all'"),
        ({"arms": []}, "the list of arms is empty"),
        ({"arms": ["do(X=1)", {"X": 1}]}, "the arm do(X=1) is listed twice"),
        ({"arms": ["do(X=7)"]}, "X has no value '7'"),
        ({"arms": ["do(Y=1)"]}, "Y can't be set: it is the reward"),
        ({"arms": ["do(Z=1)"], "non_manipulable": "Z"}, "Z can't be set: it is non-manipulable"),
        ({"arms": [7]}, "7 is not an intervention"),
        ({"context": [["C"]]}, "unknown context variable ['C']"),
        ({"reward": ["Y"]}, "unknown reward ['Y']"),
        ({"graph": 7}, "must be a CausalGraph, not an int"),
        (
            {"reward_values": {"0": 0, "O": 1}},
            "reward_values has 'O' beside '0', and Y has no domain",
        ),
        ({"reward_values": {0: 0, 1: 1, 2: 5}}, "reward_values has '2' beside '0' and '1'"),
        ({"domains": ["X"]}, "domains must map names to lists of labels"),
        ({"reward_values": [0, 1]}, "reward_values must map each label of Y"),
        (
            {"reward_values": {"0": 0, 0: 1, "1": 1}, "domains": {"Y": [0, 1]}},
            "reward_values names 0 more than once",
        ),
        ({"reward_values": {"0": 0, "1": 10**400}}, "must be a finite number"),
        ({"arms": 5}, "arms=5 must be a list of arms"),
        ({"arms": {"X": 1}}, "must be a list of arms"),
        ({"arms": ["do(X=0)", "do(X=1)"], "max_arms": 1}, "the list has 2 arms, and max_arms is 1"),
        ({"max_arms": -3}, "max_arms=-3 must be a whole number, 1 or more"),
        ({"minimise": 1}, "minimise=1 must be True or False"),
        ({"minimise": "yes"}, "minimise='yes' must be True or False"),
        ({"minimise": None}, "minimise=None must be True or False"),
        ({"max_arms": None}, "max_arms=None must be a whole number"),
        ({"max_program": 0}, "max_program=0 must be a whole number, 1 or more"),
        ({"max_program": 10**12}, "max_program=1000000000000 must be at most 1,000,000,000"),
        ({"max_arms": 1}, "max_arms is 1; declare the variables that you can't or won't set"),
        ({"arms": "all", "max_arms": 80}, "81 arms, and max_arms is 80"),
    ],
)
def test_errors_name_the_offender_and_the_remedy(options, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        Problem(**{"graph": GRAPH, "reward": "Y", **options})


def test_a_huge_set_of_arms_stops_before_it_is_built():
    many = CausalGraph([(f"X{i}", "Y") for i in range(60)])
    with pytest.raises(DowiseError, match=r"1 intervention set .* about 10\^18 arms so far"):
        Problem(many, "Y")


def test_an_arm_that_is_none_of_the_problems():
    problem = load_problem("task2")
    with pytest.raises(DowiseError, match=r"do\(X1=0, X2=0\) is not one of the 4 arms"):
        problem.arm_index({"X1": 0, "X2": 0})
    with pytest.raises(DowiseError, match=r"the value of X1 is missing"):
        problem.arm_index({"X1": None})


def test_codes_are_positions_of_labels():
    """What `code` finds at once and what it looks up the long way agree."""
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
    with pytest.raises(DowiseError, match="X has no value '2'"):
        problem.code("X", 2)


def test_an_arm_of_another_problem_is_still_checked():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y")
    with pytest.raises(DowiseError, match="X has no value '7'"):
        problem.intervention(Intervention({"X": 7}))
