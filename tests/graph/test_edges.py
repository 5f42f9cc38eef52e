"""Edges: their names, and marks of doubtful and certain edges."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import graphs

from dowise import CausalGraph
from dowise.graph.edges import EdgeName


def test_marks_in_the_text_form():
    graph = CausalGraph.parse("A ?-> B -> C; C <-? D; A <?> D; A <-> B! -> C; B <-> D")
    assert dict(graph.edge_priors) == {
        "A -> B": 0.5,
        "A <-> D": 0.5,
        "B <-> D": 0.9,
        "D -> C": 0.5,
    }
    assert graph.doubtful_edges == ("A -> B", "A <-> D", "B <-> D", "D -> C")
    assert dict(graph.marks) == {"A -> B": "?", "A <-> B": "!", "A <-> D": "?", "D -> C": "?"}
    assert str(graph) == "A ?-> B; B -> C; D ?-> C; A <-> B!; A <?> D; B <-> D"
    with pytest.raises(TypeError):
        graph.edge_priors["A -> B"] = 1.0


def test_marks_need_no_spaces():
    assert CausalGraph.parse("A?->B<-?C<?>D") == CausalGraph.parse("A ?-> B; C ?-> B; C <?> D")
    graph = CausalGraph.parse('"body mass" <-> Y!; "->" ?-> Y')
    assert graph.doubtful_edges == ('"->" -> Y',)
    assert CausalGraph.parse(str(graph)) == graph


@pytest.mark.parametrize(
    ("text", "column", "mentioned"),
    [
        ("A -> B!", 7, "a directed edge is certain without it"),
        ("A! <-> B", 2, "'!' after A"),
        ("A <?> B!", 8, "keep one mark"),
        ("A <- B!", 7, "certain without it"),
        ("A -? B", 3, "an arrow"),
    ],
)
def test_misplaced_marks_are_refused_with_their_column(text, column, mentioned):
    with raises_code("syntax-error", mentioned) as caught:
        CausalGraph.parse(text)
    assert caught.value.column == column


def test_the_constructor_accepts_marked_edges_as_text():
    graph = CausalGraph(
        [("A", "B"), ("B", "C")],
        [("C", "A"), ("B", "A")],
        doubtful=["B <- A", "C <-> A"],
        certain="A<->B",
    )
    assert graph == CausalGraph.parse("A ?-> B -> C; A <?> C; A <-> B!")
    assert CausalGraph([("A", "B")], certain=["A -> B"]) == CausalGraph.parse("A -> B")


@pytest.mark.parametrize(
    ("marks", "code", "mentioned"),
    [
        ({"doubtful": ["A -> C"]}, "unknown-edge", "'A -> C' (did you mean 'A -> B'?)"),
        ({"doubtful": ["A -> B"], "certain": ["A -> B"]}, "contradictory-edge", "A -> B"),
        ({"certain": ["A"]}, "syntax-error", "'A'"),
        ({"certain": [("A", "B")]}, "syntax-error", "('A', 'B')"),
    ],
)
def test_invalid_marks_are_refused(marks, code, mentioned):
    with raises_code(code, mentioned):
        CausalGraph([("A", "B")], [("B", "C")], **marks)


def test_doubtful_edges_together_must_be_acyclic():
    with raises_code("cyclic-graph", "unknown direction"):
        CausalGraph.parse("A ?-> B ?-> A")
    with raises_code("cyclic-graph") as caught:
        CausalGraph.parse("A -> B -> A; C ?-> A")
    assert "doubtful" not in str(caught.value)


def test_graphs_differ_by_their_marks():
    texts = ["A -> B", "A ?-> B", "A <-> B", "A <?> B", "A <-> B!"]
    parsed = [CausalGraph.parse(text) for text in texts]
    assert len(set(parsed)) == len(texts)
    assert parsed[0].has_edges_of(parsed[1]) and not parsed[0].has_edges_of(parsed[2])
    assert parsed[0].adjacency == parsed[1].adjacency


@given(graphs(marked=True))
def test_marks_round_trip_in_every_format(graph):
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert hash(pickle.loads(pickle.dumps(graph))) == hash(graph)
    assert eval(repr(graph)) == graph
    assert CausalGraph.parse(graph.to_text()) == graph
    assert CausalGraph.from_networkx(graph.to_networkx()) == graph
    assert CausalGraph.from_dot(graph.to_dot()) == graph
    assert CausalGraph.from_dagitty(graph.to_dagitty()) == graph
    assert CausalGraph.from_gml(graph.to_gml()) == graph


@given(graphs(marked=True), st.data())
def test_removing_an_edge_removes_its_mark(graph, data):
    names = data.draw(st.sets(st.sampled_from(graph.variables)))
    for part in (graph.subgraph(names), graph.cut(names)):
        marks = {edge: mark for edge, mark in graph.marks.items() if edge in part.edge_texts}
        assert dict(part.marks) == marks
    removed = data.draw(st.sets(st.sampled_from(graph.edge_texts))) if graph.edge_texts else set()
    smaller = graph.without(removed)
    assert set(smaller.edge_texts) == set(graph.edge_texts) - removed
    assert set(smaller.marks) == set(graph.marks) - removed
    assert smaller.with_edges(removed).has_edges_of(graph)


@given(graphs(marked=True), st.data())
def test_marks_do_not_change_the_edges_of_transformed_graphs(graph, data):
    plain = CausalGraph(graph.directed_edges, graph.bidirected_edges, graph.variables)
    hidden = data.draw(st.sets(st.sampled_from(graph.variables)))
    context = graph.ancestors(hidden)
    for transformed, expected in (
        (graph.project(hidden), plain.project(hidden)),
        (graph.condition(context), plain.condition(context)),
    ):
        assert transformed.has_edges_of(expected) and not expected.marks
        assert set(transformed.marks) <= set(graph.marks)


@pytest.mark.parametrize(
    ("text", "projected"),
    [
        ("X ?-> Y; H -> X; H -> Y", "X ?-> Y; X <-> Y"),  # new edges have no mark
        ("X -> H -> Y; X ?-> Y", "X -> Y"),  # exists without the doubtful edge
        ("X ?-> H -> Y; X ?-> Y", "X ?-> Y"),  # exists only if a doubtful edge does
        ("H -> X; H -> Y; X <?> Y", "X <-> Y"),
        ("H -> X; H -> Y; X <-> Y!", "X <-> Y!"),
        ("X ?-> H -> Y", "X -> Y"),
    ],
)
def test_projection_keeps_marks(text, projected):
    assert CausalGraph.parse(text).project("H") == CausalGraph.parse(projected)


def test_conditioning_keeps_marks():
    graph = CausalGraph.parse("C <-> A; C <-> B; A <?> B; C ?-> A; A ?-> D")
    assert graph.condition("C") == CausalGraph.parse("A <-> B; A ?-> D")


def test_without_an_unknown_edge_is_an_error():
    graph = CausalGraph.parse("Diet -> Health; Diet <-> Health")
    assert graph.without("Health <- Diet") == CausalGraph.parse("Diet <-> Health")
    with raises_code("unknown-edge", "'Diet -> Helth' (did you mean 'Diet"):
        graph.without(["Diet -> Helth"])


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_edge_names_round_trip(left, right):
    for arrow in ("->", "<->"):
        edge = EdgeName.from_ends(left, arrow, right)
        assert EdgeName.parse(str(edge)) == edge


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digraph { A -> B [doubtful=true] }", "A ?-> B"),
        ("digraph { A -> B [doubtful=0] }", "A -> B"),
        (
            "digraph { edge [doubtful=yes]; A -> B -> C; A -> C [doubtful=false] }",
            "A ?-> B ?-> C; A -> C",
        ),
        (
            "digraph { edge [dir=both, certain=1]; A -> B; A -> C [doubtful=1]; "
            "D -> A [dir=forward] }",
            "A <-> B!; A <?> C; D -> A",
        ),
        ("digraph { { edge [doubtful=1]; A -> B } B -> C }", "A ?-> B -> C"),
    ],
)
def test_dot_attributes_become_marks(text, expected):
    assert CausalGraph.from_dot(text) == CausalGraph.parse(expected)


def test_other_formats_write_and_read_marks():
    dagitty = 'dag { A -> B [doubtful] ; A <-> C [certain] ; B <-> C [pos="1,2",doubtful] }'
    expected = CausalGraph.parse("A ?-> B; A <-> C!; B <?> C")
    assert CausalGraph.from_dagitty(dagitty) == expected
    data = {(a, b, key): d for a, b, key, d in expected.to_networkx().edges(keys=True, data=True)}
    assert data["A", "B", "directed"] == {"doubtful": True}
    assert data["A", "C", "bidirected"] == {"certain": True}
    plain = CausalGraph.parse("A <-> B").to_networkx()
    assert [d for *_, d in plain.edges(data=True)] == [{}]


@pytest.mark.parametrize(
    "read",
    [
        lambda: CausalGraph.from_dot("digraph { A -> B [doubtful=1, certain=1] }"),
        lambda: CausalGraph.from_dagitty("dag { A -> B [doubtful, certain] }"),
    ],
)
def test_two_marks_on_one_edge_are_refused(read):
    with raises_code("contradictory-edge", "both doubtful and certain"):
        read()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("A ?-> B; A -> B", "doubtful"),
        ("B <- A; A ?-> B", "doubtful"),
        ("A <-> B!; B <-> A", "certain"),
    ],
)
def test_an_edge_with_and_without_a_mark_is_refused(text, kind):
    with raises_code("contradictory-edge", f"as {kind} and without a mark"):
        CausalGraph.parse(text)
    assert CausalGraph.parse("A ?-> B; A ?-> B").doubtful_edges == ("A -> B",)
