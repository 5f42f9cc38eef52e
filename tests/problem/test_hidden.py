"""Variables that are never recorded, and what can be set said the other way round."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import cases

from dowise import CausalGraph, DowiseError, Problem, load_problem
from dowise.problem.problem_file import parse_problem, problem_text

CLINIC = CausalGraph.parse("Mood -> Drug; Mood -> Cure; Drug -> Cure; Age -> Drug; Age -> Cure")


def test_what_is_hidden_leaves_certain_edges_behind():
    problem = Problem(CLINIC, "Cure", context="Age", hidden="Mood")
    assert problem.drawn == CLINIC
    assert problem.graph == CausalGraph.parse("Age -> Drug -> Cure <- Age; Drug <-> Cure!")
    assert problem.hidden == ("Mood",) and "Mood" not in problem.domains
    assert dict(problem.edge_priors) == {} and problem.possible is problem.graph
    assert [str(arm) for arm in problem.arms] == ["do()", "do(Drug=0)", "do(Drug=1)"]
    assert "hidden=('Mood',)" in repr(problem)


def test_where_nothing_is_hidden_the_graph_is_the_drawn_one():
    problem = Problem(CLINIC, "Cure")
    assert problem.graph is problem.drawn is problem.possible is CLINIC
    assert problem.hidden == () and dict(problem.hidden_domains) == {}


@pytest.mark.parametrize("edge", ["X <-> Y", "X <?> Y", "X <-> Y!"])
def test_a_hidden_cause_makes_a_drawn_edge_certain(edge):
    problem = Problem(CausalGraph.parse(f"U -> X; U -> Y; {edge}; X -> Y"), "Y", hidden="U")
    assert problem.graph == CausalGraph.parse("X -> Y; X <-> Y!")
    assert dict(problem.edge_priors) == {}


def test_a_hidden_mediator_makes_a_doubtful_arrow_certain():
    problem = Problem(CausalGraph.parse("X -> M -> Y; X ?-> Y; Z ?-> Y"), "Y", hidden="M")
    assert problem.graph == CausalGraph.parse("X -> Y; Z ?-> Y")
    assert dict(problem.edge_priors) == {"Z -> Y": 0.5}


def test_edges_elsewhere_stay_as_they_were():
    graph = CausalGraph.parse("U -> A; U -> B; A -> Y; B ?-> Y; A <-> Y; B <?> Y")
    problem = Problem(graph, "Y", hidden=["U"])
    assert problem.graph == CausalGraph.parse("A -> Y; B ?-> Y; A <-> Y; B <?> Y; A <-> B!")
    assert dict(problem.edge_priors) == {"A <-> Y": 0.9, "B -> Y": 0.5, "B <-> Y": 0.5}


@pytest.mark.parametrize(
    ("graph", "edge_prior"),
    [
        ("U <-> X!; U -> Y; X -> Y", None),
        ("U <-> X; U -> Y; X -> Y", 1),
        ("U <-> X; U -> Y; X -> Y", {"X <-> U": 1.0}),
        ("U ?-> X; U -> Y; X -> Y", {"U -> X": 1}),
    ],
)
def test_certain_edges_at_hidden_variables_are_welcome(graph, edge_prior):
    problem = Problem(CausalGraph.parse(graph), "Y", hidden="U", edge_prior=edge_prior)
    assert problem.graph == CausalGraph.parse("X -> Y; X <-> Y!")
    assert pickle.loads(pickle.dumps(problem)) == problem


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ("U -> X -> Y", {"hidden": "Y"}, "Y can't be both reward and hidden"),
        ("U -> X -> Y", {"hidden": "U", "context": "U"}, "U can't be both context and hidden"),
        ("U -> X -> Y", {"hidden": "U", "non_manipulable": "U"}, "non-manipulable and hidden"),
        ("U -> X -> Y", {"hidden": "U", "manipulable": "U"}, "both manipulable and hidden: "
         "manipulable variables are set by it, hidden variables are never observed or set"),
        ("U -> X -> Y", {"hidden": "V"}, "unknown hidden variable 'V'"),
        ("U ?-> X -> Y", {"hidden": "U"}, "U -> X is doubtful (prior 0.5), but U is hidden, and no "
         "data can tell such an edge: make it certain ('U -> X', or edge_prior 1)"),
        ("U <-> X -> Y", {"hidden": "U"}, "make it certain ('U <-> X!', or edge_prior 1)"),
        ("U -> X -> Y", {"hidden": "U", "edge_prior": {"U -> X": 0.3}}, "U -> X is doubtful"),
        ("A -> H -> C -> Y", {"hidden": "H", "context": "C"},
         "A is a cause of C but is not context"),
        ("U -> X -> Y; U -> Y", {"hidden": "U", "arms": ["do(U=1)"]},
         "U is declared hidden, so it is never recorded or set: leave it out, or remove 'U' from"),
        ("U -> X -> Y; U -> Y", {"hidden": "U", "edge_prior": {"X <-> Y": 0.3}},
         "X <-> Y can't have the edge_prior 0.3: hidden variables make it certain"),
        ("C -> X -> Y", {"manipulable": "X", "non_manipulable": "C"}, "not both"),
        ("C -> X -> Y", {"manipulable": "C", "context": "C"}, "both context and manipulable"),
        ("C -> X -> Y", {"manipulable": "Y"}, "Y can't be both reward and manipulable"),
        ("C -> X -> Y", {"manipulable": "x"}, "unknown manipulable variable 'x' (did you mean 'X'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together(graph, options, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        Problem(CausalGraph.parse(graph), "Y", **options)


def test_nobody_can_know_a_hidden_value():
    problem = Problem(CLINIC, "Cure", hidden="Mood")
    for tried in (
        lambda: problem.record("do()", {"Mood": 1, "Cure": 0}),
        lambda: problem.records({"Mood": [1], "Cure": [0]}),
        lambda: problem.intervention("do(Mood=1)"),
        lambda: problem.code("Mood", 1),
        lambda: problem.role("Mood"),
    ):
        with pytest.raises(DowiseError, match="Mood is declared hidden"):
            tried()


def test_hidden_variables_may_have_domains():
    moods = {"Mood": ["low", "high", "swinging"], "Drug": ["a", "b"]}
    problem = Problem(CLINIC, "Cure", hidden="Mood", domains=moods)
    assert problem.hidden_domains == {"Mood": ("low", "high", "swinging")}
    assert "Mood" not in problem.domains and problem.domains["Drug"] == ("a", "b")
    assert Problem(CLINIC, "Cure", hidden="Mood").hidden_domains == {"Mood": ("0", "1")}
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert problem != Problem(CLINIC, "Cure", hidden="Mood", domains={"Drug": ["a", "b"]})


def test_what_can_be_set_says_what_can_not():
    problem = Problem(CLINIC, "Cure", context="Age", manipulable="Drug")
    assert problem.manipulable == ("Drug",) and problem.non_manipulable == ("Mood",)
    assert problem == Problem(CLINIC, "Cure", context="Age", non_manipulable="Mood")
    assert Problem(CLINIC, "Cure", manipulable=["Drug"], hidden="Mood").non_manipulable == ("Age",)
    assert [str(arm) for arm in Problem(CLINIC, "Cure", manipulable=()).arms] == ["do()"]


def test_in_a_problem_file():
    page = """
    graph = "Mood -> Drug; Mood -> Cure; Drug -> Cure; Age -> Drug; Age -> Cure"
    reward = "Cure"
    hidden = ["Mood"]
    manipulable = ["Drug"]
    [domains]
    Mood = ["low", "high", "swinging"]
    """
    problem = parse_problem(page)
    assert problem.hidden_domains["Mood"] == ("low", "high", "swinging")
    assert problem.manipulable == ("Drug",) and problem.non_manipulable == ("Age",)
    assert parse_problem(problem_text(problem)) == problem


def test_hidden_and_manipulable_beside_the_tags_of_a_graph_file(tmp_path):
    (tmp_path / "g.dagitty").write_text(
        "dag { T [exposure] R [outcome] U -> T ; U -> R ; T -> M -> R ; S -> R }"
    )
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\nhidden = ["U"]\n')
    assert load_problem(tmp_path / "p.toml").non_manipulable == ("M", "S")
    (tmp_path / "p.toml").write_text('graph_file = "g.dagitty"\nmanipulable = ["S"]\n')
    assert load_problem(tmp_path / "p.toml").non_manipulable == ("M", "T", "U")


@given(cases(max_size=6, marked=True), st.data())
def test_any_problem_with_hidden_variables_round_trips(case, data):
    graph, reward, context, fixed = case
    rest = sorted({*graph} - {reward, *context} - fixed)
    hidden = data.draw(st.sets(st.sampled_from(rest))) if rest else set()
    certain = dict.fromkeys(graph.edge_texts, 1)
    problem = Problem(graph, reward, context, fixed, hidden=hidden, edge_prior=certain)
    assert problem.graph.has_edges_of(graph.project(hidden))
    assert not problem.edge_priors
    assert parse_problem(problem_text(problem)) == problem
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert hash(pickle.loads(pickle.dumps(problem))) == hash(problem)
