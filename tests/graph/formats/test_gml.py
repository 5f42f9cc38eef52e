"""Networkx graphs and GML."""

import networkx as nx
import pytest
from support.errors import raises_code

from dowise import CausalGraph
from dowise.errors import InputSyntaxError
from dowise.graph.formats.gml import from_networkx, parse_gml, to_gml, to_networkx

GRAPH = CausalGraph.parse("B -> A -> C; B <-> A; lone")


def test_to_networkx_stores_a_bidirected_edge_once():
    result = to_networkx(GRAPH)
    assert type(result) is nx.MultiDiGraph
    assert list(result) == ["A", "B", "C", "lone"]
    assert sorted(result.edges(keys=True)) == [
        ("A", "B", "bidirected"),
        ("A", "C", "directed"),
        ("B", "A", "directed"),
    ]


@pytest.mark.parametrize("ends", [[("A", "B")], [("B", "A")], [("A", "B"), ("B", "A")]])
def test_a_bidirected_edge_may_be_stored_in_either_direction(ends):
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


def test_nodes_become_text():
    graph = nx.DiGraph([(1, 2), (("a", 1), 2)])
    assert from_networkx(graph).directed_edges == (("('a', 1)", "2"), ("1", "2"))


@pytest.mark.parametrize(
    ("graph", "code", "mentioned"),
    [
        (nx.DiGraph([(1, "1")]), "duplicate-name", "1 and '1'"),
        (nx.Graph([("A", "B")]), "undirected-edge", "networkx.DiGraph"),
        (nx.MultiGraph([("A", "B")]), "undirected-edge", "networkx.DiGraph"),
        ({"A": ["B"]}, "invalid-type", "a dict"),
        (nx.DiGraph([("A", "B"), ("B", "A")]), "cyclic-graph", "cycle"),
    ],
)
def test_invalid_networkx_graphs_are_refused(graph, code, mentioned):
    with raises_code(code, mentioned):
        from_networkx(graph)


def test_gml_of_another_tool_is_read():
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


def test_names_that_networkx_reads_as_lists_are_kept():
    graph = CausalGraph([("[]", "()")])
    assert parse_gml(to_gml(graph)) == graph


def test_networkx_reads_our_gml():
    assert nx.utils.graphs_equal(nx.parse_gml(to_gml(GRAPH)), to_networkx(GRAPH))


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
def test_a_syntax_error_has_its_line(text, line, message):
    with pytest.raises(InputSyntaxError, match=message) as caught:
        parse_gml(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("text", "code", "mentioned"),
    [
        ('graph [ directed 0 node [ id 1 label "A" ] ]', "undirected-edge", "directed 1"),
        ('graph [ node [ id 1 label "A" ] ]', "undirected-edge", "directed 1"),
        (
            'graph [ directed 1 node [ id 1 label "A" ] node [ id 2 label "A" ] ]',
            "duplicate-name",
            "'A' and 'A'",
        ),
    ],
)
def test_invalid_gml_graphs_are_refused(text, code, mentioned):
    with raises_code(code, mentioned):
        parse_gml(text)
