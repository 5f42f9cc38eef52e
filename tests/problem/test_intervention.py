"""Interventions as mappings and as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code

from dowise import Intervention

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1)
texts = words.filter(lambda text: text.strip() == text)


@given(st.dictionaries(texts, texts, max_size=4))
def test_interventions_round_trip_as_text(settings):
    arm = Intervention(settings)
    assert Intervention.parse(str(arm)) == arm
    assert dict(arm) == settings


def test_a_mapping_and_a_text_give_equal_interventions():
    arm = Intervention({"X2": 1, "X1": 0.0})
    assert str(arm) == "do(X1=0, X2=1)"
    assert list(arm) == ["X1", "X2"] and arm["X1"] == "0" and len(arm) == 2
    assert arm == {"X1": "0", "X2": "1"} and arm.variables == {"X1", "X2"}
    assert hash(arm) == hash(Intervention({"X1": "0", "X2": "1"}))
    assert repr(arm) == "Intervention({'X1': '0', 'X2': '1'})"
    assert str(Intervention()) == "do()" == str(Intervention.parse(" do( ) "))


def test_in_words_describes_an_intervention():
    assert Intervention().in_words() == "set nothing and observe"
    assert Intervention({"A": 1}).in_words() == "set A to 1"
    assert Intervention({"A": 1, "B": 2, "C": 3}).in_words() == "set A to 1, B to 2 and C to 3"


def test_interventions_are_immutable():
    with pytest.raises(TypeError):
        Intervention({"X": 1})["X"] = "2"


@pytest.mark.parametrize(
    ("text", "code", "mentioned"),
    [
        ("X=1", "syntax-error", "do(X=1, …)"),
        ("do(X)", "syntax-error", "expected NAME=VALUE at 'X'"),
        ("do(X=1,)", "syntax-error", "expected NAME=VALUE"),
        ("do(X=1 Y=2)", "syntax-error", "expected ',' or ')'"),
        ("do(X=1, X=2)", "duplicate-name", "X"),
        ("do(=1)", "syntax-error", "expected NAME=VALUE"),
    ],
)
def test_invalid_texts_are_refused(text, code, mentioned):
    with raises_code(code, mentioned):
        Intervention.parse(text)


def test_settings_need_a_name_and_a_value():
    with raises_code("missing-value", "the value of X is missing"):
        Intervention({"X": None})
    with raises_code("invalid-type", "names are str"):
        Intervention({1: "a"})
