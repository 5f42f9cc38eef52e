"""What is wrong with a text of TOML, and where it began."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowise import DowiseError
from dowise.problem.problem_file import read_toml

OPEN = {
    "the next entry": ('a = 1\nb = ["Age"\nreward = "Y"\n', "at line 2, column 5), before line 3"),
    "after a comma": ('context = ["Age",\nreward = "Y"', "at line 1, column 11), before line 2"),
    "a quoted key": ('"a b" = ["Age",\n"c d" = 1', "at line 1, column 9), before line 2"),
    "a table": ('context = ["Age",\n[domains]\nX = ["a"]', "at line 1, column 11), before line 2"),
    "in a table": ('[domains]\nX = ["a", "b"\nY = ["c"]', "at line 2, column 5), before line 3"),
    "the end": ('context = [\n"Age",\n', "at line 1, column 11), before the end"),
    "the outer one": ('x = [["]"],\n[1] # ]\ny = 1', "at line 1, column 5), before line 3"),
    "after a text": ('g = """\n[ = [ "\n"""\nx = [\ny = 1', "at line 4, column 5), before line 5"),
    "a comma": ('x = [\n"a"\n"b"\n]', "at line 1, column 5), before line 3"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place"), OPEN.values(), ids=OPEN)
def test_a_list_that_is_not_closed_is_named_where_it_begins(text, place):
    with pytest.raises(DowiseError) as caught:
        read_toml(text)
    assert str(caught.value) == f"not valid TOML: a list lacks its ] or a comma ({place}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x = ["a" "b"]', "a list lacks its ] or a comma (at line 1, column 10)"),
        ('x = ["a", b]', "Invalid value (at line 1, column 11)"),
        ("[a]\nx = # [\n", "Invalid value (at line 2, column 5)"),
        ("x = [\n1,\nb\n]", "Invalid value (at line 3, column 1), in a list that begins at line 1, "
         "column 5: does it lack its ]?"),
        ('x = [\n"""abc', "Unterminated string (at end of document)"),
    ],
)  # fmt: skip
def test_what_else_is_wrong_stays_where_it_is(text, message):
    with pytest.raises(DowiseError) as caught:
        read_toml(text)
    assert str(caught.value) == f"not valid TOML: {message}"


@given(st.text(alphabet="a1=[]\",'\n#{}. "))
def test_every_text_is_read_or_refused(text):
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(DowiseError, match="not valid TOML"):
            read_toml(text)
    else:
        assert read_toml(text) == expected
