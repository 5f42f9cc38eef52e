"""Doubtful and certain edges: how they are written, what they keep, what is refused."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import graphs

from dowise import CausalGraph, DowiseError
from dowise.graph.edges import EdgeName


def test_the_text_form_has_marks():
    graph = CausalGraph.parse("A ?-> B -> C; C <-? D; A <?> D; A <-> B! -> C; B <-> D")
    assert dict(graph.edge_priors) == {
        "A -> B": 0.5, "A <-> D": 0.5, "B <-> D": 0.9, "D -> C": 0.5,
    }  # fmt: skip
    assert graph.doubtful_edges == ("A -> B", "A <-> D", "B <-> D", "D -> C")
    assert dict(graph.marks) == {"A -> B": "?", "A <-> B": "!", "A <-> D": "?", "D -> C": "?"}
    assert str(graph) == "A ?-> B; B -> C; D ?-> C; A <-> B!; A <?> D; B <-> D"
    with pytest.raises(TypeError):
        graph.edge_priors["A -> B"] = 1.0


def test_marks_need_no_spaces_and_stand_beside_quotes():
    assert CausalGraph.parse("A?->B<-?C<?>D") == CausalGraph.parse("A ?-> B; C ?-> B; C <?> D")
    graph = CausalGraph.parse('"body mass" <-> Y!; "->" ?-> Y')
    assert graph.doubtful_edges == ('"->" -> Y',)
    assert CausalGraph.parse(str(graph)) == graph


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("A -> B!", 7, "'!' after B: .* a directed edge is certain without it"),
        ("A! <-> B", 2, "'!' after A: .* must follow the second name"),
        ("A <?> B!", 8, "marked as doubtful: keep one mark"),
        ("A <- B!", 7, "certain without it"),
        ("A -? B", 3, r"expected .*an arrow .*\?->"),
    ],
)
def test_marks_at_the_wrong_place(text, column, message):
    with pytest.raises(DowiseError, match=message) as caught:
        CausalGraph.parse(text)
    assert caught.value.column == column


def test_the_constructor_takes_edges_by_text_in_any_spelling():
    graph = CausalGraph([("A", "B"), ("B", "C")], [("C", "A"), ("B", "A")],
                        doubtful=["B <- A", "C <-> A"], certain="A<->B")  # fmt: skip
    assert graph == CausalGraph.parse("A ?-> B -> C; A <?> C; A <-> B!")
    assert CausalGraph([("A", "B")], certain=["A -> B"]) == CausalGraph.parse("A -> B")


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ({"doubtful": ["A -> C"]}, "the graph has no edge 'A -> C' (did you mean 'A -> B'?)"),
        ({"doubtful": ["A -> B"], "certain": ["A -> B"]}, "can't be both doubtful and certain"),
        ({"certain": ["A"]}, "an edge reads 'A -> B' or 'A <-> B', not 'A'"),
        ({"certain": [("A", "B")]}, "an edge reads 'A -> B'"),
    ],
)
def test_bad_marks(marks, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        CausalGraph([("A", "B")], [("B", "C")], **marks)


def test_doubtful_edges_together_must_be_acyclic():
    with pytest.raises(DowiseError, match="all doubtful edges must .* unknown direction"):
        CausalGraph.parse("A ?-> B ?-> A")
    with pytest.raises(DowiseError) as caught:
        CausalGraph.parse("A -> B -> A; C ?-> A")
    assert "doubtful" not in str(caught.value)


def test_marks_tell_graphs_apart():
    texts = ["A -> B", "A ?-> B", "A <-> B", "A <?> B", "A <-> B!"]
    found = [CausalGraph.parse(text) for text in texts]
    assert len(set(found)) == len(texts)
    assert found[0].has_edges_of(found[1]) and not found[0].has_edges_of(found[2])
    assert found[0].adjacency == found[1].adjacency


@given(graphs(marked=True))
def test_marks_survive_every_way_out_and_in(graph):
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert hash(pickle.loads(pickle.dumps(graph))) == hash(graph)
    assert eval(repr(graph)) == graph
    assert CausalGraph.parse(graph.to_text()) == graph
    assert CausalGraph.from_networkx(graph.to_networkx()) == graph
    assert CausalGraph.from_dot(graph.to_dot()) == graph
    assert CausalGraph.from_dagitty(graph.to_dagitty()) == graph
    assert CausalGraph.from_gml(graph.to_gml()) == graph


@given(graphs(marked=True), st.data())
def test_marks_go_with_their_edges(graph, data):
    names = data.draw(st.sets(st.sampled_from(graph.variables)))
    for part in (graph.subgraph(names), graph.cut(names)):
        left = {edge: mark for edge, mark in graph.marks.items() if edge in part.edge_texts}
        assert dict(part.marks) == left
    gone = data.draw(st.sets(st.sampled_from(graph.edge_texts))) if graph.edge_texts else set()
    less = graph.without(gone)
    assert set(less.edge_texts) == set(graph.edge_texts) - gone
    assert set(less.marks) == set(graph.marks) - gone
    assert less.with_edges(gone).has_edges_of(graph)


@given(graphs(marked=True), st.data())
def test_transformations_find_the_same_edges_with_and_without_marks(graph, data):
    plain = CausalGraph(graph.directed_edges, graph.bidirected_edges, graph.variables)
    hidden = data.draw(st.sets(st.sampled_from(graph.variables)))
    context = graph.ancestors(hidden)
    for made, bare in (
        (graph.project(hidden), plain.project(hidden)),
        (graph.condition(context), plain.condition(context)),
    ):
        assert made.has_edges_of(bare) and not bare.marks
        assert set(made.marks) <= set(graph.marks)


@pytest.mark.parametrize(
    ("text", "projected"),
    [
        ("X ?-> Y; H -> X; H -> Y", "X ?-> Y; X <-> Y"),  # what projection makes has no mark
        ("X -> H -> Y; X ?-> Y", "X -> Y"),  # there without the doubtful edge
        ("X ?-> H -> Y; X ?-> Y", "X ?-> Y"),  # only there if one of two doubtful edges is
        ("H -> X; H -> Y; X <?> Y", "X <-> Y"),
        ("H -> X; H -> Y; X <-> Y!", "X <-> Y!"),
        ("X ?-> H -> Y", "X -> Y"),
    ],
)
def test_projection_and_marks(text, projected):
    assert CausalGraph.parse(text).project("H") == CausalGraph.parse(projected)


def test_conditioning_and_marks():
    graph = CausalGraph.parse("C <-> A; C <-> B; A <?> B; C ?-> A; A ?-> D")
    assert graph.condition("C") == CausalGraph.parse("A <-> B; A ?-> D")


def test_without_names_an_unknown_edge():
    graph = CausalGraph.parse("Diet -> Health; Diet <-> Health")
    assert graph.without("Health <- Diet") == CausalGraph.parse("Diet <-> Health")
    with pytest.raises(DowiseError, match=r"no edge 'Diet -> Helth' \(did you mean 'Diet"):
        graph.without(["Diet -> Helth"])


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_any_names_make_a_text_that_is_read_back(one, other):
    for arrow in ("->", "<->"):
        edge = EdgeName.from_ends(one, arrow, other)
        assert EdgeName.parse(str(edge)) == edge


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digraph { A -> B [doubtful=true] }", "A ?-> B"),
        ("digraph { A -> B [doubtful=0] }", "A -> B"),
        ("digraph { edge [doubtful=yes]; A -> B -> C; A -> C [doubtful=false] }",
         "A ?-> B ?-> C; A -> C"),
        ("digraph { edge [dir=both, certain=1]; A -> B; A -> C [doubtful=1]; D -> A [dir=forward]}",
         "A <-> B!; A <?> C; D -> A"),
        ("digraph { { edge [doubtful=1]; A -> B } B -> C }", "A ?-> B -> C"),
    ],
)  # fmt: skip
def test_marks_in_dot(text, expected):
    assert CausalGraph.from_dot(text) == CausalGraph.parse(expected)


def test_marks_in_other_formats():
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
    with pytest.raises(DowiseError, match="can't be both doubtful and certain: keep one mark"):
        read()


@pytest.mark.parametrize(
    ("text", "how"),
    [("A ?-> B; A -> B", "doubtful"), ("B <- A; A ?-> B", "doubtful"),
     ("A <-> B!; B <-> A", "certain")],
)  # fmt: skip
def test_an_edge_is_not_drawn_both_with_and_without_a_mark(text, how):
    with pytest.raises(DowiseError, match=f"is drawn twice, as {how} and without a mark: keep one"):
        CausalGraph.parse(text)
    assert CausalGraph.parse("A ?-> B; A ?-> B").doubtful_edges == ("A -> B",)
