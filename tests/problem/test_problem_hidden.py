"""Hidden variables of a problem, and manipulable variables in place of non-manipulable ones."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import cases

from dowise import CausalGraph, Problem, load_problem
from dowise.problem.problem_file import parse_problem, problem_text

CLINIC = CausalGraph.parse("Mood -> Drug; Mood -> Cure; Drug -> Cure; Age -> Drug; Age -> Cure")


def test_hidden_variables_leave_certain_edges():
    problem = Problem(CLINIC, "Cure", context="Age", hidden="Mood")
    assert problem.drawn == CLINIC
    assert problem.graph == CausalGraph.parse("Age -> Drug -> Cure <- Age; Drug <-> Cure!")
    assert problem.hidden == ("Mood",) and "Mood" not in problem.domains
    assert dict(problem.edge_priors) == {} and problem.possible is problem.graph
    assert [str(arm) for arm in problem.arms] == ["do()", "do(Drug=0)", "do(Drug=1)"]
    assert "hidden=('Mood',)" in repr(problem)


def test_without_hidden_variables_the_graph_is_the_drawn_one():
    problem = Problem(CLINIC, "Cure")
    assert problem.graph is problem.drawn is problem.possible is CLINIC
    assert problem.hidden == () and dict(problem.hidden_domains) == {}


@pytest.mark.parametrize(
    ("graph", "edge_prior", "expected"),
    [
        ("H -> X; H -> Y; X <-> Y; X -> Y", None, "X -> Y; X <-> Y!"),  # a drawn edge
        ("H -> X; H -> Y; X <?> Y; X -> Y", None, "X -> Y; X <-> Y!"),
        ("H -> X; H -> Y; X <-> Y!; X -> Y", None, "X -> Y; X <-> Y!"),
        ("X -> H -> Y; X ?-> Y; Z ?-> Y", None, "X -> Y; Z ?-> Y"),  # a hidden mediator
        (
            "H -> A; H -> B; A -> Y; B ?-> Y; A <-> Y; B <?> Y",
            None,  # other edges are unchanged
            "A -> Y; B ?-> Y; A <-> Y; B <?> Y; A <-> B!",
        ),
        ("H <-> X!; H -> Y; X -> Y", None, "X -> Y; X <-> Y!"),  # certain edges at H
        ("H <-> X; H -> Y; X -> Y", 1, "X -> Y; X <-> Y!"),
        ("H <-> X; H -> Y; X -> Y", {"X <-> H": 1.0}, "X -> Y; X <-> Y!"),
        ("H ?-> X; H -> Y; X -> Y", {"H -> X": 1}, "X -> Y; X <-> Y!"),
    ],
)
def test_edges_after_projecting_out_hidden_variables(graph, edge_prior, expected):
    problem = Problem(graph, "Y", hidden="H", edge_prior=edge_prior)
    assert problem.graph == CausalGraph.parse(expected)
    assert dict(problem.edge_priors) == dict(problem.graph.edge_priors)
    assert pickle.loads(pickle.dumps(problem)) == problem


@pytest.mark.parametrize(
    ("graph", "options", "code", "mentioned"),
    [
        ("U -> X -> Y", {"hidden": "Y"}, "conflicting-roles", "both reward and hidden"),
        ("U <-> X -> Y", {"hidden": "U"}, "hidden-variable", "('U <-> X!', or edge_prior 1)"),
        (
            "A -> H -> C -> Y",
            {"hidden": "H", "context": "C"},
            "invalid-context",
            "A is a cause of C",
        ),
        ("U -> X -> Y; U -> Y", {"hidden": "U", "arms": ["do(U=1)"]}, "hidden-variable", "U"),
        (
            "U -> X -> Y; U -> Y",
            {"hidden": "U", "edge_prior": {"X <-> Y": 0.3}},
            "contradictory-edge",
            "X <-> Y",
        ),
        (
            "C -> X -> Y",
            {"manipulable": "X", "non_manipulable": "C"},
            "conflicting-roles",
            "not both",
        ),
        ("C -> X -> Y", {"manipulable": "Y"}, "conflicting-roles", "reward and manipulable"),
    ],
)
def test_invalid_roles_and_edges_are_refused(graph, options, code, mentioned):
    with raises_code(code, mentioned):
        Problem(graph, "Y", **options)


def test_hidden_variables_have_no_values():
    problem = Problem(CLINIC, "Cure", hidden="Mood")
    for call in (
        lambda: problem.record("do()", {"Mood": 1, "Cure": 0}),
        lambda: problem.records({"Mood": [1], "Cure": [0]}),
        lambda: problem.intervention("do(Mood=1)"),
        lambda: problem.code("Mood", 1),
        lambda: problem.role("Mood"),
    ):
        with raises_code("hidden-variable", "Mood"):
            call()


def test_hidden_variables_may_have_domains():
    moods = {"Mood": ["low", "high", "swinging"], "Drug": ["a", "b"]}
    problem = Problem(CLINIC, "Cure", hidden="Mood", domains=moods)
    assert problem.hidden_domains == {"Mood": ("low", "high", "swinging")}
    assert "Mood" not in problem.domains and problem.domains["Drug"] == ("a", "b")
    assert Problem(CLINIC, "Cure", hidden="Mood").hidden_domains == {"Mood": ("0", "1")}
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert problem != Problem(CLINIC, "Cure", hidden="Mood", domains={"Drug": ["a", "b"]})


def test_manipulable_variables_determine_the_others():
    problem = Problem(CLINIC, "Cure", context="Age", manipulable="Drug")
    assert problem.manipulable == ("Drug",) and problem.non_manipulable == ("Mood",)
    assert problem == Problem(CLINIC, "Cure", context="Age", non_manipulable="Mood")
    assert Problem(CLINIC, "Cure", manipulable=["Drug"], hidden="Mood").non_manipulable == ("Age",)
    assert [str(arm) for arm in Problem(CLINIC, "Cure", manipulable=()).arms] == ["do()"]


def test_a_problem_file_may_have_hidden_and_manipulable():
    text = """
    graph = "Mood -> Drug; Mood -> Cure; Drug -> Cure; Age -> Drug; Age -> Cure"
    reward = "Cure"
    hidden = ["Mood"]
    manipulable = ["Drug"]
    [domains]
    Mood = ["low", "high", "swinging"]
    """
    problem = parse_problem(text)
    assert problem.hidden_domains["Mood"] == ("low", "high", "swinging")
    assert problem.manipulable == ("Drug",) and problem.non_manipulable == ("Age",)
    assert parse_problem(problem_text(problem)) == problem


def test_hidden_and_manipulable_override_tags_of_a_graph_file(tmp_path):
    (tmp_path / "g.dagitty").write_text(
        "dag { T [exposure] R [outcome] U -> T ; U -> R ; T -> M -> R ; S -> R }"
    )
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\nhidden = ["U"]\n')
    assert load_problem(tmp_path / "p.toml").non_manipulable == ("M", "S")
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\nmanipulable = ["S"]\n')
    assert load_problem(tmp_path / "p.toml").non_manipulable == ("M", "T", "U")


@given(cases(max_size=6, marked=True), st.data())
def test_problems_with_hidden_variables_round_trip(case, data):
    graph, reward, context, fixed = case
    others = sorted({*graph} - {reward, *context} - fixed)
    hidden = data.draw(st.sets(st.sampled_from(others))) if others else set()
    certain = dict.fromkeys(graph.edge_texts, 1)
    problem = Problem(graph, reward, context, fixed, hidden=hidden, edge_prior=certain)
    assert problem.graph.has_edges_of(graph.project(hidden))
    assert not problem.edge_priors
    assert parse_problem(problem_text(problem)) == problem
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert hash(pickle.loads(pickle.dumps(problem))) == hash(problem)
