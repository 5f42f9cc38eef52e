"""How likely edges are to be there, and the soft graph of edges that might have been forgotten."""

import pickle
import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import cases

from dowise import CausalGraph, DowiseError, Problem, load_problem
from dowise.graph.edges import EdgeName
from dowise.graph.pomis import set_order
from dowise.problem.problem_file import parse_problem, problem_text

GRAPH = CausalGraph.parse("Z ?-> X -> Y; Z <-> Y; X <?> Y; X <-> Z!")


@pytest.mark.parametrize(
    ("edge_prior", "expected"),
    [
        (None, {"X <-> Y": 0.5, "Y <-> Z": 0.9, "Z -> X": 0.5}),
        (0.7, {"X <-> Y": 0.5, "Y <-> Z": 0.7, "Z -> X": 0.5}),
        (1, {"X <-> Y": 0.5, "Z -> X": 0.5}),
        ({"Z <-> Y": 0.2, "Y <- X": 0.6}, {"X -> Y": 0.6, "X <-> Y": 0.5, "Y <-> Z": 0.2,
                                           "Z -> X": 0.5}),
        ({"X <-> Y": 1, "Z -> X": 1.0, "X <-> Z": 1}, {"Y <-> Z": 0.9}),
        ({}, {"X <-> Y": 0.5, "Y <-> Z": 0.9, "Z -> X": 0.5}),
    ],
)  # fmt: skip
def test_priors_of_edges(edge_prior, expected):
    problem = Problem(GRAPH, "Y", edge_prior=edge_prior)
    assert dict(problem.edge_priors) == expected
    assert list(problem.edge_priors) == sorted(expected)
    assert problem.graph is GRAPH
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert parse_problem(problem_text(problem)) == problem
    with pytest.raises(TypeError):
        problem.edge_priors["X -> Y"] = 0.1


@pytest.mark.parametrize(
    ("edge_prior", "message"),
    [
        (0, "edge_prior=0: an edge that can't be there is left out of the graph"),
        ({"Z -> X": 0.0}, "edge_prior of Z -> X=0: an edge that can't be there is left out"),
        (1.5, "edge_prior=1.5 must be a probability above 0 and at most 1"),
        (True, "edge_prior=True must be a probability"),
        ("much", "edge_prior='much' must be a probability"),
        ({"X <-> Z": 0.5}, "X <-> Z is marked as certain ('!'), but its edge_prior is 0.5"),
        ({"Y -> X": 0.5}, "the graph has no edge 'Y -> X'"),
        ({"X <-> Y": 0.5, "Y <-> X": 0.6}, "edge_prior has two numbers for X <-> Y"),
        ({"Y": 0.5}, "an edge reads 'A -> B'"),
    ],
)
def test_bad_priors(edge_prior, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        Problem(GRAPH, "Y", edge_prior=edge_prior)


def test_priors_and_soft_edges_tell_problems_apart():
    problems = [
        Problem(GRAPH, "Y"),
        Problem(GRAPH, "Y", edge_prior=0.8),
        Problem(GRAPH, "Y", soft=0.1),
        Problem(GRAPH, "Y", soft=0.2),
        Problem(CausalGraph.parse("Z -> X -> Y; Z <-> Y; X <?> Y; X <-> Z!"), "Y"),
    ]
    assert all(a != b for a, b in combinations(problems, 2))
    assert Problem(GRAPH, "Y", edge_prior=0.9) == problems[0]


def test_priors_in_a_problem_file():
    page = 'graph = "X -> Y; X <-> Y; Z -> Y"\nreward = "Y"\n'
    assert parse_problem(f"edge_prior = 0.6\nsoft = 0.1\n{page}").edge_priors["X <-> Y"] == 0.6
    table = parse_problem(f'{page}[edge_prior]\n"Z -> Y" = 0.3\n"Y <-> X" = 1\n')
    assert dict(table.edge_priors) == {"Z -> Y": 0.3}
    for line, message in (
        ('edge_prior = "0.3"', "edge_prior='0.3' must be a probability above 0"),
        ("soft = true", "soft=True must be between 0 and 1"),
        ("soft = 1", "soft=1 must be between 0 and 1"),
    ):
        with pytest.raises(DowiseError, match=re.escape(message)):
            parse_problem(f"{line}\n{page}")


def test_the_soft_graph_of_a_chain():
    problem = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=0.1)
    assert dict(problem.edge_priors) == dict.fromkeys(
        ["X <-> Y", "X <-> Z", "Y <-> Z", "Z -> Y"], 0.1
    )
    assert problem.possible.edge_texts == (
        "X -> Y", "X <-> Y", "X <-> Z", "Y <-> Z", "Z -> X", "Z -> Y",
    )  # fmt: skip
    assert problem.graph == problem.drawn == CausalGraph.parse("Z -> X -> Y")
    assert problem.projected == problem.graph  # that of what is drawn
    assert {frozenset(), frozenset({"X"}), frozenset({"X", "Z"})} <= {*problem.intervention_sets}
    assert "soft=0.1" in repr(problem)
    assert Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=None).possible is not None


