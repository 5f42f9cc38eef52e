"""Priors of edges, and soft edges: those that may be missing from the graph."""

import pickle
import warnings
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import cases

from dowise import CausalGraph, Problem, load_problem
from dowise.belief.monitor import Monitor
from dowise.errors import DowiseWarning
from dowise.graph.edges import EdgeName
from dowise.graph.pomis import set_order
from dowise.problem.edge_priors import MAX_DOUBTFUL_ARROWS, MAX_HIDDEN_CAUSES
from dowise.problem.problem_file import parse_problem, problem_text

GRAPH = CausalGraph.parse("Z ?-> X -> Y; Z <-> Y; X <?> Y; X <-> Z!")


@pytest.mark.parametrize(
    ("edge_prior", "expected"),
    [
        (None, {"X <-> Y": 0.5, "Y <-> Z": 0.9, "Z -> X": 0.5}),
        (0.7, {"X <-> Y": 0.5, "Y <-> Z": 0.7, "Z -> X": 0.5}),
        (1, {"X <-> Y": 0.5, "Z -> X": 0.5}),
        (
            {"Z <-> Y": 0.2, "Y <- X": 0.6},
            {"X -> Y": 0.6, "X <-> Y": 0.5, "Y <-> Z": 0.2, "Z -> X": 0.5},
        ),
        ({"X <-> Y": 1, "Z -> X": 1.0, "X <-> Z": 1}, {"Y <-> Z": 0.9}),
        ({}, {"X <-> Y": 0.5, "Y <-> Z": 0.9, "Z -> X": 0.5}),
    ],
)
def test_edge_priors_apply_to_doubtful_edges(edge_prior, expected):
    problem = Problem(GRAPH, "Y", edge_prior=edge_prior)
    assert dict(problem.edge_priors) == expected
    assert list(problem.edge_priors) == sorted(expected)
    assert problem.graph is GRAPH
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert parse_problem(problem_text(problem)) == problem
    with pytest.raises(TypeError):
        problem.edge_priors["X -> Y"] = 0.1


@pytest.mark.parametrize(
    ("edge_prior", "code", "mentioned"),
    [
        ({"X <-> Z": 0.5}, "contradictory-edge", "X <-> Z"),
        ({"X <-> Y": 0.5, "Y <-> X": 0.6}, "duplicate-name", "X <-> Y"),
    ],
)
def test_invalid_edge_priors_are_refused(edge_prior, code, mentioned):
    with raises_code(code, mentioned):
        Problem(GRAPH, "Y", edge_prior=edge_prior)


def test_problems_differ_by_priors_and_soft_edges():
    problems = [
        Problem(GRAPH, "Y"),
        Problem(GRAPH, "Y", edge_prior=0.8),
        Problem(GRAPH, "Y", soft=0.1),
        Problem(GRAPH, "Y", soft=0.2),
        Problem(CausalGraph.parse("Z -> X -> Y; Z <-> Y; X <?> Y; X <-> Z!"), "Y"),
    ]
    assert all(a != b for a, b in combinations(problems, 2))
    assert Problem(GRAPH, "Y", edge_prior=0.9) == problems[0]


def test_a_problem_file_may_have_edge_priors():
    text = 'graph = "X -> Y; X <-> Y; Z -> Y"\nreward = "Y"\n'
    assert parse_problem(f"edge_prior = 0.6\nsoft = 0.1\n{text}").edge_priors["X <-> Y"] == 0.6
    table = parse_problem(f'{text}[edge_prior]\n"Z -> Y" = 0.3\n"Y <-> X" = 1\n')
    assert dict(table.edge_priors) == {"Z -> Y": 0.3}
    for line, mentioned in (
        ('edge_prior = "0.3"', "edge_prior='0.3'"),
        ("soft = true", "soft=True"),
        ("soft = 1", "soft=1"),
    ):
        with raises_code("invalid-number", mentioned):
            parse_problem(f"{line}\n{text}")


def test_soft_edges_of_a_chain():
    problem = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=0.1)
    assert dict(problem.edge_priors) == dict.fromkeys(
        ["X <-> Y", "X <-> Z", "Y <-> Z", "Z -> Y"], 0.1
    )
    assert problem.possible.edge_texts == (
        "X -> Y",
        "X <-> Y",
        "X <-> Z",
        "Y <-> Z",
        "Z -> X",
        "Z -> Y",
    )
    assert problem.graph == problem.drawn == CausalGraph.parse("Z -> X -> Y")
    assert problem.projected == problem.graph  # without soft edges
    assert {frozenset(), frozenset({"X"}), frozenset({"X", "Z"})} <= {*problem.intervention_sets}
    assert "soft=0.1" in repr(problem)
    assert Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=None).possible is not None


def test_drawn_edges_keep_their_marks_and_priors():
    graph = CausalGraph.parse("Z ?-> X -> Y; X <-> Y; Z <-> Y!")
    problem = Problem(graph, "Y", soft=0.2, edge_prior={"X <-> Y": 0.6})
    assert dict(problem.edge_priors) == {
        "X <-> Y": 0.6,
        "X <-> Z": 0.2,
        "Z -> X": 0.5,
        "Z -> Y": 0.2,
    }
    assert dict(problem.possible.marks) == dict(graph.marks)


