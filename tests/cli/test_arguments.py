"""NAME=VALUE pairs, options of policies, and arguments in the wrong place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code

from dowise.cli.arguments import format_pair, parse_options, parse_policy_options, parse_values


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("Y=1", "Y", "1"),
        (" Y = 1 ", "Y", "1"),
        ("Z=", "Z", None),
        ('Z=""', "Z", None),
        ("body mass=very high", "body mass", "very high"),
        ('"a=b"=c=d', "a=b", "c=d"),
        ('Y="1 = 2"', "Y", "1 = 2"),
        ('Y="half', "Y", '"half'),
        (r'"say \"so\""="\\"', 'say "so"', "\\"),
        ("Y=-1", "Y", "-1"),
    ],
)
def test_a_pair_is_parsed_into_name_and_value(text, name, value):
    assert parse_values([text]) == {name: value}


@pytest.mark.parametrize("text", ["Y", "=1", "", " ", '"Y=1', '"Y"1'])
def test_a_text_that_is_not_a_pair_is_an_error_with_an_example(text):
    with raises_code("syntax-error", repr(text), "NAME=VALUE", "-c C=1"):
        parse_values(["X=0", text], "-c C=1")


def test_an_unquoted_pair_is_shown_quoted():
    with raises_code("syntax-error", "'Length of stay=1'"):
        parse_values(["Length", "of", "stay=1"])


def test_a_name_occurs_once():
    with raises_code("duplicate-name", "Y=0"):
        parse_values(["Y=1", "Y=0"])
    with raises_code("duplicate-name", "samples=4"):
        parse_options(["samples=3", "samples=4"])


@given(st.text(min_size=1), st.text(alphabet="ab1-", min_size=1))
def test_parsing_inverts_formatting(name, value):
    if name.strip():
        assert parse_values([format_pair(name, value)]) == {name: value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000", 1000),
        ("0.5", 0.5),
        ("true", True),
        ("optimistic", "optimistic"),
        ("[1, 2]", [1, 2]),
        ('"1"', "1"),
        ("2026-01-01", "2026-01-01"),
        ("1\nb = 2", "1\nb = 2"),
        ("{a = 1}", {"a": 1}),
        ("a = b", "a = b"),
    ],
)
def test_values_of_options_are_toml_or_text(text, value):
    (parsed,) = parse_options([f"x={text}"]).values()
    assert parsed == value and type(parsed) is type(value)
    assert parse_policy_options([f"b.c:D.x={text}"], ["a", "b.c:D"]) == {"b.c:D": {"x": value}}


def test_an_incomplete_context_names_what_to_add(cli):
    cli.write(
        "two.toml",
        "graph = 'Age -> Y; \"Length of stay\" -> Y; X -> Y'\nreward = 'Y'\n"
        "context = ['Age', 'Length of stay']\n",
    )
    cli.run_json("new", "two.db", "two.toml")
    cli.run_json("ask", "two.db", "-c", "Age=1", "-c", "Length of stay=0")
    message = cli.error("ask", "two.db")
    assert message.endswith("add -c Age=… -c 'Length of stay=…'\n")
    assert message == cli.error("ask", "two.db", "-c", "Age=", "-c", "Length of stay=")
    assert cli.error("status", "two.db", "-c", "Length of stay=1").endswith("add -c Age=…\n")


def test_arguments_in_the_wrong_order_are_explained(cli):
    cli.create()
    cli.write("past.csv", "Age,Recovery\n1,1\n")
    for words, code in (
        ("new ward.toml ward.db", "wrong-argument-order"),
        ("new new.db ward.db", "unsupported-format"),
        ("import ward.db ward.db", "unsupported-format"),
        ("import past.csv ward.db", "unavailable"),
        ("check past.csv ward.toml", "wrong-argument-order"),
        ("new new.db past.csv", "wrong-argument-order"),
    ):
        assert cli.error_code(*words.split()) == code, words


def test_names_and_values_with_special_characters(cli):
    cli.write(
        "odd.toml",
        'graph = \'"a = b" -> "the end"\'\nreward = "the end"\n'
        '[domains]\n"a = b" = ["x, y", "z=1"]\n"the end" = ["not so good", "= good"]\n',
    )
    cli.run_json("new", "odd.db", "odd.toml", "--seed", "1")
    arm = 'do("a = b"="z=1")'
    output = cli.run_ok("ask", "odd.db", "--allow", arm)
    assert "set a = b to z=1" in output and "dowise tell odd.db 1 'the end=…'\n" in output
    case = cli.run_json("tell", "odd.db", "1", 'the end="= good"', '"a = b"=z=1')
    assert case["values"] == {"the end": "= good"} and case["text"] == arm


def test_whole_numbers_match_labels_with_and_without_a_decimal_point(cli):
    cli.write(
        "length.toml",
        "graph = 'Länge -> Y; X -> Y'\nreward = 'Y'\nnon_manipulable = ['Länge']\n"
        "[domains]\n'Länge' = [2, 3]\nX = ['1', '1.0']\n",
    )
    cli.run_json("new", "l.db", "length.toml")
    cli.run_json("ask", "l.db")
    values = cli.run_json("tell", "l.db", "1", "Länge=3.0", "Y=1.")["values"]
    assert (values["Länge"], values["Y"]) == ("3", "1")
    assert cli.error_code("amend", "l.db", "1", "Länge=3.5", "--reason", "x") == "unknown-value"
    decision = cli.run_json("ask", "l.db", "--allow", "do(X=1.0)")  # an exact label comes first
    assert decision["arm"] == {"X": "1.0"}
