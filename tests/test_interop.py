"""Graphs as DoWhy and pgmpy take them; `make check-interop` tests it with the libraries."""

import networkx
import pytest
from hypothesis import example, given
from support.errors import raises_code
from support.strategies import graphs

from dowise import CausalGraph, Environment
from dowise.interop import (
    environment_from_pgmpy,
    environment_to_pgmpy,
    graph_from_dowhy,
    graph_from_pgmpy,
    graph_to_dowhy,
    graph_to_pgmpy,
    problem_from_dowhy,
    problem_from_pgmpy,
)


@given(graphs(max_size=6))
@example(CausalGraph.parse("X -> Y; X <-> Y!; X <?> Z; Z ?-> Y; U_X_Y; U_X_Y_"))
def test_bidirected_edges_and_marks_round_trip(graph):
    drawn = graph_to_dowhy(graph)
    assert type(drawn) is networkx.DiGraph and networkx.is_directed_acyclic_graph(drawn)
    unobserved = [name for name, data in drawn.nodes.items() if data["observed"] == "no"]
    assert len(unobserved) == len(graph.bidirected_edges)
    assert graph_from_dowhy(drawn) == graph
    assert graph_from_dowhy(networkx.DiGraph(drawn)) == graph  # DoWhy copies what it is given


def test_hidden_variables_are_unobserved_and_projected_out():
    graph = CausalGraph.parse("U -> X; U -> Y; X -> Y")
    drawn = graph_to_dowhy(graph, hidden="U")
    assert drawn.nodes["U"]["observed"] == "no" and drawn.nodes["X"]["observed"] == "yes"
    assert graph_from_dowhy(drawn) == CausalGraph.parse("X -> Y; X <-> Y")
    problem = problem_from_dowhy(drawn, reward="Y")
    assert (
        problem.hidden == ("U",)
        and problem.drawn == graph
        and problem.graph.marks == {"X <-> Y": "!"}
    )


@pytest.mark.parametrize(
    ("convert", "code", "mentioned"),
    [
        (lambda: graph_from_dowhy("X -> Y"), "invalid-type", "DoWhy"),
        (lambda: graph_from_dowhy(None), "invalid-type", "NoneType"),
        (lambda: graph_from_pgmpy(networkx.DiGraph()), "invalid-type", "DAG"),
        (lambda: problem_from_pgmpy(7), "invalid-type", "an int"),
        (lambda: environment_from_pgmpy(7), "invalid-type", "an int"),
        (lambda: problem_from_dowhy(networkx.DiGraph([("X", "Y")])), "missing-value", "reward"),
        (
            lambda: graph_to_dowhy(CausalGraph.parse("X -> Y"), hidden="Z"),
            "unknown-variable",
            "'Z'",
        ),
        (
            lambda: graph_to_pgmpy(CausalGraph.parse("X -> Y")),
            "missing-extra",
            "pip install 'pgmpy>=1.0'",
        ),
        (
            lambda: environment_to_pgmpy(Environment.from_bif("asia")),
            "missing-extra",
            "pip install 'pgmpy>=1.0'",
        ),
    ],
)
def test_graphs_that_can_not_be_converted_are_refused(convert, code, mentioned, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pgmpy", None)  # wherever the tests are run
    with raises_code(code, mentioned):
        convert()
