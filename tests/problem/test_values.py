"""How a value that a user hands in becomes a label."""

import math

import numpy as np
import pytest

from dowise import DowiseError
from dowise.problem.domains import check_domain, label_of


@pytest.mark.parametrize(
    ("value", "domain", "label"),
    [
        ("1", ("0", "1"), "1"),
        (1, ("0", "1"), "1"),
        (1.0, ("0", "1"), "1"),
        (np.int64(1), ("0", "1"), "1"),
        (np.float32(0.0), ("0", "1"), "0"),
        (np.bool_(True), ("0", "1"), "1"),
        (True, ("0", "1"), "1"),
        (False, ("0", "1"), "0"),
        (True, ("False", "True"), "True"),
        (False, ("TRUE", "FALSE"), "FALSE"),
        (0.5, ("0.5", "1.5"), "0.5"),
        (-0.0, ("0", "1"), "0"),
        (None, ("0", "1"), None),
        (math.nan, ("0", "1"), None),
        (np.float64("nan"), ("0", "1"), None),
        (np.str_("low"), ("low", "high"), "low"),
        (np.float32(0.1), ("0.1", "0.2"), "0.1"),
        ("1", ("no", "TRUE", "false"), "TRUE"),
    ],
)
def test_labels(value, domain, label):
    found = label_of("X", value, domain)
    assert found == label
    assert found is None or type(found) is str


@pytest.mark.parametrize("value", [2, "one", 0.5, math.inf, True])
def test_a_value_outside_the_domain_is_named_with_its_variable(value):
    with pytest.raises(DowiseError, match="Dose has no value .*: its values are low, high"):
        label_of("Dose", value, ("low", "high"))


def test_a_misspelt_label_gets_a_suggestion():
    with pytest.raises(DowiseError, match="did you mean 'high'"):
        label_of("Dose", "hihg", ("low", "high"))


@pytest.mark.parametrize("value", [[1], {"a": 1}, object(), np.array([1, 0])])
def test_what_is_no_value_is_refused(value):
    with pytest.raises(DowiseError, match="is not a value"):
        label_of("X", value, ("0", "1"))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["only"], r"X is \['only'\]: .* at least two"),
        ([], "at least two"),
        (["a", "b", "a"], "'a' twice"),
        ([0, "0"], "'0' twice"),
        (["a", ""], "empty label"),
        (["a", None], "empty label"),
        ("low", "list of labels"),
        ({"a", "b"}, "list of labels in order"),
        ({"a": 1, "b": 2}, "list of labels in order"),
        ([["a"], "b"], r"X has \['a'\], which is not a label"),
        (3, "list of labels"),
    ],
)
def test_bad_domains(labels, message):
    with pytest.raises(DowiseError, match=message):
        check_domain("X", labels)


def test_a_domain_may_be_written_with_numbers_and_truth_values():
    assert check_domain("X", [0, 1, 2.0]) == ("0", "1", "2")
    assert check_domain("X", [False, True]) == ("False", "True")
    assert check_domain("X", np.array([False, True])) == ("False", "True")


def test_texts_of_numbers_and_truth_values_count_like_them():
    whole, truths = ("7", "12", "0"), ("True", "False")
    assert label_of("X", "12.0", whole) == label_of("X", "12.", whole) == "12"
    assert label_of("X", 12, ("7.0", "12.0")) == label_of("X", "12", ("7.0", "12.0")) == "12.0"
    assert label_of("X", "true", truths) == label_of("X", "TRUE", truths) == "True"
    assert label_of("X", "12.0", ("12", "12.0")) == "12.0"  # the label itself goes first
    for value in ("12.5", "1.0", "+12", "true"):
        with pytest.raises(DowiseError, match="has no value"):
            label_of("X", value, whole)
