"""dagitty's model code."""

import pytest
from support.errors import raises_code

from dowise import CausalGraph
from dowise.errors import InputSyntaxError
from dowise.graph.formats.dagitty import parse_dagitty, to_dagitty


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dag { A -> B }", "A -> B"),
        ("dag{A->B<-C}", "A -> B <- C"),
        ("DAG my_model { A <-> B ; C }", "A <-> B; C"),
        ('dag "my model" { A B }', "A; B"),
        ("digraph G { A -> B }", "A -> B"),
        ("dag { A -> {B C} -> D }", "A -> B -> D; A -> C -> D"),
        ("dag { {x<->y} -> {a b} }", "x <-> y; x -> a; x -> b; y -> a; y -> b"),
        ("dag { a->{b->{c->d}} }", "a -> b; a -> c; a -> d; b -> c; b -> d; c -> d"),
        ("dag{x[e]y[o]x->y}", "x -> y"),
        (
            'dag { bb="0,0,1,1" graph [bb="0,1"] A [pos="1,2"] A -> B [pos="0.3,0.1"] C }',
            "A -> B; C",
        ),
        ("dag { z -> x [beta=-.6] x <- y [beta=-.6] }", "z -> x <- y"),
        ('dag { A [a="3",weight=2] B [s=2,l=0] A -> B [s] }', "A -> B"),
        ('dag { "body mass" -> "a \\"b\\"" -> v.1 }', '"body mass" -> "a \\"b\\"" -> v.1'),
        ("// x\ndag { A /* -> C */ -> B # x\n}", "A -> B"),
        ("dag { dag -> node; graphs -> edge }", "dag -> node; graphs -> edge"),
        ("dag { größe -> Y }", "größe -> Y"),
    ],
)
def test_parse_dagitty_reads_edges_names_and_comments(text, expected):
    structure = parse_dagitty(text)
    assert structure.graph == CausalGraph.parse(expected)
    assert structure.domains == {}
    assert structure.latent == ()


@pytest.mark.parametrize(
    ("exposure", "outcome", "latent"),
    [
        ("exposure", "outcome", "latent"),
        ("e", "o", "u"),
        ("source", "target", "unobserved"),
        ('pos="1,2",e', 'o; pos="0,0"', "l"),
    ],
)
def test_roles_may_be_abbreviated(exposure, outcome, latent):
    structure = parse_dagitty(
        f"dag {{ Y [{outcome}] X [{exposure}] W [{exposure}] U [{latent}] U -> {{X Y}} X -> Y }}"
    )
    assert structure.exposures == ("W", "X")
    assert structure.outcomes == ("Y",)
    assert structure.latent == ("U",)
    assert structure.graph == CausalGraph.parse("X -> Y <-> X; W")


def test_tags_of_an_edge_do_not_apply_to_its_ends():
    structure = parse_dagitty("dag { A -> B [latent] }")
    assert structure.graph == CausalGraph.parse("A -> B")


def test_chained_latents_are_projected_out():
    structure = parse_dagitty("dag { U [latent] V [latent] A -> U -> V -> {B C} }")
    assert structure.graph == CausalGraph.parse("A -> B <-> C <- A")
    assert structure.latent == ("U", "V")
    assert CausalGraph.from_dagitty("dag { U [u] U -> A }") == CausalGraph.parse("A")


def test_to_dagitty_writes_edges_and_quotes_names():
    graph = CausalGraph.parse('X -> "a b"; X <-> W; graph; v.1')
    assert to_dagitty(graph) == 'dag {\nX -> "a b"\nW <-> X\n"graph"\nv.1\n}\n'


AMBIGUOUS_EDGES = ("@->", "<-@", "@-o", "--@")


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("A -> B", 1, 1, "found 'A', expected 'dag'"),
        ("dag {\n A ->\n}", 3, 1, "found '}', expected '{' or a variable name"),
        ("dag { A -> B", 1, 13, "the text ends, expected .*'}'"),
        ("dag { A } B", 1, 11, "found 'B', expected the end"),
        ("dag { A => B }", 1, 10, "found '>', expected a variable name"),
        ("dag {\n A -- B }", 2, 4, "an edge '--' does not determine causes"),
        *((f"dag {{ A {edge} B }}", 1, 9, f"an edge '{edge}'") for edge in AMBIGUOUS_EDGES),
        *(
            (f"{kind} {{ A -> B }}", 1, 1, f"a '{kind}'")
            for kind in ("pdag", "mag", "pag", "graph")
        ),
    ],
)
def test_a_syntax_error_has_its_position(text, line, column, message):
    with pytest.raises(InputSyntaxError, match=message) as caught:
        parse_dagitty(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "code", "mentioned"),
    [
        ("dag { }", "empty-graph", "empty"),
        ("dag { U [latent] }", "empty-graph", "all variables are latent (U)"),
        ("dag { A [latent, exposure] B }", "conflicting-roles", "exposure and latent"),
        ("dag { A [outcome] A [u] B }", "conflicting-roles", "outcome and latent"),
        ("dag { A -> B -> A }", "cyclic-graph", "cycle"),
        ("dag { A [adjusted] A -> B }", "invalid-role", 'context = ["A"]'),
        ('dag { X [pos="0,1",a] X -> B }', "invalid-role", "X is tagged 'adjusted'"),
        ("dag { A -> S [beta=2] S [selected] }", "invalid-role", "S is tagged 'selected'"),
        ("dag { A -> S; S [Selected, pos=3] }", "invalid-role", "S is tagged 'selected'"),
        ("dag { A -> S [selected] }", "invalid-role", "an edge at S is tagged 'selected'"),
        ("dag { {A S} [s] }", "invalid-role", "A is tagged 'selected'"),
    ],
)
def test_invalid_tags_and_edges_are_refused(text, code, mentioned):
    with raises_code(code, mentioned):
        parse_dagitty(text)
