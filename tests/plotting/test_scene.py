"""The shapes of a picture: roles, kinds of edges, their styles and the legend."""

import pytest
from support.errors import raises_code

from dowise import CausalGraph, Problem
from dowise.plotting import picture


def task_2():
    graph = CausalGraph.parse("C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y")
    return Problem(graph, "Y", context="C", non_manipulable="Z", name="task2")


def doubtful_problem(**options):
    return Problem(CausalGraph.parse("Z ?-> X -> Y; X <-> Y; Z <?> Y"), "Y", **options)


def doubtful_edges(drawn):
    return {str(edge.name) for edge in drawn.edges if edge.is_doubtful}


def test_variables_have_their_roles():
    drawn = picture(task_2())
    assert {shape.name: shape.role for shape in drawn.variables} == {
        "C": "context",
        "X1": "manipulable",
        "X2": "manipulable",
        "Y": "reward",
        "Z": "non_manipulable",
    }
    assert drawn.title == "task2"


def test_legend_has_only_what_occurs():
    assert picture(task_2()).legend == ("manipulable", "non_manipulable", "context", "reward")
    confounded = Problem(CausalGraph.parse("X -> Y; X <-> Y"), "Y")
    assert picture(confounded).legend == ("manipulable", "reward", "hidden")
    assert picture(Problem(CausalGraph.parse("Y"), "Y")).legend == ("reward",)


def test_reward_is_in_the_last_column():
    boxes = picture(Problem(CausalGraph.parse("A -> B -> C -> D; A -> Y"), "Y")).layout.boxes
    assert boxes["Y"].x == boxes["D"].x >= max(boxes[name].x for name in "ABC")


@pytest.mark.parametrize(
    ("options", "doubtful"),
    [
        ({}, {"Y <-> Z", "Z -> X"}),
        ({"edge_prior": {"Z -> X": 1, "X -> Y": 0.8}}, {"X -> Y", "Y <-> Z"}),
        ({"edge_prior": 0.6}, {"X <-> Y", "Y <-> Z", "Z -> X"}),
    ],
)
def test_edges_are_doubtful_by_their_priors(options, doubtful):
    drawn = picture(doubtful_problem(**options))
    assert doubtful_edges(drawn) == doubtful
    assert {str(edge.name) for edge in drawn.edges if edge.style.label == "?"} == doubtful


def test_more_probable_edges_are_thicker_and_darker():
    drawn = picture(doubtful_problem(), edges={"X <- Z": 0.1, "X <-> Y": 0.97, "Y <-> X2": 0.5})
    styles = {str(edge.name): edge.style for edge in drawn.edges}
    unlikely, likely = styles["Z -> X"], styles["X <-> Y"]
    assert (unlikely.label, likely.label) == ("10 %", "97 %")
    assert unlikely.width < styles["X -> Y"].width < likely.width
    assert int(unlikely.colour[1:3], 16) > int(likely.colour[1:3], 16)
    assert set(styles) == set(doubtful_problem().graph.edge_texts)


def test_suspected_edges_do_not_move_boxes():
    drawn = picture(doubtful_problem(), suspected=["Z -> Y", "X <-> Z", "Y -> Z"])  # with a cycle
    assert list(drawn.layout.extra) == ["Z -> Y", "X <-> Z", "Y -> Z"]
    boxes, stroke = drawn.layout.boxes, drawn.layout.extra["Y -> Z"]
    assert boxes == picture(doubtful_problem()).layout.boxes
    assert abs(stroke[-1][0] - boxes["Z"].x) < boxes["Z"].width / 2


def test_soft_edges_are_doubtful_unless_they_are_suspected():
    problem = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=0.1)
    probabilities = {"Z -> Y": 0.4, "X <-> Y": 0.05, "X <-> Z": 0.02}
    drawn = picture(problem, probabilities, ["Z -> Y"], soft=probabilities)
    assert doubtful_edges(drawn) == {"X <-> Y", "X <-> Z"}
    assert {str(edge.name) for edge in drawn.edges if edge.is_suspected} == {"Z -> Y"}
    assert drawn.legend == ("manipulable", "reward", "doubtful_hidden", "suspected")
    assert {*drawn.layout.extra} == {*probabilities}
    edges = {str(edge.name): edge for edge in drawn.edges}
    soft, suspected = edges["X <-> Y"], edges["Z -> Y"]
    assert soft.style.dashes and soft.style.label == "5 %" and len(soft.line_and_heads[1]) == 2
    assert not suspected.style.dashes and suspected.style.label == "40 %"
    without = picture(problem, probabilities).edges
    assert {str(edge.name) for edge in without} == {"Z -> X", "X -> Y"}


@pytest.mark.parametrize(
    ("edge", "code", "name"),
    [
        ("X -> Y", "duplicate-name", "X -> Y"),
        ("Q -> Y", "unknown-variable", "'Q'"),
        ("X", "syntax-error", "'X'"),
    ],
)
def test_invalid_suspected_edge_is_rejected(edge, code, name):
    with raises_code(code, name):
        picture(doubtful_problem(), suspected=[edge])
