"""Cases as such: what they may be told, and how they are kept."""

import json

import pytest
from support.experiments import WARD

from dowise import DowiseError
from dowise.experiment.case import Case
from dowise.experiment.tell import new_values, to_labels
from dowise.problem import Intervention


def case(**more):
    asked = Intervention({"X": "1"})
    return Case(3, 9, "2026-01-01T00:00:00Z", {"C": "0"}, asked, values={"Z": "0"}, **more)


def test_what_is_known_and_what_is_open():
    assert case().known == {"C": "0", "Z": "0", "X": "1"}
    assert case().missing_variables(WARD) == ("W", "Y")
    other = case(played=Intervention({"W": "1"}))
    assert other.known == {"C": "0", "Z": "0", "W": "1"} and other.missing_variables(WARD) == (
        "X",
        "Y",
    )


@pytest.mark.parametrize(
    ("labels", "news"),
    [
        ({"Y": "1"}, {"Y": "1"}),
        ({"Y": None}, {"Y": None}),
        ({"Z": "0", "C": "0", "X": "1"}, {}),
        ({"X": None, "W": "0"}, {"W": "0"}),
    ],
)
def test_what_is_new(labels, news):
    assert new_values(case(), labels, None) == news


def test_a_copy_shares_nothing_with_its_original():
    first = case()
    other = first.copy()
    other.values["Y"], other.context["C"] = "1", "1"
    assert first.values == {"Z": "0"} and first.context == {"C": "0"}


@pytest.mark.parametrize(
    "one",
    [
        case(),
        case(superseded={"Z": ["1", None]}, request_id="r", is_restricted=True, status="done"),
        case(played=Intervention({"W": "0"}), is_unrelated=True, status="withdrawn"),
        Case(1, 2, "", {}, Intervention(), status="erased", last_event=7),
    ],
)
def test_a_row_comes_back_as_it_was(one):
    again = Case.from_snapshot_row(json.loads(one.snapshot_row()), Intervention)
    assert again == one and again.snapshot_row() == one.snapshot_row()


def test_a_row_of_what_was_erased_holds_nothing_of_it():
    gone = Case(1, 2, "", {}, Intervention(), status="erased", last_event=7)
    assert json.loads(gone.snapshot_row()) == [1, 2, "erased", 7]


def test_labels_of_what_users_give():
    assert to_labels(WARD, {"Y": 1, "Z": "0", "X": None, "W": float("nan")}, "it") == {
        "Y": "1", "Z": "0", "X": None, "W": None,
    }  # fmt: skip
    with pytest.raises(DowiseError, match="it names 'V'"):
        to_labels(WARD, {"V": 1}, "it")


def test_in_words():
    assert str(case()) == "decision 3, do(X=1), pending: Z=0"
    assert "Z=missing" in str(Case(1, 2, "", {}, Intervention(), values={"Z": None}))
