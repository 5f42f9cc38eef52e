"""Graphs as DoWhy and pgmpy take them; `make check-interop` tests it with the libraries."""

import networkx
import pytest
from hypothesis import example, given
from support.strategies import graphs

from dowise import CausalGraph, DowiseError, Environment
from dowise.graph.formats.libraries import from_dowhy
from dowise.problem import problem_from_dowhy, problem_from_pgmpy


@given(graphs(max_size=6))
@example(CausalGraph.parse("X -> Y; X <-> Y!; X <?> Z; Z ?-> Y; U_X_Y; U_X_Y_"))
def test_bidirected_edges_and_marks_come_back(graph):
    drawn = graph.to_dowhy()
    assert type(drawn) is networkx.DiGraph and networkx.is_directed_acyclic_graph(drawn)
    unseen = [name for name, said in drawn.nodes.items() if said["observed"] == "no"]
    assert len(unseen) == len(graph.bidirected_edges)
    assert CausalGraph.from_dowhy(drawn) == graph
    assert CausalGraph.from_dowhy(networkx.DiGraph(drawn)) == graph  # DoWhy copies what it is given


def test_hidden_variables_are_unobserved_and_projected_out():
    graph = CausalGraph.parse("U -> X; U -> Y; X -> Y")
    drawn = graph.to_dowhy(hidden="U")
    assert drawn.nodes["U"]["observed"] == "no" and drawn.nodes["X"]["observed"] == "yes"
    assert from_dowhy(drawn).latent == ("U",) and from_dowhy(drawn).graph == graph
    assert CausalGraph.from_dowhy(drawn) == CausalGraph.parse("X -> Y; X <-> Y")
    problem = problem_from_dowhy(drawn, reward="Y")
    assert problem.hidden == ("U",) and problem.graph.marks == {"X <-> Y": "!"}


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (
            lambda: CausalGraph.from_dowhy("X -> Y"),
            "expected a CausalModel or a causal graph of Do",
        ),
        (lambda: CausalGraph.from_dowhy(None), "expected a CausalModel .*, not a NoneType"),
        (lambda: CausalGraph.from_pgmpy(networkx.DiGraph()), "expected a DAG, an ADMG or a Bayes"),
        (lambda: problem_from_pgmpy(7), "expected a DAG, an ADMG or .* of pgmpy, not an int"),
        (lambda: Environment.from_pgmpy(7), "expected a DAG, an ADMG or .* of pgmpy, not an int"),
        (
            lambda: problem_from_dowhy(networkx.DiGraph([("X", "Y")])),
            "say which variable to maximise, reward=…",
        ),
        (
            lambda: CausalGraph.parse("X -> Y").to_dowhy(hidden="Z"),
            "unknown variable 'Z'",
        ),
        (
            lambda: CausalGraph.parse("X -> Y").to_pgmpy(),
            "a model of pgmpy needs pgmpy, which is not installed: pip install 'pgmpy>=1.0'",
        ),
        (lambda: Environment.from_bif("asia").to_pgmpy(), "needs pgmpy, which is not installed"),
    ],
)
def test_what_can_not_be_converted_is_explained(work, message, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pgmpy", None)  # wherever the tests are run
    with pytest.raises(DowiseError, match=message):
        work()
