"""networkx graphs and GML."""

import networkx as nx
import pytest

from dowise import CausalGraph, DowiseError
from dowise.errors import InputSyntaxError
from dowise.graph.formats.gml import from_networkx, parse_gml, to_gml, to_networkx

GRAPH = CausalGraph.parse("B -> A -> C; B <-> A; lone")


def test_to_networkx_stores_a_bidirected_edge_once_in_name_order():
    result = to_networkx(GRAPH)
    assert type(result) is nx.MultiDiGraph
    assert list(result) == ["A", "B", "C", "lone"]
    assert sorted(result.edges(keys=True)) == [
        ("A", "B", "bidirected"),
        ("A", "C", "directed"),
        ("B", "A", "directed"),
    ]


@pytest.mark.parametrize("ends", [[("A", "B")], [("B", "A")], [("A", "B"), ("B", "A")]])
def test_a_bidirected_key_counts_in_either_direction(ends):
    graph = nx.MultiDiGraph()
    graph.add_edge("B", "A", key="directed")
    graph.add_edges_from((a, b, "bidirected", {}) for a, b in ends)
    assert from_networkx(graph) == CausalGraph.parse("B -> A <-> B")


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ({"bidirected": True}, "A <-> B"),
        ({"dir": "both"}, "A <-> B"),
        ({"bidirected": 0, "dir": "forward", "weight": 2}, "A -> B"),
        ({}, "A -> B"),
    ],
)
@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_attributes_mark_bidirected_edges(kind, mark, expected):
    graph = kind()
    graph.add_edge("A", "B", **mark)
    assert from_networkx(graph) == CausalGraph.parse(expected)


def test_nodes_become_texts():
    graph = nx.DiGraph([(1, 2), (("a", 1), 2)])
    assert from_networkx(graph).directed_edges == (("('a', 1)", "2"), ("1", "2"))


def test_two_nodes_with_one_text_are_refused():
    with pytest.raises(DowiseError, match="two nodes, 1 and '1', would both be the variable '1'"):
        from_networkx(nx.DiGraph([(1, "1")]))


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
def test_an_undirected_graph_is_refused(kind):
    with pytest.raises(DowiseError, match=r"undirected.*use a networkx\.DiGraph"):
        from_networkx(kind([("A", "B")]))


def test_something_else_is_refused():
    with pytest.raises(DowiseError, match=r"expected a networkx\.DiGraph, not a dict"):
        from_networkx({"A": ["B"]})


def test_a_two_cycle_is_a_cycle_and_no_bidirected_edge():
    with pytest.raises(DowiseError, match="cycle, .*A -> B|cycle, .*B -> A"):
        from_networkx(nx.DiGraph([("A", "B"), ("B", "A")]))


def test_gml_of_another_tool():
    text = """
        Creator "somebody"
        graph [
          directed 1
          node [ id 10 label "X" graphics [ x 1.0 y 2.0 ] ]
          node [ id 11 label "body &#223; mass" ]
          node [ id 12 ]
          node [ id 13 label 7 ]
          node [ id 14 label "größe" ]
          edge [ source 10 target 11 ]
          edge [ source 11 target 12 bidirected 1 ]
        ]"""
    graph = parse_gml(text)
    assert graph.variables == ("12", "7", "X", "body ß mass", "größe")
    assert graph.directed_edges == (("X", "body ß mass"),)
    assert graph.bidirected_edges == (("12", "body ß mass"),)


def test_gml_names_that_networkx_takes_for_lists_survive():
    graph = CausalGraph([("[]", "()")])
    assert parse_gml(to_gml(graph)) == graph


def test_gml_is_what_networkx_reads():
    back = nx.parse_gml(to_gml(GRAPH))
    assert nx.utils.graphs_equal(back, to_networkx(GRAPH))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("graph [\n  directed 1\n  node [ id 1 }\n]", 3, r"GML, line 3, column 15: .*\}"),
        ("graph [\n  directed 1\n", 3, r"GML, line 3, column 1: expected '\]', found the end"),
        ("nothing 1", None, "GML: input contains no graph"),
        ("graph [ directed 1 edge [ source 1 target 2 ] ]", None, "undefined source 1"),
        ("graph [ directed 1 node 3 ]", None, r"GML: expected graph \[ node"),
        ('graph [ label "a\n\nb ]', None, r"GML: expected graph \[ node"),
    ],
)
def test_broken_gml(text, line, message):
    with pytest.raises(InputSyntaxError, match=message) as caught:
        parse_gml(text)
    assert caught.value.line == line


@pytest.mark.parametrize("directed", ["directed 0", ""])
def test_undirected_gml_is_refused(directed):
    with pytest.raises(DowiseError, match="undirected.*directed 1"):
        parse_gml(f'graph [ {directed} node [ id 1 label "A" ] ]')


def test_gml_labels_must_differ():
    with pytest.raises(DowiseError, match="'A' and 'A'"):
        parse_gml('graph [ directed 1 node [ id 1 label "A" ] node [ id 2 label "A" ] ]')