def test_soft_edges_respect_the_roles():
    """None into the context or effects of the reward; hidden causes only of settable variables."""
    graph = CausalGraph.parse("C -> X -> Y -> W; Z -> Y")
    problem = Problem(graph, "Y", context="C", non_manipulable="Z", soft=0.1)
    order = {"C": 0, "X": 1, "Z": 1, "Y": 2}
    soft = [EdgeName.parse(edge) for edge in problem.edge_priors]
    assert all("W" not in (edge.left, edge.right) for edge in soft)
    assert all(order[edge.left] <= order[edge.right] for edge in soft if not edge.is_bidirected)
    assert {str(edge) for edge in soft if edge.is_bidirected} <= {"X <-> Y", "X <-> Z"}
    assert "X <-> Y" in problem.edge_priors and "C -> Y" in problem.edge_priors


def test_custom_arms_limit_soft_hidden_causes():
    graph = CausalGraph.parse("A -> B -> Y")
    problem = Problem(graph, "Y", arms=["do()", "do(B=1)"], soft=0.1)
    tied = [edge for edge in problem.edge_priors if EdgeName.parse(edge).is_bidirected]
    assert tied == ["B <-> Y"]


@given(cases(max_size=6, marked=True), st.sampled_from(["pomis", "all"]))
def test_soft_edges_of_any_problem(case, arms):
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, arms=arms, soft=0.1)
    possible = problem.possible
    assert set(graph.edge_texts) <= set(possible.edge_texts)
    new = set(possible.edge_texts) - set(graph.edge_texts)
    assert {edge for edge, p in problem.edge_priors.items() if p == 0.1} == new
    assert list(problem.edge_priors) == sorted(problem.edge_priors)
    assert set(problem.edge_priors) == new | set(graph.edge_priors)
    effects = graph.descendants(reward) - {reward}
    assert not any(
        EdgeName.parse(edge).right in {*context, *effects} for edge in new if " -> " in edge
    )
    assert possible.descendants(reward) == graph.descendants(reward)
    if arms == "pomis":
        drawn = problem.projected.pomis(reward)
        soft = possible.condition(context).project(fixed).pomis(reward)
        assert problem.intervention_sets == tuple(sorted({*drawn, *soft}, key=set_order))
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert parse_problem(problem_text(problem)) == problem


def test_soft_takes_as_many_edges_as_fit_those_into_the_reward_first():
    text = "; ".join(f"X{i} -> Y" for i in range(8))
    with pytest.warns(DowiseWarning, match="15 of them") as warned:
        problem = Problem(text, "Y", soft=0.1)
    assert len(warned) == 1 and len(problem.left_to_evidence) == 15
    causes = [e for e in map(EdgeName.parse, problem.edge_priors) if e.is_bidirected]
    assert len(causes) == MAX_HIDDEN_CAUSES
    assert sum("Y" in (e.left, e.right) for e in causes) == 8  # all of the reward's
    assert {*problem.left_to_evidence}.isdisjoint(problem.possible.edge_texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(problem)).left_to_evidence == problem.left_to_evidence
        assert not Problem(text, "Y", manipulable=["X0", "X1"], soft=0.1).left_to_evidence


@pytest.mark.filterwarnings("ignore:soft")
def test_variables_get_a_limited_number_of_doubtful_arrows():
    names = [f"V{i}" for i in range(10)]
    graph = CausalGraph([("V0", "Y")], variables=[*names, "Y"])
    problem = Problem(graph, "Y", manipulable=["V0", "V9"], soft=0.1)
    # From settable variables first. V7 -> V8 matters to no reward as long as V8 -> Y is left out.
    assert problem.left_to_evidence == ("V8 -> Y",)
    into = [e.right for e in map(EdgeName.parse, problem.edge_priors) if not e.is_bidirected]
    assert max(into.count(name) for name in into) == MAX_DOUBTFUL_ARROWS
    # Doubtful edges that are drawn count as well.
    drawn = CausalGraph([("V0", "Y")], variables=[*names, "Y"], doubtful=["V0 -> Y"])
    problem = Problem(drawn, "Y", manipulable=["V0", "V9"], soft=0.1)
    assert problem.left_to_evidence == ("V7 -> Y", "V8 -> Y")


@pytest.mark.filterwarnings("ignore:soft")
@pytest.mark.parametrize("settable", [1, 3, 8])
def test_the_evidence_judges_all_edges_that_are_left_to_it(settable):
    names = [f"V{i}" for i in range(8 if settable == 8 else 11)]
    graph = CausalGraph([("V0", "Y"), ("V1", "Y")], variables=[*names, "Y"])
    problem = Problem(graph, "Y", manipulable=names[:settable], soft=0.1)
    assert problem.left_to_evidence
    evidence = Monitor(problem).evidence()  # its tables are not too large
    assert {*problem.left_to_evidence} <= {*map(str, evidence.edges)}


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_soft_edges_add_intervention_sets_to_the_papers_problems(name):
    problem = load_problem(name)
    roles = problem.reward, problem.context, problem.non_manipulable
    soft = Problem(problem.graph, *roles, soft=0.1)
    assert {*problem.intervention_sets} <= {*soft.intervention_sets}
    assert problem.possible is problem.graph and not problem.edge_priors
