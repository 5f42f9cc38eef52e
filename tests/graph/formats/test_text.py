"""Text form of graphs."""

import pytest

from dowise import CausalGraph
from dowise.errors import InputSyntaxError
from dowise.graph.formats.text import parse_text, to_text


@pytest.mark.parametrize(
    "text",
    [
        "Z -> X -> Y; Z -> Y; A <-> B",
        "Z -> X -> Y, Y <- Z, B <-> A",
        "Z->X->Y<-Z\nA<->B",
        "\n;; Z -> X -> Y # a chain; not -> read\n\r\n  Z -> Y,\n A <-> B ;",
        '"Z" -> X -> "Y"; Z -> Y; A <-> B; A; Z',
    ],
)
def test_equivalent_texts_give_equal_graphs(text):
    graph = parse_text(text)
    assert graph.variables == ("A", "B", "X", "Y", "Z")
    assert graph.directed_edges == (("X", "Y"), ("Z", "X"), ("Z", "Y"))
    assert graph.bidirected_edges == (("A", "B"),)


def test_a_chain_may_mix_arrows():
    graph = parse_text("A -> B <- C <-> D")
    assert graph.directed_edges == (("A", "B"), ("C", "B"))
    assert graph.bidirected_edges == (("C", "D"),)


def test_names_with_punctuation_inside_need_no_quotes():
    assert parse_text("β-blocker -> Y' ; a.b:c").variables == ("Y'", "a.b:c", "β-blocker")


def test_quoted_names_may_have_any_characters():
    assert parse_text(r'"a \"b\"; \\ -> c\nd" -> X').variables == ("X", 'a "b"; \\ -> c\nd')


def test_to_text_writes_edges_and_quotes_names():
    graph = CausalGraph([("Z", "the X")], [("Z", "Q")], ["lone", "Z", "the X", "Q"])
    assert to_text(graph) == 'Z -> "the X"; Q <-> Z; lone'
    assert str(graph) == to_text(graph)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the graph is empty"),
        ("# only a comment\n", 1, 1, "the graph is empty"),
        ("A ->", 1, 5, "the text ends, expected a variable name"),
        ("A -> B\nC -> -> D", 2, 6, "found '->', expected a variable name"),
        ("A -> B C", 1, 8, r"found 'C', expected a new line, ';' or ','.* an arrow"),
        ("A => B", 1, 3, "found '=>', expected .*an arrow"),
        ("A → B", 1, 3, "; an arrow is written ->$"),
        ("A -> 😀", 1, 6, "; a name with 😀 in it goes in double quotes$"),
        ("50% -> Y", 1, 3, "; a name with % in it goes in double quotes$"),
        ('A -> "B', 1, 6, "found '\"B', expected a variable name"),
    ],
)
def test_a_syntax_error_has_its_position(text, line, column, message):
    with pytest.raises(InputSyntaxError, match=message) as caught:
        parse_text(text)
    assert (caught.value.line, caught.value.column) == (line, column)
