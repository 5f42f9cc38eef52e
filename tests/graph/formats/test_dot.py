"""Graphviz' DOT language."""

import pytest
from support.errors import raises_code

from dowise import CausalGraph
from dowise.errors import InputSyntaxError
from dowise.graph.formats.dot import parse_dot, to_dot


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digraph { A -> B }", "A -> B"),
        ("strict digraph name { A -> B; A -> B; }", "A -> B"),
        ('DiGraph "my graph"{A->B->C;D}', "A -> B -> C; D"),
        ("digraph { A -> {B C} }", "A -> B; A -> C"),
        ("digraph { {A B} -> C -> {D; E} }", "A -> C; B -> C; C -> D; C -> E"),
        ("digraph { A -> subgraph s { B -> C } }", "A -> B; A -> C; B -> C"),
        ("digraph { A -> {B -> {C D}} }", "A -> B; A -> C; A -> D; B -> C; B -> D"),
        ("digraph { SubGraph cluster_1 { label=x; A } subgraph { B } }", "A; B"),
        ("digraph { A:n -> B:port:se; A:x -> C }", "A -> B; A -> C"),
        ("digraph { A -> B [dir=both] }", "A <-> B"),
        ("digraph { A -> B [color=red, dir=both; label=x][weight=2] }", "A <-> B"),
        ("digraph { A -> B -> C [dir=both] }", "A <-> B <-> C"),
        ('digraph { A -> B [dir="back"] }', "B -> A"),
        ("digraph { A -> B [dir=forward] }", "A -> B"),
        ("digraph { A -> B; A -> B [dir=both] }", "A -> B <-> A"),
        ("digraph { node [shape=box]; graph [dir=both]; Graph[a=b] A -> B }", "A -> B"),
        ("digraph { rankdir=LR; A [dir=none, label=<<b>x</b>, y>]; B; A -> B }", "A -> B"),
        (
            "digraph { node1 -> edges -> Graphs -> strictly }",
            "node1 -> edges -> Graphs -> strictly",
        ),
        ("digraph { -1.5 -> .5 -> 2. -> 10 }", '"-1.5" -> ".5" -> "2." -> 10'),
        ('digraph { "A \\"1\\"" -> "B" + "C" }', '"A \\"1\\"" -> BC'),
        ('digraph { "two\nlines" }', '"two\\nlines"'),
        ("digraph { <<i>A</i>> -> B }", '"<i>A</i>" -> B'),
        ("digraph { größe -> Ω_2 }", "größe -> Ω_2"),
        ("digraph { A\u00a0-> B }", "A -> B"),
        ("# 1 x\n// x\ndigraph { /* A -> */ A // -> C\n -> B # {\n}", "A -> B"),
        ('digraph { "//" -> "/* x */" -> "# 1" }', '"//" -> "/* x */" -> "# 1"'),
    ],
)
def test_parse_dot_reads_edges_names_and_comments(text, expected):
    assert parse_dot(text) == CausalGraph.parse(expected)


def test_edge_defaults_apply_to_later_edges_of_the_same_block():
    graph = parse_dot("""digraph {
        A -> B
        subgraph { edge [dir=both]; B -> C; subgraph { C -> D } D -> E [dir=forward] }
        E -> F
        edge [color=red, dir=back]
        F -> G
        EDGE [color=blue]
        G -> H
    }""")
    assert graph == CausalGraph.parse("A -> B <-> C <-> D -> E -> F <- G <- H")


def test_to_dot_writes_edges_and_quotes_names():
    graph = CausalGraph.parse('X -> "a b"; X <-> W; node; "1"')
    assert to_dot(graph) == (
        "digraph {\n"
        '    X -> "a b";\n'
        "    W -> X [dir=both, style=dashed];\n"
        '    "1";\n'
        '    "node";\n'
        "}\n"
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the text ends, expected 'digraph'"),
        ("A -> B", 1, 1, "found 'A', expected 'digraph'"),
        ("graph { A -- B }", 1, 1, "a 'graph' has no direction.*write 'digraph' and '->'"),
        ("GRAPH { A; B }", 1, 1, "a 'graph' has no direction"),
        ("digraph {\n  A -- B\n}", 2, 5, "an edge '--' has no direction.*'->'"),
        ("digraph {\n  A ->\n}", 3, 1, "found '}', expected .*a name"),
        ("digraph { A -> B", 1, 17, "the text ends, expected .*'}'"),
        ("digraph { A <- B; C -> D }", 1, 13, "found '<-', expected .*'->'"),
        ("digraph { 1a -> B }", 1, 11, r"found '1a', expected .*a name \(in quotes"),
        ("digraph { A [dir] }", 1, 17, "found ']', expected '='"),
        ("digraph { A } digraph { B }", 1, 15, "found 'digraph', expected the end"),
        ('digraph { A -> "B }', 1, 16, "found '\"B', expected .*a name"),
    ],
)
def test_a_syntax_error_has_its_position(text, line, column, message):
    with pytest.raises(
        InputSyntaxError, match=f"DOT, line {line}, column {column}: {message}"
    ) as got:
        parse_dot(text)
    assert (got.value.line, got.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "code", "mentioned"),
    [
        ("digraph { A -> B [dir=none] }", "undirected-edge", "A -> B has dir=none"),
        ("digraph { edge [dir=none]; A -> {B C} }", "undirected-edge", "A -> {...} has dir=none"),
        ("digraph { A -> B [dir=Both] }", "undirected-edge", "did you mean 'both'"),
        ("digraph { }", "empty-graph", "empty"),
        ("digraph { A -> B; B -> A }", "cyclic-graph", "cycle"),
        ("digraph { {A B} -> B }", "cyclic-graph", "B -> B"),
    ],
)
def test_invalid_edges_are_refused(text, code, mentioned):
    with raises_code(code, mentioned):
        parse_dot(text)
