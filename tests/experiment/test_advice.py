"""Advice before an experiment begins."""

import pytest

from dowise.errors import DowiseWarning
from dowise.experiment.advice import MAX_EDGES, SoftAdvice, soft_advice, softened
from dowise.graph import CausalGraph
from dowise.policies.registry import policy_names
from dowise.problem import Problem, load_problem


def test_one_more_arm_is_singular():
    assert ", 1 more arm to choose from," in str(SoftAdvice(("X -> Y",), 3, 1))


def test_the_cost_of_a_soft_graph():
    task2 = load_problem("task2")
    advice, soft = soft_advice(task2), softened(task2)
    assert advice.edges == tuple(soft.edge_priors) and "X1 -> Y" in advice.edges
    assert advice.arms == len(soft.arms) == len(task2.arms) + advice.more_arms
    assert soft.soft == 0.1 and soft.domains == task2.domains
    text = str(advice)
    for part in (
        "soft = 0.1",
        "edges that are not drawn may",
        "5 more arms",
        "about 9 times",
        "10 %",
    ):
        assert part in text
    assert advice.as_dict()["times_as_long"] == 9


def test_doubtful_edges_do_not_count():
    graph = CausalGraph.parse("Z ?-> X -> Y; Z -> W -> Y")
    advice = soft_advice(Problem(graph, "Y", non_manipulable=["Z", "W"]))
    assert "Z -> X" not in advice.edges and "Z -> Y" in advice.edges


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        ("Z -> X -> Y; Z -> Y", "only a hidden cause could be missing"),
        ("; ".join(f"X{i} -> Y" for i in range(5)), "there are too many edges"),
    ],
)
def test_no_advice_if_a_soft_graph_is_not_an_option(graph, reason):
    problem = Problem(CausalGraph.parse(graph), "Y", non_manipulable="Z" if "Z" in graph else ())
    assert soft_advice(problem) is None, reason


def test_no_advice_for_soft_or_large_problems():
    assert soft_advice(softened(load_problem("task2"))) is None
    with pytest.warns(DowiseWarning, match="too many possible edges"):
        softened(load_problem("alarm"))
    assert soft_advice(load_problem("alarm")) is None
    many = softened(load_problem("task3"))
    assert len(many.edge_priors) > MAX_EDGES and soft_advice(load_problem("task3")) is None


def test_only_policies_that_use_the_graph_are_advised():
    advised = {name for name in policy_names() if soft_advice(load_problem("task2"), name)}
    assert {"ids", "ts"} <= advised and not advised & {"ucb", "random", "bayes-optimal"}