def test_soft_edges_keep_the_marks_and_priors_of_what_is_drawn():
    graph = CausalGraph.parse("Z ?-> X -> Y; X <-> Y; Z <-> Y!")
    problem = Problem(graph, "Y", soft=0.2, edge_prior={"X <-> Y": 0.6})
    assert dict(problem.edge_priors) == {
        "X <-> Y": 0.6, "X <-> Z": 0.2, "Z -> X": 0.5, "Z -> Y": 0.2,
    }  # fmt: skip
    assert dict(problem.possible.marks) == dict(graph.marks)


def test_soft_edges_respect_the_roles():
    """None into the context or below the reward; ties only where an arm sets the earlier end."""
    graph = CausalGraph.parse("C -> X -> Y -> W; Z -> Y")
    problem = Problem(graph, "Y", context="C", non_manipulable="Z", soft=0.1)
    order = {"C": 0, "X": 1, "Z": 1, "Y": 2}
    found = [EdgeName.parse(edge) for edge in problem.edge_priors]
    assert all("W" not in (edge.left, edge.right) for edge in found)
    assert all(order[edge.left] <= order[edge.right] for edge in found if not edge.is_bidirected)
    assert {str(edge) for edge in found if edge.is_bidirected} <= {"X <-> Y", "X <-> Z"}
    assert "X <-> Y" in problem.edge_priors and "C -> Y" in problem.edge_priors


def test_with_arms_of_ones_own_only_what_they_set_can_be_tied():
    graph = CausalGraph.parse("A -> B -> Y")
    problem = Problem(graph, "Y", arms=["do()", "do(B=1)"], soft=0.1)
    tied = [edge for edge in problem.edge_priors if EdgeName.parse(edge).is_bidirected]
    assert tied == ["B <-> Y"]


@given(cases(max_size=6, marked=True), st.sampled_from(["pomis", "all"]))
def test_soft_problems(case, arms):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, arms=arms, soft=0.1)
    possible = problem.possible
    assert set(graph.edge_texts) <= set(possible.edge_texts)
    new = set(possible.edge_texts) - set(graph.edge_texts)
    assert {edge for edge, p in problem.edge_priors.items() if p == 0.1} == new
    assert list(problem.edge_priors) == sorted(problem.edge_priors)
    assert set(problem.edge_priors) == new | set(graph.edge_priors)
    after = graph.descendants(reward) - {reward}
    assert not any(
        EdgeName.parse(edge).other in {*context, *after} for edge in new if " -> " in edge
    )
    # The context is still closed, and what follows from the reward is the same.
    assert possible.descendants(reward) == graph.descendants(reward)
    if arms == "pomis":
        own = problem.projected.pomis(reward)
        soft = possible.condition(context).project(fixed).pomis(reward)
        assert problem.intervention_sets == tuple(sorted({*own, *soft}, key=set_order))
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert parse_problem(problem_text(problem)) == problem


def test_soft_is_for_small_graphs():
    names = [f"V{i}" for i in range(10)]
    graph = CausalGraph([("V0", "Y")], variables=[*names, "Y"])
    with pytest.raises(
        DowiseError, match=r"soft: . ?V?\w* would have|soft: \w+ would have 9 doubt"
    ):
        Problem(graph, "Y", soft=0.1)
    small = CausalGraph([("V0", "Y")], variables=[*names[:9], "Y"])
    few = Problem(small, "Y", manipulable=["V0", "V1"], soft=0.1)
    assert len(few.possible.parents("Y")) == 9
    # Doubtful arrows that are drawn count as well.
    drawn = CausalGraph([("V0", "Y")], variables=[*names[:9], "Y"], doubtful=["V0 -> Y"])
    with pytest.raises(DowiseError, match="Y would have 9 doubtful arrows, which is 512 sets"):
        Problem(drawn, "Y", soft=0.1)
    with pytest.raises(DowiseError, match=r"such as 'A \?-> "):
        Problem(graph, "Y", soft=0.1)


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_the_papers_problems_have_soft_graphs(name):
    problem = load_problem(name)
    roles = problem.reward, problem.context, problem.non_manipulable
    soft = Problem(problem.graph, *roles, soft=0.1)
    assert {*problem.intervention_sets} <= {*soft.intervention_sets}
    assert problem.possible is problem.graph and not problem.edge_priors


def test_too_many_soft_hidden_causes_are_refused_by_name():
    text = "; ".join(f"X{i} -> Y" for i in range(7))
    with pytest.raises(
        DowiseError, match=r"28 doubtful hidden causes, 7 of them at X0.*manipulable"
    ):
        Problem(CausalGraph.parse(text), "Y", soft=0.1)
    assert Problem(CausalGraph.parse(text), "Y", manipulable=["X0", "X1"], soft=0.1).soft == 0.1
