"""Parsing of NAME=VALUE pairs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowise.cli.arguments import format_pair, parse_options, parse_values
from dowise.errors import DowiseError


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
def test_a_pair(text, name, value):
    assert parse_values([text]) == {name: value}


@pytest.mark.parametrize("text", ["Y", "=1", "", " ", '"Y=1', '"Y"1'])
def test_what_is_no_pair_is_named_with_the_form(text):
    with pytest.raises(DowiseError) as refused:
        parse_values(["X=0", text], "-c C=1")
    assert repr(text) in str(refused.value) and "NAME=VALUE, such as -c C=1" in str(refused.value)


def test_a_name_may_be_given_once():
    with pytest.raises(DowiseError, match="'Y=0': Y is given twice"):
        parse_values(["Y=1", "Y=0"])


@given(st.text(min_size=1), st.text(alphabet="ab1-", min_size=1))
def test_a_typed_pair_is_read_back(name, value):
    if name.strip():
        assert parse_values([format_pair(name, value)]) == {name: value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1000", 1000), ("0.5", 0.5), ("true", True), ("optimistic", "optimistic"),
        ("[1, 2]", [1, 2]), ('"1"', "1"), ("2026-01-01", "2026-01-01"),
        ("1\nb = 2", "1\nb = 2"), ("{a = 1}", {"a": 1}), ("a = b", "a = b"),
    ],
)  # fmt: skip
def test_an_option_is_a_toml_value_or_a_text(text, value):
    (found,) = parse_options([f"x={text}"]).values()
    assert found == value and type(found) is type(value)
