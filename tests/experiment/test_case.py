"""Cases: values, copies, rows of snapshots."""

import json

import pytest
from support.errors import raises_code
from support.experiments import WARD

from dowise.experiment.case import Case
from dowise.experiment.tell import new_values, to_labels
from dowise.problem import Intervention


def case(**more):
    asked = Intervention({"X": "1"})
    return Case(3, 9, "2026-01-01T00:00:00Z", {"C": "0"}, asked, values={"Z": "0"}, **more)


def test_settings_of_the_played_arm_are_known():
    assert case().known == {"C": "0", "Z": "0", "X": "1"}
    assert case().missing_variables(WARD) == ("W", "Y")
    other = case(played=Intervention({"W": "1"}))
    assert other.known == {"C": "0", "Z": "0", "W": "1"} and other.missing_variables(WARD) == (
        "X",
        "Y",
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"Y": "1"}, {"Y": "1"}),
        ({"Y": None}, {"Y": None}),
        ({"Z": "0", "C": "0", "X": "1"}, {}),
        ({"X": None, "W": "0"}, {"W": "0"}),
    ],
)
def test_new_values_leave_out_settings_of_the_arm(labels, expected):
    assert new_values(case(), labels, None) == expected


def test_a_copy_shares_nothing_with_its_original():
    first = case()
    other = first.copy()
    other.values["Y"], other.context["C"] = "1", "1"
    assert first.values == {"Z": "0"} and first.context == {"C": "0"}


@pytest.mark.parametrize(
    "original",
    [
        case(),
        case(superseded={"Z": ["1", None]}, request_id="r", is_restricted=True, status="done"),
        case(played=Intervention({"W": "0"}), is_unrelated=True, status="withdrawn"),
        Case(1, 2, "", {}, Intervention(), status="erased", last_event=7),
    ],
)
def test_snapshot_rows_are_read_again(original):
    again = Case.from_snapshot_row(json.loads(original.snapshot_row()), {"Z": 3}, Intervention)
    assert again == original and again.told_at == ({} if original.status == "erased" else {"Z": 3})
    assert again == original and again.snapshot_row() == original.snapshot_row()


def test_the_row_of_an_erased_case_has_no_values():
    erased = Case(1, 2, "", {}, Intervention(), status="erased", last_event=7)
    assert json.loads(erased.snapshot_row()) == [1, 2, "erased", 7]


def test_values_are_converted_to_labels():
    assert to_labels(WARD, {"Y": 1, "Z": "0", "X": None, "W": float("nan")}, "the outcome") == {
        "Y": "1", "Z": "0", "X": None, "W": None,
    }  # fmt: skip
    with raises_code("unknown-variable", "'V'"):
        to_labels(WARD, {"V": 1}, "the outcome")


def test_text_of_a_case_has_its_values():
    assert str(case()) == "decision 3, do(X=1), pending: Z=0"
    assert "Z=missing" in str(Case(1, 2, "", {}, Intervention(), values={"Z": None}))
