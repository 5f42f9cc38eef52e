"""CausalGraph: relations, equality and errors."""

import pickle
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from support.errors import raises_code
from support.strategies import graphs

from dowise import CausalGraph


def test_relations_of_an_example():
    graph = CausalGraph.parse("Z -> X -> Y; Z -> Y; X <-> W; W <-> Y")
    assert graph.variables == ("W", "X", "Y", "Z")
    assert graph.parents("Y") == ("X", "Z")
    assert graph.children("Z") == ("X", "Y")
    assert graph.siblings("W") == ("X", "Y")
    assert graph.ancestors("X") == {"X", "Z"}
    assert graph.ancestors(["W", "X"]) == {"W", "X", "Z"}
    assert graph.descendants("X") == {"X", "Y"}
    assert graph.c_component("X") == {"W", "X", "Y"}
    assert graph.c_component("Z") == {"Z"}
    assert graph.directed_edges == (("X", "Y"), ("Z", "X"), ("Z", "Y"))
    assert graph.bidirected_edges == (("W", "X"), ("W", "Y"))
    assert graph.topological_order() == ("W", "Z", "X", "Y")
    assert "X" in graph and "Q" not in graph and len(graph) == 4 and list(graph) == [*"WXYZ"]


def test_a_str_is_a_single_name():
    graph = CausalGraph.parse("Diet -> Health")
    assert graph.ancestors("Health") == {"Diet", "Health"}


@given(graphs())
def test_relations_agree_with_networkx(graph):
    dag = nx.DiGraph(graph.directed_edges)
    dag.add_nodes_from(graph.variables)
    tied = nx.Graph(graph.bidirected_edges)
    tied.add_nodes_from(graph.variables)
    for name in graph:
        assert graph.ancestors(name) == nx.ancestors(dag, name) | {name}
        assert graph.descendants(name) == nx.descendants(dag, name) | {name}
        assert graph.c_component(name) == nx.node_connected_component(tied, name)
        assert set(graph.parents(name)) == set(dag.predecessors(name))
    order = graph.topological_order()
    assert all(order.index(a) < order.index(b) for a, b in graph.directed_edges)


@given(graphs())
def test_equality_does_not_depend_on_order(graph):
    other = CausalGraph(
        reversed(graph.directed_edges),
        [(b, a) for a, b in graph.bidirected_edges],
        reversed(graph.variables),
    )
    assert other == graph and hash(other) == hash(graph) and str(other) == str(graph)
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_graphs_may_have_no_edges():
    assert repr(CausalGraph()) == "CausalGraph()"
    assert CausalGraph(variables="Age").variables == ("Age",)


def test_relations_of_a_long_chain():
    names = [f"V{i:05}" for i in range(5_000)]
    chain = CausalGraph(pairwise(names))
    assert chain.topological_order() == tuple(names)


def test_different_graphs_differ():
    texts = ["A -> B", "B -> A", "A <-> B", "A; B", "A -> B; C"]
    assert len({CausalGraph.parse(text) for text in texts}) == len(texts)
    assert CausalGraph.parse("A -> B") != "A -> B"


def test_graphs_are_immutable():
    graph = CausalGraph.parse("A -> B")
    for name in ("variables", "_parents", "extra"):
        with pytest.raises(AttributeError, match="CausalGraph is immutable"):
            setattr(graph, name, ())
    with pytest.raises(AttributeError, match="is immutable"):
        del graph.variables
    assert graph == CausalGraph.parse("A -> B")


def test_cut_removes_directed_and_bidirected_edges_into_a_variable():
    graph = CausalGraph.parse("A -> B -> C; A <-> B; A <-> C")
    assert graph.cut("B") == CausalGraph.parse("B -> C; A <-> C")
    assert graph.cut([]) == graph


def test_a_subgraph_keeps_the_edges_between_its_variables():
    graph = CausalGraph.parse("A -> B -> C; A <-> C")
    assert graph.subgraph(["A", "C"]) == CausalGraph.parse("A <-> C")


@pytest.mark.parametrize(
    ("make", "code", "mentioned"),
    [
        (lambda: CausalGraph([("A", "A")]), "cyclic-graph", "A -> A"),
        (lambda: CausalGraph([], [("A", "A")]), "invalid-edge", "A <-> A"),
        (lambda: CausalGraph(variables=["A", "A"]), "duplicate-name", "'A'"),
        (lambda: CausalGraph("A -> B"), "invalid-type", "CausalGraph.parse"),
        (lambda: CausalGraph(variables=[1]), "invalid-type", "1"),
    ],
)
def test_invalid_graphs_and_arguments_are_refused(make, code, mentioned):
    with raises_code(code, mentioned):
        make()


@given(graphs(min_size=2))
def test_the_error_names_a_cycle(graph):
    if not graph.directed_edges:
        return
    cause, effect = graph.directed_edges[0]
    edges = [*graph.directed_edges, (effect, cause)]
    with raises_code("cyclic-graph") as caught:
        CausalGraph(edges)
    cycle = str(caught.value).partition("cycle, ")[2].partition(":")[0].split(" -> ")
    assert cycle[0] == cycle[-1] and len(cycle) > 2
    assert all(pair in edges for pair in pairwise(cycle))
