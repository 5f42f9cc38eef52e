"""dagitty's model code."""

import pytest

from dowise import CausalGraph, DowiseError
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
def test_what_dagitty_says(text, expected):
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
def test_roles_and_their_abbreviations(exposure, outcome, latent):
    structure = parse_dagitty(
        f"dag {{ Y [{outcome}] X [{exposure}] W [{exposure}] U [{latent}] U -> {{X Y}} X -> Y }}"
    )
    assert structure.exposures == ("W", "X")
    assert structure.outcomes == ("Y",)
    assert structure.latent == ("U",)
    assert structure.graph == CausalGraph.parse("X -> Y <-> X; W")


def test_the_tags_of_an_edge_are_not_those_of_its_ends():
    structure = parse_dagitty("dag { A -> B [latent] }")
    assert structure.graph == CausalGraph.parse("A -> B")


def test_chained_latents_are_projected_out():
    structure = parse_dagitty("dag { U [latent] V [latent] A -> U -> V -> {B C} }")
    assert structure.graph == CausalGraph.parse("A -> B <-> C <- A")
    assert structure.latent == ("U", "V")
    assert CausalGraph.from_dagitty("dag { U [u] U -> A }") == CausalGraph.parse("A")


def test_the_written_form():
    graph = CausalGraph.parse('X -> "a b"; X <-> W; graph; v.1')
    assert to_dagitty(graph) == 'dag {\nX -> "a b"\nW <-> X\n"graph"\nv.1\n}\n'


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("A -> B", 1, 1, "found 'A', expected 'dag'"),
        ("dag {\n A ->\n}", 3, 1, "found '}', expected '{' or a variable name"),
        ("dag { A -> B", 1, 13, "the text ends, expected .*'}'"),
        ("dag { A } B", 1, 11, "found 'B', expected the end"),
        ("dag { A => B }", 1, 10, "found '>', expected a variable name"),
        (
            "dag {\n A -- B }",
            2,
            4,
            "an edge '--' does not determine causes.* the arrows ->, <- and <->",
        ),
        ("dag { A @-> B }", 1, 9, "an edge '@->' does not determine causes"),
        ("dag { A <-@ B }", 1, 9, "an edge '<-@' does not determine causes"),
        ("dag { A @-o B }", 1, 9, "an edge '@-o' does not determine causes"),
        ("dag { A --@ B }", 1, 9, "an edge '--@' does not determine causes"),
        ("pdag { A -> B }", 1, 1, "a 'pdag' does not determine causes: write a 'dag'"),
        ("mag { A -> B }", 1, 1, "a 'mag' does not determine causes"),
        ("pag { A @-> B }", 1, 1, "a 'pag' does not determine causes"),
        ("graph { A -> B }", 1, 1, "a 'graph' does not determine causes"),
    ],
)
def test_syntax_errors_say_where_and_what(text, line, column, message):
    with pytest.raises(InputSyntaxError, match=message) as caught:
        parse_dagitty(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dag { }", "the graph is empty"),
        ("dag { U [latent] }", r"all variables are latent \(U\)"),
        ("dag { A [latent, exposure] B }", "A can't be both exposure and latent"),
        ("dag { A [outcome] A [u] B }", "A can't be both outcome and latent"),
        ("dag { A -> B -> A }", "cycle, .*A.*B"),
        (
            "dag { A [adjusted] A -> B }",
            "A is tagged 'adjusted': .*remove the tag.*declare it as context = .\"A\".",
        ),
        ('dag { X [pos="0,1",a] X -> B }', "X is tagged 'adjusted'"),
        ("dag { A -> S [beta=2] S [selected] }", "S is tagged 'selected': .*remove the tag if S"),
        ("dag { A -> S; S [Selected, pos=3] }", "S is tagged 'selected'"),
        ("dag { A -> S [selected] }", "an edge at S is tagged 'selected', which is a tag for"),
        ("dag { {A S} [s] }", "A is tagged 'selected'"),
    ],
)
def test_what_is_no_causal_graph(text, message):
    with pytest.raises(DowiseError, match=message):
        parse_dagitty(text)
